"""Jobs whose workers are crowded by unauthorized peers: connections to their data ports that say nothing."""

import contextlib
import resource
import socket
from pathlib import Path

import pytest
from job import PATIENCE, Job
from tls import Tree

CROWD = 1100  # more than the usual soft limit of open files

# Trains until the file exists, in two parts: how long a step takes in each.
SCRIPT = """
import os, statistics, sys, time
import numpy as np
import muster as ms
from muster import nn

def take_all_files():
    taken = []
    try:
        while True:
            taken.append(open("/dev/null"))
    except OSError:
        return taken

{before_init}
ms.init()
ms.set_seed(1)
net = nn.Dense(64, 64)
loss_fn = nn.MSELoss()
optimizer = nn.SGD(net.trainable_params(), 1e-2)
data = ms.Tensor(np.ones((4, 64), np.float32))
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
reducer = nn.DistributedGradReducer(optimizer.parameters)


def steps_until(path):
    times = []
    while True:
        begin = time.monotonic()
        _, grads = grad_fn(data, data)
        optimizer(reducer(grads))
        times.append(time.monotonic() - begin)
        seen = np.full(1, float(os.path.exists(path)), np.float32)
        if ms.ops.all_reduce(ms.Tensor(seen)).asnumpy()[0] > 0:
            return statistics.median(times) * 1000

print("formed", flush=True)
{after_init}
quiet = steps_until("{folder}/crowded")
print("goes on", flush=True)
crowded = steps_until("{folder}/gone")
print(f"step {{quiet:.3f}} ms, among unauthorized peers {{crowded:.3f}} ms", flush=True)
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def as_many_files_as_allowed():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def security_of(tree, kind):
    if kind == "certificates":
        return tree.variables()
    path = tree.folder / "token"
    path.write_text("0123456789abcdef0123456789abcdef")
    path.chmod(0o600)
    return {"MUSTER_TOKEN_FILE": str(path)}


def limited(limit):
    """Command prefixes that put two workers on hosts of their own, with few files to open."""
    return [
        ["env", f"MUSTER_HOST_KEY=host-{rank}", "sh", "-c", f'ulimit {limit} && exec "$@"', "sh"]
        for rank in range(2)
    ]


def listening_ports(pid):
    """Of a process, by the inodes of its sockets."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(entry.readlink().name)
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [
        int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes
    ]


class Crowd:
    """Silent connections to all ports of a process; nobody reads what they are told."""

    def __init__(self):
        self._sockets = []

    def visit(self, ports):
        for port in ports:
            with contextlib.suppress(ConnectionRefusedError):  # the job has ended: its output says more
                for _ in range(CROWD):
                    self._sockets.append(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))

    def leave(self):
        for each in self._sockets:
            each.close()
        self._sockets = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()


def assert_ends_well(job):
    codes = [process.wait() for process in job.everybody()]
    assert codes == [0, 0, 0], "\n".join(process.output() for process in job.everybody())


@pytest.mark.parametrize("limit", ["-Sn 1024", "-n 256"])
@pytest.mark.parametrize("kind", ["token", "certificates"])
def test_a_crowd_of_unauthorized_peers_ends_no_training(tree, tmp_path, kind, limit):
    script = SCRIPT.format(folder=tmp_path, before_init="", after_init="")
    with Job(script, 2, hosts=limited(limit), **security_of(tree, kind)) as job, Crowd() as crowd:
        for worker in job.workers:
            worker.wait_for_line("formed")
        (tmp_path / "crowded").touch()
        for worker in job.workers:
            worker.wait_for_line("goes on")
        ports = listening_ports(job.workers[0].pid)
        assert ports
        for _ in range(3):
            crowd.visit(ports)
        (tmp_path / "gone").touch()
        step = job.workers[0].wait_for_line(r"step \S+ ms, among unauthorized peers (\S+) ms")
        assert_ends_well(job)
        # Those who say nothing are dropped after five seconds: a step that waited for one would take that.
        assert float(step[1]) < 1000


@pytest.mark.parametrize("limit", ["-Sn 1024", "-n 256"])
@pytest.mark.parametrize("kind", ["token", "certificates"])
def test_a_crowd_of_unauthorized_peers_keeps_no_group_from_forming(tree, tmp_path, kind, limit):
    script = SCRIPT.format(folder=tmp_path, before_init="", after_init="")
    for name in ("crowded", "gone"):
        (tmp_path / name).touch()
    with Job(script, 2, hosts=limited(limit), started=1, **security_of(tree, kind)) as job, Crowd() as crowd:
        job.scheduler.wait_for_line("1 of 2 workers")
        crowd.visit(listening_ports(job.workers[0].pid))
        job.start_worker()
        for worker in job.workers:
            worker.wait_for_line("formed")
        assert_ends_well(job)


def test_a_script_that_takes_all_files_is_told_so_before_init_and_trains_on_after_it(tree, tmp_path):
    script = SCRIPT.format(folder=tmp_path, before_init="taken = take_all_files()", after_init="")
    with Job(script, 2, hosts=limited("-n 256"), **security_of(tree, "token")) as job:
        for worker in job.workers:
            assert worker.wait() != 0
            assert "all 256 that this process may have are open; ulimit -n" in worker.output()
    script = SCRIPT.format(folder=tmp_path, before_init="", after_init="taken = take_all_files()")
    with Job(script, 2, hosts=limited("-n 256"), **security_of(tree, "token")) as job, Crowd() as crowd:
        for worker in job.workers:
            worker.wait_for_line("formed")
        (tmp_path / "crowded").touch()
        for worker in job.workers:
            worker.wait_for_line("goes on")
        crowd.visit(listening_ports(job.workers[0].pid))
        (tmp_path / "gone").touch()
        assert_ends_well(job)
