"""mindspore.nn: optimizers that are made of ops, where those of muster.nn are rows."""

from mindspore import _optimizers
from mindspore.common.parameter import ParameterTuple
from mindspore.ops import _updates
from muster import Parameter, Tensor, float32, ops
from muster.nn import Adam, Optimizer


def _check(name, condition, wanted, value):
    if not condition:
        raise ValueError(f"{name} is {wanted}, not {value!r}")


def _beta(of, **shares):
    for name, value in shares.items():
        _check(f"{of}: {name}", 0 < value < 1, "a number between 0 and 1", value)


def _from_zero(of, **numbers):
    for name, value in numbers.items():
        _check(f"{of}: {name}", value >= 0, "a number from 0", value)


class _ByParameter(Optimizer):
    """A step of each parameter after another: a subclass defines `update`."""

    def __init__(self, params, learning_rate, weight_decay, loss_scale=1.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)

    def construct(self, gradients):
        _optimizers.refuse_served(self)
        gradients = self._scaled(gradients)
        rates = self.get_lr()
        step = ops.cast(ops.reshape(self.global_step, ()), float32) + 1.0
        for at, (parameter, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            rate = rates[at] if isinstance(rates, tuple | list) else rates
            self.update(parameter, gradient, rate, at, step)
        self.count_step()
        return True

    def _scaled(self, gradients):
        return self.scale_grad(self.gradients_centralization(self.decay_weight(gradients)))

    def update(self, parameter, gradient, rate, at, step):
        """Moves `parameter`, the one at place `at`; `step` counts from 1."""
        raise NotImplementedError(f"{type(self).__name__} defines no update()")


class Adadelta(_ByParameter):
    """Adagrad with fading sums, whose steps have the size of those before.

    Args:
        params: Parameters, or groups of them (see Optimizer).
        learning_rate: A number, a list with the rate of each step, or a LearningRateSchedule.
        rho: How much of both means each step keeps.
        epsilon: What is added to both.
        loss_scale: What gradients are divided by.
        weight_decay: How much of the parameter the gradient gets.
    """

    def __init__(self, params, learning_rate=1.0, rho=0.9, epsilon=1e-6, loss_scale=1.0, weight_decay=0.0):
        super().__init__(params, learning_rate, weight_decay, loss_scale)
        _optimizers.require_floats("Adadelta", rho=rho, epsilon=epsilon)
        _check("Adadelta: rho", 0 <= rho <= 1, "a number from 0 to 1", rho)
        _from_zero("Adadelta", epsilon=epsilon)
        self.rho, self.epsilon = rho, epsilon
        self.accum = self.parameters.clone(prefix="accum", init=0)
        self.accum_update = self.parameters.clone(prefix="accum_update", init=0)

    def update(self, parameter, gradient, rate, at, step):
        states = self.accum[at], self.accum_update[at]
        _updates.adadelta(parameter, *states, rate, self.rho, self.epsilon, gradient)


class AdaMax(_ByParameter):
    """Adam by the greatest gradient so far, which fades, instead of a root.

    Args:
        params: Parameters, or groups of them (see Optimizer).
        learning_rate: A number, a list with the rate of each step, or a LearningRateSchedule.
        beta1: How much of the mean each step keeps.
        beta2: How much of the greatest each step keeps.
        eps: What is added to the greatest.
        weight_decay: How much of the parameter the gradient gets.
        loss_scale: What gradients are divided by.
    """

    def __init__(
        self,
        params,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        eps=1e-08,
        weight_decay=0.0,
        loss_scale=1.0,
    ):
        super().__init__(params, learning_rate, weight_decay, loss_scale)
        _optimizers.require_floats("AdaMax", beta1=beta1, beta2=beta2, eps=eps)
        _beta("AdaMax", beta1=beta1, beta2=beta2)
        _check("AdaMax: eps", eps > 0, "a number above 0", eps)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.moment1 = self.parameters.clone(prefix="moment1", init="zeros")
        self.moment2 = self.parameters.clone(prefix="moment2", init="zeros")

    def update(self, parameter, gradient, rate, at, step):
        left = ops.pow(self.beta1, step)
        states = self.moment1[at], self.moment2[at]
        _updates.ada_max(parameter, *states, left, rate, self.beta1, self.beta2, self.eps, gradient)


class ProximalAdagrad(_ByParameter):
    """Adagrad with l1 and l2 penalties.

    Args:
        params: Parameters, or groups of them (see Optimizer).
        accum: What the sums of squares begin with.
        learning_rate: A number, a list with the rate of each step, or a LearningRateSchedule.
        l1: How far each step goes towards 0.
        l2: How much each step makes smaller.
        use_locking: Changes nothing.
        loss_scale: What gradients are divided by.
        weight_decay: How much of the parameter the gradient gets.
    """

    def __init__(
        self,
        params,
        accum=0.1,
        learning_rate=0.001,
        l1=0.0,
        l2=0.0,
        use_locking=False,
        loss_scale=1.0,
        weight_decay=0.0,
    ):
        super().__init__(params, learning_rate, weight_decay, loss_scale)
        _optimizers.require_floats("ProximalAdagrad", accum=accum, l1=l1, l2=l2)
        _from_zero("ProximalAdagrad", accum=accum, l1=l1, l2=l2)
        self.l1, self.l2, self.use_locking = l1, l2, use_locking
        self.accum = self.parameters.clone(prefix="accum", init=accum)

    def update(self, parameter, gradient, rate, at, step):
        _updates.proximal_adagrad(
            parameter, self.accum[at], rate, self.l1, self.l2, gradient, self.use_locking
        )


class LazyAdam(Adam):
    """Adam. MindSpore's moves only the rows that a sparse gradient has; gradients are never sparse here.

    Args:
        params: Parameters, or groups of them (see Optimizer).
        learning_rate: A number, a list with the rate of each step, or a LearningRateSchedule.
        beta1: How much of the mean each step keeps.
        beta2: How much of the mean of squares each step keeps.
        eps: What is added to the root.
        use_locking: Changes nothing.
        use_nesterov: Whether the mean is that of the next step.
        weight_decay: How much of the parameter the gradient gets.
        loss_scale: What gradients are divided by.
    """

    def __init__(
        self,
        params,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        eps=1e-08,
        use_locking=False,
        use_nesterov=False,
        weight_decay=0.0,
        loss_scale=1.0,
    ):
        super().__init__(
            params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale
        )


class AdamOffload(LazyAdam):
    """Adam. MindSpore's computes on the host what an accelerator trains; here all is on the host."""


def _numbers(prefix, parameters, value):
    """A state of one number for each parameter."""
    return ParameterTuple(
        Parameter(Tensor(value, float32), name=f"{prefix}{each.name}", requires_grad=False)
        for each in parameters
    )


class ASGD(_ByParameter):
    """Averaged stochastic gradient descent: `ax` are the means of the parameters since step t0.

    Args:
        params: Parameters, or groups of them (see Optimizer).
        learning_rate: A number, a list with the rate of each step, or a LearningRateSchedule.
        lambd: How much of the parameter, times the rate, each step takes away.
        alpha: The power with which the rate falls.
        t0: The step after which the mean begins.
        weight_decay: How much of the parameter the gradient gets.
    """

    def __init__(self, params, learning_rate=0.1, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0):
        super().__init__(params, learning_rate, weight_decay)
        for name, value in {"lambd": lambd, "alpha": alpha, "t0": t0}.items():
            if type(value) is not float:
                raise TypeError(f"ASGD: {name} is a float, not {value!r}")
        self.lambd, self.alpha, self.t0 = lambd, alpha, t0
        self.mu = _numbers("mu_", self.parameters, 1.0)
        self.eta = _numbers("eta_", self.parameters, 0.0)
        self.ax = self.parameters.clone(prefix="ax_", init="zeros")

    def update(self, parameter, gradient, rate, at, step):
        mean, share = self.ax[at], self.mu[at]
        rate = ops.cast(ops.reshape(rate, ()), float32)
        now = ops.select(ops.equal(step, 1.0), rate, self.eta[at])
        moved = ops.sub(ops.mul(parameter, 1.0 - self.lambd * now), ops.mul(gradient, now))
        averaged = ops.add(mean, ops.mul(ops.sub(moved, mean), share))
        ops.assign(mean, ops.select(ops.equal(share, 1.0), moved, averaged))
        ops.assign(parameter, moved)
        ops.assign(self.eta[at], ops.div(rate, ops.pow(1.0 + self.lambd * rate * step, self.alpha)))
        ops.assign(share, ops.div(1.0, ops.maximum(step - self.t0, 1.0)))


class Rprop(_ByParameter):
    """Resilient backpropagation: a step size for each element, by whether its gradient keeps its sign.

    Args:
        params: Parameters, or groups of them (see Optimizer).
        learning_rate: The first step size: a number, a list or a LearningRateSchedule.
        etas: What the step size is multiplied with where the sign turned, and where it is kept.
        step_sizes: The least and the greatest step size.
        weight_decay: How much of the parameter the gradient gets.
    """

    def __init__(self, params, learning_rate=0.1, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0), weight_decay=0.0):
        super().__init__(params, learning_rate, weight_decay)
        for name, pair in {"etas": etas, "step_sizes": step_sizes}.items():
            if not isinstance(pair, tuple):
                raise TypeError(f"Rprop: {name} is a tuple, not {pair!r}")
            _check(f"Rprop: {name}", len(pair) == 2, "two numbers", pair)
        _check("Rprop: etas", 0 < etas[0] < 1 < etas[1], "a number below 1 and one above", etas)
        _check("Rprop: step_sizes", step_sizes[0] <= step_sizes[1], "the least and the greatest", step_sizes)
        self.etaminus, self.etaplus = etas
        self.step_size_min, self.step_size_max = step_sizes
        self.prev = self.parameters.clone(prefix="prev", init="zeros")
        self.step_size = self.parameters.clone(prefix="step_size", init="zeros")

    def update(self, parameter, gradient, rate, at, step):
        size, before = self.step_size[at], self.prev[at]
        agrees = ops.mul(gradient, before)
        ones = ops.ones_like(parameter)
        turned = ops.less(agrees, 0.0)
        factor = ops.select(ops.greater(agrees, 0.0), ops.mul(ones, self.etaplus), ones)
        factor = ops.select(turned, ops.mul(ones, self.etaminus), factor)
        size_now = ops.select(ops.equal(step, 1.0), ops.mul(ones, rate), size)
        size_now = ops.mul(size_now, factor)
        size_now = ops.minimum(ops.maximum(size_now, self.step_size_min), self.step_size_max)
        used = ops.select(turned, ops.zeros_like(gradient), gradient)
        ops.assign(parameter, ops.sub(parameter, ops.mul(ops.sign(used), size_now)))
        ops.assign(before, used)
        ops.assign(size, size_now)


