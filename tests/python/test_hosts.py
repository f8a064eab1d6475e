"""One job over several hosts, which are network namespaces joined by a cable (needs root, Linux and `ip`)."""

import os
import shutil
import subprocess
import sys
import time

import pytest
from job import Job, kill, seconds_until_ended


def can_make_namespaces():
    """Root may be too little: many containers forbid it."""
    if shutil.which("ip") is None:
        return False
    made = subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True)
    return made.returncode == 0


needs_namespaces = pytest.mark.skipif(
    not can_make_namespaces(), reason="`ip` is missing, or network namespaces are not allowed here"
)

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


@pytest.fixture
def two_hosts():
    """Commands that run another in host A (10.77.0.1) and in host B (10.77.0.2)."""
    cable = [f"mst{os.getpid()}a", f"mst{os.getpid()}b"]
    hosts = []  # a namespace lives as long as the process that holds it

    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    def inside(host):
        return ["nsenter", "--net", f"--target={host.pid}"]

    try:
        for _ in cable:
            holder = ["unshare", "--net", sys.executable, "-c", "print(flush=True); input()"]
            hosts.append(subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            hosts[-1].stdout.readline()  # the namespace is there
        ip("link", "add", cable[0], "type", "veth", "peer", "name", cable[1])
        for number, (host, end) in enumerate(zip(hosts, cable, strict=True), start=1):
            ip("link", "set", end, "netns", str(host.pid), "name", "cable")
            for words in (f"addr add 10.77.0.{number}/24 dev cable", "link set cable up", "link set lo up"):
                subprocess.run([*inside(host), "ip", *words.split()], check=True)
        yield [inside(host) for host in hosts]
    finally:
        for host in hosts:
            host.kill()
            host.wait()


def result(job):
    """What all workers print in the end: the hash of their parameters, equal on all of them."""
    hashes = set()
    for worker in job.workers:
        assert worker.wait() == 0, worker.output()
        hashes.add(worker.wait_for_line(r"parameters (\w+)")[1])
    assert job.scheduler.wait() == 0, job.scheduler.output()
    assert len(hashes) == 1
    return hashes.pop()


@needs_namespaces
def test_the_bits_do_not_depend_on_how_ranks_lie_over_hosts(two_hosts):
    script = TRAIN.replace("STEPS", "20")
    a, b = two_hosts
    with Job(script, workers=4) as job:
        on_one_host = result(job)
    with Job(script, workers=4, hosts=[a, b, a, b], MS_SCHED_HOST="10.77.0.1") as job:
        assert result(job) == on_one_host
        assert "local size 2" in job.workers[0].output()
    with Job(script, workers=4, MUSTER_TRANSPORT="tcp") as job:
        assert result(job) == on_one_host
        assert "local size 4" in job.workers[0].output(), "they are on one host, though they share no memory"


@needs_namespaces
def test_a_death_on_one_host_ends_the_processes_of_the_other(two_hosts):
    a, b = two_hosts
    with Job(TRAIN.replace("STEPS", "10**9"), workers=2, hosts=[a, b], MS_SCHED_HOST="10.77.0.1") as job:
        for worker in job.workers:
            worker.wait_for_line("first step")
        begin = kill(job.workers[1])
        others = [job.scheduler, job.workers[0]]
        assert seconds_until_ended(others, begin) < 4
        for process in others:
            assert process.wait() != 0
            assert "worker 1" in process.output()


@needs_namespaces
def test_a_host_that_is_cut_off_ends_the_job_after_the_node_timeout(two_hosts):
    a, b = two_hosts
    script = TRAIN.replace("STEPS", "10**9")
    with Job(script, workers=2, hosts=[a, b], MS_SCHED_HOST="10.77.0.1", MS_NODE_TIMEOUT="1") as job:
        for worker in job.workers:
            worker.wait_for_line("first step")
        begin = time.monotonic()
        subprocess.run([*b, "ip", "link", "set", "cable", "down"], check=True)
        assert seconds_until_ended(job.everybody(), begin) < 2 * (1 + 2)
        assert [process.wait() == 0 for process in job.everybody()] == [False, False, False]
        assert "worker 1" in job.workers[0].output()
        assert "scheduler" in job.workers[1].output()
