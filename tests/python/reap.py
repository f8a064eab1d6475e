"""Runs a command and waits for everything that it leaves in the background.

usage: reap.py SECONDS COMMAND... Prints one line "PID STATUS COMMAND LINE" for each process that was left,
and kills what is still there when the time is up.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def children():
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def main():
    deadline = time.monotonic() + float(sys.argv[1])
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("cannot become the reaper of background processes")
    subprocess.run(sys.argv[2:], check=True)
    names = {}
    while left := children():
        names.update({pid: command_line(pid) or names.get(pid, "") for pid in left})
        if time.monotonic() > deadline:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            time.sleep(0.02)  # waiting for processes has no deadline of its own
            continue
        print(pid, os.waitstatus_to_exitcode(status), names.get(pid, ""))


main()
