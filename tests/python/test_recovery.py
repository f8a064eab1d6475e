"""Processes die and come back: trainings end with the bits of one that nobody broke."""

import random
import re
import signal
import sys

import job
import pytest
from digits import write_digits
from places import ROOT
from tls import Tree
from unbroken import unbroken_ends

sys.path.insert(0, str(ROOT / "tests/chaos"))
import faults
import storage_faults
from recovering_job import Job

WORKERS = 3
# Who lacks a worker waits for it: a job of 12 epochs is still at its beginning when that one comes back.
EPOCHS = 12
# What happens beside a job that goes on has time for it in one of 30.
MEANWHILE = (
    storage_faults.fill_disk_for_a_while,
    storage_faults.fill_all_disks_over_two_ends,
    storage_faults.two_jobs_one_path,
    storage_faults.lose_scheduler_folder,
    faults.kill_scheduler,
    faults.cut,
)


def epochs_for(fault):
    return 30 if fault in MEANWHILE else EPOCHS


@pytest.fixture(name="digits", scope="module")
def digits_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, rows=640)
    return folder


def start(folder, digits, mode="model", workers=WORKERS, layout="shared", epochs=EPOCHS, **variables):
    return Job(folder / "job", workers, mode, digits, layout=layout, CHAOS_EPOCHS=str(epochs), **variables)


@pytest.fixture(name="unbroken_end", scope="module")
def unbroken_end_fixture(tmp_path_factory, digits):
    """The last state of each worker, by mode and epochs."""

    def start_for(folder, mode, epochs=EPOCHS):
        return start(folder, digits, mode, epochs=epochs)

    return unbroken_ends(tmp_path_factory, "recovery", start_for)


