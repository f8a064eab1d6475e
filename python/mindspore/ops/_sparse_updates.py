"""mindspore.ops: the steps of optimizers for some rows of their parameters, as classes."""

import muster
from mindspore.ops._primitive import of_row
from muster import ops

_made = {}


def _class(name, function, **settings):
    """`function` takes the inputs, then the settings by name."""
    _made[name] = of_row(name, settings, function)


def _spread(like, grad, indices):
    """The gradient of the whole parameter, and which rows have one; rows named more than once are added."""
    places = ops.reshape(indices, (-1, 1))
    whole = ops.scatter_nd_update(ops.zeros(like.shape, like.dtype), places, grad, "add")
    wide = (like.shape[0],) + (1,) * (like.ndim - 1)
    ones = ops.ones((places.shape[0], *wide[1:]), like.dtype)
    touched = ops.scatter_nd_update(ops.zeros(wide, like.dtype), places, ones, "update")
    return whole, ops.broadcast_to(ops.greater(touched, 0), like.shape)


def _row_by_row(step):
    """A step for each row: MindSpore's steps that are not fused take a row that is named twice two times."""

    def compute(*inputs, **settings):
        *others, grad, indices = inputs
        for at in range(grad.shape[0]):
            made = step(*others, grad[at : at + 1], indices[at : at + 1], **settings)
        return made

    return compute


def _written(parameters, values, touched=None):
    """The parameters with the values, in the rows that are touched."""
    made = []
    for parameter, value in zip(parameters, values, strict=True):
        value = value if touched is None else ops.select(touched, value, parameter)
        made.append(ops.assign(parameter, ops.cast(value, parameter.dtype)))
    return tuple(made)


# ---- Values after a step -----------------------------------------------------------------------------------


def _ftrl(var, accum, linear, grad, lr, l1, l2, lr_power, shrinkage=0.0):
    moved = ops.add(accum, ops.square(grad))
    grad = ops.add(grad, ops.mul(var, 2 * shrinkage)) if shrinkage else grad
    old, new = ops.pow(accum, -lr_power), ops.pow(moved, -lr_power)
    linear = ops.sub(ops.add(linear, grad), ops.mul(ops.div(ops.sub(new, old), lr), var))
    size = ops.add(ops.div(new, lr), 2 * l2)
    away = ops.div(ops.sub(ops.mul(ops.sign(linear), l1), linear), size)
    return ops.select(ops.greater(ops.abs(linear), l1), away, ops.zeros_like(var)), moved, linear


def _proximal_adagrad(var, accum, lr, l1, l2, grad):
    moved = ops.add(accum, ops.square(grad))
    rate = ops.mul(ops.rsqrt(moved), lr)
    near = ops.sub(var, ops.mul(grad, rate))
    left = ops.maximum(ops.sub(ops.abs(near), ops.mul(rate, l1)), 0.0)
    return ops.div(ops.mul(ops.sign(near), left), ops.add(ops.mul(rate, l2), 1.0)), moved


def _adagrad(var, accum, grad, lr, epsilon, update_slots):
    moved = ops.add(accum, ops.square(grad)) if update_slots else accum
    return ops.sub(var, ops.div(ops.mul(grad, lr), ops.add(ops.sqrt(moved), epsilon))), moved


def _adadelta(var, accum, updates, lr, rho, grad, epsilon):
    moved = ops.add(ops.mul(accum, rho), ops.mul(ops.square(grad), ops.sub(1.0, rho)))
    step = ops.mul(ops.div(ops.sqrt(ops.add(updates, epsilon)), ops.sqrt(ops.add(moved, epsilon))), grad)
    updates = ops.add(ops.mul(updates, rho), ops.mul(ops.square(step), ops.sub(1.0, rho)))
    return ops.sub(var, ops.mul(step, lr)), moved, updates


def _rms_prop(var, squares, moment, lr, grad, rho, momentum, epsilon):
    squares = ops.add(ops.mul(squares, rho), ops.mul(ops.square(grad), 1 - rho))
    step = ops.div(ops.mul(grad, lr), ops.sqrt(ops.add(squares, epsilon)))
    moment = ops.add(ops.mul(moment, momentum), step)
    return ops.sub(var, moment), squares, moment


