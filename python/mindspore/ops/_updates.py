"""mindspore.ops: the steps of optimizers as classes, which write into parameters."""

from mindspore.ops._primitive import of_row
from muster import ops

_made = {}


def _step(name, **settings):
    """The class `name` of a function that takes the parameters and what the step needs, then the settings."""

    def keep(function):
        _made[name] = of_row(name, settings, function)
        return function

    return keep


def _sign(x):
    return ops.sign(x)


def _momentum(velocity, gradient, rate, momentum, nesterov):
    """The new velocity, and what is taken from the variable."""
    moved = ops.add(ops.mul(velocity, momentum), gradient)
    return moved, ops.mul(ops.add(gradient, ops.mul(moved, momentum)) if nesterov else moved, rate)


@_step("ApplyMomentum", use_nesterov=False, use_locking=False, gradient_scale=1.0)
def apply_momentum(
    variable, accumulation, learning_rate, gradient, momentum, use_nesterov, use_locking, gradient_scale
):
    """velocity = momentum velocity + gradient; variable -= learning_rate velocity."""
    gradient = ops.mul(gradient, gradient_scale) if gradient_scale != 1.0 else gradient
    moved, away = _momentum(accumulation, gradient, learning_rate, momentum, use_nesterov)
    ops.assign(accumulation, moved)
    return ops.assign(variable, ops.sub(variable, away))


@_step("ApplyKerasMomentum", use_locking=False, use_nesterov=False)
def apply_keras_momentum(var, accum, lr, grad, momentum, use_locking, use_nesterov):
    """accum = momentum accum - lr grad; var += accum."""
    moved = ops.sub(ops.mul(accum, momentum), ops.mul(grad, lr))
    away = ops.sub(ops.mul(moved, momentum), ops.mul(grad, lr)) if use_nesterov else moved
    return ops.assign(var, ops.add(var, away)), ops.assign(accum, moved)


@_step("SGD", dampening=0.0, weight_decay=0.0, nesterov=False)
def sgd(parameters, gradient, learning_rate, accum, momentum, stat, dampening, weight_decay, nesterov):
    """Stochastic gradient descent; `stat` is above 0 before the first step."""
    gradient = ops.add(gradient, ops.mul(parameters, weight_decay)) if weight_decay else gradient
    usual = ops.add(ops.mul(accum, momentum), ops.mul(gradient, 1 - dampening))
    moved = ops.select(ops.greater(stat, 0), gradient, usual)
    away = ops.add(gradient, ops.mul(moved, momentum)) if nesterov else moved
    ops.assign(accum, moved)
    ops.assign(stat, ops.zeros_like(stat))
    return ops.assign(parameters, ops.sub(parameters, ops.mul(away, learning_rate)))


def _mean(old, new, beta):
    return ops.add(ops.mul(old, beta), ops.mul(new, ops.sub(1.0, beta)))


@_step("Adam", use_locking=False, use_nesterov=False)
def adam(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient, use_locking, use_nesterov):
    """Adam's step (Kingma and Ba, ICLR 2015)."""
    rate = ops.div(ops.mul(lr, ops.sqrt(ops.sub(1.0, beta2_power))), ops.sub(1.0, beta1_power))
    first, second = _mean(m, gradient, beta1), _mean(v, ops.square(gradient), beta2)
    ahead = _mean(first, gradient, beta1) if use_nesterov else first
    made = ops.sub(var, ops.div(ops.mul(ahead, rate), ops.add(ops.sqrt(second), epsilon)))
    return ops.assign(var, made), ops.assign(m, first), ops.assign(v, second)


@_step("AdamWeightDecay", use_locking=False)
def adam_weight_decay(var, m, v, lr, beta1, beta2, epsilon, decay, gradient, use_locking):
    """Adam's step without its corrections, and with weight decay beside it."""
    first, second = _mean(m, gradient, beta1), _mean(v, ops.square(gradient), beta2)
    away = ops.add(ops.div(first, ops.add(ops.sqrt(second), epsilon)), ops.mul(var, decay))
    return ops.assign(var, ops.sub(var, ops.mul(away, lr))), ops.assign(m, first), ops.assign(v, second)


@_step("ApplyAdamWithAmsgrad", beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False)
def adam_with_amsgrad(
    var, m, v, vhat, beta1_power, beta2_power, lr, grad, beta1, beta2, epsilon, use_locking
):
    """Adam's step with the greatest second moment so far."""
    rate = ops.div(ops.mul(lr, ops.sqrt(ops.sub(1.0, beta2_power))), ops.sub(1.0, beta1_power))
    first, second = _mean(m, grad, beta1), _mean(v, ops.square(grad), beta2)
    greatest = ops.maximum(vhat, second)
    made = ops.sub(var, ops.div(ops.mul(first, rate), ops.add(ops.sqrt(greatest), epsilon)))
    return ops.assign(var, made), ops.assign(m, first), ops.assign(v, second), ops.assign(vhat, greatest)


@_step("ApplyAdaMax")
def ada_max(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad):
    """Adam's step with the greatest gradient instead of the second moment."""
    first = _mean(m, grad, beta1)
    greatest = ops.maximum(ops.mul(v, beta2), ops.abs(grad))
    rate = ops.div(lr, ops.sub(1.0, beta1_power))
    made = ops.sub(var, ops.div(ops.mul(first, rate), ops.add(greatest, epsilon)))
    return ops.assign(var, made), ops.assign(m, first), ops.assign(v, greatest)


@_step("ApplyAdagrad", update_slots=True)
def adagrad(var, accum, lr, grad, update_slots):
    """accum += grad^2; var -= lr grad / sqrt(accum)."""
    total = ops.add(accum, ops.square(grad)) if update_slots else accum
    made = ops.sub(var, ops.mul(ops.mul(grad, lr), ops.rsqrt(total)))
    return ops.assign(var, made), ops.assign(accum, total) if update_slots else accum


