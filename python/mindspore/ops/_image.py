"""The functions of images: convolution, pooling and batch normalisation."""

from muster.ops import avg_pool2d, batch_norm, conv2d, max_pool2d

from muster import ops


def adaptive_avg_pool2d(input, output_size):
    """Images (N, C, H, W), or one (C, H, W), averaged down to output_size; None keeps a size."""
    if input.ndim == 3:
        return ops.squeeze(ops.adaptive_avg_pool2d(ops.expand_dims(input, 0), output_size), 0)
    return ops.adaptive_avg_pool2d(input, output_size)


__all__ = ["adaptive_avg_pool2d", "avg_pool2d", "batch_norm", "conv2d", "max_pool2d"]
