"""What may be changed on the page of a job, by whom, and what comes of it."""

import json
import pathlib
import re

import pytest
from job import Process, clean_environment
from pages import ACTS as TRAINS
from pages import MUSTER, Events, acting_job, ask
from places import SEARCH_PATH


def act(port, token, what, **headers):
    status, _, text = ask(port, f"/act?do={what}", "POST", X_Muster_Token=token, **headers)
    return status, text


def test_save_and_stop_are_done_by_all_behind_the_same_step(tmp_path):
    with acting_job(tmp_path, TWICE="1") as (process, port, token):
        events = Events(port)
        assert events.wait_for("hello")["may_act"] is True
        process.wait_for_line("first step")
        assert act(port, token, "save") == (202, "asked on this page: save behind the step under way\n")
        events.wait_for("event", lambda told: told["kind"] == "asked")
        step = int(process.wait_for_line(r"saving behind step (\d+) in .*: asked on the page").group(1))
        assert act(port, token, "stop")[0] in (202, 429)
        while act(port, token, "stop")[0] == 429:
            pass
        stopped = [int(process.wait_for_line(r"stopped behind (\d+)").group(1)) for _ in range(2)]
        assert stopped[0] == stopped[1] > step
        # What was asked of one training is not asked of the next.
        for _ in range(2):
            assert process.wait_for_line(r"again behind (\d+)").group(1) == "16"
        assert process.wait() == 0
    epoch = (step - 1) // 16 + 1
    for rank in range(2):
        folder = tmp_path / "logs/saved" / f"rank_{rank}"
        assert sorted(path.name for path in folder.iterdir() if path.suffix == ".ckpt") == [
            f"asked-{epoch}_{(step - 1) % 16 + 1}.ckpt"
        ]
        assert any(path.suffix == ".state" for path in folder.iterdir())
    kinds = [
        json.loads(line).get("event", {}).get("kind")
        for line in pathlib.Path(tmp_path / "logs/history.jsonl").read_text().splitlines()
    ]
    assert kinds.count("asked") >= 2


RESUMES = """
import glob
resume = glob.glob(f"logs/saved/rank_{muster.get_rank()}/*.ckpt")[0]
epoch = int(resume.split("-")[-1].split("_")[0])
model.train(epoch + 1, data, callbacks=[counts], resume=resume)
"""


@pytest.mark.parametrize("options", [[], ["--max-restarts", "1"]], ids=["plain", "recovers"])
def test_a_training_goes_on_from_what_was_saved(tmp_path, options):
    with acting_job(tmp_path, *options) as (process, port, token):
        process.wait_for_line("first step")
        assert act(port, token, "save")[0] == 202
        step = int(process.wait_for_line(r"saving behind step (\d+)").group(1))
        while act(port, token, "stop")[0] == 429:
            pass
        assert process.wait() == 0
    (tmp_path / "again.py").write_text(
        TRAINS.replace("model.train(100_000, data, callbacks=[counts])", RESUMES)
    )
    command = ["env", "-C", str(tmp_path), MUSTER, "run", "-n", "2", "--log-dir", "other", "again.py"]
    process = Process("run", command, {**clean_environment(), "PATH": SEARCH_PATH})
    assert process.wait() == 0
    last = ((step - 1) // 16 + 2) * 16
    assert process.output().count(f"stopped behind {last}") == 2


def test_a_rank_is_restarted_and_the_job_goes_on(tmp_path):
    with acting_job(tmp_path, "--max-restarts", "2") as (process, port, token):
        events = Events(port)
        hello = events.wait_for("hello")
        assert hello["restarts"] is True
        process.wait_for_line("first step")
        assert act(port, token, "restart&rank=1")[0] == 202
        process.wait_for_line(r"worker 1 \(pid \d+\) is killed: its restart was asked for on the page")
        process.wait_for_line(r"worker 1 .*: starting it again \(1 of 2\)|worker 1 .*starting it again")
        # Also while the job recovers.
        assert act(port, token, "save")[0] in (202, 429)
        events.wait_for("state", lambda told: told["epoch"] == 2 and told["state"] == "running")
        while act(port, token, "stop")[0] == 429:
            pass
        stopped = [process.wait_for_line(r"stopped behind (\d+)").group(1) for _ in range(2)]
        assert stopped[0] == stopped[1]
        assert process.wait() == 0


def test_a_rank_is_not_restarted_where_no_process_is(tmp_path):
    with acting_job(tmp_path) as (process, port, token):
        assert Events(port).wait_for("hello")["restarts"] is False
        status, text = act(port, token, "restart&rank=1")
        assert status == 409 and "--max-restarts" in text
        process.wait_for_line("first step")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X_Muster_Token": "0" * 32}, 403),
        ({}, 401),
        ({"right": True, "Origin": "http://evil.example"}, 403),
        ({"right": True, "Origin": "null"}, 403),
        ({"right": True, "Host": "evil.example"}, 403),
        ({"right": True, "Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}, 403),
        ({"right": True, "Sec_Fetch_Site": "same-site"}, 403),
    ],
)
def test_other_requests_are_refused(shared_job, headers, status):
    process, port, token = shared_job
    headers = dict(headers)
    if headers.pop("right", False):
        headers = {**headers, "X_Muster_Token": token}
    assert ask(port, "/act?do=stop", "POST", **headers)[0] == status
    assert process._popen.poll() is None


@pytest.fixture(scope="module")
def shared_job(tmp_path_factory):
    with acting_job(tmp_path_factory.mktemp("job")) as (process, port, token):
        process.wait_for_line("first step")
        yield process, port, token


def test_only_a_post_changes_something_and_only_at_act(shared_job):
    process, port, token = shared_job
    assert ask(port, "/act?do=stop", X_Muster_Token=token)[0] == 405
    assert ask(port, "/?do=stop", "POST", X_Muster_Token=token)[0] == 405
    assert ask(port, "/act?do=stop", "OPTIONS", Origin="http://evil.example")[0] == 403
    _, headers, _ = ask(port, "/")
    assert not any(name.lower().startswith("access-control") for name in headers)
    # The page itself may ask: what its browser sends.
    assert act(port, token, "save", Origin=f"http://127.0.0.1:{port}", Sec_Fetch_Site="same-origin")[0] == 202
    process.wait_for_line("saving behind step")


def test_a_page_for_other_hosts_only_shows(tmp_path):
    with acting_job(tmp_path, where="=0.0.0.0:0") as (process, port, token):
        assert token is None
        assert Events(port).wait_for("hello")["may_act"] is False
        status, text = act(port, "0" * 32, "stop")
        assert status == 403 and "over a network" in text
        process.wait_for_line("first step")


def test_without_the_page_no_worker_looks_for_requests(tmp_path):
    (tmp_path / "train.py").write_text(re.sub("100_000", "1", TRAINS))
    command = [MUSTER, "run", "-n", "2", "--log-dir", "logs", "train.py"]
    environment = {**clean_environment(), "PATH": SEARCH_PATH, "MUSTER_PAGE_REQUESTS": str(tmp_path)}
    (tmp_path / "requests").write_text("save 1 stop 1\n")  # of another job, whose process started this one
    process = Process("run", ["env", "-C", str(tmp_path), *command], environment)
    try:
        assert process.wait() == 0
        assert process.output().count("stopped behind 16") == 2
    finally:
        process.end()
