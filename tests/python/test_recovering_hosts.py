"""Jobs that recover, over several hosts (needs root, Linux and `ip`)."""

import contextlib
import os
import subprocess

import pytest
from hosts import needs_namespaces, result, two_hosts_joined
from job import Job

SCRIPT = """
import hashlib
import os
import numpy as np
import muster as ms
from muster import nn, train
from muster.dataset import NumpySlicesDataset

ms.init()
ms.set_seed(1)
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
rank = ms.get_rank()
random = np.random.default_rng(rank)
rows = random.standard_normal((500, 16)).astype(np.float32), random.integers(0, 3, 500).astype(np.int32)
data = NumpySlicesDataset(rows, ["x", "label"], shuffle=True).batch(1)

class Says(train.Callback):
    def on_train_step_end(self, context):
        if context.original_args().cur_step_num == 50:
            print("under way", flush=True)
            os.read(os.open(os.environ["GATE"], os.O_RDONLY), 1)

net = nn.SequentialCell(nn.Dense(16, 64), nn.Tanh(), nn.Dense(64, 3))
model = train.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 1e-2, 0.9))
model.train(8, data, Says())
bits = b"".join(parameter.asnumpy().tobytes() for parameter in net.trainable_params())
print("parameters", hashlib.sha256(bits).hexdigest())
"""


@pytest.fixture
def two_hosts():
    with two_hosts_joined() as hosts:
        yield hosts


@pytest.fixture
def gate(tmp_path):
    """A pipe at which workers wait: a training of 4,000 steps may be shorter than the start of `ip`."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    with contextlib.closing(Gate(path)) as gate:
        yield gate


class Gate:
    def __init__(self, path):
        self.path = path
        self._pipe = os.open(path, os.O_RDWR)

    def open(self):
        """Lets through who waits, and who comes again after a recovery."""
        os.write(self._pipe, b"x" * 100)

    def close(self):
        os.close(self._pipe)


def start(hosts, recovery, gate):
    return Job(
        SCRIPT,
        2,
        hosts=hosts,
        MS_SCHED_HOST="10.77.0.1",
        MS_NODE_TIMEOUT="2",
        MS_TOPO_TIMEOUT="60",
        MS_ENABLE_RECOVERY="1",
        MS_RECOVERY_PATH=str(recovery),
        GATE=str(gate.path),
    )


OFF_AND_ON = ("ip link set cable down", "ip link set cable up")
# A neighbour that nobody is: what this host sends there is lost, and what comes from there arrives.
NOBODY = "lladdr 02:00:00:00:00:09 dev cable nud permanent"


def mute(other):
    return f"ip neighbour replace {other} {NOBODY}", f"ip neighbour del {other} dev cable"


@pytest.mark.parametrize(
    ("host", "break_and_mend"),
    [(1, OFF_AND_ON), (1, mute("10.77.0.1")), (0, mute("10.77.0.2"))],
    ids=["the cable is off", "its words are lost", "it hears nothing"],
)
@needs_namespaces
def test_a_host_that_was_given_up_comes_back_and_the_bits_are_the_same(
    two_hosts, tmp_path, gate, host, break_and_mend
):
    break_it, mend_it = break_and_mend
    with start(two_hosts, tmp_path / "broken", gate) as job:
        for worker in job.workers:
            worker.wait_for_line("under way")
        subprocess.run([*two_hosts[host], *break_it.split()], check=True)
        gate.open()
        job.scheduler.wait_for_line(r"no heartbeat came for 2 s \(MS_NODE_TIMEOUT\)")
        job.workers[0].wait_for_line("epoch 2: waiting for node 1")
        subprocess.run([*two_hosts[host], *mend_it.split()], check=True)
        broken = result(job)
        assert "epoch 2: all are there again" in job.scheduler.output()
    with start(two_hosts, tmp_path / "unbroken", gate) as job:
        assert result(job) == broken