@pytest.mark.parametrize(
    ("fault", "mode"),
    [
        (faults.kill_worker, "model"),
        (faults.kill_worker, "loop"),
        (faults.kill_worker, "placed"),
        (faults.interrupt_worker, "model"),
        (faults.kill_two_workers, "model"),
        (faults.kill_all_workers, "model"),
        (faults.kill_scheduler, "model"),
        (faults.kill_scheduler_and_worker, "model"),
        (faults.kill_everybody, "placed"),
        (faults.kill_worker_in_recovery_of_another, "loop"),
        (faults.kill_returning_worker, "model"),
        (faults.pause_worker, "placed"),
        (faults.replace_stopped_worker, "model"),
        (faults.cut, "loop"),
        (faults.kill_in_last_rendezvous, "model"),
        (faults.damage_newest_point, "model"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_broken_training_ends_with_the_bits_of_an_unbroken_one(tmp_path, digits, unbroken_end, fault, mode):
    epochs = epochs_for(fault)
    with start(tmp_path, digits, mode, epochs=epochs) as job:
        job.wait_for_progress(())
        fault(job, random.Random(1))
        assert job.wait() == unbroken_end(mode, epochs)


@pytest.mark.parametrize(
    ("fault", "mode", "layout"),
    [
        (storage_faults.lose_folder, "calls", "own"),
        (storage_faults.lose_folder, "norm", "shared"),
        (storage_faults.replace_host, "calls", "own"),
        (storage_faults.replace_host, "placed", "apart"),
        (storage_faults.lose_scheduler_folder, "calls", "shared"),
        (storage_faults.lose_scheduler_folder, "model", "apart"),
        (storage_faults.lose_scheduler_folder, "placed", "shared"),
        (storage_faults.fill_disk_for_a_while, "calls", "own"),
        (storage_faults.fill_all_disks_over_two_ends, "calls", "own"),
        (storage_faults.two_jobs_one_path, "calls", "shared"),
        (storage_faults.two_jobs_one_path, "model", "own"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
@pytest.mark.parametrize("seed", [1, 2])
def test_lost_folders_and_full_disks_change_no_bit(tmp_path, digits, unbroken_end, fault, mode, layout, seed):
    epochs = epochs_for(fault)
    with start(tmp_path, digits, mode, layout=layout, epochs=epochs) as job:
        job.wait_for_progress(())
        fault(job, random.Random(seed))
        assert job.wait() == unbroken_end(mode, epochs)


@pytest.fixture(name="tree", scope="module")
def tree_fixture(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize(
    "fault",
    [faults.kill_worker, faults.kill_scheduler, faults.replace_stopped_worker, faults.cut],
    ids=lambda fault: fault.__name__,
)
def test_an_encrypted_training_goes_on_too(tmp_path, digits, unbroken_end, tree, fault):
    epochs = epochs_for(fault)
    with start(tmp_path, digits, epochs=epochs, MUSTER_TRANSPORT="tcp", **tree.variables()) as job:
        job.wait_for_progress(())
        fault(job, random.Random(1))
        assert job.wait() == unbroken_end("model", epochs)


def test_a_job_of_one_worker_goes_on_too(tmp_path, digits):
    with start(tmp_path / "unbroken", digits, workers=1) as job:
        unbroken = job.wait()
    with start(tmp_path / "broken", digits, workers=1) as job:
        job.wait_for_progress(())
        faults.kill_worker(job, random.Random(1))
        assert job.wait() == unbroken
    assert None not in unbroken


DAMAGED = """
import numpy
import muster
from muster import nn, train
from muster.dataset import ImageFolderDataset, NumpySlicesDataset, transforms
muster.init()
muster.set_auto_parallel_context(parallel_mode="data_parallel")
if muster.get_rank() == 0:
    pictures = numpy.zeros((4, 8, 8, 3), numpy.uint8)
    data = NumpySlicesDataset((pictures, numpy.zeros(4, numpy.int32)), ["image", "label"])
else:
    data = ImageFolderDataset(FOLDER, decode=True)
data = data.map(transforms.TypeCast(muster.float32), "image").map(transforms.TypeCast(muster.int32), "label")
net = nn.SequentialCell(nn.Flatten(), nn.Dense(8 * 8 * 3, 10))
model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(2, data.batch(1))
"""


def test_damaged_data_of_one_worker_ends_the_job_and_is_no_lost_peer(tmp_path):
    pictures = tmp_path / "pictures/cats"
    pictures.mkdir(parents=True)
    for i in range(4):
        (pictures / f"{i}.png").write_bytes(b"no picture")
    script = DAMAGED.replace("FOLDER", repr(str(pictures.parent)))
    recovery = {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(tmp_path / "recovery")}
    with job.Job(script, 2, **recovery) as broken:
        statuses = [process.wait() for process in broken.everybody()]
        texts = [process.output() for process in broken.workers]
    assert 0 not in statuses
    assert all(".png" in text for text in texts)
    assert all("epoch 2" not in text for text in texts)


BEHIND_TRAINING = """
import hashlib, os, pathlib, signal
import numpy
import muster
from muster import nn, train
from muster.dataset import NumpySlicesDataset
muster.init()
muster.set_seed(1)
rank = muster.get_rank()
net = nn.SequentialCell(nn.Dense(6, 8).place("MS_WORKER", 0), nn.Dense(8, 3).place("MS_WORKER", 1))
random = numpy.random.default_rng(1)
rows = random.standard_normal((40, 6)).astype(numpy.float32), random.integers(0, 3, 40).astype(numpy.int32)
data = NumpySlicesDataset(rows, ["x", "label"]).batch(4)
model = train.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
model.train(2, data)
died = pathlib.Path(DIED)
if rank == 1 and not died.exists():
    died.touch()
    os.kill(os.getpid(), signal.SIGKILL)
weights = model.gather_parameters()
bits = b"".join(weights[name].asnumpy().tobytes() for name in sorted(weights))
print("weights", hashlib.sha256(bits).hexdigest())
"""


def test_a_worker_that_dies_behind_a_placed_training_knows_who_has_which_parameter(tmp_path):
    def weights(name, is_to_die):
        died = tmp_path / f"{name}-died"
        if not is_to_die:
            died.touch()
        recovery = {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(tmp_path / name)}
        with job.Job(BEHIND_TRAINING.replace("DIED", repr(str(died))), 2, **recovery) as run:
            if is_to_die:
                assert run.workers[1].wait() == -signal.SIGKILL
                run.workers[1] = run.start("worker 1", MS_ROLE="MS_WORKER", MS_NODE_ID="1")
            assert [process.wait() for process in run.everybody()] == [0] * 3, run.workers[0].output()
            return [re.search(r"weights \w+", worker.output())[0] for worker in run.workers]

    unbroken = weights("unbroken", is_to_die=False)
    assert unbroken[0] == unbroken[1]
    assert weights("broken", is_to_die=True) == unbroken
