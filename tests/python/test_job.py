"""How a job ends: every way in which a process can die, and what the others say."""

import os
import re
import signal
import socket
import time

import pytest
from job import Job, kill, run_alone, seconds_until_ended

PROMISED = 2.0  # seconds from a death to the end of every other process
MARGIN = 2.0  # the tests' machines are slow and shared
PEER_LOST, CONFIGURATION = 69, 78  # exit codes, as docs/guide/cluster.md lists them

# A worker that trains without end; `before_step` and `after_step` are code inside the loop.
LOOP = """
import os, sys, time
import muster as ms
from muster import nn

ms.init()
ms.set_seed(1)
net = nn.Dense(4, 2)
{after_net}
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 1e-2)
data = ms.Tensor([[1.0, 2.0, 3.0, 4.0]], ms.float32)
label = ms.Tensor([1], ms.int32)
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
reducer = nn.DistributedGradReducer(optimizer.parameters)
rank = ms.get_rank()
step = 0
begin = time.monotonic()
while True:
    step += 1
    {before_step}
    loss, grads = grad_fn(data, label)
    grads = reducer(grads)
    optimizer(grads)
    if step <= 20:
        print("done step", step)  # stays in Python's buffer where output is buffered
        print("at step", step, file=sys.stderr)
    if begin and time.monotonic() - begin > 1.5:
        begin = None
        print("a heartbeat has carried a step", file=sys.stderr)
    {after_step}
"""


def loop(after_net="", before_step="", after_step=""):
    return LOOP.format(after_net=after_net, before_step=before_step, after_step=after_step)


def assert_all_ended_in_time(processes, begin):
    assert seconds_until_ended(processes, begin) < PROMISED * MARGIN
    for process in processes:
        assert process.wait() != 0, process.name


def test_a_killed_worker_is_named_by_all_others_with_its_last_step_and_no_line_is_lost():
    with Job(loop(), workers=3, unbuffered=False, MS_NODE_TIMEOUT="3") as job:
        victim = job.workers[1]
        victim.wait_for_line("a heartbeat has carried a step")
        begin = kill(victim)
        others = [job.scheduler, job.workers[0], job.workers[2]]
        assert_all_ended_in_time(others, begin)
        for process in others:
            text = process.output()
            assert "worker 1" in text, text
            assert "killed" in text, text
            assert re.search(r"last known step was \d+", text), text
        for worker in (job.workers[0], job.workers[2]):
            assert "done step 1\ndone step 2\n" in worker.output(), "what was printed before is not lost"


def test_a_process_that_ends_for_the_jobs_sake_has_the_failures_exit_code():
    with Job(loop(), workers=2) as job:
        for worker in job.workers:
            worker.wait_for_line("done step 5")
        kill(job.workers[1])
        assert [job.scheduler.wait(), job.workers[0].wait()] == [PEER_LOST, PEER_LOST]


def test_an_init_that_fails_and_is_not_caught_ends_with_the_failures_exit_code():
    assert run_alone("import muster; muster.init()", MS_ROLE="MS_NOBODY")[0] == CONFIGURATION
    caught = "import muster\ntry:\n    muster.init()\nexcept ValueError:\n    raise KeyError('mine')"
    assert run_alone(caught, MS_ROLE="MS_NOBODY")[0] == 1


def test_the_job_ends_when_the_scheduler_is_killed():
    with Job(loop(), workers=2) as job:
        for worker in job.workers:
            worker.wait_for_line("done step 5")
        begin = kill(job.scheduler)
        assert_all_ended_in_time(job.workers, begin)
        for worker in job.workers:
            assert "scheduler" in worker.output()


def test_a_stopped_worker_ends_the_job_after_the_node_timeout():
    with Job(loop(), workers=2, MS_NODE_TIMEOUT="1") as job:
        for worker in job.workers:
            worker.wait_for_line("done step 5")
        begin = time.monotonic()
        job.workers[1].signal(signal.SIGSTOP)
        others = [job.scheduler, job.workers[0]]
        assert seconds_until_ended(others, begin) < (1 + PROMISED) * MARGIN
        assert "worker 1" in job.workers[0].output()


def test_an_uncaught_exception_fails_the_job_with_its_own_words():
    script = loop(before_step="if step == 3 and rank == 1: raise ValueError('the digits are upside down')")
    with Job(script, workers=2) as job:
        others = [job.scheduler, job.workers[0]]
        assert job.workers[1].wait() == 1
        assert_all_ended_in_time(others, time.monotonic())
        for process in others:
            assert "ValueError: the digits are upside down" in process.output()


@pytest.mark.parametrize("ending", ["sys.exit(3)", "raise SystemExit(3)"])
def test_an_exit_with_another_status_than_zero_fails_the_job(ending):
    with Job(loop(before_step=f"if step == 3 and rank == 1: {ending}"), workers=2) as job:
        assert job.workers[1].wait() == 3
        assert_all_ended_in_time([job.scheduler, job.workers[0]], time.monotonic())
        assert "status 3" in job.scheduler.output()


def test_a_worker_busy_elsewhere_is_ended_and_its_output_is_kept():
    script = loop(after_step="if step == 3 and rank == 0: print('resting'); time.sleep(1000)")
    with Job(script, workers=2, unbuffered=False) as job:
        # Rank 1 waits in its fourth reduction for rank 0, which rests; then rank 1 dies.
        job.workers[0].wait_for_line("at step 3")
        job.workers[1].wait_for_line("at step 3")
        begin = kill(job.workers[1])
        assert_all_ended_in_time([job.scheduler, job.workers[0]], begin)
        text = job.workers[0].output()
        assert "worker 1" in text, text
        assert "done step 3\nresting" in text, text


