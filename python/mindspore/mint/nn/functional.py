"""mindspore.mint.nn.functional: layers as functions, with the arguments of PyTorch's."""

import builtins

import muster
from mindspore import _names
from mindspore import ops as named
from mindspore.mint import _functions
from mindspore.numpy import _products, _shared
from mindspore.numpy._shared import cast
from mindspore.ops import _inputs, _resize
from muster import ops

# ---- Activations -------------------------------------------------------------------------------------------


def _given(input, made, inplace):
    """The result, which with `inplace` the object `input` takes, too."""
    return input.copy_(made) if inplace else made


def relu(input, inplace=False):
    """The greater of an element and 0."""
    return _given(input, ops.relu(input), inplace)


def relu_(input):
    """relu, in place."""
    return relu(input, True)


def relu6(input, inplace=False):
    """Each element between 0 and 6."""
    return _given(input, ops.relu6(input), inplace)


def silu(input, inplace=False):
    """x sigmoid(x)."""
    return _given(input, ops.silu(input), inplace)


def elu(input, alpha=1.0, inplace=False):
    """x above 0, else alpha (e^x - 1)."""
    made = ops.elu(input) if alpha == 1 else _elu(input, alpha)
    return _given(input, made, inplace)


def _elu(input, alpha):
    below = ops.mul(ops.expm1(ops.minimum(input, 0.0)), float(alpha))
    return ops.add(ops.maximum(input, 0.0), below)


def elu_(input, alpha=1.0):
    """elu, in place."""
    return elu(input, alpha, True)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """Each element between two bounds."""
    return _given(input, ops.clip(input, min_val, max_val), inplace)


def hardtanh_(input, min_val=-1, max_val=1):
    """hardtanh, in place."""
    return hardtanh(input, min_val, max_val, True)


def hardshrink(input, lambd=0.5):
    """The elements whose size is above lambd, and 0 instead of others."""
    return named.hardshrink(input, lambd)


def threshold(input, threshold, value, inplace=False):
    """The elements above the threshold, and `value` instead of others."""
    made = ops.select(ops.greater(input, threshold), input, ops.full(input.shape, value, dtype=input.dtype))
    return _given(input, made, inplace)


def threshold_(input, threshold, value):
    """threshold, in place."""
    kept = ops.select(ops.greater(input, threshold), input, ops.full(input.shape, value, dtype=input.dtype))
    return _given(input, kept, True)


def leaky_relu(input, negative_slope=0.01):
    """x above 0, else negative_slope x."""
    return ops.leaky_relu(input, negative_slope)


def gelu(input, *, approximate="none"):
    """x times the normal distribution's share below x, exact or by 'tanh'."""
    return named.gelu(input, approximate)


def logsigmoid(input):
    """log(sigmoid(x))."""
    return named.logsigmoid(input)


def glu(input, dim=-1):
    """The first half along an axis times the sigmoid of the second."""
    if input.shape[dim] % 2:
        raise ValueError(f"glu: axis {dim} of {input.shape} has no two halves")
    first, second = ops.split(input, input.shape[dim] // 2, dim)
    return ops.mul(first, ops.sigmoid(second))


def prelu(input, weight):
    """x above 0, else a learned factor times x."""
    return named.prelu(input, weight)


def _axis_of_softmax(input, dim):
    """The axis that stands for none: the first of 0, 1 and 3 axes, else the second."""
    if dim is not None:
        return dim
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input, dim=None, dtype=None):
    """e^x over its sum along an axis."""
    return ops.softmax(cast(input, dtype), -1 if dim is None else dim)


def log_softmax(input, dim=None, *, dtype=None):
    """The logarithm of softmax along an axis."""
    return ops.log_softmax(cast(input, dtype), _axis_of_softmax(input, dim))


# ---- Layers ------------------------------------------------------------------------------------------------


def linear(input, weight, bias=None):
    """input times the transposed weight, plus bias."""
    made = ops.matmul(input, ops.swapaxes(weight, -1, -2) if weight.ndim > 1 else weight)
    return made if bias is None else ops.add(made, bias)


def dropout(input, p=0.5, training=True, inplace=False):
    """Each element is 0 with probability p, else input / (1 - p); without training, input itself."""
    return _given(input, named.dropout(input, p, training), inplace)


