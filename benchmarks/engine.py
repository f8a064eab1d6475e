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


def run(contender: str, row: Row, arguments: Sequence[str]) -> dict | None:
    print(f"  {contender:10} {row.title}", file=sys.stderr, flush=True)
    ended = subprocess.run(
        arguments,
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
    parser.add_argument("--parts", default="nets,pair", help="nets, pair: which rows")
    options = parser.parse_args()
    parts = options.parts.split(",")
    contenders = [name for name in ("MindSpore", "Torch") if os.environ.get(f"MUSTER_PEER_{name.upper()}")]
    contenders.append("Muster")
    wrong = False
    print("| what | MindSpore | PyTorch | Muster | PyTorch / Muster | target | reached |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in ROWS:
        if "nets" not in parts or options.net not in (None, row.net):
            continue
        values = defaultdict(list)
        for _ in range(options.rounds):
            for contender in contenders:
                if contender == "MindSpore" and row.dtype != "float32":
                    continue  # its CPU kernels have no bfloat16
                result = run(contender, row, command(contender, row))
                wrong = wrong or result is None
                for key in ("seconds", "peak_bytes", "compile_seconds"):
                    found = (result or {}).get(key)
                    if found is not None:
                        values[contender, key] += found if isinstance(found, list) else [found]
        print(line(row, values))
        print(memory_line(row, values), flush=True)
    if "pair" in parts and options.net in (None, TOGETHER.net):
        paired = [name for name in contenders if name != "MindSpore"]
        lines = pair_lines(paired, options.rounds)
        wrong = wrong or lines is None
        print("\n".join(lines or []))
    return 1 if wrong else 0


# Two workers with a core and a batch of their own.
TOGETHER = Row("ResNet-50, batch 8 each, float32, 1 thread each", "resnet50", 8, 1, 4)
TOGETHER_TARGET = 1.04


def pair_command(contender: str) -> list[str]:
    if contender == "Muster":
        return [*command(contender, TOGETHER), "--workers", "2", "--compare"]
    torchrun = Path(os.environ["MUSTER_PEER_TORCH"]).with_name("torchrun")
    program = FOLDER / "peers" / "torch_pair.py"
    values = (TOGETHER.net, TOGETHER.batch, TOGETHER.steps, "channels_last")
    return [str(torchrun), "--nproc_per_node", "2", str(program), *map(str, values)]


def pair_ratios(result: dict) -> dict[str, list[float]]:
    """Of each turn: what lies beside each other in time saw the same machine."""
    together, alone = result["seconds"], result["alone_seconds"]
    workers = len(alone) // len(together)
    means = [statistics.mean(alone[at : at + workers]) for at in range(0, len(alone), workers)]
    return {
        "over one alone": [ours / one for ours, one in zip(together, means, strict=True)],
        "over two that do not talk": [
            ours / two for ours, two in zip(together, result["apart_seconds"], strict=True)
        ],
    }


def pair_lines(contenders: Sequence[str], rounds: int) -> list[str] | None:
    """Two workers beside one, and beside two that do not talk; nothing where a run failed."""
    ratios = defaultdict(list)
    for _ in range(rounds):
        for contender in contenders:
            result = run(contender, TOGETHER, pair_command(contender))
            if result is None:
                return None
            for what, values in pair_ratios(result).items():
                ratios[what, contender] += values
    lines = []
    for what, target in (("over one alone", TOGETHER_TARGET), ("over two that do not talk", None)):
        medians = {name: statistics.median(ratios[what, name]) for name in contenders}
        figures = [f"{medians[name]:.3f}" if name in medians else "-" for name in ("Torch", "Muster")]
        reached = "" if target is None else "yes" if medians["Muster"] <= target else "NO"
        wanted = "" if target is None else f"<= {target}"
        cells = [f"{TOGETHER.title}: 2 workers {what}", "-", *figures, "", wanted, reached]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


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
