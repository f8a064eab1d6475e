"""bfloat16 tensors, and networks that compute in them."""

import subprocess
import sys
from typing import ClassVar

import numpy
import pytest
from job import clean_environment

import muster
from muster import amp, nn, ops, train
from muster import dataset as ds

NUMBERS = [1.0, -2.5, 3.140625, 65536.0, 0.0]  # of 8 bits


def low(values=NUMBERS):
    return muster.Tensor(values, muster.bfloat16)


class Net(muster.Cell):
    """Notes the dtypes that its parts give."""

    seen: ClassVar = []

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)
        self.norm = nn.BatchNorm2d(16)
        self.dense = nn.Dense(16 * 64, 4)
        self.scale = muster.Tensor(2.0)

    def construct(self, x):
        y = self.norm(self.conv(x))
        z = self.dense(ops.flatten(ops.relu(y) * self.scale))
        Net.seen = [str(y.dtype), str(z.dtype)]
        return z


def images(samples=8):
    random = numpy.random.default_rng(1)
    return muster.Tensor(random.normal(size=(samples, 3, 8, 8)).astype("float32"))


def test_bfloat16_has_a_name_a_size_and_pythons_numbers():
    tensor = low()
    assert (muster.bfloat16.name, muster.bfloat16.itemsize) == ("bfloat16", 2)
    assert tensor.dtype is muster.bfloat16 is muster.dtype("bfloat16")
    assert tensor.nbytes == 10
    assert tensor.tolist() == NUMBERS
    assert muster.Tensor(0.1, muster.bfloat16).item() == 0.10009765625
    assert str(muster.Tensor(2.5, muster.bfloat16)) == "2.5"
    assert "dtype=bfloat16" in repr(tensor)


def test_numpy_gets_the_same_numbers_as_float32():
    array = low().asnumpy()
    assert array.dtype == numpy.float32 and array.tolist() == NUMBERS
    assert numpy.asarray(low(), dtype="float64").tolist() == NUMBERS
    with pytest.raises(BufferError, match="asnumpy"):
        memoryview(low())


def test_numbers_of_other_dtypes_are_rounded_to_the_nearest():
    values = numpy.array([1.00390625, 1.01171875, 1e-40, numpy.inf, numpy.nan], "float32")
    made = muster.Tensor(values).astype(muster.bfloat16).asnumpy()
    assert made[:2].tolist() == [1.0, 1.015625]
    assert made[3] == numpy.inf and numpy.isnan(made[4])
    assert muster.Tensor([3, -7], muster.int32).astype("bfloat16").tolist() == [3.0, -7.0]
    assert low([2.75, -1.5]).astype(muster.int32).tolist() == [2, -1]


def test_arrays_of_ml_dtypes_come_in_as_they_are():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    tensor = muster.Tensor(numpy.array(NUMBERS, ml_dtypes.bfloat16))
    assert tensor.dtype is muster.bfloat16 and tensor.tolist() == NUMBERS
    assert numpy.asarray(tensor, dtype=ml_dtypes.bfloat16).dtype == ml_dtypes.bfloat16


def test_bfloat16_passes_dlpack_without_a_copy():
    tensor = low()
    again = muster.from_dlpack(tensor)
    assert again.dtype is muster.bfloat16 and again.tolist() == NUMBERS


def test_bfloat16_meets_whole_numbers_in_itself_and_float32_in_float32():
    assert (low() * 2).dtype is muster.bfloat16
    assert (low() + muster.Tensor([1] * 5, muster.int32)).dtype is muster.bfloat16
    assert (low() + muster.Tensor(NUMBERS, muster.float32)).dtype is muster.float32


def test_a_checkpoint_keeps_bfloat16(tmp_path):
    path = str(tmp_path / "low.ckpt")
    muster.save_checkpoint([{"name": "low", "data": low()}], path)
    assert b"BFloat16" in (tmp_path / "low.ckpt").read_bytes()
    loaded = muster.load_checkpoint(path)["low"]
    assert loaded.dtype is muster.bfloat16 and loaded.tolist() == NUMBERS


@pytest.mark.parametrize(
    ("level", "seen"),
    [
        ("O0", ["float32", "float32"]),
        ("O1", ["float32", "float32"]),
        ("O2", ["bfloat16", "bfloat16"]),
        ("O3", ["bfloat16", "bfloat16"]),
        ("auto", ["float32", "float32"]),
    ],
)
def test_levels_say_what_computes_in_bfloat16(level, seen):
    muster.set_seed(1)
    full = Net()(images()).asnumpy()
    muster.set_seed(1)
    net = Net()
    assert amp.auto_mixed_precision(net, level) is net
    made = net(images())
    assert Net.seen == seen
    assert made.dtype is muster.float32
    assert numpy.abs(made.asnumpy() - full).max() < 0.03 * numpy.abs(full).max()


def test_to_float_is_of_a_part_of_the_network():
    net = Net()
    assert net.conv.to_float(muster.bfloat16) is net.conv
    net(images())
    assert Net.seen[0] == "bfloat16"
    net.to_float(muster.float32)
    net(images())
    assert Net.seen == ["float32", "float32"]
    with pytest.raises(ValueError, match="not in float64"):
        net.to_float(muster.float64)


