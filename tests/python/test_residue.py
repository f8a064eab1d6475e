"""Whatever phase a job is in when its launcher is killed, terminated or interrupted: nothing stays behind."""

import contextlib
import os
import pty
import re
import select
import signal
import socket
import time
import uuid
from pathlib import Path

import pytest
from places import BUILD, PACKAGES, SEARCH_PATH

PROGRAM = BUILD / "apps/muster/muster"
PATIENCE = 40  # seconds for what only a slow machine can make late
LEFT_AFTER = 3  # seconds until nothing may be there any more

# Every process leaves a grandchild that has moved to a session of its own and belongs to nobody.
BEGIN = """
import os, signal, subprocess, sys
subprocess.run(["sh", "-c", "setsid sh -c 'exec sleep 1000' > /dev/null 2>&1 &"])
role, rank = os.environ["MS_ROLE"], os.environ["MS_NODE_ID"]
"""
FORMING = """
if role == "MS_WORKER" and rank == "1":
    signal.pause()
print("forms", flush=True)
import muster
muster.init()
"""
RUNNING = """
import muster
muster.init()
from muster import nn
net = nn.Dense(4, 2)
reducer = nn.DistributedGradReducer(net.trainable_params())
gradients = tuple(muster.ops.ones_like(parameter) for parameter in net.trainable_params())
while True:
    reducer(gradients)
    print("runs", flush=True)
"""
UNREAD = """
import select
os.set_blocking(1, False)
while select.select([], [1], [], 0.5)[1]:
    os.write(1, b"nobody reads this line\\n" * 40)
open("full", "w").close()
signal.pause()
"""
FAILS = """
if rank == "1":
    sys.exit(3)
signal.pause()
"""
STUBBORN = """
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: os.write(1, b"asked to end\\n"))  # whole lines: one write each
os.write(1, b"begins\\n")
while True:
    signal.pause()
"""
CONNECTS = """#!/bin/sh
echo connects
exec sleep 1000
"""


class Launcher:
    """A launcher that has a terminal of its own; all that it starts carries a mark in its environment."""

    def __init__(self, folder, script, *options):
        (folder / "script.py").write_text(BEGIN + script)
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.mark = f"MARK={uuid.uuid4()}".encode()
        name, _, value = self.mark.decode().partition("=")
        kept = {key: text for key, text in os.environ.items() if not key.startswith(("MS_", "MUSTER_"))}
        environment = {
            **kept,
            name: value,
            "PYTHONPATH": str(PACKAGES),
            "PATH": SEARCH_PATH,
            "TMPDIR": str(self.scratch),
            "XDG_RUNTIME_DIR": str(self.scratch),
            "NO_COLOR": "1",
        }
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            command = [str(PROGRAM), "run", "--log-dir", "logs", *options, "script.py"]
            os.execve(command[0], command, environment)
        self.end = os.pidfd_open(self.pid)
        self.text = ""

    def wait_for(self, pattern):
        """Reads the terminal until `pattern` is there."""
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, self.text)):
            ready, _, _ = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"no '{pattern}' in:\n{self.text}"
            try:
                self.text += os.read(self.terminal, 65536).decode(errors="replace")
            except OSError as error:  # the terminal has no process any more
                raise AssertionError(f"ended without '{pattern}':\n{self.text}") from error
        return match

    def wait_until(self, is_so):
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < deadline

    def has_child(self):
        return Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text() != ""

    def send(self, how):
        if how == "ctrl-c":
            os.write(self.terminal, b"\x03")
        else:
            os.kill(self.pid, {"kill": signal.SIGKILL, "term": signal.SIGTERM}[how])

    def has_ended(self, seconds):
        """Reads on, so that it is not held up by its terminal."""
        deadline = time.monotonic() + seconds
        terminals = [self.terminal]
        while True:
            ready, _, _ = select.select([self.end, *terminals], [], [], max(0, deadline - time.monotonic()))
            if self.end in ready or not ready:
                return self.end in ready
            try:
                self.text += os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:
                terminals = []

    def marked(self):
        """Processes that descend from it, zombies aside."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append((int(process.name), (process / "cmdline").read_bytes().replace(b"\0", b" ")))
        return [entry for entry in found if entry[0] != self.pid]

    def close(self):
        for pid in [self.pid, *(pid for pid, _ in self.marked())]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.exit_code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.terminal)
        os.close(self.end)


def wait_until_ended(pids, deadline):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            fd = os.pidfd_open(pid)
            select.select([fd], [], [], max(0, deadline - time.monotonic()))
            os.close(fd)


def shared_memory():
    """Segments that no living process has mapped: those of other jobs on this host are not this one's."""
    names = {entry.name for entry in Path("/dev/shm").iterdir() if "muster" in entry.name}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            maps = (process / "maps").read_text() if names else ""
            names = {name for name in names if f"/dev/shm/{name}" not in maps}
    return names


