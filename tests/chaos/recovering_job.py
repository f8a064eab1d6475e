"""A job whose processes can be ended and started again, as people would do it by hand."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
PATIENCE_SECONDS = 60


class LostError(AssertionError):
    """A promise that was not kept."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clean_environment():
    told = ("MS_", "OMP_", "MUSTER_", "PYTHON", "CHAOS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(told)}
    return {**kept, "PYTHONPATH": str(BUILD / "python")}


class Process:
    """One start of one process."""

    def __init__(self, name, folder, environment, prefix=()):
        self.name = name
        self.log = folder / f"{name.replace(' ', '_')}.log"
        with self.log.open("ab") as log:
            self.begin = log.tell()
            self._popen = subprocess.Popen(
                [*prefix, sys.executable, "-u", str(HERE / "train.py")],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a group of its own: strace before it goes with it
            )

    @property
    def pid(self):
        return self._popen.pid

    def output(self):
        with self.log.open("rb") as log:
            log.seek(self.begin)
            return log.read().decode(errors="replace")

    def status(self):
        return self._popen.poll()

    def signal(self, number):
        if self.status() is None:
            os.killpg(self.pid, number)

    def wait(self, seconds=PATIENCE_SECONDS):
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise LostError(f"{self.name} did not end within {seconds} s") from None

    def kill(self):
        self.signal(signal.SIGKILL)
        self._popen.wait()


class Job:
    def __init__(self, folder, workers, mode, data, **variables):
        folder.mkdir(parents=True)
        self.folder = folder
        self.workers = workers
        self.recovery = Path(variables.pop("recovery", folder / "recovery"))
        self._has_own_folders = variables.pop("own_folders", False)
        self.port = free_port()
        self._variables = {
            "MS_WORKER_NUM": str(workers),
            "MS_SCHED_HOST": "127.0.0.1",
            "MS_SCHED_PORT": str(self.port),
            "MS_ENABLE_RECOVERY": "1",
            "MS_NODE_TIMEOUT": "60",
            "OMP_NUM_THREADS": "1",
            "CHAOS_MODE": mode,
            "CHAOS_DATA": str(data),
            **variables,
        }
        self.processes = {}  # the newest of each name
        self.everybody = []
        for name in self.names():
            self.start(name)

    def names(self):
        return ["scheduler", *(f"worker {rank}" for rank in range(self.workers))]

    def folder_of(self, name):
        """MS_RECOVERY_PATH of a process."""
        return self.recovery / name.replace(" ", "_") if self._has_own_folders else self.recovery

    def start(self, name, prefix=(), **variables):
        role, _, rank = name.partition(" ")
        told = {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": rank}
        if role == "scheduler":
            told = {"MS_ROLE": "MS_SCHED", "MS_NODE_ID": "sched"}
        told["MS_RECOVERY_PATH"] = str(self.folder_of(name))
        environment = {**clean_environment(), **self._variables, **told, **variables}
        process = Process(name, self.folder, environment, prefix)
        self.processes[name] = process
        self.everybody.append(process)
        return process

    def newest_point(self):
        """The newest recovery point that any worker has on disk: (call, step)."""
        points = [path.name for path in self.recovery.glob("**/job-*/worker_*/call_*") if path.is_dir()]
        found = [tuple(int(number) for number in re.findall(r"\d+", name)) for name in points]
        return max((numbers for numbers in found if numbers), default=())

    def has_ended(self):
        return all(process.status() is not None for process in self.processes.values())

    def has_ended_well(self):
        """Whether all workers have said that they are done, though one may have been killed as it went."""
        return self.processes["scheduler"].status() == 0

    def wait_for_progress(self, since, seconds=PATIENCE_SECONDS):
        """Until a newer point than `since` is on disk, or the job has ended."""
        deadline = time.monotonic() + seconds
        while self.newest_point() <= since and not self.has_ended():
            self.end_strays()
            if time.monotonic() > deadline:
                raise LostError(f"no step was made for {seconds} s")
            time.sleep(0.02)

    def end_strays(self):
        """Who was killed as it went, and was started again when all were done, finds no scheduler any more:
        the one before it counts."""
        for name in self.names()[1:] if self.has_ended_well() else []:
            started = [process for process in self.everybody if process.name == name]
            if len(started) > 1 and "waiting for the scheduler" in started[-1].output():
                started[-1].kill()
                self.processes[name] = started[-2]

    def wait(self):
        """The last printed state of each worker; an error when one did not end well."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.has_ended() and time.monotonic() < deadline:
            self.end_strays()
            time.sleep(0.02)
        for process in self.processes.values():
            status = process.wait(max(0.1, deadline - time.monotonic()))
            if status != 0 and not (status == -signal.SIGKILL and self.has_ended_well()):
                raise LostError(f"{process.name} ended with status {status}:\n{process.output()[-2000:]}")
        ends = [re.search(r"state (\w+)", self.processes[name].output()) for name in self.names()[1:]]
        return [end and end[1] for end in ends]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.everybody:
            process.signal(signal.SIGCONT)
            process.kill()
