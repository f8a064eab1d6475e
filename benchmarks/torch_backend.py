#!/usr/bin/env python3
"""torch.distributed over Muster and over Gloo, in turn: `./dev bench torch`.

Each round runs every row with both backends, one after the other; a figure is the median over the rounds.
Every process has OMP_NUM_THREADS=1. `--rows` chooses among the rows.

    MUSTER_PEER_TORCH=/path/to/python ./dev bench torch --rounds 5
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "peers/torch_backend.py"
PACKAGES = HERE.parent / "build/python"
LONGEST_S = 900
PROGRAM = HERE.parent / "build/apps/muster/muster"
IMPORT = "import torch, torch.distributed, torch.nn"


@dataclass(frozen=True)
class Row:
    name: str
    what: str
    part: str
    ranks: int
    limit: float | None = None  # seconds
    of_alone: float | None = None  # or: so many times what one process takes without a group
    of_gloo: float | None = None  # or: so much of Gloo's time
    over_import: float | None = None  # or: so many seconds over `import torch` in as many processes


ROWS = [
    Row("all_reduce-2", "all_reduce of 1 KiB, 2 ranks", "all_reduce", 2, limit=25e-6),
    Row("all_reduce-8", "the same, 8 ranks", "all_reduce", 8, limit=100e-6),
    Row("ddp-2", "step of the 784x10 net under DDP, 2 ranks", "small", 2, limit=0.8e-3),
    Row("ddp-8", "the same, 8 ranks", "small", 8, limit=5e-3),
    Row("resnet", "ResNet-50 b8 under DDP, 2 ranks, over one process alone", "resnet", 2, of_alone=1.03),
    Row("fsdp", "step of a transformer of 25 M parameters under FSDP2, 4 ranks", "fsdp", 4, of_gloo=0.5),
    Row("start", "start of 8 ranks to the end of the first step", "start", 8, over_import=0.5),
    Row("preload", "the same by torchrun, and by `muster run --preload`", "start", 8, over_import=0.5),
]


@dataclass
class Taken:
    seconds: dict[str, list[float]] = field(default_factory=dict)  # by backend, and "alone", "import"

    def add(self, who: str, value: float) -> None:
        self.seconds.setdefault(who, []).append(value)

    def median(self, who: str) -> float:
        return statistics.median(self.seconds[who])


class JobError(Exception):
    """A rank ended with another exit code than 0."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(arguments: list[str], ranks: int) -> tuple[float, str]:
    """Seconds until the last of `ranks` processes has ended, and what rank 0 printed."""
    common = {"PYTHONPATH": str(PACKAGES), "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"}
    common |= {"MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks)}
    begin = time.perf_counter()
    processes = [
        subprocess.Popen(
            [os.environ["MUSTER_PEER_TORCH"], *arguments],
            env=os.environ | common | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        printed = [process.communicate(timeout=LONGEST_S)[0] for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    taken = time.perf_counter() - begin
    if any(process.returncode != 0 for process in processes):
        raise JobError(
            f"{arguments} on {ranks} ranks ended with {[process.returncode for process in processes]}"
        )
    return taken, printed[0]


def launch(backend: str, row: Row) -> float:
    """Seconds of a job that torchrun starts for Gloo, and for Muster the launcher, which imports once."""
    python = os.environ["MUSTER_PEER_TORCH"]
    with tempfile.TemporaryDirectory() as folder:
        if backend == "gloo":
            port = ("--master-port", str(free_port()))
            launcher = [
                python,
                "-m",
                "torch.distributed.run",
                "--nproc-per-node",
                str(row.ranks),
                *port,
                SCRIPT,
            ]
        else:
            options = ("--preload", "torch,torch._dynamo", "--log-dir", folder)
            launcher = [PROGRAM, "run", "-n", str(row.ranks), "--preset", "pytorch", *options, python, SCRIPT]
        begin = time.perf_counter()
        done = subprocess.run(
            [*launcher, backend, row.part],
            env=os.environ | {"PYTHONPATH": str(PACKAGES), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            timeout=LONGEST_S,
            check=False,
        )
    if done.returncode != 0:
        raise JobError(f"{' '.join(map(str, launcher))} ended with {done.returncode}")
    return time.perf_counter() - begin


def measure(row: Row, taken: Taken) -> None:
    if row.of_alone is not None:
        taken.add("alone", json.loads(run([str(SCRIPT), "alone", row.part], 1)[1])["seconds"])
    if row.over_import is not None:
        taken.add("import", run(["-c", IMPORT], row.ranks)[0])
    taken.add("gloo", again(lambda: seconds_of("gloo", row)))
    taken.add("muster", seconds_of("muster", row))


def seconds_of(backend: str, row: Row) -> float:
    if row.name == "preload":
        return launch(backend, row)
    whole, printed = run([str(SCRIPT), backend, row.part], row.ranks)
    return whole if row.part == "start" else json.loads(printed.splitlines()[-1])["seconds"]


def again(measured: Callable[[], float]) -> float:
    """Of a peer: one of eight ranks over Gloo ends by SIGABRT now and then, behind its last line."""
    for _ in range(2):
        try:
            return measured()
        except JobError as failed:
            print(f"measured again: {failed}", file=sys.stderr)
    return measured()


def text(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def cells(row: Row, taken: Taken) -> list[str]:
    gloo, ours = taken.median("gloo"), taken.median("muster")
    if row.of_alone is not None:
        alone = taken.median("alone")
        shown = [f"{gloo / alone:.3f}", f"{ours / alone:.3f} ({text(alone)} alone)", f"{row.of_alone}"]
        reached = ours / alone <= row.of_alone
    elif row.over_import is not None:
        limit = taken.median("import") + row.over_import
        shown = [text(gloo), text(ours), f"{text(limit)} (import torch + {row.over_import} s)"]
        reached = ours <= limit
    elif row.of_gloo is not None:
        shown, reached = [text(gloo), text(ours), f"{row.of_gloo} of Gloo"], ours <= row.of_gloo * gloo
    else:
        shown, reached = [text(gloo), text(ours), text(row.limit)], ours <= row.limit
    values = taken.seconds["muster"]
    return [row.what, *shown, "yes" if reached else "NO", f"{text(min(values))} to {text(max(values))}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", default=",".join(row.name for row in ROWS), help="comma-separated")
    flags = parser.parse_args()
    if "MUSTER_PEER_TORCH" not in os.environ:
        sys.exit("MUSTER_PEER_TORCH names no Python that has torch: nothing is measured")
    chosen = flags.rows.split(",")
    names = [row.name for row in ROWS]
    if unknown := set(chosen) - set(names):
        sys.exit(f"no row is called {', '.join(sorted(unknown))}: there are {', '.join(names)}")
    rows = [row for row in ROWS if row.name in chosen]
    taken = {row.name: Taken() for row in rows}
    try:
        for _ in range(flags.rounds):
            for row in rows:
                measure(row, taken[row.name])
    except JobError as failed:
        sys.exit(str(failed))
    print(f"| median of {flags.rounds} rounds | Gloo | Muster | target | reached | Muster, least and most |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(cells(row, taken[row.name])) + " |")


if __name__ == "__main__":
    main()
