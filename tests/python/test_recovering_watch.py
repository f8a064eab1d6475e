"""What people see of a job that recovers: `muster status` while a worker is missing, and who is slow then."""

import json
import os
import signal
import subprocess
import time

from job import PATIENCE, Job
from places import BUILD

PROGRAM = BUILD / "apps/muster/muster"

SCRIPT = """
import os
import numpy as np
import muster as ms
from muster import nn, train
from muster.dataset import GeneratorDataset

ms.init()
ms.set_seed(1)
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
rank = ms.get_rank()

class Rows:
    def __len__(self):
        return 40

    def __getitem__(self, i):
        if rank == 1 and i == int(os.environ["BLOCKS_AT"]):
            print("blocked", flush=True)
            open(os.environ["PIPE"]).read()  # until somebody writes there
        return np.ones(4, np.float32), np.int32(1)

net = nn.Dense(4, 2)
model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 1e-2))
model.train(1, GeneratorDataset(Rows(), ["data", "label"], shuffle=False).batch(1))
"""


def status_when(job, is_it):
    """What `muster status` tells as soon as `is_it` holds of it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        words = [str(PROGRAM), "status", "--scheduler", f"127.0.0.1:{job.port}", "--json"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
        if is_it(told := json.loads(done.stdout)):
            return told
    raise AssertionError(done.stdout)


def test_status_names_the_missing_worker_and_everybody_the_slow_one(tmp_path):
    for name in ("first life", "second life"):
        os.mkfifo(tmp_path / name)
    variables = {
        "MS_ENABLE_RECOVERY": "1",
        "MS_RECOVERY_PATH": str(tmp_path / "recovery"),
        "MUSTER_STUCK_LIMIT": "3",
    }
    with Job(SCRIPT, 2, PIPE=str(tmp_path / "first life"), BLOCKS_AT="20", **variables) as job:
        job.workers[1].wait_for_line("blocked")
        # The limit holds behind the first steps, and the scheduler knows of steps by heartbeats.
        told = status_when(job, lambda told: any(node.get("step") for node in told["nodes"]))
        assert told["state"] == "running" and told["epoch"] == 1
        job.workers[1].signal(signal.SIGKILL)
        told = status_when(job, lambda told: told["state"] == "recovering")
        assert "epoch 2: waiting for node 1 (" in told["text"]
        assert "start" in told["text"] and "MS_NODE_ID=1" in told["text"]
        job.workers[1].wait()
        # Exactly where the first life ended: no step before is made again.
        again = {"PIPE": str(tmp_path / "second life"), "BLOCKS_AT": "20"}
        job.workers[1] = job.start("worker 1 again", MS_ROLE="MS_WORKER", MS_NODE_ID="1", **again)
        told = status_when(job, lambda told: told["state"] == "running")
        assert told["epoch"] == 2
        assert [node["node_id"] for node in told["nodes"]] == ["0", "1"]
        # The first steps behind a recovery may take twice as long as the first steps of all have taken, and
        # those include the start of two Pythons on a busy machine.
        for process in job.everybody():
            process.wait_for_line(r"rank 1: in data loading.*; rank 0: in all_\w+ \d+", patience=5 * PATIENCE)
        (tmp_path / "second life").write_text("go on")
        for process in job.everybody():
            assert process.wait() == 0, process.output()
