"""Normalizations beside BatchNorm1d, BatchNorm2d and LayerNorm."""

import sys

import muster
from mindspore import _names, nn
from mindspore._gradient import shares_one_batch
from muster import ops


def _parameter(name: str, initial, shape, trained: bool, dtype) -> muster.Parameter:
    value = muster.nn.initializer(initial, shape, muster.dtype(dtype))
    return muster.Parameter(value, name=name, requires_grad=trained)


def _normalized(x, rows: int, eps: float):
    """x in `rows` equal parts, each with mean 0 and variance 1; as (rows, ...)."""
    parts = ops.reshape(x, (rows, -1))
    length = parts.shape[1]
    exact = x.dtype if x.dtype.itemsize > 4 else muster.float32
    return ops.layer_norm(parts, ops.ones((length,), exact), ops.zeros((length,), exact), 1, eps)


def _scaled(x, gamma, beta):
    """gamma x + beta by channel of (N, C, ...)."""
    spread = (1, -1) + (1,) * (x.ndim - 2)
    return ops.add(ops.mul(x, ops.reshape(gamma, spread)), ops.reshape(beta, spread))


def group_norm(x, num_groups, gamma, beta, eps):
    """x (N, C, ...) with mean 0 and variance 1 over each group of channels, times gamma plus beta (C,)."""
    normal = ops.reshape(_normalized(x, x.shape[0] * num_groups, eps), x.shape)
    return ops.cast(_scaled(normal, gamma, beta), x.dtype)


class GroupNorm(muster.Cell):
    """Each group of channels of (N, C, ...) with mean 0 and variance 1, times `gamma` plus `beta` (C,).

    Wu and He, ECCV 2018.
    """

    def __init__(
        self,
        num_groups,
        num_channels,
        eps=1e-5,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        dtype=muster.float32,
    ):
        super().__init__()
        for name, count in (("num_groups", num_groups), ("num_channels", num_channels)):
            if not isinstance(count, int):
                raise TypeError(f"GroupNorm: {name} is a whole number, not {type(count).__name__}")
        if num_groups < 1 or num_channels < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_groups {num_groups} must divide num_channels {num_channels}")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.gamma = _parameter("gamma", gamma_init, (num_channels,), affine, dtype)
        self.beta = _parameter("beta", beta_init, (num_channels,), affine, dtype)

    def construct(self, x):
        """group_norm(x)."""
        if x.ndim < 3 or x.shape[1] != self.num_channels:
            raise ValueError(
                f"GroupNorm: input {x.shape} does not fit: (N, {self.num_channels}, ...) is needed"
            )
        return group_norm(x, self.num_groups, self.gamma, self.beta, self.eps)


class _InstanceNorm(muster.Cell):
    rank = 4

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        dtype=muster.float32,
    ):
        super().__init__()
        name = type(self).__name__
        if num_features < 1:
            raise ValueError(f"{name}: num_features is at least 1, not {num_features}")
        if not 0 <= momentum <= 1:
            raise ValueError(f"{name}: momentum is in [0, 1], not {momentum}")
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.moving_mean = _parameter("mean", "zeros", (num_features,), False, dtype)
        self.moving_variance = _parameter("variance", "ones", (num_features,), False, dtype)
        self.gamma = _parameter("gamma", gamma_init, (num_features,), affine, dtype)
        self.beta = _parameter("beta", beta_init, (num_features,), affine, dtype)

    def construct(self, x):
        """Each channel of each sample with mean 0 and variance 1, times gamma plus beta."""
        if x.ndim != self.rank or x.shape[1] != self.num_features:
            axes = {3: "L", 4: "H, W", 5: "D, H, W"}[self.rank]
            raise ValueError(
                f"{type(self).__name__}: input {x.shape} does not fit: (N, {self.num_features}, {axes}) is "
                "needed"
            )
        return group_norm(x, self.num_features, self.gamma, self.beta, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Of (N, C, L): Ulyanov et al., 2016. `mean` and `variance` only stand in checkpoints."""

    rank = 3


class InstanceNorm2d(_InstanceNorm):
    """Of (N, C, H, W): Ulyanov et al., 2016. `mean` and `variance` only stand in checkpoints."""


class InstanceNorm3d(_InstanceNorm):
    """Of (N, C, D, H, W): Ulyanov et al., 2016. `mean` and `variance` only stand in checkpoints."""

    rank = 5


def _as_images(x):
    """(N, C, ...) as (N, C, H, W)."""
    return ops.reshape(x, (x.shape[0], x.shape[1], -1, 1))


class BatchNorm3d(muster.Cell):
    """BatchNorm2d of (N, C, D, H, W), which is its child `bn2d`."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.9,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        moving_mean_init="zeros",
        moving_var_init="ones",
        use_batch_statistics=None,
        dtype=muster.float32,
    ):
        super().__init__()
        self.bn2d = nn.BatchNorm2d(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, "NCHW", dtype,
        )  # fmt: skip

    def construct(self, x):
        """(x - mean) / sqrt(variance + eps) gamma + beta by channel."""
        if x.ndim != 5:
            raise ValueError(f"BatchNorm3d: input {x.shape} does not fit: (N, C, D, H, W) is needed")
        return ops.reshape(self.bn2d(_as_images(x)), x.shape)


