"""Parameters on parameter servers: the bits of data parallel training, also where processes die."""

import random
import re
import subprocess
import sys

import pytest
from digits import write_digits
from job import Job, clean_environment, free_port
from places import BUILD, ROOT, SEARCH_PATH
from tls import Tree
from unbroken import unbroken_ends

sys.path.insert(0, str(ROOT / "tests/chaos"))
import faults
import recovering_job

SCRIPT = """
import hashlib
import muster
from muster import nn, train
from muster.dataset import MnistDataset, transforms, vision

MARKS = MARKS_
muster.set_ps_context(enable_ps=MARKS is not None, staleness=STALENESS_)
muster.init()
rank, workers = muster.get_rank(), muster.get_group_size()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
muster.set_seed(SEED_)
net = nn.SequentialCell(nn.Flatten(), nn.Dense(28 * 28, 100), nn.ReLU(), nn.Dense(100, 10))
for number in MARKS or []:
    net[number].set_param_ps()
dataset = MnistDataset(FOLDER_, num_shards=workers, shard_id=rank)
dataset = dataset.map(vision.Rescale(1 / 255.0, 0), "image").map(transforms.TypeCast(muster.int32), "label")
dataset = dataset.batch(32 // workers, drop_remainder=True)
optimizer = nn.OPTIMIZER_
loss_fn = nn.CrossEntropyLoss()
if LOOP_:
    net.set_train()
    grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
    reducer = nn.DistributedGradReducer(optimizer.parameters)
    for _ in range(2):
        for image, label in dataset:
            loss, gradients = grad_fn(image, label)
            optimizer(reducer(gradients))
else:
    train.Model(net, loss_fn, optimizer).train(2, dataset)
weights = b"".join(parameter.asnumpy().tobytes() for parameter in net.get_parameters())
print("weights", hashlib.sha256(weights).hexdigest())
"""


@pytest.fixture(name="digits", scope="module")
def digits_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, 160)
    return str(folder)


def start(digits, servers, marks=(1, 3), optimizer="Momentum(net.trainable_params(), 0.05, 0.9)", **options):
    told = {"MARKS": marks, "STALENESS": 0, "SEED": 3, "FOLDER": digits, "LOOP": False, **options}
    script = SCRIPT.replace("OPTIMIZER_", optimizer)
    for name, value in told.items():
        script = script.replace(
            f"{name}_", value if name == "SEED" and isinstance(value, str) else repr(value)
        )
    job = Job(script, 2, MS_SERVER_NUM=str(servers))
    job.servers = [job.start(f"server {n}", MS_ROLE="MS_PSERVER") for n in range(servers)]
    return job


def trained(digits, servers, **options):
    """The hash of the weights, which all workers have; every process has ended well."""
    with start(digits, servers, **options) as job:
        try:
            outputs = [worker.output() for worker in job.workers]
            statuses = [process.wait() for process in [*job.everybody(), *job.servers]]
        finally:
            for server in job.servers:
                server.end()
    assert set(statuses) == {0}, "\n".join(outputs)
    hashes = {re.search(r"weights (\w+)", output)[1] for output in outputs}
    return hashes.pop() if len(hashes) == 1 else hashes


OPTIMIZERS = [
    "SGD(net.trainable_params(), 0.05)",
    "Momentum(net.trainable_params(), 0.05, 0.9, weight_decay=0.01, use_nesterov=True)",
    "Adam(net.trainable_params(), nn.cosine_decay_lr(0.0, 0.01, 10, 5, 2), weight_decay=0.01)",
    "Adagrad(net.trainable_params(), learning_rate=0.01)",
    "FTRL(net.trainable_params(), learning_rate=0.01)",
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda text: text.partition("(")[0])
def test_servers_give_the_bits_of_data_parallel_training(digits, optimizer):
    expected = trained(digits, 0, marks=None, optimizer=optimizer)
    assert isinstance(expected, str)
    assert trained(digits, 2, optimizer=optimizer) == expected


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("servers", [1, 3])
def test_some_parameters_on_servers_change_no_bit(digits, servers, loop):
    expected = trained(digits, 0, marks=None)
    assert trained(digits, servers, marks=(1,), LOOP=loop) == expected


def test_workers_that_are_ahead_of_the_servers_end_well(digits):
    assert trained(digits, 2, STALENESS=3)
    assert trained(digits, 2, STALENESS=None)


def failure(digits, **options):
    with start(digits, 1, **options) as job:
        try:
            outputs = [worker.output() for worker in job.workers]
            assert all(worker.wait() != 0 for worker in job.workers)
        finally:
            for server in job.servers:
                server.end()
    return "\n".join(outputs)


