"""mindspore.ops: derivatives of any order along a curve, jet and derivative."""

import math

import muster
from muster import ops

_DTYPES = (muster.int32, muster.int64, muster.float32, muster.float64)


def _rate(curve):
    """The derivative of a tensor that follows a number, as another such function.

    A gradient is linear in the flow that it pulls back, so the gradient by the flow is the derivative.
    """

    def rate(time):
        def pulled(flow):
            return muster.value_and_grad(lambda t: ops.reduce_sum(ops.mul(curve(t), flow)), 0)(time)[1]

        return muster.value_and_grad(pulled, 0)(ops.ones_like(curve(time)))[1]

    return rate


def _floating(call, name, value):
    if not isinstance(value, muster.Tensor) or value.dtype not in _DTYPES:
        what = value.dtype if isinstance(value, muster.Tensor) else type(value).__name__
        raise TypeError(f"{call}: {name} are of int32, int64, float32 or float64, not {what}")
    return value.astype(muster.float32) if value.dtype in _DTYPES[:2] else value


def _along(fn, primals, series, orders):
    """(the results, of each its derivatives of these orders): lists where fn gives several."""

    def moved(time):
        inputs = []
        for primal, steps in zip(primals, series, strict=True):
            at = primal
            for order, step in enumerate(steps, 1):
                at = at + step * (time.astype(primal.dtype) ** order / math.factorial(order))
            inputs.append(at)
        return fn(*inputs)

    start = ops.zeros((), dtype=primals[0].dtype)
    results = fn(*primals)
    several = isinstance(results, (tuple, list)) and len(results) > 1
    derivatives = []
    for at in range(len(results) if isinstance(results, (tuple, list)) else 1):

        def curve(time, at=at):
            made = moved(time)
            return made[at] if isinstance(made, (tuple, list)) else made

        found = []
        for order in range(1, max(orders) + 1):
            curve = _rate(curve)
            if order in orders:
                found.append(curve(start))
        derivatives.append(found)
    return (list(results), derivatives) if several else (results, derivatives[0])


def jet(fn, primals, series):
    """The results of fn, and their derivatives of each order along a curve through the inputs.

    Args:
        fn: A cell or function of tensors that gives a tensor, or several.
        primals: A tensor, or a tuple of them: the inputs. Whole numbers become float32.
        series: Of each input the derivatives of the curve, (order, *shape) of the input.

    Returns:
        (results, derivatives): a tensor and one of (order, *shape), or lists of them.
    """
    call = "mindspore.ops.jet"
    are_tensors = isinstance(primals, muster.Tensor) and isinstance(series, muster.Tensor)
    if not are_tensors and not (isinstance(primals, tuple) and isinstance(series, tuple)):
        raise TypeError(f"{call}: primals and series are both a Tensor, or both a tuple of Tensors")
    if are_tensors:
        series = series if series.shape != primals.shape else series[None]
        primals, series = (primals,), (series,)
    if len(primals) != len(series):
        raise ValueError(f"{call}: there are {len(primals)} primals and {len(series)} series")
    for primal, steps in zip(primals, series, strict=True):
        _floating(call, "primals and series", primal)
        _floating(call, "primals and series", steps)
        if primal.dtype != steps.dtype:
            raise TypeError(f"{call}: a primal of {primal.dtype} has a series of {steps.dtype}")
        if steps.shape[1:] != primal.shape or steps.shape[0] != series[0].shape[0]:
            raise ValueError(
                f"{call}: the series of a primal {primal.shape} is {steps.shape}: (order, *shape) is needed"
            )
    orders = range(1, series[0].shape[0] + 1)
    primals = tuple(_floating(call, "primals", each) for each in primals)
    steps = [[_floating(call, "series", each)[at] for at in range(len(orders))] for each in series]
    results, derivatives = _along(fn, primals, steps, orders)
    if isinstance(results, list):
        return results, [ops.stack(each, 0) for each in derivatives]
    return results, ops.stack(derivatives, 0)


def derivative(fn, primals, order):
    """The results of fn, and their derivatives of one order, where all elements of inputs move at rate 1.

    Args:
        fn: A cell or function of tensors that gives a tensor, or several.
        primals: A tensor, or a tuple of them: the inputs. Whole numbers become float32.
        order: 1 or more.

    Returns:
        (results, derivatives), each a tensor or a list of them.
    """
    call = "mindspore.ops.derivative"
    if not isinstance(order, int) or isinstance(order, bool):
        raise TypeError(f"{call}: order is a whole number, not {order!r}")
    if order < 1:
        raise ValueError(f"{call}: order is {order}; it must be at least 1")
    primals = primals if isinstance(primals, tuple) else (primals,)
    primals = tuple(_floating(call, "primals", each) for each in primals)
    steps = [[ops.ones_like(each)] for each in primals]
    results, derivatives = _along(fn, primals, steps, (order,))
    if isinstance(results, list):
        return results, [each[0] for each in derivatives]
    return results, derivatives[0]


__all__ = ["derivative", "jet"]
