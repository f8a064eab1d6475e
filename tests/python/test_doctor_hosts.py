"""muster doctor on two hosts, which are network namespaces: what it says of the network between them."""

import os
import re
import subprocess

import pytest
from job import PATIENCE, clean_environment, free_port
from places import BUILD
from test_hosts import needs_namespaces, two_hosts  # noqa: F401 - the fixture

DOCTOR = [str(BUILD / "apps/muster/muster"), "doctor"]
PROBE = BUILD / "tests/process/cluster_probe/cluster_probe"

pytestmark = needs_namespaces


@pytest.fixture
def scheduler(two_hosts):  # noqa: F811
    """A scheduler on host A that waits for workers."""
    port = free_port()
    variables = {
        **clean_environment(),
        "MS_ROLE": "MS_SCHED",
        "MS_SCHED_HOST": "10.77.0.1",
        "MS_SCHED_PORT": str(port),
        "MS_WORKER_NUM": "2",
    }
    with subprocess.Popen([*two_hosts[0], str(PROBE)], env=variables, stderr=subprocess.DEVNULL) as process:
        while "nothing listens" in ask(two_hosts[0], f"10.77.0.1:{port}", wait="0").communicate()[0]:
            assert process.poll() is None, f"the scheduler ended with {process.returncode}"
        yield f"10.77.0.1:{port}"
        process.kill()


def ask(host, scheduler, wait="4"):
    command = [*host, *DOCTOR, "--scheduler", scheduler, "--wait", wait]
    return subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, text=True)


def run_on(host, words):
    subprocess.run([*host, *words.split()], check=True)


def test_each_host_measures_the_way_to_the_other(two_hosts, scheduler):  # noqa: F811
    doctors = [ask(host, scheduler) for host in two_hosts]
    for doctor, other in zip(doctors, ["10.77.0.2", "10.77.0.1"], strict=True):
        output, _ = doctor.communicate(timeout=PATIENCE)
        expected = rf"^\w+ +to {re.escape(os.uname().nodename)} \({other}\) +round trip .*bit/s$"
        assert re.search(expected, output, re.MULTILINE), output


def test_a_slow_link_is_a_warning_and_nothing_breaks(two_hosts, scheduler):  # noqa: F811
    for host in two_hosts:
        run_on(host, "tc qdisc add dev cable root tbf rate 20mbit burst 32kb latency 400ms")
    output, _ = ask(two_hosts[1], scheduler, wait="0").communicate(timeout=PATIENCE)
    assert re.search(r"^warning +way to it .*\n +slow: 100 MB of gradients take", output, re.MULTILINE), (
        output
    )


def test_a_host_that_is_cut_off_is_told_what_to_look_at(two_hosts, scheduler):  # noqa: F811
    run_on(two_hosts[0], "ip link set cable down")
    doctor = ask(two_hosts[1], scheduler)
    output, _ = doctor.communicate(timeout=PATIENCE)
    assert doctor.returncode == 1
    assert re.search(r"^PROBLEM +connection 10.77.0.1:\d+.*\n.*\n +fix: ", output, re.MULTILINE), output
