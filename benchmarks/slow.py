"""A rank that is made slow in the middle of a real job, in each of five ways: whether the job names it, with
the cause, and after how many steps. And jobs in which none is slow.

./dev bench slow [--times 6] [--causes saving,...,none,nature,overload] [--steps 2,50,1000] [--seconds 40]

Four workers on this host, or two where other processes take a core: each has one of its own. The network
takes root, and two network namespaces. In `nature` steps differ by chance, in `overload` four processes want
each core.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from processes import free_port

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))
SLOW = 1
SCRIPT = """
import os, random, time
import numpy as np
import muster as ms
from muster import dataset as ds, nn, train

ms.init()
ms.set_seed(1)
cause, step_s, onset = os.environ["CAUSE"], float(os.environ["STEP_S"]), int(os.environ["ONSET"])
rank = ms.get_rank()
random.seed(rank)
done = 0

def is_slow(by):
    return rank == 1 and cause == by and done >= onset

def read(x):
    usual = random.uniform(0, 1.5) if cause == "nature" else 0.4
    time.sleep(step_s * (1.2 if is_slow("reading_data") else usual))
    return x

inputs = np.random.default_rng(rank).normal(size=(16, 256)).astype(np.float32)
labels = (inputs[:, 0] > 0).astype(np.int32)
x = ms.Tensor(inputs)
one = ds.NumpySlicesDataset((inputs, labels), ["x", "y"], shuffle=False).batch(16).map(read, "x")
net = nn.SequentialCell(nn.Dense(256, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 10))
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
model = train.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 1e-3, 0.9))

def compute(times):
    begin = time.process_time()
    for _ in range(times):
        model.predict(x)
    return (time.process_time() - begin) / times

compute(5)
often = max(1, round(0.2 * step_s / compute(30)))

class Works(train.Callback):
    def on_train_step_end(self, context):
        global done
        compute(often * (5 if is_slow("computing") else 1))
        until = time.monotonic() + 0.8 * step_s
        while is_slow("saving") and time.monotonic() < until:
            ms.save_checkpoint(net, "points.ckpt")
        done += 1
        if rank == 0:
            os.pwrite(steps, b"%08d" % done, 0)

steps = os.open("steps", os.O_WRONLY | os.O_CREAT)
model.train(1_000_000, one, callbacks=[Works()])
"""
HOG = "while True: pass"
CAUSES = ("computing", "reading_data", "saving", "network", "host_load")
NONE = ("none", "nature", "overload")


def workers_of(cause: str) -> int:
    return 2 if cause == "host_load" else 4


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
        yield here, there


class Job:
    """A job of ranks that work on, and what makes one of them slow from outside."""

    def __init__(
        self, cause: str, step_s: float, onset: int, folder: Path, stack: contextlib.ExitStack
    ) -> None:
        self.cause, self.step_s, self.onset, self.folder, self.stack = cause, step_s, onset, folder, stack
        self.here, self.there = stack.enter_context(hosts(cause))
        self.cores = sorted(os.sched_getaffinity(0))
        self.variables = {
            **os.environ,
            "MS_SCHED_HOST": host_of(self.here),
            "MS_SCHED_PORT": str(free_port()),
            "MS_WORKER_NUM": str(workers_of(cause)),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT / "build/python"),
            "CAUSE": cause,
            "STEP_S": str(step_s),
            "ONSET": str(onset),
        }
        if cause == "overload":
            self.start_load([], 4 * len(self.cores) - workers_of(cause))
        python = [sys.executable, "-c", SCRIPT]
        self.start([*self.here, *self.core(0), *python], "scheduler.log", MS_ROLE="MS_SCHED")
        for rank in range(workers_of(cause)):
            prefix = [*self.there, *self.core(-1)] if rank == SLOW else [*self.here, *self.core(0)]
            self.start([*prefix, *python], f"{rank}.log", MS_ROLE="MS_WORKER", MS_NODE_ID=str(rank))

    def core(self, which: int) -> list[str]:
        return ["taskset", "-c", str(self.cores[which])] if self.cause == "host_load" else []

    def start(self, command: list[str], log: str, **variables: str) -> None:
        with (self.folder / log).open("wb") as file:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**self.variables, **variables},
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)

    def start_load(self, prefix: list[str], count: int) -> None:
        for load in range(count):
            self.start([*prefix, sys.executable, "-c", HOG], f"load-{load}.log")

    def make_slow(self) -> None:
        if self.cause == "host_load":
            self.start_load(self.core(-1), 4)
        if self.cause == "network":
            rate = "10mbit" if self.step_s >= 1 else "30mbit"
            limit = f"qdisc add dev cable root tbf rate {rate} burst 16kb limit 4mb"
            subprocess.run([*self.there, "tc", *limit.split()], check=True)

    def steps(self) -> int:
        try:
            return int((self.folder / "steps").read_bytes() or b"0")
        except FileNotFoundError:
            return 0

    def named(self) -> str:
        """Who was named first, and why: "1: its computing"."""
        told = re.search(
            r"rank (\d+) holds up .*?: (.*?)(?: takes|; | is slow)",
            (self.folder / "scheduler.log").read_text(),
        )
        return f"{told[1]}: {told[2]}" if told else "none"


WORDS = {
    "computing": "its computing",
    "reading_data": "reading its data",
    "saving": "saving",
    "network": "its network",
    "host_load": "other processes have the cores of its host",
}


def run(cause: str, step_s: float, seconds: float) -> tuple[str, int, float]:
    """What was named; steps and seconds from when the rank became slow, or from the start where none does."""
    onset = 0 if cause in NONE else max(30, min(200, round(5 / step_s)))
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        job = Job(cause, step_s, onset, Path(name), stack)
        begin = time.monotonic()
        while job.steps() < max(onset, 1) and time.monotonic() < begin + 120 and job.named() == "none":
            time.sleep(step_s / 10)
        if job.steps() < max(onset, 1) and job.named() == "none":
            for log in sorted(Path(name).glob("*.log")):
                print(log.name, log.read_text()[-600:], file=sys.stderr)
        begin, first = time.monotonic(), job.steps()
        job.make_slow()
        while job.named() == "none" and time.monotonic() < begin + seconds:
            time.sleep(0.001)
        return job.named(), job.steps() - first, time.monotonic() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--steps", default="2,50,1000", help="milliseconds of a step")
    parser.add_argument("--causes", default=",".join((*CAUSES, "none", "nature")))
    chosen = parser.parse_args()
    wrong = 0
    for step_ms in chosen.steps.split(","):
        for cause in chosen.causes.split(","):
            right, told = 0, []
            for _ in range(chosen.times):
                named, steps, seconds = run(cause, float(step_ms) / 1000, chosen.seconds)
                right += named == (f"{SLOW}: {WORDS[cause]}" if cause in WORDS else "none")
                told.append(f"{named} ({steps} steps, {seconds:.1f} s)")
            wrong += chosen.times - right
            print(f"{step_ms:>4} ms {cause:<13} {right} of {chosen.times}: {'; '.join(told)}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
