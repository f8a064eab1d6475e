"""The functions of images: convolution, pooling and batch normalisation."""

from muster.ops import adaptive_avg_pool2d, avg_pool2d, batch_norm, conv2d, max_pool2d

__all__ = ["adaptive_avg_pool2d", "avg_pool2d", "batch_norm", "conv2d", "max_pool2d"]
