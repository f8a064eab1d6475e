"""mindspore.ops: products with Jacobians, and Jacobians."""

from mindspore import _compiled, _gradient
from mindspore._gradient import jacfwd, jacrev, others_of, vjp
from muster import ops


def _several(results):
    return results if isinstance(results, tuple) else (results,)


def jvp(fn, inputs, v, has_aux=False):
    """(results, the product of fn's Jacobian and v): the gradient of the pulled-back flows by those flows."""
    inputs, v = _several(inputs), _several(v)
    made = fn(*inputs)
    result = made[0] if has_aux else made
    if isinstance(result, tuple):
        return _gradient.jvp(fn, inputs, v, has_aux)
    jacobians = _several(jacrev(fn, tuple(range(len(inputs))), has_aux)(*inputs))
    jacobians = jacobians[0] if has_aux else jacobians
    total = None
    for jacobian, direction in zip(jacobians, v, strict=True):
        flat = ops.reshape(jacobian, (result._size, direction._size))
        part = ops.matmul(flat, ops.reshape(direction, (-1, 1)))
        total = part if total is None else ops.add(total, part)
    moved = ops.reshape(total, result.shape)
    return (result, moved, others_of(made)) if has_aux else (result, moved)


def _counts(x, axes):
    """How many parts each tensor has; of tuples and lists the axes are one, or one for each entry."""
    if isinstance(x, (tuple, list)):
        for each, axis in zip(x, axes if isinstance(axes, (tuple, list)) else (axes,) * len(x), strict=True):
            yield from _counts(each, axis)
    elif axes is not None:
        yield x.shape[axes]


def _part(x, axes, at):
    if isinstance(x, (tuple, list)):
        spread = axes if isinstance(axes, (tuple, list)) else (axes,) * len(x)
        return type(x)(_part(each, axis, at) for each, axis in zip(x, spread, strict=True))
    return x if axes is None else x[(slice(None),) * (axes % x.ndim) + (at,)]


def vmap(fn, in_axes=0, out_axes=0):
    """fn of each part of the inputs along in_axes (None: the whole), the results along out_axes."""

    def mapped(*inputs):
        axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(inputs)
        counts = set(_counts(inputs, axes))
        if len(counts) != 1:
            raise ValueError(f"vmap: the inputs have {sorted(counts)} parts along in_axes {in_axes}")
        with _compiled.marked():
            made = [fn(*_part(inputs, axes, at)) for at in range(counts.pop())]
        if not isinstance(made[0], tuple):
            return ops.stack(made, out_axes)
        ends = out_axes if isinstance(out_axes, (tuple, list)) else (out_axes,) * len(made[0])
        return tuple(
            ops.stack(column, end) for column, end in zip(zip(*made, strict=True), ends, strict=True)
        )

    return mapped


def get_grad(gradients, identifier):
    """Of a gradient given with its place (or of a tuple of those) that of one place."""
    for place, gradient in gradients if isinstance(gradients[0], tuple) else (gradients,):
        if place == identifier:
            return gradient
    raise RuntimeError(f"get_grad: there is no gradient of {identifier!r}")


__all__ = ["get_grad", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]
