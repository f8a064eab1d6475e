"""The folder of a run, and `muster runs`: what was started, what became of it, and how two runs differ."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from job import PATIENCE, Process, clean_environment
from pages import MUSTER, TRAINS, end_job
from places import SEARCH_PATH

ENVIRONMENT = {**clean_environment(), "PATH": SEARCH_PATH}


def muster(folder, *arguments, code=0):
    done = subprocess.run(
        [MUSTER, *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert code in (None, done.returncode), done.stderr
    return done.stdout if code == 0 else done.stderr


def listed(folder, where="logs"):
    return json.loads(muster(folder, "runs", "--json", str(where)))["runs"]


def wait_for_run(folder, matches, where="logs"):
    deadline = time.monotonic() + PATIENCE
    while True:
        (run,) = listed(folder, where) if (folder / where / "run.json").exists() else [None]
        if run and matches(run):
            return run
        assert time.monotonic() < deadline, run


@contextlib.contextmanager
def recorded_job(folder, *options, script=TRAINS, where="logs"):
    """`muster run` in `folder` without a page; its process."""
    (folder / "train.py").write_text(script)
    command = [MUSTER, "run", "--run-folder", where, *options, "train.py"]
    process = Process("run", ["env", "-C", str(folder), *command], ENVIRONMENT)
    try:
        yield process
    finally:
        if process._popen.poll() is None:
            process.signal(signal.SIGINT)
        process.wait()


def run_to_end(folder, where, *options, script):
    with recorded_job(folder, *options, script=script, where=where) as process:
        return process.wait()


def history(folder, kind):
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    return [line[kind] for line in lines if kind in line]


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder, *arguments):
    name = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(
        ["git", "-C", str(folder), *name, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_run_is_listed_while_it_trains_and_when_it_has_ended(tmp_path):
    with recorded_job(tmp_path, "-n", "2") as process:
        run = wait_for_run(tmp_path, lambda run: run["steps"] and run["loss"] is not None)
        assert (run["name"], run["script"], run["ranks"]) == ("logs", "train.py", 2)
        assert run["state"] == "running"
        deadline = time.monotonic() + PATIENCE
        while not any(state["metrics"] for state in history(tmp_path / "logs", "state")):
            assert time.monotonic() < deadline
        end_job(tmp_path)
        assert process.wait() == 0
    (ended,) = listed(tmp_path)
    assert (ended["state"], ended["exit_code"]) == ("done", 0)
    assert ended["steps"] >= run["steps"]
    assert ended["seconds"] > 0
    heading, row = muster(tmp_path, "runs", ".").splitlines()
    assert heading.split() == ["run", "script", "began", "ranks", "state", "time", "steps", "loss"]
    assert "train.py" in row
    assert " done " in row
    state = history(tmp_path / "logs", "state")[-1]
    assert "mae" in state["metrics"]


def test_a_death_and_its_recovery_stand_in_the_history(tmp_path):
    with recorded_job(tmp_path, "-n", "2", "--max-restarts", "2") as process:
        wait_for_run(tmp_path, lambda run: run["steps"])
        (tmp_path / "die").touch()
        process.wait_for_line(r"worker 1 .* was killed by signal 9 .*: starting it again")
        deadline = time.monotonic() + PATIENCE
        while "back" not in {event["kind"] for event in history(tmp_path / "logs", "event")}:
            assert time.monotonic() < deadline
        end_job(tmp_path)
        assert process.wait() == 0
    events = history(tmp_path / "logs", "event")
    assert {"formed", "lost", "restarted", "back"} <= {event["kind"] for event in events}
    (restarted,) = [event for event in events if event["kind"] == "restarted"]
    assert restarted["process"] == "worker 1"
    assert "was killed by signal 9" in restarted["text"]


ENDS = """
import os, sys
if os.environ["MS_ROLE"] != "MS_SCHED":
    sys.exit(int(sys.argv[1]) if sys.argv[1:] else 3)
