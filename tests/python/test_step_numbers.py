"""What loggers write of each step: lines of JSON, and the tools of others by entry point."""

import json
import os
import re
import subprocess
import sys
import time

import event_files
import numpy
import pytest
from job import clean_environment
from places import BUILD, ROOT, SEARCH_PATH

import muster
from muster import dataset as ds
from muster import nn, train

ROWS = numpy.arange(24, dtype=numpy.float32).reshape(12, 2) / 24


def data():
    return ds.NumpySlicesDataset((ROWS, ROWS[:, :1]), ["x", "y"]).batch(4)


def made_model(rate=0.5):
    muster.set_seed(1)
    net = nn.Dense(2, 1)
    return train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), rate), {"mae"})


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_step_is_a_line(tmp_path):
    losses = []
    seen = train.LambdaCallback(on_train_step_end=lambda run: losses.append(float(run.net_outputs.asnumpy())))
    made_model().fit(2, data(), data(), callbacks=[train.JsonLines(tmp_path / "below/m.jsonl"), seen])
    lines = lines_of(tmp_path / "below/m.jsonl")
    steps = [line for line in lines if "step_seconds" in line]
    assert [(line["step"], line["epoch"], line["rank"]) for line in steps] == [
        (step, (step + 2) // 3, 0) for step in range(1, 7)
    ]
    assert [line["loss"] for line in steps] == losses
    assert {line["learning_rate"] for line in steps} == {0.5}
    evaluations = [line for line in lines if "step_seconds" not in line]
    assert [(line["step"], line["epoch"]) for line in evaluations] == [(3, 1), (6, 2)]
    assert {"mae", "eval_loss"} <= evaluations[0].keys()


def test_who_writes_rates_draws_the_same_numbers_behind_the_training(tmp_path):
    drawn = []
    for callbacks in ([], [train.JsonLines(tmp_path / "m.jsonl")]):
        made_model([0.5, 0.25, 0.125]).train(1, data(), callbacks)
        drawn.append(muster._core._random_numbers("random_normal", [3]).asnumpy().tolist())
    assert [line["learning_rate"] for line in lines_of(tmp_path / "m.jsonl")] == [0.5, 0.25, 0.125]
    assert drawn[0] == drawn[1]


def test_a_loss_that_is_no_number_is_still_json(tmp_path):
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 1e30))
    model.train(2, data(), train.JsonLines(tmp_path / "m.jsonl"))
    assert lines_of(tmp_path / "m.jsonl")[-1]["loss"] is None


class Constant(train.Metric):
    """0.25, whatever was predicted."""

    def clear(self):
        pass

    def update(self, *outputs):
        pass

    def eval(self):
        return 0.25


def test_metrics_take_no_names_of_each_line(tmp_path):
    names = ("step", "epoch", "rank", "time", "loss")
    net = nn.Dense(2, 1)
    metrics = {name: Constant() for name in names}
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.5), metrics)
    model.fit(1, data(), data(), callbacks=[train.JsonLines(tmp_path / "m.jsonl")])
    last = lines_of(tmp_path / "m.jsonl")[-1]
    assert (last["step"], last["epoch"], last["rank"], last["loss"]) == (3, 1, 0, 0.25)
    assert {last[f"eval/{name}"] for name in names[:4]} == {0.25}
    assert (tmp_path / "m.jsonl").read_text().splitlines()[-1].count('"step"') == 1


