"""A rank that is made slow in a real job, in each of five ways: whether the job names it, with the cause.

./dev bench slow [--times 6] [--causes reading_data,saving,...] [--seconds 40]

Four workers on this host. The network takes root, and two network namespaces.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from processes import free_port

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))
SLOW = 1
WORKERS = 4
SCRIPT = """
import os, time
import numpy as np
import muster as ms
from muster import dataset as ds, nn, train

ms.init()
ms.set_seed(1)
cause = os.environ["CAUSE"]
slow = ms.get_rank() == 1 and not cause.startswith("no")
size = 768 if slow and cause == "computing" else 16
inputs = np.random.default_rng(ms.get_rank()).normal(size=(size, 256)).astype(np.float32)
labels = (inputs[:, 0] > 0).astype(np.int32)

def read(x):
    time.sleep(0.06 if slow and cause == "reading_data" else 0.002)
    return x

class Rests(train.Callback):
    def on_train_step_end(self, context):
        if slow and cause == "script":
            time.sleep(0.06)

one = ds.NumpySlicesDataset((inputs, labels), ["x", "y"], shuffle=False).batch(size).map(read, "x")
net = nn.SequentialCell(nn.Dense(256, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 10))
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
callbacks = [Rests()]
if slow and cause == "saving":
    each_step = train.CheckpointConfig(save_checkpoint_steps=1)
    callbacks.append(train.ModelCheckpoint("net", directory="points", config=each_step))
train.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 1e-3, 0.9)).train(
    1_000_000, one, callbacks=callbacks
)
"""
CAUSES = ("computing", "reading_data", "saving", "network", "host_load")


def status_of(port: int, prefix: list[str]) -> dict:
    program = ROOT / "build/apps/muster/muster"
    told = subprocess.run(
        [*prefix, str(program), "status", "--json", "--scheduler", f"{host_of(prefix)}:{port}"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return json.loads(told.stdout)
    except ValueError:
        return {}


def host_of(prefix: list[str]) -> str:
    return "10.77.0.1" if prefix else "127.0.0.1"


@contextlib.contextmanager
def hosts(cause: str):
    """A command prefix for all but the slow rank, and one for that."""
    if cause != "network":
        yield [], []
        return
    from hosts import two_hosts_joined

    with two_hosts_joined() as (here, there):
        limit = "qdisc add dev cable root tbf rate 30mbit burst 16kb limit 4mb"
        subprocess.run([*there, "tc", *limit.split()], check=True)
        yield here, there


@contextlib.contextmanager
def job(cause: str, folder: Path):
    """The port of its scheduler, and how to reach that."""
    port = free_port()
    cores = sorted(os.sched_getaffinity(0))
    with hosts(cause) as (here, there), contextlib.ExitStack() as stack:
        common = {
            **os.environ,
            "MS_SCHED_HOST": host_of(here),
            "MS_SCHED_PORT": str(port),
            "MS_WORKER_NUM": str(WORKERS),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT / "build/python"),
            "CAUSE": cause,
        }

        def start(command: list[str], log: str, **variables: str) -> None:
            with (folder / log).open("wb") as file:
                process = subprocess.Popen(
                    command, cwd=folder, env={**common, **variables}, stdout=file, stderr=subprocess.STDOUT
                )
            stack.callback(process.wait)
            stack.callback(process.kill)

        pinned = ["taskset", "-c", str(cores[-1])] if cause == "host_load" else []
        others = ["taskset", "-c", str(cores[0])] if cause == "host_load" else []
        python = [sys.executable, "-c", SCRIPT]
        start([*here, *others, *python], "scheduler.log", MS_ROLE="MS_SCHED")
        for rank in range(WORKERS):
            prefix = [*there, *pinned] if rank == SLOW else [*here, *others]
            start([*prefix, *python], f"{rank}.log", MS_ROLE="MS_WORKER", MS_NODE_ID=str(rank))
        if cause == "host_load":
            for load in range(4):
                start([*pinned, sys.executable, "-c", "while True: pass"], f"load-{load}.log")
        yield port, here


def run(cause: str, seconds: float) -> tuple[str, int, float]:
    """What was named first, "1: saving"; steps until then since the third; seconds since then."""
    with tempfile.TemporaryDirectory() as name, job(cause, Path(name)) as (port, prefix):
        begin, first = time.monotonic(), 0
        until = begin + seconds + 60
        while time.monotonic() < until:
            status = status_of(port, prefix)
            steps = [node["step"] for node in status.get("nodes", []) if node["step"] is not None]
            if not first and steps and max(steps) >= 3:
                begin, first = time.monotonic(), max(steps)
                until = begin + seconds
            if slow := status.get("slow"):
                return f"{slow[0]['rank']}: {slow[0]['cause']}", max(steps) - first, time.monotonic() - begin
            time.sleep(0.3)
        if not first:
            for log in sorted(Path(name).glob("*.log")):
                print(log.name, log.read_text()[-600:], file=sys.stderr)
        return "none", 0, time.monotonic() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--causes", default=",".join((*CAUSES, "none")))
    chosen = parser.parse_args()
    wrong = 0
    for cause in chosen.causes.split(","):
        right, told = 0, []
        for _ in range(chosen.times):
            named, steps, seconds = run(cause, chosen.seconds)
            is_right = named == ("none" if cause == "none" else f"{SLOW}: {cause}")
            right += is_right
            told.append(f"{named} ({steps} steps, {seconds:.1f} s)")
        wrong += chosen.times - right
        print(f"{cause:<13} {right} of {chosen.times}: {'; '.join(told)}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