"""


def test_a_run_that_fails_says_with_which_code_and_who_failed(tmp_path):
    assert run_to_end(tmp_path, "logs/a", "-n", "1", script=ENDS) == 3
    (run,) = listed(tmp_path)
    assert (run["state"], run["exit_code"]) == ("failed (3)", 3)
    (failed,) = [event for event in history(tmp_path / "logs/a", "event") if event["kind"] == "failed"]
    assert failed["process"] == "worker 0"
    assert "exited with code 3" in failed["text"]


def test_a_run_that_is_interrupted_and_one_whose_launcher_is_killed_are_told_apart(tmp_path):
    with recorded_job(tmp_path, "-n", "1", where="logs/a") as process:
        process.wait_for_line("first step")
        process.signal(signal.SIGINT)
        assert process.wait() == 130
    with recorded_job(tmp_path, "-n", "1", where="logs/b") as process:
        process.wait_for_line("first step")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        child = int(children.split()[0])  # the supervisor
        for pid in (process.pid, child):
            os.kill(pid, signal.SIGKILL)
        process.wait()
    deadline = time.monotonic() + PATIENCE
    while (states := [run["state"] for run in listed(tmp_path)]) != ["interrupted", "cut off"]:
        assert time.monotonic() < deadline, states


def test_two_jobs_at_once_do_not_share_a_folder(tmp_path):
    with recorded_job(tmp_path, "-n", "2") as process:
        before = wait_for_run(tmp_path, lambda run: run["steps"])
        told = muster(tmp_path, "run", "-n", "1", "--log-dir", "logs", "train.py", code=None)
        assert "another job runs in the folder 'logs'" in told
        assert "name another with --log-dir" in told
        end_job(tmp_path)
        assert process.wait() == 0
    (ended,) = listed(tmp_path)
    assert (ended["state"], ended["ranks"], ended["began"]) == ("done", 2, before["began"])


def test_a_smaller_run_in_the_same_folder_keeps_no_logs_of_the_greater_one(tmp_path):
    assert run_to_end(tmp_path, "logs", "-n", "3", script="import muster; muster.init()") == 0
    for name in ("worker_x.log", "worker_9.txt", "mine_7.log"):
        (tmp_path / "logs" / name).write_text("of the user's")
    assert run_to_end(tmp_path, "logs", "-n", "1", script="import muster; muster.init()") == 0
    logs = {path.name for path in (tmp_path / "logs").iterdir() if path.suffix in (".log", ".txt")}
    assert logs == {"scheduler.log", "worker_0.log", "worker_x.log", "worker_9.txt", "mine_7.log"}


def test_the_folder_tells_settings_with_their_sources_and_the_versions(tmp_path):
    (tmp_path / "job.toml").write_text("[environment]\nOMP_NUM_THREADS = '1'\n")
    options = ["--job", "job.toml", "-n", "2", "--env", "WANDB_API_KEY=hidden", "--env", "A=b"]
    assert run_to_end(tmp_path, "logs", *options, script=ENDS + "\n") == 3
    told = json.loads((tmp_path / "logs/run.json").read_text())
    assert told["settings"]["slots"] == {"value": "2", "origin": "-n"}
    assert told["variables"]["OMP_NUM_THREADS"]["origin"].startswith("job.toml")
    assert told["variables"]["A"] == {"value": '"b"', "origin": "--env"}
    assert told["host"]["cores"] >= 1
    assert told["python"]["packages"]["pytest"] == pytest.__version__ or sys.prefix == sys.base_prefix
    kept = "".join(path.read_text() for path in (tmp_path / "logs").iterdir() if path.is_file())
    assert "hidden" not in kept
    # What it was told is a job file, by which the same is started again.
    again = muster(tmp_path, "run", "--dry-run", "--job", "logs/job.toml")
    assert "slots = 2" in again
    assert '"A" = "b"' in again
    assert "WANDB_API_KEY is not kept" in (tmp_path / "logs/job.toml").read_text()


@needs_git
def test_the_folder_has_the_commit_of_the_script_and_what_differs_from_it(tmp_path):
    code = tmp_path / "code"
    code.mkdir()
    (code / "net.py").write_text("a = 1\n")
    git(code, "init", "-q", "-b", "main")
    git(code, "add", ".")
    git(code, "commit", "-q", "-m", "first")
    # Programs that a repository names are not started by it.
    (code / "evil").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (code / "evil").chmod(0o755)
    git(code, "config", "diff.external", "./evil")
    git(code, "config", "core.fsmonitor", "./evil")
    (code / "net.py").write_text("a = 2\n")
    (code / "train.py").write_text(ENDS)
    muster(tmp_path, "run", "-n", "1", "--run-folder", "logs", "code/train.py", "0")
    told = json.loads((tmp_path / "logs/repository.json").read_text())
    assert told["commit"] == git(code, "rev-parse", "HEAD")
    assert told["branch"] == "main"
    assert told["changed"] == ["net.py"]
    assert told["untracked"] == ["evil", "train.py"]
    assert "-a = 1\n+a = 2\n" in (tmp_path / "logs/changes.diff").read_text()
    assert not (tmp_path / "started").exists()


@needs_git
def test_code_outside_any_repository_is_said(tmp_path):
    assert run_to_end(tmp_path, "logs", "-n", "1", script=ENDS) == 3
    assert "not a git repository" in json.loads((tmp_path / "logs/repository.json").read_text())["problem"]


LOSSES = """
import sys
import numpy
import muster
from muster import nn, train, dataset as ds
muster.init()
muster.set_seed(int(sys.argv[1]))
rows = numpy.ones((40, 4), numpy.float32)
data = ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"], shuffle=False).batch(4)
net = nn.Dense(4, 1)
train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), float(sys.argv[2]))).train(1, data)
"""


BY_HAND = """
import sys
import muster
from muster import nn
muster.init()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
net, loss_fn = nn.Dense(4, 1), nn.MSELoss()
optimizer = nn.SGD(net.trainable_params(), 0.01)
grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
reducer = nn.DistributedGradReducer(optimizer.parameters)
for _ in range(10):
    loss, gradients = grad_fn(muster.ops.ones((4, 4)), muster.ops.ones((4, 1)))
    optimizer(reducer(gradients))