def test_lines_go_through_a_pipe_to_who_reads(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    made_model().train(2, data(), train.JsonLines(tmp_path / "pipe"))
    read, _ = reader.communicate(timeout=60)
    assert [json.loads(line)["step"] for line in read.splitlines()] == [1, 2, 3, 4, 5, 6]


def test_a_device_that_takes_nothing_is_named():
    with pytest.raises(OSError, match="/dev/full"):
        made_model().train(2, data(), train.JsonLines("/dev/full"))


def test_a_folder_that_cannot_be_made_is_named():
    with pytest.raises(OSError, match="/proc/none"):
        made_model().train(1, data(), train.JsonLines("/proc/none/m.jsonl"))


class Kept(train.Logger):
    """Keeps what it is given."""

    def __init__(self, **options):
        super().__init__(**options)
        self.calls = []

    def open(self, run_context):
        self.calls.append("open")

    def log(self, values, step):
        self.calls.append((step, values))

    def close(self):
        self.calls.append("close")


def test_a_logger_gets_steps_and_evaluations_between_open_and_close():
    logger = Kept(every=2)
    made_model([0.5, 0.4, 0.3]).fit(1, data(), data(), callbacks=[logger])
    first, (step, values), (last, results), end = logger.calls
    assert (first, step, last, end) == ("open", 2, 3, "close")
    assert values.keys() == {"loss", "learning_rate"}
    assert values["learning_rate"] == pytest.approx(0.4)
    assert results.keys() == {"eval/mae", "eval/eval_loss"}


def test_a_logger_is_closed_when_the_training_fails():
    class Fails(Kept):
        def log(self, values, step):
            raise RuntimeError("no network")

    logger = Fails()
    with pytest.raises(RuntimeError, match="no network"):
        made_model().train(1, data(), logger)
    assert logger.calls == ["open", "close"]


class Gives(train.Metric):
    """Whatever it is told, whatever was predicted."""

    def __init__(self, value):
        super().__init__()
        self._value = value

    def clear(self):
        pass

    def update(self, *outputs):
        pass

    def eval(self):
        return self._value


@pytest.mark.parametrize(
    ("value", "logged"),
    [
        (3, 3.0),
        (numpy.float32(0.5), 0.5),
        (numpy.array(0.5), 0.5),
        (muster.Tensor(0.25), 0.25),
        (numpy.array([0.25, 0.75]), 0.5),
        (True, 1.0),
        ("8", None),
        ({"a": 1.0}, None),
        (None, None),
    ],
    ids=str,
)
def test_a_logger_gets_metrics_of_all_kinds_of_numbers(value, logged):
    net = nn.Dense(2, 1)
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.5), {"mine": Gives(value)})
    kept = Kept()
    model.fit(1, data(), data(), callbacks=[kept])
    values = kept.calls[-2][1]
    assert values.get("eval/mine") == logged
    assert {type(each) for each in values.values()} == {float}


@pytest.mark.parametrize("every", ["2", 1.5, None])
def test_a_logger_wants_a_number_of_steps(every):
    with pytest.raises(TypeError, match=f"Kept: every is a number of steps, not {every!r}"):
        Kept(every=every)


def test_loggers_of_installed_packages_are_found_by_name(tmp_path, monkeypatch):
    (tmp_path / "kept_logger.py").write_text("def make(**settings):\n    return ('made', settings)\n")
    info = tmp_path / "kept_logger-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kept-logger\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[muster.loggers]\nkept = kept_logger:make\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "kept" in train.logger_names()
    assert train.logger("kept", project="digits") == ("made", {"project": "digits"})
    with pytest.raises(ValueError, match=r"no package brings a logger 'lost'.*installed: .*kept"):
        train.logger("lost")


def logged_by_mlflow(folder):
    import mlflow

    (run,) = mlflow.search_runs(search_all_experiments=True, output_format="list")
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
    return [(each.step, each.value) for each in history]


def logged_by_wandb(folder):
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal import datastore

    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    store = datastore.DataStore()
    store.open_for_scan(str(file))
    found = []
    while data := store.scan_data():
        record = wandb_internal_pb2.Record.FromString(data)
        items = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
        if "loss" in items:
            found.append((items["_step"], items["loss"]))
    return found


@pytest.mark.parametrize(
    ("tool", "name", "logged"), [("mlflow", "MLflow", logged_by_mlflow), ("wandb", "WandB", logged_by_wandb)]
)
def test_loggers_of_the_guide_log_each_step(tmp_path, monkeypatch, tool, name, logged):
    pytest.importorskip(tool)
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/guide/metrics.md").read_text()
    script = re.search(rf"`{tool}_logger.py`:.*?```python\n(.*?)```", page, re.DOTALL)[1]
    names = {}
    exec(script, names)
    losses = []
    seen = train.LambdaCallback(on_train_step_end=lambda run: losses.append(float(run.net_outputs.asnumpy())))
    made_model().train(1, data(), [names[name](), seen])
    assert logged(tmp_path) == [(step + 1, loss) for step, loss in enumerate(losses)]


# ---- Jobs --------------------------------------------------------------------------------------------------

