"""A job with its page: for the tests of the page, over HTTP and in a browser."""

import contextlib
import http.client
import json
import subprocess

from job import PATIENCE, Process, clean_environment
from places import BUILD, SEARCH_PATH

MUSTER = str(BUILD / "apps/muster/muster")

# Trains until the file `end` is there. Worker 1 dies where `die` is, and its data is slow where `slow` is.
TRAINS = """
import os, pathlib, signal, time
import numpy
import muster
from muster import nn, train, dataset as ds

muster.init()
muster.set_seed(1)

class Follows(train.Callback):
    def on_train_step_end(self, run_context):
        step = run_context.original_args().cur_step_num
        if step == 1:
            print("first step", flush=True)
        if muster.get_rank() == 1 and pathlib.Path("die").exists():
            pathlib.Path("die").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        ends = muster.Tensor([float(pathlib.Path("end").exists())])
        if muster.ops.all_reduce(ends, "max").asnumpy()[0]:
            run_context.request_stop()

def read(x):
    time.sleep(0.2 if muster.get_rank() == 1 and pathlib.Path("slow").exists() else 0.002)
    return x

rows = numpy.random.default_rng(1).normal(size=(64, 8)).astype(numpy.float32)
data = ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"], shuffle=False).batch(4).map(read, "x")
net = nn.Dense(8, 1)
model = train.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.01), {"mae"})
model.fit(100_000, data, data, valid_frequency=20, callbacks=[Follows()])
print("trained", flush=True)
"""


@contextlib.contextmanager
def shown_job(folder, *options, workers=2):
    """`muster run --dashboard` in `folder`; its process and the port of the page."""
    (folder / "train.py").write_text(TRAINS)
    command = [MUSTER, "run", "-n", str(workers), "--dashboard", "--log-dir", "logs", *options, "train.py"]
    environment = {**clean_environment(), "PATH": SEARCH_PATH}
    process = Process("run", ["env", "-C", str(folder), *command], environment)
    try:
        port = int(process.wait_for_line(r"page of the job at http://127\.0\.0\.1:(\d+)/").group(1))
        yield process, port
    finally:
        if process._popen.poll() is None:
            process.signal(2)
        process.wait()


# Trains until it is told to stop: what the page's buttons ask is heard by it.
ACTS = """
import os, pathlib, time
import numpy
import muster
from muster import nn, train, dataset as ds

muster.init()
muster.set_seed(1)
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)

class Counts(train.Callback):
    def on_train_step_end(self, run_context):
        time.sleep(0.01)
        self.step = run_context.original_args().cur_step_num
        if self.step == 1:
            print("first step", flush=True)
            print("<b id=markup>not bold</b> \\x1b[31mred\\x1b[0m", flush=True)

rows = numpy.random.default_rng(1).normal(size=(64, 8)).astype(numpy.float32)
data = ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"], shuffle=False).batch(4)
net = nn.Dense(8, 1)
counts = Counts()
model = train.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.01))
model.train(100_000, data, callbacks=[counts])
print("stopped behind", counts.step, flush=True)
if "TWICE" in os.environ:
    model.train(1, data, callbacks=[counts])
    print("again behind", counts.step, flush=True)
"""


@contextlib.contextmanager
def acting_job(folder, *options, workers=2, where="", scheme="http", **variables):
    """`muster run --dashboard`; its process, the port of the page and the token of its link."""
    (folder / "train.py").write_text(ACTS)
    page = "--dashboard" + where
    command = [MUSTER, "run", "-n", str(workers), page, "--log-dir", "logs", *options, "train.py"]
    environment = {**clean_environment(), "PATH": SEARCH_PATH, **variables}
    process = Process("run", ["env", "-C", str(folder), *command], environment)
    try:
        match = process.wait_for_line(
            rf"page of the job at {scheme}://[^ ]*:(\d+)/(?:#token=([0-9a-f]{{32}}))?$"
        )
        yield process, int(match.group(1)), match.group(2)
    finally:
        if process._popen.poll() is None:
            process.signal(2)
        process.wait()


# Two steps of two workers. Arguments: placed or whole, and model, eager or by hand.


# Four workers share a step: its operators over a mesh, or the updates (Zero).
MESH = """
import sys
import numpy
import muster
from muster import nn, ops, parallel, train, dataset as ds

muster.init()
muster.set_seed(1)
if sys.argv[1] == "mesh":
    parallel.mesh(data=2, model=2)
else:
    muster.set_auto_parallel_context(
        parallel_mode="data_parallel", gradients_mean=True, zero=parallel.Zero(3, threshold_bytes=0)
    )

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(12, 16), nn.Dense(16, 4)
        if sys.argv[1] == "mesh":
            parallel.shard(self.fc1.weight, ("model", None))
            parallel.shard(self.fc2.weight, (None, "model"))

    def construct(self, x):
        x = parallel.shard(x, ("data", None)) if sys.argv[1] == "mesh" else x
        return self.fc2(ops.gelu(self.fc1(x)))

rows = numpy.random.default_rng(1).normal(size=(32, 12)).astype(numpy.float32)
data = ds.NumpySlicesDataset((rows, (rows[:, 0] > 0).astype(numpy.int32)), ["x", "y"], shuffle=False).batch(8)
net = Net()
train.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01)).train(1, data)
"""


