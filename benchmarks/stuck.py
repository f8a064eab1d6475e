"""No false alarm: a job with four times as many workers as cores, watched for a while.

./dev bench stuck [--minutes 10]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from processes import free_port

ROOT = Path(__file__).resolve().parents[1]
OVERLOAD = 4
SCRIPT = """
import muster as ms
from muster import nn, train
from muster.dataset import GeneratorDataset
import numpy as np

ms.init()
ms.set_seed(1)
images = np.random.default_rng(ms.get_rank()).normal(size=(512, 1, 28, 28)).astype(np.float32)

def rows():
    for image in images:
        yield image, np.int32(image[0, 0, 0] > 0)

dataset = GeneratorDataset(rows, ["data", "label"]).batch(16)
net = nn.SequentialCell(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.Flatten(), nn.Dense(16 * 28 * 28, 10))
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
model = train.Model(
    net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 1e-3, 0.9), metrics={"accuracy"}
)
config = train.CheckpointConfig(save_checkpoint_steps=32)
saves = [train.ModelCheckpoint("net", config=config, directory="points")] if ms.get_rank() == 0 else []
model.fit(1_000_000, dataset, dataset, callbacks=saves)
"""


def start(folder: Path, role: str, node: str, common: dict[str, str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **common, "MS_ROLE": role, "MS_NODE_ID": node}
    with (folder / f"{role}-{node}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def steps_of(port: int) -> str:
    program = ROOT / "build/apps/muster/muster"
    told = subprocess.run(
        [str(program), "status", "--scheduler", f"127.0.0.1:{port}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout + told.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    minutes = parser.parse_args().minutes
    workers = OVERLOAD * len(os.sched_getaffinity(0))
    port = free_port()
    common = {
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": str(port),
        "MS_WORKER_NUM": str(workers),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT / "build/python"),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        processes = [start(folder, "MS_SCHED", "s", common)]
        processes += [start(folder, "MS_WORKER", str(i), common) for i in range(workers)]
        try:
            end = time.monotonic() + 60 * minutes
            while time.monotonic() < end and all(process.poll() is None for process in processes):
                time.sleep(1)
            status = steps_of(port)
            alive = all(process.poll() is None for process in processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        logs = "".join(log.read_text() for log in sorted(folder.glob("*.log")))
    alarms = re.findall(r".*no step has been finished.*", logs)
    print(status, end="")
    print(f"{workers} workers on {workers // OVERLOAD} cores for {minutes:g} min: {len(alarms)} false alarms")
    if not alive:
        print("a process ended by itself:\n" + logs[-4000:])
    for alarm in alarms[:10]:
        print(alarm)
    return 0 if alive and not alarms else 1


if __name__ == "__main__":
    sys.exit(main())
