"""Starts the processes of a job from environment variables alone, as a user's shell would."""

import contextlib
import os
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import places
from forked import popen
from places import COMPAT_PACKAGES, PACKAGES

PATIENCE = 30  # seconds until a test gives up on something that should come soon


# Below those that the system itself gives away, so that no other process takes one before it is used.
# Each process of pytest-xdist draws from a share of its own.
PORTS = range(20000, 32000)


def free_port():
    """A port on which nothing listens."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = PORTS[worker::workers]
    while True:
        port = random.choice(share)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def clean_environment():
    """This process's variables without those that tell Muster, OpenMP or Python something."""
    return places.clean_environment(COMPAT_PACKAGES, PACKAGES)


class Process:
    """One process, its output kept and searchable while it runs."""

    def __init__(self, name, command, environment, stdin=None):
        self.name = name
        self._popen = popen(
            command,
            environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._lines = queue.Queue()
        self._seen = []
        threading.Thread(target=self._read, daemon=True).start()

    # In two pipes, or a line of the log might come into the middle of one that `python -u` prints in pieces.
    def _read(self):
        errors = threading.Thread(target=self._read_lines, args=[self._popen.stderr], daemon=True)
        errors.start()
        self._read_lines(self._popen.stdout)
        errors.join()
        self._lines.put(None)

    def _read_lines(self, stream):
        for line in stream:
            self._lines.put(line.rstrip("\n"))

    def wait_for_line(self, pattern, patience=PATIENCE):
        """The match of the first line, from where the last search ended, that has `pattern`."""
        deadline = time.monotonic() + patience
        while True:
            line = self._lines.get(timeout=max(0.001, deadline - time.monotonic()))
            assert line is not None, f"{self.name} ended without '{pattern}':\n{self.text()}"
            self._seen.append(line)
            if match := re.search(pattern, line):
                return match

    def text(self):
        """The lines that somebody has looked at."""
        return "\n".join(self._seen)

    def has_printed(self, pattern):
        """Whether a line that nobody has looked at yet has `pattern`; does not wait."""
        while not self._lines.empty():
            line = self._lines.get()
            if line is None:
                self._lines.put(None)
                return False
            self._seen.append(line)
            if re.search(pattern, line):
                return True
        return False

    @property
    def pid(self):
        return self._popen.pid

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, timeout=PATIENCE):
        return self._popen.wait(timeout)

    def output(self):
        """All that an ended process has printed."""
        while (line := self._lines.get(timeout=PATIENCE)) is not None:
            self._seen.append(line)
        self._lines.put(None)
        return self.text()

    def end(self):
        self._end(self._popen.kill)

    def terminate(self):
        self._end(self._popen.terminate)

    def _end(self, how):
        if self._popen.poll() is None:
            how()
            self._popen.wait()


class Job:
    """A scheduler and workers that run `script`. Use it in a `with`: nothing outlives it."""

    def __init__(self, script, workers, unbuffered=True, hosts=(), started=None, **variables):
        """`hosts`: a command prefix for each worker; the scheduler joins the first worker's host.

        `started`: so many workers; the others come by `start_worker`.
        """
        self.port = free_port()
        self._script = script
        self._hosts = hosts or [[]] * workers
        self._flags = ["-u"] if unbuffered else []
        self._variables = {
            "MS_WORKER_NUM": str(workers),
            "MS_SCHED_HOST": "127.0.0.1",
            "MS_SCHED_PORT": str(self.port),
            **variables,
        }
        self.scheduler = self.start("scheduler", self._hosts[0], MS_ROLE="MS_SCHED")
        self.workers = []
        for _ in range(workers if started is None else started):
            self.start_worker()

    def start_worker(self):
        number = len(self.workers)
        name, host = f"worker {number}", self._hosts[number]
        self.workers.append(self.start(name, host, MS_ROLE="MS_WORKER", MS_NODE_ID=str(number)))

    def start(self, name, host=(), **variables):
        environment = {**clean_environment(), **self._variables, **variables}
        return Process(name, [*host, sys.executable, *self._flags, "-c", self._script], environment)

    def everybody(self):
        return [self.scheduler, *self.workers]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.everybody():
            process.end()


def outputs_of_workers(script, workers, **variables):
    """What each worker wrote; all of the job ended well."""
    with Job(script, workers, **variables) as job:
        codes = [process.wait(120) for process in job.everybody()]
        texts = [worker.output() for worker in job.workers]
        assert codes == [0] * (workers + 1), texts[0]
        return texts


def output_alone(script):
    """What one process wrote, which ended well."""
    ended, text, _ = run_alone(script)
    assert ended == 0, text
    return text


def run_alone(script, **variables):
    """One process with just these MS_ variables: its exit code, its output and the seconds that it took."""
    begin = time.monotonic()
    process = Process("process", [sys.executable, "-c", script], {**clean_environment(), **variables})
    try:
        code = process.wait()
        return code, process.output(), time.monotonic() - begin
    finally:
        process.end()


def seconds_until_ended(processes, begin):
    for process in processes:
        process.wait()
    return time.monotonic() - begin


def kill(process):
    begin = time.monotonic()
    process.signal(signal.SIGKILL)
    return begin