def test_lists_are_of_classes_of_cells():
    net = Net()
    assert nn.Dense in amp.get_white_list() and nn.BatchNorm2d in amp.get_black_list()
    amp.custom_mixed_precision(net, white_list=[nn.Conv2d])
    net(images())
    assert Net.seen == ["float32", "float32"]
    amp.custom_mixed_precision(net, black_list=[*amp.get_black_list(), nn.Dense])
    net(images())
    assert Net.seen == ["bfloat16", "bfloat16"]
    with pytest.raises(ValueError, match="one of both"):
        amp.custom_mixed_precision(net)
    with pytest.raises(TypeError, match="holds classes"):
        amp.custom_mixed_precision(net, white_list=[3])
    with pytest.raises(NotImplementedError, match="classes of cells"):
        amp.custom_mixed_precision(net, white_list=[int])


def learnable(samples=64):
    random = numpy.random.default_rng(5)
    labels = random.integers(0, 4, samples).astype("int32")
    pictures = random.normal(size=(samples, 3, 8, 8)).astype("float32")
    pictures[numpy.arange(samples), 0, labels * 2, :] += 3
    return ds.NumpySlicesDataset((pictures, labels), ["image", "label"], shuffle=False).batch(16)


def trained(level, mode="graph", epochs=4):
    muster.set_context(mode=mode)
    try:
        muster.set_seed(1)
        net = Net()
        optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
        model = train.Model(net, nn.CrossEntropyLoss(), optimizer, {"loss"}, amp_level=level)
        losses = []
        model.train(
            epochs,
            learnable(),
            train.LambdaCallback(on_train_step_end=lambda run: losses.append(run.net_outputs.item())),
        )
        return net, model, losses
    finally:
        muster.set_context(mode="graph")


@pytest.mark.parametrize("level", ["O1", "O2", "O3", "auto"])
@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_a_model_learns_in_mixed_precision(level, mode):
    net, model, losses = trained(level, mode)
    assert losses[-1] < 0.5 * losses[0]
    assert all(parameter.dtype is muster.float32 for parameter in net.get_parameters())
    assert model.eval(learnable())["loss"] < losses[0]
    assert model.predict(images()).shape == (8, 4)


def test_the_first_steps_follow_those_in_float32():
    full = trained("O0", epochs=1)[2]
    assert trained("O2", epochs=1)[2] == pytest.approx(full, rel=0.05)


def test_two_trainings_in_mixed_precision_give_the_same_bits():
    weights = {trained("O2", epochs=2)[0].conv.weight.asnumpy().tobytes() for _ in range(2)}
    assert len(weights) == 1


def test_a_training_cell_makes_steps_in_mixed_precision():
    muster.set_seed(1)
    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    step = amp.build_train_network(net, optimizer, nn.CrossEntropyLoss(), level="O2")
    labels = muster.Tensor(numpy.arange(8, dtype="int32") % 4)
    losses = [step(images(), labels).item() for _ in range(10)]
    assert Net.seen[0] == "bfloat16" and losses[-1] < losses[0]


def test_what_is_no_level_is_refused():
    net = Net()
    with pytest.raises(ValueError, match="'O7'"):
        amp.auto_mixed_precision(net, "O7")
    with pytest.raises(TypeError, match="a Cell, not of a int"):
        amp.auto_mixed_precision(3, "O2")
    with pytest.raises(ValueError, match="no optimizer"):
        train.Model(net, amp_level="O2")


BY_MINDSPORES_NAMES = """
import mindspore as ms
from mindspore import amp, nn
from mindspore.common import dtype as mstype
from mindspore.train.amp import build_train_network

net = nn.Dense(4, 2)
assert amp.auto_mixed_precision(net, "O2", mstype.bfloat16) is net
net.to_float(mstype.float32)
optimizer = nn.SGD(net.trainable_params(), 0.1)
step = build_train_network(net, optimizer, nn.MSELoss(), level="O3", keep_batchnorm_fp32=True)
print(step(ms.Tensor([[1.0] * 4]), ms.Tensor([[0.0] * 2])).dtype)
ms.Model(net, nn.MSELoss(), optimizer, amp_level="O2", keep_batchnorm_fp32=True)
for refused in (
    lambda: ms.Model(net, amp_level="O2", loss_scale_manager=object()),
    lambda: build_train_network(net, optimizer, cast_model_type=mstype.float16),
):
    try:
        refused()
    except (AttributeError, NotImplementedError, TypeError) as error:
        print(type(error).__name__, error)
"""


def test_mindspores_names_for_it_are_there():
    done = subprocess.run(
        [sys.executable, "-c", BY_MINDSPORES_NAMES],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "Float32"
    assert [line.split()[:2] for line in lines[1:]] == [
        ["TypeError", "mindspore.Model:"],
        ["NotImplementedError", "mindspore.amp.build_train_network(cast_model_type=mindspore.float16)"],
    ]
