"""mindspore.ops.operations._grad_ops: gradients of pools, segments and parts of images as classes."""

import muster
from mindspore import ops
from mindspore.ops import _places, _samplings, operations
from mindspore.ops._gradient_primitives import _pulled, _to_places, _zeros
from mindspore.ops._primitive import class_keeper, sizes_of

_made = {}
_class = class_keeper(_made)
_DILATION = {"stride": ..., "dilation": ..., "pad_mode": "SAME", "data_format": "NCHW"}


# ---- Images ------------------------------------------------------------------------------------------------


@_class("Dilation2DBackpropInput", **_DILATION)
def _dilation_of_input(x, filter, dy, **settings):
    return _pulled(operations.Dilation2D(**settings), (x, filter), dy)


@_class("Dilation2DBackpropFilter", **_DILATION)
def _dilation_of_filter(x, filter, dy, **settings):
    return _pulled(operations.Dilation2D(**settings), (x, filter), dy, 1)


@_class("ScaleAndTranslateGrad", kernel_type="lanczos3", antialias=True)
def _scale_and_translate(dy, images, scale, translation, **settings):
    size = muster.Tensor(dy.shape[1:3], muster.int32)
    op = operations.ScaleAndTranslate(**settings)
    return _pulled(lambda x: op(x, size, scale, translation), (images,), dy)


@_class(
    "DeformableOffsetsGrad",
    strides=...,
    pads=...,
    kernel_size=...,
    dilations=(1, 1, 1, 1),
    data_format="NCHW",
    deformable_groups=1,
    modulated=True,
)
def _deformable_offsets(dy, x, offsets, strides, pads, kernel_size, **settings):
    op = operations.DeformableOffsets(strides, pads, kernel_size, **settings)
    return _pulled(op, (x, offsets), dy, (0, 1))


@_class("ResizeLinear1DGrad", coordinate_transformation_mode="align_corners")
def _linear(dy, x, coordinate_transformation_mode):
    op = operations.ResizeLinear1D(coordinate_transformation_mode)
    return _pulled(lambda t: op(t, tuple(dy.shape[2:])), (x,), dy)


@_class("UpsampleNearest3DGrad")
def _nearest_3d(dy, input_size, output_size=None, scales=None):
    op = operations.UpsampleNearest3D()
    return _pulled(lambda x: op(x, output_size, scales), (_zeros(input_size, dy),), dy)


@_class("UpsampleTrilinear3DGrad", align_corners=False)
def _trilinear_3d(dy, input_size, output_size=None, scales=None, align_corners=False):
    op = operations.UpsampleTrilinear3D(align_corners)
    return _pulled(lambda x: op(x, output_size, scales), (_zeros(input_size, dy),), dy)


@_class("PadV3Grad", mode="reflect", paddings_contiguous=True)
def _pad(dy, paddings, mode, paddings_contiguous):
    pads = [int(each) for each in sizes_of(paddings)]
    half = len(pads) // 2
    ends = zip(pads[::2], pads[1::2], strict=True) if paddings_contiguous else zip(pads, pads[half:])  # noqa: B905
    lost = [0] * (dy.ndim - half) + [sum(each) for each in ends][::-1]
    shape = [size - less for size, less in zip(dy.shape, lost, strict=True)]
    op = operations.PadV3(mode, paddings_contiguous)
    return _pulled(lambda x: op(x, tuple(pads)), (_zeros(shape, dy),), dy)


# ---- Windows -----------------------------------------------------------------------------------------------


def _ends(*tensors):
    return [[int(each) for each in sizes_of(tensor)] for tensor in tensors]


def _uneven(overlapping, *ends):
    return [_samplings.window_places(each, overlapping) for each in _ends(*ends)]


@_class("FractionalMaxPoolGrad", overlapping=False)
def _max_pool(x, y, dy, rows, columns, overlapping):
    high, wide = _uneven(overlapping, rows, columns)
    return _pulled(lambda t: _samplings.greatest(t, high, wide), (x,), dy)


