"""Hosts of the tests: network namespaces joined by cables (needs root, Linux and `ip`)."""

import contextlib
import os
import shutil
import subprocess
import sys

import pytest


def can_make_namespaces():
    """Root may be too little: many containers forbid it."""
    if shutil.which("ip") is None:
        return False
    made = subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True)
    return made.returncode == 0


needs_namespaces = pytest.mark.skipif(
    not can_make_namespaces(), reason="`ip` is missing, or network namespaces are not allowed here"
)


@contextlib.contextmanager
def two_hosts_joined():
    """Commands that run another in host A and in host B.

    They are joined by a "cable" (10.77.0.1 and .2, fd77::1 and ::2) and by a "spare" one (10.78.0.1 and .2).
    """
    hosts = []  # a namespace lives as long as the process that holds it

    def inside(host):
        return ["nsenter", "--net", f"--target={host.pid}"]

    def lay(cable, number):
        ends = [f"mst{os.getpid()}{side}{number}" for side in "ab"]
        subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
        for last, (host, end) in enumerate(zip(hosts, ends, strict=True), start=1):
            subprocess.run(["ip", "link", "set", end, "netns", str(host.pid), "name", cable], check=True)
            for words in (
                f"addr add 10.{number}.0.{last}/24 dev {cable}",
                f"addr add fd{number}::{last}/64 dev {cable} nodad",
                f"link set {cable} up",
                "link set lo up",
            ):
                subprocess.run([*inside(host), "ip", *words.split()], check=True)

    try:
        for _ in range(2):
            holder = ["unshare", "--net", sys.executable, "-c", "print(flush=True); input()"]
            hosts.append(subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            hosts[-1].stdout.readline()  # the namespace is there
        lay("cable", 77)
        lay("spare", 78)
        yield [inside(host) for host in hosts]
    finally:
        for host in hosts:
            host.kill()
            host.wait()


TRAIN = """
import hashlib
import muster as ms
from muster import nn

ms.init()
ms.set_seed(1)
net = nn.SequentialCell(nn.Dense(64, 300), nn.Tanh(), nn.Dense(300, 10))
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.Momentum(net.trainable_params(), 1e-2, 0.9)
rank = ms.get_rank()
data = ms.Tensor([[((7 * i + 3 * j + rank) % 11) / 11 for j in range(64)] for i in range(8)], ms.float32)
label = ms.Tensor([(i + rank) % 10 for i in range(8)], ms.int32)
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
reducer = nn.DistributedGradReducer(optimizer.parameters)
for step in range(STEPS):
    loss, grads = grad_fn(data, label)
    optimizer(reducer(grads))
    if step == 0:
        print("first step")
bits = b"".join(parameter.asnumpy().tobytes() for parameter in net.trainable_params())
print("parameters", hashlib.sha256(bits).hexdigest(), "local size", ms.get_local_rank_size())
"""


def result(job):
    """What all workers print in the end: the hash of their parameters, equal on all of them."""
    hashes = set()
    for worker in job.workers:
        assert worker.wait() == 0, worker.output()
        hashes.add(worker.wait_for_line(r"parameters (\w+)")[1])
    assert job.scheduler.wait() == 0, job.scheduler.output()
    assert len(hashes) == 1
    return hashes.pop()


def _reset_connections_between_workers(host, job):
    """As a firewall that restarts does; how many there were."""
    filters = f"state established dst 10.77.0.2 sport != :{job.port} dport != :{job.port}"
    killed = subprocess.run(
        [*host, "ss", "-HK", "-t", *filters.split()], capture_output=True, text=True, check=True
    )
    return len(killed.stdout.splitlines())


def break_connections_between_workers(host, job):
    """Several times; returns when both sides have said that theirs were made again."""
    if sum(_reset_connections_between_workers(host, job) > 0 for _ in range(5)) == 0:
        pytest.skip("this kernel resets no connections for `ss -K`")
    for worker in job.workers:
        worker.wait_for_line(r"the connection to rank \d .* was made again after")
