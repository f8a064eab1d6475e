"""What it costs to be looked at: each row with it and without it in turn, medians.

./dev bench observe [--rounds 5] [--nodes 1000] [--rows lenet,dense,profiled-lenet,...]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cluster import CROWD, Process, crowd, environment, free_port, scheduler

ROOT = Path(__file__).resolve().parents[1]
MUSTER = str(Path(os.environ.get("MUSTER_BUILD", ROOT / "build")) / "apps/muster/muster")

# One training. Prints the median time of a step, callbacks included, in microseconds.
TRAINING = """
import statistics, sys, time
import numpy as np
import muster
from muster import nn, train, dataset as ds

net_name, steps, looks = sys.argv[1], int(sys.argv[2]), sys.argv[3]
muster.init()
muster.set_seed(1)
if net_name == "lenet":
    shape = (32, 1, 28, 28)
    net = nn.SequentialCell(
        nn.Conv2d(1, 6, 5, pad_mode="same"), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10),
    )
elif net_name == "resnet50":
    from resnet50_cifar10 import resnet50

    shape = (8, 3, 64, 64)
    net = resnet50(num_classes=10)
else:
    shape = (32, 784)
    net = nn.Dense(784, 10)
random = np.random.default_rng(1)
inputs = random.normal(size=(shape[0] * 50, *shape[1:])).astype(np.float32)
labels = random.integers(0, 10, size=len(inputs)).astype(np.int32)
data = ds.NumpySlicesDataset((inputs, labels), ["x", "y"], shuffle=False).batch(shape[0])

class Times(train.Callback):
    def __init__(self):
        super().__init__()
        self.ends = []

    def on_train_step_end(self, run_context):
        self.ends.append(time.perf_counter())

