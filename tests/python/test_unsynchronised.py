"""Workers that would train apart without knowing: each mistake is named, with the line to add."""

import re

import pytest
from job import Job, run_alone

NET = """
import numpy as np
import muster
from muster import dataset, nn
muster.set_context(mode=MODE)
def make():
    net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
    return net, nn.Momentum(net.trainable_params(), 0.1, 0.9)
def rows(rank, count=20):
    rng = np.random.default_rng(rank)
    x, y = rng.normal(size=(count, 4)).astype(np.float32), rng.normal(size=(count, 2)).astype(np.float32)
    return dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(2)
def by_hand(reduce, rank):
    net, optimizer = make()
    loss_fn, reducer = nn.MSELoss(), nn.DistributedGradReducer(net.trainable_params())
    grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
    for x, y in rows(rank):
        loss, grads = grad_fn(x, y)
        optimizer(reducer(grads) if reduce else grads)
def by_model(rank):
    net, optimizer = make()
    muster.Model(net, nn.MSELoss(), optimizer).train(1, rows(rank))
"""
TOGETHER = 'muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)\n'
MODES = ("graph", "eager")


def outputs_of(script, mode="graph", workers=2, code=0, **variables):
    script = (
        NET.replace("MODE", repr(mode))
        + "muster.init()\nmuster.set_seed(1)\nrank = muster.get_rank()\n"
        + script
    )
    with Job(script, workers=workers, **variables) as job:
        codes = [process.wait() for process in job.everybody()]
        text = "\n".join(process.output() for process in job.everybody())
        assert all(each == code for each in codes) if code == 0 else any(codes), text
        return text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["by_hand(False, rank)", "by_model(rank)"])
def test_gradients_that_nobody_reduces_are_told_with_the_line_to_add(mode, way):
    text = outputs_of(way, mode)
    assert "0.weight'" in text
    assert "ranks 0 and 1" in text
    assert "data_parallel" in text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["by_hand(True, rank)", "by_model(rank)"])
def test_workers_that_train_together_are_told_nothing(mode, way):
    assert "differ" not in outputs_of(TOGETHER + way, mode)


GROUPS = """
import mindspore
from mindspore.experimental import optim
plain = make
def make():
    net, _ = plain()
    optimizer = optim.SGD(net.trainable_params(), lr=0.1)
    return net, optimizer
def by_model(rank):
    net, optimizer = make()
    mindspore.Model(net, nn.MSELoss(), optimizer).train(1, rows(rank))
"""


# It counts no steps.
OWN = """
plain = make
class Own(nn.Optimizer):
    def construct(self, gradients):
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            muster.ops.assign(parameter, parameter - self.get_lr() * gradient)
        return True
def make():
    net, _ = plain()
    return net, Own(0.1, net.trainable_params())
"""
WRITTEN_IN_PYTHON = pytest.mark.parametrize("optimizer", [GROUPS, OWN], ids=["groups", "own"])


@WRITTEN_IN_PYTHON
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["by_hand(False, rank)", "by_model(rank)"])
def test_so_they_are_with_an_optimizer_that_is_written_in_python(optimizer, mode, way):
    text = outputs_of(optimizer + way, mode)
    assert "0.weight'" in text
    assert "ranks 0 and 1" in text


@WRITTEN_IN_PYTHON
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["by_hand(True, rank)", "by_model(rank)"])
def test_with_such_an_optimizer_workers_that_train_together_are_told_nothing(optimizer, mode, way):
    assert "differ" not in outputs_of(optimizer + TOGETHER + way, mode)


@pytest.mark.parametrize("way", ["by_hand(True, rank)", "by_model(rank)"])
def test_messages_name_the_class_that_the_script_chose(way):
    zero = TOGETHER.replace("gradients_mean=True", "gradients_mean=True, zero=muster.parallel.Zero(1)")
    assert "warning: SGD updates whole parameters" in outputs_of(GROUPS + zero + way)


