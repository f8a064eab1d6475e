"""mindspore.nn: cells that few use: gamma functions, random pooling, sparse products, drawn classes."""

import muster
from mindspore import ops as named
from muster import ops


class LGamma(muster.Cell):
    """log(|gamma(x)|)."""

    def construct(self, x):
        """ops.lgamma(x)."""
        return named.lgamma(x)


class DiGamma(muster.Cell):
    """The derivative of log(gamma(x))."""

    def construct(self, x):
        """ops.digamma(x)."""
        return named.digamma(x)


class IGamma(muster.Cell):
    """The regularized lower incomplete gamma function."""

    def construct(self, a, x):
        """ops.igamma(a, x)."""
        return named.igamma(a, x)


class LBeta(muster.Cell):
    """log(|beta(x, y)|) = log(gamma(x) gamma(y) / gamma(x + y))."""

    def construct(self, x, y):
        """The function of two tensors of one shape."""
        return ops.sub(ops.add(named.lgamma(x), named.lgamma(y)), named.lgamma(ops.add(x, y)))


class _FractionalMaxPool(muster.Cell):
    function = ""

    def __init__(
        self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
    ):
        super().__init__()
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices = return_indices
        self._random_samples = _random_samples

    def construct(self, input):
        """The pooled tensor; with `return_indices` also the flat places of its elements."""
        settings = self.kernel_size, self.output_size, self.output_ratio, self.return_indices
        return getattr(named, self.function)(input, *settings, self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool):
    """ops.fractional_max_pool2d: the greatest of windows of images whose places are random."""

    function = "fractional_max_pool2d"


class FractionalMaxPool3d(_FractionalMaxPool):
    """ops.fractional_max_pool3d: the greatest of windows of volumes whose places are random."""

    function = "fractional_max_pool3d"


class SparseToDense(muster.Cell):
    """The tensor, with its zeros, of a COOTensor."""

    def construct(self, sparse_tensor):
        """ops.SparseToDense of the parts of the tensor."""
        return named.SparseToDense()(sparse_tensor.indices, sparse_tensor.values, sparse_tensor.shape)


class SparseTensorDenseMatmul(muster.Cell):
    """The product of a sparse matrix, given by its parts, and a matrix."""

    def __init__(self, adjoint_st=False, adjoint_dt=False):
        super().__init__()
        self.adj_st, self.adj_dt = adjoint_st, adjoint_dt

    def construct(self, indices, values, sparse_shape, dense):
        """ops.SparseTensorDenseMatmul."""
        product = named.SparseTensorDenseMatmul(self.adj_st, self.adj_dt)
        return product(indices, values, sparse_shape, dense)


class SampledSoftmaxLoss(muster.nn.LossBase):
    """Cross entropy over the true classes and a few drawn ones, for many classes.

    Args:
        num_sampled: How many classes are drawn.
        num_classes: How many there are.
        num_true: How many of a sample are true.
        sampled_values: (classes drawn, how often the true ones and those drawn are expected) instead.
        remove_accidental_hits: Changes nothing, as in MindSpore on a CPU.
        seed: Of the draws; 0: set_seed's.
        reduction: Kept: the loss of each sample is given.
    """

    def __init__(
        self,
        num_sampled,
        num_classes,
        num_true=1,
        sampled_values=None,
        remove_accidental_hits=True,
        seed=0,
        reduction="none",
    ):
        super().__init__(reduction)
        if num_true < 1 or seed < 0:
            raise ValueError(f"SampledSoftmaxLoss: num_true {num_true} is at least 1, seed {seed} at least 0")
        if num_sampled > num_classes or num_true > num_classes:
            raise ValueError(
                f"SampledSoftmaxLoss: num_sampled {num_sampled} and num_true {num_true} are at most "
                f"num_classes {num_classes}"
            )
        if sampled_values is not None and not isinstance(sampled_values, list | tuple):
            kind = type(sampled_values).__name__
            raise TypeError(f"SampledSoftmaxLoss: sampled_values is a list or tuple, not {kind}")
        if sampled_values is not None and len(sampled_values) != 3:
            raise ValueError(f"SampledSoftmaxLoss: sampled_values are three, not {len(sampled_values)}")
        self.num_sampled, self.num_classes, self.num_true = num_sampled, num_classes, num_true
        self.sampled_values, self.seed = sampled_values, seed

    def construct(self, weights, biases, labels, logits):
        """The losses (samples,) of `logits` (samples, width), weights (classes, width) and biases."""
        labels = ops.reshape(ops.cast(labels, muster.int32), (-1, self.num_true))
        values = self.sampled_values or named.uniform_candidate_sampler(
            labels, self.num_true, self.num_sampled, True, self.num_classes, self.seed
        )
        sampled, true_expected, sampled_expected = values
        sampled = ops.cast(sampled, muster.int32)
        of_true = ops.gather(weights, ops.reshape(labels, (-1,)), 0)
        of_true = ops.reshape(of_true, (labels.shape[0], self.num_true, -1))
        true = ops.reduce_sum(ops.mul(ops.expand_dims(logits, 1), of_true), 2)
        true = ops.add(true, ops.reshape(ops.gather(biases, ops.reshape(labels, (-1,)), 0), labels.shape))
        drawn = ops.matmul(logits, ops.transpose(ops.gather(weights, sampled, 0), (1, 0)))
        drawn = ops.add(drawn, ops.gather(biases, sampled, 0))
        true = ops.sub(true, ops.log(true_expected))
        drawn = ops.sub(drawn, ops.log(sampled_expected))
        shares = ops.log(ops.add(ops.softmax(ops.concat([true, drawn], 1), 1), 1e-20))
        return ops.neg(ops.reduce_mean(shares[:, : self.num_true], 1))


__all__ = [
    "DiGamma",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "IGamma",
    "LBeta",
    "LGamma",
    "SampledSoftmaxLoss",
    "SparseTensorDenseMatmul",
    "SparseToDense",
]
