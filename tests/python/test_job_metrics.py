"""`muster metrics` and `muster run --metrics-port`: the numbers of a job in the format of Prometheus."""

import contextlib
import http.client
import json
import pathlib
import re
import shutil
import socket
import subprocess

import pytest
from job import PATIENCE, Job, Process, clean_environment, free_port
from places import BUILD, SEARCH_PATH

MUSTER = str(BUILD / "apps/muster/muster")
WAITS = """
import time
import muster
from muster import nn, train, dataset as ds
import numpy
muster.init()
rows = numpy.ones((8, 2), numpy.float32)
net = nn.Dense(2, 1)
model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(3, ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"]).batch(4))
print("trained", flush=True)
time.sleep(600)
"""


def get(port, path="/metrics", method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read().decode()


def samples_in(text):
    """{(name, rank or ""): value}, by the parser of Prometheus's own client."""
    parser = pytest.importorskip("prometheus_client.parser")
    found = {}
    for family in parser.text_string_to_metric_families(text):
        assert family.documentation
        assert family.type == "gauge"
        for sample in family.samples:
            wanted = sample.labels.get("state") or sample.labels.get("phase") or sample.labels.get("rank", "")
            found.setdefault(sample.name, {})[wanted] = sample.value
    return found


def test_all_ranks_of_a_job_are_numbers(tmp_path):
    with Job(WAITS, 2) as job:
        for worker in job.workers:
            worker.wait_for_line("trained")
        command = [MUSTER, "metrics", "--scheduler", f"127.0.0.1:{job.port}"]
        environment = clean_environment()
        while True:  # until both heartbeats have told of the last step
            printed = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=PATIENCE
            )
            assert printed.returncode == 0, printed.stderr
            found = samples_in(printed.stdout)
            if found.get("muster_process_step") == {"0": 6, "1": 6}:
                break
        assert found["muster_up"] == {"": 1}
        assert found["muster_job_state"]["running"] == 1
        assert sum(found["muster_job_state"].values()) == 1
        assert found["muster_process_up"] == {"0": 1, "1": 1}
        assert set(found["muster_process_loss"]) == {"0", "1"}
        assert found["muster_process_learning_rate"] == {"0": pytest.approx(0.1), "1": pytest.approx(0.1)}
        assert all(size > 1 << 20 for size in found["muster_process_memory_bytes"].values())
        assert found["muster_job_epoch"][""] >= 1
        assert all(0 <= age < 60 for age in found["muster_process_heartbeat_age_seconds"].values())
        port = free_port()
        server = Process("metrics", [*command, "--listen", str(port)], environment)
        try:
            server.wait_for_line(f"http://127.0.0.1:{port}/metrics")
            status, headers, text = get(port)
            assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
            assert samples_in(text)["muster_process_step"] == {"0": 6, "1": 6}
            assert get(port, "/")[0] == 404
            assert get(port, "/../etc/passwd")[0] == 404
            assert get(port, method="POST")[0] == 405
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as flood:
                flood.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 20_000)
                with contextlib.suppress(ConnectionResetError):
                    assert flood.recv(1) == b""  # it is hung up on
            assert get(port)[0] == 200
            for process in job.everybody():
                process.end()
            assert samples_in_until_down(port)["muster_up"] == {"": 0}
        finally:
            server.end()


STEPS = """
import time
import numpy
import muster
from muster import nn
muster.set_context(mode=MODE)
muster.init()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
net = nn.Dense(2, 1)
optimizer = nn.SGD(net.trainable_params(), 0.1)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
rows = muster.Tensor(numpy.ones((4, 2), numpy.float32))
for _ in range(7):
    step(rows, rows[:, :1])
print("trained", flush=True)
time.sleep(600)
"""


def wait_for_steps(job, steps):
    command = [MUSTER, "metrics", "--scheduler", f"127.0.0.1:{job.port}"]
    found = {}
    while found.get("muster_process_step") != steps:
        told = subprocess.run(
            command, env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE
        )
        found = samples_in(told.stdout)


@pytest.mark.parametrize(("mode", "last"), [("graph", 6), ("eager", 7)])
@pytest.mark.parametrize("workers", [1, 2])
def test_steps_of_a_cell_that_a_loop_calls_are_told(workers, mode, last):
    """Of a plan the number of steps before the one that runs."""
    with Job(STEPS.replace("MODE", repr(mode)), workers) as job:
        for worker in job.workers:
            worker.wait_for_line("trained")
        wait_for_steps(job, {str(rank): last for rank in range(workers)})


