#!/usr/bin/env python3
"""How long recovery takes: processes are killed and started again at once; every step says when it was done.

./dev bench recovery [--drills 20]
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import signal
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
PATIENCE_SECONDS = 120


class Process:
    """A process of the job; each of its lines with the time at which it came."""

    def __init__(self, environment, folder):
        self.lines = []
        program = [sys.executable, "-u", str(ROOT / "benchmarks/recovery_net.py")]
        self._popen = subprocess.Popen(
            program, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._popen.stdout:
            self.lines.append((time.monotonic(), line.rstrip()))

    def steps(self):
        """(number, time at which it was done) of each step."""
        # A line of the log may come between the text and its end.
        found = (re.match(r"step (\d+) (\d+\.\d{6})", line) for _, line in list(self.lines))
        return [(int(match[1]), float(match[2])) for match in found if match]

    def kill(self):
        self._popen.send_signal(signal.SIGKILL)
        self._popen.wait()

    def wait(self):
        status = self._popen.wait(PATIENCE_SECONDS * 5)
        self._reader.join()
        return status


class Job:
    def __init__(self, folder, workers, **variables):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        told = ("MS_", "OMP_", "MUSTER_", "PYTHON")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(told)}
        self._folder = folder
        self._environment = {
            **clean,
            "PYTHONPATH": str(BUILD / "python"),
            "MS_WORKER_NUM": str(workers),
            "MS_SCHED_HOST": "127.0.0.1",
            "MS_SCHED_PORT": str(port),
            "MS_ENABLE_RECOVERY": "1",
            "MUSTER_LOG": "info",
            **{name: str(value) for name, value in variables.items()},
        }
        self.scheduler = self.start("MS_SCHED", "sched")
        self.workers = [self.start("MS_WORKER", str(rank)) for rank in range(workers)]

    def start(self, role, node_id):
        """Each process has a folder of its own, as on hosts that share none."""
        told = {"MS_ROLE": role, "MS_NODE_ID": node_id, "MS_RECOVERY_PATH": str(self.folder_of(node_id))}
        return Process({**self._environment, **told}, self._folder)

    def folder_of(self, node_id):
        return self._folder / f"recovery_{node_id}"

    def wait_for_step(self, number):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not all((steps := worker.steps()) and steps[-1][0] >= number for worker in self.workers):
            if time.monotonic() > deadline:
                sys.exit("no step came:\n" + "\n".join(line for _, line in self.workers[0].lines[-20:]))
            time.sleep(0.005)

    def end(self):
        """What is not measured need not be trained to its end."""
        for process in [self.scheduler, *self.workers]:
            process.kill()


def first_step_after(process, when):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for _, done in process.steps():
            if done > when:
                return done
        time.sleep(0.005)
    sys.exit("no step came after the kill:\n" + "\n".join(line for _, line in process.lines[-20:]))


def noticed(process, when):
    """When the process said that it waits for somebody."""
    return min(came for came, line in process.lines if came > when and "waiting for node" in line)


def worker_drill(job, rank):
    """Seconds until the others know, and until all have done a step again."""
    killed_at = time.monotonic()
    job.workers[rank].kill()
    job.workers[rank] = job.start("MS_WORKER", str(rank))
    # The returning process makes no step alone.
    done = first_step_after(job.workers[rank], killed_at)
    known = max(noticed(worker, killed_at) for i, worker in enumerate(job.workers) if i != rank)
    return known - killed_at, done - killed_at


def longest_gap(steps, begin, end):
    times = [done for _, done in steps if begin <= done <= end]
    return max(after - before for before, after in itertools.pairwise(times))


def scheduler_drill(job):
    """Seconds of the longest step around the scheduler's death, and of one before."""
    time.sleep(1)
    begin = time.monotonic()
    time.sleep(1)
    killed_at = time.monotonic()
    job.scheduler.kill()
    time.sleep(0.3)
    job.scheduler = job.start("MS_SCHED", "sched")
    time.sleep(1.5)
    end = time.monotonic()
    broken = max(longest_gap(worker.steps(), killed_at, end) for worker in job.workers)
    usual = max(longest_gap(worker.steps(), begin, killed_at) for worker in job.workers)
    return broken, usual


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def deaths(folder, drills):
    known, done, broken, usual = [], [], [], []
    job = Job(folder, 4, HIDDEN=128, STEPS=10**7, SAVE_STEPS=100)
    try:
        job.wait_for_step(200)
        for drill in range(drills):
            noticed_after, done_after = worker_drill(job, drill % 4)
            known.append(noticed_after)
            done.append(done_after)
            print(
                f"  worker {drill % 4}: known {noticed_after:.3f} s, next step {done_after:.3f} s", flush=True
            )
            time.sleep(0.5)
        for _ in range(max(1, drills // 4)):
            gap, gap_before = scheduler_drill(job)
            broken.append(gap)
            usual.append(gap_before)
            print(
                f"  scheduler: longest step {gap * 1e3:.1f} ms, {gap_before * 1e3:.1f} ms before", flush=True
            )
    finally:
        job.end()
    longest, usually = max(broken) * 1e3, max(usual) * 1e3
    rows = {
        "a worker killed, until the others know": (
            f"median {statistics.median(known):.3f} s, longest {max(known):.3f} s"
        ),
        "a worker killed and started again, until all have done a step": (
            f"median {statistics.median(done):.2f} s, p95 {percentile(done, 0.95):.2f} s"
        ),
        "the scheduler killed: the longest step": f"{longest:.0f} ms, {usually:.0f} ms undisturbed",
    }
    for what, result in rows.items():
        print(f"| {what} | {result} |")


def served(folder, drills, by_hand):
    """A worker whose disk is empty comes back to a job with 100 MB of state."""
    imported, trained, gave = [], [], []
    # Far fewer points than steps: nothing but the state that is given can make up for the steps between.
    job = Job(folder, 4, HIDDEN=31400, STEPS=10**7, SAVE_STEPS=10**6, BY_HAND=int(by_hand))
    try:
        job.wait_for_step(5)
        for drill in range(drills):
            rank = 1 + drill % 3
            before = len(job.workers[0].steps())
            job.workers[rank].kill()
            shutil.rmtree(job.folder_of(str(rank)))
            started_at = time.monotonic()
            job.workers[rank] = job.start("MS_WORKER", str(rank))
            done_at = first_step_after(job.workers[rank], started_at)
            ready_at = min(came for came, line in job.workers[rank].lines if line.startswith("imported"))
            time.sleep(1)
            made = [number for number, _ in job.workers[0].steps()[before - 1 :]]
            if made != list(range(made[0], made[0] + len(made))):
                sys.exit(f"a step was lost or made twice: {made}")
            imported.append(ready_at - started_at)
            trained.append(done_at - ready_at)
            gave += [
                (int(match[2]), float(match[3]) / 1e3)
                for worker in job.workers
                for came, line in worker.lines
                if came > started_at
                and (match := re.search(r"worker (\d+) was given .*: (\d+) bytes in ([\d.]+) ms", line))
            ]
            print(f"  worker {rank}: a step {trained[-1]:.3f} s after its imports", flush=True)
        usual = [after - before for (_, before), (_, after) in itertools.pairwise(job.workers[0].steps())]
    finally:
        job.end()
    rate = statistics.median(size / seconds for size, seconds in gave) / 1e9
    how = f"4 workers, {gave[0][0] / 1e6:.0f} MB, an empty disk, {'by hand' if by_hand else 'Model'}"
    again = f"a step of all {statistics.median(trained):.2f} s, longest {max(trained):.2f} s"
    print(
        f"| {how} | {again} after Python's start and imports ({statistics.median(imported):.2f} s); "
        f"a step takes {statistics.median(usual) * 1e3:.0f} ms; none lost; given at {rate:.2f} GB/s |",
        flush=True,
    )


def saves(folder, workers, by_hand):
    """What a save costs the steps beside it. Steps with and without take turns in one run, which drifts."""
    saved, width = 12, 40
    steps = 2 * width * (saved + 1)
    job = Job(folder, workers, HIDDEN=31400, STEPS=steps, SAVE_STEPS=2 * width, BY_HAND=int(by_hand))
    statuses = [process.wait() for process in [job.scheduler, *job.workers]]
    if statuses != [0] * (workers + 1):
        sys.exit("\n".join(line for _, line in job.workers[0].lines[-20:]))
    done = dict(job.workers[0].steps())
    begins = range(2 * width, steps, 2 * width)

    def times(number):
        return [done[begin + number] - done[begin + number - 1] for begin in begins]

    usual = statistics.median(itertools.chain(*(times(number) for number in range(width + 1, 2 * width + 1))))
    extra = [statistics.median(times(number)) - usual for number in range(1, width + 1)]
    seconds = time_to_write(job.folder_of("0"), done)
    meanwhile = int(seconds / usual) + 1
    if meanwhile > width:
        sys.exit(f"a point took {seconds:.2f} s, longer than the {width} steps that it is to be seen in")
    share = sum(extra[:meanwhile]) / (meanwhile * usual)
    what = "100 MB (a point)" if by_hand else "200 MB (a point and a .ckpt)"
    print(
        f"| {workers} workers, {what} a save, steps of {usual * 1e3:.0f} ms | "
        f"{share:+.1%} for the {meanwhile} steps ({seconds:.2f} s) while it is written, "
        f"{1e3 * sum(extra):.0f} ms a save, {1e3 * extra[0]:.0f} of them in the first step |",
        flush=True,
    )


def time_to_write(recovery, done):
    """Seconds from a step to the end of writing its point, the median of those that are still there."""
    since_boot = time.time() - time.monotonic()
    taken = []
    for manifest in recovery.glob("job-*/worker_*/call_0.step_*/manifest.json"):
        step = int(manifest.parent.name.rpartition("_")[2])
        if step < max(done):  # behind the last one nothing disturbs it
            taken.append(manifest.stat().st_mtime - since_boot - done[step])
    return statistics.median(taken)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench recovery", description=__doc__.splitlines()[0])
    parser.add_argument("--drills", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=1, help="of saving, which one takes a minute")
    parser.add_argument("--parts", default="deaths,served,saves", help="deaths, served, saves: which rows")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as name:
        folder = Path(name)
        if "deaths" in options.parts:
            (folder / "deaths").mkdir()
            deaths(folder / "deaths", options.drills)
        for by_hand in (True, False) if "served" in options.parts else ():
            place = folder / f"served-{by_hand}"
            place.mkdir()
            served(place, options.drills, by_hand)
        for number in range(options.rounds if "saves" in options.parts else 0):
            for workers, by_hand in itertools.product((1, 4), (True, False)):
                place = folder / f"saves-{number}-{workers}-{by_hand}"
                place.mkdir()
                saves(place, workers, by_hand)


main()
