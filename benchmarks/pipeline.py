#!/usr/bin/env python3
"""How far the stages of a placed network overlap: a net of equal layers, divided over two workers.

./dev bench pipeline [--rounds 5] [--width 512] [--steps 20]

Whole and in micro-batches, in one process and over two workers, one thread each, in turn. All have to print
the losses of one process bit for bit. With m micro-batches over s equal stages a step cannot be shorter than
(m + s - 1) / (m s) of what one process takes for the same micro-batches: the first stage begins alone, the
last one ends alone.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

from contenders import WrongAnswerError
from processes import Command, run_together

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
STAGES, MICRO_BATCHES = 2, (1, 4)


def least_share(micro_batches: int, stages: int) -> float:
    """Of the time of one process: what is left where equal stages work side by side."""
    return (micro_batches + stages - 1) / (micro_batches * stages)


def answer(output: str, workers: int, steps: int) -> tuple[float, list[str]]:
    """Median seconds of a step, and the losses, of worker 0; all workers have to print the same ones."""
    losses = [re.findall(rf"rank {rank} loss (\S+)", output) for rank in range(workers)]
    if any(each != losses[0] or len(each) != steps for each in losses):
        raise WrongAnswerError(f"the workers do not agree on {steps} losses:\n{output[-4000:]}")
    return float(re.findall(r"rank 0 median_step_seconds (\S+)", output)[0]), losses[0]


def run(workers: int, micro_batches: int, options: argparse.Namespace) -> tuple[float, list[str]]:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # `muster run` takes its python3
        "PYTHONPATH": str(BUILD / "python"),
        "OMP_NUM_THREADS": "1",
        "WIDTH": str(options.width),
        "STEPS": str(options.steps),
        "MICRO_BATCHES": str(micro_batches),
    }
    program = [str(BUILD / "apps/muster/muster"), "run", "-n", str(workers)]
    command = [*program, str(ROOT / "benchmarks/pipeline_net.py")]
    with tempfile.TemporaryDirectory() as logs:
        [ended] = run_together([Command("job", command, environment)], Path(logs))
    if ended.exit_code != 0:
        raise WrongAnswerError(f"the job of {workers} workers failed:\n{ended.output[-4000:]}")
    return answer(ended.output, workers, options.steps)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--width", type=int, default=512, help="neurons of each of the eight layers")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:STAGES]
    if len(cores) < STAGES:
        print(f"there is {len(cores)} core for {STAGES} stages: nothing can overlap")
    os.sched_setaffinity(0, cores)
    times: dict[tuple[int, int], list[float]] = {}
    for _ in range(options.rounds):
        for micro_batches in MICRO_BATCHES:
            alone, right = run(1, micro_batches, options)
            divided, losses = run(STAGES, micro_batches, options)
            if losses != right:
                raise SystemExit(
                    f"{micro_batches} micro-batches: two workers print other losses than one process"
                )
            times.setdefault((micro_batches, 1), []).append(alone)
            times.setdefault((micro_batches, STAGES), []).append(divided)
    print("| micro-batches | one process | two workers | share | least possible |")
    print("| --- | --- | --- | --- | --- |")
    for micro_batches in MICRO_BATCHES:
        alone, divided = (statistics.median(times[micro_batches, workers]) for workers in (1, STAGES))
        print(
            f"| {micro_batches} | {alone * 1e3:.1f} ms | {divided * 1e3:.1f} ms | {divided / alone:.2f} "
            f"| {least_share(micro_batches, STAGES):.2f} |"
        )
    print(f"median steps of {options.rounds} rounds, {len(cores)} cores; all losses equal bit for bit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
