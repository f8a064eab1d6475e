"""What a loop of muster.torch.recoverable() carries from step to step comes back with a rank, or is told."""

import re
from pathlib import Path

import pytest
from peers import ROOT, needs, run

pytestmark = needs("TORCH")


def train(folder: Path, *options: str):
    flags = ("-n", "2", "--preset", "pytorch", "--max-restarts", "9", "--log-dir", str(folder / "logs"))
    flags += ("--preload", "torch,torch._dynamo,muster.torch")
    script = str(ROOT / "tests/peers/torch_backend/carrying.py")
    done = run("TORCH", script, *flags, arguments=options, PYTHONPATH=str(ROOT / "build/python"))
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def ends(done) -> list[str]:
    return sorted(re.findall(r"rank \d end .*", done.stdout))


@pytest.mark.parametrize("hurt", ["1:0", "0:3,1:8", "0:7,1:7"])
def test_a_hidden_state_of_each_rank_comes_back_with_a_killed_one(tmp_path, hurt):
    unbroken, killed = train(tmp_path / "unbroken", "own"), train(tmp_path / "killed", "own", f"hurt={hurt}")
    assert killed.stdout.count("is hurt") == len(hurt.split(","))
    assert ends(killed) == ends(unbroken)
    assert "muster: warning" not in killed.stderr + unbroken.stderr


@pytest.mark.parametrize(
    ("habit", "name"),
    [("carried", "hidden"), ("attribute", "net.module.hidden"), ("list", "outer"), ("in-place", "average")],
)
def test_what_a_step_leaves_for_the_next_one_in_a_variable_is_told_of(tmp_path, habit, name):
    told = train(tmp_path, habit).stderr
    assert re.findall(r"a step of the loop takes what the one before has left in (\S+):", told) == [name]
