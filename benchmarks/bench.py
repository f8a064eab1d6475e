#!/usr/bin/env python3
"""The benchmarks: Muster beside MindSpore, PyTorch and Open MPI, in turn, on the same cores.

Every run's answer is checked first: exit codes, falling losses, sums. A figure is the median over the rounds;
in each round every contender runs once, so that what disturbs the machine disturbs all. What is not installed
is named, not left out in silence.

    MUSTER_PEER_MINDSPORE=/path/to/python MUSTER_PEER_TORCH=/path/to/python ./dev bench
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import table
from contenders import BUILD, ROOT, AllReduce, Contender, Job, Missing, WrongAnswerError, find_all
from processes import StuckError

ROWS = 8000
KIB, MIB, RESNET = 1 << 10, 1 << 20, 102228128  # the last: ResNet-50's gradients in float32


class Bench:
    """Runs the rounds and gathers {row: {contender: [value of each round]}}."""

    def __init__(self, contenders: Sequence[Contender], digits: Path, logs: Path) -> None:
        self.contenders = contenders
        self.digits = digits
        self.logs = logs
        self.values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.notes: dict[str, None] = {}  # in order, once each
        self.failures: list[str] = []

    def record(self, row: str, contender: Contender, value: float | None) -> None:
        if value is not None:
            self.values[row][contender.name].append(value)

    def attempt(self, what: str, contender: Contender, run: Callable[[Path], None]) -> None:
        print(f"  {contender.name:10} {what}", file=sys.stderr, flush=True)
        try:
            run(self.logs / contender.name / what.replace(" ", "_"))
        except (WrongAnswerError, StuckError) as problem:
            self.failures.append(f"{contender.title}, {what}: {problem}")
            print(f"    FAILED: {problem}", file=sys.stderr, flush=True)

    def job(self, contender: Contender, workers: int, omp_num_threads: str | None) -> None:
        suffix = "" if omp_num_threads else ", OMP_NUM_THREADS unset"

        def run(logs: Path) -> None:
            result = contender.run_job(Job(workers, ROWS, self.digits, omp_num_threads), logs)
            self.record(f"job {workers}{suffix}", contender, result.seconds)
            self.record(f"memory {workers}{suffix}", contender, result.peak_memory_bytes)
            for note in result.notes:
                self.notes[f"{contender.title}, whole job, {workers} workers{suffix}: {note}"] = None

        self.attempt(f"job {workers}{suffix}", contender, run)

    def timed(self, contender: Contender, workers: int) -> None:
        def run(logs: Path) -> None:
            result = contender.run_job(Job(workers, ROWS, self.digits, "1", timed=True), logs)
            self.record(f"step {workers}", contender, result.step_seconds)
            self.record(f"start {workers}", contender, result.first_step_seconds)

        self.attempt(f"step {workers}", contender, run)

    def all_reduce(self, contender: Contender, test: AllReduce) -> None:
        suffix = " tcp" if test.tcp else " touched" if test.touched else ""

        def run(logs: Path) -> None:
            for size, seconds in contender.run_all_reduce(test, logs).items():
                self.record(f"all_reduce {size} {test.ranks}{suffix}", contender, seconds)

        self.attempt(f"all_reduce {test.ranks}{suffix}", contender, run)

    def placed(self, contender: Contender) -> None:
        def run(logs: Path) -> None:
            result = contender.run_placed(self.digits.parent, ROWS, logs)
            self.record("placed job", contender, result.seconds)
            self.record("placed step", contender, result.step_seconds)
            self.record("placed accuracy", contender, result.accuracy)
            for note in result.notes:
                self.notes[f"{contender.title}, seed 003: {note}"] = None

        self.attempt(f"seed 003 {len(self.values['placed job'][contender.name])}", contender, run)

    def crossing(self, contender: Contender) -> None:
        def run(logs: Path) -> None:
            for size, seconds in contender.run_crossing((KIB, 64 * KIB, MIB), logs).items():
                self.record(f"crossing {size}", contender, seconds)

        self.attempt("crossing", contender, run)

    def pictures(self, contender: Contender, cifar: Path) -> None:
        def run(logs: Path) -> None:
            self.record("picture", contender, contender.run_pictures(cifar, logs))

        self.attempt("pictures", contender, run)

    def round(self, parts: Sequence[str]) -> None:
        if "data" in parts:
            for contender in self.contenders:
                if contender.makes_pictures:
                    self.pictures(contender, prepare_pictures(self.logs))
        if "placed" in parts:
            for contender in self.contenders:
                if contender.places:
                    self.placed(contender)
        if "crossing" in parts:
            for contender in self.contenders:
                if contender.sends:
                    self.crossing(contender)
        trainers = [contender for contender in self.contenders if contender.trains]
        for workers in (2, 8):
            for part, omp_num_threads in (("job", "1"), ("omp", None)):
                if part in parts:
                    for contender in trainers:
                        self.job(contender, workers, omp_num_threads)
            if "step" in parts:
                for contender in trainers:
                    self.timed(contender, workers)
        if "all_reduce" in parts:
            reducers = [contender for contender in self.contenders if contender.reduces]
            for ranks in (2, 4, 8):
                for contender in reducers:
                    self.all_reduce(contender, AllReduce(ranks, (KIB, MIB, RESNET)))
                    if contender.shares_memory:
                        self.all_reduce(contender, AllReduce(ranks, (MIB, RESNET), touched=True))
            for contender in reducers:
                if contender.shares_memory:
                    self.all_reduce(contender, AllReduce(2, (RESNET,), tcp=True))

    def medians(self) -> dict[str, dict[str, float]]:
        return {
            row: {name: statistics.median(values) for name, values in by_name.items()}
            for row, by_name in self.values.items()
        }


PARTS = ("job", "omp", "step", "all_reduce", "placed", "crossing", "data")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="every contender runs so often (%(default)s)")
    parser.add_argument("--cores", type=int, default=2, help="cores that everything shares (%(default)s)")
    parser.add_argument(
        "--parts", default=",".join(PARTS), help="of %(default)s: which rows; omp: OMP_NUM_THREADS not set"
    )
    parser.add_argument(
        "--without", default="", help="contenders to leave out: mindspore, torch, mpi, muster"
    )
    parser.add_argument(
        "--data",
        type=Path,
        help="folder of train-*-ubyte with 8,000 rows, beside it test (default: made)",
    )
    parser.add_argument("--json", type=Path, help="write every value of every round to this file")
    options = parser.parse_args(arguments)
    options.parts = options.parts.split(",")
    options.without = [name for name in options.without.split(",") if name]
    if unknown := sorted(set(options.parts) - set(PARTS)):
        parser.error(f"--parts: there is no '{unknown[0]}'; choose from {', '.join(PARTS)}")
    if unknown := sorted(set(options.without) - {"mindspore", "torch", "mpi", "muster"}):
        parser.error(f"--without: there is no '{unknown[0]}'")
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}, it must be at least 1")
    return options


def use_cores(count: int) -> str:
    """Binds us, and so everybody we start, to `count` cores."""
    allowed = sorted(os.sched_getaffinity(0))[:count]
    os.sched_setaffinity(0, allowed)
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{len(allowed)} cores of {model}, Linux {platform.release()}"


def prepare_digits(scratch: Path) -> Path:
    script = ROOT / "examples/prepare_digits.py"
    subprocess.run(
        [sys.executable, script, "--out", scratch, "--copies", "2"], check=True, stdout=subprocess.DEVNULL
    )
    return scratch / "train"


def prepare_pictures(scratch: Path) -> Path:
    folder = scratch / "cifar"
    if not folder.exists():
        command = [BUILD / "apps/muster/muster", "data", "synthetic-cifar10", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    machine = use_cores(options.cores)
    scratch = Path(tempfile.mkdtemp(prefix="muster-bench-"))
    found = find_all(scratch)
    present = [c for c in found if isinstance(c, Contender) and c.name not in options.without]
    missing = [c for c in found if isinstance(c, Missing)]
    digits = (options.data or prepare_digits(scratch / "digits")).resolve()
    bench = Bench(present, digits, scratch)
    for number in range(1, options.rounds + 1):
        load = os.getloadavg()[0]
        print(
            f"round {number} of {options.rounds}, load {load:.1f}, logs in {scratch}",
            file=sys.stderr,
            flush=True,
        )
        bench.round(options.parts)

    headings = {c.name: c.heading() for c in present}
    print(table.render(bench.medians(), headings, machine, options.rounds))
    for absent in missing:
        print(f"\nNot measured: {absent.name}. To have it: {absent.remedy}")
    for note in bench.notes:
        print(f"\nNote: {note}")
    for failure in bench.failures:
        print(f"\nFAILED: {failure}")
    if options.json:
        report = {
            "machine": machine,
            "contenders": headings,
            "values": bench.values,
            "failures": bench.failures,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