@_step("ApplyAdagradV2", epsilon=..., update_slots=True)
def adagrad_v2(var, accum, lr, grad, epsilon, update_slots):
    """accum += grad^2; var -= lr grad / (sqrt(accum) + epsilon)."""
    total = ops.add(accum, ops.square(grad)) if update_slots else accum
    made = ops.sub(var, ops.div(ops.mul(grad, lr), ops.add(ops.sqrt(total), epsilon)))
    return ops.assign(var, made), ops.assign(accum, total) if update_slots else accum


@_step("ApplyAdadelta")
def adadelta(var, accum, accum_update, lr, rho, epsilon, grad):
    """Adadelta's step (Zeiler, 2012)."""
    total = _mean(accum, ops.square(grad), rho)
    away = ops.mul(ops.sqrt(ops.div(ops.add(accum_update, epsilon), ops.add(total, epsilon))), grad)
    updates = _mean(accum_update, ops.square(away), rho)
    made = ops.sub(var, ops.mul(away, lr))
    return ops.assign(var, made), ops.assign(accum, total), ops.assign(accum_update, updates)


@_step("ApplyRMSProp", use_locking=False)
def rms_prop(var, mean_square, moment, learning_rate, grad, decay, momentum, epsilon, use_locking):
    """RMSProp's step."""
    squares = _mean(mean_square, ops.square(grad), decay)
    away = ops.mul(ops.mul(grad, learning_rate), ops.rsqrt(ops.add(squares, epsilon)))
    moved = ops.add(ops.mul(moment, momentum), away)
    ops.assign(mean_square, squares)
    ops.assign(moment, moved)
    return ops.assign(var, ops.sub(var, moved))


@_step("ApplyCenteredRMSProp", use_locking=False)
def centered_rms_prop(
    var, mean_gradient, mean_square, moment, grad, learning_rate, decay, momentum, epsilon, use_locking
):
    """RMSProp's step by the variance instead of the square."""
    mean, squares = _mean(mean_gradient, grad, decay), _mean(mean_square, ops.square(grad), decay)
    size = ops.add(ops.sub(squares, ops.square(mean)), epsilon)
    moved = ops.add(ops.mul(moment, momentum), ops.mul(ops.mul(grad, learning_rate), ops.rsqrt(size)))
    ops.assign(mean_gradient, mean)
    ops.assign(mean_square, squares)
    ops.assign(moment, moved)
    return ops.assign(var, ops.sub(var, moved))


@_step("ApplyGradientDescent")
def gradient_descent(var, alpha, delta):
    """var -= alpha delta."""
    return ops.assign(var, ops.sub(var, ops.mul(delta, alpha)))


def _proximal(moved, rate, l1, l2):
    """Towards 0 by l1, and over 1 + l2, both times the rate."""
    size = ops.maximum(ops.sub(ops.abs(moved), ops.mul(rate, l1)), 0.0)
    return ops.div(ops.mul(_sign(moved), size), ops.add(ops.mul(rate, l2), 1.0))


@_step("ApplyProximalGradientDescent")
def proximal_gradient_descent(var, alpha, l1, l2, delta):
    """Gradient descent with l1 and l2 penalties."""
    return ops.assign(var, _proximal(ops.sub(var, ops.mul(delta, alpha)), alpha, l1, l2))


@_step("ApplyProximalAdagrad", use_locking=False)
def proximal_adagrad(var, accum, lr, l1, l2, grad, use_locking):
    """Adagrad's step with l1 and l2 penalties."""
    total = ops.add(accum, ops.square(grad))
    rate = ops.mul(ops.rsqrt(total), lr)
    made = _proximal(ops.sub(var, ops.mul(grad, rate)), rate, l1, l2)
    return ops.assign(var, made), ops.assign(accum, total)


@_step("ApplyAddSign")
def add_sign(var, m, lr, alpha, sign_decay, beta, grad):
    """AddSign's step: larger where gradient and its mean agree."""
    mean = _mean(m, grad, beta)
    factor = ops.add(ops.mul(ops.mul(_sign(grad), _sign(mean)), sign_decay), alpha)
    return ops.assign(var, ops.sub(var, ops.mul(ops.mul(grad, factor), lr))), ops.assign(m, mean)


@_step("ApplyPowerSign")
def power_sign(var, m, lr, logbase, sign_decay, beta, grad):
    """PowerSign's step: larger where gradient and its mean agree."""
    mean = _mean(m, grad, beta)
    factor = ops.exp(ops.mul(ops.mul(_sign(grad), _sign(mean)), ops.mul(logbase, sign_decay)))
    return ops.assign(var, ops.sub(var, ops.mul(ops.mul(grad, factor), lr))), ops.assign(m, mean)


@_step("ApplyFtrl", use_locking=False)
def ftrl(var, accum, linear, grad, lr, l1, l2, lr_power, use_locking):
    """FTRL's step (McMahan et al., KDD 2013)."""
    total = ops.add(accum, ops.square(grad))
    new, old = (ops.pow(each, ops.mul(lr_power, -1.0)) for each in (total, accum))
    line = ops.sub(ops.add(linear, grad), ops.mul(ops.div(ops.sub(new, old), lr), var))
    size = ops.add(ops.div(new, lr), ops.mul(l2, 2.0))
    made = ops.div(ops.sub(ops.mul(_sign(line), l1), line), size)
    made = ops.select(ops.greater(ops.abs(line), l1), made, ops.zeros_like(made))
    ops.assign(accum, total)
    ops.assign(linear, line)
    return ops.assign(var, made)


globals().update(_made)
__all__ = sorted(_made)
