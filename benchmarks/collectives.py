"""Collective calls among processes of this host, beside Open MPI: `./dev bench collectives`.

With `--results FILE` each measurement is written down as it is made, and what stands there already is not
made again: a long run may be cut and goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parent / "build/benchmarks/bench_collectives"
CALLS = ("barrier", "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all")
SMALL = (64, 1 << 10, 4 << 10)
LARGE = (64 << 10, 1 << 20, 16 << 20, 102_228_128)
OVER_TCP = (1 << 20, 102_228_128)
BESIDE = (64 << 10, 1 << 20, 16 << 20, 102_228_128)
BUSY = (1 << 10,)  # between two ranks, while another process keeps a core busy
# Of the time that the call takes by itself, at most so much is added to the computation's.
BESIDE_WANTED = 1.1
LONGEST_S = 600
SETTINGS = ("memory", "tcp", "busy")


class Key(NamedTuple):
    call: str
    ranks: int
    size: int
    setting: str


def wanted(key: Key) -> float:
    """Which share of Open MPI's time is allowed (issue 24)."""
    if key.setting == "tcp":
        return 0.8
    return 1.0 if key.call == "barrier" or key.size <= max(SMALL) else 0.6


def size_text(size: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size / 1e6:.0f} MB" if size >= 1_000_000 else f"{size} B"


def time_text(microseconds: float) -> str:
    return f"{microseconds / 1000:.3g} ms" if microseconds >= 1000 else f"{microseconds:.3g} us"


