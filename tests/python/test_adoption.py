"""The scheduler's folder is lost, or the workers' are: the job goes on, or an error says what is missing."""

import functools
import random
import shutil
import signal
import sys

import pytest
from digits import write_digits
from once import once
from places import ROOT

sys.path.insert(0, str(ROOT / "tests/chaos"))
import faults
import storage_faults
from recovering_job import Job

WORKERS = 2
SCHEDULER_REFUSED = 77


@pytest.fixture(name="start", scope="module")
def start_fixture(tmp_path_factory):
    digits = tmp_path_factory.mktemp("digits")
    write_digits(digits, rows=640)

    def start(layout="own", **variables):
        folder = tmp_path_factory.mktemp("job") / "job"
        return Job(folder, WORKERS, "model", digits, layout=layout, CHAOS_EPOCHS="30", **variables)

    return start


@pytest.fixture(name="unbroken_end", scope="module")
def unbroken_end_fixture(start, tmp_path_factory):
    def train():
        with start() as job:
            return job.wait()

    return functools.cache(lambda: once(tmp_path_factory, "unbroken-adoption", train))


def jobs_of(job):
    return {path.name for path in job.root.glob("*/recovery/job-*")}


def lose(job, name):
    shutil.rmtree(job.paths[name])


class Chosen(random.Random):
    """How many workers die with the scheduler's folder."""

    def __init__(self, count):
        super().__init__(1)
        self._count = count

    def choice(self, _):
        return self._count


@pytest.mark.parametrize("killed", [0, 1, WORKERS])
def test_a_lost_scheduler_folder_costs_neither_the_job_nor_a_bit(start, unbroken_end, killed):
    with start() as job:
        job.wait_for_progress((0, 1, 60))
        before = jobs_of(job)
        storage_faults.lose_scheduler_folder(job, Chosen(killed))
        assert job.wait() == unbroken_end()
        assert jobs_of(job) == before
        if killed == WORKERS:
            assert any("resuming job" in process.output() for process in job.everybody), "not from step 0"
        if killed == 0:
            assert "all processes of epoch 1 are known again" in job.processes["scheduler"].output()


def test_a_worker_with_an_empty_folder_joins_the_job_that_the_others_have_found(start):
    with start() as job:
        job.wait_for_progress((0, 1, 60))
        before = jobs_of(job)
        faults.kill(job, *job.names())
        lose(job, "scheduler")
        lose(job, "worker 1")
        faults.start(job, *job.names())
        adopted = "It goes on:\n  worker (node '0' at 127.0.0.1"
        faults.wait_until(lambda: adopted in job.processes["scheduler"].output())
        assert adopted in job.processes["scheduler"].output()
        assert jobs_of(job) == before


def test_folders_that_are_all_lost_are_an_error_unless_everybody_is_told_to_begin_anew(start):
    with start() as job:
        job.wait_for_progress((0, 1, 60))
        [lost] = jobs_of(job)
        faults.kill(job, *job.names())
        for name in job.names()[1:]:
            lose(job, name)
        faults.start(job, *job.names())
        for process in list(job.processes.values()):
            assert process.wait() == SCHEDULER_REFUSED, process.output()
            assert f"job {lost.removeprefix('job-')} has kept recovery points" in process.output()
            assert "MUSTER_FRESH=1" in process.output()
        for name in job.names():
            job.start(name, MUSTER_FRESH="1")
        assert None not in job.wait()
        assert lost not in jobs_of(job)


def test_points_of_different_jobs_are_an_error_that_names_them(start):
    with start() as job:
        job.wait_for_progress((0, 1, 60))
        [found] = jobs_of(job)
        faults.kill(job, *job.names())
        lose(job, "scheduler")
        other = job.paths["worker 1"] / "job-00000000000000dd"
        (job.paths["worker 1"] / found).rename(other)
        faults.start(job, *job.names())
        for process in list(job.processes.values()):
            assert process.wait() == SCHEDULER_REFUSED, process.output()
            for name in (found, other.name):
                assert name.removeprefix("job-") in process.output()
            assert "newest step" in process.output()
            assert str(other) in process.output()
            assert "muster checkpoint rm" in process.output()
        assert jobs_of(job) == {found, other.name}


def test_nothing_is_given_up_while_processes_of_the_job_live(start, unbroken_end):
    with start() as job:
        job.wait_for_progress((0, 1, 60))
        faults.kill(job, "scheduler")
        fresh = job.start("scheduler", MUSTER_FRESH="1")
        assert fresh.wait() == SCHEDULER_REFUSED
        assert "unset MUSTER_FRESH to go on with it" in fresh.output()
        job.start("scheduler")
        assert job.wait() == unbroken_end()


def test_a_second_job_is_refused_while_the_workers_of_the_first_wait_for_their_scheduler(start, unbroken_end):
    with start(layout="shared") as job:
        job.wait_for_progress((0, 1, 60))
        before = jobs_of(job)
        faults.kill(job, "scheduler")
        for name in job.names()[1:]:
            job.processes[name].signal(signal.SIGSTOP)
        # A thread in the middle of a write stops behind it.
        storage_faults.wait_until(
            lambda: all(storage_faults.stands_still(job.processes[name]) for name in job.names()[1:])
        )
        points = storage_faults.contents(job)
        with storage_faults.Rival(job, has_own_path=False, MS_TOPO_TIMEOUT="2") as rival:
            scheduler = rival.processes[0]
            assert scheduler.wait() == SCHEDULER_REFUSED, rival.output()
            assert "whose scheduler is away and has to be started again" in scheduler.output()
            assert "worker 0 is pid" in scheduler.output()
        assert storage_faults.contents(job) == points
        for name in job.names()[1:]:
            job.processes[name].signal(signal.SIGCONT)
        job.start("scheduler")
        assert job.wait() == unbroken_end()
        assert jobs_of(job) == before