def _sees_whole_batch() -> bool:
    """Whether each worker is given all rows, divided or not."""
    meshes = sys.modules.get("mindspore.parallel._mesh")  # without it no script has said so
    return shares_one_batch() or (meshes is not None and meshes.gives_whole_batches())


class SyncBatchNorm(nn.BatchNorm2d):
    """BatchNorm of (N, C, ...) with the statistics of the batches of all workers together."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.9,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        moving_mean_init="zeros",
        moving_var_init="ones",
        use_batch_statistics=None,
        process_groups=None,
        dtype=muster.float32,
    ):
        _names.refuse("mindspore.nn.SyncBatchNorm", process_groups=(process_groups, None))
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, "NCHW", dtype,
        )  # fmt: skip
        self._eps, self._momentum, self._fixed = eps, momentum, use_batch_statistics

    def construct(self, x):
        """(x - mean) / sqrt(variance + eps) gamma + beta by channel."""
        batch = self.training if self._fixed is None else self._fixed
        if muster._core._context()["world_size"] == 1 or not batch or _sees_whole_batch():
            return ops.reshape(super().construct(_as_images(x)), x.shape)
        return self._of_all(x)

    def _of_all(self, x):
        axes = (0, *range(2, x.ndim))
        means = ops.reduce_mean(x, axes)
        # With stages the copies of this one reduce, not all workers.
        sums = ops.stack([means, ops.reduce_mean(ops.square(x), axes), ops.ones_like(means)])
        mean, squares, workers = ops.unstack(ops.all_reduce(sums))
        mean, squares = ops.div(mean, workers), ops.div(squares, workers)
        variance = ops.sub(squares, ops.square(mean))
        spread = (1, -1) + (1,) * (x.ndim - 2)
        normal = ops.mul(
            ops.sub(x, ops.reshape(mean, spread)),
            ops.reshape(ops.rsqrt(ops.add(variance, self._eps)), spread),
        )
        count = ops.mul(workers, x._size // x.shape[1])
        self._move(self.moving_mean, mean)
        unbiased = ops.div(count, ops.maximum(ops.sub(count, 1), 1))
        self._move(self.moving_variance, ops.mul(variance, unbiased))
        return _scaled(normal, self.gamma, self.beta)

    def _move(self, moving, batch) -> None:
        kept = ops.mul(moving, self._momentum)
        ops.assign(moving, ops.add(kept, ops.mul(ops.stop_gradient(batch), 1 - self._momentum)))


class LayerNormExt(muster.Cell):
    """The last axes, of `normalized_shape`, with mean 0 and variance 1, times `weight` plus `bias`."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, dtype=None):
        super().__init__()
        dtype = muster.float32 if dtype is None else dtype
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self._scale = self._shift = False
        if elementwise_affine:
            self.weight = _parameter("weight", "ones", shape, True, dtype)
            self._scale = True
            if bias:
                self.bias = _parameter("bias", "zeros", shape, True, dtype)
                self._shift = True

    def construct(self, x):
        """layer_norm(x)."""
        weight = self.weight if self._scale else ops.ones(self.normalized_shape)
        bias = self.bias if self._shift else ops.zeros(self.normalized_shape)
        return ops.layer_norm(x, weight, bias, x.ndim - len(self.normalized_shape), self.eps)


class LRN(muster.Cell):
    """x / (bias + alpha times the sum of x^2 over 2 depth_radius + 1 channels)^beta, of (N, C, H, W)."""

    def __init__(self, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS"):
        super().__init__()
        _names.refuse("mindspore.nn.LRN", norm_region=(norm_region, "ACROSS_CHANNELS"))
        self.depth_radius, self.bias, self.alpha, self.beta = depth_radius, bias, alpha, beta

    def construct(self, input_x):
        """lrn(x)."""
        x = input_x
        reach, channels = self.depth_radius, x.shape[1]
        squares = ops.pad(ops.square(x), (0, 0, 0, 0, reach, reach))
        total = ops.slice(squares, (0, 0, 0, 0), x.shape)
        for first in range(1, 2 * reach + 1):
            total = ops.add(total, ops.slice(squares, (0, first, 0, 0), (x.shape[0], channels, *x.shape[2:])))
        return ops.div(x, ops.pow(ops.add(ops.mul(total, self.alpha), self.bias), self.beta))


__all__ = [
    "LRN",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNormExt",
    "SyncBatchNorm",
]
