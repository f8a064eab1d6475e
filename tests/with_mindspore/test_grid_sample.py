# Points of grid_sample that lie on no pixel; what is wanted is what MindSpore 2.7 gives.
import numpy
import pytest
from mindspore import Tensor, ops

PIXELS = numpy.arange(30, dtype=numpy.float32).reshape(1, 1, 5, 6)


def sampled(x, y, mode, padding_mode):
    grid = Tensor(numpy.array([[[[x, y]]]], numpy.float32))
    return ops.grid_sample(Tensor(PIXELS), grid, mode=mode, padding_mode=padding_mode).asnumpy().item()


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize(("padding_mode", "wanted"), [("zeros", 0.0), ("border", 29.0), ("reflection", 29.0)])
def test_a_point_that_is_nan_is_outside_or_the_last_pixel(mode, padding_mode, wanted):
    assert sampled(numpy.nan, numpy.nan, mode, padding_mode) == wanted


def test_a_point_at_infinity_is_the_last_pixel_of_a_mirrored_image():
    assert sampled(numpy.inf, 0.0, "nearest", "reflection") == 17.0


def test_the_nearest_of_two_pixels_is_the_one_further_on():
    assert sampled(0.0, 0.0, "nearest", "zeros") == 15.0
