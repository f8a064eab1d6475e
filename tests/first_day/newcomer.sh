#!/usr/bin/env bash
# The first day of a user, in systems where nothing is installed: the wheel, the Debian packages, and every guide.
# Not a part of `./dev test`: it needs root, debootstrap, and the archives of Debian, Ubuntu and PyPI.
#   ./dev test --first-day [wheel SYSTEM ...] [deb] [guides] [image]      SYSTEM: bookworm, trixie, noble, jammy
# dist/ has to have the packages: `./dev wheel`, `./dev wheel --python ...` for systems with another Python, `./dev deb`.
set -euo pipefail
source_folder=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
program_name="test --first-day"
# shellcheck source=tools/fresh_system.sh
source "$source_folder/tools/fresh_system.sh"
begin_systems "$@"

SECONDS_MAX=60 # from `pip install` to trained

# page_block PAGE NUMBER: the text of a block of code of docs/guide, counted from 1.
page_block() {
  PYTHONPATH="$source_folder/tests/docs" /usr/bin/python3 -c '
import sys
from snippets import page_blocks
print(page_blocks(sys.argv[1])[int(sys.argv[2]) - 1].text)' "docs/guide/$1.md" "$2"
}

# The blocks of install.md, by what they are.
INSTALL_WHEEL=2 FIRST_SCRIPT=3 RUN_FIRST=4 BUILD_PROGRAM=5 INSTALL_DEBS=6

need_base() { [ -d "$place/base-$1" ] || make_base "$1"; }

# What the pages take for granted: `install SYSTEM PACKAGE ...`
install() {
  local system=$1
  shift
  enter "$system" bash -c 'apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"' \
    install "$@" >"$place/apt.log" 2>&1 || { tail -20 "$place/apt.log" >&2; die "apt-get in $system failed"; }
  enter "$system" update-ca-certificates >/dev/null 2>&1 || true
}

