"""Learning rates by step: MindSpore's types of arguments, which tell a rate (float) from a count (int)."""

import muster.nn


def _check(kind, **values):
    for name, value in values.items():
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits:
            raise TypeError(
                f"The type of '{name}' should be '{kind.__name__}', but got '{value}' with type "
                f"'{type(value).__name__}'."
            )


def _check_decay(rates, counts, is_stair=False):
    _check(float, **rates)
    _check(int, **counts)
    _check(bool, is_stair=is_stair)


def _epochs(total_step, step_per_epoch, decay_epoch):
    return {"total_step": total_step, "step_per_epoch": step_per_epoch, "decay_epoch": decay_epoch}


def _decay(name, doc):
    made = getattr(muster.nn, name)

    def decay(learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=False):
        rates = {"learning_rate": learning_rate, "decay_rate": decay_rate}
        _check_decay(rates, _epochs(total_step, step_per_epoch, decay_epoch), is_stair)
        return made(learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair)

    decay.__name__ = decay.__qualname__ = name
    decay.__doc__ = doc
    return decay


exponential_decay_lr = _decay("exponential_decay_lr", "Rates of all steps: rate * decay^(epoch / epochs).")
inverse_decay_lr = _decay("inverse_decay_lr", "Rates of all steps: rate / (1 + decay * epoch / epochs).")
natural_exp_decay_lr = _decay("natural_exp_decay_lr", "Rates of all steps: rate * e^(-decay * epoch).")


def cosine_decay_lr(min_lr, max_lr, total_step, step_per_epoch, decay_epoch):
    """Rates of all steps: half a wave of the cosine from max_lr to min_lr."""
    _check_decay({"min_lr": min_lr, "max_lr": max_lr}, _epochs(total_step, step_per_epoch, decay_epoch))
    return muster.nn.cosine_decay_lr(min_lr, max_lr, total_step, step_per_epoch, decay_epoch)


def polynomial_decay_lr(
    learning_rate, end_learning_rate, total_step, step_per_epoch, decay_epoch, power, update_decay_epoch=False
):
    """Rates of all steps: a polynomial from learning_rate to end_learning_rate."""
    rates = {"learning_rate": learning_rate, "end_learning_rate": end_learning_rate, "power": power}
    _check_decay(rates, _epochs(total_step, step_per_epoch, decay_epoch), update_decay_epoch)
    return muster.nn.polynomial_decay_lr(
        learning_rate, end_learning_rate, total_step, step_per_epoch, decay_epoch, power, update_decay_epoch
    )


def warmup_lr(learning_rate, total_step, step_per_epoch, warmup_epoch):
    """Rates of all steps: from 0 up to learning_rate in the first epochs."""
    _check(float, learning_rate=learning_rate)
    _check(int, total_step=total_step, step_per_epoch=step_per_epoch, warmup_epoch=warmup_epoch)
    return muster.nn.warmup_lr(learning_rate, total_step, step_per_epoch, warmup_epoch)


def piecewise_constant_lr(milestone, learning_rates):
    """Rates of all steps: each up to its milestone."""
    for name, values, kind in (("milestone", milestone, int), ("learning_rates", learning_rates, float)):
        if isinstance(values, list | tuple):
            _check(kind, **{f"{name}[{at}]": value for at, value in enumerate(values)})
    return muster.nn.piecewise_constant_lr(milestone, learning_rates)


class ExponentialDecayLR(muster.nn.ExponentialDecayLR):
    """rate * decay^(step / steps)."""

    def __init__(self, learning_rate, decay_rate, decay_steps, is_stair=False):
        _check(float, learning_rate=learning_rate, decay_rate=decay_rate)
        super().__init__(learning_rate, decay_rate, decay_steps, is_stair)


class NaturalExpDecayLR(muster.nn.NaturalExpDecayLR):
    """rate * e^(-decay * step)."""

    def __init__(self, learning_rate, decay_rate, decay_steps, is_stair=False):
        _check(float, learning_rate=learning_rate, decay_rate=decay_rate)
        super().__init__(learning_rate, decay_rate, decay_steps, is_stair)


class InverseDecayLR(muster.nn.InverseDecayLR):
    """rate / (1 + decay * step / steps)."""

    def __init__(self, learning_rate, decay_rate, decay_steps, is_stair=False):
        _check(float, learning_rate=learning_rate, decay_rate=decay_rate)
        super().__init__(learning_rate, decay_rate, decay_steps, is_stair)


class CosineDecayLR(muster.nn.CosineDecayLR):
    """Half a wave of the cosine from max_lr to min_lr."""

    def __init__(self, min_lr, max_lr, decay_steps):
        _check(float, min_lr=min_lr, max_lr=max_lr)
        super().__init__(min_lr, max_lr, decay_steps)


class PolynomialDecayLR(muster.nn.PolynomialDecayLR):
    """A polynomial from learning_rate to end_learning_rate."""

    def __init__(self, learning_rate, end_learning_rate, decay_steps, power, update_decay_steps=False):
        _check(float, learning_rate=learning_rate, end_learning_rate=end_learning_rate, power=power)
        super().__init__(learning_rate, end_learning_rate, decay_steps, power, update_decay_steps)


class WarmUpLR(muster.nn.WarmUpLR):
    """From 0 up to learning_rate."""

    def __init__(self, learning_rate, warmup_steps):
        _check(float, learning_rate=learning_rate)
        super().__init__(learning_rate, warmup_steps)


__all__ = [
    "CosineDecayLR",
    "ExponentialDecayLR",
    "InverseDecayLR",
    "NaturalExpDecayLR",
    "PolynomialDecayLR",
    "WarmUpLR",
    "cosine_decay_lr",
    "exponential_decay_lr",
    "inverse_decay_lr",
    "natural_exp_decay_lr",
    "piecewise_constant_lr",
    "polynomial_decay_lr",
    "warmup_lr",
]
