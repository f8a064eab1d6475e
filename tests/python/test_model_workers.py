"""Model on several workers: equal parameters, equal bits, and the losses of one worker with all the data."""

import re

import pytest
from digits import write_digits
from job import Job

SCRIPT = """
import hashlib
import muster
from muster import nn, train
from muster.dataset import MnistDataset, transforms, vision

muster.init()
rank, workers = muster.get_rank(), muster.get_group_size()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=MEAN)
CONTEXT
muster.set_seed(3)
net = nn.SequentialCell(nn.Flatten(), nn.Dense(28 * 28, 32), nn.ReLU(), nn.Dense(32, 10))
dataset = MnistDataset(FOLDER, num_shards=workers, shard_id=rank)
dataset = dataset.map(vision.Rescale(1 / 255.0, 0), "image").map(transforms.TypeCast(muster.int32), "label")
dataset = dataset.batch(BATCH // workers, drop_remainder=True)
BEFORE
optimizer = nn.Momentum(net.trainable_params(), RATE, 0.9)
model = train.Model(net, nn.CrossEntropyLoss(), optimizer, amp_level=LEVEL)
callback = train.LambdaCallback(on_train_step_end=lambda run: print("loss", repr(run.net_outputs.item())))
model.train(4, dataset, callback)
weights = b"".join(parameter.asnumpy().tobytes() for parameter in net.get_parameters())
print("weights", hashlib.sha256(weights).hexdigest())
"""


@pytest.fixture(name="digits", scope="module")
def digits_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, 160)
    return str(folder)


def script(folder, mean=True, rate=0.05, before="", context="", level="O0"):
    text = SCRIPT.replace("FOLDER", repr(folder)).replace("BATCH", "32").replace("CONTEXT", context)
    text = text.replace("LEVEL", repr(level))
    return text.replace("MEAN", str(mean)).replace("RATE", repr(rate)).replace("BEFORE", before)


def outputs(code, workers):
    with Job(code, workers) as job:
        assert [process.wait() for process in job.everybody()] == [0] * (workers + 1), job.workers[0].output()
        return [worker.output() for worker in job.workers]


def losses(text):
    return [float(loss) for loss in re.findall(r"loss ([\d.e-]+)", text)]


def weights(text):
    return re.search(r"weights (\w+)", text)[1]


def test_two_workers_with_half_the_batch_have_the_losses_of_one(digits):
    [alone] = outputs(script(digits), 1)
    together = outputs(script(digits), 2)
    halves = [losses(text) for text in together]
    mean = [sum(both) / 2 for both in zip(*halves, strict=True)]
    assert len(mean) == 20
    assert mean == pytest.approx(losses(alone), abs=1e-5)
    assert halves[0] != halves[1]


def test_all_ranks_and_two_runs_with_one_seed_end_with_the_same_bits(digits):
    ends = {weights(text) for _ in range(2) for text in outputs(script(digits), 2)}
    assert len(ends) == 1


@pytest.mark.parametrize("workers", [2, 3])
def test_buckets_change_no_bit(digits, workers):
    settings = ["bucket_bytes=1", "bucket_bytes=100_000", "bucket_bytes=1 << 30", "bucket_splits=[1, 3]"]
    contexts = [f"muster.set_auto_parallel_context({setting})" for setting in settings]
    ends = {
        weights(text) for context in contexts for text in outputs(script(digits, context=context), workers)
    }
    assert len(ends) == 1


BY_HAND = """
loss_fn = nn.CrossEntropyLoss()
grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
reducer = nn.DistributedGradReducer(optimizer.parameters)
for epoch in range(4):
    for image, label in dataset:
        optimizer(reducer(grad_fn(image, label)[1]))
"""


def by_hand(code):
    return re.sub(r"model = .*model.train.*?\n", lambda _: BY_HAND, code, flags=re.DOTALL)


CONVOLUTIONS = """
net = nn.SequentialCell(
    nn.Conv2d(1, 16, 3, pad_mode="same"), nn.ReLU(), nn.MaxPool2d(4, 4),
    nn.Conv2d(16, 16, 3, pad_mode="same"), nn.ReLU(), nn.Flatten(), nn.Dense(16 * 7 * 7, 10))
dataset = MnistDataset(FOLDER, num_shards=workers, shard_id=rank)
dataset = dataset.map([vision.Rescale(1 / 255.0, 0), vision.HWC2CHW()], "image")
dataset = dataset.map(transforms.TypeCast(muster.int32), "label").batch(32 // workers, drop_remainder=True)
"""


