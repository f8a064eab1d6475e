"""The first page and the first mistakes of a newcomer."""

import re
import subprocess

import pytest
from snippets import ROOT

import muster


def test_readme_says_within_three_sentences_that_it_is_for_cpus():
    words = " ".join(line for line in (ROOT / "README.md").read_text().splitlines()[1:12] if line)
    assert "CPUs" in " ".join(re.split(r"(?<=[.:]) ", words)[:3])


def test_help_and_guide_name_the_same_schedule_of_a_placed_network():
    assert "1F1B" in muster.Model.train.__doc__
    assert "The schedule is 1F1B" in (ROOT / "docs/guide/placement.md").read_text()


@pytest.mark.parametrize(("use", "compiles"), [("", False), ("if (!muster::save()) return 1;", True)])
def test_an_error_that_nobody_looks_at_does_not_compile(tmp_path, use, compiles):
    program = tmp_path / "main.cpp"
    program.write_text(
        '#include "muster/base/result.h"\nnamespace muster { Result<> save(); }\n'
        f"int main() {{ {use or 'muster::save();'} return 0; }}\n"
    )
    include = [f"-I{ROOT}", f"-I{ROOT / '.venv/include'}"]
    done = subprocess.run(
        ["g++", "-std=c++20", "-fsyntax-only", "-Werror", *include, program],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) == compiles, done.stderr
    assert compiles or "nodiscard" in done.stderr
