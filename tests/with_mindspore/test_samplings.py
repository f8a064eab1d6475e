"""Ops that take parts of images, beside what MindSpore gives; `dilation` alone is held to a hand's loop."""

import math
from itertools import pairwise

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops
from mindspore.ops import operations as P  # noqa: N812

IMAGE = np.arange(1, 17, dtype=np.float32).reshape(1, 4, 4, 1)
MODES = (ms.GRAPH_MODE, ms.PYNATIVE_MODE)


@pytest.fixture(autouse=True, params=MODES, ids=["graph", "pynative"])
def mode(request):
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize(
    "name, overlapping, expected",
    [
        ("FractionalMaxPool", False, [6, 8, 14, 16]),
        ("FractionalMaxPool", True, [11, 12, 15, 16]),
        ("FractionalAvgPool", False, [3.5, 5.5, 11.5, 13.5]),
        ("FractionalAvgPool", True, [6, 7.5, 12, 13.5]),
    ],
)
def test_pools_of_even_windows(name, overlapping, expected, dtype):
    pool = getattr(ops, name)([1.0, 1.5, 1.5, 1.0], overlapping=overlapping)
    made, rows, columns = pool(Tensor(IMAGE.astype(dtype)))
    assert made.asnumpy().ravel().tolist() == np.array(expected).astype(dtype).tolist()
    assert rows.asnumpy().tolist() == columns.asnumpy().tolist() == [0, 2, 4]


def test_uneven_windows_have_two_lengths_and_are_the_same_with_a_fixed_seed():
    image = Tensor(np.random.RandomState(0).rand(1, 10, 10, 2).astype(np.float32))
    pool = ops.FractionalMaxPool([1.0, 1.4, 3.1, 1.0], deterministic=True, seed=3, seed2=4)
    made, rows, columns = (each.asnumpy() for each in pool(image))
    assert set(np.diff(rows)) == {1, 2} and set(np.diff(columns)) == {3, 4}
    assert (rows == pool(image)[1].asnumpy()).all()
    windows = [
        image.asnumpy()[:, top:bottom, left:right].max((1, 2))
        for top, bottom in pairwise(rows)
        for left, right in pairwise(columns)
    ]
    assert (made.reshape(-1, 2) == np.concatenate(windows)).all()


def test_ratios_that_are_no_pool_are_value_errors():
    for ratios in ([1.0, 2.0, 1.5], [2.0, 1.0, 1.0, 1.0]):
        with pytest.raises(ValueError):
            ops.FractionalAvgPool(ratios)(Tensor(IMAGE))


@pytest.mark.parametrize(
    "kernel, expected",
    [
        ("box", [3.33333, 5.0, 11.33333, 13.0]),
        ("triangle", [4.19048, 5.85714, 10.47619, 12.14286]),
        ("lanczos3", [3.2901, 5.15251, 10.98508, 12.84749]),
    ],
)
def test_images_are_scaled_and_moved(kernel, expected):
    size, scale = Tensor(np.array([2, 2], np.int32)), Tensor(np.array([0.5, 0.5], np.float32))
    moved = Tensor(np.array([0.0, 0.25], np.float32))
    made = ops.ScaleAndTranslate(kernel)(Tensor(IMAGE), size, scale, moved)
    assert np.allclose(made.asnumpy().ravel(), expected, atol=1e-4), made.asnumpy().ravel()


def test_a_glimpse_begins_where_its_offset_says_and_has_zeros_outside():
    look = ops.operations.image_ops.ExtractGlimpse(True, True, False, "zero")
    size, offsets = Tensor(np.array([2, 3], np.int32)), Tensor(np.array([[0.0, 1.0]], np.float32))
    made = look(Tensor(IMAGE), size, offsets).asnumpy()
    assert made[0, ..., 0].tolist() == [[7, 8, 0], [11, 12, 0]]


def test_settings_are_checked_when_the_op_is_made():
    with pytest.raises(ValueError):
        ops.operations.image_ops.ExtractGlimpse(True, True, True, "zero")
    with pytest.raises(ValueError):
        ops.ScaleAndTranslate("round")
    with pytest.raises(TypeError):
        ops.NonDeterministicInts(ms.float32)


def dilated(x, kernel, step, apart, same):
    """The greatest of element plus kernel over each window, by loops."""
    batch, channels, *sizes = x.shape
    spans = [(taps - 1) * apart + 1 for taps in kernel.shape[1:]]
    counts = [
        -(-size // step) if same else (size - span) // step + 1
        for size, span in zip(sizes, spans, strict=True)
    ]
    before = [
        max((count - 1) * step + span - size, 0) // 2 if same else 0
        for size, span, count in zip(sizes, spans, counts, strict=True)
    ]
    made = np.full((batch, channels, *counts), -math.inf)
    for n, c, y, z, i, j in np.ndindex(*made.shape, *kernel.shape[1:]):
        row, column = y * step + i * apart - before[0], z * step + j * apart - before[1]
        if 0 <= row < sizes[0] and 0 <= column < sizes[1]:
            made[n, c, y, z] = max(made[n, c, y, z], float(x[n, c, row, column]) + float(kernel[c, i, j]))
    return made


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.uint8])
@pytest.mark.parametrize("mode_of_edges", ["SAME", "valid"])
@pytest.mark.parametrize("step, apart", [(1, 1), (2, 1), (1, 2)])
def test_a_dilation_is_the_greatest_sum_of_each_window(dtype, mode_of_edges, step, apart):
    source = np.random.RandomState(1)
    x, kernel = (source.randint(0, 20, shape).astype(dtype) for shape in ((2, 3, 6, 7), (3, 3, 2)))
    made = ops.Dilation2D(step, apart, mode_of_edges)(Tensor(x), Tensor(kernel)).asnumpy()
    assert made.dtype == dtype
    assert (made == dilated(x, kernel, step, apart, mode_of_edges == "SAME")).all()


def test_the_gradient_of_a_dilation_goes_to_the_greatest():
    x, kernel = Tensor(IMAGE.reshape(1, 1, 4, 4)), Tensor(np.zeros((1, 2, 2), np.float32))
    of_x, of_kernel = ms.grad(ops.Dilation2D(2, 1, "VALID"), (0, 1))(x, kernel)
    assert of_x.asnumpy().reshape(4, 4).tolist() == [[0] * 4, [0, 1, 0, 1], [0] * 4, [0, 1, 0, 1]]
    assert of_kernel.asnumpy().tolist() == [[[0, 0], [0, 4]]]


def test_patches_of_volumes_are_channels():
    volume = Tensor(np.arange(16, dtype=np.float32).reshape(1, 2, 2, 2, 2))
    made = P.ExtractVolumePatches((1, 1, 2, 2, 1), (1, 1, 1, 1, 1), "VALID")(volume).asnumpy()
    assert made.shape == (1, 8, 1, 1, 2)
    assert made.ravel().tolist() == [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15]


def test_random_whole_numbers_have_the_shape_and_the_dtype():
    made = ops.NonDeterministicInts(ms.int32)(Tensor([3, 4], ms.int32))
    assert made.shape == (3, 4) and made.dtype == ms.int32 and len(set(made.asnumpy().ravel().tolist())) > 6