def dropout2d(input, p=0.5, training=True):
    """dropout of whole channels."""
    return named.dropout2d(input, p, training)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False):
    """The rows of weight at indices."""
    return named.embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)


def one_hot(tensor, num_classes=-1):
    """1 at each index, 0 elsewhere, int64; -1: as many classes as the greatest index says."""
    if num_classes == -1:
        num_classes = int(ops.reduce_max(tensor).item()) + 1
    return ops.cast(ops.one_hot(tensor, num_classes), muster.int64)


def flatten(input, start_dim=0, end_dim=-1):
    """The axes from start_dim to end_dim as one."""
    return _functions.flatten(input, start_dim, end_dim)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    """input with mean 0 and variance 1 over its last axes, times weight, plus bias."""
    return named.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    """input with mean 0 and variance 1 over each group of channels, times weight, plus bias."""
    if input.shape[1] % num_groups:
        raise ValueError(f"group_norm: {input.shape[1]} channels are no {num_groups} groups")
    grouped = ops.reshape(input, (input.shape[0], num_groups, -1))
    away = ops.sub(grouped, ops.reduce_mean(grouped, -1, True))
    spread = ops.reduce_mean(ops.square(away), -1, True)
    made = ops.reshape(ops.mul(away, ops.rsqrt(ops.add(spread, float(eps)))), input.shape)
    shape = (1, -1) + (1,) * (input.ndim - 2)
    made = made if weight is None else ops.mul(made, ops.reshape(weight, shape))
    return made if bias is None else ops.add(made, ops.reshape(bias, shape))


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05
):
    """input with mean 0 and variance 1 of each channel, times weight, plus bias.

    Args:
        input: (N, C, ...).
        running_mean: Of the channels; with `training` it takes part of the mean, in place.
        running_var: Likewise.
        weight: 1 by default.
        bias: 0 by default.
        training: Whether the mean and variance are those of the input.
        momentum: The part.
        eps: What is added to the variance.
    """
    shape = (1, -1) + (1,) * (input.ndim - 2)
    if training:
        axes = [at for at in builtins.range(input.ndim) if at != 1]
        mean = ops.reduce_mean(input, axes)
        away = ops.sub(input, ops.reshape(mean, shape))
        spread = ops.reduce_mean(ops.square(away), axes)
        _follow(running_mean, mean, momentum)
        count = input._size // input.shape[1]
        _follow(running_var, ops.mul(spread, count / builtins.max(count - 1, 1)), momentum)
    else:
        away, spread = ops.sub(input, ops.reshape(running_mean, shape)), running_var
    made = ops.mul(away, ops.reshape(ops.rsqrt(ops.add(spread, float(eps))), shape))
    made = made if weight is None else ops.mul(made, ops.reshape(weight, shape))
    return made if bias is None else ops.add(made, ops.reshape(bias, shape))


def _follow(running, value, momentum):
    if running is not None:
        running.copy_(ops.add(ops.mul(running, 1 - momentum), ops.mul(ops.stop_gradient(value), momentum)))


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """Vectors along an axis divided by their p-norm, eps at least."""
    length = _products._vector_norm(input, p, _shared.axes_of(dim, input.ndim, "normalize"), True)
    return ops.div(input, ops.maximum(length, float(eps)))


def pad(input, pad, mode="constant", value=None):
    """input with elements before and after its last axes: (before, after) of the last, then of others."""
    if mode == "constant":
        return ops.pad(input, tuple(pad), value=0 if value is None else value)
    if mode == "circular":
        return _wrapped(input, pad)
    return ops.pad(input, tuple(pad), mode)


