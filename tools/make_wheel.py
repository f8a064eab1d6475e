#!/usr/bin/env python3
"""Makes the wheel of `./dev wheel` for the Python that runs this, and puts it into dist/.

It is built with MUSTER_SELF_CONTAINED and given the tag of the oldest glibc that it runs on. It is refused
where it needs a library that not every system has, or is larger than a user should have to download.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from scikit_build_core import build

ROOT = Path(__file__).resolve().parents[1]
TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
MEGABYTES_MAX = 20


def die(reason: str) -> None:
    sys.exit(f"make_wheel: {reason}")


def audit(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "auditwheel", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        die(f"auditwheel {arguments[0]} failed:\n{done.stdout}")
    return done.stdout


def grafted(wheel: Path) -> list[str]:
    """Libraries that `auditwheel repair` had to put in: the build left them out."""
    return [name for name in zipfile.ZipFile(wheel).namelist() if ".libs/" in name]


def main() -> None:
    os.chdir(ROOT)
    os.environ.setdefault("CXX", "c++")  # as CMake finds it for build/: ccache tells compilers apart by name
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "cmake.define.MUSTER_SELF_CONTAINED": "ON",
            "build-dir": f"build-wheel-{TAG}",
        }  # as deep as build/: ccache keeps relative paths
        built = Path(folder, build.build_wheel(folder, settings))
        audit(
            "repair",
            "--plat",
            "auto",
            "--zip-compression-level",
            "9",
            "--wheel-dir",
            Path(folder, "done"),
            built,
        )
        [wheel] = Path(folder, "done").iterdir()
        if foreign := grafted(wheel):
            die(f"it needs libraries that not every system has: {', '.join(foreign)}")
        megabytes = wheel.stat().st_size / 1e6
        if megabytes > MEGABYTES_MAX:
            die(f"{wheel.name} has {megabytes:.1f} MB; {MEGABYTES_MAX} are allowed")
        print(audit("show", wheel).strip())
        shutil.copy(wheel, ROOT / "dist")
        print(f"dist/{wheel.name}: {megabytes:.1f} MB")


if __name__ == "__main__":
    (ROOT / "dist").mkdir(exist_ok=True)
    main()
