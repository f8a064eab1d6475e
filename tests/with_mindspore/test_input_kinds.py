"""Inputs that are no tensors are TypeErrors where MindSpore's are, of primitives and of functions."""

import inspect
import pickle

import numpy as np
import pytest
from mindspore import Tensor, mint, ops

TENSOR = Tensor(np.array([[0.3, 0.5], [0.2, 0.7]], np.float32))
ONE = {
    "Abs": ops.Abs(),
    "ReduceSum": ops.ReduceSum(),
    "Softmax": ops.Softmax(),
    "Squeeze": ops.Squeeze(),
    "relu": ops.relu,
    "exp": ops.exp,
    "tril": ops.tril,
    "mint.sum": mint.sum,
    "mint.nn.functional.gelu": mint.nn.functional.gelu,
}
TWO = {"Add": ops.Add(), "mul": ops.mul, "mint.sub": mint.sub, "LessEqual": ops.LessEqual(), "fmax": ops.fmax}


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("value", [[1.0, 2.0], (1.0, 2.0), None, "abc", 3, 1.5, True], ids=repr)
def test_an_op_of_one_tensor_takes_nothing_else(name, value):
    with pytest.raises(TypeError):
        ONE[name](value)


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("value", [[1.0, 2.0], (1.0, 2.0), None, "abc"], ids=repr)
def test_an_op_of_two_takes_no_list_at_either_place(name, value):
    with pytest.raises(TypeError):
        TWO[name](value, TENSOR)
    with pytest.raises(TypeError):
        TWO[name](TENSOR, value)


@pytest.mark.parametrize("name", TWO)
def test_an_op_of_two_takes_a_number_at_either_place(name):
    assert TWO[name](TENSOR, 0.25).shape == TWO[name](0.25, TENSOR).shape == (2, 2)


def test_an_input_given_by_name_is_checked_as_well():
    with pytest.raises(TypeError):
        ops.relu(input=[1.0])
    with pytest.raises(TypeError):
        ops.add(TENSOR, other=[[1.0, 2.0], [3.0, 4.0]])


def test_the_error_says_that_a_tensor_is_wanted():
    with pytest.raises(TypeError, match="Tensor"):
        ops.kron(TENSOR, [1, 2])


def test_stack_takes_the_tensors_of_a_list():
    assert ops.stack([TENSOR, TENSOR]).shape == (2, 2, 2)


def test_functions_keep_their_names_their_arguments_and_can_be_pickled():
    assert list(inspect.signature(ops.kron).parameters) == ["input", "other"]
    assert ops.kron.__name__ == "kron"
    assert pickle.loads(pickle.dumps(ops.kron)) is ops.kron
