"""Cells of one or a few functions: activations, dropout of channels, pixels, norms."""

import math

import muster
from mindspore.ops import _math
from muster import ops


class SoftShrink(muster.Cell):
    """x - lambd above lambd, x + lambd below -lambd, else 0."""

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = float(lambd)

    def construct(self, input):
        """softshrink(input)."""
        return ops.sub(input, ops.clip(input, -self.lambd, self.lambd))


class HShrink(muster.Cell):
    """x where |x| is above lambd, else 0."""

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = float(lambd)

    def construct(self, input):
        """hardshrink(input)."""
        return ops.select(ops.greater(ops.abs(input), self.lambd), input, ops.zeros_like(input))


class Tanhshrink(muster.Cell):
    """x - tanh(x)."""

    def construct(self, x):
        """tanhshrink(x)."""
        return ops.sub(x, ops.tanh(x))


class Threshold(muster.Cell):
    """x where it is above `threshold`, else `value`."""

    def __init__(self, threshold, value):
        super().__init__()
        self.threshold, self.value = threshold, value

    def construct(self, input_x):
        """threshold(x)."""
        return ops.select(ops.greater(input_x, self.threshold), input_x, ops.full_like(input_x, self.value))


class Softmin(muster.Cell):
    """softmax(-x) along `axis`."""

    def __init__(self, axis=-1):
        super().__init__()
        self.axis = axis

    def construct(self, x):
        """softmin(x)."""
        return ops.softmax(ops.neg(x), self.axis)


class Softmax2d(muster.Cell):
    """softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def construct(self, x):
        """softmax(x)."""
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: input {x.shape} does not fit: (N, C, H, W) or (C, H, W) is needed")
        return ops.softmax(x, -3)


class LogSoftmaxExt(muster.Cell):
    """log(softmax(x)) along `dim`; without, along axis 0 of 0, 1 or 3 axes, else axis 1."""

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def construct(self, x):
        """log_softmax(x)."""
        dim = (0 if x.ndim in (0, 1, 3) else 1) if self.dim is None else self.dim
        return ops.log_softmax(x, dim)


class GLU(muster.Cell):
    """The first half of x along `axis` times the sigmoid of the second."""

    def __init__(self, axis=-1):
        super().__init__()
        self.axis = axis

    def construct(self, x):
        """glu(x)."""
        if x.shape[self.axis] % 2:
            raise ValueError(f"GLU: axis {self.axis} of {x.shape} must have an even size")
        first, second = ops.split(x, x.shape[self.axis] // 2, self.axis)
        return ops.mul(first, ops.sigmoid(second))


class FastGelu(muster.Cell):
    """x sigmoid(1.702 x), as x exp(0.851 (x - |x|)) / (1 + exp(-1.702 |x|))."""

    def construct(self, x):
        """fast_gelu(x)."""
        return ops.mul(x, ops.sigmoid(ops.mul(x, 1.702)))


class RReLU(muster.Cell):
    """x where it is positive, else a slope of `lower` to `upper` times it. Xu et al., 2015."""

    def __init__(self, lower=1 / 8, upper=1 / 3):
        super().__init__()
        if not lower <= upper:
            raise ValueError(f"RReLU: lower {lower} must not be above upper {upper}")
        self.lower, self.upper = lower, upper

    def construct(self, x):
        """rrelu(x)."""
        if self.lower == self.upper:
            return ops.leaky_relu(x, self.lower)
        from mindspore.ops import _random

        share = _random.rand(*x.shape, dtype=muster.float32)
        slopes = ops.add(ops.mul(share, self.upper - self.lower), self.lower)
        return ops.select(ops.greater(x, 0), x, ops.mul(x, ops.cast(slopes, x.dtype)))


class PReLUExt(muster.Cell):
    """x (N, C, ...) where it is positive, else the parameter `weight` times it."""

    def __init__(self, num_parameters=1, init=0.25, dtype=None):
        super().__init__()
        self.weight = muster.Parameter(muster.nn.initializer(init, (num_parameters,)), name="weight")

    def construct(self, input):
        """prelu(input)."""
        return _math.prelu(input, self.weight)


# ---- Dropout -----------------------------------------------------------------------------------------------


class DropoutExt(muster.nn.Dropout):
    """While it trains each element becomes 0 with probability p, the others are divided by 1 - p."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__(p=p)


