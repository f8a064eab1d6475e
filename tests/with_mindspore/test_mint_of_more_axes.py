"""mint: convolutions along one and three axes, transposed ones, pools and images of other sizes, against what
their formulas say. MindSpore 2.7.0 has no CPU kernels for them."""

import itertools
import math

import mindspore
import numpy
import pytest
from mindspore import Tensor, mint
from mindspore.mint.nn import functional as F  # noqa: N812

RANDOM = numpy.random.RandomState(3)


def real(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


def close(found, wanted, places=1e-5):
    assert found.shape == numpy.shape(wanted)
    assert numpy.abs(found.asnumpy() - wanted).max() < places


def convolved(x, weight, stride, padding, dilation):
    """The sum over the window at each place, as the formula has it; one sample after the other."""
    axes = range(len(weight.shape) - 2)
    x = numpy.pad(x, [(0, 0), (0, 0), *((padding, padding) for _ in axes)])
    reach = [(k - 1) * dilation + 1 for k in weight.shape[2:]]
    counts = [(n - r) // stride + 1 for n, r in zip(x.shape[2:], reach, strict=True)]
    made = numpy.zeros((x.shape[0], weight.shape[0], *counts), numpy.float64)
    for at in itertools.product(*map(range, counts)):
        cut = tuple(slice(p * stride, p * stride + r, dilation) for p, r in zip(at, reach, strict=True))
        window = x[(slice(None), slice(None), *cut)].reshape(x.shape[0], -1)
        made[(slice(None), slice(None), *at)] = window @ weight.reshape(weight.shape[0], -1).T
    return made


@pytest.mark.parametrize(
    ("kind", "sizes"), [(mint.nn.Conv1d, (9,)), (mint.nn.Conv2d, (6, 5)), (mint.nn.Conv3d, (5, 4, 6))]
)
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2)])
def test_convolutions_are_sums_over_windows(kind, sizes, stride, padding, dilation):
    cell = kind(3, 4, 2, stride, padding, dilation)
    x = real(2, 3, *sizes)
    weight, bias = cell.weight.asnumpy(), cell.bias.asnumpy()
    assert weight.shape == (4, 3) + (2,) * len(sizes)
    wanted = convolved(x, weight, stride, padding, dilation) + bias.reshape(1, 4, *(1 for _ in sizes))
    close(cell(Tensor(x)), wanted)


