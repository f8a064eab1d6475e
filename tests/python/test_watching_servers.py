"""What people and programs see of parameter servers, and how a job says that its servers are used wrongly."""

import contextlib
import json
import os
import re
import subprocess
import time

import pytest
from job import PATIENCE, Job, clean_environment
from places import BUILD

MUSTER = str(BUILD / "apps/muster/muster")

TRAINS = """
import os
import numpy as np
import muster
from muster import nn, Tensor

muster.set_ps_context(PS_)
muster.init()
rank, workers = muster.get_rank(), muster.get_group_size()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
muster.set_seed(3)
net = nn.SequentialCell(nn.Embedding(TABLE_), nn.Dense(WIDTH_, 1))
MARKED_
optimizer = nn.Adam(net.trainable_params(), 0.01)
loss_fn = nn.MSELoss()
reducer = nn.DistributedGradReducer(optimizer.parameters)
grad_fn = muster.value_and_grad(lambda ids, y: loss_fn(net(ids), y), None, optimizer.parameters)
for step in range(6):
    if rank == 1 and step == 3 and "PIPE" in os.environ:
        print("blocked", flush=True)
        open(os.environ["PIPE"]).read()  # until somebody writes there
    ids = Tensor(np.arange(8, dtype=np.int32))
    loss, gradients = grad_fn(ids, Tensor(np.ones((8, 1), np.float32)))
    optimizer(reducer(gradients))
print("trained", flush=True)
"""
DEFAULTS = {"PS": "enable_ps=True", "TABLE": "50, 4, where='servers'", "WIDTH": "4", "MARKED": ""}


@contextlib.contextmanager
def job(workers=2, servers=1, variables=None, ps_of_servers=None, **options):
    def script(**own):
        text = TRAINS
        for name, value in {**DEFAULTS, **options, **own}.items():
            text = text.replace(f"{name}_", value)
        return text

    with Job(script(), workers, MS_SERVER_NUM=str(servers), **(variables or {})) as started:
        if ps_of_servers:
            started._script = script(PS=ps_of_servers)
        started.servers = [started.start(f"server {n}", MS_ROLE="MS_PSERVER") for n in range(servers)]
        try:
            yield started
        finally:
            for server in started.servers:
                server.end()


def told(started, *words):
    done = subprocess.run(
        [MUSTER, *words, "--scheduler", f"127.0.0.1:{started.port}"],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_status_metrics_and_doctor_name_the_server_and_who_holds_it_up(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    everything = "net.set_param_ps()"  # or worker 0 would wait in an all_reduce
    with job(variables={"PIPE": str(tmp_path / "pipe")}, MARKED=everything) as started:
        started.workers[1].wait_for_line("blocked")
        deadline = time.monotonic() + PATIENCE
        while True:  # until the heartbeats have told of it
            nodes = json.loads(told(started, "status", "--json"))["nodes"]
            server = next(node for node in nodes if node["role"] == "server")
            if server["serving"] and server["serving"]["waiting_workers"]:
                break
            assert time.monotonic() < deadline, nodes
        rows = {"rows": 8 + 2, "size_bytes": (8 * 4 + 4 + 1) * 12}
        assert server["serving"] == {**rows, "updates": 3, "waiting_workers": 1}
        assert server["awaited"] == 1
        assert "waiting for parameter server 0" in [node["doing"] for node in nodes]
        text = told(started, "status")
        assert "serving 10 rows, 0.0 MiB; 1 worker waits for rank 1" in text
        numbers = told(started, "metrics")
        assert re.search(r'muster_server_rows\{rank="0",host="[^"]+"\} 10\n', numbers)
        assert re.search(r'muster_server_waiting_workers\{rank="0",host="[^"]+"\} 1\n', numbers)
        assert "2 of 2 workers and 1 of 1 servers are here" in told(started, "doctor")
        (tmp_path / "pipe").write_text("go on")
        for process in [*started.everybody(), *started.servers]:
            assert process.wait() == 0, process.output()


def outputs(started, ends_well):
    processes = [*started.workers, *started.servers]
    texts = [process.output() for process in processes]
    statuses = [process.wait() for process in processes]
    assert all((status == 0) == ends_well for status in statuses), "\n".join(texts)
    return "\n".join(texts)


def test_servers_that_the_script_does_not_use_say_so():
    with job(PS="enable_ps=False", TABLE="50, 4") as started:
        assert "this parameter server holds nothing" in outputs(started, True)
    with job(TABLE="50, 4") as started:
        assert "no parameter was marked with set_param_ps" in outputs(started, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"servers": 0}, r"this job has no parameter servers \(MS_SERVER_NUM is 0\)"),
        ({"PS": "enable_ps=False"}, r"set_ps_context\(enable_ps=True\)"),
        ({"TABLE": "50 + rank, 4, where='servers'"}, "differs between workers: '0.embedding_table' with 5"),
        ({"MARKED": "muster.set_seed(rank)"}, "their rules or seeds differ"),
    ],
)
def test_what_is_wrong_is_named(options, message):
    with job(**options) as started:
        texts = [worker.output() for worker in started.workers]
        assert all(worker.wait() != 0 for worker in started.workers), texts
    assert re.search(message, "\n".join(texts))


def test_processes_that_choose_parameter_servers_differently_are_named():
    with job(ps_of_servers="enable_ps=True, staleness=2") as started:
        text = outputs(started, True)
    assert (
        "set_ps_context is 'enable_ps=True, staleness=2' at server 0, 'enable_ps=True, staleness=0' at ranks"
        in text
    )


def test_a_table_that_no_server_has_memory_for_is_told_before_the_first_step():
    large = {"TABLE": "2_000_000_000, 512, where='servers'", "WIDTH": "512"}
    with job(**large) as started:
        text = outputs(started, True)
    assert re.search(
        r"can take 11451\.54 GiB on parameter server 0 .* GiB are left for it: '0.embedding_table' 11451\.54 "
        r"GiB \(2000000000 rows of 6144 bytes on 1 servers\)\. Start more servers",
        text,
    ), text
    with job(variables={"MUSTER_STRICT": "1"}, **large) as started:
        texts = [worker.output() for worker in started.workers]
        assert all(worker.wait() != 0 for worker in started.workers), texts
    assert "(MUSTER_STRICT=1)" in "\n".join(texts) and "trained" not in "\n".join(texts)
