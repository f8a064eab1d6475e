"""Sequences and numbers as ops, and ops that take or give a sequence whose length may change."""

import copy

import mindspore as ms
import numpy
import pytest
from mindspore import Tensor, nn
from mindspore.common import mutable
from mindspore.ops import functional as F  # noqa: N812 - as scripts name it
from mindspore.ops.composite import GradOperation
from mindspore.ops.operations import _scalar_ops, _sequence_ops

MODES = [ms.GRAPH_MODE, ms.PYNATIVE_MODE]


class Net(nn.Cell):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, *inputs):
        return self.function(*inputs)


@pytest.fixture(params=MODES, autouse=True)
def mode(request):
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


PLAYED = {
    "SequenceAdd": (((1, 2), (3,)), (1, 2, 3)),
    "SequenceAddOffset": (((1, 2, 3), (4, 5)), (0, 3)),
    "SequenceSlice": (((1, 2, 3, 4, 5, 6), 1, 5, 2), (2, 4)),
    "SequenceSliceSetItem": (((1, 2, 3, 4), (8, 9), 1, 3, 1), (1, 8, 9, 4)),
    "SequenceSliceGrad": (((7, 8), (1, 2, 3, 4), 1, 3, 1), (0, 7, 8, 0)),
    "SequenceMul": (((1, 2), 2), (1, 2, 1, 2)),
    "SequenceCount": (((1, 2, 1), 1), 2),
    "SequenceIndex": (((5, 6, 7), 7), 2),
    "SequenceMax": (((5, 7, 6),), 7),
    "SequenceMin": (((5, 7, 6),), 5),
    "SequenceAddN": (((1, 2, 3),), 6),
    "SequenceZerosLike": (((1, 2.5),), (0, 0.0)),
    "InSequence": ((3, (1, 2)), False),
    "ListAppend": (([2], 3), [2, 3]),
    "ListInsert": (([2, 4], 1, 3), [2, 3, 4]),
    "sequence_len": (((1, 2, 3),), 3),
    "shape_mul": (((2, 3, 4),), 24),
    "make_range": ((1, 7, 2), (1, 3, 5)),
    "tuple_equal": (((1, 2), (True, 2)), False),
    "tuple_lt": (((1, 2), (1, 3)), True),
    "list_greater_equal": (([2], [1, 5]), True),
}


@pytest.mark.parametrize("name", PLAYED)
def test_an_op_of_sequences_gives_what_python_gives(name):
    inputs, wanted = PLAYED[name]
    assert Net(getattr(_sequence_ops, name)())(*inputs) == wanted


def test_a_sequence_of_tensors_is_summed_stacked_and_compared():
    tensors = mutable((Tensor([1, 2]), Tensor([3, 4])), True)
    assert Net(_sequence_ops.SequenceAddN())(tensors).asnumpy().tolist() == [4, 6]
    assert Net(_sequence_ops.SequenceStack(axis=1))(tensors).asnumpy().tolist() == [[1, 3], [2, 4]]
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert _sequence_ops.InSequence()(Tensor([3, 4]), tensors)
    assert not _sequence_ops.InSequence()(Tensor([3, 5]), tensors)


def test_tensors_become_sequences_and_sequences_tensors():
    assert Net(_sequence_ops.TupleToTensor())((1, 2), ms.float32).dtype == ms.float32
    assert Net(_sequence_ops.ListToTensor())([1, 2]).asnumpy().tolist() == [1, 2]
    assert _sequence_ops.TensorToList()(Tensor([1, 2])) == [1, 2]
    assert _sequence_ops.TensorToScalar()(Tensor(2.5)) == 2.5


def test_two_kinds_of_sequences_are_not_added():
    with pytest.raises(TypeError, match="tuple"):
        _sequence_ops.SequenceAdd()((1,), [2])


def test_numbers_have_ops_as_functions_and_classes():
    assert Net(F.scalar_uadd)(3) == 3
    assert Net(F.scalar_usub)(3) == -3
    assert Net(F.scalar_pow)(8, 2) == 64
    assert numpy.isclose(Net(F.scalar_log)(8), numpy.log(8))
    assert Net(_scalar_ops.bit_and())(6, 3) == 2
    assert F.tuple_setitem((1, 2, 3), -1, 9) == (1, 2, 9)
    with pytest.raises(IndexError, match="range"):
        F.tuple_setitem((1, 2), 5, 0)


def test_a_sequence_whose_length_may_change_is_a_setting_like_any_other():
    x = Tensor(numpy.arange(6).reshape(1, 2, 3), ms.float32)
    axes = mutable((0, 2), True)
    net = Net(lambda value, axis: value.sum(axis))
    net.set_inputs(Tensor(shape=[None, None, None], dtype=ms.float32), axes)
    assert net(x, axes).asnumpy().tolist() == [3.0, 12.0]
    (gradient,) = GradOperation(get_all=True)(net)(x, axes)
    assert gradient.asnumpy().tolist() == numpy.ones((1, 2, 3)).tolist()


@pytest.mark.parametrize("given", ["text", None, (1, "a"), {1: "a"}])
def test_what_cannot_change_is_no_input(given):
    with pytest.raises(TypeError, match="mutable"):
        mutable(given)


def test_only_a_sequence_has_a_length_that_may_change():
    with pytest.raises(TypeError, match="dynamic_len"):
        mutable(3, True)


@pytest.mark.parametrize("shape, sizes", [(None, (-2,)), ([None, 3], (-1, 3))])
def test_what_declares_a_shape_is_copied(shape, sizes):
    declared = Tensor(shape=shape, dtype=ms.float16)
    (copied,) = copy.deepcopy([declared])
    assert copied is not declared
    assert copied.shape == sizes and copied.dtype == ms.float16
    net = Net(lambda x: x * 2)
    net.set_inputs(copied)
    assert net(Tensor([[1.0, 2, 3]], ms.float16)).asnumpy().tolist() == [[2, 4, 6]]
