"""A job with its page: for the tests of the page, over HTTP and in a browser."""

import contextlib
import http.client
import json

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
def acting_job(folder, *options, workers=2, where="", **variables):
    """`muster run --dashboard`; its process, the port of the page and the token of its link."""
    (folder / "train.py").write_text(ACTS)
    page = "--dashboard" + where
    command = [MUSTER, "run", "-n", str(workers), page, "--log-dir", "logs", *options, "train.py"]
    environment = {**clean_environment(), "PATH": SEARCH_PATH, **variables}
    process = Process("run", ["env", "-C", str(folder), *command], environment)
    try:
        match = process.wait_for_line(r"page of the job at http://[^ ]*:(\d+)/(?:#token=([0-9a-f]{32}))?$")
        yield process, int(match.group(1)), match.group(2)
    finally:
        if process._popen.poll() is None:
            process.signal(2)
        process.wait()


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
