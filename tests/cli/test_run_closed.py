"""`muster run` keeps unauthorized peers out by a token that only the job and the user's tools can read."""

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/apps/muster/muster"
PROBE = ROOT / "build/tests/process/cluster_probe/cluster_probe"

# Every process of the job is a probe of the cluster; the workers wait there until somebody ends them.
SCRIPT = f'#!/bin/sh\nexec "{PROBE}" <>never\n'
# As launchers of launchers do: descriptors are closed on the way.
WRAPPED = f"""
import os, subprocess, sys
never = os.open("never", os.O_RDWR)
sys.exit(subprocess.run(["{PROBE}"], stdin=never, close_fds=True).returncode)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("MS_", "MUSTER_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "script.sh").write_text(SCRIPT)
    (tmp_path / "script.sh").chmod(0o755)
    (tmp_path / "wrapped.py").write_text(WRAPPED)
    os.mkfifo(tmp_path / "never")  # what the probes read their orders from
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextlib.contextmanager
def running(*words):
    """A job of two workers that stand in the cluster, and where its scheduler listens."""
    command = [str(PROGRAM), "run", "-n", "2", "--preset", "muster", *words]
    job = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        scheduler = re.search(r"scheduler at (\S+),", job.stderr.readline())[1]
        for _ in range(2):
            assert "rank " in job.stdout.readline()
        yield scheduler
    finally:
        job.send_signal(signal.SIGKILL)
        job.communicate()


def status(scheduler, **options):
    command = [str(PROGRAM), "status", "--scheduler", scheduler]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def token_of(scheduler):
    """As any process of this user can read it."""
    port = scheduler.rpartition(":")[2]
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables = dict(
                entry.split("=", 1) for entry in (process / "environ").read_text().split("\0") if "=" in entry
            )
            if variables.get("MS_SCHED_PORT") == port:
                return Path(variables["MUSTER_RUN_TOKEN_FILE"]).read_text()
    raise AssertionError("no process of the job")


def status_of_both(scheduler):
    """What status says once both workers have come, which may be behind the first answer."""
    deadline = time.monotonic() + 30
    while True:
        asked = status(scheduler)
        if asked.stdout.count("worker ") == 2 or time.monotonic() > deadline:
            return asked


def test_an_unauthorized_peer_is_refused_and_the_users_own_tools_are_not(folder):
    with running("./script.sh") as scheduler:
        host, port = scheduler.split(":")
        unauthorized = {
            "MS_SCHED_HOST": host,
            "MS_SCHED_PORT": port,
            "MS_ROLE": "MS_WORKER",
            "MS_WORKER_NUM": "2",
        }
        refused = subprocess.run([str(PROBE)], env=unauthorized, capture_output=True, text=True, timeout=60)
        assert refused.returncode == 77, refused.stderr
        assert "not use TLS" in refused.stdout + refused.stderr
        for name in (scheduler, f"localhost:{port}"):
            asked = status_of_both(name)
            assert asked.returncode == 0, asked.stderr
            assert asked.stdout.count("worker ") == 2
        doctor = [str(PROGRAM), "doctor", "--scheduler", scheduler, "--wait", "0"]
        told = subprocess.run(doctor, capture_output=True, text=True, timeout=60)
        assert re.search(r"(ok|warning) +way to it", told.stdout), told.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed: only root can be one")
def test_another_user_of_the_host_is_an_unauthorized_peer(folder):
    with running("./script.sh") as scheduler:
        asked = status(scheduler, user="nobody")
        assert asked.returncode == 1
        assert "not use TLS" in asked.stderr


def test_the_token_is_in_no_command_line_no_variable_and_on_no_disk(folder, monkeypatch):
    (folder / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "scratch"))
    with running("./script.sh") as scheduler:
        token = token_of(scheduler).encode()
        assert len(token) == 64
        for process in Path("/proc").glob("[0-9]*"):
            for name in ("cmdline", "environ"):
                with contextlib.suppress(OSError):
                    assert token not in (process / name).read_bytes()
        for path in folder.rglob("*"):
            assert path.is_symlink() or not path.is_file() or token not in path.read_bytes()
    with running("./script.sh") as scheduler:
        assert token_of(scheduler).encode() != token


def test_a_program_between_may_close_all_descriptors(folder):
    with running("wrapped.py") as scheduler:
        assert status(scheduler).returncode == 0


def test_an_open_job_is_open(folder):
    with running("--open", "./script.sh") as scheduler:
        asked = status(scheduler, user="nobody") if os.geteuid() == 0 else status(scheduler)
        assert asked.returncode == 0, asked.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--nnodes", "2", "--node-rank", "0", "--scheduler", "10.0.0.1:8118"],
            r"launchers.*share",
        ),
        (["--roles", "worker"], r"several.*launchers"),
        (
            ["--preset", "mpi", "--nnodes", "2", "--node-rank", "1", "--scheduler", "10.0.0.1:8118"],
            r"--open.*reaches",
        ),
        (
            ["--open", "--token-file", "token"],
            r"--open.*lets.*--token-file",
        ),
    ],
)
def test_what_is_not_said_is_asked_for(folder, words, message):
    (folder / "token").write_text("a token that nobody guesses")
    command = [str(PROGRAM), "run", "-n", "1", *words, "./script.sh"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert re.search(message, done.stderr)
    assert not (folder / "muster-logs").exists()


def test_an_exported_token_or_configuration_is_the_choice(folder, monkeypatch):
    (folder / "token").write_text("a token that nobody guesses")
    (folder / "token").chmod(0o600)
    monkeypatch.setenv("MUSTER_TOKEN_FILE", "token")
    several = ["--nnodes", "2", "--node-rank", "0", "--scheduler", "127.0.0.1:8118", "--dry-run"]
    command = [str(PROGRAM), "run", "-n", "1", *several, "./script.sh"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert f'token_file = "{folder}/token"' in done.stdout
    monkeypatch.delenv("MUSTER_TOKEN_FILE")
    monkeypatch.setenv("MUSTER_TLS_CONFIG", "absent.json")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "MUSTER_TLS_CONFIG absent.json" in done.stderr and "such" in done.stderr
