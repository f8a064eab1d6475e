#!/usr/bin/env python3
"""Training steps on images: Muster beside PyTorch and MindSpore, in turn, on the same cores.

    MUSTER_PEER_MINDSPORE=/path/to/python MUSTER_PEER_TORCH=/path/to/python ./dev bench engine

Each program checks its own answer (the loss of one batch, learnt again and again, must fall) before its
figures count. A step is the median over all rounds; quote ratios, not times.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
DEADLINE_SECONDS = 900


@dataclass(frozen=True)
class Row:
    """One net with its settings."""

    title: str
    net: str
    batch: int
    threads: int
    steps: int
    torch: tuple[str, ...] = ()
    target_seconds: float = 0.0
    dtype: str = "float32"


ROWS = (
    Row("ResNet-50, batch 16, float32, 2 threads", "resnet50", 16, 2, 4, ("channels_last",), 1.9),
    Row(
        "ResNet-50, batch 16, bfloat16, 2 threads",
        "resnet50",
        16,
        2,
        4,
        ("channels_last", "bfloat16"),
        1.0,
        "bfloat16",
    ),
    Row("LeNet-5, batch 32, float32, 1 thread", "lenet", 32, 1, 500, (), 0.9e-3),
)


def command(contender: str, row: Row) -> list[str]:
    values = [str(row.batch), str(row.threads), str(row.steps)]
    if contender == "Muster":
        program = FOLDER.parent / "build" / "benchmarks" / "bench_engine"
        names = ("--batch", "--threads", "--steps")
        return [
            str(program),
            "--net",
            row.net,
            "--dtype",
            row.dtype,
            *(part for pair in zip(names, values, strict=True) for part in pair),
        ]
    python = os.environ[f"MUSTER_PEER_{contender.upper()}"]
    settings = row.torch if contender == "Torch" else ()
    return [python, str(FOLDER / "peers" / f"{contender.lower()}_engine.py"), row.net, *values, *settings]


def run(contender: str, row: Row, more: Sequence[str] = ()) -> dict | None:
    print(f"  {contender:10} {row.title}", file=sys.stderr, flush=True)
    ended = subprocess.run(
        [*command(contender, row), *more],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if ended.returncode != 0 or not lines or not json.loads(lines[-1])["right"]:
        print(f"    FAILED ({ended.returncode}): {ended.stderr[-500:]}", file=sys.stderr)
        return None
    return json.loads(lines[-1])


def text(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--net", choices=[row.net for row in ROWS], help="only this one")
    options = parser.parse_args()
    contenders = [name for name in ("MindSpore", "Torch") if os.environ.get(f"MUSTER_PEER_{name.upper()}")]
    contenders.append("Muster")
    wrong = False
    print("| what | MindSpore | PyTorch | Muster | PyTorch / Muster | target | reached |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in ROWS:
        if options.net not in (None, row.net):
            continue
        values = defaultdict(list)
        for _ in range(options.rounds):
            for contender in contenders:
                if contender == "MindSpore" and row.dtype != "float32":
                    continue  # its CPU kernels have no bfloat16
                result = run(contender, row)
                wrong = wrong or result is None
                for key in ("seconds", "peak_bytes", "compile_seconds"):
                    found = (result or {}).get(key)
                    if found is not None:
                        values[contender, key] += found if isinstance(found, list) else [found]
        print(line(row, values))
        print(memory_line(row, values), flush=True)
    if options.net in (None, TOGETHER.net):
        together = together_line(options.rounds)
        wrong = wrong or together is None
        print(together or "")
    return 1 if wrong else 0


# One worker alone, and two that train together, each with a core and a batch of its own.
TOGETHER = Row("ResNet-50, batch 8 each, float32, 1 thread each", "resnet50", 8, 1, 4)
TOGETHER_TARGET = 1.04


def together_line(rounds: int) -> str | None:
    """Two workers beside one, in turn; nothing where a run failed."""
    seconds = {1: [], 2: []}
    for _ in range(rounds):
        for workers, taken in seconds.items():
            result = run("Muster", TOGETHER, ["--workers", str(workers)])
            if result is None:
                return None
            taken += result["seconds"]
    alone, both = (statistics.median(taken) for taken in seconds.values())
    reached = "yes" if both <= TOGETHER_TARGET * alone else "NO"
    what = f"{TOGETHER.title}: 2 workers over one alone"
    figures = f"{text(both)} over {text(alone)}: {both / alone:.3f}"
    return f"| {what} | - | - | {figures} | | <= {TOGETHER_TARGET} | {reached} |"


def line(row: Row, values: dict) -> str:
    medians = {
        name: statistics.median(values[name, "seconds"]) for name, key in list(values) if key == "seconds"
    }
    ours = medians.get("Muster")
    ratio = f"{medians['Torch'] / ours:.2f}" if ours and "Torch" in medians else ""
    reached = "" if ours is None else "yes" if ours <= row.target_seconds else "NO"
    cells = [row.title, *(text(medians.get(name)) for name in ("MindSpore", "Torch", "Muster"))]
    return f"| {' | '.join(cells)} | {ratio} | <= {text(row.target_seconds)} | {reached} |"


def memory_line(row: Row, values: dict) -> str:
    peaks = [values.get((name, "peak_bytes")) for name in ("MindSpore", "Torch", "Muster")]
    cells = [f"{max(peak) / 2**30:.2f} GiB" if peak else "-" for peak in peaks]
    compiled = values.get(("Muster", "compile_seconds"))
    note = f"compiled in {text(statistics.median(compiled))}" if compiled else ""
    return f"| {row.net}: peak memory | {' | '.join(cells)} | | {note} | |"


if __name__ == "__main__":
    sys.exit(main())
