"""Dtypes: exchanged with numpy and DLPack, converted, computed with, saved and loaded."""

import copy
import pickle

import numpy
import pytest

import muster
from muster import ops

NAMES = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
WHOLE = [name for name in NAMES if "int" in name]


def extremes(name):
    info = numpy.iinfo(name) if name in WHOLE else numpy.finfo(name)
    return numpy.array([info.min, info.max, 0, 1, 3], name)


@pytest.mark.parametrize("name", NAMES)
def test_every_dtype_goes_to_numpy_and_dlpack_and_back(name):
    array = extremes(name)
    tensor = muster.Tensor(array)
    assert tensor.dtype is getattr(muster, name) and tensor.itemsize == array.itemsize
    for back in (
        tensor.asnumpy(),
        numpy.from_dlpack(tensor),
        muster.from_dlpack(array).asnumpy(),
        muster.Tensor.from_numpy(array).asnumpy(),
        muster.Tensor(array.tolist(), tensor.dtype).asnumpy(),
        numpy.array(tensor.tolist(), name),
        pickle.loads(pickle.dumps(tensor)).asnumpy(),
        copy.deepcopy(tensor).asnumpy(),
    ):
        assert back.dtype == array.dtype and (back == array).all()
    assert numpy.dtype(name).type(tensor[1].item()) == array[1]
    assert muster.dtype(array.dtype) is tensor.dtype is muster.dtype(array.dtype.type)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast", "ignore:overflow encountered in cast")
def test_casts_between_all_dtypes_are_numpys():
    given = [-2.5, -1, 0, 0.5, 1, 300, 40000, 70000]
    for name in [*NAMES, "bool"]:
        array = numpy.array(given).astype("int64" if "int" in name else "float64").astype(name)
        for other in [*NAMES, "bool"]:
            wanted = array.astype(other)
            if array.dtype.kind == "f" and not numpy.isfinite(array).all() and other != "bool":
                finite = numpy.isfinite(array)  # what becomes of infinity is the processor's in numpy
                made = muster.Tensor(array).astype(other).asnumpy()
                assert (made[finite] == wanted[finite]).all(), (name, other)
                continue
            made = muster.Tensor(array).astype(other).asnumpy()
            assert made.dtype == wanted.dtype and (made == wanted).all(), (name, other, made, wanted)


@pytest.mark.parametrize("function", ["add", "sub", "mul", "maximum", "minimum", "less", "equal", "pow"])
def test_arithmetic_in_every_dtype_is_numpys(function):
    theirs = {"sub": "subtract", "mul": "multiply", "pow": "power"}.get(function, function)
    for name in NAMES:
        a = numpy.array([3, 100, 7, 0], name)
        b = numpy.array([[2], [5]], name)
        with numpy.errstate(over="ignore"):
            wanted = getattr(numpy, theirs)(a, b)
        made = getattr(ops, function)(muster.Tensor(a), muster.Tensor(b)).asnumpy()
        assert made.dtype == wanted.dtype and numpy.allclose(made, wanted), (name, made, wanted)


def test_uint64_beyond_int64_is_computed_or_refused_but_never_wrong():
    big = muster.Tensor(numpy.array([2**64 - 1, 2**63, 4], numpy.uint64))
    two = muster.Tensor(numpy.array([2], numpy.uint64))
    assert (big + two).tolist() == [1, 2**63 + 2, 6]
    assert (big // two).tolist() == [2**63 - 1, 2**62, 2]
    assert (big > two).tolist() == [True, True, True]
    assert big.astype("float64").tolist() == [2.0**64, 2.0**63, 4.0]
    with pytest.raises(NotImplementedError, match="18446744073709551615 of uint64 is beyond int64"):
        big.max()


def test_float16_is_summed_in_float32():
    ones = muster.Tensor(numpy.full((1, 4096), 1.0, numpy.float16))
    assert ops.reduce_sum(ones).item() == 4096
    product = ops.matmul(ones, ones.reshape(4096, 1))
    assert product.dtype is muster.float16 and product.item() == 4096  # float16 alone would stop at 2048
    image = muster.Tensor(numpy.ones((1, 2, 8, 8), numpy.float16))
    weight = muster.Tensor(numpy.ones((3, 2, 3, 3), numpy.float16))
    made = ops.conv2d(image, weight)
    assert made.dtype is muster.float16 and made.asnumpy().max() == 18


def test_gradients_in_float16_are_float16():
    x = muster.Tensor(numpy.array([1.0, 2.0, 3.0], numpy.float16))
    value, gradient = muster.value_and_grad(lambda x: (x * x).sum(), 0)(x)
    assert value.item() == 14 and gradient.dtype is muster.float16 and gradient.tolist() == [2, 4, 6]


def test_float16_meets_others_as_in_mindspore():
    half = muster.Tensor([1.0], muster.float16)
    for other, wanted in {
        "float32": "float32",
        "float64": "float64",
        "bfloat16": "float32",
        "int64": "float16",
        "bool": "float16",
    }.items():
        assert (half + muster.Tensor([1], other)).dtype.name == wanted
    assert (half * 2).dtype is (half + 1.5).dtype is muster.float16


def test_whole_numbers_of_different_widths_meet_where_both_fit():
    def met(a, b):
        return (muster.Tensor([1], a) + muster.Tensor([1], b)).dtype.name

    assert met("uint8", "int8") == met("uint8", "int16") == met("int16", "int8") == "int16"
    assert met("uint16", "int16") == met("uint8", "int32") == "int32"
    assert met("uint32", "int8") == met("uint32", "int64") == "int64"
    assert met("uint64", "uint8") == "uint64"
    with pytest.raises(ValueError, match="no dtype holds the numbers of both uint64 and int64: cast one"):
        met("uint64", "int64")


@pytest.mark.parametrize("suffix", ["ckpt", "safetensors"])
def test_every_dtype_is_saved_and_loaded(tmp_path, suffix):
    path = tmp_path / f"all.{suffix}"
    muster.save_checkpoint({name: muster.Tensor(extremes(name)) for name in NAMES}, str(path))
    loaded = muster.load_checkpoint(str(path))
    for name in NAMES:
        assert loaded[name].dtype.name == name and (loaded[name].asnumpy() == extremes(name)).all()


def test_a_dtype_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(TypeError, match=r"no dtype 'float128'.*float16, float32"):
        muster.dtype("float128")