def run_mesh(folder, kind):
    """The folder of a run of four workers."""
    (folder / "train.py").write_text(MESH)
    command = ["env", "-C", str(folder), MUSTER, "run", "-n", "4", "--log-dir", "logs", "train.py", kind]
    environment = {**clean_environment(), "PATH": SEARCH_PATH}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "logs"


NETWORKS = """
import sys
import numpy
import muster
from muster import nn, train, dataset as ds

network, loop = sys.argv[1:]
muster.init()
muster.set_seed(1)
if loop == "eager":
    muster.set_context(mode="eager")
net = nn.SequentialCell(nn.Dense(8, 4), nn.ReLU(), nn.Dense(4, 1))
if network == "placed":
    net[0].place("MS_WORKER", 0)
    net[2].place("MS_WORKER", 1)
rows = numpy.random.default_rng(1).normal(size=(8, 8)).astype(numpy.float32)
data = ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"], shuffle=False).batch(4)
optimizer = nn.Adam(net.trainable_params(), 0.01)
if loop == "by hand":
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    for x, y in data.create_tuple_iterator():
        step(x, y)
else:
    model = train.Model(net, nn.MSELoss(), optimizer, {"mae"})
    model.eval(data)
    model.train(1, data)
"""


def keep_run(folder, losses, *, began=1_700_000_000.0, ranks=2, exit_code=0, metrics=None, servers=0):
    """A folder as `muster run` keeps it, of a made-up run: a state each second, each 10 steps further."""
    folder.mkdir(parents=True)
    described = {"version": 1, "script": "train.py", "began": began, "ranks": ranks}
    (folder / "run.json").write_text(json.dumps(described))
    with (folder / "history.jsonl").open("w") as history:
        for i, loss in enumerate(losses):
            state = state_of(began + i, 10 * i, loss, ranks, servers, (metrics or {}) if i > 1 else {})
            history.write(json.dumps({"state": state}) + "\n")
        if exit_code is not None:
            end = {"exit_code": exit_code, "signal": 0, "time": began + len(losses)}
            history.write(json.dumps({"end": end}) + "\n")
    (folder / "worker_0.log").write_text("muster[worker 0] info: made up\n")


def line_of_rank(folder, rank, steps, host="a", **changed):
    """A rank's file of single steps, made up: by step when it began; it took a microsecond."""
    (folder / "timeline").mkdir(parents=True, exist_ok=True)
    base = 1_700_000_000_000_000_000
    line = {"phases": [["reading_data", 0, 100], ["computing", 100, 1000]]}
    line |= {"parts": [["forward", 100, 200], ["backward", 200, 400], ["update", 900, 1000]]}
    line |= {"calls": [["all_reduce", "9f", 7, 300 + 100 * rank, 900]]} | changed
    lines = [
        {"step": step, "begin_ns": base + begin, "end_ns": base + begin + 1000, **line}
        for step, begin in steps.items()
    ]
    text = json.dumps({"rank": rank, "host": host, "lines": lines})
    (folder / f"timeline/worker_{rank}.json").write_text(text)


def state_of(time, step, loss, ranks, servers, metrics):
    point = {"time": time, "step": step, "loss": loss, "learning_rate": 0.1, "step_seconds": 0.1}
    point |= {"samples": 40.0, "memory_bytes": 1e8} | {f"metric/{name}": metrics[name] for name in metrics}
    rows = []
    for rank in range(ranks + servers):
        role, number = ("worker", rank) if rank < ranks else ("server", rank - ranks)
        shares = [90 - rank % 50, 0, 1, 1, 8 + rank % 50, 0, 0, 0]  # waiting, ..., computing
        row = [role, number, f"{role}-{number}", "127.0.0.1", 100 + rank, step, 1, "computing", "computing"]
        rows.append([*row, False, 7, True, False, 0.1, loss, 10**8, 1.0, 0.1, 20.0, shares])
    state = {"time": time, "job": "00000000000000ab", "scheduler": "127.0.0.1:1", "state": "running"}
    state |= {"text": "", "epoch": 1, "recovers": False, "age_s": step / 10, "without_step_s": 0.0}
    state |= {"workers": ranks, "servers": servers, "slow": [], "metrics": metrics}
    return state | {"point": point, "ranks": rows}


@contextlib.contextmanager
def kept_page(folder):
    """The port of `muster dashboard FOLDER`."""
    server = Process("dashboard", [MUSTER, "dashboard", str(folder)], clean_environment())
    try:
        yield int(server.wait_for_line(r"http://127\.0\.0\.1:(\d+)/").group(1))
    finally:
        server.end()


@contextlib.contextmanager
def run_until_end(name, command, environment):
    process = Process(name, command, environment)
    try:
        yield process
    finally:
        process.end()


def ask(port, path, method="GET", **headers):
    """Status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(
        method, path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read().decode()


class Events:
    """The stream of a page, event by event."""

    def __init__(self, port):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._connection.request("GET", "/events")
        self.answer = self._connection.getresponse()

    def __iter__(self):
        name = None
        while line := self.answer.readline().decode():
            if line.startswith("event: "):
                name = line[7:].strip()
            elif line.startswith("data: "):
                yield name, json.loads(line[6:])

    def wait_for(self, wanted, matches=lambda told: True):
        for name, told in self:
            if name == wanted and matches(told):
                return told
        raise AssertionError(f"the stream ended without '{wanted}'")


def rows_of(hello, state):
    return [dict(zip(hello["columns"], row, strict=True)) for row in state["ranks"]]


def end_job(folder):
    (folder / "end").touch()