def _adam(var, m, v, powers, lr, betas, epsilon, grad, use_nesterov):
    rate = ops.div(ops.mul(lr, ops.sqrt(ops.sub(1.0, powers[1]))), ops.sub(1.0, powers[0]))
    first = ops.add(ops.mul(m, betas[0]), ops.mul(grad, ops.sub(1.0, betas[0])))
    second = ops.add(ops.mul(v, betas[1]), ops.mul(ops.square(grad), ops.sub(1.0, betas[1])))
    ahead = first
    if use_nesterov:
        ahead = ops.add(ops.mul(first, betas[0]), ops.mul(grad, ops.sub(1.0, betas[0])))
    away = ops.div(ops.mul(ahead, rate), ops.add(ops.sqrt(second), epsilon))
    return away, first, second


# ---- Classes -----------------------------------------------------------------------------------------------


def _sparse_ftrl(var, accum, linear, grad, indices, lr, l1, l2, lr_power, use_locking, l2_shrinkage=0.0):
    grad, touched = _spread(var, grad, indices)
    values = _ftrl(var, accum, linear, grad, lr, l1, l2, lr_power, l2_shrinkage)
    return _written((var, accum, linear), values, touched)


def _sparse_proximal_adagrad(var, accum, lr, l1, l2, grad, indices, use_locking):
    grad, touched = _spread(var, grad, indices)
    return _written((var, accum), _proximal_adagrad(var, accum, lr, l1, l2, grad), touched)


def _sparse_adagrad(var, accum, grad, indices, lr, update_slots, use_locking, epsilon=0.0):
    grad, touched = _spread(var, grad, indices)
    return _written((var, accum), _adagrad(var, accum, grad, lr, epsilon, update_slots), touched)


def _sparse_adadelta(var, accum, accum_update, lr, rho, grad, indices, epsilon, use_locking):
    grad, touched = _spread(var, grad, indices)
    values = _adadelta(var, accum, accum_update, lr, rho, grad, epsilon)
    return _written((var, accum, accum_update), values, touched)


def _sparse_rms_prop(var, ms, mom, lr, grad, indices, rho, momentum, epsilon, use_locking):
    grad, touched = _spread(var, grad, indices)
    return _written((var, ms, mom), _rms_prop(var, ms, mom, lr, grad, rho, momentum, epsilon), touched)


def _sparse_adam(is_lazy):
    """Of rows without a gradient a lazy step leaves the moments."""

    def compute(
        var, m, v, power1, power2, lr, beta1, beta2, epsilon, grad, indices, use_locking, use_nesterov
    ):
        grad, touched = _spread(var, grad, indices)
        away, m_now, v_now = _adam(
            var, m, v, (power1, power2), lr, (beta1, beta2), epsilon, grad, use_nesterov
        )
        return _written((var, m, v), (ops.sub(var, away), m_now, v_now), touched if is_lazy else None)

    return compute


_FTRL = {"lr": ..., "l1": ..., "l2": ...}
_class("FusedSparseFtrl", _sparse_ftrl, **_FTRL, lr_power=..., use_locking=False)
_class("SparseApplyFtrl", _row_by_row(_sparse_ftrl), **_FTRL, lr_power=..., use_locking=False)
_class(
    "SparseApplyFtrlV2",
    _row_by_row(_sparse_ftrl),
    **_FTRL,
    l2_shrinkage=...,
    lr_power=...,
    use_locking=False,
)
for _name in ("FusedSparseProximalAdagrad", "SparseApplyProximalAdagrad"):
    _class(_name, _sparse_proximal_adagrad, use_locking=False)
_class("SparseApplyAdagrad", _sparse_adagrad, lr=..., update_slots=True, use_locking=False)
_class(
    "SparseApplyAdagradV2",
    _row_by_row(_sparse_adagrad),
    lr=...,
    epsilon=...,
    use_locking=False,
    update_slots=True,
)
_class("SparseApplyAdadelta", _row_by_row(_sparse_adadelta), epsilon=..., use_locking=False)
_class(
    "SparseApplyRMSProp", _row_by_row(_sparse_rms_prop), rho=..., momentum=..., epsilon=..., use_locking=False
)
_class("FusedSparseAdam", _sparse_adam(False), use_locking=False, use_nesterov=False)
_class("FusedSparseLazyAdam", _sparse_adam(True), use_locking=False, use_nesterov=False)


def _dual_averages(var, accum, squares, grad, lr, l1, l2, global_step):
    """The sum of all gradients takes the place of the last one."""
    accum_now, squares_now = ops.add(accum, grad), ops.add(squares, ops.square(grad))
    step = ops.cast(global_step, var.dtype) if isinstance(global_step, muster.Tensor) else global_step
    left = ops.sub(ops.abs(accum_now), ops.mul(l1, step))
    left = ops.mul(ops.sign(accum_now), ops.maximum(left, 0.0))
    size = ops.add(ops.mul(ops.mul(l2, step), lr), ops.sqrt(squares_now))
    return ops.neg(ops.div(ops.mul(left, lr), size)), accum_now, squares_now