NO_REDUCER = """
import time
import numpy
import muster
from muster import nn
muster.set_context(mode=MODE)
muster.init()
net = nn.Dense(2, 1)
optimizer = nn.SGD(net.trainable_params(), 0.1)
grad_fn = muster.value_and_grad(lambda x: net(x).mean(), None, net.trainable_params())
for _ in range(7):
    loss, gradients = grad_fn(muster.Tensor(numpy.ones((4, 2), numpy.float32)))
    optimizer(gradients)
print("trained", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_steps_of_a_loop_without_a_reducer_are_those_that_its_optimizer_has_counted(mode):
    """Told before the next run: of seven six."""
    with Job(NO_REDUCER.replace("MODE", repr(mode)), 1) as job:
        job.workers[0].wait_for_line("trained")
        wait_for_steps(job, {"0": 6})


def samples_in_until_down(port):
    while True:
        found = samples_in(get(port)[2])
        if found["muster_up"] == {"": 0}:
            return found


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_promtool_accepts_the_numbers():
    with Job(WAITS, 2) as job:
        for worker in job.workers:
            worker.wait_for_line("trained")
        command = [MUSTER, "metrics", "--scheduler", f"127.0.0.1:{job.port}"]
        text = ""
        while text.count("muster_process_loss{") < 2 or "muster_process_time_share{" not in text:
            told = subprocess.run(
                command, env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE
            )
            assert told.returncode == 0, told.stderr
            text = told.stdout
        checked = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=PATIENCE
        )
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_run_serves_the_numbers_of_its_job(tmp_path):
    (tmp_path / "train.py").write_text(WAITS)
    port = free_port()
    command = [MUSTER, "run", "-n", "2", "--metrics-port", str(port), "train.py"]
    environment = {**clean_environment(), "PATH": SEARCH_PATH}
    process = Process("run", ["env", "-C", str(tmp_path), *command], environment)
    try:
        process.wait_for_line(f"numbers of the job at http://127.0.0.1:{port}/metrics")
        process.wait_for_line("trained")
        process.wait_for_line("trained")
        while samples_in(get(port)[2]).get("muster_process_step") != {"0": 6, "1": 6}:
            pass
    finally:
        process.signal(2)
        process.wait()
    with pytest.raises(ConnectionRefusedError):
        get(port)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--metrics-port", "x"], r"--metrics-port x: 'x' is no port and no HOST:PORT: 9400, 10.0.0.5:9400"),
        (["--preset", "pytorch", "--metrics-port", "9400"], "a job of preset pytorch has no scheduler"),
        (["--preset", "mpi", "--dashboard"], "muster dashboard FOLDER afterwards"),
    ],
)
def test_a_port_that_cannot_serve_is_refused_before_anything_starts(tmp_path, options, told):
    (tmp_path / "train.py").write_text("print('started')\n")
    done = subprocess.run(
        [MUSTER, "run", "-n", "1", *options, "train.py"],
        cwd=tmp_path,
        env={**clean_environment(), "PATH": SEARCH_PATH},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert re.search(told, done.stderr)
    assert "started" not in done.stdout


MINDSPORE = """
import mindspore
from mindspore.communication import init
init()
"""


@pytest.mark.parametrize("option", ["--dashboard", "--metrics-port=127.0.0.1:0"])
def test_a_script_of_mindspores_under_muster_has_a_page_and_numbers(tmp_path, option):
    (tmp_path / "train.py").write_text(MINDSPORE)
    done = subprocess.run(
        [MUSTER, "run", "-n", "1", option, "train.py"],
        cwd=tmp_path,
        env={**clean_environment(), "PATH": SEARCH_PATH},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "preset mindspore" in done.stderr
    assert re.search(r"(page|numbers) of the job at http://127\.0\.0\.1:", done.stderr)


def test_a_port_that_is_taken_is_named(tmp_path):
    (tmp_path / "train.py").write_text("print('started')\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [MUSTER, "run", "-n", "1", "--metrics-port", str(port), "train.py"],
            cwd=tmp_path,
            env={**clean_environment(), "PATH": SEARCH_PATH},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert f"--metrics-port {port}: " in done.stderr
    assert "in use" in done.stderr
    assert "started" not in done.stdout


GRAFANA = pathlib.Path(__file__).parents[2] / "docs/guide/grafana.json"


def labels_in(text):
    """The labels of each metric: of its samples, and where it has none now, nothing."""
    families = {name: set() for name in re.findall(r"^# TYPE (\w+) gauge$", text, re.MULTILINE)}
    for name, inside in re.findall(r"^(\w+)\{(.*)\} \S+$", text, re.MULTILINE):
        families[name] |= set(re.findall(r'(\w+)="', inside))
    return families


def test_the_dashboard_of_grafana_asks_for_what_there_is():
    with Job(WAITS, 2) as job:
        for worker in job.workers:
            worker.wait_for_line("trained")
        command = [MUSTER, "metrics", "--scheduler", f"127.0.0.1:{job.port}"]
        text = subprocess.run(
            command, env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE
        ).stdout
    known = labels_in(text)
    # What has no sample in this job: no rank is slow, nothing was evaluated, and it may be too new for rates.
    for name in [name for name in known if name.startswith("muster_process_")]:
        known[name] |= {"role", "rank", "host"}
    known["muster_job_slow_rank"] |= {"rank", "cause"}
    known["muster_process_metric"].add("name")
    known["muster_process_time_share"].add("what")
    dashboard = json.loads(GRAFANA.read_text())
    asked = set()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            names = re.findall(r"muster_\w+", target["expr"])
            assert names, panel["title"]
            for name in names:
                assert name in known, f"{panel['title']}: there is no {name}"
            asked.update(names)
            labels = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
            labels |= set(re.findall(r'(\w+)="', target["expr"])) - {"instance"}
            assert labels <= known[names[0]], f"{panel['title']}: {labels - known[names[0]]}"
    assert "muster_process_loss" in asked and "muster_job_slow_rank" in asked
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