times = Times()
lookers = {
    "off": [],
    "board": [train.TensorBoard("board")],
    "profiler": [train.Profiler(start=steps // 5, stop=steps, folder="profile")],
}
callbacks = [times, *lookers[looks]]
model = train.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 1e-3, 0.9))
model.train(steps // 50, data, callbacks=callbacks)
late = times.ends[len(times.ends) // 5:]
print("median", 1e6 * statistics.median(b - a for a, b in zip(late, late[1:])), flush=True)
"""

# Two workers reduce four numbers again and again.
CALLS = """
import statistics, time
import numpy as np
import muster
from muster import ops

muster.init()
value = muster.Tensor(np.ones(4, np.float32))
times = []
for _ in range(4000):
    begin = time.perf_counter()
    ops.all_reduce(value)
    times.append(time.perf_counter() - begin)
if muster.get_rank() == 0:
    print("median", 1e6 * statistics.median(times[1000:]), flush=True)
"""


def script(folder: Path, text: str) -> Path:
    (folder / "train.py").write_text(text)
    return folder / "train.py"


def median_of(words: list[str], folder: Path, **variables: str) -> float:
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # `muster run` looks for Python there
    modules = f"{ROOT / 'build/python'}:{ROOT / 'examples'}"
    common = {"PATH": programs, "PYTHONPATH": modules, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **common, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        if "median " in line:
            return float(line.split("median ")[1])
    sys.exit(done.stdout + done.stderr)


def print_ratio(what: str, pairs: list[tuple[float, float]], target: float | None) -> None:
    on, off = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    reached = "" if target is None else f", target {target}: {'yes' if ratio <= target else 'NO'}"
    print(f"| {what} | {on:.1f} us over {off:.1f} us: {ratio:.3f}{reached} |", flush=True)


def steps(net: str, count: int, rounds: int, target: float) -> None:
    """Everything on: the folder of a run, its recorder, the page, JSON and TensorBoard of each step."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = str(script(folder, TRAINING))
        looked_at = [MUSTER, "run", "-n", "1", "--dashboard", "--metrics-file", "steps.jsonl", train]
        pairs = []
        for _ in range(rounds):
            on = median_of([*looked_at, net, str(count), "board"], folder)
            pairs.append((on, median_of([sys.executable, train, net, str(count), "off"], folder)))
    print_ratio(f"step of {net} with everything on, over off", pairs, target)


def profiled(net: str, count: int, rounds: int, target: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [sys.executable, str(script(folder, TRAINING)), net, str(count)]
        pairs = [
            (median_of([*words, "profiler"], folder), median_of([*words, "off"], folder))
            for _ in range(rounds)
        ]
    print_ratio(f"step of {net} with the profiler, over off", pairs, target)


def recorder(rounds: int) -> None:
    def once(folder: Path, kept: bool) -> float:
        port = free_port()
        variables = environment(port, 2, MUSTER_RUN_FOLDER=str(folder) if kept else "")
        words = [sys.executable, str(script(folder, CALLS))]
        with contextlib.ExitStack() as stack:
            others = [Process(words, {**variables, "MS_ROLE": "MS_SCHED"})]
            others.append(Process(words, {**variables, "MS_ROLE": "MS_WORKER", "MS_NODE_ID": "1"}))
            for other in others:
                stack.callback(other.end)
            return median_of(words, folder, **variables, MS_ROLE="MS_WORKER", MS_NODE_ID="0")

    with tempfile.TemporaryDirectory() as name:
        pairs = [(once(Path(name), True), once(Path(name), False)) for _ in range(rounds)]
    print_ratio("all_reduce of 16 bytes, two workers, flight recorder on over off", pairs, None)


def scalars(rounds: int) -> None:
    sys.path.insert(0, str(ROOT / "build/python"))
    from muster import train

    times = []
    with tempfile.TemporaryDirectory() as name, train.SummaryWriter(name) as writer:
        for step in range(20 * rounds):
            begin = time.perf_counter()
            for number in range(1000):
                writer.add_scalar(f"value/{number}", 0.5, step)
            times.append(time.perf_counter() - begin)
    median = 1e3 * statistics.median(times)
    print(f"| TensorBoard: 1,000 scalars of a step appended | {median:.2f} ms, target 1 ms |", flush=True)


def watched_scheduler(count: int, seconds: int) -> None:
    """A thousand nodes that beat twice a second with their numbers, and five pages."""
    if not Path(CROWD).exists():
        sys.exit(f"{CROWD} is not built: ./dev build cluster_crowd cluster_probe")
    with contextlib.ExitStack() as stack:
        port = free_port()
        serving = scheduler(stack, port, count)
        nodes = crowd(stack, "nodes", port, seconds + 10, "--count", count, "--worker-num", count)
        nodes.wait_for(r"formed ([\d.]+)")
        for _ in range(5):
            words = [MUSTER, "dashboard", "--scheduler", f"127.0.0.1:{port}"]
            page = Process(words, environment(port, count))
            stack.callback(page.end)
            page.wait_for("http://")
        time.sleep(2)
        before, begin = serving.cpu_seconds(), time.monotonic()
        time.sleep(seconds)
        share = (serving.cpu_seconds() - before) / (time.monotonic() - begin)
        memory = serving.memory_mib()
    print(f"| {count} ranks reporting, five pages: the scheduler | {share:.1%} of a core, target 10 % |")
    print(f"| and its peak memory | {memory:.1f} MiB, target 64 MiB |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument(
        "--rows", default="lenet,dense,profiled-lenet,profiled-resnet50,recorder,scalars,scheduler"
    )
    chosen = parser.parse_args()
    rows = {
        "lenet": lambda: steps("lenet", 1500, chosen.rounds, 1.01),
        "dense": lambda: steps("784x10", 10_000, chosen.rounds, 1.05),
        "profiled-lenet": lambda: profiled("lenet", 1500, chosen.rounds, 1.10),
        "profiled-resnet50": lambda: profiled("resnet50", 50, chosen.rounds, 1.02),
        "recorder": lambda: recorder(chosen.rounds),
        "scalars": lambda: scalars(chosen.rounds),
        "scheduler": lambda: watched_scheduler(chosen.nodes, chosen.seconds),
    }
    print(f"load of this machine: {json.dumps(os.getloadavg())}")
    for name in chosen.rows.split(","):
        rows[name]()


if __name__ == "__main__":
    main()