def test_a_parameter_that_leaves_the_common_path_is_named():
    script = (
        TOGETHER
        + """
net, optimizer = make()
loss_fn = nn.MSELoss()
reducer = nn.DistributedGradReducer(optimizer.parameters)
grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
for step, (x, y) in enumerate(rows(rank)):
    loss, grads = grad_fn(x, y)
    optimizer(reducer(grads))
    if step == 3 and rank == 1:
        net[2].bias.set_data(net[2].bias + 1)
"""
    )
    text = outputs_of(script)
    assert "2.bias'" in text
    assert "after step 8" in text


BESIDE_A_PLACED_ONE = (
    TOGETHER
    + """
placed = nn.SequentialCell(nn.Dense(4, 4), nn.Dense(4, 4))
placed[0].place("MS_WORKER", 0)
placed[1].place("MS_WORKER", 1)
"""
)


def test_a_network_beside_a_placed_one_is_compared_too():
    text = outputs_of(BESIDE_A_PLACED_ONE + "by_hand(True, rank)")
    assert "0.weight'" in text
    assert "ranks 0 and 1" in text
    assert "differ" not in outputs_of(BESIDE_A_PLACED_ONE + "by_hand(True, 0)")


def test_under_strict_it_ends_the_job():
    text = outputs_of("by_hand(False, rank)\nimport time; time.sleep(20)", code=1, MUSTER_STRICT="1")
    assert "0.weight'" in text


def test_workers_with_the_same_data_and_no_reduction_are_equal():
    assert "differ" not in outputs_of("by_hand(False, 0)")


def test_moving_statistics_of_batch_norm_may_differ():
    script = (
        TOGETHER
        + """
net = nn.SequentialCell(nn.Dense(4, 8), nn.BatchNorm1d(8), nn.Dense(8, 2))
muster.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9)).train(1, rows(rank))
"""
    )
    assert "differ" not in outputs_of(script)


def test_trainings_one_after_the_other_are_not_mixed_up():
    script = TOGETHER + "for each in range(3):\n    muster.set_seed(each)\n    by_model(rank)\n"
    assert "differ" not in outputs_of(script)


@pytest.mark.parametrize("training", ["by_hand(False, 0)", "by_model(0)"])
def test_a_process_of_a_job_that_trains_without_init_is_stopped(training):
    script = NET.replace("MODE", "'graph'") + training
    variables = {"MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "2"}
    status, text, _ = run_alone(script, **variables)
    assert status != 0
    assert "muster.init()" in text and "MS_ROLE" in text
    assert run_alone(script)[0] == 0, "without MS_ROLE it is a script like any other"


def test_a_loss_that_is_no_number_is_told_once_with_rank_and_step():
    script = (
        NET.replace("MODE", "'graph'")
        + """
net, _ = make()
muster.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 1e30)).train(2, rows(0))
"""
    )
    status, text, _ = run_alone(script)
    assert status == 0, text
    assert text.count("the loss is ") == 1
    assert re.search(r"the loss is (nan|inf) in step \d+ of worker 0", text), text
    assert "MUSTER_DETECT_ANOMALY=1" in text


LAYERWISE = """
plain = make
def make():
    net, optimizer = plain()
    net[0].bias.layerwise_parallel = True
    return net, optimizer
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["by_hand(True, rank)", "by_model(rank)"])
def test_a_parameter_of_each_worker_alone_is_no_part_of_a_training_together(mode, way):
    text = outputs_of(LAYERWISE + TOGETHER + way, mode, code=1)
    assert "parameter '0.bias' has layerwise_parallel=True" in text


@pytest.mark.parametrize("way", ["by_hand(True, rank)", "by_model(rank)"])
def test_one_worker_trains_with_a_parameter_of_its_own(way):
    outputs_of(LAYERWISE + TOGETHER + way, workers=1)
