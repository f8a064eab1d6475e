"""What type checkers say of scripts that use the package, as for an installed one: mypy and pyright.

pyright is that of basedpyright, whose wheels have all that it needs: nothing is downloaded when it runs.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import COMPAT_PACKAGES, PACKAGES, ROOT

sys.path.insert(0, str(ROOT / "tests/docs"))
import snippets

SCRIPTS = sorted(
    path
    for path in [*ROOT.glob("examples/*.py"), *ROOT.glob("tests/python/typing_samples/*.py")]
    if path.name != "pytorch_ddp.py"  # of a package that is not here
)
# Of mypy for guides: what is not annotated is checked, too, and a name may get a value of another type.
LENIENT = "check_untyped_defs = True\nallow_redefinition = True"
# A guide shows what matters: imports that a later block uses, or has again, a name that a loop has set.
GUIDES = {
    "reportUnusedImport": False,
    "reportDuplicateImport": False,
    "reportPossiblyUnboundVariable": False,
}


def mypy(folder: Path, *scripts: Path, strict: bool = True) -> subprocess.CompletedProcess:
    """What mypy says. The package is one of others: its own stubs are not reported."""
    settings = folder / "mypy.ini"
    settings.write_text(f"""
[mypy]
{"strict = True" if strict else LENIENT}
cache_dir = {folder}/cache
mypy_path = {PACKAGES}:{COMPAT_PACKAGES}
[mypy-muster.*,mindspore.*]
ignore_errors = True
""")
    command = [sys.executable, "-m", "mypy", "--config-file", settings, *scripts]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)


def pyright(folder: Path, *scripts: Path, **rules: bool) -> list[str]:
    """What pyright says in its strict mode: "FILE:LINE: MESSAGE (RULE)" for each error."""
    settings = {
        "typeCheckingMode": "strict",
        "include": [str(script) for script in scripts],
        "extraPaths": [str(PACKAGES), str(COMPAT_PACKAGES)],
        **rules,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [
        sys.executable,
        "-m",
        "basedpyright",
        "--pythonpath",
        sys.executable,
        "--outputjson",
        "-p",
        folder,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] >= len(scripts)
    return [
        f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']} ({one.get('rule')})"
        for one in report["generalDiagnostics"]
        if one["severity"] == "error"
    ]


@pytest.fixture(name="guides", scope="module")
def guides_fixture(tmp_path_factory):
    """The Python of each page in a file, and those that the page gives a name in one of their own."""
    folder = tmp_path_factory.mktemp("guides")
    for page in snippets.pages():
        name = "guide_" + Path(page).stem.replace("-", "_").lower()  # no module that a guide imports
        if name in (
            "guide_launch_pytorch",
            "guide_launch_tensorflow",
            "guide_pytorch",
            "guide_profiling",
        ):  # packages that are not here, pieces of scripts
            continue
        blocks = [block for block in snippets.page_blocks(page) if block.language == "python"]
        for block in blocks:
            if re.search("import (onnxruntime|mlflow|wandb)", block.text):  # without types, or not here
                continue
            file = f"{name}__{Path(block.file).stem}.py" if block.file else f"{name}.py"
            with (folder / file).open("a") as script:
                script.write(block.text + "\n\n")
    return sorted(folder.glob("*.py"))


def test_examples_and_first_scripts_have_no_type_error(tmp_path):
    assert len(SCRIPTS) >= 5
    done = mypy(tmp_path, *SCRIPTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_examples_and_first_scripts_are_clean_for_pyright_in_its_strict_mode(tmp_path):
    assert pyright(tmp_path, *SCRIPTS) == []


def test_guides_have_no_type_error(tmp_path, guides):
    assert len(guides) >= 10
    done = mypy(tmp_path, *guides, strict=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_guides_are_clean_for_pyright_in_its_strict_mode(tmp_path, guides):
    assert pyright(tmp_path, *guides, **GUIDES) == []


def test_mistakes_are_type_errors(tmp_path):
    mistakes = {
        "muster.nn.Dense('4', 2)": ("arg-type", "reportArgumentType"),
        "muster.recoverable(muster.nn.ReLU())": ("call-arg", "reportCallIssue"),
        "muster.no_such_name": ("attr-defined", "reportAttributeAccessIssue"),
    }
    script = tmp_path / "script.py"
    script.write_text("\n".join(["import muster", *mistakes]))
    done = mypy(tmp_path, script)
    assert done.returncode == 1
    told = pyright(tmp_path, script)
    for number, (code, rule) in enumerate(mistakes.values(), 2):
        assert any(f":{number}:" in line and f"[{code}]" in line for line in done.stdout.splitlines())
        assert any(line.startswith(f"script.py:{number}:") and f"({rule})" in line for line in told)