def _wrapped(input, pad):
    for place in builtins.range(len(pad) // 2):
        axis, (before, after) = input.ndim - 1 - place, pad[2 * place : 2 * place + 2]
        size = input.shape[axis]
        order = [at % size for at in builtins.range(-before, size + after)]
        input = ops.gather(input, muster.Tensor(order), axis)
    return input


def pixel_shuffle(input, upscale_factor):
    """(..., C r^2, H, W) as (..., C, H r, W r)."""
    factor = upscale_factor
    *outer, channels, height, width = input.shape
    if channels % (factor * factor):
        raise ValueError(f"pixel_shuffle: {channels} channels are no multiple of {factor}^2")
    count = len(outer)
    made = ops.reshape(input, (*outer, channels // factor**2, factor, factor, height, width))
    order = [*builtins.range(count), count, count + 3, count + 1, count + 4, count + 2]
    return ops.reshape(
        ops.transpose(made, order), (*outer, channels // factor**2, height * factor, width * factor)
    )


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The convolution of (N, C, L), or (C, L), with a weight."""
    given = input.ndim == 3
    image = ops.expand_dims(input if given else ops.expand_dims(input, 0), 2)
    first = _first(stride), _first(dilation)
    sides = padding if isinstance(padding, str) else (0, _first(padding))
    made = conv2d(image, ops.expand_dims(weight, 2), bias, (1, first[0]), sides, (1, first[1]), groups)
    made = ops.squeeze(made, 2)
    return made if given else ops.squeeze(made, 0)


def _first(value):
    return value if isinstance(value, int) else value[0]


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The convolution of (N, C, H, W) with a weight; padding is numbers, 'same' or 'valid'."""
    mode = padding if isinstance(padding, str) else "pad"
    sides = 0 if isinstance(padding, str) else padding
    return named.conv2d(input, weight, bias, stride, mode, sides, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The convolution of (N, C, D, H, W) with a weight; padding is numbers, 'same' or 'valid'."""
    mode = padding if isinstance(padding, str) else "pad"
    sides = 0 if isinstance(padding, str) else padding
    return _of_samples(
        input, 5, lambda x: named.conv3d(x, weight, bias, stride, mode, sides, dilation, groups)
    )


def _of_samples(input, rank, function):
    """function(input), which may lack the axis of samples."""
    if input.ndim != rank - 1:
        return function(input)
    return ops.squeeze(function(ops.expand_dims(input, 0)), 0)


def _several(value, axes):
    """One number for each axis."""
    return (value,) * axes if isinstance(value, int) else tuple(value)


def _transposed_sizes(sizes, kernel, stride, padding, dilation):
    """The least sizes of images of which a convolution makes some of `sizes`."""
    axes = zip(sizes, kernel, stride, padding, dilation, strict=True)
    return tuple((n - 1) * step - 2 * around + (k - 1) * apart + 1 for n, k, step, around, apart in axes)


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Images of which conv2d with a weight (C, O / groups, h, w) makes some like input, plus bias.

    Args:
        input: (N, C, H, W) or (C, H, W).
        weight: That of the convolution.
        bias: One number for each channel of the result, or None.
        stride: Of the convolution, a number or (height, width).
        padding: Likewise.
        output_padding: Rows and columns more, of those that the convolution would leave out.
        groups: Channels are split into as many.
        dilation: Of the convolution, a number or (height, width).
    """
    stride, padding, dilation = (_several(each, 2) for each in (stride, padding, dilation))
    least = _transposed_sizes(input.shape[-2:], weight.shape[2:], stride, padding, dilation)
    sizes = [size + more for size, more in zip(least, _several(output_padding, 2), strict=True)]

    def transposed(x):
        def weighed(images):
            made = conv2d(images, weight, None, stride, padding, dilation, groups)
            return ops.reduce_sum(ops.mul(made, x))

        images = ops.zeros((x.shape[0], weight.shape[1] * groups, *sizes), x.dtype)
        made = muster.value_and_grad(weighed, 0)(images)[1]  # linear in the images: zeros do
        return made if bias is None else ops.add(made, ops.reshape(bias, (1, -1, 1, 1)))

    return _of_samples(input, 4, transposed)


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None
):
    """Images (N, C, ...) in another size.

    Args:
        input: With one, two or three axes behind the channels.
        size: A number, or one for each axis.
        scale_factor: What the sizes are multiplied by, where no size is given.
        mode: 'nearest', 'linear', 'bilinear', 'trilinear' or 'bicubic'.
        align_corners: Whether the first and last elements stay where they are; not for 'nearest'.
        recompute_scale_factor: Whether elements are read at places that follow the new size, and not the
            scale_factor itself.
    """
    return _resize.interpolate_ext(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The greatest elements of output_size parts of the last axis, and with return_indices their places."""
    count = output_size if isinstance(output_size, int) else output_size[0]
    made = named.adaptive_max_pool2d(ops.expand_dims(input, -2), (1, count), return_indices)
    if return_indices:
        return tuple(ops.squeeze(each, -2) for each in made)
    return ops.squeeze(made, -2)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The elements at the places that max pooling took them from, 0 elsewhere."""
    return named.max_unpool2d(input, indices, kernel_size, stride, padding, output_size)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of each window; the stride is the window by default."""
    stride = kernel_size if stride is None else stride
    return named.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool3d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """The mean of each window; the stride is the window by default."""
    stride = kernel_size if stride is None else stride
    divisor = 0 if divisor_override is None else divisor_override
    return named.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The greatest element of each window; the stride is the window by default."""
    stride = kernel_size if stride is None else stride
    return named.max_pool2d(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


def avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """The mean of each window; the stride is the window by default."""
    return named.avg_pool2d(
        input,
        kernel_size,
        kernel_size if stride is None else stride,
        padding,
        ceil_mode,
        count_include_pad,
        0 if divisor_override is None else divisor_override,
    )


def adaptive_avg_pool2d(input, output_size):
    """The means of as many parts as output_size says."""
    return named.adaptive_avg_pool2d(input, output_size)


# ---- Losses ------------------------------------------------------------------------------------------------


def _reduced(loss, reduction):
    if reduction == "mean":
        return ops.reduce_mean(loss)
    if reduction == "sum":
        return ops.reduce_sum(loss)
    if reduction != "none":
        raise ValueError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    return loss


def mse_loss(input, target, reduction="mean"):
    """(input - target)^2."""
    return _reduced(ops.square(ops.sub(input, target)), reduction)


def l1_loss(input, target, reduction="mean"):
    """|input - target|."""
    return _reduced(ops.abs(ops.sub(input, target)), reduction)


def smooth_l1_loss(input, target, reduction="mean", beta=1.0):
    """|input - target| less beta / 2, and its square over 2 beta below beta."""
    away = ops.abs(ops.sub(input, target))
    if beta == 0:
        return _reduced(away, reduction)
    small = ops.div(ops.square(away), 2.0 * beta)
    return _reduced(ops.select(ops.less(away, float(beta)), small, ops.sub(away, 0.5 * beta)), reduction)


def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Cross entropy of scores with class numbers, or with probabilities."""
    return named.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """The negated logarithms of probabilities at class numbers."""
    return named.nll_loss(input, target, weight, ignore_index, reduction)


def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    """Cross entropy of probabilities."""
    return named.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    """Cross entropy of the sigmoid of scores."""
    return named.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(input, target, reduction="mean", log_target=False):
    """target (log(target) - input), of logarithms of probabilities; 'batchmean' divides by the rows."""
    if log_target:
        loss = ops.mul(ops.exp(target), ops.sub(target, input))
    else:
        zero = ops.less_equal(target, 0.0)
        safe = ops.select(zero, ops.ones_like(target), target)
        loss = ops.select(zero, ops.zeros_like(target), ops.mul(target, ops.sub(ops.log(safe), input)))
    if reduction == "batchmean":
        return ops.div(ops.reduce_sum(loss), float(input.shape[0]))
    return _reduced(loss, reduction)


def soft_margin_loss(input, target, reduction="mean"):
    """log(1 + e^(-target input))."""
    return _reduced(ops.softplus(ops.neg(ops.mul(target, input))), reduction)


# Functions of mindspore.ops that take the same arguments.
_HOLDERS = dict.fromkeys(
    (
        *("adaptive_avg_pool1d", "adaptive_avg_pool3d", "adaptive_max_pool2d", "fold", "grid_sample"),
        *("hardswish", "sigmoid", "softplus", "tanh", "unfold"),
    ),
    "mindspore.ops",
)
_own = _shared.public(globals(), __name__)
globals().update((_name, _inputs.watch(__name__, _name, globals()[_name])) for _name in _own)
__all__ = sorted({*_own, *_HOLDERS})
__getattr__ = _names.missing(__name__, holders=_HOLDERS)
