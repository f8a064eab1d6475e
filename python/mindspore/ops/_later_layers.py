"""mindspore.ops: pools, resizing, boxes, losses and random numbers as classes."""

import math

import muster
from mindspore import _names
from mindspore.ops import (
    _boxes,
    _later_losses,
    _lengths,
    _random,
    _resize,
    _windows,
)
from mindspore.ops._primitive import Primitive, of_row, sizes_of, without_settings
from muster import ops

_made = {}


def _named(name, function, **settings):
    """`function` takes the inputs, then the settings by name."""
    _made[name] = of_row(name, settings, function)


def _refused(name, **arguments):
    _names.refuse(f"mindspore.ops.{name}", **arguments)


# Windows of images.
_named(
    "MaxUnpool2D",
    lambda x, at, ksize, strides, pads, output_shape, data_format: _windows.max_unpool2d(
        x, at, ksize, strides or None, pads, output_shape or None
    ),
    ksize=...,
    strides=0,
    pads=0,
    output_shape=(),
    data_format="NCHW",
)
_named(
    "MaxUnpool3D",
    lambda x, at, ksize, strides, pads, output_shape, data_format: _windows.max_unpool3d(
        x, at, ksize, strides or None, pads, output_shape or None
    ),
    ksize=...,
    strides=0,
    pads=0,
    output_shape=(),
    data_format="NCDHW",
)
_named(
    "ExtractImagePatches",
    lambda x, ksizes, strides, rates, padding: _windows.extract_image_patches(
        x, ksizes, strides, rates, padding
    ),
    ksizes=...,
    strides=...,
    rates=...,
    padding="VALID",
)
_named("AdaptiveAvgPool3D", _windows.adaptive_avg_pool3d, output_size=...)
_named(
    "AdaptiveMaxPool2D",
    lambda x, output_size: _windows.adaptive_max_pool2d(x, output_size, True),
    output_size=...,
)
_made["AdaptiveMaxPool3D"] = without_settings(
    "AdaptiveMaxPool3D", lambda x, size: _windows.adaptive_max_pool3d(x, tuple(size.asnumpy().tolist()), True)
)


class _Windowed(Primitive):
    """What pools have in common."""

    rank, fold = 2, None

    def _windows(self, x, kernel, strides, ceil_mode=False, padding=0, dilation=1):
        mode = self.pad_mode.lower()
        if mode not in ("same", "valid", "pad"):
            raise ValueError(f"{self.name}: pad_mode is 'same', 'valid' or 'pad', not {self.pad_mode!r}")
        return _windows.Windows(
            x.shape[2:], kernel, strides, padding if mode == "pad" else 0, dilation, ceil_mode, mode == "same"
        )


class MaxPool3D(_Windowed):
    """The greatest element of each window of (N, C, D, H, W)."""

    def __init__(
        self, kernel_size=1, strides=1, pad_mode="VALID", pad_list=0, ceil_mode=None, data_format="NCDHW"
    ):
        super().__init__()
        _refused("MaxPool3D", data_format=(data_format, "NCDHW"))
        self.kernel_size, self.strides, self.pad_mode = kernel_size, strides, pad_mode
        self.pad_list, self.ceil_mode = pad_list, bool(ceil_mode)

    def compute(self, x):
        """The pooled volumes."""
        windows = self._windows(x, self.kernel_size, self.strides, self.ceil_mode, self.pad_list)
        return _windows.max_pool_nd(x, windows)


class AvgPool3D(_Windowed):
    """The mean of each window of (N, C, D, H, W)."""

    def __init__(
        self,
        kernel_size=1,
        strides=1,
        pad_mode="valid",
        pad=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=0,
        data_format="NCDHW",
    ):
        super().__init__()
        _refused("AvgPool3D", data_format=(data_format, "NCDHW"))
        self.kernel_size, self.strides, self.pad_mode, self.pad = kernel_size, strides, pad_mode, pad
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def compute(self, x):
        """The pooled volumes."""
        windows = self._windows(x, self.kernel_size, self.strides, self.ceil_mode, self.pad)
        counts = self.count_include_pad and self.pad_mode.lower() != "same"
        return _windows.avg_pool_nd(x, windows, counts, self.divisor_override)


