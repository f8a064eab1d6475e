"""Starting processes together, waiting for all of them with a deadline, and what they printed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DEADLINE_SECONDS = 600


@dataclass(frozen=True)
class Command:
    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str | None] = field(default_factory=dict)  # None removes a variable


@dataclass(frozen=True)
class Ended:
    """How one process ended."""

    name: str
    exit_code: int
    seconds: float  # since the first process was started
    peak_memory_bytes: int
    output: str


class StuckError(Exception):
    """Not all processes ended in time."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(command: Command, log: Path, begin_time: float) -> subprocess.Popen[bytes]:
    changes = {"BENCH_BEGIN": repr(begin_time), **command.environment}
    environment = {name: value for name, value in {**os.environ, **changes}.items() if value is not None}
    with log.open("wb") as output:
        return subprocess.Popen(
            command.arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def run_together(
    commands: Sequence[Command], logs: Path, deadline_seconds: float = DEADLINE_SECONDS
) -> list[Ended]:
    """Starts all commands in order and waits for each; what they print goes to `logs`/<name>.log."""
    logs.mkdir(parents=True, exist_ok=True)
    begin, begin_time = time.monotonic(), time.time()
    ended: dict[str, Ended] = {}

    def wait_for(command: Command, process: subprocess.Popen[bytes]) -> None:
        _, status, usage = os.wait4(process.pid, 0)  # unlike Popen.wait, it tells the memory
        seconds = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        output = (logs / f"{command.name}.log").read_text(errors="replace")
        ended[command.name] = Ended(command.name, process.returncode, seconds, usage.ru_maxrss * 1024, output)

    running = []
    for command in commands:
        process = start(command, logs / f"{command.name}.log", begin_time)
        waiter = threading.Thread(target=wait_for, args=(command, process), daemon=True)
        waiter.start()
        running.append((command, process, waiter))
    for _, _, waiter in running:
        waiter.join(max(0.0, begin + deadline_seconds - time.monotonic()))
    stuck = [(command, process) for command, process, waiter in running if waiter.is_alive()]
    for _, process in stuck:
        process.send_signal(signal.SIGTERM)  # launchers take their workers along
    for _, process, waiter in running:
        waiter.join(10)
        if waiter.is_alive():
            process.kill()
            waiter.join()
    if stuck:
        names = ", ".join(command.name for command, _ in stuck)
        raise StuckError(f"{names} did not end within {deadline_seconds:.0f} s")
    return [ended[command.name] for command in commands]
