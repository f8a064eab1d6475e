"""The scripts that the guide's pages show run as the pages say."""

import os
import re
import subprocess
from pathlib import Path

from peers import PROGRAM, ROOT, SECONDS_MAX, environment, needs


def run_page(tmp_path, page: str, peer: str, *flags: str) -> str:
    text = (ROOT / "docs/guide" / page).read_text()
    (tmp_path / "train.py").write_text(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1])
    done = subprocess.run(
        [str(PROGRAM), "run", *flags, os.environ[f"MUSTER_PEER_{peer}"], "train.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs("TORCH")
def test_the_page_about_pytorch(tmp_path):
    lines = sorted(run_page(tmp_path, "launch-pytorch.md", "TORCH", "-n", "2").splitlines())
    assert [line.partition(": ")[0] for line in lines] == ["[worker 0] rank 0 of 2", "[worker 1] rank 1 of 2"]


@needs("TENSORFLOW")
def test_the_page_about_tensorflow(tmp_path):
    flags = ("--style", "chief", "-n", "2")
    assert "[chief] weight 10.0\n" in run_page(tmp_path, "launch-tensorflow.md", "TENSORFLOW", *flags)


@needs("TORCH")
def test_the_libtorch_program_of_the_page_about_cpp_compiles(tmp_path):
    page = (ROOT / "docs/guide/cpp.md").read_text()
    [program] = [code.split("```")[0] for code in page.split("```cpp\n") if "<torch/torch.h>" in code]
    (tmp_path / "main.cpp").write_text(program)
    where = [os.environ["MUSTER_PEER_TORCH"], "-c", "import torch; print(torch.__file__)"]
    include = Path(subprocess.check_output(where, text=True).strip()).parent / "include"
    folders = [f"-I{include}", f"-I{include / 'torch/csrc/api/include'}"]
    command = ["g++", "-std=c++20", "-fsyntax-only", *folders, str(tmp_path / "main.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stderr