def _adagrad_da(var, accum, squares, grad, lr, l1, l2, global_step, use_locking):
    values = _dual_averages(var, accum, squares, grad, lr, l1, l2, global_step)
    return _written((var, accum, squares), values)[0]


def _sparse_adagrad_da(var, accum, squares, grad, indices, lr, l1, l2, global_step, use_locking):
    grad, touched = _spread(var, grad, indices)
    values = _dual_averages(var, accum, squares, grad, lr, l1, l2, global_step)
    return _written((var, accum, squares), values, touched)[0]


@_row_by_row
def _momentum_rows(var, accum, lr, momentum, grad, indices):
    grad, touched = _spread(var, grad, indices)
    moved = ops.add(ops.mul(accum, momentum), grad)
    return _written((var, accum), (ops.sub(var, ops.mul(moved, lr)), moved), touched)[0]


def _sparse_momentum(var, accum, lr, grad, indices, momentum, use_locking, use_nesterov):
    """With use_nesterov MindSpore's kernel makes the same step: gradient, and moment by momentum."""
    return _momentum_rows(var, accum, lr, momentum, grad, indices)


def _sparse_proximal(var, alpha, l1, l2, grad, indices, use_locking):
    grad, touched = _spread(var, grad, indices)
    near = ops.sub(var, ops.mul(grad, alpha))
    left = ops.maximum(ops.sub(ops.abs(near), ops.mul(alpha, l1)), 0.0)
    value = ops.div(ops.mul(ops.sign(near), left), ops.add(ops.mul(alpha, l2), 1.0))
    return _written((var,), (value,), touched)[0]


@_row_by_row
def _sparse_centered_rms_prop(
    var, mean, squares, moment, lr, rho, momentum, epsilon, grad, indices, use_locking
):
    grad, touched = _spread(var, grad, indices)
    rest = ops.sub(1.0, rho)
    squares_now = ops.add(ops.mul(squares, rho), ops.mul(ops.square(grad), rest))
    mean_now = ops.add(ops.mul(mean, rho), ops.mul(grad, rest))
    size = ops.sqrt(ops.add(ops.sub(squares_now, ops.square(mean_now)), epsilon))
    moment_now = ops.add(ops.mul(moment, momentum), ops.div(ops.mul(grad, lr), size))
    values = ops.sub(var, moment_now), mean_now, squares_now, moment_now
    return _written((var, mean, squares, moment), values, touched)[0]


def _amsgrad(var, m, v, vhat, power1, power2, lr, beta1, beta2, epsilon, grad, use_locking):
    """Adam's step with the greatest second moment so far."""
    rate = ops.div(ops.mul(lr, ops.sqrt(ops.sub(1.0, power2))), ops.sub(1.0, power1))
    _, first, second = _adam(var, m, v, (power1, power2), lr, (beta1, beta2), epsilon, grad, False)
    greatest = ops.maximum(vhat, second)
    value = ops.sub(var, ops.div(ops.mul(first, rate), ops.add(ops.sqrt(greatest), epsilon)))
    return _written((var, m, v, vhat), (value, first, second, greatest))


def _adam_step(m, v, power1, power2, lr, beta1, beta2, epsilon, gradient, use_locking, use_nesterov):
    """What Adam's step adds to a parameter."""
    away, first, second = _adam(
        None, m, v, (power1, power2), lr, (beta1, beta2), epsilon, gradient, use_nesterov
    )
    _written((m, v), (first, second))
    return ops.neg(away)


_class("ApplyAdagradDA", _adagrad_da, use_locking=False)
_class("SparseApplyAdagradDA", _sparse_adagrad_da, use_locking=False)
_class("SparseApplyCenteredRMSProp", _sparse_centered_rms_prop, use_locking=False)
_class("SparseApplyMomentum", _sparse_momentum, use_locking=False, use_nesterov=False)
_class("SparseApplyProximalGradientDescent", _sparse_proximal, use_locking=False)
_class("ApplyAdamWithAmsgradV2", _amsgrad, use_locking=False)
_class("AdamNoUpdateParam", _adam_step, use_locking=False, use_nesterov=False)

globals().update(_made)
__all__ = sorted(_made)