# Rank 0 is killed in the callbacks behind step 7, once; points are saved every three steps.
JOB = """
import os, pathlib, signal, sys
import numpy
import muster
from muster import dataset as ds, nn, train

class Dies(train.Callback):
    def on_train_step_end(self, run_context):
        flag = pathlib.Path("died")
        if muster.get_rank() == 0 and run_context.cur_step_num == 7 and DIES and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    def state_dict(self):
        return {}
    def load_state_dict(self, state):
        pass

muster.init()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
muster.set_seed(1)
rows = numpy.arange(96, dtype=numpy.float32).reshape(48, 2) / 96
data = ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"], num_shards=muster.get_group_size(),
                             shard_id=muster.get_rank(), shuffle=False).batch(4)
net = nn.Dense(2, 1)
model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
points = train.ModelCheckpoint("c", "checkpoints", train.CheckpointConfig(save_checkpoint_steps=3))
model.train(2, data, [train.TensorBoard("board"), train.JsonLines("lines.jsonl"), points, Dies()])
"""


def run(folder, script, *options):
    (folder / "train.py").write_text(script)
    environment = {**clean_environment(), "PATH": SEARCH_PATH}
    command = [BUILD / "apps/muster/muster", "run", "--log-dir", "logs", *options, "train.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    print(done.stdout, done.stderr)  # shown when the test fails
    assert done.returncode == 0
    return done


@pytest.mark.parametrize("workers", [1, 2])
def test_files_of_a_rank_that_was_killed_go_on_and_repeat_no_step(tmp_path, workers):
    found = {}
    for dies in (False, True):
        folder = tmp_path / str(dies)
        folder.mkdir()
        run(folder, JOB.replace("DIES", str(dies)), "-n", str(workers), "--max-restarts", "2")
        assert (folder / "died").exists() == dies
        lines = lines_of(folder / "lines.jsonl")
        board = event_files.scalars(folder / "board")["loss"]
        assert [line["step"] for line in lines] == [step for step, _ in board]
        found[dies] = ([(line["step"], line["loss"]) for line in lines], board)
    steps = 24 // workers
    assert [step for step, _ in found[False][0]] == list(range(1, steps + 1))
    assert found[True] == found[False]
    assert len(event_files.files(tmp_path / "True/board")) == 1


def test_run_writes_the_metrics_file_of_an_unchanged_script(tmp_path):
    script = re.sub(r"\[train.TensorBoard.*\]", "[]", JOB.replace("DIES", "False"))
    run(tmp_path, script, "-n", "2", "--metrics-file", "out/rank{rank}.jsonl")
    for rank in (0, 1):
        lines = lines_of(tmp_path / f"out/rank{rank}.jsonl")
        assert [(line["step"], line["rank"]) for line in lines] == [(step, rank) for step in range(1, 13)]
    (tmp_path / "other").mkdir()
    run(tmp_path / "other", script, "-n", "2", "--metrics-file", "one.jsonl")
    assert {line["rank"] for line in lines_of(tmp_path / "other/one.jsonl")} == {0}


def test_a_killed_process_leaves_whole_lines_up_to_its_last_checkpoint(tmp_path):
    script = JOB.replace("DIES", "True")
    (tmp_path / "train.py").write_text(script)
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=clean_environment(), timeout=60)
    assert done.returncode == -9
    lines = [line["step"] for line in lines_of(tmp_path / "lines.jsonl")]
    assert lines == list(range(1, len(lines) + 1))
    board = [step for step, _ in event_files.scalars(tmp_path / "board")["loss"]]
    assert board == list(range(1, len(board) + 1))
    assert {6, 7} >= {len(lines), len(board)}  # 6 is saved, to be resumed from
    assert os.listdir(tmp_path / "board")


# ---- The thread that writes --------------------------------------------------------------------------------


class AtStep(train.Callback):
    """Calls `action` behind one step."""

    def __init__(self, step, action):
        super().__init__()
        self.step, self.action = step, action

    def on_train_step_end(self, run_context):
        if run_context.cur_step_num == self.step:
            self.action()