def test_what_cannot_be_on_servers_is_named(digits):
    told = failure(digits, optimizer="Lamb(net.trainable_params(), 0.01)")
    assert "Lamb" in told and "1.weight" in told and "parameter servers" in told


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("marked", ["net", "net[1]"])
def test_workers_that_have_put_other_parameters_on_servers_are_told_before_the_first_step(
    digits, monkeypatch, marked, loop
):
    marks = f"if rank == 0:\n    {marked}.set_param_ps()\nloss_fn ="
    monkeypatch.setattr(sys.modules[__name__], "SCRIPT", SCRIPT.replace("loss_fn =", marks))
    told = failure(digits, marks=(), LOOP=loop)
    assert "rank 1 has parameter '1.weight' elsewhere than rank 0" in told
    assert "Every rank must call set_param_ps() alike" in told


# However small batches are, they lie in memory that the processes share.
SHARED = {"MUSTER_SERVER_SHARED_KIB": "0"}
RECOVERING = {"CHAOS_EPOCHS": "12", "CHAOS_ON_SERVERS": "1", **SHARED}


def recovering(folder, mode, digits, **variables):
    return recovering_job.Job(folder / "job", 2, mode, digits, servers=2, **{**RECOVERING, **variables})


def shared_batches(job):
    """Of each worker, in its last life."""
    line = re.compile(r"batches in memory shared with parameter servers: (\d+)")
    workers = [process for name, process in job.processes.items() if name.startswith("worker")]
    return [int(line.findall(worker.output())[-1]) for worker in workers]


@pytest.fixture(name="more_digits", scope="module")
def more_digits_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, rows=640)
    return folder


@pytest.fixture(name="unbroken_end", scope="module")
def unbroken_end_fixture(tmp_path_factory, more_digits):
    return unbroken_ends(
        tmp_path_factory, "servers", lambda folder, mode: recovering(folder, mode, more_digits)
    )


