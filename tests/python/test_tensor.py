"""Tensors and numpy: the same elements, without a copy, in the same words."""

import random

import numpy
import pytest

import muster


def seed_of_this_run():
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    return seed


DTYPES = [
    "float32",
    "float64",
    "float16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


@pytest.mark.parametrize("name", DTYPES)
def test_a_tensor_from_numpy_reads_the_memory_of_the_array(name):
    array = numpy.array([[0, 1, 0], [1, 1, 0]]).astype(name)
    tensor = muster.Tensor.from_numpy(array)
    assert tensor.shape == (2, 3)
    assert tensor.dtype is muster.dtype(name)
    array[1, 2] = 1
    assert tensor[1, 2].item() == 1


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_reads_the_memory_of_a_tensor(name):
    tensor = muster.Tensor(numpy.array([[0, 1, 0], [1, 1, 0]]).astype(name))
    first, second = tensor.asnumpy(), numpy.asarray(tensor)
    assert first.dtype == name and first.shape == (2, 3)
    assert numpy.shares_memory(first, second)
    assert not first.flags.writeable


def test_the_elements_outlive_the_tensor_that_numpy_looks_at():
    array = muster.Tensor([1.0, 2.0]).asnumpy()
    assert array.tolist() == [1.0, 2.0]


def test_the_array_outlives_its_owner_while_a_tensor_reads_it():
    tensor = muster.Tensor.from_numpy(numpy.arange(4))
    row = tensor[1:3]
    del tensor
    assert row.tolist() == [1, 2]


def test_a_tensor_made_from_an_array_has_elements_of_its_own():
    array = numpy.zeros(3, numpy.float32)
    tensor = muster.Tensor(array)
    array[0] = 1
    assert tensor.tolist() == [0.0, 0.0, 0.0]


def test_a_strided_array_is_copied_in_order_and_refused_where_memory_would_be_shared():
    array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3).T
    assert muster.Tensor(array).tolist() == array.tolist()
    with pytest.raises(ValueError, match="contiguous"):
        muster.Tensor.from_numpy(array)


def test_an_array_of_an_unknown_dtype_is_refused_with_the_choices():
    with pytest.raises(TypeError, match="float16, float32, float64"):
        muster.Tensor(numpy.zeros(2, numpy.complex64))


def test_python_numbers_become_the_dtypes_of_their_kind():
    assert muster.Tensor(1.5).dtype is muster.float32
    assert muster.Tensor(2).dtype is muster.int64
    assert muster.Tensor([True, False]).dtype is muster.bool_
    assert muster.Tensor([1, 2.5]).dtype is muster.float32
    assert muster.Tensor(3, muster.uint8).dtype is muster.uint8


def test_nested_lists_give_their_shape_and_uneven_ones_are_refused():
    assert muster.Tensor([[1, 2, 3], [4, 5, 6]]).shape == (2, 3)
    assert muster.Tensor([[], []]).shape == (2, 0)
    with pytest.raises(ValueError, match="equally long"):
        muster.Tensor([[1, 2], [3]])


def test_a_number_that_does_not_fit_the_dtype_is_refused():
    with pytest.raises(ValueError, match="300 does not fit"):
        muster.Tensor(300, muster.uint8)


def test_dlpack_gives_and_takes_without_a_copy():
    array = numpy.arange(6, dtype=numpy.int32).reshape(2, 3)
    tensor = muster.from_dlpack(array)
    assert tensor.tolist() == array.tolist()
    assert numpy.shares_memory(numpy.from_dlpack(tensor), array)


def random_floats(make, count):
    bits = numpy.frombuffer(make.randbytes(4 * count), numpy.float32)
    return bits[numpy.isfinite(bits)]


def test_a_float32_scalar_prints_as_numpy_prints_it():
    make = random.Random(seed_of_this_run())
    usual = [numpy.float32(make.gauss(0, 10 ** make.uniform(-6, 5))) for _ in range(5000)]
    for value in [*random_floats(make, 5000), *usual]:
        text = str(muster.Tensor(value))
        assert numpy.float32(text) == value
        if 1e6 <= abs(value) < 1e16:  # numpy before 2.4 prints these in full
            continue
        assert text == str(value)
        assert f"{muster.Tensor(value)}" == str(numpy.array(value))


def test_a_float64_scalar_prints_as_numpy_prints_it():
    make = random.Random(seed_of_this_run())
    for _ in range(5000):
        value = numpy.float64(make.gauss(0, 10 ** make.uniform(-20, 20)))
        assert str(muster.Tensor(value)) == str(value)


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 2.0, 1e-5, 1e-4, float("inf"), float("-inf"), float("nan"), 2.3499548]
)
def test_special_scalars_print_as_numpy_prints_them(value):
    assert str(muster.Tensor(value)) == str(numpy.float32(value))


def test_a_format_applies_to_the_only_element():
    assert f"{muster.Tensor(2.5):.3f}" == "2.500"
    assert f"{muster.Tensor([1, 2])}" == "[1 2]"


def test_an_array_prints_as_numpy_prints_it():
    array = numpy.linspace(0, 1, 6, dtype=numpy.float32).reshape(2, 3)
    assert str(muster.Tensor(array)) == str(array)
    assert repr(muster.Tensor([1, 2])) == "Tensor([1, 2], shape=(2,), dtype=int64)"


def test_a_tensor_with_one_element_is_a_number_and_others_are_not():
    one = muster.Tensor([[2.5]])
    assert (float(one), int(one), bool(one), one.item()) == (2.5, 2, True, 2.5)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        bool(muster.Tensor([1, 2]))


def test_dtypes_are_one_object_each_and_found_by_every_name():
    for name in ("int32", numpy.int32, numpy.dtype("int32"), muster.int32):
        assert muster.dtype(name) is muster.int32
    with pytest.raises(TypeError, match="no dtype 'float8'"):
        muster.dtype("float8")


@pytest.mark.parametrize("shape", [(), (2,), (0, 3), 4])
def test_a_tensor_of_a_shape_and_nothing_else_has_zeros(shape):
    made = muster.Tensor(shape=shape, dtype=muster.float16)
    assert made.dtype == muster.float16
    assert numpy.array_equal(made.asnumpy(), numpy.zeros(shape))


@pytest.mark.parametrize(("shape", "dtype"), [([-2], "float32"), ([2, -3], "float32"), ([2], None)])
def test_what_is_no_shape_or_has_no_dtype_makes_no_tensor(shape, dtype):
    with pytest.raises((TypeError, ValueError)):
        muster.Tensor(shape=shape, dtype=dtype)


def test_a_tensor_with_open_sizes_declares_a_shape_and_has_no_elements():
    declared = muster.Tensor(shape=[None, 3], dtype=muster.float16)
    assert (declared.shape, declared.dtype) == ((-1, 3), muster.float16)
    assert muster.Tensor(shape=None, dtype=muster.float32).shape == (-2,)
    with pytest.raises(ValueError, match="set_inputs"):
        declared.asnumpy()
    with pytest.raises(ValueError, match="set_inputs"):
        muster.ops.relu(declared)


def test_a_tensor_of_one_number_has_no_entries():
    with pytest.raises(TypeError, match="iterate"):
        list(muster.Tensor(1.0))
    assert [row.tolist() for row in muster.Tensor(numpy.eye(2, dtype=numpy.float32))] == [[1, 0], [0, 1]]
