"""One job over several hosts, which are network namespaces joined by a cable (needs root, Linux and `ip`)."""

import re
import subprocess
import time

import pytest
from hosts import (
    TRAIN,
    break_connections_between_workers,
    needs_namespaces,
    result,
    two_hosts_joined,
)
from job import Job, kill, seconds_until_ended


@pytest.fixture
def two_hosts():
    """Commands that run another in host A (10.77.0.1) and in host B (10.77.0.2)."""
    with two_hosts_joined() as hosts:
        yield hosts


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


def in_job(hosts, steps, **variables):
    return Job(TRAIN.replace("STEPS", str(steps)), workers=len(hosts), hosts=hosts, **variables)


@needs_namespaces
def test_a_job_meets_over_ipv6(two_hosts):
    with in_job(two_hosts, 5, MS_SCHED_HOST="10.77.0.1") as job:
        over_ipv4 = result(job)
    with in_job(two_hosts, 5, MS_SCHED_HOST="fd77::1") as job:
        assert result(job) == over_ipv4


def received_bytes(host, interface):
    shown = subprocess.run(
        [*host, "ip", "-s", "link", "show", interface], capture_output=True, text=True, check=True
    )
    return int(re.search(r"RX:.*\n\s*(\d+)", shown.stdout)[1])


@needs_namespaces
def test_tensors_go_to_the_interface_that_ms_worker_ip_names(two_hosts):
    a, b = two_hosts
    hosts = [[*a, "env", "MS_WORKER_IP=10.78.0.1"], [*b, "env", "MS_WORKER_IP=10.78.0.2"]]
    before = received_bytes(b, "spare")
    with in_job(hosts, 20, MS_SCHED_HOST="10.77.0.1") as job:
        result(job)
    of_a_step = 4 * 64 * 300  # of the largest parameter's gradient
    assert received_bytes(b, "spare") - before > 20 * of_a_step / 2
    assert received_bytes(b, "cable") < of_a_step, "the scheduler's words are few"


def wait_until_words_are_lost(hosts):
    """Until something that one of them wanted to send half a second ago has not arrived."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for host in hosts:
            shown = subprocess.run([*host, "ss", "-Htin"], capture_output=True, text=True, check=True)
            # A line with the bytes that are not acknowledged yet, and one with times.
            for queued, last_sent in re.findall(
                r"^ESTAB +\d+ +(\d+) .*\n.*lastsnd:(\d+)", shown.stdout, re.MULTILINE
            ):
                if int(queued) > 0 and int(last_sent) > 500:
                    return
    raise AssertionError(f"nothing was lost:\n{shown.stdout}")


@needs_namespaces
def test_a_host_that_is_cut_off_and_comes_back_in_time_loses_nothing(two_hosts):
    _, b = two_hosts
    with in_job(two_hosts, 2000, MS_SCHED_HOST="10.77.0.1") as job:
        undisturbed = result(job)
    with in_job(two_hosts, 2000, MS_SCHED_HOST="10.77.0.1", MS_NODE_TIMEOUT="30") as job:
        for worker in job.workers:
            worker.wait_for_line("first step")
        subprocess.run([*b, "ip", "link", "set", "cable", "down"], check=True)
        wait_until_words_are_lost(two_hosts)
        subprocess.run([*b, "ip", "link", "set", "cable", "up"], check=True)
        assert result(job) == undisturbed


# Without recovery a job ends where a connection between workers is lost.
@needs_namespaces
def test_connections_between_workers_that_are_reset_are_made_again_and_no_bit_changes(two_hosts):
    a, _ = two_hosts
    with in_job(two_hosts, 2000, MS_SCHED_HOST="10.77.0.1") as job:
        undisturbed = result(job)
    with in_job(two_hosts, 2000, MS_SCHED_HOST="10.77.0.1") as job:
        for worker in job.workers:
            worker.wait_for_line("first step")
        break_connections_between_workers(a, job)
        assert result(job) == undisturbed


@needs_namespaces
def test_a_slow_cable_changes_no_bit(two_hosts):
    with in_job(two_hosts, 5, MS_SCHED_HOST="10.77.0.1") as job:
        fast = result(job)
    limit = "qdisc add dev cable root tbf rate 4mbit burst 16kb latency 200ms"
    for host in two_hosts:
        if subprocess.run([*host, "tc", *limit.split()], capture_output=True).returncode != 0:
            pytest.skip("this kernel has no tbf queueing discipline")
    with in_job(two_hosts, 5, MS_SCHED_HOST="10.77.0.1") as job:
        assert result(job) == fast
