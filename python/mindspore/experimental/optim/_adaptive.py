"""Optimizers that remember the gradients of each element."""

from mindspore.experimental.optim.optimizer import Optimizer, decayed, rate_of
from muster import ops


def _mixed(state, value, share):
    """The state moved towards a value: share state + (1 - share) value."""
    return ops.assign(state, ops.add(ops.mul(state, float(share)), ops.mul(value, 1.0 - share)))


def _step(parameter, change, rate):
    ops.assign(parameter, ops.sub(parameter, ops.mul(change, rate)))


def _left(share, step, dtype):
    """1 less share to the power of the step."""
    return ops.cast(ops.sub(1.0, ops.pow(float(share), step)), dtype)


def _from_zero(owner, **numbers):
    for name, value in numbers.items():
        if value < 0:
            raise ValueError(f"{owner}: {name} is a number from 0, not {value}")


def _shares(owner, betas):
    if len(betas) != 2 or not all(0 <= each < 1 for each in betas):
        raise ValueError(f"{owner}: betas are two numbers from 0 to below 1, not {betas}")


class Adam(Optimizer):
    """Adam: steps by the mean of gradients over the root of the mean of their squares.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        lr: The learning rate.
        betas: How much of both means each step keeps.
        eps: What is added to the root.
        weight_decay: How much of the parameter the gradient gets.
        amsgrad: Whether the greatest mean of squares so far is taken.
        maximize: Whether steps go up.
    """

    def __init__(
        self,
        params,
        lr=0.001,
        betas=(0.9, 0.999),
        eps=1e-08,
        weight_decay=0.0,
        amsgrad=False,
        *,
        maximize=False,
    ):
        name = type(self).__name__
        _shares(name, betas)
        _from_zero(name, eps=eps, weight_decay=weight_decay)
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "amsgrad": amsgrad, "maximize": maximize})

    def states_of(self, group):
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 3 if group["amsgrad"] else 2]

    def update(self, group, parameter, gradient, states, step):
        self.move(group, parameter, decayed(group, parameter, gradient), states, step)

    @staticmethod
    def move(group, parameter, gradient, states, step):
        """The step without decay."""
        first, second = group["betas"]
        mean = _mixed(states["exp_avg"], gradient, first)
        squares = _mixed(states["exp_avg_sq"], ops.square(gradient), second)
        if group["amsgrad"]:
            squares = ops.assign(states["max_exp_avg_sq"], ops.maximum(states["max_exp_avg_sq"], squares))
        left = [_left(share, step, gradient.dtype) for share in (first, second)]
        rate = ops.div(ops.mul(group["lr"], ops.sqrt(left[1])), left[0])
        _step(parameter, ops.div(mean, ops.add(ops.sqrt(squares), float(group["eps"]))), rate)


class AdamW(Adam):
    """Adam whose decay is a step of its own towards 0.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        lr: The learning rate.
        betas: How much of both means each step keeps.
        eps: What is added to the root.
        weight_decay: How much of the parameter, times lr, each step takes away.
        amsgrad: Whether the greatest mean of squares so far is taken.
        maximize: Whether steps go up.
    """

    def __init__(
        self,
        params,
        lr=0.001,
        betas=(0.9, 0.999),
        eps=1e-08,
        weight_decay=0.01,
        amsgrad=False,
        *,
        maximize=False,
    ):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    def update(self, group, parameter, gradient, states, step):
        kept = ops.sub(1.0, ops.mul(group["lr"], float(group["weight_decay"])))
        ops.assign(parameter, ops.mul(parameter, kept))
        self.move(group, parameter, gradient, states, step)


