"""Constructors refuse the kinds of arguments that MindSpore's refuse, with the same class of error."""

import inspect

import mindspore as ms
import pytest
from mindspore import Parameter, Tensor, nn, ops


def parameters():
    return [Parameter(Tensor([1.0, 2.0]), name="w")]


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("axis is a whole number or None or a tuple, not 'a'", lambda: ops.Softmax(axis="a")),
        ("axis is", lambda: ops.Softmax("a")),
        ("kernel_size is a whole number or a tuple, not 3.0", lambda: ops.Conv2D(2, 3.0)),
        ("a primitive's name is a string, not 3", lambda: ops.Primitive(3)),
        ("Transpose has no settings, not 3: give its inputs", lambda: ops.Transpose(3)),
        ("Transpose has no settings, not 'a'", lambda: ops.Transpose("a")),
        ("Tile has no settings, not None", lambda: ops.Tile(None)),
        ("BiasAdd: data_format is a string or None, not 3", lambda: ops.BiasAdd(3)),
        ("Reshape has no settings, not name='a'", lambda: ops.Reshape(name="a")),
        ("has_bias is True or False, not 1", lambda: nn.Dense(2, 2, has_bias=1)),
        ("kernel_size is a whole number, not True", lambda: nn.Conv1d(1, 2, True)),
        ("lambd is a float, not 1", lambda: nn.ASGD(parameters(), lambd=1)),
        ("beta1", lambda: nn.Adam(parameters(), beta1=1)),
        ("requires_grad", lambda: Parameter(Tensor([1.0]), requires_grad=1)),
        ("Conv2d.kernel_size. is a whole number or a tuple", lambda: nn.Conv2d(1, 2, True)),
        ("MaxPool2d.stride. holds whole numbers", lambda: nn.MaxPool2d(1, (1, True))),
        ("epsilon", lambda: nn.LARS(nn.SGD(parameters(), 0.1), epsilon=1)),
        ("LARS.epsilon. is a number, not str", lambda: nn.LARS(nn.SGD(parameters(), 0.1), epsilon="a")),
        ("use_locking is True or False, not 'a'", lambda: ops.ScatterAdd(use_locking="a")),
        ("ignore_nan is True or False, not 1", lambda: ops.Median(ignore_nan=1)),
        ("integrated_save is True or False", lambda: ms.CheckpointConfig(integrated_save=1)),
    ],
)
def test_an_argument_of_another_kind_is_a_type_error(words, call):
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("Conv2D: out_channel is at least 1, not 0", lambda: ops.Conv2D(0, 3)),
        ("Conv2D: kernel_size is at least 1, not -1", lambda: ops.Conv2D(1, -1)),
        ("StandardNormal: seed is at least 0, not -1", lambda: ops.StandardNormal(seed=-1)),
        ("MirrorPad: mode is one of REFLECT, SYMMETRIC, not 'a'", lambda: ops.MirrorPad("a")),
        ("reduction is one of mean, none, sum, not 'a'", lambda: nn.HingeEmbeddingLoss(reduction="a")),
    ],
)
def test_a_value_out_of_range_is_a_value_error(words, call):
    with pytest.raises(ValueError, match=words):
        call()


def test_rates_may_be_true_or_false():
    for made in (nn.Adam, nn.SGD, nn.Momentum):
        momentum = {"momentum": 0.9} if made is nn.Momentum else {}
        optimizer = made(parameters(), learning_rate=True, weight_decay=False, **momentum)
        assert optimizer.learning_rate.asnumpy() == 1


def test_what_a_subclass_passes_on_is_checked_too():
    class Wide(nn.Dense):
        def __init__(self):
            super().__init__(2, 2, has_bias="yes")

    with pytest.raises(TypeError, match="Dense: has_bias is True or False, not 'yes'"):
        Wide()


def test_a_primitive_of_the_same_name_in_a_script_takes_what_it_wants():
    class Softmax(ops.Primitive):
        def __init__(self, axis):
            super().__init__("Softmax")
            self.axis = axis

    assert Softmax("a").axis == "a"


def test_a_checked_class_keeps_its_signature():
    assert list(inspect.signature(nn.Conv1d).parameters)[:3] == ["in_channels", "out_channels", "kernel_size"]
    assert inspect.signature(nn.GRUCell).parameters["has_bias"].default is True


def test_kinds_that_mindspore_takes_pass():
    assert ops.Softmax(1)(Tensor([[1.0, 1.0]])).shape == (1, 2)
    assert nn.Conv1d(1, 2, 3, has_bias=True, dtype=ms.float32).has_bias
    assert nn.Dropout(p=0.5) is not None


def test_cells_set_before_their_cell_is_made_are_an_attribute_error():
    class Early(nn.Cell):
        def __init__(self):
            self.dense = nn.Dense(1, 1)
            super().__init__()

    with pytest.raises(AttributeError, match=r"must call super\(\).__init__\(\) before"):
        Early()


def test_a_primitive_without_settings_is_made_and_subclassed_as_before():
    class Turned(ops.Transpose):
        def __init__(self, order):
            super().__init__()
            self.order = order

    assert ops.Transpose()(Tensor([[1.0, 1.0]]), (1, 0)).shape == (2, 1)
    assert ops.Transpose().name == "Transpose" and Turned((1, 0)).order == (1, 0)


@pytest.mark.parametrize(
    ("data_format", "shape", "expected"),
    [
        ("NCHW", (1, 2, 1, 2), [2, 2, 4, 4]),
        ("NCDHW", (1, 2, 1, 1, 2), [2, 2, 4, 4]),
        ("NHWC", (1, 2, 1, 2), [2, 4, 2, 4]),
    ],
)
def test_bias_add_takes_its_layout(data_format, shape, expected):
    ones = ops.ones(shape, ms.float32)
    for add in (ops.BiasAdd(data_format), ops.BiasAdd(data_format=data_format)):
        assert add(ones, Tensor([1.0, 3.0])).asnumpy().ravel().tolist() == expected


def test_bias_add_refuses_another_layout():
    with pytest.raises(ValueError, match="BiasAdd: data_format is 'NCHW', 'NCDHW' or 'NHWC', not 'a'"):
        ops.BiasAdd("a")
