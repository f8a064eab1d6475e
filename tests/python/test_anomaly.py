"""Where a number that is none comes from: train.detect_anomaly(), and the look at every loss."""

import re
from pathlib import Path

import numpy as np
import pytest
from job import Job, run_alone

import muster
from muster import dataset, nn, ops, train


@pytest.fixture(params=["graph", "eager"], autouse=True)
def mode(request):
    muster.set_context(mode=request.param)
    yield request.param
    muster.set_context(mode="graph")
    train.detect_anomaly(False)


class Head(nn.Cell):
    def construct(self, x):
        return ops.log(x)  # the line that is named


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(nn.Dense(2, 2, weight_init="ones", bias_init="zeros"), nn.ReLU())
        self.head = Head()

    def construct(self, x):
        return self.head(self.body(x) - 1)


X = muster.Tensor(np.array([[1, 1], [0.25, 0.25], [1, 0]], np.float32))
LINE = Path(__file__).read_text().split("# the line that is named")[0].count("\n") + 1


def loss(net):
    return lambda x: net(x).sum()


def message(fn, *inputs):
    with train.detect_anomaly(), pytest.raises(ValueError) as raised:
        fn(*inputs)
    return str(raised.value)


def test_the_first_op_is_named_with_its_cell_its_line_and_the_place_of_the_first():
    net = Net()
    text = message(muster.value_and_grad(loss(net), None, net.trainable_params()), X)
    assert f"log, forward, of Head 'head', test_anomaly.py:{LINE} gave float32 (3, 2)" in text
    # log(-0.5) twice, log(0) twice
    assert "2 NaN and 2 infinite of 6 elements, the first at (1, 0)" in text
    assert "it was given float32 (3, 2) from -0.5 to 1" in text
    assert text.startswith("step 1 of worker 0: ")


def test_a_cell_that_is_called_by_itself_is_looked_at_too():
    assert "log, forward, of Head 'head'" in message(Net(), X)


def test_what_the_way_back_gives_first_is_named_with_the_line_of_the_way_forward():
    class Root(nn.Cell):
        def construct(self, x):
            return ops.sqrt(x)

    root = Root()
    text = message(muster.value_and_grad(lambda x: root(x * 0).sum()), X)
    assert re.search(r"backward of sqrt, of Root, test_anomaly.py:\d+ gave", text), text
    assert "6 infinite of 6 elements, the first at (0, 0)" in text


def test_a_bprop_is_named_by_its_own_line():
    class Bad(nn.Cell):
        def construct(self, x):
            return x * 1

        def bprop(self, x, out, dout):
            return (dout / (x * 0),)

    net = Bad()
    text = message(muster.value_and_grad(lambda x: net(x).sum()), X)
    assert re.search(r"div, backward, of Bad, test_anomaly.py:\d+ gave", text), text


def test_an_update_is_named():
    net = nn.Dense(2, 1)
    optimizer = nn.SGD(net.trainable_params(), 3e38)
    gradients = [muster.Tensor(np.full(each.shape, 100, np.float32)) for each in net.trainable_params()]
    assert re.search(r"(sgd|momentum).* of SGD.* gave float32", message(optimizer, gradients))


def test_what_came_with_the_data_is_said():
    x = np.ones((4, 2), np.float32)
    x[2, 1] = np.nan
    net = nn.Dense(2, 2)
    text = message(muster.value_and_grad(loss(net), None, net.trainable_params()), muster.Tensor(x))
    assert "1 NaN of 8 elements" in text
    assert "of Dense" in text


def test_infinities_that_are_meant_are_let_be():
    mask = muster.Tensor(np.array([[0, -np.inf], [0, 0], [-np.inf, 0]], np.float32))

    def masked(x):
        return ops.softmax(x + mask).sum()

    with train.detect_anomaly():
        value, _ = muster.value_and_grad(masked)(X)
    assert value.item() == 3


def test_off_it_says_nothing_and_a_block_turns_it_off_again():
    net = Net()
    function = muster.value_and_grad(loss(net), None, net.trainable_params())
    assert np.isnan(function(X)[0].item())
    message(function, X)
    assert np.isnan(function(X)[0].item())


def test_numbers_are_the_same_with_it():
    muster.set_seed(1)
    net = nn.SequentialCell(nn.Dense(2, 8), nn.Tanh(), nn.Dense(8, 1))
    function = muster.value_and_grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params())
    plain, plain_gradients = function(X)
    with train.detect_anomaly():
        watched, watched_gradients = function(X)
    assert watched.item() == pytest.approx(plain.item(), rel=1e-5)
    for one, other in zip(watched_gradients, plain_gradients, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-5, atol=1e-7)