# A folder of the system, /srv/day, with the wheel for its Python.
bring_wheel() {
  local system=$1 tag wheels
  tag=$(enter "$system" python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  wheels=("$source_folder"/dist/muster_train-*-"$tag"-manylinux*.whl)
  [ -f "${wheels[0]}" ] || die "dist/ has no wheel for the Python of $system, $tag: ./dev wheel [--python PATH]"
  mkdir -p "$place/$system/srv/day"
  cp "${wheels[0]}" "$place/$system/srv/day"
}

# Ubuntu 22.04's own Python is 3.10; from its updates comes 3.11, as somebody has it who needs a newer one.
take_newer_python() {
  echo "deb http://archive.ubuntu.com/ubuntu $1-updates main universe" >"$place/$2/etc/apt/sources.list.d/updates.list"
  install "$2" python3.11-venv
  ln -s /usr/bin/python3.11 "$place/$2/usr/local/bin/python3"
}

# In /srv/day of the system, in its environment when there is one.
type_in() {
  local system=$1
  enter "$system" bash -euo pipefail -c "cd /srv/day; [ ! -f env/bin/activate ] || . env/bin/activate
$2"
}

# The wheel, from `pip install` to trained on two workers.
day_of_wheel() {
  local base=$1 begin
  need_base "$base"
  make_system "wheel-$base" "$base"
  install "wheel-$base" ca-certificates python3-venv libstdc++6
  [ "$base" != jammy ] || take_newer_python jammy "wheel-$base"
  bring_wheel "wheel-$base"
  begin=$SECONDS
  type_in "wheel-$base" "$(page_block install $INSTALL_WHEEL)" >"$place/pip.log" 2>&1 || { cat "$place/pip.log" >&2; die "pip install in $base failed"; }
  local installed=$((SECONDS - begin))
  page_block install $FIRST_SCRIPT >"$place/wheel-$base/srv/day/first.py"
  type_in "wheel-$base" "$(page_block install $RUN_FIRST)"
  local took=$((SECONDS - begin))
  [ "$took" -le "$SECONDS_MAX" ] || die "$base: $took s from pip install to trained; $SECONDS_MAX are allowed"
  echo "newcomer: wheel on $base: $installed s for pip install, $took s to the end of two trainings"
}

# The C++ page, against what is installed: it trains, and has oneDNN.
day_of_cpp() {
  local system=$1
  install "$system" g++ cmake make
  copy_source "$place/$system/srv/source"
  type_in "$system" 'PYTHONPATH=/srv/source/tests/python:/srv/source/tests/docs python3 - <<TEXT
from pathlib import Path
from digits import write_digits
from snippets import page_blocks
write_digits(Path("MNIST_Data/train"), rows=640)
for block in page_blocks("docs/guide/cpp.md"):
    if block.file:
        Path(block.file).write_text(block.text)
TEXT'
  type_in "$system" "$(page_block install $BUILD_PROGRAM)"
  type_in "$system" 'build/digits 2>said | tail -1; cat said; [ ! -s said ]
    muster run -n 2 build/digits | grep "worker 1.*epoch: 9, step: 0"'
  echo "newcomer: $system: a C++ program builds, finds oneDNN and trains"
}

# The Debian packages: the script and the C++ program.
day_of_deb() {
  need_base bookworm
  make_system deb bookworm
  mkdir -p "$place/deb/srv/day"
  cp "$source_folder"/dist/muster_*.deb "$source_folder"/dist/libmuster-dev_*.deb "$place/deb/srv/day"
  enter deb apt-get -q update >/dev/null
  type_in deb "$(page_block install $INSTALL_DEBS)" >"$place/apt.log" 2>&1 || { tail -20 "$place/apt.log" >&2; die "apt install of the packages failed"; }
  page_block install $FIRST_SCRIPT >"$place/deb/srv/day/first.py"
  type_in deb 'muster run -n 2 first.py'
  day_of_cpp deb
}

# README and each guide, with the wheel.
day_of_guides() {
  need_base bookworm
  make_system guides bookworm
  install guides ca-certificates python3-venv libstdc++6 iproute2 openssl procps
  bring_wheel guides
  type_in guides "$(page_block install $INSTALL_WHEEL)" >/dev/null
  day_of_cpp guides
  # export.md asks for onnxruntime; launch-mindspore.md for MindSpore, which Muster stands in for here.
  type_in guides 'pip install --quiet onnxruntime
    muster compat-path >"$(python -c "import sysconfig; print(sysconfig.get_paths()[\"purelib\"])")/mindspore.pth"
    python /srv/source/tests/first_day/newcomer.py /srv/guides'
}

# The image of launch-kubernetes.md: its Dockerfile's commands by hand, since nothing here builds images.
day_of_image() {
  need_base bookworm
  make_system image bookworm
  enter image bash -c 'apt-get -q update && apt-get -q install -y --no-install-recommends python3' >/dev/null 2>&1
  bring_wheel image
  mkdir -p "$place/image/train"
  cp "$place"/image/srv/day/*.whl "$place/image/tmp"
  page_block install $FIRST_SCRIPT >"$place/image/train/train.py"
  page_block launch-kubernetes 2 | sed -n 's/^RUN //p' >"$place/image/tmp/steps.sh"
  enter image bash -euo pipefail -c '. /tmp/steps.sh' >"$place/image.log" 2>&1 || { tail -20 "$place/image.log" >&2; die "the image's steps failed"; }
  enter image bash -euo pipefail -c 'cd /train && muster run -n 2 train.py'
  echo "newcomer: the image of launch-kubernetes.md trains"
}

[ $# -gt 0 ] || set -- wheel bookworm wheel noble deb guides image
while [ $# -gt 0 ]; do
  case "$1" in
    wheel)
      day_of_wheel "${2:?which system: bookworm, trixie, noble or jammy}"
      shift
      ;;
    deb) day_of_deb ;;
    guides) day_of_guides ;;
    image) day_of_image ;;
    *) die "no case '$1': wheel SYSTEM, deb, guides or image" ;;
  esac
  shift
done