# Also where a Model's gradients travel in another order: those of convolutions.
@pytest.mark.parametrize("network", ["", CONVOLUTIONS])
def test_the_reducer_of_a_loop_by_hand_gives_the_bits_of_a_models(digits, network):
    network = network.replace("FOLDER", repr(digits))
    model = script(digits, before=network)
    ends = {weights(text) for code in [model, by_hand(model)] for text in outputs(code, 2)}
    assert len(ends) == 1


def test_a_worker_that_dies_between_buckets_ends_the_step_of_the_other(digits):
    before = """
import os, signal
muster.set_auto_parallel_context(bucket_bytes=1)
die = train.LambdaCallback(on_train_step_end=lambda run: rank and os.kill(os.getpid(), signal.SIGKILL))
"""
    code = script(digits, before=before).replace("dataset, callback)", "dataset, [callback, die])")
    with Job(code, 2) as job:
        assert job.workers[0].wait() not in (0, None)
        assert "worker 1" in job.workers[0].output()


def test_eager_mode_reduces_gradients_too(digits):
    eager = outputs(script(digits, before="muster.set_context(mode='eager')"), 2)
    graph = outputs(script(digits), 2)
    assert weights(eager[0]) == weights(eager[1])
    assert losses(eager[0]) == pytest.approx(losses(graph[0]), rel=1e-4)


def test_ranks_in_mixed_precision_agree_and_follow_one_worker_in_float32(digits):
    [alone] = outputs(script(digits), 1)
    together = outputs(script(digits, level="O2"), 2)
    assert weights(together[0]) == weights(together[1])
    mean = [sum(both) / 2 for both in zip(*map(losses, together), strict=True)]
    assert mean == pytest.approx(losses(alone), rel=0.05)
    assert mean[-1] < 0.5 * mean[0]


def test_gradients_are_summed_unless_the_mean_is_asked_for(digits):
    mean = outputs(script(digits, mean=True, rate=0.125), 2)
    total = outputs(script(digits, mean=False, rate=0.0625), 2)
    assert losses(total[0]) == losses(mean[0])  # halving is exact


def test_unequal_parameters_are_named_before_the_first_step(digits):
    before = "net.set_train(); net[1].bias.set_data(net[1].bias + float(rank))"
    with Job(script(digits, before=before), 2) as job:
        assert all(worker.wait() != 0 for worker in job.workers)
        text = job.workers[0].output()
    assert all(part in text for part in ("'1.bias'", "rank 0", "rank 1"))
    assert "loss" not in text.split("Traceback")[0]


def test_unequal_numbers_of_steps_are_named_before_the_first_step(digits):
    before = "dataset = dataset.take(5 - rank)"
    with Job(script(digits, before=before), 2) as job:
        assert all(worker.wait() != 0 for worker in job.workers)
        text = job.workers[1].output()
    assert all(part in text for part in ("rank 0 makes 5", "rank 1 makes 4"))


# The loss of worker 0 falls while that of worker 1 rises, and their mean falls.
FOLLOWED = """
import numpy
import muster
from muster import nn, train
from muster.dataset import NumpySlicesDataset

muster.init()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
optimizer = nn.SGD(net.trainable_params(), 0.125)
y = [1.0, -0.5][muster.get_rank()] * numpy.ones((2, 1), numpy.float32)
data = NumpySlicesDataset((numpy.ones_like(y), y), ["x", "y"]).batch(2)
stop, plateau = train.EarlyStopping("loss", patience=1), train.ReduceLROnPlateau("loss", patience=1)
made = train.LambdaCallback(on_train_epoch_end=lambda run: print("epoch", run.cur_epoch_num))
train.Model(net, nn.MSELoss(), optimizer).train(4, data, [CALLBACK, made])
print("rate", optimizer.learning_rate.asnumpy())
"""


@pytest.mark.parametrize("callback", ["stop", "plateau"])
def test_callbacks_that_follow_a_loss_decide_alike_on_all_workers(callback):
    for text in outputs(FOLLOWED.replace("CALLBACK", callback), 2):
        assert re.findall(r"epoch (\d)", text) == ["1", "2", "3", "4"]
        assert "rate 0.125" in text