print(f"loss {float(loss.asnumpy())!r}", flush=True)
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("code", [0, 3])
def test_the_last_step_of_a_job_that_ends_at_once_is_listed(tmp_path, code):
    (tmp_path / "train.py").write_text(BY_HAND)
    told = subprocess.run(
        [MUSTER, "run", "-n", "2", "--run-folder", "logs/a", "train.py", str(code)],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert told.returncode == code, told.stderr
    (run,) = listed(tmp_path)
    loss = float(re.search(r"loss (\S+)", told.stdout)[1])
    assert (run["steps"], run["loss"]) == (10, pytest.approx(loss, rel=1e-3))
    assert f"{10:<7}" in muster(tmp_path, "runs", "logs").splitlines()[1]


def test_two_runs_are_compared_and_only_what_differs_is_shown(tmp_path):
    (tmp_path / "train.py").write_text(LOSSES)
    for name, seed, rate, threads in [("a", "1", "0.01", "1"), ("b", "2", "0.05", "2")]:
        options = ["--env", f"OMP_NUM_THREADS={threads}", "--metrics-file", f"{name}.jsonl"]
        muster(
            tmp_path,
            "run",
            "-n",
            "1",
            "--run-folder",
            f"muster-logs/{name}",
            *options,
            "train.py",
            seed,
            rate,
        )
    text = muster(tmp_path, "runs", "compare", "a", "b")
    rows = {
        name: values for name, *values in (re.split(r"\s{2,}", line.strip()) for line in text.splitlines())
    }
    first, second = (
        [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()] for name in "ab"
    )
    assert rows["steps"] == ["10", "10"]
    assert rows["seed"] == ["1", "2"]
    assert rows["OMP_NUM_THREADS"] == ['"1"', '"2"']
    assert rows["versions"] == ["the same"]
    assert rows["host"] == ["the same"]
    for step in (2, 10):
        told = [float(loss) for loss in rows[f"loss at step {step}"]]
        assert told == pytest.approx([first[step - 1]["loss"], second[step - 1]["loss"]], rel=1e-3)
    differences = json.loads(muster(tmp_path, "runs", "compare", "a", "b", "--json"))["differences"]
    assert differences["versions"] == []
    assert {"name": "arguments", "a": '["1", "0.01"]', "b": '["2", "0.05"]'} in differences["settings"]
    assert [run["name"] for run in listed(tmp_path, "muster-logs")] == ["a", "b"]


def compared(folder, scripts):
    """The rows of a comparison of two runs of train.py, which had these texts."""
    for name, script in zip("ab", scripts, strict=True):
        (folder / "train.py").write_text(script)
        muster(folder, "run", "-n", "2", "--run-folder", f"muster-logs/{name}", "train.py", "0")
    deadline = time.monotonic() + PATIENCE
    while len(list(folder.glob("muster-logs/*/repository.json"))) < 2:  # a process of its own writes it
        assert time.monotonic() < deadline
    lines = muster(folder, "runs", "compare", "a", "b").splitlines()
    return {name: values for name, *values in (re.split(r"\s{2,}", line.strip()) for line in lines)}


def test_runs_whose_scripts_differ_outside_any_repository_are_told_so_with_their_last_losses(tmp_path):
    """Both were "the same": of short runs the history has no loss, and git knew nothing of the scripts."""
    rows = compared(tmp_path, [BY_HAND, BY_HAND.replace("0.01", "0.05")])
    assert len(set(rows["text of the script"])) == 2
    assert len(set(rows["loss at step 10"])) == 2


def test_what_is_not_known_of_two_runs_is_not_said_to_be_the_same(tmp_path):
    quick = "import muster\nmuster.init()\n"
    rows = compared(tmp_path, [quick, quick])
    assert rows["code"] == ["the same script, else not known"]
    assert rows["numbers"] == ["not known"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["runs"], "there is no run in 'muster-logs'"),
        (["runs", "compare", "x", "y"], "there is no folder 'x', and none of that name in muster-logs"),
        (["runs", "compare", ".", "."], "'.' is no folder of a run: it has no run.json"),
    ],
)
def test_folders_without_a_run_are_said(tmp_path, arguments, told):
    assert told in muster(tmp_path, *arguments, code=1)


