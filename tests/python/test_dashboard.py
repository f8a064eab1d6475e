"""The page of a job, over HTTP: what it tells, what it refuses, and what stays of it."""

import contextlib
import json
import re
import socket
import subprocess

import pytest
from job import PATIENCE, Process, clean_environment
from pages import MUSTER, Events, ask, end_job, rows_of, shown_job


def test_a_page_is_told_of_a_death_and_a_recovery_to_the_end_of_the_job(tmp_path):
    with shown_job(tmp_path, "--max-restarts", "2") as (process, port):
        events = Events(port)
        assert events.answer.getheader("Content-Type") == "text/event-stream"
        hello = events.wait_for("hello")
        assert hello["has_logs"]

        def trains(state):
            return all(row["loss"] is not None and row["step_seconds"] for row in rows_of(hello, state))

        state = events.wait_for("state", lambda told: told["state"] == "running" and trains(told))
        rows = rows_of(hello, state)
        assert [row["rank"] for row in rows] == [0, 1]
        assert all(row["memory"] > 1 << 20 and row["cores"] >= 0 and row["samples"] > 0 for row in rows)
        assert all(0 <= share <= 100 for row in rows for share in row["shares"])
        assert state["point"]["learning_rate"] == pytest.approx(0.01)
        dead = rows[1]["pid"]
        (tmp_path / "die").touch()
        assert f"(process {dead})" in events.wait_for("event", lambda told: told["kind"] == "lost")["text"]
        assert "epoch 2" in events.wait_for("event", lambda told: "epoch" in told["text"])["text"]
        later = events.wait_for("state", lambda told: told["epoch"] == 2 and len(told["ranks"]) == 2)
        assert rows_of(hello, later)[1]["pid"] != dead
        end_job(tmp_path)
        assert events.wait_for("end")["exit_code"] == 0
        assert process.wait() == 0
    with pytest.raises(ConnectionRefusedError):
        ask(port, "/")
    # And afterwards, from the folder.
    server = Process("dashboard", [MUSTER, "dashboard", str(tmp_path / "logs")], clean_environment())
    try:
        port = int(server.wait_for_line(r"http://127\.0\.0\.1:(\d+)/").group(1))
        events = Events(port)
        hello = events.wait_for("hello")
        assert {"formed", "lost", "back"} <= {event["kind"] for event in hello["events"]}
        assert any(loss is not None for loss in hello["points"]["loss"])
        assert len(events.wait_for("state")["ranks"]) == 2
        assert events.wait_for("end")["exit_code"] == 0
        assert "first step" in ask(port, "/log?name=worker_0.log")[2]
    finally:
        server.end()


def test_a_page_beside_a_job_that_runs_shows_the_same(tmp_path):
    with shown_job(tmp_path) as (process, first):
        state = Events(first).wait_for("state", lambda told: told["state"] == "running")
        scheduler = state["scheduler"]
        beside = Process(
            "dashboard",
            [MUSTER, "dashboard", "--scheduler", scheduler, "--logs", str(tmp_path / "logs")],
            clean_environment(),
        )
        try:
            port = int(beside.wait_for_line(r"http://127\.0\.0\.1:(\d+)/").group(1))
            told = Events(port).wait_for("state")
            assert (told["job"], told["state"]) == (state["job"], "running")
            assert "worker_1.log" in ask(port, "/logs")[2]
        finally:
            beside.end()
        end_job(tmp_path)
        assert process.wait() == 0