class MaxPoolWithArgmax(_Windowed):
    """(the greatest pixels of each window, their places in the flat sample of all channels)."""

    def __init__(self, kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW"):
        super().__init__()
        _refused("MaxPoolWithArgmax", data_format=(data_format, "NCHW"))
        self.kernel_size, self.strides, self.pad_mode = kernel_size, strides, pad_mode

    def compute(self, x):
        """Values and places."""
        values, places = _windows.max_pool_nd(x, self._windows(x, self.kernel_size, self.strides), True)
        planes = ops.reshape(ops.arange(x.shape[1], dtype=places.dtype), (-1, 1, 1))
        return values, ops.add(places, ops.mul(planes, x.shape[2] * x.shape[3]))


class MaxPoolWithArgmaxV2(_Windowed):
    """(the greatest pixels of each window, their places in the flat image)."""

    pad_mode = "pad"

    def __init__(
        self, kernel_size, strides=None, pads=0, dilation=(1, 1), ceil_mode=False, argmax_type=muster.int64
    ):
        super().__init__()
        self.kernel_size, self.strides, self.pads = kernel_size, strides, pads
        self.dilation, self.ceil_mode, self.argmax_type = dilation, ceil_mode, argmax_type

    def compute(self, x):
        """Values and places."""
        windows = self._windows(x, self.kernel_size, self.strides, self.ceil_mode, self.pads, self.dilation)
        values, places = _windows.max_pool_nd(x, windows, True)
        return values, ops.cast(places, self.argmax_type)


for _each in (MaxPool3D, AvgPool3D, MaxPoolWithArgmax, MaxPoolWithArgmaxV2):
    _made[_each.__name__] = _each

# Images in other sizes.
_named(
    "ResizeNearestNeighbor",
    lambda x, size, align_corners, half_pixel_centers: _resize.resize_nearest(
        x, size, align_corners, half_pixel_centers
    ),
    size=...,
    align_corners=False,
    half_pixel_centers=False,
)
_named(
    "ResizeNearestNeighborV2",
    lambda x, size, align_corners, half_pixel_centers: _resize.resize_nearest(
        x, _listed(size), align_corners, half_pixel_centers
    ),
    align_corners=False,
    half_pixel_centers=False,
)
_named(
    "ResizeBilinear",
    lambda x, size, align_corners, half_pixel_centers: _resize.resize_bilinear(
        x, size, align_corners, half_pixel_centers
    ),
    size=...,
    align_corners=False,
    half_pixel_centers=False,
)
_named(
    "ResizeBilinearV2",
    lambda x, size, align_corners, half_pixel_centers: _resize.resize_bilinear(
        x, _listed(size), align_corners, half_pixel_centers
    ),
    align_corners=False,
    half_pixel_centers=False,
)
_named(
    "ResizeBicubic",
    lambda x, size, align_corners, half_pixel_centers: _resize.resize_bicubic(
        x, _listed(size), align_corners, half_pixel_centers
    ),
    align_corners=False,
    half_pixel_centers=False,
)
_named(
    "ResizeLinear1D",
    lambda x, size, coordinate_transformation_mode: _resize.resize_linear(
        x, _listed(size), coordinate_transformation_mode
    ),
    coordinate_transformation_mode="align_corners",
)
_named(
    "AffineGrid",
    lambda theta, size, align_corners: _resize.affine_grid(theta, size, align_corners),
    align_corners=False,
)
for _each in ("GridSampler2D", "GridSampler3D"):
    _named(
        _each,
        lambda x, grid, interpolation_mode, padding_mode, align_corners: _resize.grid_sample(
            x, grid, interpolation_mode, padding_mode, align_corners
        ),
        interpolation_mode="bilinear",
        padding_mode="zeros",
        align_corners=False,
    )
_named(
    "CropAndResize",
    lambda x, boxes, at, size, method, extrapolation_value: _resize.crop_and_resize(
        x, boxes, at, size, method, extrapolation_value
    ),
    method="bilinear",
    extrapolation_value=0.0,
)


def _listed(sizes):
    return sizes.asnumpy().reshape(-1).tolist() if isinstance(sizes, muster.Tensor) else sizes


# Boxes and sequences.
_named("IOU", lambda a, g, mode: _boxes.iou(a, g, mode), mode="iou")
_named("BoundingBoxEncode", _boxes.bounding_box_encode, means=(0.0,) * 4, stds=(1.0,) * 4)
_named(
    "BoundingBoxDecode",
    _boxes.bounding_box_decode,
    max_shape=...,
    means=(0.0,) * 4,
    stds=(1.0,) * 4,
    wh_ratio_clip=0.016,
)
_named("NMSWithMask", _boxes.nms_with_mask, iou_threshold=0.5)
_named(
    "ROIAlign",
    _boxes.roi_align,
    pooled_height=...,
    pooled_width=...,
    spatial_scale=...,
    sample_num=2,
    roi_end_mode=1,
)
_named("CTCGreedyDecoder", _lengths.ctc_greedy_decoder, merge_repeated=True)
_named(
    "CTCLossV2",
    lambda x, targets, il, tl, blank, reduction, zero_infinity: _lengths.ctc_loss(
        x, targets, il, tl, blank, "none", zero_infinity
    ),
    blank=0,
    reduction="none",
    zero_infinity=False,
)
_named(
    "BartlettWindow",
    lambda n, periodic, dtype: _lengths.bartlett_window(n, periodic, dtype=dtype),
    periodic=True,
    dtype=muster.float32,
)
_named(
    "BlackmanWindow",
    lambda n, periodic, dtype: _lengths.blackman_window(n, periodic, dtype=dtype),
    periodic=True,
    dtype=muster.float32,
)
_named(
    "HammingWindow",
    lambda n, periodic, alpha, beta, dtype: _lengths.hamming_window(n, periodic, alpha, beta, dtype=dtype),
    periodic=True,
    alpha=0.54,
    beta=0.46,
    dtype=muster.float32,
)


class CTCLoss(Primitive):
    """(losses of logits (T, N, C), their gradients): labels at (sample, place), the last class blank."""

    def __init__(
        self,
        preprocess_collapse_repeated=False,
        ctc_merge_repeated=True,
        ignore_longer_outputs_than_inputs=False,
    ):
        super().__init__()
        _refused(
            "CTCLoss",
            preprocess_collapse_repeated=(preprocess_collapse_repeated, False),
            ctc_merge_repeated=(ctc_merge_repeated, True),
        )

    def compute(self, x, labels_indices, labels_values, sequence_length):
        """The losses and the gradients."""

        def total(logits):
            losses = _lengths.ctc_loss_of_places(logits, labels_indices, labels_values, sequence_length)
            return ops.reduce_sum(losses), losses

        losses = _lengths.ctc_loss_of_places(x, labels_indices, labels_values, sequence_length)
        gradient = muster.value_and_grad(lambda logits: total(logits)[0])(ops.stop_gradient(x))[1]
        return losses, gradient


_made["CTCLoss"] = CTCLoss


class LSTM(Primitive):
    """(output, h, c, reserve, state) of a layer over x (T, N, input_size); see nn.LSTM.

    `w` holds the weights of the input, those of the state and one bias, flat, one behind the other. As in
    MindSpore on a CPU there is one layer, forwards, without dropout; reserve and state hold nothing.
    """

    def __init__(self, input_size, hidden_size, num_layers, has_bias, bidirectional, dropout, proj_size=0):
        super().__init__()
        _refused(
            "LSTM",
            num_layers=(num_layers, 1),
            bidirectional=(bidirectional, False),
            dropout=(dropout, 0.0),
            proj_size=(proj_size, 0),
        )
        self.input_size, self.hidden_size, self.has_bias = input_size, hidden_size, has_bias

    def compute(self, x, h, c, w):
        """The outputs and the state behind the last step, from the state (1, N, hidden_size) before."""
        from mindspore.nn import _recurrent  # which imports mindspore.ops

        if x.ndim != 3 or x.shape[2] != self.input_size:
            raise ValueError(f"LSTM: x {x.shape} does not fit: (T, N, {self.input_size}) is needed")
        shape = (1, x.shape[1], self.hidden_size)
        if h.shape != shape or c.shape != shape:
            raise ValueError(f"LSTM: h {h.shape} and c {c.shape} do not fit: {shape} is needed")
        found = _recurrent.lstm_of_flat_weights(x, h, c, w, self.hidden_size, self.has_bias)
        nothing = ops.zeros((1, 1), x.dtype)
        return *found, nothing, nothing


_made["LSTM"] = LSTM

# Losses.
_named("SoftMarginLoss", _later_losses.soft_margin_loss, reduction="mean")
_named(
    "MultiMarginLoss",
    lambda x, target, weight=None, *, p, margin, reduction: _later_losses.multi_margin_loss(
        x, target, p, margin, weight, reduction
    ),
    p=1,
    margin=1.0,
    reduction="mean",
)
_named(
    "MultilabelMarginLoss",
    lambda x, target, reduction: _margin_and_labels(x, target, reduction),
    reduction="mean",
)
_named(
    "TripletMarginLoss",
    lambda x, positive, negative, margin, p, swap, eps, reduction: _later_losses.triplet_margin_loss(
        x, positive, negative, margin, p, eps, swap, reduction
    ),
    p=2,
    swap=False,
    eps=1e-6,
    reduction="mean",
)


def _margin_and_labels(x, target, reduction):
    losses, is_label = _later_losses.multilabel_losses(x, target)
    is_label = ops.cast(ops.reshape(is_label, target.shape), target.dtype)
    return _later_losses.reduced(losses, reduction, "MultilabelMarginLoss"), is_label


# Random numbers.
_named(
    "StandardNormal", lambda shape, seed, seed2: _random.standard_normal(shape, seed + seed2), seed=0, seed2=0
)
_named(
    "StandardLaplace",
    lambda shape, seed, seed2: _random.standard_laplace(shape, seed + seed2),
    seed=0,
    seed2=0,
)
_named("UniformReal", lambda shape, seed, seed2: _random.uniform_01(shape, seed + seed2), seed=0, seed2=0)
_named(
    "UniformInt",
    lambda shape, low, high, seed, seed2: _random.randint(low, high, shape, seed + seed2, dtype=muster.int32),
    seed=0,
    seed2=0,
)
_named(
    "RandomChoiceWithMask",
    lambda x, count, seed, seed2: _random.choice_with_mask(x, count, seed + seed2),
    count=256,
    seed=0,
    seed2=0,
)
_named(
    "Randperm",
    lambda n, max_length, pad, dtype: _permuted(n, max_length, pad, dtype),
    max_length=1,
    pad=-1,
    dtype=muster.int32,
)
_named(
    "RandpermV2",
    lambda n, seed, offset, dtype: _random.randperm(n, seed, offset, dtype),
    seed=0,
    offset=0,
    dtype=muster.int64,
)
_named("RandomShuffle", lambda x, seed, seed2: _random.shuffle(x, seed + seed2), seed=0, seed2=0)
_named(
    "RandomGamma",
    lambda shape, alpha, seed, seed2: _random.random_gamma(shape, alpha, seed + seed2),
    seed=0,
    seed2=0,
)
_named(
    "Gamma",
    lambda shape, alpha, beta, seed, seed2: _random.gamma(shape, alpha, beta, seed + seed2),
    seed=0,
    seed2=0,
)
_named(
    "Poisson",
    lambda shape, mean, seed, seed2: ops.cast(_random.poisson(shape, mean, seed + seed2), muster.int32),
    seed=0,
    seed2=0,
)
_named(
    "RandomPoisson",
    lambda shape, rate, seed, seed2, dtype: _random.random_poisson(shape, rate, seed + seed2, dtype),
    seed=0,
    seed2=0,
    dtype=muster.int64,
)
_named(
    "Multinomial",
    lambda x, count, seed, seed2, dtype: ops.cast(_random.multinomial(x, count, True, seed + seed2), dtype),
    seed=0,
    seed2=0,
    dtype=muster.int32,
)
_named(
    "MultinomialWithReplacement",
    lambda x, seed, offset, numsamples, replacement: _random.multinomial_with_replacement(
        x, 0, 0, numsamples
    ),
    numsamples=...,
    replacement=False,
)
_named(
    "RandomCategorical",
    lambda x, count, seed=0, *, dtype: _random.random_categorical(x, count, seed, dtype),
    dtype=muster.int64,
)
_named("Bernoulli", lambda x, p, seed, offset: _random.bernoulli(x, p, seed), seed=-1, offset=0)
_named(
    "TruncatedNormal",
    lambda shape, dtype, seed, seed2: _random.truncated_normal(shape, dtype, seed + seed2),
    dtype=muster.float32,
    seed=0,
    seed2=0,
)
_named(
    "Cauchy", lambda size, median, sigma: _random.cauchy(size, median, sigma), size=..., median=0.0, sigma=1.0
)
_named("LogNormalReverse", lambda x, mean, std: _random.log_normal(x, mean, std), mean=1.0, std=2.0)
for _name, _axes in (("Dropout2D", (2, 3)), ("Dropout3D", (2, 3, 4))):
    _named(_name, lambda x, keep_prob, axes=_axes: _dropped(x, keep_prob, axes), keep_prob=0.5)


def _permuted(n, max_length, pad, dtype):
    n = n.item() if isinstance(n, muster.Tensor) else n
    made = _random.randperm(n, dtype=dtype)
    return made if max_length <= n else ops.concat([made, ops.full((max_length - n,), pad, dtype=dtype)], 0)


def _dropped(x, keep_prob, axes):
    made = _random.dropout_nd(ops.ones_like(x), 1 - keep_prob, True, axes)
    return ops.mul(x, made), ops.not_equal(made, 0)


def _areas(numpy, size, count, align_corners):
    """(count, size): how much of each pixel each new one takes, along one axis."""
    step = (size - 1) / (count - 1) if align_corners and count > 1 else size / count
    made = numpy.zeros((count, size))
    for new in range(count):
        begin, end = new * step, (new + 1) * step
        for at in range(int(begin), math.ceil(end)):
            made[new, min(at, size - 1)] += (min(end, at + 1) - max(begin, at)) / step
    return made


def _resized_by_area(images, size, align_corners):
    import numpy

    rows, columns = sizes_of(size)
    x = ops.transpose(ops.cast(images, muster.float32), (0, 3, 1, 2))
    tall, wide = (
        muster.Tensor(_areas(numpy, have, want, align_corners), muster.float32)
        for have, want in zip(x.shape[2:], (rows, columns), strict=True)
    )
    x = ops.matmul(ops.matmul(tall, x), ops.transpose(wide, (1, 0)))
    return ops.transpose(x, (0, 2, 3, 1))


_named("ResizeArea", _resized_by_area, align_corners=False)
globals().update(_made)
__all__ = sorted(_made)
