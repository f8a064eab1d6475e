"""Collective calls among processes of this host, beside Open MPI: `./dev bench collectives`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parent / "build/benchmarks/bench_collectives"
CALLS = ("barrier", "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all")
SMALL = (64, 1 << 10, 4 << 10)
LARGE = (64 << 10, 1 << 20, 16 << 20, 102_228_128)
OVER_TCP = (1 << 20, 102_228_128)
BESIDE = (64 << 10, 1 << 20, 16 << 20, 102_228_128)
BESIDE_WANTED = (
    1.1  # of the time that the call takes by itself, at most so much is added to the computation's
)
LONGEST_S = 600

Key = tuple[str, int, int, bool]  # call, ranks, bytes, over TCP


def wanted(key: Key) -> float:
    """Which share of Open MPI's time is allowed (issue 24)."""
    call, _, size, over_tcp = key
    if over_tcp:
        return 0.8
    return 1.0 if call == "barrier" or size <= max(SMALL) else 0.6


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


def mpi_program(scratch: Path) -> Path | None:
    if not shutil.which("mpirun") or not shutil.which("mpicc"):
        return None
    made = scratch / "mpi_collectives"
    subprocess.run(["mpicc", "-O2", HERE / "peers/mpi_collectives.c", "-o", made], check=True)
    return made


def measure(options: argparse.Namespace, mpi: Path | None) -> dict[Key, dict[str, list[float]]]:
    times: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    calls = ",".join(options.calls)
    for _ in range(options.rounds):
        for ranks in options.ranks:
            for over_tcp in (False, True):
                sizes = [str(size) for size in (OVER_TCP if over_tcp else SMALL + LARGE)]
                transport = "tcp" if over_tcp else "auto"
                own = ["--ranks", str(ranks), "--bytes", ",".join(sizes), "--calls", calls]
                jobs = {"muster": [PROGRAM, *own, "--transport", transport]}
                if mpi:
                    tcp = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"] if over_tcp else []
                    for name, bound in (("bound", []), ("unbound", ["--bind-to", "none"])):
                        start = ["mpirun", "--oversubscribe", *bound, "-n", str(ranks), *tcp]
                        jobs[name] = [*start, mpi, calls, *sizes]
                for name, command in jobs.items():
                    for line in run(command):
                        times[line["call"], ranks, line["bytes"], over_tcp][name].append(line["median_us"])
                print(f"{ranks} processes, {transport}: done", file=sys.stderr)
    return times


def print_table(times: dict[Key, dict[str, list[float]]]) -> None:
    print("| call | processes | Open MPI | Muster | share | wanted | reached |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    reached = rows = 0
    for key in sorted(times, key=lambda key: (key[3], CALLS.index(key[0]), key[2], key[1])):
        call, ranks, size, over_tcp = key
        medians = {name: statistics.median(values) for name, values in times[key].items()}
        what = call if call == "barrier" else f"{call} {size_text(size)}"
        what += ", TCP" if over_tcp else ""
        peers = [medians[name] for name in ("bound", "unbound") if name in medians]
        if not peers:
            print(f"| {what} | {ranks} | - | {time_text(medians['muster'])} | | | |")
            continue
        share = medians["muster"] / min(peers)
        rows += 1
        reached += share <= wanted(key)
        answer = "yes" if share <= wanted(key) else "NO"
        print(
            f"| {what} | {ranks} | {time_text(min(peers))} | {time_text(medians['muster'])} "
            f"| {share:.2f} | {wanted(key)} | {answer} |"
        )
    print(f"\n{reached} of {rows} reached; medians of rounds; of Open MPI the better, bound or unbound")


def print_beside(rounds: int) -> None:
    """What a call that was started adds to a computation that keeps all cores busy."""
    command = [PROGRAM, "--beside", "--ranks", "2", "--bytes", ",".join(map(str, BESIDE))]
    of_size = defaultdict(list)
    for _ in range(rounds):
        for line in run(command):
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench collectives", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="in turn with Open MPI (%(default)s)")
    parser.add_argument("--ranks", default="2,4,8", help="numbers of processes (%(default)s)")
    parser.add_argument("--calls", default=",".join(CALLS), help="of %(default)s")
    options = parser.parse_args()
    options.ranks = [int(ranks) for ranks in options.ranks.split(",")]
    options.calls = options.calls.split(",")
    if unknown := sorted(set(options.calls) - set(CALLS)):
        parser.error(f"no call is named {', '.join(unknown)}; there are {', '.join(CALLS)}")
    with tempfile.TemporaryDirectory() as scratch:
        mpi = mpi_program(Path(scratch))
        print_table(measure(options, mpi))
        print_beside(options.rounds)
    if not mpi:
        print("\nNot measured: Open MPI. To have it: apt-get install openmpi-bin libopenmpi-dev")


if __name__ == "__main__":
    main()