def run(command: Sequence[str | Path]) -> Iterator[dict]:
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    ended = subprocess.run(
        [str(part) for part in command],
        env=os.environ | root,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    if ended.returncode != 0:
        sys.exit(f"{command[0]} ended with {ended.returncode}:\n{ended.stderr}")
    return (json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{"))


@contextlib.contextmanager
def a_busy_core(wanted_now: bool) -> Iterator[None]:
    if not wanted_now:
        yield
        return
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def mpi_program(scratch: Path) -> Path | None:
    if not shutil.which("mpirun") or not shutil.which("mpicc"):
        return None
    made = scratch / "mpi_collectives"
    subprocess.run(["mpicc", "-O2", HERE / "peers/mpi_collectives.c", "-o", made], check=True)
    return made


class Results:
    """What was measured, by job: a program with all calls and sizes of one setting, in one round."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.jobs: dict[str, list[dict]] = {}
        if file and file.exists():
            for line in file.read_text().splitlines():
                self._take(json.loads(line))

    def _take(self, job: dict) -> None:
        self.jobs[job["job"]] = job["lines"]

    def of(self, name: str, command: Sequence[str | Path], busy: bool = False) -> list[dict]:
        """The lines that the program printed, now or in an earlier run."""
        if name not in self.jobs:
            begin = time.monotonic()
            with a_busy_core(busy):
                job = {"job": name, "lines": list(run(command))}
            print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
            self._take(job)
            if self.file:
                with self.file.open("a") as out:
                    out.write(json.dumps(job) + "\n")
        return self.jobs[name]


def commands(
    options: argparse.Namespace, ranks: int, setting: str, mpi: Path | None
) -> dict[str, Sequence[str | Path]]:
    """The programs that are compared, in turn."""
    of_setting = {"memory": SMALL + LARGE, "tcp": OVER_TCP, "busy": BUSY}[setting]
    sizes = [str(size) for size in of_setting if size in options.sizes]
    calls = ",".join(options.calls)
    own = ["--ranks", str(ranks), "--bytes", ",".join(sizes), "--calls", calls]
    transport = "tcp" if setting == "tcp" else "auto"
    made: dict[str, Sequence[str | Path]] = {"muster": [PROGRAM, *own, "--transport", transport]}
    if not sizes:
        return {}
    if mpi:
        tcp = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"] if setting == "tcp" else []
        for name, bound in (("bound", []), ("unbound", ["--bind-to", "none"])):
            start = ["mpirun", "--oversubscribe", *bound, "-n", str(ranks), *tcp]
            made[name] = [*start, mpi, calls, *sizes]
    return made


def measure(
    options: argparse.Namespace, mpi: Path | None, results: Results
) -> dict[Key, dict[str, list[float]]]:
    times: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(options.rounds):
        for setting in options.settings:
            for ranks in [2] if setting == "busy" else options.ranks:
                for name, command in commands(options, ranks, setting, mpi).items():
                    what = (
                        f"round {number}, {ranks} processes, {setting}, {name}: "
                        f"{','.join(options.calls)} of {','.join(map(str, options.sizes))} bytes"
                    )
                    for line in results.of(what, command, setting == "busy"):
                        times[Key(line["call"], ranks, line["bytes"], setting)][name].append(
                            line["median_us"]
                        )
    return times


def print_table(times: dict[Key, dict[str, list[float]]]) -> None:
    print("| call | processes | Open MPI | Muster | share | wanted | reached |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    reached = rows = 0

    def place(key: Key) -> tuple:
        return SETTINGS.index(key.setting), CALLS.index(key.call), key.size, key.ranks

    for key in sorted(times, key=place):
        medians = {name: statistics.median(values) for name, values in times[key].items()}
        what = key.call if key.call == "barrier" else f"{key.call} {size_text(key.size)}"
        what += {"memory": "", "tcp": ", TCP", "busy": ", a core busy"}[key.setting]
        peers = [medians[name] for name in ("bound", "unbound") if name in medians]
        if not peers:
            print(f"| {what} | {key.ranks} | - | {time_text(medians['muster'])} | | | |")
            continue
        share = medians["muster"] / min(peers)
        rows += 1
        reached += share <= wanted(key)
        answer = "yes" if share <= wanted(key) else "NO"
        print(
            f"| {what} | {key.ranks} | {time_text(min(peers))} | {time_text(medians['muster'])} "
            f"| {share:.2f} | {wanted(key)} | {answer} |"
        )
    print(f"\n{reached} of {rows} reached; medians of rounds; of Open MPI the better, bound or unbound")


def print_beside(rounds: int, results: Results) -> None:
    """What a call that was started adds to a computation that keeps all cores busy."""
    command = [PROGRAM, "--beside", "--ranks", "2", "--bytes", ",".join(map(str, BESIDE))]
    of_size = defaultdict(list)
    for number in range(rounds):
        for line in results.of(f"round {number}, beside a computation", command):
            of_size[line["bytes"]].append(line)
    print("\n| all_reduce of | the call | a computation | both | added | share | wanted | reached |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for size, lines in of_size.items():
        call, computation, both = (
            statistics.median(line[name] for line in lines) for name in ("call_us", "compute_us", "both_us")
        )
        added = both - computation
        answer = "yes" if added <= BESIDE_WANTED * call else "NO"
        texts = [time_text(each) for each in (call, computation, both, added)]
        print(
            f"| {size_text(size)} | {' | '.join(texts)} | {added / call:.2f} | {BESIDE_WANTED} | {answer} |"
        )


def choices_of(parser: argparse.ArgumentParser, text: str, known: Sequence[str], what: str) -> list[str]:
    chosen = text.split(",")
    if unknown := sorted(set(chosen) - set(known)):
        parser.error(f"no {what} is named {', '.join(unknown)}; there are {', '.join(known)}")
    return chosen


def main() -> None:
    every_size = ",".join(map(str, SMALL + LARGE))
    parser = argparse.ArgumentParser(prog="./dev bench collectives", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="in turn with Open MPI (%(default)s)")
    parser.add_argument("--ranks", default="2,4,8", help="numbers of processes (%(default)s)")
    parser.add_argument("--calls", default=",".join(CALLS), help="of %(default)s")
    parser.add_argument("--sizes", default=every_size, help="of %(default)s bytes")
    parser.add_argument(
        "--settings",
        default=",".join((*SETTINGS, "beside")),
        help="of %(default)s: shared memory, TCP, another process that keeps a core busy, and calls beside "
        "a computation",
    )
    parser.add_argument("--results", type=Path, help="what was measured is kept here, and not made again")
    options = parser.parse_args()
    options.ranks = [int(ranks) for ranks in options.ranks.split(",")]
    options.calls = choices_of(parser, options.calls, CALLS, "call")
    options.sizes = [int(size) for size in choices_of(parser, options.sizes, every_size.split(","), "size")]
    settings = choices_of(parser, options.settings, (*SETTINGS, "beside"), "setting")
    options.settings = [setting for setting in SETTINGS if setting in settings]
    results = Results(options.results)
    with tempfile.TemporaryDirectory() as scratch:
        mpi = mpi_program(Path(scratch))
        if options.settings:
            print_table(measure(options, mpi, results))
        if "beside" in settings:
            print_beside(options.rounds, results)
    if not mpi:
        print("\nNot measured: Open MPI. To have it: apt-get install openmpi-bin libopenmpi-dev")


if __name__ == "__main__":
    main()
