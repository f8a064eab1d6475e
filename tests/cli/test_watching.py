"""muster status and muster doctor, beside real schedulers."""

import json
import os
import pty
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/apps/muster/muster"
PROBE = ROOT / "build/tests/process/cluster_probe/cluster_probe"


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("MS_", "MUSTER_"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def cluster():
    """Starts the scheduler of two workers, and as many workers as are asked for."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = []

    def start(workers, **more):
        common = {"MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": str(port), "MS_WORKER_NUM": "2", **more}
        roles = [("MS_SCHED", "s")] + [("MS_WORKER", str(i)) for i in range(workers)]
        for role, node in roles:
            processes.append(
                subprocess.Popen(
                    [str(PROBE)],
                    env={**common, "MS_ROLE": role, "MS_NODE_ID": node},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
        if workers == 2:
            for worker in processes[1:]:
                assert worker.stdout.readline().startswith("rank ")
        return f"127.0.0.1:{port}"

    start.processes = processes
    yield start
    for process in processes:
        process.kill()
        process.wait()


def muster(*arguments, **options):
    return subprocess.run(
        [str(PROGRAM), *arguments], capture_output=True, text=True, timeout=60, check=False, **options
    )


def status_once(scheduler, is_it=lambda told: True, **options):
    """Asks again while the scheduler does not listen yet, or is not as it will be."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        done = muster("status", "--scheduler", scheduler, "--json", **options)
        if done.returncode == 0 and is_it(told := json.loads(done.stdout)):
            return told
        assert done.returncode == 0 or "connection refused" in done.stderr, done.stderr
    raise AssertionError(done.stdout + done.stderr)


def test_status_shows_the_live_roster_as_a_table_and_as_json(cluster, monkeypatch):
    scheduler = cluster(workers=2)
    told = status_once(scheduler, lambda told: all(node["phase"] == "computing" for node in told["nodes"]))
    assert told["state"] == "running"
    assert [(node["rank"], node["node_id"]) for node in told["nodes"]] == [(0, "0"), (1, "1")]
    host, port = scheduler.split(":")
    monkeypatch.setenv("MS_SCHED_HOST", host)
    monkeypatch.setenv("MS_SCHED_PORT", port)
    table = muster("status").stdout
    assert re.search(r"^job \w{16} at 127.0.0.1:\d+: running, epoch 1", table)
    told = r"^worker +1 +1 +127\.0\.0\.1 +\d+ +1 +- +computing +\d\.\d s ago +- +- +\S.* +\d+ MiB +\S+$"
    assert re.search(told, table, re.MULTILINE)
    memory = [node["memory_bytes"] for node in json.loads(muster("status", "--json").stdout)["nodes"]]
    assert all(size > 1 << 20 for size in memory)


def test_status_says_who_is_absent_while_a_cluster_forms(cluster):
    scheduler = cluster(workers=1)
    told = status_once(scheduler, lambda told: told["nodes"])
    assert told["state"] == "forming"
    assert told["absent_workers"] == 1
    assert "missing" in told["text"] or "absent" in told["text"]


def test_status_that_watches_prints_a_line_for_each_change_until_the_job_has_ended(cluster):
    scheduler = cluster(workers=2)
    status_once(scheduler, lambda told: all(node["phase"] == "computing" for node in told["nodes"]))
    with subprocess.Popen(
        [str(PROGRAM), "status", "--scheduler", scheduler, "--watch"], stdout=subprocess.PIPE, text=True
    ) as watch:
        assert watch.stdout.readline() == "running, 2 of 2 workers\n"
        cluster.processes[0].kill()  # the scheduler of a job that does not recover
        assert re.search(r"ended", watch.stdout.readline())
        assert watch.stdout.read() == ""
    assert watch.returncode == 0


def test_status_that_watches_redraws_the_table_of_a_terminal(cluster):
    scheduler = cluster(workers=2)
    status_once(scheduler)
    ours, theirs = pty.openpty()
    watch = subprocess.Popen([str(PROGRAM), "status", "--scheduler", scheduler, "--watch"], stdout=theirs)
    os.close(theirs)
    shown = b""
    while shown.count(b"\x1b[H\x1b[2J") < 2:
        shown += os.read(ours, 4096)
    watch.kill()
    watch.wait()
    os.close(ours)
    assert shown.count(b"last heartbeat") >= 1


def test_status_that_watches_says_that_nobody_listens():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        done = muster("status", "--watch", "--scheduler", f"127.0.0.1:{reserved.getsockname()[1]}")
    assert (done.returncode, "refused" in done.stderr) == (1, True)


def test_status_asks_which_scheduler():
    done = muster("status")
    assert done.returncode == 2
    assert "--scheduler HOST:PORT" in done.stderr


def test_doctor_measures_the_way_to_a_scheduler_that_waits(cluster):
    scheduler = cluster(workers=1)
    status_once(scheduler)
    done = muster("doctor", "--scheduler", scheduler, "--wait", "0.2")
    for line in [
        r"^ok +name '127.0.0.1' +127.0.0.1",
        r"^ok +connection 127.0.0.1:\d+ +in .* ms",
        r"^ok +handshake +a scheduler of Muster answers, neither encrypted nor authenticated",
        r"^ok +job +forming since",
        r"^ok +clock +the scheduler's is 0\.\d+ s",
        r"way to it +round trip .* ms .*bit/s",
        r"open files +\d+, a worker of this job may need",
        r"^ok +other hosts +no other",
    ]:
        assert re.search(line, done.stdout, re.MULTILINE), line + "\n" + done.stdout
    assert status_once(scheduler)["state"] == "forming", "it disturbs nothing"


def test_doctors_that_run_at_the_same_time_measure_the_ways_between_them(cluster):
    scheduler = cluster(workers=2)
    status_once(scheduler)
    doctors = [
        subprocess.Popen(
            [str(PROGRAM), "doctor", "--scheduler", scheduler, "--wait", "5"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for doctor in doctors:
        output, _ = doctor.communicate(timeout=60)
        assert re.search(r"^\w+ +to \S+ \(127\.0\.0\.1\) +round trip .*bit/s$", output, re.MULTILINE), output


def test_doctor_says_what_to_do_when_nobody_listens():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        done = muster("doctor", "--scheduler", f"127.0.0.1:{reserved.getsockname()[1]}")
    assert done.returncode == 1
    assert re.search(
        r"PROBLEM +connection .*\n.*connection refused.*\n +fix: nothing listens on port", done.stdout
    )


def test_doctor_says_what_to_do_about_a_name_that_nobody_knows():
    done = muster("doctor", "--scheduler", "no-such-host.invalid:8118")
    assert done.returncode == 1
    assert re.search(r"PROBLEM +name 'no-such-host.invalid'.*\n.*resolve.*\n +fix: ", done.stdout), (
        done.stdout
    )


def test_doctor_says_that_something_else_answers():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with subprocess.Popen(
            [str(PROGRAM), "doctor", "--scheduler", address], stdout=subprocess.PIPE, text=True
        ) as doctor:
            other.accept()[0].close()  # the look at the port
            peer = other.accept()[0]
            peer.recv(64)
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b" " * 64)
            output, _ = doctor.communicate(timeout=60)
            peer.close()
    assert doctor.returncode == 1
    assert re.search(r"PROBLEM +handshake", output), output


@pytest.fixture
def certificates(tmp_path):
    """The variables of processes that use certificates for this host."""
    folder = tmp_path / "certificates"
    made = muster("certs", "new", "--hosts", "127.0.0.1", "--out", str(folder))
    assert made.returncode == 0, made.stderr
    return {
        "MUSTER_TLS_CONFIG": str(folder / "config.json"),
        "MUSTER_TLS_CLIENT_PASSWORD_FILE": str(folder / "client.password"),
        "MUSTER_TLS_SERVER_PASSWORD_FILE": str(folder / "server.password"),
    }


def test_status_and_doctors_come_in_with_certificates_and_not_without(cluster, certificates):
    scheduler = cluster(workers=1, **certificates)
    inside = {**os.environ, **certificates}
    assert status_once(scheduler, lambda told: told["nodes"], env=inside)["state"] == "forming"
    outside = muster("status", "--scheduler", scheduler)
    assert outside.returncode == 1
    assert "TLS" in outside.stderr
    doctors = [
        subprocess.Popen(
            [str(PROGRAM), "doctor", "--scheduler", scheduler, "--wait", "5"],
            stdout=subprocess.PIPE,
            text=True,
            env=inside,
        )
        for _ in range(2)
    ]
    for doctor in doctors:
        output, _ = doctor.communicate(timeout=60)
        assert "encrypted" in output and "sides" in output, output
        assert re.search(r"to \S+ \(127\.0\.0\.1\) +round trip .*bit/s$", output, re.MULTILINE), output
