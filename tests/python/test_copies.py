"""copy and pickle of tensors and parameters."""

import copy
import pickle

import numpy
import pytest

import muster
from muster import nn


def pickled(value):
    return pickle.loads(pickle.dumps(value))


COPIES = [copy.copy, copy.deepcopy, pickled]


@pytest.mark.parametrize("made", COPIES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_a_copy_of_a_tensor_has_its_dtype_shape_and_elements(made, dtype, shape):
    tensor = muster.Tensor(numpy.full(shape, 1), muster.dtype(dtype))
    again = made(tensor)
    assert again is not tensor
    assert (again.dtype, again.shape, again.tolist()) == (tensor.dtype, tensor.shape, tensor.tolist())


@pytest.mark.parametrize("made", COPIES)
@pytest.mark.parametrize("dtype", [muster.float32, muster.bool_])
def test_a_copy_of_a_dtype_is_that_dtype(made, dtype):
    assert made(dtype) is dtype


@pytest.mark.parametrize("made", COPIES)
def test_a_copy_of_a_parameter_changes_alone(made):
    parameter = muster.Parameter(muster.Tensor([1.0, 2.0]), name="fc.bias", requires_grad=False)
    again = made(parameter)
    again.set_data(muster.Tensor([3.0, 4.0]))
    assert (again.name, again.requires_grad, again.tolist()) == ("fc.bias", False, [3.0, 4.0])
    assert parameter.tolist() == [1.0, 2.0]


def test_a_parameter_that_has_no_elements_yet_is_copied_with_those_that_it_will_have():
    parameter = muster.Parameter(nn.initializer("normal", [3], muster.float32), name="w")
    assert copy.deepcopy(parameter).tolist() == parameter.tolist()


def test_what_holds_one_parameter_twice_holds_one_copy_twice():
    parameter = muster.Parameter(muster.Tensor([1.0]), name="w")
    first, second = copy.deepcopy([parameter, parameter])
    assert first is second is not parameter
