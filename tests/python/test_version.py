"""CMakeLists.txt says the version, and nobody else."""

import re
import subprocess

from places import BUILD, ROOT
from scikit_build_core import build

import muster

VERSION = re.search(r"^project\(Muster VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def test_the_python_package_has_it():
    assert muster.__version__ == VERSION


def test_package_mindspore_tells_whose_names_it_has(run_with_mindspore):
    run_with_mindspore("assert ms.__version__ == '2.7.0'")


def test_the_program_has_it():
    for word in ("version", "--version"):
        said = subprocess.check_output([BUILD / "apps/muster/muster", word], text=True)
        assert said == f"muster {VERSION}\n"


def test_a_wheel_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    folder = build.prepare_metadata_for_build_wheel(str(tmp_path))
    metadata = (tmp_path / folder / "METADATA").read_text()
    assert f"\nVersion: {VERSION}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    packed = {path.name for path in (tmp_path / folder / "licenses").iterdir()}
    assert packed == {"LICENSE", "NOTICE", "THIRD_PARTY_NOTICES.md"}