def test_a_convolution_of_three_axes_takes_a_volume_without_samples_and_groups():
    x, weight = real(4, 5, 4, 6), real(4, 2, 2, 2, 2)
    both = [convolved(x[None, 2 * g : 2 * g + 2], weight[2 * g : 2 * g + 2], 1, 0, 1) for g in range(2)]
    close(F.conv3d(Tensor(x), Tensor(weight), groups=2), numpy.concatenate(both, 1)[0])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"stride": (2, 1), "dilation": (1, 2), "groups": 2},
    ],
)
def test_a_transposed_convolution_has_the_products_of_the_convolution(settings):
    """The sum of y times conv2d(x) is that of conv_transpose2d(y) times x, for all x and y."""
    groups = settings.get("groups", 1)
    weight, y = Tensor(real(4, 6 // groups, 3, 2)), Tensor(real(2, 4, 4, 3))
    x = F.conv_transpose2d(y, weight, **settings)
    there = {name: value for name, value in settings.items() if name != "output_padding"}
    other = Tensor(real(*x.shape))
    wanted = (F.conv2d(other, weight, **there) * y).sum()
    assert abs(float(((x * other).sum() - wanted).asnumpy())) < 1e-3


def test_a_transposed_convolution_gives_the_size_that_is_asked_for():
    cell = mint.nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1)
    x = Tensor(real(1, 3, 4, 4))
    assert cell(x).shape == (1, 2, 7, 7) and cell(x, output_size=(8, 7)).shape == (1, 2, 8, 7)
    assert cell.weight.shape == (3, 2, 3, 3)
    with pytest.raises(ValueError, match=r"output_size is from \(7, 7\) to \(8, 8\), not \(9, 7\)"):
        cell(x, output_size=(9, 7))


@pytest.mark.parametrize("mode", [mindspore.PYNATIVE_MODE, mindspore.GRAPH_MODE])
def test_a_transposed_convolution_trains(mode):
    mindspore.set_context(mode=mode)
    cell = mint.nn.ConvTranspose2d(2, 1, 2, stride=2)
    x = Tensor(numpy.ones((1, 2, 2, 2), numpy.float32))
    both = mindspore.value_and_grad(lambda: cell(x).sum(), None, cell.trainable_params())
    _, (of_weight, of_bias) = both()
    assert of_weight.asnumpy().ravel().tolist() == [4.0] * 8 and of_bias.asnumpy().tolist() == [16.0]


# ---- Other sizes -------------------------------------------------------------------------------------------


def test_nearest_reads_at_the_scale_that_is_given():
    x = Tensor(numpy.arange(5, dtype=numpy.float32).reshape(1, 1, 5))
    wanted = [math.floor(k / 1.5) for k in range(7)]
    assert F.interpolate(x, scale_factor=1.5).asnumpy().ravel().tolist() == wanted
    wanted = [math.floor(k * 5 / 7) for k in range(7)]
    assert F.interpolate(x, size=7).asnumpy().ravel().tolist() == wanted


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(("mode", "axes"), [("linear", 1), ("bilinear", 2), ("trilinear", 3)])
def test_a_ramp_stays_a_ramp_within_its_ends(mode, axes, align):
    ramp = numpy.arange(8, dtype=numpy.float32).reshape(1, 1, *(1 for _ in range(axes - 1)), 8)
    x = numpy.broadcast_to(ramp, (1, 1, *(8 for _ in range(axes))))
    found = F.interpolate(Tensor(x.copy()), size=(11,) * axes, mode=mode, align_corners=align)
    places = numpy.arange(11) * 7 / 10 if align else (numpy.arange(11) + 0.5) * 8 / 11 - 0.5
    inner = slice(3, -3)  # away from the ends, where elements beyond are those of the end
    close(found[(0,) * (axes + 1)][inner], places[inner], 1e-4)


def cubic(distance, a=-0.75):
    """The weight of an element at that distance, as Keys (1981) has it, with PyTorch's parameter."""
    d = abs(distance)
    if d < 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


@pytest.mark.parametrize("align", [False, True])
def test_bicubic_sums_four_elements_by_exact_weights_and_those_at_the_ends_stand_for_others(align):
    x = real(1, 1, 3, 6)
    found = F.interpolate(Tensor(x), size=(3, 10), mode="bicubic", align_corners=align)
    wanted = numpy.zeros((3, 10))
    for at in range(10):
        place = at * 5 / 9 if align else (at + 0.5) * 6 / 10 - 0.5
        for near in range(math.floor(place) - 1, math.floor(place) + 3):
            wanted[:, at] += cubic(place - near) * x[0, 0, :, min(max(near, 0), 5)]
    close(found[0, 0], wanted)


def test_a_scale_that_is_given_is_used_unless_it_is_to_be_computed_anew():
    x = Tensor(numpy.arange(5, dtype=numpy.float32).reshape(1, 1, 5))
    given = F.interpolate(x, scale_factor=1.5, mode="linear").asnumpy().ravel()
    places = numpy.clip((numpy.arange(7) + 0.5) / 1.5 - 0.5, 0, 4)
    assert numpy.abs(given - places).max() < 1e-5
    anew = F.interpolate(x, scale_factor=1.5, mode="linear", recompute_scale_factor=True).asnumpy().ravel()
    places = numpy.clip((numpy.arange(7) + 0.5) * 5 / 7 - 0.5, 0, 4)
    assert numpy.abs(anew - places).max() < 1e-5


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "either size or scale_factor"),
        ({"size": 2, "scale_factor": 2.0}, "either size or scale_factor"),
        ({"size": 2, "mode": "bilinear"}, "mode 'bilinear' is not for a tensor of shape"),
        ({"size": 2, "align_corners": True}, "no meaning for mode 'nearest'"),
        ({"size": 2, "recompute_scale_factor": True}, "no meaning with a size"),
    ],
)
def test_sizes_that_are_not_clear_are_errors(settings, words):
    with pytest.raises(ValueError, match=words):
        F.interpolate(Tensor(real(1, 1, 4)), **settings)


