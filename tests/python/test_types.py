"""What type checkers say of scripts that use the package: mypy, strict, as for an installed package."""

import subprocess
import sys
from pathlib import Path

from places import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted([*ROOT.glob("examples/*.py"), *ROOT.glob("tests/python/typing_samples/*.py")])
CONFIGURATION = """
[mypy]
strict = True
cache_dir = {folder}/cache
mypy_path = {packages}
[mypy-muster.*]
ignore_errors = True
"""


def checked(folder: Path, *scripts: Path) -> subprocess.CompletedProcess:
    """What mypy says. The package is one of others: its own stubs are not reported."""
    settings = folder / "mypy.ini"
    settings.write_text(CONFIGURATION.format(packages=PACKAGES, folder=folder))
    command = [sys.executable, "-m", "mypy", "--config-file", settings, *scripts]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)


def test_examples_and_first_scripts_have_no_type_error(tmp_path):
    assert len(SCRIPTS) >= 5
    done = checked(tmp_path, *SCRIPTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mistakes_are_type_errors(tmp_path):
    mistakes = {
        "muster.nn.Dense('4', 2)": "arg-type",
        "muster.recoverable(muster.nn.ReLU())": "call-arg",
        "muster.no_such_name": "attr-defined",
    }
    (tmp_path / "script.py").write_text("\n".join(["import muster", *mistakes]))
    done = checked(tmp_path, tmp_path / "script.py")
    assert done.returncode == 1
    for number, code in enumerate(mistakes.values(), 2):
        assert any(f":{number}:" in line and f"[{code}]" in line for line in done.stdout.splitlines())
