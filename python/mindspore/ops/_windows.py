"""mindspore.ops: windows of images: pooling with places, over three axes and over powers, unfold and fold."""

import itertools
import math

import muster
from muster import ops


def several(value, count, name="a size"):
    """One number for each of `count` axes."""
    made = (value,) * count if isinstance(value, int) else tuple(value)
    made = made * count if len(made) == 1 else made
    if len(made) == count + 2 and made[:2] == (1, 1):
        made = made[2:]
    if len(made) != count:
        raise ValueError(f"{name} is a number or one for each of {count} axes, not {value!r}")
    return made


def _sides(padding, count):
    """(before, behind) for each axis, of one number, one for each axis or both for each."""
    if isinstance(padding, int):
        return [(padding, padding)] * count
    padding = tuple(padding)
    if padding and not isinstance(padding[0], int):
        return [tuple(each) for each in padding]
    if len(padding) == 2 * count and count > 1:
        return list(zip(padding[::2], padding[1::2], strict=True))
    return [(each, each) for each in several(padding, count, "padding")]


class Windows:
    """The windows of the last axes of a tensor (N, C, ...): where they stand."""

    def __init__(self, sizes, kernel, stride=None, padding=0, dilation=1, ceil_mode=False, same=False):
        count = len(sizes)
        self.kernel = several(kernel, count, "kernel_size")
        self.stride = several(self.kernel if stride in (None, 0) else stride, count, "stride")
        self.dilation = several(dilation, count, "dilation")
        self.sizes = tuple(sizes)
        reach = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        if same:
            counts = [-(-size // step) for size, step in zip(sizes, self.stride, strict=True)]
            gaps = [
                max((n - 1) * step + r - size, 0)
                for n, step, r, size in zip(counts, self.stride, reach, sizes, strict=True)
            ]
            self.sides = [(gap // 2, gap - gap // 2) for gap in gaps]
        else:
            self.sides = _sides(padding, count)
        self.counts = []
        for size, (before, behind), r, step in zip(sizes, self.sides, reach, self.stride, strict=True):
            room = size + before + behind - r
            n = (-(-room // step) if ceil_mode else room // step) + 1
            if ceil_mode and (n - 1) * step >= size + before:
                n -= 1  # a window that would begin in the padding behind
            if n < 1:
                raise ValueError(
                    f"a window of {r} elements does not fit in {size} with padding {before, behind}"
                )
            self.counts.append(n)

    def places(self, axis):
        """For each window and each place in it the index along the axis; None is padding."""
        before, size = self.sides[axis][0], self.sizes[axis]
        rows = []
        for n in range(self.counts[axis]):
            first = n * self.stride[axis] - before
            each = [first + k * self.dilation[axis] for k in range(self.kernel[axis])]
            rows.append([at if 0 <= at < size else None for at in each])
        return rows

    def taken(self, x, value):
        """(N, C, windows of each axis..., elements of a window), `value` for padding."""
        rank = len(self.sizes)
        lead = x.ndim - rank
        for axis in range(rank):
            flat = [at for row in self.places(axis) for at in row]
            index = muster.Tensor([self.sizes[axis] if at is None else at for at in flat], muster.int32)
            if None in flat:
                # The padding is one more place behind, which the windows read as often as they need it.
                x = _padded_behind(x, lead + 2 * axis, value)
            x = ops.gather(x, index, lead + 2 * axis)
            sizes = x.shape
            at = lead + 2 * axis
            x = ops.reshape(x, (*sizes[:at], self.counts[axis], self.kernel[axis], *sizes[at + 1 :]))
        order = [*range(lead), *(lead + 2 * i for i in range(rank)), *(lead + 2 * i + 1 for i in range(rank))]
        x = ops.transpose(x, tuple(order))
        return ops.reshape(x, (*x.shape[: lead + rank], math.prod(self.kernel)))

    def flat_places(self):
        """For each window the place in the flat image of each of its elements, -1 for padding."""
        steps = [math.prod(self.sizes[axis + 1 :]) for axis in range(len(self.sizes))]
        made = []
        axes = [self.places(axis) for axis in range(len(self.sizes))]
        for window in itertools.product(*axes):
            row = []
            for element in itertools.product(*window):
                outside = any(at is None for at in element)
                row.append(-1 if outside else sum(at * s for at, s in zip(element, steps, strict=True)))
            made.append(row)
        return made

    def inside(self, count_include_pad, divisor=0):
        """By how much the sum of each window is divided."""
        made = []
        axes = [self.places(axis) for axis in range(len(self.sizes))]
        # Padding that was asked for counts; what ceil_mode needs beyond it does not.
        bounded = []
        for axis in range(len(self.sizes)):
            end = self.sizes[axis] + self.sides[axis][1]
            bounded.append(
                [
                    sum(
                        n * self.stride[axis] - self.sides[axis][0] + k * self.dilation[axis] < end
                        for k in range(self.kernel[axis])
                    )
                    for n in range(self.counts[axis])
                ]
            )
        known = (
            bounded if count_include_pad else [[sum(at is not None for at in row) for row in a] for a in axes]
        )
        for window in itertools.product(*known):
            made.append(float(divisor or max(math.prod(window), 1)))
        return made


def _padded_behind(x, axis, value):
    part = ops.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), value, dtype=x.dtype)
    return ops.concat([x, part], axis)


_LOWEST = -3.4028234663852886e38


def max_pool_nd(x, windows, return_indices=False):
    """The greatest element of each window, and its place in the flat image."""
    lead = x.ndim - len(windows.sizes)
    taken = windows.taken(x, _LOWEST if "float" in str(x.dtype).lower() else -(2**31))
    at = ops.argmax(taken, -1)
    values = ops.squeeze(ops.gather_elements(taken, ops.expand_dims(at, -1), taken.ndim - 1), -1)
    if not return_indices:
        return values
    table = muster.Tensor(windows.flat_places(), muster.int32)
    width = math.prod(windows.kernel)
    first = ops.mul(ops.arange(table.shape[0]), width)
    first = ops.reshape(ops.cast(first, muster.int32), (1,) * lead + tuple(windows.counts))
    return values, ops.gather(ops.reshape(table, (-1,)), ops.add(at, first), 0)


def avg_pool_nd(x, windows, count_include_pad=True, divisor=0):
    """The mean of each window."""
    total = ops.reduce_sum(windows.taken(x, 0), -1)
    divisors = muster.Tensor(windows.inside(count_include_pad, divisor), muster.float32)
    return ops.div(total, ops.cast(ops.reshape(divisors, windows.counts), x.dtype))


def _samples(x, rank):
    """x with an axis of samples, and whether it had one."""
    return (x, True) if x.ndim == rank + 2 else (ops.expand_dims(x, 0), False)


def _pooled(x, rank, pool):
    x, had = _samples(x, rank)
    made = pool(x)
    if had:
        return made
    return tuple(ops.squeeze(each, 0) for each in made) if isinstance(made, tuple) else ops.squeeze(made, 0)


def max_pool(x, axes, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    """The greatest element of each window of the last `axes` axes, and its flat place (int64)."""

    def pool(each):
        windows = Windows(each.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
        made = max_pool_nd(each, windows, return_indices)
        return (made[0], ops.cast(made[1], muster.int64)) if return_indices else made

    return _pooled(x, axes, pool)


def max_pool3d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The greatest element of each window of (N, C, D, H, W), and with return_indices its flat place."""
    return max_pool(x, 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d_with_indices(
    x, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
):
    """The greatest element of each window of (N, C, H, W), and with return_indices its flat place."""
    return max_pool(x, 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(input_x, kernel_size=1, stride=1, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of each window of (N, C, L)."""

    def pool(each):
        windows = Windows(each.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
        return avg_pool_nd(each, windows, count_include_pad)

    return _pooled(input_x, 1, pool)


def avg_pool3d(
    input_x, kernel_size=1, stride=1, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=0
):
    """The mean of each window of (N, C, D, H, W)."""

    def pool(each):
        windows = Windows(each.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
        return avg_pool_nd(each, windows, count_include_pad, divisor_override)

    return _pooled(input_x, 3, pool)


def _lp_pool(x, rank, norm_type, kernel_size, stride, ceil_mode):
    def pool(each):
        windows = Windows(each.shape[2:], kernel_size, stride, 0, 1, ceil_mode)
        total = ops.reduce_sum(ops.pow(windows.taken(each, 0), float(norm_type)), -1)
        return ops.pow(total, 1.0 / norm_type)

    return _pooled(x, rank, pool)


def lp_pool1d(x, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The root of the sum of the powers of each window of (N, C, L)."""
    return _lp_pool(x, 1, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(x, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The root of the sum of the powers of each window of (N, C, H, W)."""
    return _lp_pool(x, 2, norm_type, kernel_size, stride, ceil_mode)


# ---- Adaptive pools ----------------------------------------------------------------------------------------


def _parts(size, count):
    """Of an axis cut into `count` parts, which may overlap: (begin, end) of each."""
    return [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]


def _adaptive(x, rank, output_size, fold):
    x, had = _samples(x, rank)
    wanted = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
    for axis, count in enumerate(wanted):
        at = 2 + axis
        if count is None or count == x.shape[at]:
            continue
        cut = [slice(None)] * x.ndim
        parts = []
        for begin, end in _parts(x.shape[at], count):
            cut[at] = slice(begin, end)
            parts.append(fold(x[tuple(cut)], at, True))
        x = ops.concat(parts, at)
    return x if had else ops.squeeze(x, 0)


def adaptive_avg_pool1d(input, output_size):
    """The means of output_size parts of the last axis."""
    return _adaptive(input, 1, output_size, ops.reduce_mean)


def adaptive_avg_pool3d(input, output_size):
    """The means of output_size parts of the last three axes."""
    return _adaptive(input, 3, output_size, ops.reduce_mean)


def adaptive_max_pool1d(input, output_size):
    """The greatest elements of output_size parts of the last axis."""
    return _adaptive(input, 1, output_size, ops.reduce_max)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The greatest elements of output_size parts of the last two axes, and their flat places."""
    return _adaptive_max(input, 2, output_size, return_indices)


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The greatest elements of output_size parts of the last three axes, and their flat places."""
    made = _adaptive_max(input, 3, output_size, return_indices)
    return (made[0], ops.cast(made[1], muster.int32)) if return_indices else made


def _adaptive_max(x, rank, output_size, return_indices):
    values = _adaptive(x, rank, output_size, ops.reduce_max)
    if not return_indices:
        return values
    x, had = _samples(x, rank)
    sizes = x.shape[2:]
    wanted = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
    wanted = [size if count is None else count for size, count in zip(sizes, wanted, strict=True)]
    numbers = ops.reshape(ops.arange(math.prod(sizes)), sizes)
    found = []
    for window in itertools.product(*[_parts(s, n) for s, n in zip(sizes, wanted, strict=True)]):
        cut = (slice(None), slice(None), *(slice(begin, end) for begin, end in window))
        part = ops.reshape(x[cut], (*x.shape[:2], -1))
        places = ops.reshape(numbers[cut[2:]], (-1,))
        found.append(ops.gather(places, ops.argmax(part, -1), 0))
    indices = ops.reshape(ops.stack(found, -1), (*x.shape[:2], *wanted))
    indices = ops.cast(indices, muster.int64)
    return values, indices if had else ops.squeeze(indices, 0)


# ---- Convolution along one axis ----------------------------------------------------------------------------


def conv1d(input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, groups=1):
    """(N, C, L) convolved with the weight (channels, C / groups, width): conv2d of a height of 1."""
    if input.ndim != 3 or weight.ndim != 3:
        raise ValueError(f"conv1d: tensors of three axes are needed, not {input.shape} and {weight.shape}")
    if not isinstance(padding, int | tuple | list):
        raise TypeError(f"conv1d: padding is a number or a tuple of one, not {padding!r}")
    steps, apart, around = (several(each, 1)[0] for each in (stride, dilation, padding))
    lines, kernel = ops.expand_dims(input, 2), ops.expand_dims(weight, 2)
    pads = (0, 0, around, around)
    made = ops.conv2d(lines, kernel, None, (1, steps), pad_mode, pads, (1, apart), groups)
    made = ops.squeeze(made, 2)
    return made if bias is None else ops.add(made, ops.reshape(bias, (1, -1, 1)))


# ---- The other way round -----------------------------------------------------------------------------------


def _max_unpool(x, indices, rank, kernel_size, stride, padding, output_size):
    x, had = _samples(x, rank)
    indices = indices if had else ops.expand_dims(indices, 0)
    if output_size is None or tuple(output_size) == ():
        kernel = several(kernel_size, rank)
        steps = several(kernel if stride in (None, 0) else stride, rank)
        around = several(padding, rank)
        output_size = [
            (n - 1) * step - 2 * pad + k
            for n, step, pad, k in zip(x.shape[2:], steps, around, kernel, strict=True)
        ]
    sizes = tuple(output_size)[-rank:]
    lead = x.shape[:2]
    flat = ops.zeros((*lead, math.prod(sizes)), x.dtype)
    made = ops.scatter_elements(
        flat, ops.reshape(indices, (*lead, -1)), ops.reshape(x, (*lead, -1)), 2, "update"
    )
    made = ops.reshape(made, (*lead, *sizes))
    return made if had else ops.squeeze(made, 0)


def max_unpool1d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The elements at the places that max pooling took them from, 0 elsewhere."""
    return _max_unpool(x, indices, 1, kernel_size, stride, padding, output_size)


def max_unpool2d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The elements at the places that max pooling took them from, 0 elsewhere."""
    return _max_unpool(x, indices, 2, kernel_size, stride, padding, output_size)


def max_unpool3d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The elements at the places that max pooling took them from, 0 elsewhere."""
    return _max_unpool(x, indices, 3, kernel_size, stride, padding, output_size)


# ---- unfold and fold ---------------------------------------------------------------------------------------


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of (N, C, H, W) as columns: (N, C h w, windows)."""
    columns = col_windows(input, kernel_size, dilation, padding, stride)
    return ops.reshape(columns, (input.shape[0], -1, columns.shape[-1]))


def col_windows(input, kernel_size, dilation=1, padding=0, stride=1):
    """(N, C, h w, windows)."""
    windows = Windows(input.shape[2:], kernel_size, stride, padding, dilation)
    taken = windows.taken(input, 0)
    batch, channels = input.shape[:2]
    return ops.transpose(ops.reshape(taken, (batch, channels, -1, taken.shape[-1])), (0, 1, 3, 2))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The sum of windows (N, C h w, windows) at their places: (N, C, H, W)."""
    return col_sum(input, output_size, kernel_size, dilation, padding, stride)


def col2im(input_x, output_size, kernel_size, dilation, padding_value, stride):
    """The sum of windows (N, C, h w, windows) at their places: (N, C, H, W)."""
    return col_sum(input_x, output_size, kernel_size, dilation, padding_value, stride)


def col_sum(input, output_size, kernel_size, dilation, padding, stride):
    """(N, C, H, W) of (N, C h w, windows) or (N, C, h w, windows)."""
    if isinstance(output_size, muster.Tensor):
        output_size = output_size.asnumpy().tolist()
    sizes = several(output_size, 2, "output_size")
    windows = Windows(sizes, kernel_size, stride, padding, dilation)
    width, count = math.prod(windows.kernel), math.prod(windows.counts)
    batch = input.shape[0]
    columns = ops.reshape(input, (batch, -1, width, count))
    values = ops.reshape(ops.transpose(columns, (0, 1, 3, 2)), (batch, columns.shape[1], -1))
    total = math.prod(sizes)
    places = [total if at < 0 else at for row in windows.flat_places() for at in row]
    index = ops.broadcast_to(ops.reshape(muster.Tensor(places, muster.int32), (1, 1, -1)), values.shape)
    into = ops.zeros((batch, columns.shape[1], total + 1), input.dtype)  # one more place for padding
    made = ops.scatter_elements(into, index, values, 2, "add")
    made = ops.slice(made, [0, 0, 0], [batch, columns.shape[1], total])
    return ops.reshape(made, (batch, columns.shape[1], *sizes))


def extract_image_patches(x, ksizes, strides, rates, padding="VALID"):
    """The windows of (N, C, H, W) as channels: (N, h w C, windows of each axis)."""
    kernel, step, rate = (several(each, 2) for each in (ksizes, strides, rates))
    windows = Windows(x.shape[2:], kernel, step, 0, rate, same=padding.upper() == "SAME")
    taken = ops.transpose(windows.taken(x, 0), (0, 4, 1, 2, 3))
    return ops.reshape(taken, (x.shape[0], -1, *windows.counts))


def lrn(x, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS"):
    """x over (bias + alpha times the sum of squares of the channels at most depth_radius away)^beta."""
    channels = x.shape[1]
    squares = ops.square(x)
    away = ops.sub(ops.expand_dims(ops.arange(channels), 0), ops.expand_dims(ops.arange(channels), 1))
    near = ops.cast(ops.less_equal(ops.abs(away), depth_radius), x.dtype)
    flat = ops.reshape(squares, (x.shape[0], channels, -1))
    total = ops.batch_matmul(ops.broadcast_to(near, (x.shape[0], channels, channels)), flat)
    scale = ops.pow(ops.add(ops.mul(ops.reshape(total, x.shape), alpha), bias), beta)
    return ops.div(x, scale)


__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool3d",
    "col2im",
    "conv1d",
    "fold",
    "lp_pool1d",
    "lp_pool2d",
    "lrn",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "unfold",
]