def test_a_rank_whose_data_is_slow_is_named_with_the_cause(tmp_path):
    with shown_job(tmp_path) as (process, port):
        events = Events(port)
        events.wait_for("state", lambda told: told["point"]["step"])
        (tmp_path / "slow").touch()
        told = events.wait_for("event", lambda told: told["kind"] == "slow")
        assert told["process"] == "worker 1"
        assert re.search(r"rank 1 holds up the others in each step .*: reading its data takes", told["text"])
        process.wait_for_line(r"warning: rank 1 holds up the others")
        scheduler = events.wait_for("state")["scheduler"]
        status = subprocess.run(
            [MUSTER, "status", "--scheduler", scheduler],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert "rank 1 holds up the others" in status.stdout
        _, _, numbers = ask(port, "/metrics")
        assert 'muster_job_slow_rank{rank="1",cause="reading_data"} 1' in numbers
        end_job(tmp_path)
        assert process.wait() == 0


def test_logs_are_shown_and_searched(tmp_path):
    with shown_job(tmp_path) as (process, port):
        Events(port).wait_for("state", lambda told: told["point"]["step"])
        logs = tmp_path / "logs"
        with (logs / "worker_0.log").open("a") as log:
            log.write("".join(f"line {number} \x1b[31m<b>\n" for number in range(2000)))
            log.write("muster[worker 0] warning: it rains\n")
        lines = [text for _, text in json.loads(ask(port, "/log?name=worker_0.log")[2])]
        assert len(lines) == 500
        assert lines[-1] == "muster[worker 0] warning: it rains"
        assert r"line 1999 \x1b[31m<b>" in lines
        found = ask(port, "/log?name=worker_0.log&find=LINE%20123%20")[2]
        assert "line 123 " in found
        assert "line 124" not in found
        events = Events(port).wait_for("hello")["events"]
        while not any(event["text"] == "it rains" and event["process"] == "worker 0" for event in events):
            events = Events(port).wait_for("hello")["events"]
        end_job(tmp_path)
        assert process.wait() == 0


def test_of_a_progress_bar_its_newest_state_is_shown(tmp_path):
    with shown_job(tmp_path) as (process, port):
        Events(port).wait_for("state", lambda told: told["point"]["step"])
        bar = "".join(f"\r{percent:3d} % {'#' * 60}" for percent in range(101))
        (tmp_path / "logs/short.log").write_text(f"before\n{bar}")
        (tmp_path / "logs/long.log").write_text(f"{bar * 50}\r")
        newest = f"100 % {'#' * 60}"
        assert [text for _, text in json.loads(ask(port, "/log?name=short.log")[2])] == ["before", newest]
        assert [text for _, text in json.loads(ask(port, "/log?name=long.log")[2])] == [newest]
        end_job(tmp_path)
        assert process.wait() == 0


def test_what_is_no_log_of_the_job_is_not_shown(tmp_path):
    (tmp_path / "secret.log").write_text("secret\n")
    with shown_job(tmp_path) as (process, port):
        Events(port).wait_for("state", lambda told: told["point"]["step"])
        (tmp_path / "logs/link.log").symlink_to(tmp_path / "secret.log")
        (tmp_path / "logs/folder.log").mkdir()
        for path in [
            "/log?name=../secret.log",
            "/log?name=%2e%2e%2fsecret.log",
            f"/log?name={tmp_path}/secret.log",
            "/log?name=link.log",
            "/log?name=folder.log",
            "/log?name=",
            "/log",
            "/../../etc/passwd",
            "/%2e%2e/%2e%2e/etc/passwd",
            "//etc/passwd",
            "/dashboard.js/../../secret.log",
        ]:
            status, _, body = ask(port, path)
            assert status in (400, 404), path
            assert "secret\n" not in body
            assert "root:" not in body
        assert "link.log" not in ask(port, "/logs")[2]
        end_job(tmp_path)
        assert process.wait() == 0


def test_other_sites_and_other_names_are_refused(tmp_path):
    with shown_job(tmp_path) as (process, port):
        for path in ["/", "/events", "/logs", "/log?name=worker_0.log"]:
            assert ask(port, path, Host="evil.example")[0] == 403
            assert ask(port, path, Host=f"evil.example:{port}")[0] == 403
            assert ask(port, path, Origin="http://evil.example")[0] == 403
        assert ask(port, "/logs", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
        assert ask(port, "/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200, "a link"
        assert ask(port, "/logs", Sec_Fetch_Site="same-origin", Origin=f"http://127.0.0.1:{port}")[0] == 200
        assert ask(port, "/logs", Host=f"localhost:{port}")[0] == 200
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"]:
            assert ask(port, "/", method)[0] == 405
        _, headers, page = ask(port, "/")
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert not re.search(r"(src|href)=\"(https?:)?//", page), "the page needs nothing from outside"
        end_job(tmp_path)
        assert process.wait() == 0


def test_floods_end_their_own_connections_alone(tmp_path):
    with shown_job(tmp_path) as (process, port), contextlib.ExitStack() as open_connections:
        for _ in range(100):  # they say nothing
            connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            open_connections.enter_context(connection)
        assert ask(port, "/")[0] == 200
        flood = open_connections.enter_context(
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        )
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            flood.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000)
            assert flood.recv(1) == b""
        streams = [Events(port) for _ in range(16)]
        assert Events(port).answer.status == 503
        assert [stream.answer.status for stream in streams] == [200] * 16
        assert ask(port, "/")[0] == 200
        end_job(tmp_path)
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["dashboard", "."], "is no folder of a run"),
        (["dashboard"], "which scheduler?"),
        (["dashboard", ".", "--scheduler", "127.0.0.1:1"], "name two jobs"),
        (["dashboard", "--scheduler", "127.0.0.1:1"], "connection refused"),
        (["dashboard", "--listen", "x", "."], "'x' is no port"),
        (["run", "--dashboard=x", "-n", "1", "train.py"], "--dashboard x: 'x' is no port"),
    ],
)
def test_what_cannot_be_shown_is_said(tmp_path, arguments, told):
    (tmp_path / "train.py").write_text("print('started')\n")
    done = subprocess.run(
        [MUSTER, *arguments],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode in (1, 2)
    assert told in done.stderr
    assert "started" not in done.stdout