def test_cells_of_other_sizes_are_the_function():
    x = Tensor(real(1, 2, 4, 3))
    same = numpy.testing.assert_array_equal
    same(mint.nn.Upsample(scale_factor=2.0)(x).asnumpy(), F.interpolate(x, scale_factor=2.0).asnumpy())
    same(mint.nn.UpsamplingNearest2d(size=(5, 6))(x).asnumpy(), F.interpolate(x, (5, 6)).asnumpy())
    wanted = F.interpolate(x, (5, 6), mode="bilinear", align_corners=True)
    same(mint.nn.UpsamplingBilinear2d(size=(5, 6))(x).asnumpy(), wanted.asnumpy())


# ---- Pools -------------------------------------------------------------------------------------------------


def test_means_of_windows_along_one_and_three_axes():
    x = real(1, 2, 6)
    close(mint.nn.AvgPool1d(2)(Tensor(x)), x.reshape(1, 2, 3, 2).mean(-1))
    x = real(1, 2, 4, 2, 6)
    wanted = x.reshape(1, 2, 2, 2, 1, 2, 3, 2).mean((3, 5, 7))
    close(mint.nn.AvgPool3d(2)(Tensor(x)), wanted)
    close(F.avg_pool3d(Tensor(x), 2, divisor_override=4), wanted * 2)


def test_greatest_elements_of_parts_and_back_to_their_places():
    x = real(1, 2, 6)
    found, places = mint.nn.AdaptiveMaxPool1d(3, return_indices=True)(Tensor(x))
    close(found, x.reshape(1, 2, 3, 2).max(-1))
    assert numpy.array_equal(numpy.take_along_axis(x, places.asnumpy(), 2), found.asnumpy())
    image = real(1, 1, 4, 4)
    greatest, places = F.max_pool2d(Tensor(image), 2, return_indices=True)
    back = mint.nn.MaxUnpool2d(2)(greatest, places).asnumpy()
    assert numpy.array_equal(back[back != 0], image[back != 0]) and (back != 0).sum() == 4
    close(mint.nn.AdaptiveMaxPool2d((1, 2))(Tensor(image)), image.reshape(1, 1, 1, 4, 2, 2).max((3, 5)))


def test_what_mints_files_import_in_mindspore_is_there():
    assert mint.nn.Cell is mindspore.nn.Cell
    assert mint.functional is mint.nn.functional and mint.Tensor is Tensor


def test_subclasses_of_convolutions_find_the_function_and_its_borders():
    class Own(mint.nn.Conv2d):  # as libraries have it, with a weight of their own shape
        def construct(self, x):
            x = mint.nn.functional.pad(x, self._reversed_padding, mode="reflect")
            return self.conv2d(x, self.weight, self.bias, self.stride, (0, 0), self.dilation, self.groups)

    own = Own(2, 3, (1, 3), padding=(0, 1))
    plain = mint.nn.Conv2d(2, 3, (1, 3), padding=(0, 1), padding_mode="reflect")
    plain.weight.set_data(own.weight)
    plain.bias.set_data(own.bias)
    x = Tensor(numpy.random.default_rng(1).normal(size=(2, 2, 4, 5)).astype(numpy.float32))
    assert own._reversed_padding == (1, 1, 0, 0)
    assert (own(x).asnumpy() == plain(x).asnumpy()).all()