def test_pipes_among_the_files_of_a_run_keep_nobody_waiting(tmp_path):
    assert run_to_end(tmp_path, "logs/a", "-n", "1", script=ENDS) == 3
    for name in ("history.jsonl", "repository.json"):
        (tmp_path / "logs/a" / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / "logs/a" / name)
    (tmp_path / "logs/a/flight").mkdir(exist_ok=True)
    os.mkfifo(tmp_path / "logs/a/flight/worker_0_1.flight")
    (tmp_path / "logs/b").mkdir()
    os.mkfifo(tmp_path / "logs/b/run.json")
    assert "run.json cannot be read" in muster(tmp_path, "runs", "logs")
    assert "a" in muster(tmp_path, "runs", "compare", "logs/a", "logs/a")
    muster(tmp_path, "autopsy", "logs/a", code=None)


def test_damaged_files_of_a_run_harm_nobody(tmp_path):
    assert run_to_end(tmp_path, "logs/a", "-n", "1", script=ENDS) == 3
    with (tmp_path / "logs/a/history.jsonl").open("a") as file:
        file.write('{"event": 7}\n{"state": {"point": []}}\n\x1b[31m\n{"end": 1}\n{"state": {"ti')
    (tmp_path / "logs/b").mkdir()
    (tmp_path / "logs/b/run.json").write_text("{")
    assert [run["state"] for run in listed(tmp_path)] == ["unreadable", "failed (3)"]
    assert "run.json cannot be read" in muster(tmp_path, "runs", "logs")