class Adamax(Optimizer):
    """Adam by the greatest gradient so far, which fades, instead of a root.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        lr: The learning rate.
        betas: How much of the mean and of the greatest each step keeps.
        eps: What is added to the greatest.
        weight_decay: How much of the parameter the gradient gets.
        maximize: Whether steps go up.
    """

    states = ("exp_avg", "exp_inf")

    def __init__(self, params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.0, *, maximize=False):
        _shares("Adamax", betas)
        _from_zero("Adamax", eps=eps, weight_decay=weight_decay)
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "maximize": maximize})

    def update(self, group, parameter, gradient, states, step):
        gradient = decayed(group, parameter, gradient)
        first, second = group["betas"]
        mean = _mixed(states["exp_avg"], gradient, first)
        faded = ops.mul(states["exp_inf"], float(second))
        greatest = ops.assign(
            states["exp_inf"], ops.maximum(faded, ops.add(ops.abs(gradient), float(group["eps"])))
        )
        rate = ops.div(group["lr"], _left(first, step, gradient.dtype))
        _step(parameter, ops.div(mean, greatest), rate)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        lr: The learning rate.
        betas: How much of both means each step keeps.
        eps: What is added to the root.
        weight_decay: How much of the parameter the gradient gets.
        momentum_decay: How fast the momentum grows to the first of the betas.
    """

    states = ("exp_avg", "exp_avg_sq", "mu_product")

    def __init__(
        self, params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.0, momentum_decay=0.004
    ):
        _shares("NAdam", betas)
        _from_zero("NAdam", eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "momentum_decay": momentum_decay})

    def first(self, name, group, parameter):
        if name == "mu_product":
            return ops.ones((), parameter.dtype)
        return ops.zeros(parameter.shape, parameter.dtype)

    def update(self, group, parameter, gradient, states, step):
        gradient = decayed(group, parameter, gradient)
        first, second = group["betas"]

        def share(at):
            faded = ops.pow(0.96, ops.mul(at, float(group["momentum_decay"])))
            return ops.cast(ops.mul(ops.sub(1.0, ops.mul(faded, 0.5)), float(first)), gradient.dtype)

        now, later = share(step), share(ops.add(step, 1.0))
        product = ops.assign(states["mu_product"], ops.mul(states["mu_product"], now))
        mean = _mixed(states["exp_avg"], gradient, first)
        squares = _mixed(states["exp_avg_sq"], ops.square(gradient), second)
        left = _left(second, step, gradient.dtype)
        root = ops.add(ops.sqrt(ops.div(squares, left)), float(group["eps"]))
        of_gradient = ops.div(ops.sub(1.0, now), ops.sub(1.0, product))
        of_mean = ops.div(later, ops.sub(1.0, ops.mul(product, later)))
        change = ops.add(ops.mul(gradient, of_gradient), ops.mul(mean, of_mean))
        _step(parameter, ops.div(change, root), group["lr"])


class RAdam(Optimizer):
    """Adam whose root is used once enough squares are known.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        lr: The learning rate.
        betas: How much of both means each step keeps.
        eps: What is added to the root.
        weight_decay: How much of the parameter the gradient gets.
    """

    states = ("exp_avg", "exp_avg_sq")

    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.0):
        _shares("RAdam", betas)
        _from_zero("RAdam", eps=eps, weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def update(self, group, parameter, gradient, states, step):
        gradient = decayed(group, parameter, gradient)
        first, second = group["betas"]
        mean = _mixed(states["exp_avg"], gradient, first)
        squares = _mixed(states["exp_avg_sq"], ops.square(gradient), second)
        mean = ops.div(mean, _left(first, step, gradient.dtype))
        power = ops.pow(float(second), step)
        left = ops.sub(1.0, power)
        most = 2 / (1 - second) - 1
        known = ops.sub(most, ops.div(ops.mul(ops.mul(step, 2.0), power), left))
        enough = ops.greater(known, 5.0)
        safe = ops.select(enough, known, ops.full((), 6.0, dtype=known.dtype))
        above = ops.mul(ops.mul(ops.sub(safe, 4.0), ops.sub(safe, 2.0)), float(most))
        rectified = ops.sqrt(ops.div(above, ops.mul(safe, float((most - 4) * (most - 2)))))
        scaled = ops.cast(ops.mul(ops.sqrt(left), rectified), gradient.dtype)
        factor = ops.div(scaled, ops.add(ops.sqrt(squares), float(group["eps"])))
        factor = ops.select(ops.broadcast_to(enough, factor.shape), factor, ops.ones_like(factor))
        _step(parameter, ops.mul(mean, factor), group["lr"])


class Adagrad(Optimizer):
    """Steps by the gradient over the root of the sum of all squares.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        lr: The learning rate.
        lr_decay: How fast it falls with the steps.
        weight_decay: How much of the parameter the gradient gets.
        initial_accumulator_value: What the sum begins with.
        eps: What is added to the root.
        maximize: Whether steps go up.
    """

    states = ("accum",)

    def __init__(
        self,
        params,
        lr=0.01,
        lr_decay=0.0,
        weight_decay=0.0,
        initial_accumulator_value=0.0,
        eps=1e-10,
        *,
        maximize=False,
    ):
        _from_zero("Adagrad", lr_decay=lr_decay, weight_decay=weight_decay, eps=eps)
        _from_zero("Adagrad", initial_accumulator_value=initial_accumulator_value)
        settings = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps}
        super().__init__(
            params,
            {**settings, "initial_accumulator_value": initial_accumulator_value, "maximize": maximize},
        )

    def first(self, name, group, parameter):
        return ops.full(parameter.shape, group["initial_accumulator_value"], dtype=parameter.dtype)

    def update(self, group, parameter, gradient, states, step):
        gradient = decayed(group, parameter, gradient)
        slower = ops.add(ops.mul(ops.sub(step, 1.0), float(group["lr_decay"])), 1.0)
        total = ops.assign(states["accum"], ops.add(states["accum"], ops.square(gradient)))
        change = ops.div(gradient, ops.add(ops.sqrt(total), float(group["eps"])))
        _step(parameter, change, ops.div(group["lr"], ops.cast(slower, gradient.dtype)))


class Adadelta(Optimizer):
    """Steps by the root of the mean of squared steps over that of squared gradients.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        lr: The learning rate.
        rho: How much of both means each step keeps.
        eps: What is added below the roots.
        weight_decay: How much of the parameter the gradient gets.
        maximize: Whether steps go up.
    """

    states = ("accum", "accum_update")

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-06, weight_decay=0.0, *, maximize=False):
        if not 0 <= rho <= 1:
            raise ValueError(f"Adadelta: rho is a number from 0 to 1, not {rho}")
        _from_zero("Adadelta", eps=eps, weight_decay=weight_decay)
        settings = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "maximize": maximize})

    def update(self, group, parameter, gradient, states, step):
        gradient = decayed(group, parameter, gradient)
        rho, eps = group["rho"], float(group["eps"])
        squares = _mixed(states["accum"], ops.square(gradient), rho)
        steps = states["accum_update"]
        change = ops.mul(ops.sqrt(ops.div(ops.add(steps, eps), ops.add(squares, eps))), gradient)
        _mixed(steps, ops.square(change), rho)
        _step(parameter, change, group["lr"])


class RMSprop(Optimizer):
    """Steps by the gradient over the root of the mean of squares.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        lr: The learning rate.
        alpha: How much of the mean each step keeps.
        eps: What is added to the root.
        weight_decay: How much of the parameter the gradient gets.
        momentum: How much of the last step each step has.
        centered: Whether the square of the mean is taken away.
        maximize: Whether steps go up.
    """

    def __init__(
        self,
        params,
        lr=0.01,
        alpha=0.99,
        eps=1e-08,
        weight_decay=0.0,
        momentum=0.0,
        centered=False,
        maximize=False,
    ):
        _from_zero("RMSprop", alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum)
        settings = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, {**settings, "momentum": momentum, "centered": centered, "maximize": maximize}
        )

    def states_of(self, group):
        wanted = {"mean_square": True, "mean_grad": group["centered"], "mom": group["momentum"] > 0}
        return tuple(name for name, there in wanted.items() if there)

    def update(self, group, parameter, gradient, states, step):
        gradient = decayed(group, parameter, gradient)
        squares = _mixed(states["mean_square"], ops.square(gradient), group["alpha"])
        if group["centered"]:
            squares = ops.sub(squares, ops.square(_mixed(states["mean_grad"], gradient, group["alpha"])))
        change = ops.div(gradient, ops.add(ops.sqrt(squares), float(group["eps"])))
        if group["momentum"] > 0:
            momentum = states["mom"]
            change = ops.assign(momentum, ops.add(ops.mul(momentum, float(group["momentum"])), change))
        _step(parameter, change, group["lr"])


class Rprop(Optimizer):
    """Steps whose sizes grow while the gradient keeps its sign, and shrink when it turns.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        lr: The first step.
        etas: How much a step shrinks and grows.
        step_sizes: The smallest and the greatest step.
        maximize: Whether steps go up.
    """

    states = ("prev", "step_size")

    def __init__(self, params, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-06, 50), *, maximize=False):
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Rprop: etas are a number from 0 to 1 and one above 1, not {etas}")
        settings = {"etas": etas, "step_sizes": step_sizes, "maximize": maximize, "weight_decay": 0.0}
        super().__init__(params, {"lr": lr, **settings})

    def first(self, name, group, parameter):
        if name == "step_size":
            return ops.full(parameter.shape, rate_of(group["lr"]), dtype=parameter.dtype)
        return ops.zeros(parameter.shape, parameter.dtype)

    def update(self, group, parameter, gradient, states, step):
        shrink, grow = group["etas"]
        low, high = group["step_sizes"]
        turn = ops.sign(ops.mul(gradient, states["prev"]))
        ones = ops.ones_like(gradient)
        factor = ops.select(ops.greater(turn, 0), ops.mul(ones, float(grow)), ones)
        factor = ops.select(ops.less(turn, 0), ops.mul(ones, float(shrink)), factor)
        size = ops.assign(
            states["step_size"], ops.clip(ops.mul(states["step_size"], factor), float(low), float(high))
        )
        gradient = ops.select(ops.less(turn, 0), ops.zeros_like(gradient), gradient)
        ops.assign(parameter, ops.sub(parameter, ops.mul(ops.sign(gradient), size)))
        ops.assign(states["prev"], gradient)


class ASGD(Optimizer):
    """Stochastic gradient descent with the average of the parameters beside them.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        lr: The learning rate.
        lambd: How fast parameters and the rate fade.
        alpha: The power of the rate's fading.
        t0: From which step on the average is taken.
        weight_decay: How much of the parameter the gradient gets.
        maximize: Whether steps go up.
    """

    states = ("eta", "mu", "ax")

    def __init__(
        self, params, lr=0.01, lambd=0.0001, alpha=0.75, t0=1000000.0, weight_decay=0.0, maximize=False
    ):
        _from_zero("ASGD", weight_decay=weight_decay)
        settings = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0}
        super().__init__(params, {**settings, "weight_decay": weight_decay, "maximize": maximize})

    def first(self, name, group, parameter):
        if name == "ax":
            return ops.zeros(parameter.shape, parameter.dtype)
        return ops.full((), rate_of(group["lr"]) if name == "eta" else 1.0, dtype=parameter.dtype)

    def update(self, group, parameter, gradient, states, step):
        gradient = decayed(group, parameter, gradient)
        kept = ops.sub(1.0, ops.mul(states["eta"], float(group["lambd"])))
        moved = ops.sub(ops.mul(parameter, kept), ops.mul(gradient, states["eta"]))
        moved = ops.assign(parameter, moved)
        average = states["ax"]
        later = ops.add(average, ops.mul(ops.sub(moved, average), states["mu"]))
        whole = ops.broadcast_to(ops.equal(states["mu"], 1.0), moved.shape)
        ops.assign(average, ops.select(whole, moved, later))
        step = ops.cast(step, gradient.dtype)
        fading = ops.add(ops.mul(ops.mul(group["lr"], step), float(group["lambd"])), 1.0)
        ops.assign(states["eta"], ops.div(group["lr"], ops.pow(fading, float(group["alpha"]))))
        ops.assign(states["mu"], ops.div(1.0, ops.maximum(ops.sub(step, float(group["t0"])), 1.0)))
