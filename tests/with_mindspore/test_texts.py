"""What repr() of a tensor shows: MindSpore 2.7.0's texts, recorded."""

import mindspore
import numpy
import pytest
from mindspore import Tensor, mint, nn

FLOATS = "0.00000000e+00,  1.00000000e+00,  2.00000000e+00"


def rows(*sizes):
    return Tensor(numpy.arange(numpy.prod(sizes)).reshape(sizes))


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (Tensor([1.0, -2.5]), "[2], dtype=Float32, value= [ 1.00000000e+00, -2.50000000e+00]"),
        (Tensor(numpy.zeros((2, 0))), "[2, 0], dtype=Float64, value=\n"),
        (Tensor(1e-7), "[], dtype=Float32, value= 1e-07"),
        (rows(13), "[13], dtype=Int64, value= [ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12]"),
        (
            Tensor(numpy.arange(25, dtype=numpy.uint8)),
            "[25], dtype=UInt8, value= [ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, "
            "17, 18, 19, 20, 21, 22, 23, \n 24]",
        ),
        (
            Tensor(numpy.arange(24) % 2 == 0),
            "[24], dtype=Bool, value= [" + ", \n ".join([", ".join([" True, False"] * 6)] * 2) + "\n ]",
        ),
        (rows(1001), "[1001], dtype=Int64, value= [   0,    1,    2 ...  998,  999, 1000]"),
        (
            rows(2, 7).astype(mindspore.float64),
            f"[2, 7], dtype=Float64, value=\n[[ {FLOATS} ...  4.00000000e+00,  5.00000000e+00,  "
            "6.00000000e+00],\n [ 7.00000000e+00,  8.00000000e+00,  9.00000000e+00 ...  1.10000000e+01,  "
            "1.20000000e+01,  1.30000000e+01]]",
        ),
        (
            rows(7, 2, 2),
            "[7, 2, 2], dtype=Int64, value=\n[[[ 0,  1],\n  [ 2,  3]],\n [[ 4,  5],\n  [ 6,  7]],\n "
            "[[ 8,  9],\n  [10, 11]],\n ...\n [[16, 17],\n  [18, 19]],\n [[20, 21],\n  [22, 23]],\n "
            "[[24, 25],\n  [26, 27]]]",
        ),
        (
            Tensor(numpy.array([[numpy.nan, 1.0], [-numpy.inf, 0.1]]), mindspore.float16),
            "[2, 2], dtype=Float16, value=\n[[        nan,  1.0000e+00],\n [       -inf,  9.9976e-02]]",
        ),
        (
            Tensor([1.0, 2.5, -3.0], mindspore.bfloat16),
            "[3], dtype=BFloat16, value= [  1, 2.5,  -3]",
        ),
    ],
)
def test_a_tensor_is_shown_as_in_mindspore(tensor, text):
    assert repr(tensor) == f"Tensor(shape={text})"


@pytest.mark.parametrize(("number", "text"), [(0.1, "0.1"), (1 / 3, "0.3333"), (1e-7, "1e-07")])
def test_a_float16_is_shown_with_the_digits_that_it_has(number, text):
    assert str(Tensor(number, mindspore.float16)) == text


def _class_called(name):
    return type(name, (nn.Cell,), {"construct": lambda self, x: x})


@pytest.mark.parametrize(
    "name", ["Dense", "LayerNorm", "Conv2d", "Embedding", "Dropout", "LSTM", "BatchNorm2d"]
)
def test_a_class_of_ones_own_may_be_called_as_one_of_the_library(name):
    cell = _class_called(name)()
    assert repr(cell) == f"{name}()"
    assert repr(nn.SequentialCell(cell)) == f"SequentialCell(\n  (0): {name}()\n)"
    assert not hasattr(cell, "bias")
    assert not hasattr(cell, "pad_mode")


def test_a_class_that_extends_one_of_the_library_shows_its_settings():
    class Normalized(nn.GroupNorm):
        pass

    assert repr(Normalized(2, 4)).startswith("Normalized(num_groups=2, num_channels=4")


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (lambda: mint.nn.Linear(2, 3), "Linear(input_features=2, output_features=3, has_bias=True)"),
        (lambda: mint.nn.Linear(2, 3, bias=False), "Linear(input_features=2, output_features=3)"),
        (
            lambda: mint.nn.Conv2d(2, 4, 3, padding=1, groups=2),
            "Conv2d(input_channels=2, output_channels=4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), "
            "dilation=(1, 1), groups=2, bias=True)",
        ),
        (
            lambda: mint.nn.BatchNorm2d(3),
            "BatchNorm2d(num_features=3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)",
        ),
        (
            lambda: mint.nn.GroupNorm(2, 4),
            "GroupNorm(num_groups=2, num_channels=4, eps=1e-05, affine=True)",
        ),
    ],
)
def test_cells_of_mint_show_what_they_were_made_with(cell, text):
    assert repr(cell()) == text


@pytest.mark.parametrize(
    ("name", "made_with"), [("LayerNorm", 2), ("Embedding", (3, 4)), ("MaxPool2d", 2), ("AvgPool2d", 2)]
)
def test_cells_of_mint_that_are_called_as_those_of_nn_have_texts(name, made_with):
    arguments = made_with if isinstance(made_with, tuple) else (made_with,)
    assert repr(getattr(mint.nn, name)(*arguments)).startswith(name)


def test_a_norm_of_mint_counts_its_batches():
    norm = mint.nn.BatchNorm1d(2, momentum=None)
    batches = [rows(3, 2).astype(mindspore.float32) * factor for factor in (1, 3)]
    for batch in batches:
        norm.set_train()(batch)
    norm.set_train(False)(batches[0])
    assert norm.num_batches_tracked.asnumpy() == 2
    assert norm.running_mean.asnumpy().tolist() == [4, 6]  # of [2, 3] and [6, 9]
