#!/usr/bin/env python3
"""The table of parameter servers: rows pulled and pushed a second, beside PyTorch's RPC and TensorFlow's
ParameterServerStrategy; a table that no process holds alone; the sample of MindSpore's documentation.

./dev bench servers [--rounds 30] [--parts rows,ahead,log,start,large,sample]

MUSTER_PEER_TORCH, MUSTER_PEER_TENSORFLOW and MUSTER_PEER_MINDSPORE are Pythons that have them; without one
its column is empty. DATA_PATH is the folder of MNIST's files for the sample (default: MNIST_Data/train).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from processes import free_port

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "build/benchmarks/bench_servers"
PEERS = ROOT / "benchmarks/peers"
ROWS, WIDTH, BATCH = 10_000_000, 16, 100_000
PATIENCE_SECONDS = 600


class FailedError(Exception):
    """A command that did not end well."""


def run(command: list[str], **variables: str) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise FailedError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def rates_in(text: str) -> dict[str, float]:
    """Million rows a second of bench_servers' lines."""
    found = re.findall(r"^(pull|push)\S*.*? ([\d.]+) M rows/s", text, re.MULTILINE)
    return {name: float(rate) for name, rate in found}


def peer(variable: str, script: str, *arguments: str) -> dict[str, float]:
    python = os.environ.get(variable)
    if not python:
        print(f"{variable} is not set: no figures of its framework")
        return {}
    try:
        text = run([python, str(PEERS / script), *arguments], MASTER_PORT=str(free_port()))
    except (FailedError, subprocess.TimeoutExpired) as error:
        print(f"no figures of a peer: {error}")
        return {}
    medians = json.loads(text.splitlines()[-1])
    return {name: BATCH / seconds / 1e6 for name, seconds in medians.items()}


def show(what: str, target: str, muster: float | None, peers: dict[str, float | None], unit: str) -> None:
    figures = [f"{name} {value:.3g}" for name, value in peers.items() if value is not None]
    print(f"{what:44} Muster {muster:.3g} {unit} (target {target}); {', '.join(figures) or 'no peer'}")


def bench_rows(rounds: int) -> None:
    sizes = [str(ROWS), str(WIDTH), str(BATCH), str(rounds)]
    torch = peer("MUSTER_PEER_TORCH", "torch_rpc_rows.py", *sizes)
    ports = ",".join(str(free_port()) for _ in range(3))
    tensorflow = peer("MUSTER_PEER_TENSORFLOW", "tensorflow_rows.py", ports, *sizes)
    ways = {
        "shared memory": ([], {"pull": "10", "push": "4"}),
        "TCP": (["--tcp"], {"pull": "3", "push": "1.5"}),
    }
    for way, (arguments, targets) in ways.items():
        muster = rates_in(run([str(BENCH), "--rounds", str(rounds), *arguments]))
        for name, target in targets.items():
            others = {"torch RPC": torch.get(name), "TensorFlow": tensorflow.get(name)}
            show(f"{name}, {BATCH:,} of {ROWS:,} rows, {way}", target, muster[name], others, "M rows/s")


def bench_ahead(rounds: int) -> None:
    print(run([str(BENCH), "--rounds", str(rounds), "--compute-ms", "30"]), end="")


def bench_log(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = run([str(BENCH), "--rounds", str(rounds), "--log-folder", folder, "--restart"])
    print("with a log:\n" + text, end="")


def bench_start(rounds: int) -> None:
    """1 GiB of rows of 16 floats with Adam's state: a server that has only a log, and one with a base."""
    rows = (1 << 30) // (WIDTH * 12)
    for what, limit in (("a log that was never cut off", "1000000"), ("a base and a short log", "64")):
        with tempfile.TemporaryDirectory() as folder:
            command = [str(BENCH), "--rounds", "5", "--rows", str(rows), "--log-folder", folder]
            run([*command, "--log-limit", limit, "--restart"])
            begins = [run([*command, "--start-only"]) for _ in range(min(rounds, 5))]
        wanted = re.compile(r"after ([\d.]+) s.*?([\d.]+) s of processors", re.DOTALL)
        found = [wanted.search(text) for text in begins]
        best, used = sorted((float(match[1]), float(match[2])) for match in found if match)[0]
        show(f"1 GiB again, behind {what}", "0.5", best, {"of processors": used}, "s")


def bench_large(rounds: int) -> None:
    """8 GiB of rows of 16 floats with Adam's state: 44.7 million rows of 192 bytes."""
    rows = (8 << 30) // (WIDTH * 12)
    text = run([str(BENCH), "--rounds", str(rounds), "--servers", "4", "--rows", str(rows)])
    print(f"{rows:,} rows over 4 servers:\n{text}", end="")


def sample(python: str, path: str | None) -> float:
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        run(
            [str(ROOT / "examples/parameter_server/run.sh")],
            MS_WORKER_NUM="2",
            MS_SERVER_NUM="2",
            MS_SCHED_PORT=str(free_port()),
            DATA_PATH=os.environ.get("DATA_PATH", str(ROOT / "MNIST_Data/train")),
            EPOCHS="1",
            LOGS=folder,
            PYTHON=python,
            **({"PYTHONPATH": path} if path else {}),
        )
        return time.monotonic() - begin


def bench_sample(rounds: int) -> None:
    path = os.pathsep.join(str(ROOT / "build" / name) for name in ("python_compat", "python"))
    own = min(sample(sys.executable, path) for _ in range(min(rounds, 5)))
    mindspore = os.environ.get("MUSTER_PEER_MINDSPORE")
    theirs = {"MindSpore": sample(mindspore, None) if mindspore else None}
    show("MindSpore's sample, 2 + 2, whole job", "0.6", own, theirs, "s")


MEASURES = {
    "rows": bench_rows,
    "ahead": bench_ahead,
    "log": bench_log,
    "start": bench_start,
    "large": bench_large,
    "sample": bench_sample,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30, help="batches, of which the median counts")
    parser.add_argument("--parts", default=",".join(MEASURES))
    options = parser.parse_args()
    for part in options.parts.split(","):
        if part not in MEASURES:
            parser.error(f"--parts: there is no '{part}' among {', '.join(MEASURES)}")
    has_failed = False
    for part in options.parts.split(","):
        try:
            MEASURES[part](options.rounds)
        except (FailedError, subprocess.TimeoutExpired) as error:
            print(f"{part}: {error}")
            has_failed = True
    if has_failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
