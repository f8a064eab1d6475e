"""Placed networks whose messages go over TCP, through shared memory, or both."""

import re
import time

import pytest
from digits import write_digits
from hosts import break_connections_between_workers, needs_namespaces, two_hosts_joined
from job import Job
from test_placed_jobs import SETUP, TRAINING, lines

KILLED = """
import os, signal
net = Net((0, 1, 2))
die = train.LambdaCallback(
    on_train_step_end=lambda run: run.cur_step_num == 3 and rank == 1 and os.kill(os.getpid(), signal.SIGKILL)
)
model_of(net).train(50, digits(), die)
"""


@pytest.fixture(name="digits", scope="module")
def digits_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, 160)
    return str(folder)


def job_of(code, hosts, digits):
    """`hosts`: a letter for each worker; those with the same one share memory."""
    prefixes = [["env", f"MUSTER_HOST_KEY={host}"] for host in hosts]
    script = (SETUP + code).replace("FOLDER", repr(digits))
    return Job(script, len(hosts), hosts=prefixes, OMP_NUM_THREADS="1")


def figures(places, hosts, digits):
    with job_of(TRAINING.replace("PLACES", places), hosts, digits) as job:
        assert [process.wait(120) for process in job.everybody()] == [0] * (len(hosts) + 1)
        texts = [worker.output() for worker in job.workers]
    return [[lines(text, what) for what in ("loss", "accuracy", "weights")] for text in texts]


@pytest.mark.parametrize("hosts", ["abc", "aba"])
def test_losses_metrics_and_parameters_do_not_depend_on_the_hosts(digits, hosts):
    (alone,) = figures("(0, 0, 0)", "a", digits)
    assert len(alone[0]) == 20
    assert figures("(0, 1, 2)", hosts, digits) == [alone] * 3


@pytest.mark.parametrize("hosts", ["abc", "aba"])
def test_a_worker_that_dies_is_named_on_every_host_with_the_edge_on_which_others_waited(digits, hosts):
    with job_of(KILLED, hosts, digits) as job:
        job.workers[1].wait()
        begin = time.monotonic()
        assert all(job.workers[rank].wait() not in (0, None) for rank in (0, 2))
        assert time.monotonic() - begin < 4  # 2 s, by a factor of two
        texts = [job.workers[rank].output() for rank in (0, 2)]
    edge = re.compile(r"while (waiting for|sending) .*(from|to) worker (0|1|2): .*worker 1 .*was killed")
    for text in texts:
        assert edge.search(text), text


LONG = """
net = Net(PLACES)
model = model_of(net)
says = train.LambdaCallback(
    on_train_step_end=lambda run: run.cur_step_num == 5 and print("under way", flush=True)
)
model.train(100, digits(), [Losses(), says])
show_weights(model)
"""


def losses_and_weights(job):
    assert [process.wait(120) for process in job.everybody()] == [0] * len(job.everybody())
    texts = [worker.output() for worker in job.workers]
    return [[lines(text, what) for what in ("loss", "weights")] for text in texts]


# Without recovery a job ends where a connection between workers is lost.
@needs_namespaces
def test_connections_that_are_reset_are_made_again_and_no_message_is_lost(digits):
    with job_of(LONG.replace("PLACES", "(0, 0, 0)"), "a", digits) as job:
        (alone,) = losses_and_weights(job)
    with two_hosts_joined() as hosts:
        script = (SETUP + LONG.replace("PLACES", "(0, 1, 0)")).replace("FOLDER", repr(digits))
        with Job(script, 2, hosts=hosts, MS_SCHED_HOST="10.77.0.1", OMP_NUM_THREADS="1") as job:
            for worker in job.workers:
                worker.wait_for_line("under way")
            break_connections_between_workers(hosts[0], job)
            assert losses_and_weights(job) == [alone] * 2
