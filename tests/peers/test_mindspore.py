"""Real MindSpore 2.7.0 under `--preset mindspore`: the seed's net.py, unmodified."""

import os
import random
import re
import struct
import subprocess
from pathlib import Path

from peers import PROGRAM, ROOT, SECONDS_MAX, environment, needs

pytestmark = needs("MINDSPORE")

ROWS, WORKERS, BATCH = 640, 2, 32


def write_digits(folder: Path) -> None:
    """Pictures in MNIST's format: the digit is a bright line of that number in noise."""
    generator = random.Random(7)
    labels = bytes(row % 10 for row in range(ROWS))
    pictures = bytearray()
    for label in labels:
        for line in range(28):
            bright = 160 if line // 2 == label + 2 else 0
            pictures += bytes(bright + generator.randrange(64) for _ in range(28))
    folder.mkdir()
    (folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, ROWS) + labels)
    (folder / "train-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, ROWS, 28, 28) + pictures)


def test_the_seeds_script_trains_on_a_scheduler_and_workers(tmp_path):
    write_digits(tmp_path / "digits")
    done = subprocess.run(
        [
            *[str(PROGRAM), "run", "-n", str(WORKERS), "--log-dir", str(tmp_path / "logs")],
            *[os.environ["MUSTER_PEER_MINDSPORE"], str(ROOT / "tests/seeds/000/net.py")],
        ],
        env=environment(DATA_PATH=str(tmp_path / "digits")),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "preset mindspore, guessed: net.py imports mindspore" in done.stderr
    for worker in range(WORKERS):
        line = rf"^\[worker {worker}\] epoch: (\d+), step: (\d+), loss is (\S+)$"
        losses = [float(loss) for *_, loss in re.findall(line, done.stdout, re.MULTILINE)]
        assert len(losses) == 10 * ROWS // WORKERS // BATCH // 10, done.stdout[-3000:]
        assert losses[-1] < losses[0] / 2, losses
