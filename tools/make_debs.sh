#!/usr/bin/env bash
# Makes dist/muster_VERSION_ARCH.deb (the program, the Python package, the kernels of oneDNN) and
# dist/libmuster-dev_VERSION_ARCH.deb (headers, archive, CMake package) from build/. `./dev deb` builds before.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

version=$(sed -n 's/^project(Muster VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)-1
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-Muster} <${DEBEMAIL:-muster@localhost.localdomain}>"
python=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
next_python=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % (sys.version_info[0], sys.version_info[1] + 1))')
stage=$(mktemp -d)
trap 'rm -rf -- "$stage"' EXIT
runtime="$stage/debian/muster" development="$stage/debian/libmuster-dev"

install_component() { cmake --install build --component "$1" --prefix "$2" >/dev/null; }

# Files as the two packages have them. The kernels are in /usr/lib/muster once, for Python and for C++.
fill() {
  install_component cli "$runtime/usr"
  install_component python "$runtime/usr/lib/python3/dist-packages"
  install_component development "$development/usr"
  mv "$development/usr/lib/muster" "$runtime/usr/lib/muster"
  rm -rf "$runtime/usr/lib/python3/dist-packages/muster/lib" "$development/usr/share"
  strip --strip-unneeded "$runtime/usr/bin/muster" "$runtime"/usr/lib/muster/*.so* \
    "$runtime"/usr/lib/python3/dist-packages/muster/_core.*.so
  strip --strip-debug --enable-deterministic-archives "$development/usr/lib/libmuster.a"
  find "$runtime" "$development" -name '*.so*' -exec chmod 644 {} +
}

# What Debian wants to be in /usr/share/doc/<package>.
add_documents() {
  local package=$1 folder="$stage/debian/$1/usr/share/doc/$1"
  mkdir -p "$folder"
  cat >"$folder/copyright" <<TEXT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Muster

Files: *
Copyright: 2026 the authors of Muster
License: Apache-2.0

Files: usr/lib/muster/libdnnl.so.3
Copyright: 2016-2023 Intel Corporation and others, see usr/lib/muster/onednn/THIRD-PARTY-PROGRAMS of the package muster
License: Apache-2.0

License: Apache-2.0
 On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.
TEXT
  cp NOTICE THIRD_PARTY_NOTICES.md "$folder"
  gzip -9nc CHANGELOG.md >"$folder/changelog.gz"
  printf 'muster (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' "$version" "$maintainer" \
    "$(LC_ALL=C date -R -d "@${SOURCE_DATE_EPOCH:-$(stat -c %Y CHANGELOG.md)}")" | gzip -9n >"$folder/changelog.Debian.gz"
  if [ "$package" = muster ]; then
    mv "$runtime/usr/lib/muster/onednn/THIRD-PARTY-PROGRAMS" "$folder/onednn-THIRD-PARTY-PROGRAMS"
    rm -r "$runtime/usr/lib/muster/onednn"
  fi
}

# Python's byte code is made on the user's system, and goes with the package.
add_scripts() {
  mkdir -p "$runtime/DEBIAN"
  printf '#!/bin/sh\nset -e\nif command -v py3compile >/dev/null; then py3compile -p muster; fi\n' >"$runtime/DEBIAN/postinst"
  printf '#!/bin/sh\nset -e\nif command -v py3clean >/dev/null; then py3clean -p muster; fi\n' >"$runtime/DEBIAN/prerm"
  chmod 755 "$runtime/DEBIAN/postinst" "$runtime/DEBIAN/prerm"
}

libraries_needed() {
  printf 'Source: muster\n\nPackage: muster\nArchitecture: any\n' >"$stage/debian/control"
  (cd "$stage" && dpkg-shlibdeps -O -ldebian/muster/usr/lib/muster -xlibmuster-dev \
    debian/muster/usr/bin/muster debian/muster/usr/lib/muster/*.so* \
    debian/muster/usr/lib/python3/dist-packages/muster/_core.*.so 2>"$stage/shlibdeps.log") |
    sed -n 's/^shlibs:Depends=//p' || { cat "$stage/shlibdeps.log" >&2; exit 1; }
}

# package_of NAME SECTION DEPENDS SUMMARY TEXT
package_of() {
  local folder="$stage/debian/$1"
  mkdir -p "$folder/DEBIAN"
  cat >"$folder/DEBIAN/control" <<TEXT
Package: $1
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$folder" | cut -f1)
Depends: $3
Section: $2
Priority: optional
Description: $4
 $5
TEXT
  (cd "$folder" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  chmod -R u+rwX,go+rX,go-w "$folder"
  mkdir -p dist
  dpkg-deb --build --root-owner-group -Zxz "$folder" dist >/dev/null
  ls -l "dist/$1_${version}_$architecture.deb" | awk '{ printf "%s: %.1f MB\n", $NF, $5 / 1e6 }'
}

fill
add_documents muster
add_documents libmuster-dev
add_scripts
package_of muster science "$(libraries_needed), python3 (>= $python~), python3 (<< $next_python), python3-numpy" \
  "distributed training of neural networks on CPUs" \
  "Muster starts the processes of a training job, trains in C++ or Python,
 and recovers lost processes. This package has the program muster, the
 Python package and the kernels of oneDNN."
package_of libmuster-dev libdevel "muster (= $version), g++, libexpected-dev, libfmt-dev, libjpeg-dev, libpng-dev, libssl-dev, libxxhash-dev, pkg-config" \
  "distributed training of neural networks on CPUs: C++ library" \
  "Headers, a static library and a package file for CMake's find_package(Muster)."
