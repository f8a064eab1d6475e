#!/usr/bin/env python3
"""Pictures decoded, cropped and flipped by Python (PIL, numpy) in two worker processes.

Muster beside PyTorch's DataLoader and MindSpore, in turn, on the same cores:

    MUSTER_PEER_MINDSPORE=/path/to/python MUSTER_PEER_TORCH=/path/to/python ./dev bench rows

Each Python needs Pillow; Muster's, too (or MUSTER_PEER_PILLOW names one that has it and numpy). All run the
class Pictures of peers/python_rows.py and go through all batches of three passes. The first warms up, and
its batches are checked: they must have every pixel that the class makes, in order. A figure is the median of
all other passes, of all rounds. What a process costs to start is in it, since each pass starts its own. The
limit is the class alone in two processes that keep nothing and send nothing. Quote ratios, not times.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = ("PyTorch", "MindSpore")
CONTENDERS = (*PEERS, "Muster", "Limit")
DEADLINE_SECONDS = 600


def python_of(contender: str) -> str | None:
    if contender not in PEERS:
        return os.environ.get("MUSTER_PEER_PILLOW", sys.executable)
    return os.environ.get({"PyTorch": "MUSTER_PEER_TORCH", "MindSpore": "MUSTER_PEER_MINDSPORE"}[contender])


def run(contender: str, python: str, row: list[str]) -> list[float] | None:
    environment = dict(os.environ)
    if contender == "Muster":
        environment["PYTHONPATH"] = str(HERE.parent / "build/python")
    ended = subprocess.run(
        [python, str(HERE / "peers" / "python_rows.py"), contender, *row],
        capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False, env=environment,
    )  # fmt: skip
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if ended.returncode != 0 or not lines or not json.loads(lines[-1])["right"]:
        print(f"    {contender} FAILED ({ended.returncode}): {ended.stderr[-800:]}", file=sys.stderr)
        return None
    return json.loads(lines[-1])["seconds"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--sizes", default="256:224:1000,40:32:8000", help="side:cut:pictures of a pass, several by commas"
    )
    options = parser.parse_args()
    there = {name: python for name in CONTENDERS if (python := python_of(name))}
    for name in CONTENDERS:
        if name not in there:
            print(f"{name} is not here: see benchmarks/README.md", file=sys.stderr)
    failed = False
    print("| what | PyTorch | MindSpore | Muster | the class alone | better peer / Muster | load |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for size in options.sizes.split(","):
        side, cut, count = size.split(":")
        values: dict[str, list[float]] = defaultdict(list)
        loads = []
        for _ in range(options.rounds):
            loads.append(os.getloadavg()[0])
            for contender, python in there.items():
                seconds = run(contender, python, [count, side, cut])
                failed = failed or seconds is None
                values[contender] += seconds or []
        medians = {name: statistics.median(found) for name, found in values.items() if found}
        cells = [f"{medians[name] * 1e6:.0f} us" if name in medians else "-" for name in CONTENDERS]
        peers = [medians[name] for name in PEERS if name in medians]
        ratio = f"{min(peers) / medians['Muster']:.2f}" if peers and "Muster" in medians else "-"
        print(f"| a picture of {side} x {side}, {cut} x {cut} of it | {' | '.join(cells)} | {ratio} | "
              f"{min(loads):.1f} to {max(loads):.1f} |", flush=True)  # fmt: skip
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