class _ChannelDropout(muster.Cell):
    ranks = (4,)

    def __init__(self, p=0.5):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}: p is in [0, 1], not {p}")
        self.p = p
        if 0 < p < 1:
            self._draw = muster.nn.Dropout(p=float(p))

    def construct(self, x):
        """x with whole channels of zeros, while it trains."""
        if x.ndim not in self.ranks:
            wanted = " or ".join(str(rank) for rank in self.ranks)
            raise ValueError(f"{type(self).__name__}: input {x.shape} does not fit: {wanted} axes are needed")
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return ops.zeros_like(x)
        channels = 2 if x.ndim == max(self.ranks) or len(self.ranks) == 1 else 1
        kept = self._draw(ops.ones((*x.shape[:channels], *[1] * (x.ndim - channels))))
        return ops.mul(x, kept)


class Dropout1d(_ChannelDropout):
    """While it trains, each channel of (N, C, L) or (C, L) becomes 0 with probability p."""

    ranks = (2, 3)


class Dropout2d(_ChannelDropout):
    """While it trains, each channel of (N, C, H, W) becomes 0 with probability p. Tompson et al., 2015."""


class Dropout3d(_ChannelDropout):
    """While it trains, each channel of (N, C, D, H, W) becomes 0 with probability p."""

    ranks = (5,)


# ---- Pictures ----------------------------------------------------------------------------------------------


