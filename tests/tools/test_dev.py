"""`./dev` knows the benchmarks that its help names."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DEV = (ROOT / "dev").read_text()


def named(text):
    return set(re.findall(r"^  \./dev bench (\w+) ", text, re.MULTILINE))


def test_each_benchmark_of_the_help_can_be_run():
    help_page = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
    function = DEV.partition("\nrun_bench() {")[2].partition("\n}\n")[0]
    known = set(re.findall(r"\w+", " ".join(re.findall(r"^ +([\w| ]+)\) ;;$", function, re.MULTILINE))))
    assert known == named(help_page) and "observe" in known
    for name in known - {"torch"}:
        assert (ROOT / f"benchmarks/{name}.py").exists()


@pytest.mark.parametrize("words", [["nope"], ["--parts", "collectives,nope"]])
def test_a_benchmark_that_is_not_there_is_named_before_anything_is_built(words):
    done = subprocess.run([ROOT / "dev", "bench", *words], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no benchmark 'nope'" in done.stderr