def reach(phase, folder):
    if phase == "before the start":
        launcher = Launcher(folder, "", "-n", "2")
        launcher.wait_until(launcher.has_child)
    elif phase == "connecting":
        ssh = folder / "ssh"
        ssh.write_text(CONNECTS.replace("echo connects", "echo > connects"))
        ssh.chmod(0o755)
        os.mkfifo(folder / "connects")
        launcher = Launcher(folder, "", "--hosts", "a:1,b:1", "--ssh", "./ssh")
        (folder / "connects").read_text()
    elif phase == "starting":
        launcher = Launcher(folder, "print('is there', flush=True); signal.pause()", "-n", "12")
        launcher.wait_for("is there")
    elif phase == "forming":
        launcher = Launcher(folder, FORMING, "-n", "2")
        launcher.wait_for(r"worker 0\] forms")
    elif phase == "running":
        launcher = Launcher(folder, RUNNING, "-n", "2")
        launcher.wait_for("runs")
    elif phase == "unread":
        launcher = Launcher(folder, UNREAD, "-n", "2")
        launcher.wait_until(lambda: (folder / "full").exists())
    elif phase == "settling":
        launcher = Launcher(folder, FAILS, "-n", "2")
        launcher.wait_for(r"muster: worker 1 \(pid \d+\) exited with code 3")
    elif phase == "ending":
        launcher = Launcher(folder, STUBBORN, "-n", "1")
        for words in ("begins", "asked to end"):
            for label in ("scheduler", "worker 0"):  # the line of state may show a line a second time
                launcher.wait_for(rf"\[{label}\] {words}")
            if words == "begins":
                os.kill(launcher.pid, signal.SIGTERM)
    else:
        launcher = Launcher(folder, FAILS, "-n", "2", "--max-restarts", "5")
        launcher.wait_for(r"starting it again in 1 s")
    return launcher


PHASES = (
    "before the start",
    "connecting",
    "starting",
    "forming",
    "running",
    "unread",
    "settling",
    "ending",
    "recovering",
)


@pytest.mark.parametrize("how", ["kill", "term", "ctrl-c"])
@pytest.mark.parametrize("phase", PHASES)
def test_nothing_is_left_three_seconds_later(tmp_path, phase, how):
    shared_before = shared_memory()
    launcher = reach(phase, tmp_path)
    try:
        pids = [pid for pid, _ in launcher.marked()]
        launcher.send(how)
        assert launcher.has_ended(LEFT_AFTER + 6), f"it goes on:\n{launcher.text}"
        deadline = time.monotonic() + LEFT_AFTER
        wait_until_ended(pids, deadline)
        while (left := launcher.marked()) and time.monotonic() < deadline:
            wait_until_ended([pid for pid, _ in left], deadline)
        assert left == []
        while list(launcher.scratch.iterdir()) and time.monotonic() < deadline:
            pass
        assert list(launcher.scratch.iterdir()) == []
        assert shared_memory() <= shared_before
        if port := re.search(r"scheduler at 127\.0\.0\.1:(\d+)", launcher.text):
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", int(port[1])))
                probe.listen()
    finally:
        launcher.close()


def test_nothing_is_left_after_a_job_that_ends_well(tmp_path):
    launcher = Launcher(tmp_path, "", "-n", "2")
    try:
        assert launcher.has_ended(PATIENCE)
        assert launcher.marked() == []
        assert list(launcher.scratch.iterdir()) == []
    finally:
        launcher.close()
    assert launcher.exit_code == 0, launcher.text
