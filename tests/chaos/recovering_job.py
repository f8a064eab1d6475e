"""A job whose processes can be ended and started again, as people would do it by hand."""

import glob
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))
from forked import popen  # noqa: E402
from job import free_port  # noqa: E402  (below those that the system gives away)

BUILD = Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
PATIENCE_SECONDS = 60
# What lies in one MS_RECOVERY_PATH: everything, or the workers' points, or those of one worker.
LAYOUTS = ("shared", "apart", "own")


class LostError(AssertionError):
    """A promise that was not kept."""


def clean_environment():
    told = ("MS_", "OMP_", "MUSTER_", "PYTHON", "CHAOS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(told)}
    return {**kept, "PYTHONPATH": str(BUILD / "python")}


def place(name, layout):
    if layout == "shared":
        return "all"
    if layout == "apart" and name != "scheduler":
        return "workers"
    return name.replace(" ", "_")


def number(point):
    """By which the folders of points are in the order in which they come."""
    call, _, moment = point.name.removeprefix("call_").partition(".")
    name, _, step = moment.partition("_")
    return int(call), ["start", "step", "end"].index(name), int(step or 0)


class Process:
    """One start of one process."""

    def __init__(self, name, folder, environment, prefix=()):
        self.name = name
        # Two files, or a line of the log might come into the middle of one that is printed in pieces.
        self._logs = [folder / f"{name.replace(' ', '_')}.{kind}" for kind in ("out", "err")]
        with self._logs[0].open("ab") as out, self._logs[1].open("ab") as err:
            self._begins = [out.tell(), err.tell()]
            self._popen = popen(
                [*prefix, sys.executable, "-u", str(HERE / "train.py")],
                environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # a group of its own: strace before it goes with it
            )

    @property
    def pid(self):
        return self._popen.pid

    def output(self):
        """What it has printed, then what it has logged."""
        texts = [log.read_bytes()[begin:] for log, begin in zip(self._logs, self._begins, strict=True)]
        return b"".join(texts).decode(errors="replace")

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
    """`root` has a folder for each place where its processes keep something; see LAYOUTS."""

    def __init__(self, folder, workers, mode, data, root=None, layout="shared", servers=0, **variables):
        folder.mkdir(parents=True)
        self.folder = folder
        self.workers = workers
        self.servers = servers
        self.mode = mode
        self.layout = layout
        self.has_certificates = "MUSTER_TLS_CONFIG" in variables
        self.root = Path(root or folder)
        self.port = free_port()
        self._variables = {
            "MS_WORKER_NUM": str(workers),
            "MS_SERVER_NUM": str(servers),
            "MS_SCHED_HOST": "127.0.0.1",
            "MS_SCHED_PORT": str(self.port),
            "MS_ENABLE_RECOVERY": "1",
            "MS_NODE_TIMEOUT": "60",
            "OMP_NUM_THREADS": "1",
            "CHAOS_MODE": mode,
            "CHAOS_DATA": str(data),
            "CHAOS_JOB": str(folder),
            **variables,
        }
        self.paths = {name: self.root / place(name, layout) / "recovery" for name in self.names()}
        self.hosts = {}  # by name: variables of one that is on another host now
        self.processes = {}  # the newest of each name
        self.everybody = []
        for name in self.names():
            self.start(name)

    def names(self):
        workers = [f"worker {rank}" for rank in range(self.workers)]
        return ["scheduler", *workers, *(f"server {number}" for number in range(self.servers))]

    def environment(self, name, **variables):
        role, _, rank = name.partition(" ")
        told = {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": rank}
        if role == "scheduler":
            told = {"MS_ROLE": "MS_SCHED", "MS_NODE_ID": "sched"}
        if role == "server":
            told = {"MS_ROLE": "MS_PSERVER", "MS_NODE_ID": f"server-{rank}"}
        told["MS_RECOVERY_PATH"] = str(self.paths[name])
        every = {**clean_environment(), **self._variables, **told, **self.hosts.get(name, {}), **variables}
        return {variable: value for variable, value in every.items() if value is not None}

    def start(self, name, prefix=(), **variables):
        """A variable that is None is not set."""
        process = Process(name, self.folder, self.environment(name, **variables), prefix)
        self.processes[name] = process
        self.everybody.append(process)
        return process

    def folders(self, name):
        """Where a worker has its points."""
        return [Path(path) for path in glob.glob(f"{self.paths[name]}/job-*/worker_{name.split()[1]}")]

    def points(self, name):
        """Of a worker: their folders, oldest first."""
        found = [path for folder in self.folders(name) for path in folder.glob("call_*")]
        return sorted((path for path in found if path.suffix != ".damaged"), key=number)

    def newest_point(self):
        """The newest recovery point that any worker has on disk: (call, moment, step)."""
        return max((number(path) for name in self.names()[1:] for path in self.points(name)), default=())

    def disks(self):
        """The places that are file systems of their own, which can be filled."""
        return [path for path in {path.parent for path in self.paths.values()} if path.is_mount()]

    def is_open(self, name):
        """Whether a process that has ended is to be started again."""
        return self.processes[name].status() != 0 and not self.has_ended_well()

    def is_ending(self):
        return any(process.status() is not None for process in self.processes.values())

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
        newest = self.newest_point()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.has_ended() and time.monotonic() < deadline:
            self.end_strays()
            time.sleep(0.02)
            if newest != (newest := self.newest_point()):
                deadline = time.monotonic() + PATIENCE_SECONDS
        for process in self.processes.values():
            status = process.wait(max(0.1, deadline - time.monotonic()))
            if status != 0 and not (status == -signal.SIGKILL and self.has_ended_well()):
                raise LostError(f"{process.name} ended with status {status}:\n{process.output()[-2000:]}")
        texts = [self.processes[f"worker {rank}"].output() for rank in range(self.workers)]
        ends = [re.search(r"^state (\w+)$", text, re.MULTILINE) for text in texts]
        return [end and end[1] for end in ends]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.everybody:
            process.signal(signal.SIGCONT)
            process.kill()
