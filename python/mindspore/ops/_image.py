"""The functions of images: convolution, pooling and batch normalisation."""

from muster.ops import avg_pool2d, batch_norm, conv2d

from muster import ops


def max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
    """The greatest pixel of each window of (N, C, H, W), and with return_indices its flat place (int64)."""
    if not return_indices and dilation in (1, (1, 1)):
        return ops.max_pool2d(x, kernel_size, stride, padding, ceil_mode=ceil_mode)
    from mindspore.ops import _windows

    return _windows.max_pool2d_with_indices(
        x, kernel_size, stride, padding, dilation, return_indices, ceil_mode
    )


def adaptive_avg_pool2d(input, output_size):
    """Images (N, C, H, W), or one (C, H, W), averaged down to output_size; None keeps a size."""
    if input.ndim == 3:
        return ops.squeeze(ops.adaptive_avg_pool2d(ops.expand_dims(input, 0), output_size), 0)
    return ops.adaptive_avg_pool2d(input, output_size)


__all__ = ["adaptive_avg_pool2d", "avg_pool2d", "batch_norm", "conv2d", "max_pool2d"]
