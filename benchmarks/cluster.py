#!/usr/bin/env python3
"""A scheduler at size and under a flood: a thousand nodes, and peers who send garbage or nothing.

./dev bench cluster [--seconds 60] [--nodes 1000] [--tls]
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
PYTHON_BUILD = Path(os.environ.get("MUSTER_PYTHON_BUILD", BUILD))
CROWD = str(BUILD / "tests/process/crowd/cluster_crowd")
PROBE = str(BUILD / "tests/process/cluster_probe/cluster_probe")
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_SECONDS = 60
SILENT, FRAMES_PER_SECOND = 2000, 20_000


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(port, workers, **more):
    told = ("MS_", "OMP_", "MUSTER_", "PYTHON")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(told)}
    return {
        **clean,
        "PYTHONPATH": str(PYTHON_BUILD / "python"),
        "OMP_NUM_THREADS": "1",
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": str(port),
        "MS_WORKER_NUM": str(workers),
        "MUSTER_LOG": "error",
        **more,
    }


class Process:
    """A process, its lines with the time at which each came, and what it costs."""

    def __init__(self, words, env, cwd=None):
        self.lines = []
        self.popen = subprocess.Popen(
            words, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.popen.stdout:
            self.lines.append((time.monotonic(), line.rstrip()))

    def output(self):
        return "\n".join(line for _, line in self.lines)

    def wait_for(self, pattern):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            for _, line in list(self.lines):
                if match := re.search(pattern, line):
                    return match
            time.sleep(0.01)
        sys.exit(f"'{pattern}' did not come:\n{self.output()}")

    def wait(self):
        status = self.popen.wait(PATIENCE_SECONDS * 3)
        self._reader.join()
        return status

    def end(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.popen.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mib(self):
        status = Path(f"/proc/{self.popen.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def certificates(folder):
    """The variables of a job whose connections are encrypted, with certificates made for it."""
    place = Path(folder) / "certs"
    words = [BUILD / "apps/muster/muster", "certs", "new", "--hosts", "127.0.0.1", "--out", place]
    subprocess.run(words, check=True, capture_output=True)
    return {
        "MUSTER_TLS_CONFIG": str(place / "config.json"),
        "MUSTER_TLS_CLIENT_PASSWORD_FILE": str(place / "client.password"),
        "MUSTER_TLS_SERVER_PASSWORD_FILE": str(place / "server.password"),
    }


def scheduler(stack, port, workers, **more):
    process = Process([PROBE], environment(port, workers, MS_ROLE="MS_SCHED", **more))
    stack.callback(process.end)
    wait_for_port(port)
    return process


def wait_for_port(port):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.01)
    sys.exit("the scheduler does not listen")


def crowd(stack, kind, port, seconds, *more):
    words = [CROWD, kind, "--address", f"127.0.0.1:{port}", "--seconds", str(seconds), *map(str, more)]
    process = Process(words, dict(os.environ))
    stack.callback(process.end)
    return process


def flood(stack, port, seconds):
    return crowd(stack, "flood", port, seconds, "--silent", SILENT, "--frames-per-second", FRAMES_PER_SECOND)


def a_thousand_nodes(count, seconds):
    with contextlib.ExitStack() as stack:
        port = free_port()
        serving = scheduler(stack, port, count)
        nodes = crowd(stack, "nodes", port, seconds + 2, "--count", count, "--worker-num", count)
        formed = float(nodes.wait_for(r"formed ([\d.]+)")[1])
        time.sleep(1)
        before, begin = serving.cpu_seconds(), time.monotonic()
        time.sleep(seconds)
        share = (serving.cpu_seconds() - before) / (time.monotonic() - begin)
        memory = serving.memory_mib()
        if nodes.wait() != 0 or serving.wait() != 0:
            sys.exit(nodes.output() + serving.output())
    print(f"| {count} nodes: from their start until all have the roster | {formed:.2f} s |")
    print(f"| {count} nodes: the scheduler's peak memory | {memory:.1f} MiB |")
    print(
        f"| {count} nodes: the scheduler's processor time for heartbeats | {share:.1%} of a core |",
        flush=True,
    )


def joining_under_a_flood(seconds):
    with contextlib.ExitStack() as stack:
        port = free_port()
        serving = scheduler(stack, port, 1000)
        first = serving.memory_mib()
        unauthorized = flood(stack, port, seconds)
        time.sleep(2)
        count = max(1, int((seconds - 7) * 2))  # the last starts three seconds before the end
        joining = crowd(
            stack, "nodes", port, seconds - 3, "--count", count, "--worker-num", 1000, "--interval", 0.5
        )
        joining.wait()
        grown = serving.memory_mib() - first
        unauthorized.wait()
        cpu = serving.cpu_seconds() / seconds
    accepted = re.search(r"accepted (\d+) of (\d+): median ([\d.]+) longest ([\d.]+)", joining.output())
    rate = re.search(r"frames .*", unauthorized.output())[0]
    print(f"| the flood | {rate} |")
    print(
        f"| under it, a new worker joins ({accepted[1]} of {accepted[2]} did) | median {accepted[3]} s, "
        f"longest {accepted[4]} s |"
    )
    print(f"| under it, the scheduler's memory grows by | {grown:.1f} MiB |")
    print(f"| under it, the scheduler's processor time | {cpu:.0%} of a core |", flush=True)


def being_watched():
    done = subprocess.run([BUILD / "benchmarks/bench_watch"], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        print(f"| {line.partition('  ')[0]} | {line.partition('  ')[2].strip()} |", flush=True)


def step_times(worker, begin, end):
    times = [
        float(match[1]) for _, line in worker.lines if (match := re.fullmatch(r"step \d+ ([\d.]+)", line))
    ]
    inside = [when for when in times if begin <= when <= end]
    return [1e3 * (after - before) for before, after in itertools.pairwise(inside)]


def steps_under_a_flood(seconds, rounds, tls):
    """The same training while the same generator floods a dummy sink, and its own scheduler."""
    net = ROOT / "benchmarks/recovery_net.py"
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        port, sink_port = free_port(), free_port()
        secrets = certificates(folder) if tls else {}
        env = environment(port, 2, HIDDEN="1024", STEPS=str(10**7), SAVE_STEPS=str(10**7), **secrets)
        serving = scheduler(stack, port, 2, **secrets)
        workers = []
        for rank in range(2):
            workers.append(
                Process(
                    [sys.executable, "-u", str(net)],
                    {**env, "MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(rank)},
                    folder,
                )
            )
            stack.callback(workers[-1].end)
        crowd(stack, "sink", sink_port, 10_000)
        for worker in workers:
            worker.wait_for(r"^step 200 ")
        medians = {sink_port: [], port: []}
        for number in range(rounds):
            for target in sorted(medians, reverse=number % 2 == 1):  # in turns: the machine drifts
                unauthorized = flood(stack, target, seconds)
                time.sleep(1)
                begin = time.monotonic()
                unauthorized.wait()
                times = step_times(workers[0], begin, time.monotonic() - 0.2)
                medians[target].append(statistics.mean(times))
        serving.end()
    sink, job = (statistics.median(medians[target]) for target in (sink_port, port))
    print(f"| a step of 2 workers, the flood at a dummy sink | {sink:.2f} ms |")
    print(
        f"| a step of 2 workers, the flood at their scheduler | {job:.2f} ms ({job / sink - 1:+.0%}) |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(prog="./dev bench cluster", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="of the flood")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=16, help="of the steps under a flood")
    parser.add_argument("--tls", action="store_true", help="the steps are those of an encrypted job")
    parser.add_argument("--parts", default="nodes,joining,watched,steps")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if "nodes" in parts:
        a_thousand_nodes(options.nodes, 10)
    if "joining" in parts:
        joining_under_a_flood(options.seconds)
    if "watched" in parts:
        being_watched()
    if "steps" in parts:
        steps_under_a_flood(min(options.seconds, 8), options.rounds, options.tls)


if __name__ == "__main__":
    main()
