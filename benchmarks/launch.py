#!/usr/bin/env python3
"""What a launcher costs: eight processes of an empty script, from the command to its exit.

A shell loop starts the same processes in the background and waits for them: what it takes is Python's own.
In each round every contender runs once, in turn; a figure is the median.

    MUSTER_PEER_TORCH=/path/to/python ./dev bench launch
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "build/apps/muster/muster"
PROCESSES = 8
EXCESS_MAX = 0.1  # seconds over the shell loop
LOOP = 'i=0; while [ $i -lt {count} ]; do "{python}" "{script}" & i=$((i + 1)); done; wait'


def commands(folder: Path) -> dict[str, list[str]]:
    """Every contender's command; all run the same script with a Python of theirs."""
    script = folder / "empty.py"
    script.touch()
    found = {
        "shell loop": ["sh", "-c", LOOP.format(count=PROCESSES, python=sys.executable, script=script)],
        # a scheduler and seven workers
        "muster run": [str(PROGRAM), "run", "--preset", "muster", "-n", str(PROCESSES - 1), str(script)],
    }
    if torch := os.environ.get("MUSTER_PEER_TORCH"):
        found["torchrun"] = [torch, "-m", "torch.distributed.run", "--standalone"]
        found["torchrun"] += ["--nproc-per-node", str(PROCESSES), str(script)]
    return found


def seconds(command: list[str], folder: Path) -> float:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - begin
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contenders = commands(folder)
        taken: dict[str, list[float]] = {contender: [] for contender in contenders}
        for _ in range(rounds):
            for contender, command in contenders.items():
                taken[contender].append(seconds(command, folder))
    medians = {contender: statistics.median(values) for contender, values in taken.items()}
    loop = medians["shell loop"]
    print(
        f"{PROCESSES} processes of an empty script, median of {rounds} rounds, seconds (over the shell loop)"
    )
    for contender, median in medians.items():
        spread = f"{min(taken[contender]):.3f} .. {max(taken[contender]):.3f}"
        print(f"  {contender:12} {median:7.3f}  ({median - loop:+.3f})   {spread}")
    if "torchrun" not in contenders:
        print("  torchrun: not measured, since MUSTER_PEER_TORCH names no Python that has torch")
    excess = medians["muster run"] - loop
    print(f"muster run may take {EXCESS_MAX} s more than the loop: {'yes' if excess <= EXCESS_MAX else 'NO'}")
    return 0 if excess <= EXCESS_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
