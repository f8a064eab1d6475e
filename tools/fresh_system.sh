# For scripts that try something in a system where nothing is installed (sourced): a folder `place` of their own, made
# by begin_systems and gone when they end, and minimal systems in it. Needs root, debootstrap and the archives.
# shellcheck shell=bash

die() {
  printf '%s: %s\n' "${program_name:?}" "$*" >&2
  exit 1
}

# begin_systems "$@": starts the script again in a mount namespace of its own: whatever is mounted goes when it ends.
begin_systems() {
  [ "$(id -u)" -eq 0 ] || die "only root can make and enter another system: sudo ./dev ${program_name}"
  command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"
  if [ "${FRESH_SYSTEM_INSIDE:-}" != yes ]; then
    export FRESH_SYSTEM_INSIDE=yes
    exec unshare --mount --pid --fork --kill-child --propagation private "$0" "$@"
  fi
  place=$(mktemp -d "${TMPDIR:-/var/tmp}/fresh-system.XXXXXX")
  trap leave_systems EXIT
}

leave_systems() {
  for system in "$place"/*/; do umount --recursive --lazy "$system" 2>/dev/null || true; done
  rm -rf --one-file-system "$place"
}

# The archive keys of Ubuntu, which Debian does not carry: a package of Ubuntu's, known by its hash.
ubuntu_keys() {
  local package="$place/ubuntu-keyring.deb"
  [ -d "$place/ubuntu-keys" ] || /usr/bin/python3 - "$package" <<'PYTHON' || die "the keys of Ubuntu's archive cannot be had"
import sys, urllib.request
url = "http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/ubuntu-keyring_2021.03.26_all.deb"
urllib.request.urlretrieve(url, sys.argv[1])
PYTHON
  echo "0d0e7ed6b112f5d03eabf3c7eb01ebdacf9c57714b279e90495cfc58c8c4520f  $package" | sha256sum --check --quiet ||
    die "ubuntu-keyring is not the package that it was"
  dpkg-deb -x "$package" "$place/ubuntu-keys"
}

# make_base NAME: a minimal system, `$place/base-NAME`: bookworm, trixie, jammy or noble. MUSTER_BASES may name a folder
# with such systems, made by debootstrap before.
make_base() {
  local target="$place/base-$1"
  if [ -d "${MUSTER_BASES:-/nonexistent}/$1" ]; then
    cp -a "$MUSTER_BASES/$1" "$target"
  else
    bootstrap "$1" "$target"
  fi
  # The way to the archives is that of this machine: proxy, certificates, names.
  apt-config dump | grep -E '^Acquire::(http|https)::Proxy' >"$target/etc/apt/apt.conf.d/90proxy" || true
  mkdir -p "$target/usr/local/share/ca-certificates"
  cp -a /usr/local/share/ca-certificates/. "$target/usr/local/share/ca-certificates/" 2>/dev/null || true
  cp /etc/resolv.conf /etc/hosts "$target/etc/"
}

bootstrap() {
  local target=$2 how
  case "$1" in
    jammy | noble)
      ubuntu_keys
      how=(--components=main,universe --keyring="$place/ubuntu-keys/usr/share/keyrings/ubuntu-archive-keyring.gpg"
        "$1" "$target" http://archive.ubuntu.com/ubuntu gutsy) # the script for all of Ubuntu
      ;;
    *) how=("$1" "$target") ;;
  esac
  debootstrap --variant=minbase "${how[@]}" >"$place/debootstrap.log" 2>&1 ||
    { tail "$place/debootstrap.log" >&2; die "debootstrap of $1 failed"; }
}

# make_system NAME BASE: a copy of the base, with what a system has mounted.
make_system() {
  local target="$place/$1"
  cp -a "$place/base-$2" "$target"
  mount --bind "$target" "$target" # so that / is a mount there, as everywhere: the tests make namespaces
  mount -t proc proc "$target/proc"
  mount -t sysfs -o ro sysfs "$target/sys"
  if [ -d /sys/fs/cgroup ]; then mount --rbind /sys/fs/cgroup "$target/sys/fs/cgroup"; fi # for slurmd
  mount --rbind /dev "$target/dev"
}

# enter NAME COMMAND ...: a clean environment, but for what leads to the archives.
enter() {
  local system=$1 kept=() name
  shift
  for name in http_proxy https_proxy no_proxy PIP_CERT PIP_INDEX_URL; do
    [ -z "${!name:-}" ] || kept+=("$name=${!name}")
  done
  chroot "$place/$system" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root TERM=dumb LC_ALL=C.UTF-8 "${kept[@]}" "$@"
}

# copy_source FOLDER: this tree, without what was made in it.
copy_source() {
  mkdir -p "$1"
  tar -C "${source_folder:?}" -c --exclude-vcs --exclude='./build*' --exclude='./.venv*' --exclude=./.cache \
    --exclude=./MNIST_Data --exclude=./muster-logs --exclude=./dist . | tar -C "$1" -x
}
