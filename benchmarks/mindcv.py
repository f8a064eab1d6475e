#!/usr/bin/env python3
"""Training steps of mindcv's models, unmodified: Muster beside MindSpore, in turn, on the same cores.

    MUSTER_PEER_MINDSPORE=/path/to/python ./dev bench mindcv [--models resnet18,vit_b_32_224]

Models are those of tests/peers/mindcv/models.txt; mindcv is that of MindSpore's environment. The loss of one
batch, learnt again and again, must fall before a figure counts. Quote ratios, not times.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from engine import Row, run, text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "peers"))

from test_mindcv import packages  # noqa: E402

EACH, MEDIAN = 0.6, 0.4  # targets: Muster's time over MindSpore's
CONTENDERS = ("MindSpore", "Muster")
KINDS = ("seconds", "processor_seconds")  # the second says more where others use the machine, too


def sides() -> dict[str, int]:
    """Each model with the side of its pictures."""
    listed = (ROOT / "tests" / "peers" / "mindcv" / "models.txt").read_text().splitlines()
    pairs = [line.split() for line in listed if not line.startswith("#")]
    return {name: int(side) for name, side in pairs}


def command(contender: str, row: Row, side: int) -> list[str]:
    program = str(ROOT / "benchmarks" / "peers" / "mindcv_steps.py")
    values = [program, row.net, *map(str, (side, row.batch, row.threads, row.steps))]
    if contender == "MindSpore":
        return ["env", "PYTHONPATH=", os.environ["MUSTER_PEER_MINDSPORE"], *values]
    paths = (ROOT / "build" / "python", ROOT / "build" / "python_compat", packages())
    return ["env", f"PYTHONPATH={':'.join(map(str, paths))}", sys.executable, *values]


def measured(row: Row, side: int, rounds: int) -> dict[tuple[str, str], float]:
    """The median step of each contender, by the clock and of the processors; one that failed is left out."""
    found = defaultdict(list)
    for _ in range(rounds):
        for contender in CONTENDERS:
            result = run(contender, row, command(contender, row, side)) or {}
            for kind in KINDS:
                found[contender, kind] += result.get(kind, [])
    return {key: statistics.median(values) for key, values in found.items() if values}


def ratio_of(medians: dict[tuple[str, str], float], kind: str) -> float | None:
    theirs, ours = (medians.get((contender, kind)) for contender in CONTENDERS)
    return ours / theirs if ours and theirs else None


def line(name: str, medians: dict[tuple[str, str], float]) -> str:
    figures = [text(medians.get((contender, "seconds"))) for contender in CONTENDERS]
    ratios = [ratio_of(medians, kind) for kind in KINDS]
    reached = "" if ratios[0] is None else "yes" if ratios[0] <= EACH else "NO"
    shown = ["-" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
    return f"| {' | '.join([name, *figures, *shown, f'<= {EACH}', reached])} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", help="names with commas between; all without")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if "MUSTER_PEER_MINDSPORE" not in os.environ:
        parser.error("MUSTER_PEER_MINDSPORE is not set: name a Python that has mindspore and mindcv")
    known = sides()
    names = options.models.split(",") if options.models else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"--models: no model {unknown[0]!r}: tests/peers/mindcv/models.txt lists them")
    ratios = []
    print("| model | MindSpore | Muster | Muster / MindSpore | of processor time | target | reached |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in names:
        row = Row(f"{name}, batch {options.batch}", name, options.batch, options.threads, options.steps)
        medians = measured(row, known[name], options.rounds)
        ratio = ratio_of(medians, "seconds")
        ratios += [] if ratio is None else [ratio]
        print(line(name, medians), flush=True)
    if ratios:
        print(f"median of {len(ratios)} models: {statistics.median(ratios):.2f}, wanted <= {MEDIAN}")
    return 0 if len(ratios) == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