def test_a_convolution_in_a_format_of_its_own_is_looked_at(mode):
    net = nn.SequentialCell(nn.Conv2d(3, 16, 3, weight_init="ones"), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    x = np.zeros((16, 3, 8, 8), np.float32)
    x[5, 1, 4, 3] = 3e38
    function = muster.value_and_grad(lambda x: (net(x) * 10).sum(), None, net.trainable_params())
    text = message(function, muster.Tensor(x))
    assert re.search(r"(mul|conv2d), forward.* infinite of \d+ elements, the first at \(5, ", text), text


def rows(count=8):
    x = np.linspace(1, -1, count * 2, dtype=np.float32).reshape(count, 2)
    return dataset.NumpySlicesDataset((x, x), ["x", "y"], shuffle=False).batch(2)


class Diverges(nn.Cell):
    """Finite in its first two batches."""

    def __init__(self):
        super().__init__()
        self.scale = muster.Parameter(muster.Tensor(np.ones(2, np.float32)), name="scale")
        self.head = Head()

    def construct(self, x):
        return self.head(x) * self.scale


def test_a_model_says_the_step():
    net = Diverges()
    model = muster.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.001))
    with train.detect_anomaly(), pytest.raises(ValueError, match="step 3 of worker 0: log, forward, of Head"):
        model.train(2, rows())


def test_a_loop_by_hand_says_the_step():
    net = Diverges()
    optimizer = nn.SGD(net.trainable_params(), 0.001)
    loss_fn = nn.MSELoss()
    step = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
    with train.detect_anomaly(), pytest.raises(ValueError, match="step 3 of worker 0: log, forward, of Head"):
        for x, y in rows():
            _, gradients = step(x, y)
            optimizer(gradients)


BY_HAND = """
import numpy as np
import muster
from muster import dataset, nn, ops
muster.init()
muster.set_context(mode={mode!r})
rank = muster.get_rank()
net = nn.Dense(2, 1)
optimizer = nn.SGD(net.trainable_params(), 0.001)
reduce = nn.DistributedGradReducer(optimizer.parameters)
step = muster.value_and_grad(lambda x: ops.log(net(x) ** 2).mean(), None, optimizer.parameters)
for number in range(1, 6):
    x = np.ones((2, 2), np.float32) * (0 if number >= 3 and rank == {rank} else 1)
    net.bias.set_data(muster.Tensor(np.zeros(1, np.float32)))
    value, gradients = step(muster.Tensor(x))
    optimizer(reduce(gradients))
"""


def test_a_loss_that_is_none_is_told_once_of_a_loop_by_hand_with_step_and_rank(mode):
    status, text, _ = run_alone(BY_HAND.format(mode=mode, rank=0))
    assert status == 0, text
    assert text.count("the loss is ") == 1
    assert "the loss is -inf in step 3 of worker 0" in text
    assert "train.detect_anomaly() or MUSTER_DETECT_ANOMALY=1" in text


def test_in_a_job_the_worker_is_said_where_it_arose(mode):
    with Job(BY_HAND.format(mode=mode, rank=1), workers=2) as job:
        for process in job.workers:
            process.wait()
        assert "the loss is -inf in step 3 of worker 1" in job.workers[1].output()
        assert "in step 3 of worker 0" not in job.workers[0].output()


def test_the_variable_turns_it_on_in_a_job(mode):
    with Job(BY_HAND.format(mode=mode, rank=1), workers=2, MUSTER_DETECT_ANOMALY="1") as job:
        assert job.workers[1].wait() != 0
        assert job.workers[0].wait() != 0
        text = job.workers[1].output()
    assert re.search(r"step 3 of worker 1: log, forward.* gave float32 .* 2 infinite of 2 elements", text), (
        text
    )


def test_a_loss_inside_of_one_jitted_step_is_told(mode):
    script = """
import numpy as np
import muster
from muster import nn, ops
muster.set_context(mode=MODE)
net = nn.Dense(2, 1)
optimizer = nn.SGD(net.trainable_params(), 0.001)
grad = muster.value_and_grad(lambda x: ops.log(net(x) ** 2).mean(), None, optimizer.parameters)
@muster.jit
def step(x):
    loss, gradients = grad(x)
    optimizer(gradients)
    return loss
for factor in (1, 1, 0):
    net.bias.set_data(muster.Tensor(np.zeros(1, np.float32)))
    step(muster.Tensor(np.full((2, 2), factor, np.float32)))
""".replace("MODE", repr(mode))
    status, text, _ = run_alone(script)
    assert status == 0, text
    assert "the loss is -inf in step 3 of worker 0" in text
