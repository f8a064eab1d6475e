"""ModelCheckpoint of trainings whose workers have pieces of parameters: whole files, and trainings go on."""

import re

import pytest
from job import Job

SCRIPT = """
import hashlib, os
import numpy
import muster
from muster import nn, parallel, train
from muster.dataset import NumpySlicesDataset

muster.init()
muster.set_seed(1)
zero = parallel.Zero(int(os.environ["LEVEL"]), threshold_bytes=0) if os.environ["LEVEL"] else None
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, zero=zero)
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
random = numpy.random.default_rng(1)
rows = random.standard_normal((40, 8)).astype(numpy.float32), random.integers(0, 4, 40).astype(numpy.int32)
rank, workers = muster.get_rank(), muster.get_group_size()
data = NumpySlicesDataset(rows, ["x", "label"], num_shards=workers, shard_id=rank).batch(4)
optimizer = nn.Adam(net.trainable_params(), 0.01)
folder = os.environ["FOLDER"]
saver = train.ModelCheckpoint("net", folder, train.CheckpointConfig(save_checkpoint_steps=5))
model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
model.train(int(os.environ["EPOCHS"]), data, [saver], resume="last")
end = muster.load_checkpoint(f"{folder}/net-{os.environ['EPOCHS']}_5.ckpt")
for name in sorted(end):
    digest = hashlib.sha256(end[name].asnumpy().tobytes()).hexdigest()
    print("end", name, end[name].shape, digest, flush=True)
"""


def ended(folder, epochs, level, **variables):
    """What the last checkpoint has: shapes and hashes, by name."""
    with Job(SCRIPT, 2, FOLDER=str(folder), EPOCHS=str(epochs), LEVEL=level, **variables) as job:
        outputs = [worker.output() for worker in job.workers]
        assert {process.wait() for process in job.everybody()} == {0}, "\n".join(outputs)
    return re.findall(r"^end (.*)$", outputs[0], re.MULTILINE)


@pytest.mark.parametrize("level", ["1", "2", "3"])
@pytest.mark.parametrize("recovers", ["0", "1"])
def test_a_checkpoint_of_a_divided_training_is_whole_and_the_training_goes_on(tmp_path, level, recovers):
    expected = ended(tmp_path / "whole", 4, "")

    def of_job(name):
        return {"MS_ENABLE_RECOVERY": recovers, "MS_RECOVERY_PATH": str(tmp_path / name)}

    ended(tmp_path / "divided", 2, level, **of_job("first"))
    assert ended(tmp_path / "divided", 4, level, **of_job("second")) == expected