def test_a_step_is_in_the_files_while_the_next_one_takes_long(tmp_path):
    path = tmp_path / "m.jsonl"

    def wait():
        end = time.monotonic() + 20
        while len(lines_of(path)) < 2 or "loss" not in event_files.scalars(tmp_path / "board"):
            assert time.monotonic() < end
            time.sleep(0.02)

    loggers = [train.JsonLines(path), train.TensorBoard(tmp_path / "board")]
    made_model().train(1, data(), [*loggers, AtStep(2, wait)])
    assert len(lines_of(path)) == 3


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_training_that_fails_has_written_its_steps_when_it_ends(tmp_path, error):
    def fail():
        raise error("enough")

    lines, board = train.JsonLines(tmp_path / "m.jsonl"), train.TensorBoard(tmp_path / "board")
    with pytest.raises(error):
        made_model().train(2, data(), [lines, board, AtStep(4, fail)])
    assert [line["step"] for line in lines_of(tmp_path / "m.jsonl")] == [1, 2, 3, 4]
    assert [step for step, _ in event_files.scalars(tmp_path / "board")["loss"]] == [1, 2, 3, 4]


# Of a thread of the script that trains while the main thread ends: no destructor runs, and no training ends.
ENDS_EARLY = """
import sys, threading, time
import numpy
from muster import dataset as ds, nn, train

rows = numpy.zeros((400, 2), numpy.float32)
behind = threading.Event()

class Waits(train.Callback):
    def on_train_step_end(self, run_context):
        if run_context.cur_step_num == 5:
            behind.set()
            time.sleep(60)

def training():
    net = nn.Dense(2, 1)
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    data = ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"]).batch(4)
    model.train(1, data, [train.JsonLines("m.jsonl"), Waits()])

threading.Thread(target=training, daemon=True).start()
behind.wait()
"""


def test_the_end_of_the_interpreter_writes_what_waits(tmp_path):
    (tmp_path / "train.py").write_text(ENDS_EARLY)
    subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, env=clean_environment(), timeout=50, check=True
    )
    assert [line["step"] for line in lines_of(tmp_path / "m.jsonl")] == [1, 2, 3, 4, 5]


# Steps wait in the parent when the child begins.
FORKS = """
import os, sys
import numpy
from muster import dataset as ds, nn, train

class Forks(train.Callback):
    def on_train_step_end(self, run_context):
        if run_context.cur_step_num == 2:
            self.child = os.fork()
            if self.child == 0:
                ENDS
        if run_context.cur_step_num == 3 and self.child:
            print("child:", os.waitpid(self.child, 0)[1], flush=True)

rows = numpy.zeros((400, 2), numpy.float32)
net = nn.Dense(2, 1)
model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
data = ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"]).batch(4)
model.train(1, data, [train.JsonLines("m.jsonl"), train.TensorBoard("board"), Forks()])
"""


@pytest.mark.parametrize("ends", ["os._exit(0)", "sys.exit(0)", "run_context.request_stop()"])
def test_a_forked_child_writes_no_step_of_its_parent(tmp_path, ends):
    (tmp_path / "train.py").write_text(FORKS.replace("ENDS", ends))
    command = [sys.executable, "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=clean_environment(), capture_output=True, timeout=60)
    assert b"child: 0" in done.stdout
    steps = list(range(1, 101))
    assert [line["step"] for line in lines_of(tmp_path / "m.jsonl")] == steps
    assert [step for step, _ in event_files.scalars(tmp_path / "board")["loss"]] == steps


# A file cannot grow beyond 600 bytes.
FULL = """
import resource, numpy
from muster import dataset as ds, nn, train

resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
rows = numpy.zeros((STEPS * 4, 2), numpy.float32)
net = nn.Dense(2, 1)
model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
data = ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"]).batch(4)
try:
    model.train(100000 // STEPS, data, [train.JsonLines("m.jsonl")])
except OSError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize("steps", [10, 100_000])
def test_a_file_that_takes_no_more_ends_the_training_and_is_told_once(tmp_path, steps):
    (tmp_path / "train.py").write_text(FULL.replace("STEPS", str(steps)))
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    told = [line for line in (done.stdout + done.stderr).splitlines() if "m.jsonl" in line]
    assert len(told) == 1
    assert told[0].startswith("refused: ")
    assert "write to" in told[0]


def test_the_last_row_of_a_training_is_written_or_an_error(tmp_path):
    script = FULL.replace("100000 // STEPS", "1").replace("STEPS", "10")
    (tmp_path / "train.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, env=clean_environment(), capture_output=True, timeout=60
    )
    assert b"refused: " in done.stdout