def test_code_that_catches_everything_cannot_keep_a_failed_job_alive():
    script = loop().replace(
        "    grads = reducer(grads)\n", "    try: grads = reducer(grads)\n    except Exception: pass\n"
    )
    with Job(script, workers=2) as job:
        for worker in job.workers:
            worker.wait_for_line("done step 5")
        begin = kill(job.workers[1])
        assert_all_ended_in_time([job.scheduler, job.workers[0]], begin)


def test_a_forked_child_that_outlives_its_killed_worker_hides_nothing():
    fork = """
if ms.get_rank() == 1:
    child = os.fork()
    if child == 0:
        try:
            weight = ms.Tensor([1.0], ms.float32)
            nn.DistributedGradReducer([ms.Parameter(weight, name="w")])((weight,))
            os.write(1, b"child was let in\\n")
        except Exception as error:
            os.write(1, f"child was refused: {error}\\n".encode())
        time.sleep(1000)
    os.write(1, f"child is {child}\\n".encode())
"""
    with Job(loop(after_net=fork), workers=2) as job:
        child = int(job.workers[1].wait_for_line(r"child is (\d+)")[1])
        try:
            job.workers[1].wait_for_line("done step 5")
            begin = kill(job.workers[1])
            assert_all_ended_in_time([job.scheduler, job.workers[0]], begin)
            assert "worker 1" in job.workers[0].output()
        finally:
            os.kill(child, signal.SIGKILL)
        assert "child was let in" not in job.workers[1].output()


def test_the_scheduler_never_runs_what_comes_after_init():
    script = """
import muster as ms
try:
    ms.init()
except BaseException:
    print("went on")
print("after init, rank", ms.get_rank())
"""
    with Job(script, workers=2) as job:
        assert [process.wait() for process in job.everybody()] == [0, 0, 0]
        assert job.scheduler.output() == ""
        assert job.workers[0].output() == "after init, rank 0"


def test_too_few_workers_end_with_who_came_and_how_many_are_missing():
    with Job("import muster as ms; ms.init()", workers=2, MS_TOPO_TIMEOUT="1", MS_WORKER_NUM="3") as job:
        for process in job.everybody():
            assert process.wait() != 0
            text = process.output()
            assert "MS_TOPO_TIMEOUT" in text, text
            assert "1 " in text, text


def test_the_redundant_worker_leaves_with_the_reason_and_the_job_goes_on(tmp_path):
    end = tmp_path / "end"
    is_told = f"ms.Tensor([float(os.path.exists({str(end)!r}))])"
    script = loop(after_step=f"if ms.ops.all_reduce({is_told}, 'max').asnumpy()[0]: break")
    with Job(script, workers=2) as job:
        for worker in job.workers:
            worker.wait_for_line("done step 5")
        extra = job.start("extra", MS_ROLE="MS_WORKER", MS_NODE_ID="extra")
        assert extra.wait() != 0
        assert "MS_WORKER_NUM" in extra.output()
        end.touch()
        assert [process.wait() for process in job.everybody()] == [0, 0, 0]


def test_ctrl_c_ends_the_job_and_frees_its_port():
    with Job(loop(), workers=2) as job:
        for worker in job.workers:
            worker.wait_for_line("done step 5")
        begin = time.monotonic()
        for process in job.everybody():
            process.signal(signal.SIGINT)
        assert seconds_until_ended(job.everybody(), begin) < PROMISED * MARGIN
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", job.port))


def test_ranks_that_start_from_other_values_are_told_which_parameter():
    script = loop(after_net="net.bias.set_data(ms.Tensor([float(ms.get_rank()), 0.0], ms.float32))")
    with Job(script, workers=2) as job:
        for worker in job.workers:
            assert worker.wait() == 1
            assert "parameter 'bias' has other values on rank 1 than on rank 0" in worker.output()


def test_a_worker_that_is_done_early_is_named_by_those_who_wait_for_it():
    with Job(loop(before_step="if step == 3 and rank == 1: break"), workers=2) as job:
        assert job.workers[1].wait() == 0
        assert job.workers[0].wait() != 0
        text = job.workers[0].output()
        assert "worker 1" in text or "rank 1" in text, text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MS_SCHED_PORT", "0"),
        ("MS_SCHED_PORT", "80"),
        ("MS_SCHED_PORT", "70000"),
        ("MS_SCHED_PORT", "abc"),
        ("MS_WORKER_NUM", "0"),
        ("MS_WORKER_NUM", "-1"),
        ("MS_WORKER_NUM", "1000000000"),
        ("MS_ROLE", "MS_BOSS"),
        ("MS_SCHED_HOST", ""),
        ("MS_SCHED_HOST", "no-such-host.invalid"),
        ("MS_TOPO_TIMEOUT", "0"),
        ("MS_NODE_TIMEOUT", "0"),
        ("MS_WORKER_IP", "203.0.113.7"),
    ],
)
def test_a_bad_value_ends_the_process_at_once_and_is_named(name, value):
    good = {
        "MS_ROLE": "MS_WORKER",
        "MS_WORKER_NUM": "2",
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": "8118",
        "MS_TOPO_TIMEOUT": "20",
    }
    code, text, seconds = run_alone("import muster; muster.init()", **{**good, name: value})
    assert code not in (0, None)
    assert seconds < PROMISED * MARGIN
    assert name in text, text
    assert value in text, text


def test_without_a_role_the_way_out_is_told():
    code, text, _ = run_alone("import muster; muster.init()", MS_SCHED_HOST="127.0.0.1")
    assert code != 0
    assert "MS_ROLE" in text
    assert "muster run" in text
