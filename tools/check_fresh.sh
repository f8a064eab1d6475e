#!/usr/bin/env bash
# Both commands of README.md in a minimal Debian 12 where nothing is installed: as root, and as a user with sudo;
# from a path with a space, and without .git. Needs root, debootstrap and the package archives.
#   tools/check_fresh.sh [root] [user]
set -euo pipefail
source_folder=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
program_name=check-fresh
# shellcheck source=tools/fresh_system.sh
source "$source_folder/tools/fresh_system.sh"
begin_systems "$@"

# The commands as README.md has them, and how long they took.
commands='cd "/srv/muster source"
for command in demo test; do
  begin=$SECONDS
  ./dev $command || { echo "check-fresh: ./dev $command failed"; exit 1; }
  echo "check-fresh: ./dev $command took $((SECONDS - begin)) s"
done'

run_root() {
  make_system administrator bookworm
  copy_source "$place/administrator/srv/muster source"
  enter administrator bash -c "$commands"
}

run_user() {
  make_system user bookworm
  copy_source "$place/user/srv/muster source"
  enter user bash -c 'apt-get -q update && apt-get -q install -y --no-install-recommends sudo' >/dev/null
  enter user useradd --create-home --shell /bin/bash somebody
  echo 'somebody ALL=(ALL) NOPASSWD: ALL' >"$place/user/etc/sudoers.d/somebody"
  enter user chown -R somebody "/srv/muster source"
  enter user su somebody -s /bin/bash -c "$commands"
}

make_base bookworm
[ $# -gt 0 ] || set -- root user
for who in "$@"; do
  case "$who" in
    root) run_root ;;
    user) run_user ;;
    *) die "no case '$who': root or user" ;;
  esac
  echo "check-fresh: $who: both commands pass"
done
