"""The models of mindcv, unmodified, under Muster's names beside real MindSpore: output and three steps.

Batch statistics of two pictures make some models ill-conditioned: pictures that differ by their rounding give
losses that differ in the third digit. Where MindSpore's losses are not ours, ours are taken of such pictures,
too, and MindSpore's may be as far from ours as those are.

MindSpore's side is made once, into .peers/mindcv, with its weights as checkpoints: hours for all of
mindcv/models.txt. MUSTER_MINDCV=resnet18,vit_b_32_224 picks some. mindcv itself is that of MindSpore's
environment.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from peers import ROOT, SCRIPTS, environment, needs

CACHE = ROOT / ".peers/mindcv"
SECONDS_MAX = 1800

pytestmark = [needs("MINDSPORE"), pytest.mark.timeout(3 * SECONDS_MAX)]

MOVES = 6  # trainings with images that differ by their rounding
FAR = 3  # times as far as those may MindSpore's losses be: six do not show the farthest
NEEDED = ("mindcv", "tqdm", "yaml", "PIL", "pillow.libs", "scipy", "scipy.libs")
SCRIPT = SCRIPTS / "mindcv_model.py"


def models():
    listed = (Path(__file__).parent / "mindcv/models.txt").read_text().splitlines()
    wanted = [name for name in os.environ.get("MUSTER_MINDCV", "").split(",") if name]
    pairs = [line.split() for line in listed if not line.startswith("#")]
    return [pytest.param(name, side, id=name) for name, side in pairs if not wanted or name in wanted]


def run(python, name, side, peer, moves=0, **variables):
    CACHE.mkdir(parents=True, exist_ok=True)
    mode = "eager" if peer == "mindspore" else "graph"
    done = subprocess.run(
        [python, str(SCRIPT), name, side, str(CACHE), peer, mode, str(moves)],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]


def packages():
    """A folder with mindcv and what it needs beside numpy, from MindSpore's environment."""
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run(
        [os.environ["MUSTER_PEER_MINDSPORE"], "-c", where], capture_output=True, text=True, check=True
    )
    folder = CACHE / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    for name in NEEDED:
        source, link = Path(found.stdout.strip()) / name, folder / name
        if source.exists() and not link.is_symlink():
            link.symlink_to(source)
    return folder


def answers(name, peer):
    return numpy.load(CACHE / f"{name}.{peer}.npz")


def is_whole(file):
    """Not where a run was stopped behind its output."""
    return file.exists() and "losses" in numpy.load(file).files


def run_ours(name, side, moves=0):
    paths = [ROOT / "build/python", ROOT / "build/python_compat", packages()]
    run(sys.executable, name, side, "muster", moves, PYTHONPATH=":".join(map(str, paths)))
    return answers(name, "muster")


@pytest.mark.parametrize(("name", "side"), models())
def test_output_and_losses_are_those_of_mindspore(name, side):
    if not is_whole(CACHE / f"{name}.mindspore.npz"):
        run(os.environ["MUSTER_PEER_MINDSPORE"], name, side, "mindspore")
    theirs, ours = answers(name, "mindspore"), run_ours(name, side)
    output = theirs["output"]
    assert numpy.abs(ours["output"] - output).max() <= 1e-5 * max(numpy.abs(output).max(), 1)
    apart = numpy.abs(ours["losses"] - theirs["losses"])
    near = numpy.array([1e-5, 2e-2, 2e-2]) * numpy.abs(theirs["losses"])
    if (apart > near).any():
        moved = run_ours(name, side, MOVES)["moved"]
        near = numpy.maximum(near, FAR * numpy.abs(moved - ours["losses"]).max(0))
    assert (apart <= near).all(), (ours["losses"], theirs["losses"], near)
    assert (apart < 0.1 * theirs["losses"]).all(), "so far apart says nothing"