@_class("FractionalAvgPoolGrad", overlapping=False)
def _mean_pool(shape, dy, rows, columns, overlapping):
    high, wide = _uneven(overlapping, rows, columns)
    return _pulled(lambda t: _samplings.mean(t, high, wide), (_zeros(shape, dy),), dy)


@_class("FractionalMaxPoolGradWithFixedKsize", data_format="NCHW")
def _fixed_pool(x, dy, argmax, data_format):
    return _to_places(dy, x, argmax, 2)


@_class("FractionalMaxPool3DGradWithFixedKsize", data_format="NCDHW")
def _fixed_volumes(x, dy, argmax, data_format):
    return _to_places(dy, x, argmax, 3)


def _at_places(x, at, axes):
    """The elements of x at places of its last axes, counted over all of them."""
    rows = (*x.shape[: x.ndim - axes], -1)
    found = ops.gather_elements(ops.reshape(x, rows), len(rows) - 1, ops.reshape(at, rows))
    return ops.reshape(found, at.shape)


_POOL = {"kernel_size": 1, "strides": 1, "pad_mode": "VALID"}


@_class("MaxPoolGradGrad", **_POOL)
def _second_of_max(x, y, dx, **settings):
    return _at_places(dx, operations.MaxPoolWithArgmax(**settings)(x)[1], 3)


@_class("MaxPoolGradGradWithArgmax", **_POOL)
def _second_at(x, dx, argmax, **settings):
    return _at_places(dx, argmax, 3)


_UNPOOL = {"ksize": ..., "strides": 0, "pads": 0, "output_shape": ()}


@_class("MaxUnpool2DGrad", **_UNPOOL, data_format="NCHW")
def _unpooled(x, dy, argmax, **settings):
    return _at_places(dy, argmax, 2)


@_class("MaxUnpool3DGrad", **_UNPOOL, data_format="NCDHW")
def _unpooled_volumes(x, dy, argmax, **settings):
    return _at_places(dy, argmax, 3)


@_class("MedianGrad", global_median=False, axis=0, keep_dims=False)
def _median(dy, x, y, indices, global_median, axis, keep_dims):
    """The gradient goes to the median's place; that of the median of all to the equal ones, in parts."""
    if global_median:
        equal = ops.cast(ops.equal(x, y), dy.dtype)
        return ops.div(ops.mul(equal, dy), ops.reduce_sum(equal))
    if not keep_dims and x.ndim:
        dy, indices = ops.expand_dims(dy, axis), ops.expand_dims(indices, axis)
    return ops.tensor_scatter_elements(ops.zeros(x.shape, dy.dtype), indices, dy, axis)


# ---- Segments and tensors with few elements ----------------------------------------------------------------


def _of_segments(name):
    @_class(f"{name}Grad")
    def of_segments(dy, indices, segment_ids, output_dim0):
        op = getattr(operations, f"{name}WithNumSegments")()
        rows = output_dim0.item() if isinstance(output_dim0, muster.Tensor) else output_dim0
        x = ops.zeros((rows, *dy.shape[1:]), dy.dtype)
        return _pulled(lambda t: op(t, indices, segment_ids, dy.shape[0]), (x,), dy)


for _name in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
    _of_segments(_name)


@_class("SparseFillEmptyRowsGrad")
def _filled(reverse_index_map, grad_values):
    kept = ops.gather(grad_values, reverse_index_map, 0)
    return kept, ops.sub(ops.reduce_sum(grad_values), ops.reduce_sum(kept))


@_class("SparseSliceGrad")
def _sliced(dy, indices, start, new_indices):
    import numpy

    name = "SparseSliceGrad"
    old, first, new = (_places.eager(name, each) for each in (indices, start, new_indices))
    at = {tuple(row): place for place, row in enumerate(old.tolist())}
    places = [at[tuple(row)] for row in (new + first).tolist()]
    made = ops.zeros((len(old),), dy.dtype)
    if not places:
        return made
    rows = muster.Tensor(numpy.array(places, numpy.int32).reshape(-1, 1))
    return ops.tensor_scatter_update(made, rows, dy)


globals().update(_made)
__all__ = sorted(_made)
