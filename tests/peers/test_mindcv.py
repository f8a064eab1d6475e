"""The models of mindcv, unmodified, under Muster's names beside real MindSpore: output and three steps.

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

pytestmark = needs("MINDSPORE")

CACHE = ROOT / ".peers/mindcv"
SECONDS_MAX = 1800
NEEDED = ("mindcv", "tqdm", "yaml", "PIL", "pillow.libs", "scipy", "scipy.libs")
SCRIPT = SCRIPTS / "mindcv_model.py"


def models():
    listed = (Path(__file__).parent / "mindcv/models.txt").read_text().splitlines()
    wanted = [name for name in os.environ.get("MUSTER_MINDCV", "").split(",") if name]
    pairs = [line.split() for line in listed if not line.startswith("#")]
    return [pytest.param(name, side, id=name) for name, side in pairs if not wanted or name in wanted]


def run(python, name, side, peer, **variables):
    done = subprocess.run(
        [python, str(SCRIPT), name, side, str(CACHE), peer, "eager" if peer == "mindspore" else "graph"],
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


@pytest.mark.parametrize(("name", "side"), models())
def test_output_and_losses_are_those_of_mindspore(name, side):
    paths = [ROOT / "build/python", ROOT / "build/python_compat", packages()]
    if not (CACHE / f"{name}.mindspore.npz").exists():
        run(os.environ["MUSTER_PEER_MINDSPORE"], name, side, "mindspore")
    run(sys.executable, name, side, "muster", PYTHONPATH=":".join(map(str, paths)))
    theirs, ours = (numpy.load(CACHE / f"{name}.{peer}.npz") for peer in ("mindspore", "muster"))
    output = theirs["output"]
    assert numpy.abs(ours["output"] - output).max() <= 1e-5 * max(numpy.abs(output).max(), 1)
    apart = numpy.abs(ours["losses"] - theirs["losses"]) / numpy.abs(theirs["losses"])
    # Batch statistics of two pictures make the third step differ by the rounding of the first.
    assert apart[0] < 1e-5 and apart.max() < 2e-2, (ours["losses"], theirs["losses"])