def _root_of_mean(x):
    return ops.sqrt(ops.reduce_mean(ops.square(x)))


class AdaFactor(_ByParameter):
    """Adam whose squares of a matrix are kept as means of its rows and of its columns.

    The gradients are taken as they come: `loss_scale` changes nothing, since their size makes no step longer.

    Args:
        params: Parameters, or groups of them (see Optimizer).
        learning_rate: None, or with relative_step=False a number, a list or a LearningRateSchedule.
        eps: What is added to squares, and the least size of a parameter.
        clip_threshold: The greatest size of a step before the rate.
        decay_rate: The power with which the squares keep more.
        beta1: How much of the mean each step keeps; None or 0: there is no mean.
        weight_decay: How much of the parameter, times the rate, each step takes away.
        scale_parameter: Whether the rate is multiplied with the size of the parameter.
        relative_step: Whether the rate follows the number of steps.
        warmup_init: Whether that rate begins small.
        compression: Refused.
        loss_scale: Changes nothing.
    """

    def __init__(
        self,
        params,
        learning_rate=None,
        eps=(1e-30, 1e-3),
        clip_threshold=1.0,
        decay_rate=0.8,
        beta1=0.9,
        weight_decay=0.0,
        scale_parameter=True,
        relative_step=True,
        warmup_init=False,
        compression=False,
        loss_scale=1.0,
    ):
        if (learning_rate is None) != bool(relative_step):
            raise ValueError("AdaFactor takes either a learning_rate or relative_step=True")
        if warmup_init and not relative_step:
            raise ValueError("AdaFactor: warmup_init requires relative_step=True")
        if compression:
            raise NotImplementedError("AdaFactor(compression=True): states in float16 are not there")
        super().__init__(params, 0.0 if learning_rate is None else learning_rate, weight_decay, loss_scale)
        _check("AdaFactor: eps", len(eps) == 2 and min(eps) >= 0, "two numbers from 0", eps)
        _check("AdaFactor: decay_rate", 0 < decay_rate < 1, "a number between 0 and 1", decay_rate)
        _check("AdaFactor: weight_decay", 0 <= weight_decay < 1, "a number from 0, below 1", weight_decay)
        _from_zero("AdaFactor", clip_threshold=clip_threshold, beta1=beta1 or 0.0)
        # A rate that changes is not scaled by the parameter: as in MindSpore.
        self.scale_parameter = scale_parameter and isinstance(learning_rate, float | int | None)
        self.eps, self.clip_threshold, self.decay_rate = tuple(eps), clip_threshold, -decay_rate
        self.beta1, self.decay = beta1 or 0.0, weight_decay
        self.relative_step, self.warmup_init = relative_step, warmup_init
        self.use_first_moment = self.beta1 > 0
        self._keep()

    def _keep(self):
        if self.use_first_moment:
            self.exp_avg = self.parameters.clone(prefix="exp_avg", init="zeros")
        rows, columns, squares = [], [], []
        for each in self.parameters:
            factored = len(each.shape) > 1
            shapes = (each.shape[:-1], each.shape[:-2] + each.shape[-1:], (1,))
            for kept, name, shape in zip(
                (rows, columns, squares),
                ("exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq"),
                shapes if factored else ((1,), (1,), each.shape),
                strict=True,
            ):
                kept.append(Parameter(ops.zeros(shape, each.dtype), f"{name}_{each.name}", False))
        self.exp_avg_sq_row = ParameterTuple(rows)
        self.exp_avg_sq_col = ParameterTuple(columns)
        self.exp_avg_sq = ParameterTuple(squares)

    def _scaled(self, gradients):
        return gradients

    def _rate(self, parameter, rate, step):
        if self.relative_step:
            most = 1e-6 * step if self.warmup_init else 1e-2
            rate = ops.minimum(ops.div(1.0, ops.sqrt(step)), most)
        if self.scale_parameter:
            rate = ops.mul(rate, ops.maximum(_root_of_mean(parameter), self.eps[1]))
        return rate

    def _direction(self, gradient, at, kept):
        """The gradient over the root of its mean square."""
        squares = ops.add(ops.square(gradient), self.eps[0])

        def mean(state, new):
            return ops.assign(state, ops.add(ops.mul(state, kept), ops.mul(new, 1.0 - kept)))

        if len(gradient.shape) < 2:
            return ops.div(gradient, ops.sqrt(mean(self.exp_avg_sq[at], squares)))
        rows = mean(self.exp_avg_sq_row[at], ops.reduce_mean(squares, -1))
        columns = mean(self.exp_avg_sq_col[at], ops.reduce_mean(squares, -2))
        of_rows = ops.rsqrt(ops.div(rows, ops.reduce_mean(rows, -1, True)))
        return ops.mul(
            ops.mul(ops.expand_dims(of_rows, -1), ops.expand_dims(ops.rsqrt(columns), -2)), gradient
        )

    def update(self, parameter, gradient, rate, at, step):
        rate = self._rate(parameter, rate, step)
        away = self._direction(gradient, at, ops.sub(1.0, ops.pow(step, self.decay_rate)))
        too_long = ops.maximum(ops.div(_root_of_mean(away), self.clip_threshold), 1.0)
        away = ops.mul(ops.div(away, too_long), rate)
        if self.use_first_moment:
            mean = self.exp_avg[at]
            away = ops.assign(mean, ops.add(ops.mul(mean, self.beta1), ops.mul(away, 1 - self.beta1)))
        shrunk = (
            ops.sub(parameter, ops.mul(parameter, ops.mul(rate, self.decay))) if self.decay else parameter
        )
        ops.assign(parameter, ops.sub(shrunk, away))
