"""Other runs of the folder, as the page of one may read them: their numbers, and nothing else."""

import json
import os
from urllib.parse import quote

import pytest
from pages import ask, keep_run, kept_page


@pytest.fixture
def folder(tmp_path):
    keep_run(tmp_path / "runs/this", [3.0, 2.0])
    keep_run(tmp_path / "runs/older", [1.0, 0.5, 0.25], began=1_600_000_000.0, metrics={"mae": 0.5})
    keep_run(tmp_path / "runs/newer", [9.0], ranks=1, exit_code=1)
    keep_run(tmp_path / "elsewhere", [7.0])
    return tmp_path / "runs"


def test_the_runs_of_the_folder_are_listed_with_their_curves(folder):
    (folder / "no run").mkdir()
    (folder / "newer" / "history.jsonl").open("a").write('{"state": {"point": {"ti')  # cut off
    with kept_page(folder / "this") as port:
        status, _, text = ask(port, "/runs")
        assert status == 200
        assert json.loads(text) == [
            {
                "name": "newer", "script": "train.py", "began": 1_700_000_000.0, "ranks": 1,
                "step": 0, "loss": 9.0, "exit_code": 1,
            },
            {
                "name": "older", "script": "train.py", "began": 1_600_000_000.0, "ranks": 2,
                "step": 20, "loss": 0.25, "exit_code": 0,
            },
        ]  # fmt: skip
        points = json.loads(ask(port, "/run?name=older")[2])["points"]
        assert points["loss"] == [1.0, 0.5, 0.25]
        assert points["step"] == [0, 10, 20]
        assert points["metric/mae"] == [None, None, 0.5]
        assert json.loads(ask(port, "/run?name=newer")[2])["points"]["loss"] == [9.0]


def test_the_last_step_of_a_run_that_ended_at_once_is_listed(folder):
    (folder / "newer" / "training.json").write_text('{"seed": 1, "point": {"step": 7, "loss": "nan"}}')
    (folder / "older" / "training.json").write_text(
        '{"point": {"step": 19, "loss": 5}}'
    )  # the history is newer
    with kept_page(folder / "this") as port:
        found = {run["name"]: (run["step"], run["loss"]) for run in json.loads(ask(port, "/runs")[2])}
    assert found == {"newer": (7, "nan"), "older": (20, 0.25)}


def test_nothing_but_a_run_of_the_folder_is_read(folder, tmp_path):
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    keep_run(folder / "links", [4.0])
    (folder / "links/history.jsonl").unlink()
    (folder / "links/history.jsonl").symlink_to(tmp_path / "elsewhere/history.jsonl")
    keep_run(folder / "pipe", [4.0])
    (folder / "pipe/history.jsonl").unlink()
    os.mkfifo(folder / "pipe/history.jsonl")  # who opened it would wait for ever
    with kept_page(folder / "this") as port:
        names = {run["name"] for run in json.loads(ask(port, "/runs")[2])}
        assert names == {"older", "newer", "links", "pipe"}
        refused = [
            "..", ".", "", "this", "link", "../elsewhere", "older/../../elsewhere", "older/", "older/.",
            str(tmp_path / "elsewhere"), "older\0", "../runs/older", "no such run",
        ]  # fmt: skip
        for name in refused:
            status, _, text = ask(port, f"/run?name={quote(name)}")
            assert (status, "there is no run" in text) == (404, True), name
        for name in ["links", "pipe"]:
            assert json.loads(ask(port, f"/run?name={name}")[2]) == {"points": {}}
        assert ask(port, "/runs", "POST")[0] == 405
        assert ask(port, "/runs", Host="evil.example")[0] == 403
        assert ask(port, "/run?name=older", Origin="http://evil.example")[0] == 403


def test_a_long_history_is_thinned_and_damage_left_out(folder):
    keep_run(folder / "long", [1 / (i + 1) for i in range(5000)], ranks=1, exit_code=None)
    lines = (folder / "long/history.jsonl").read_bytes().splitlines(keepends=True)
    lines[10] = b'{"state": {"point": [1, 2]}}\n'
    lines[11] = b'{"state": {"point": {"time": "x", "loss": {}}}}\n'
    lines[12] = b"\xff\xfe" * 1000 + b"\n"
    (folder / "long/history.jsonl").write_bytes(b"".join(lines))
    with kept_page(folder / "this") as port:
        points = json.loads(ask(port, "/run?name=long")[2])["points"]
        assert 500 < len(points["time"]) <= 1200
        assert points["step"][-1] >= 49_900
        assert {len(column) for column in points.values()} == {len(points["time"])}
