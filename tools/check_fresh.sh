#!/usr/bin/env bash
# Both commands of README.md in a minimal Debian 12 where nothing is installed: as root, and as a user with sudo;
# from a path with a space, and without .git. Needs root, debootstrap and the package archives.
#   tools/check_fresh.sh [root] [user]
set -euo pipefail
source_folder=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)

die() {
  printf 'check-fresh: %s\n' "$*" >&2
  exit 1
}
[ "$(id -u)" -eq 0 ] || die "only root can make and enter another system: sudo ./dev check-fresh"
command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"

# A mount namespace of our own: whatever is mounted below goes when this script does.
if [ "${CHECK_FRESH_INSIDE:-}" != yes ]; then
  export CHECK_FRESH_INSIDE=yes
  exec unshare --mount --pid --fork --kill-child --propagation private "$0" "$@"
fi

place=$(mktemp -d "${TMPDIR:-/var/tmp}/check-fresh.XXXXXX")
leave() {
  for system in "$place"/*/; do umount --recursive --lazy "$system" 2>/dev/null || true; done
  rm -rf --one-file-system "$place"
}
trap leave EXIT

make_base() {
  debootstrap --variant=minbase bookworm "$place/base" >"$place/debootstrap.log" 2>&1 ||
    { tail "$place/debootstrap.log" >&2; die "debootstrap failed"; }
  # The way to the archives is that of this machine: proxy, certificates, names.
  apt-config dump | grep -E '^Acquire::(http|https)::Proxy' >"$place/base/etc/apt/apt.conf.d/90proxy" || true
  mkdir -p "$place/base/usr/local/share/ca-certificates"
  cp -a /usr/local/share/ca-certificates/. "$place/base/usr/local/share/ca-certificates/" 2>/dev/null || true
  cp /etc/resolv.conf /etc/hosts "$place/base/etc/"
}

# enter <system> <command> ...: a clean environment, but for what leads to the archives.
enter() {
  local system=$1 kept=() name
  shift
  for name in http_proxy https_proxy no_proxy PIP_CERT PIP_INDEX_URL; do
    [ -z "${!name:-}" ] || kept+=("$name=${!name}")
  done
  chroot "$place/$system" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root TERM=dumb "${kept[@]}" "$@"
}

make_system() {
  cp -a "$place/base" "$place/$1"
  mount --bind "$place/$1" "$place/$1" # so that / is a mount there, as everywhere: the tests make namespaces
  mount -t proc proc "$place/$1/proc"
  mount -t sysfs -o ro sysfs "$place/$1/sys"
  if [ -d /sys/fs/cgroup ]; then mount --rbind /sys/fs/cgroup "$place/$1/sys/fs/cgroup"; fi # for slurmd
  mount --rbind /dev "$place/$1/dev"
  local folder="$place/$1/srv/muster source"
  mkdir -p "$folder"
  tar -C "$source_folder" -c --exclude-vcs --exclude='./build*' --exclude=./.venv --exclude=./.cache \
    --exclude=./MNIST_Data --exclude=./muster-logs . | tar -C "$folder" -x
}

# The commands as README.md has them, and how long they took.
commands='cd "/srv/muster source"
for command in demo test; do
  begin=$SECONDS
  ./dev $command || { echo "check-fresh: ./dev $command failed"; exit 1; }
  echo "check-fresh: ./dev $command took $((SECONDS - begin)) s"
done'

run_root() {
  make_system root
  enter root bash -c "$commands"
}

run_user() {
  make_system user
  enter user bash -c 'apt-get -q update && apt-get -q install -y --no-install-recommends sudo' >/dev/null
  enter user useradd --create-home --shell /bin/bash somebody
  echo 'somebody ALL=(ALL) NOPASSWD: ALL' >"$place/user/etc/sudoers.d/somebody"
  enter user chown -R somebody "/srv/muster source"
  enter user su somebody -s /bin/bash -c "$commands"
}

make_base
[ $# -gt 0 ] || set -- root user
for who in "$@"; do
  case "$who" in
    root) run_root ;;
    user) run_user ;;
    *) die "no case '$who': root or user" ;;
  esac
  echo "check-fresh: $who: both commands pass"
done