class PixelShuffle(muster.Cell):
    """(..., C r^2, H, W) as (..., C, H r, W r). Shi et al., CVPR 2016."""

    def __init__(self, upscale_factor):
        super().__init__()
        if not isinstance(upscale_factor, int) or upscale_factor < 1:
            raise ValueError(f"PixelShuffle: upscale_factor is at least 1, not {upscale_factor!r}")
        self.upscale_factor = upscale_factor

    def construct(self, input):
        """The larger pictures."""
        r = self.upscale_factor
        *leading, channels, h, w = input.shape
        if channels % (r * r):
            raise ValueError(
                f"PixelShuffle: {r * r} does not divide the {channels} channels of {input.shape}"
            )
        y = ops.reshape(input, (-1, channels // (r * r), r, r, h, w))
        return ops.reshape(
            ops.transpose(y, (0, 1, 4, 2, 5, 3)), (*leading, channels // (r * r), h * r, w * r)
        )


class PixelUnshuffle(muster.Cell):
    """(..., C, H r, W r) as (..., C r^2, H, W)."""

    def __init__(self, downscale_factor):
        super().__init__()
        if not isinstance(downscale_factor, int) or downscale_factor < 1:
            raise ValueError(f"PixelUnshuffle: downscale_factor is at least 1, not {downscale_factor!r}")
        self.downscale_factor = downscale_factor

    def construct(self, input):
        """The smaller pictures."""
        r = self.downscale_factor
        *leading, channels, h, w = input.shape
        if h % r or w % r:
            raise ValueError(f"PixelUnshuffle: {r} does not divide the height and the width of {input.shape}")
        y = ops.reshape(input, (-1, channels, h // r, r, w // r, r))
        return ops.reshape(ops.transpose(y, (0, 1, 3, 5, 2, 4)), (*leading, channels * r * r, h // r, w // r))


class ChannelShuffle(muster.Cell):
    """The channels of (N, C, ...) in `groups` groups, taken in turn. Zhang et al., CVPR 2018."""

    def __init__(self, groups):
        super().__init__()
        if not isinstance(groups, int) or groups < 1:
            raise ValueError(f"ChannelShuffle: groups is at least 1, not {groups!r}")
        self.groups = groups

    def construct(self, x):
        """The shuffled tensor."""
        n, c = x.shape[:2]
        if c % self.groups:
            raise ValueError(
                f"ChannelShuffle: {self.groups} groups do not divide the {c} channels of {x.shape}"
            )
        y = ops.reshape(x, (n, self.groups, c // self.groups, -1))
        return ops.reshape(ops.transpose(y, (0, 2, 1, 3)), x.shape)


class Upsample(muster.Cell):
    """Pictures (N, C, H, W) of another size: ops.interpolate with the arguments of the constructor."""

    def __init__(
        self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None
    ):
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x):
        """The resized pictures."""
        import mindspore

        return mindspore.ops.interpolate(
            x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )


class ImageGradients(muster.Cell):
    """(differences of rows, differences of columns) of pictures (N, C, H, W); the last ones are 0."""

    def construct(self, images):
        """(dy, dx)."""
        n, c, h, w = images.shape
        down = ops.sub(
            ops.slice(images, (0, 0, 1, 0), (n, c, h - 1, w)),
            ops.slice(images, (0, 0, 0, 0), (n, c, h - 1, w)),
        )
        right = ops.sub(
            ops.slice(images, (0, 0, 0, 1), (n, c, h, w - 1)),
            ops.slice(images, (0, 0, 0, 0), (n, c, h, w - 1)),
        )
        return ops.pad(down, (0, 0, 0, 1)), ops.pad(right, (0, 1))


class CentralCrop(muster.Cell):
    """The middle of pictures (..., C, H, W): `central_fraction` of height and width."""

    def __init__(self, central_fraction):
        super().__init__()
        if not 0 < central_fraction <= 1:
            raise ValueError(f"CentralCrop: central_fraction is in (0, 1], not {central_fraction}")
        self.central_fraction = central_fraction

    def construct(self, image):
        """The cropped pictures."""
        *leading, h, w = image.shape
        top, left = (int((size - size * self.central_fraction) / 2) for size in (h, w))
        begin = (*[0] * len(leading), top, left)
        return ops.slice(image, begin, (*leading, h - 2 * top, w - 2 * left))


class PSNR(muster.Cell):
    """10 log10(max_val^2 / the mean squared difference) of two batches of pictures, by picture."""

    def __init__(self, max_val=1.0):
        super().__init__()
        if max_val <= 0:
            raise ValueError(f"PSNR: max_val is above 0, not {max_val}")
        self.max_val = max_val

    def construct(self, img1, img2):
        """psnr(img1, img2), (N,)."""
        error = ops.reduce_mean(ops.square(ops.sub(img1, img2)), (1, 2, 3))
        return ops.div(ops.mul(ops.log(ops.div(self.max_val**2, error)), 10.0), math.log(10))


class SSIM(muster.Cell):
    """The structural similarity of two batches of pictures, by picture. Wang et al., 2004."""

    def __init__(self, max_val=1.0, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
        super().__init__()
        self.max_val, self.filter_size, self.filter_sigma = max_val, filter_size, filter_sigma
        self.k1, self.k2 = k1, k2
        window = _gaussian(filter_size, filter_sigma)
        self.conv = muster.nn.Conv2d(1, 1, filter_size, pad_mode="valid", weight_init=window)
        self.conv.weight.requires_grad = False

    def construct(self, img1, img2):
        """ssim(img1, img2), (N,)."""
        batch, channels, height, width = img1.shape

        def mean(x):
            planes = self.conv(ops.reshape(x, (batch * channels, 1, height, width)))
            return ops.reshape(planes, (batch, channels, *planes.shape[2:]))

        mean1, mean2 = mean(img1), mean(img2)
        product, squares = ops.mul(mean1, mean2), ops.add(ops.square(mean1), ops.square(mean2))
        c1, c2 = (self.k1 * self.max_val) ** 2, (self.k2 * self.max_val) ** 2
        covariance = ops.sub(mean(ops.mul(img1, img2)), product)
        variances = ops.sub(mean(ops.add(ops.square(img1), ops.square(img2))), squares)
        luminance = ops.div(ops.add(ops.mul(product, 2.0), c1), ops.add(squares, c1))
        structure = ops.div(ops.add(ops.mul(covariance, 2.0), c2), ops.add(variances, c2))
        return ops.reduce_mean(ops.mul(luminance, structure), (1, 2, 3))


def _gaussian(size: int, sigma: float):
    line = [math.exp(-((i - (size - 1) / 2) ** 2) / (2 * sigma**2)) for i in range(size)]
    total = sum(line)
    line = [value / total for value in line]
    square = muster.Tensor([[a * b for b in line] for a in line], muster.float32)
    return ops.reshape(square, (1, 1, size, size))


# ---- Numbers -----------------------------------------------------------------------------------------------


class Norm(muster.Cell):
    """The root of the sum of squares over `axis`, all axes by default."""

    def __init__(self, axis=(), keep_dims=False):
        super().__init__()
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x):
        """norm(x)."""
        axis = None if self.axis == () else self.axis
        return ops.sqrt(ops.reduce_sum(ops.square(x), axis, self.keep_dims))


class ClipByNorm(muster.Cell):
    """x, or where its norm over `axis` (all axes) is above `clip_norm` so much smaller that it is that."""

    def __init__(self, axis=None):
        super().__init__()
        self.axis = axis

    def construct(self, x, clip_norm):
        """clip_by_norm(x)."""
        axes = None if self.axis is None else self.axis
        norm = ops.sqrt(ops.reduce_sum(ops.square(x), axes, True))
        return ops.div(ops.mul(x, clip_norm), ops.maximum(norm, clip_norm))


class Moments(muster.Cell):
    """(mean, variance) over `axis`, all axes by default."""

    def __init__(self, axis=None, keep_dims=None):
        super().__init__()
        self.axis, self.keep_dims = axis, bool(keep_dims)

    def construct(self, x):
        """(mean, variance)."""
        axis = None if self.axis in ((), None) else self.axis
        mean = ops.reduce_mean(x, axis, True)
        variance = ops.reduce_mean(ops.square(ops.sub(x, ops.stop_gradient(mean))), axis, self.keep_dims)
        return ops.reduce_mean(x, axis, self.keep_dims), variance


class ReduceLogSumExp(muster.Cell):
    """log(sum(exp(x))) over `axis`."""

    def __init__(self, axis, keep_dims=False):
        super().__init__()
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x):
        """logsumexp(x)."""
        return _math.logsumexp(x, self.axis, self.keep_dims)


class OneHot(muster.Cell):
    """A new axis of `depth` at `axis`: on_value at the index, off_value elsewhere."""

    def __init__(self, axis=-1, depth=1, on_value=1.0, off_value=0.0, dtype=muster.float32):
        super().__init__()
        self.axis, self.depth, self.on_value, self.off_value = axis, depth, on_value, off_value
        self.dtype = muster.dtype(dtype)

    def construct(self, indices):
        """one_hot(indices)."""
        on, off = (muster.Tensor(value, self.dtype) for value in (self.on_value, self.off_value))
        return ops.one_hot(indices, self.depth, on, off, self.axis)


class MatMul(muster.Cell):
    """x1 times x2, of their last two axes; transposed first as the arguments say."""

    def __init__(self, transpose_x1=False, transpose_x2=False):
        super().__init__()
        self.transpose_x1, self.transpose_x2 = transpose_x1, transpose_x2

    def construct(self, x1, x2):
        """matmul(x1, x2)."""
        x1 = ops.swapaxes(x1, -1, -2) if self.transpose_x1 and x1.ndim > 1 else x1
        x2 = ops.swapaxes(x2, -1, -2) if self.transpose_x2 and x2.ndim > 1 else x2
        return ops.matmul(x1, x2)


class Range(muster.Cell):
    """The numbers from `start` up to `limit`, `delta` apart."""

    def __init__(self, start, limit=None, delta=1):
        super().__init__()
        if delta == 0:
            raise ValueError("Range: delta must not be 0")
        self.start, self.limit = (0, start) if limit is None else (start, limit)
        self.delta = delta

    def construct(self):
        """arange(start, limit, delta)."""
        numbers = ops.arange(self.start, self.limit, self.delta)
        return ops.cast(numbers, muster.int32) if numbers.dtype is muster.int64 else numbers


class Tril(muster.Cell):
    """The lower triangle of the last two axes, zeros above diagonal `k`."""

    def construct(self, x, k=0):
        """tril(x)."""
        import mindspore

        return mindspore.ops.tril(x, k)


class Triu(muster.Cell):
    """The upper triangle of the last two axes, zeros below diagonal `k`."""

    def construct(self, x, k=0):
        """triu(x)."""
        import mindspore

        return mindspore.ops.triu(x, k)


class Roll(muster.Cell):
    """x with its elements moved by `shift` places along `axis`, those beyond the end first."""

    def __init__(self, shift, axis):
        super().__init__()
        self.shift = (shift,) if isinstance(shift, int) else tuple(shift)
        self.axis = (axis,) if isinstance(axis, int) else tuple(axis)
        if len(self.shift) != len(self.axis):
            raise ValueError(f"Roll: shift {shift} and axis {axis} must have one length")

    def construct(self, input_x):
        """roll(x)."""
        for shift, axis in zip(self.shift, self.axis, strict=True):
            size = input_x.shape[axis]
            split = -shift % size
            if split:
                first, second = ops.split(input_x, (split, size - split), axis)
                input_x = ops.concat((second, first), axis)
        return input_x


class Unflatten(muster.Cell):
    """The axis `axis` as the axes of `unflattened_size`."""

    def __init__(self, axis, unflattened_size):
        super().__init__()
        self.axis, self.unflattened_size = axis, tuple(unflattened_size)

    def construct(self, input_x):
        """unflatten(x)."""
        axis = self.axis % input_x.ndim
        shape = input_x.shape
        return ops.reshape(input_x, (*shape[:axis], *self.unflattened_size, *shape[axis + 1 :]))


class L1Regularizer(muster.Cell):
    """scale times the sum of |weights|."""

    def __init__(self, scale):
        super().__init__()
        if scale <= 0:
            raise ValueError(f"L1Regularizer: scale is above 0, not {scale}")
        self.scale = scale

    def construct(self, weights):
        """The penalty."""
        return ops.mul(ops.reduce_sum(ops.abs(weights)), self.scale)


class MatrixDiag(muster.Cell):
    """(..., n) on the diagonals of (..., n, n)."""

    def construct(self, input_x):
        """matrix_diag(x)."""
        n = input_x.shape[-1]
        return ops.mul(ops.expand_dims(input_x, input_x.ndim), _eye(n, n, input_x.dtype))


class MatrixDiagPart(muster.Cell):
    """The diagonals of (..., n, m)."""

    def construct(self, input_x):
        """matrix_diag_part(x)."""
        n, m = input_x.shape[-2:]
        least = min(n, m)
        part = ops.slice(input_x, (0,) * input_x.ndim, (*input_x.shape[:-2], least, least))
        return ops.reduce_sum(ops.mul(part, _eye(least, least, input_x.dtype)), part.ndim - 1)


def _eye(n: int, m: int, dtype):
    return ops.cast(ops.equal(ops.reshape(ops.arange(n), (n, 1)), ops.arange(m)), dtype)


__all__ = [
    "GLU",
    "PSNR",
    "SSIM",
    "CentralCrop",
    "ChannelShuffle",
    "ClipByNorm",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "DropoutExt",
    "FastGelu",
    "HShrink",
    "ImageGradients",
    "L1Regularizer",
    "LogSoftmaxExt",
    "MatMul",
    "MatrixDiag",
    "MatrixDiagPart",
    "Moments",
    "Norm",
    "OneHot",
    "PReLUExt",
    "PixelShuffle",
    "PixelUnshuffle",
    "RReLU",
    "Range",
    "ReduceLogSumExp",
    "Roll",
    "SoftShrink",
    "Softmax2d",
    "Softmin",
    "Tanhshrink",
    "Threshold",
    "Tril",
    "Triu",
    "Unflatten",
    "Upsample",
]