@pytest.mark.parametrize(
    ("fault", "mode"),
    [
        (faults.kill_server, "model"),
        (faults.kill_server, "loop"),
        (faults.kill_worker, "model"),
        (faults.kill_worker, "loop"),
        (faults.kill_scheduler, "model"),
        (faults.kill_server_and_worker, "model"),
        (faults.kill_everybody, "model"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_broken_training_ends_with_the_bits_of_an_unbroken_one(
    tmp_path, more_digits, unbroken_end, fault, mode
):
    expected = unbroken_end(mode)
    with recovering(tmp_path, mode, more_digits) as job:
        job.wait_for_progress(())
        job.wait_for_progress(job.newest_point())  # the first one may be the start, of which no step is made
        logs = list(tmp_path.glob("job/*/recovery/*/server_?.0"))
        assert len(logs) == 2
        assert all(log.stat().st_size > 0 for log in logs)  # they do hold parameters
        fault(job, random.Random(1))
        assert job.wait() == expected
    assert not list(tmp_path.glob("job/*/recovery/*/server_*"))  # nothing that a finished job left behind


@pytest.mark.parametrize("fault", [faults.kill_server, faults.kill_worker, faults.kill_everybody])
def test_a_training_goes_on_from_rows_behind_which_a_server_has_cut_its_log_off(
    tmp_path, more_digits, unbroken_end, fault
):
    expected = unbroken_end("model")
    with recovering(tmp_path, "model", more_digits, MUSTER_SERVER_LOG_MIB="0") as job:
        while len(list(tmp_path.glob("job/*/recovery/*/server_?.base"))) < 2:
            job.wait_for_progress(job.newest_point())
            assert not job.has_ended()
        fault(job, random.Random(1))
        assert job.wait() == expected


@pytest.mark.parametrize(("least", "is_shared"), [("0", True), ("1048576", False)], ids=["memory", "sockets"])
def test_batches_lie_in_memory_that_one_host_shares_also_behind_the_death_of_a_server(
    tmp_path, more_digits, unbroken_end, least, is_shared
):
    expected = unbroken_end("model")
    variables = {"MUSTER_SERVER_SHARED_KIB": least, "MUSTER_LOG": "info"}
    with recovering(tmp_path, "model", more_digits, **variables) as job:
        job.wait_for_progress(())
        faults.kill_server(job, random.Random(1))
        assert job.wait() == expected
        assert [count > 0 for count in shared_batches(job)] == [is_shared, is_shared]


def test_a_server_whose_files_are_gone_is_told_of_by_its_error(tmp_path, more_digits):
    with recovering(tmp_path, "model", more_digits, MUSTER_SERVER_LOG_MIB="0") as job:
        job.wait_for_progress(())
        for folder in {file.parent for file in tmp_path.glob("job/*/recovery/*/server_*")}:
            for file in folder.glob("server_*"):
                file.unlink(missing_ok=True)
            folder.rename(folder.with_name("moved"))
        with pytest.raises(recovering_job.LostError):
            job.wait()
        text = job.processes["scheduler"].output()
    assert re.search(
        r"server \d .* failed: its folder '.*', .* was moved or removed .*MUSTER_FRESH=1", text
    ), text


def test_a_job_whose_server_has_lost_its_folder_ends_with_its_name_and_the_way_out(tmp_path, more_digits):
    with recovering(tmp_path, "model", more_digits) as job:
        for _ in range(3):
            job.wait_for_progress(job.newest_point())
        faults.kill(job, *job.processes)
        [folder] = {file.parent for file in job.paths["server 0"].glob("*/server_*")}
        for file in folder.glob("server_*"):
            file.unlink()
        faults.start(job, *job.processes)
        with pytest.raises(recovering_job.LostError):
            job.wait()
        texts = [job.processes[name].output() for name in ("server 0", "worker 0")]
    assert f"finds no rows in '{folder}' (MS_RECOVERY_PATH)" in texts[0]
    assert re.search(r"server \d lacks the pushes of worker \d .*MUSTER_FRESH=1", texts[1]), texts[1]


def test_a_job_whose_server_can_write_no_more_goes_on_when_it_can(tmp_path, more_digits, unbroken_end):
    with recovering(tmp_path, "model", more_digits) as job:
        job.wait_for_progress(())
        faults.kill(job, "server 0")
        job.start("server 0", prefix=("prlimit", "--fsize=1000000"))
        with pytest.raises(recovering_job.LostError):
            job.wait()
        for process in job.processes.values():
            process.wait()
        text = job.processes["worker 1"].output()
        assert re.search(
            r"cannot write the log of pushes .*job goes on from it when .*started again", text
        ), text
        faults.start(job, *job.processes)
        assert job.wait() == unbroken_end("model")


def test_servers_end_when_the_workers_have_left_and_no_scheduler_comes_back(tmp_path, more_digits):
    with recovering(tmp_path, "model", more_digits, MS_NODE_TIMEOUT="1") as job:
        job.wait_for_progress(())
        faults.kill(job, "scheduler")
        assert {job.processes[name].wait() for name in job.processes if name != "scheduler"} == {0}
        for name in ("server 0", "server 1"):
            assert "left without the scheduler" in job.processes[name].output()
        assert list(tmp_path.glob("job/*/recovery/*/server_*"))


def test_a_worker_that_comes_back_in_another_mode_is_told_so(tmp_path, more_digits):
    with recovering(tmp_path, "model", more_digits, CHAOS_EPOCHS="40") as job:
        job.wait_for_progress(())
        faults.kill(job, "worker 0")
        job.start("worker 0", CHAOS_EAGER="1")
        with pytest.raises(recovering_job.LostError):
            job.wait()
        text = job.processes["worker 0"].output()
    assert re.search(r"worker 0 trains in eager mode and worker 1 in graph mode: call set_context", text), (
        text
    )


COPIES = {"MUSTER_SERVER_COPIES": "2"}


@pytest.mark.parametrize(
    ("fault", "variables"),
    [
        (faults.lose_server_disk, {}),
        (faults.lose_server_disk, {"MUSTER_SERVER_LOG_MIB": "0"}),
        (faults.kill_server_and_worker, {}),
        (faults.kill_everybody, {}),
    ],
    ids=["disk", "disk_and_base", "server_and_worker", "everybody"],
)
def test_a_training_with_copies_goes_on_with_the_same_bits(
    tmp_path, more_digits, unbroken_end, fault, variables
):
    expected = unbroken_end("model")
    with recovering(tmp_path, "model", more_digits, **COPIES, **variables) as job:
        while variables and len(list(tmp_path.glob("job/*/recovery/*/server_*.base"))) < 4:
            job.wait_for_progress(job.newest_point())
            assert not job.has_ended()
        job.wait_for_progress(())
        while len(list(tmp_path.glob("job/*/recovery/*/server_?_copy_?.*"))) < 2:
            job.wait_for_progress(job.newest_point())
            assert not job.has_ended()
        fault(job, random.Random(1))
        assert job.wait() == expected
    assert not list(tmp_path.glob("job/*/recovery/*/server_*"))


def test_a_server_on_an_empty_disk_says_that_its_rows_came_from_another_one(tmp_path, more_digits):
    def told(folder):
        folder.mkdir()
        with recovering(folder, "model", more_digits, **COPIES, MUSTER_LOG="info") as job:
            job.wait_for_progress(())
            faults.lose_server_disk(job, random.Random(1))
            job.wait()
            text = job.everybody[-1].output()  # of the one that was started again
        return len(re.findall(r"has the rows of share \d from parameter server \d", text))

    # On a busy machine a training may be over before its server is killed.
    assert 2 in (told(tmp_path / str(attempt)) for attempt in range(4))


def test_an_encrypted_server_gets_its_rows_again_on_an_empty_disk(tmp_path, more_digits, unbroken_end):
    expected = unbroken_end("model")
    certificates = tmp_path / "certificates"
    certificates.mkdir()
    with recovering(tmp_path, "model", more_digits, **COPIES, **Tree(certificates).variables()) as job:
        job.wait_for_progress(())
        faults.lose_server_disk(job, random.Random(1))
        assert job.wait() == expected


class OnTwoHosts(recovering_job.Job):
    """Three servers, of which the first two are on one host."""

    def environment(self, name, **variables):
        if not name.startswith("server"):
            return super().environment(name, **variables)
        number = name.split()[1]
        host = "a" if int(number) < 2 else "b"
        return super().environment(name, MS_NODE_ID=number, MUSTER_HOST_KEY=host, **variables)


def test_three_servers_with_copies_go_on_and_say_whose_copies_one_host_has(
    tmp_path, more_digits, unbroken_end
):
    variables = {**RECOVERING, **COPIES}
    with OnTwoHosts(tmp_path / "job", 2, "model", more_digits, servers=3, **variables) as job:
        first = job.processes["server 0"]
        job.wait_for_progress(())
        faults.lose_server_disk(job, random.Random(1))
        assert job.wait() == unbroken_end("model")
    assert "both copies of some rows are on one host (servers 0 and 1)" in first.output()


def test_rows_that_both_servers_have_lost_end_the_job_with_their_names(tmp_path, more_digits):
    with recovering(tmp_path, "model", more_digits, **COPIES) as job:
        for _ in range(3):
            job.wait_for_progress(job.newest_point())
        faults.lose_both_server_disks(job, random.Random(1))
        with pytest.raises(recovering_job.LostError):
            job.wait()
        texts = "\n".join(job.processes[f"worker {rank}"].output() for rank in range(2))
    assert "which has the same rows" in texts


def test_an_encrypted_training_goes_on_when_a_server_is_lost(tmp_path, more_digits, unbroken_end):
    expected = unbroken_end("model")
    certificates = tmp_path / "certificates"
    certificates.mkdir()
    variables = {**Tree(certificates).variables(), "MUSTER_LOG": "info"}
    with recovering(tmp_path, "model", more_digits, **variables) as job:
        job.wait_for_progress(())
        faults.kill_server(job, random.Random(1))
        assert job.wait() == expected
        assert shared_batches(job) == [0, 0]  # a certificate says who shares, a local socket does not


def test_muster_run_starts_servers_and_all_end_well(tmp_path, digits):
    script = (ROOT / "examples/parameter_server/train.py").read_text()
    (tmp_path / "train.py").write_text(script)
    done = subprocess.run(
        [BUILD / "apps/muster/muster", "run", "-n", "2", "--servers", "2", "train.py"],
        cwd=tmp_path,
        env={**clean_environment(), "PATH": SEARCH_PATH, "DATA_PATH": digits, "EPOCHS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"loss is", done.stdout)) == 2


@pytest.mark.parametrize("count", [2, 8])
def test_the_sample_in_mindspores_words_runs_and_all_its_workers_agree(tmp_path, digits, count):
    python = tmp_path / "a folder" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [ROOT / "examples/parameter_server/run.sh"],
        env={
            **clean_environment(),
            "MS_WORKER_NUM": str(count),
            "MS_SERVER_NUM": str(count),
            "MS_SCHED_PORT": str(free_port()),
            "DATA_PATH": digits,
            "EPOCHS": "2",
            "LOGS": str(tmp_path),
            "PYTHON": str(python),
        },
        timeout=60,
        check=False,
    )
    texts = [(tmp_path / f"worker_{rank}.log").read_text() for rank in range(count)]
    assert done.returncode == 0, texts[0]
    losses = [re.findall(r"loss is (\S+)", text) for text in texts]
    assert len(losses[0]) == 2 and all(each == losses[0] for each in losses)
    assert float(losses[0][-1]) < float(losses[0][0])
