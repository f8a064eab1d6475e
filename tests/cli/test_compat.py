"""`muster compat check`: what scripts for MindSpore use that is missing or differs, read and not run."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / ".venv/bin/muster"

MISSING = "NoSuchOperation"  # of no MindSpore either; which of its own are missing changes


@pytest.fixture
def check(tmp_path):
    """Checks a script of these lines; gives the exit code and (line, kind, name) of each finding."""

    def run(*lines: str):
        (tmp_path / "train.py").write_text("\n".join(lines) + "\n")
        done = muster("check", "--json", str(tmp_path / "train.py"))
        found = json.loads(done.stdout)
        return done.returncode, [(each["line"], each["kind"], each["name"]) for each in found]

    return run


def muster(*words: str):
    return subprocess.run(
        [PROGRAM, "compat", *words], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_script_whose_names_are_all_there_ends_with_0(check):
    assert check(
        "import mindspore as ms", "from mindspore import nn", "net = nn.Dense(2, 3)", "ms.Tensor(1)"
    ) == (0, [])


ALIASES = f"""
import mindspore; mindspore.ops.{MISSING}()
import mindspore as ms; ms.ops.{MISSING}()
import mindspore.ops as P; x = P.{MISSING}
from mindspore import ops as F; call(F.{MISSING})
from mindspore import ops; ops.{MISSING}()(1)
def f(): return [mindspore.ops.{MISSING} for _ in range(3)]
kernel = ops.{MISSING}; kernel(1)
"""


def test_a_missing_name_is_found_under_every_alias(check):
    lines = ALIASES.strip().split("\n")
    found = [(line, "unknown", f"mindspore.ops.{MISSING}") for line in range(1, len(lines) + 1)]
    assert check(*lines) == (1, found)


def test_a_missing_name_is_told_where_it_is_imported(check):
    assert check(
        "import os", f"from mindspore.nn import Cell, {MISSING}", f"{MISSING}()", f"{MISSING}()"
    ) == (
        1,
        [(2, "unknown", f"mindspore.nn.{MISSING}")],
    )


def test_names_of_mindspore_that_are_not_there_are_missing_and_others_are_unknown(check):
    code, found = check("import mindspore", "mindspore.obfuscate_ckpt()", "mindspore.obfuscate()")
    assert (code, [kind for _, kind, _ in found]) == (1, ["missing", "unknown"])


# A member of MindSpore's Tensor that is none for users.
MEMBER = "convert_bytes_to_tensor"


def test_members_of_tensors_are_found_where_the_type_is_plain(check):
    code, found = check(
        "import mindspore as ms",
        "from mindspore import Tensor, nn, ops",
        "x = Tensor([1.0])",
        f"x.{MEMBER}()",
        f"(x + 1).{MEMBER}()",
        f"ops.relu(x).{MEMBER}()",
        f"def f(y: Tensor): return y.{MEMBER}()",
        "class Net(nn.Cell):",
        f"    def construct(self, x): return x.{MEMBER}()",
        "x = open('f')",
        f"x.{MEMBER}()",
        "Tensor([1]).reshape(1).anything_of_users",
    )
    assert (code, [line for line, *_ in found]) == (1, [4, 5, 6, 7, 9])
    assert {name for *_, name in found} == {f"mindspore.Tensor.{MEMBER}"}


def test_what_is_local_or_of_others_is_left_alone(check):
    assert check(
        "import mindspore, torch",
        "from torch import ops",
        f"ops.{MISSING}()",
        "def f(nn):",
        f"    nn.{MISSING}()",
        "from mindspore import nn",
        "def g(nn):",
        f"    nn.{MISSING}()",
    ) == (0, [])


def test_what_a_script_handles_itself_is_left_alone(check):
    assert check(
        "try:", f"    from mindspore import {MISSING}", "except ImportError:", f"    {MISSING} = None"
    ) == (0, [])


def test_a_keyword_that_is_not_taken_is_told(check):
    code, found = check("from mindspore import nn", "nn.Dense(2, 3, no_such_option=1)")
    assert (code, found) == (1, [(2, "argument", "mindspore.nn.Dense(no_such_option=)")])


def test_what_differs_is_told_and_is_no_error(check):
    code, found = check(
        "from mindspore import nn",
        "nn.Momentum([], 0.1, 0.9)",
        "nn.Momentum([], 0.1, 0.9, use_nesterov=True)",
    )
    assert (code, found) == (0, [(3, "differs", "mindspore.nn.Momentum(use_nesterov=)")])


def test_it_reads_folders_and_prints_file_line_name_and_way_out(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/net.py").write_text("from mindspore import ops\n\nops.softmaxy()\n")
    (tmp_path / "other.py").write_text("print()\n")
    done = muster("check", str(tmp_path))
    assert done.returncode == 1
    first, last = done.stdout.splitlines()
    assert first.startswith(
        f"{tmp_path}/package/net.py:3: mindspore.ops.softmaxy is no name of MindSpore 2.7: near it"
    )
    assert "softmax" in first.partition("near it")[2]
    assert last == "2 files: 1 missing, 0 that differ"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("train.py", None, "No such file or directory"),
        ("train.py", "def (", "invalid syntax (train.py, line 1)"),
        ("train.py", "\0", "source code string cannot contain null bytes"),
        ("train.ipynb", '{"cells": []}', "a notebook: `jupyter nbconvert --to script"),
        ("folder/readme.txt", "", "there is no .py file in it"),
    ],
)
def test_what_cannot_be_read_ends_with_2_and_is_not_said_to_be_well(tmp_path, name, text, reason):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    if text is not None:
        file.write_text(text)
    given = file if file.parent == tmp_path else file.parent
    done = muster("check", str(given))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"muster compat check: {given}: {reason}")


def test_a_script_is_never_run(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(f"import mindspore\nopen({str(tmp_path / 'ran')!r}, 'w')\n")
    assert muster("check", str(file)).returncode == 0
    assert not (tmp_path / "ran").exists()


def test_compat_without_check_says_what_there_is():
    done = muster()
    assert done.returncode == 2
    assert "check" in done.stdout + done.stderr


def test_names_of_older_versions_lead_to_those_of_today(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("from mindspore import ms_function\n")
    assert (
        "mindspore.ms_function is no name of MindSpore 2.7: mindspore.jit"
        in muster("check", str(file)).stdout
    )
