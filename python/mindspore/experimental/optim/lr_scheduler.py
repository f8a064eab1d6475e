"""mindspore.experimental.optim.lr_scheduler: learning rates of param_groups that follow a schedule."""

import bisect
import math
from collections import Counter

import muster
from mindspore import _names
from mindspore.experimental.optim.optimizer import Optimizer, rate_of


def _needs_optimizer(optimizer, name):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"{name}: an optimizer of mindspore.experimental.optim is needed, not {type(optimizer).__name__}"
        )


def _set_rate(group, value) -> None:
    group["lr"].set_data(muster.Tensor(float(value), muster.float32))


def _for_each(value, groups) -> list:
    """A list with a value for each group, of one for all."""
    return list(value) if isinstance(value, list | tuple) else [value] * len(groups)


def _is_plain(value) -> bool:
    if isinstance(value, list):
        return all(_is_plain(each) for each in value)
    return value is None or isinstance(value, bool | int | float | str)


class _Schedule:
    """What a schedule counts is saved with its optimizer, where a loop by hand recovers."""

    state_is_shared = True  # it counts alike on all workers

    def _belongs_to(self, optimizer) -> None:
        _needs_optimizer(optimizer, type(self).__name__)
        self.optimizer = optimizer
        optimizer.schedules.append(self)

    def state_dict(self) -> dict:
        """Its counts and settings: the attributes that are numbers, texts and lists of them."""
        return {name: value for name, value in vars(self).items() if _is_plain(value)}

    def load_state_dict(self, state: dict) -> None:
        """Sets what state_dict() has told."""
        vars(self).update(state)


class LRScheduler(_Schedule):
    """What schedules share: `step()` sets the rates of the next epoch.

    A subclass defines `get_lr()`, a list with a rate for each group, from `last_epoch`, `base_lrs` and the
    rates of now.

    Args:
        optimizer: Of mindspore.experimental.optim.
        last_epoch: -1, or the epoch that a training goes on from.
    """

    def __init__(self, optimizer, last_epoch=-1):
        self._belongs_to(optimizer)
        self.groups = optimizer.param_groups
        for group in self.groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", rate_of(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: last_epoch={last_epoch} needs 'initial_lr' in each group"
                )
        self.base_lrs = [rate_of(group["initial_lr"]) for group in self.groups]
        self.last_epoch = last_epoch
        self._last_lr = [rate_of(group["lr"]) for group in self.groups]
        self.step()

    def get_lr(self):
        """The rates of `last_epoch`, one for each group."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def get_last_lr(self):
        """The rates that the last step set, one for each group."""
        return [muster.Tensor(rate, muster.float32) for rate in self._last_lr]

    def _rates(self):
        return [rate_of(group["lr"]) for group in self.groups]

    def step(self, epoch=None) -> None:
        """Sets the rates of the next epoch, or of `epoch`."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        factor = None if epoch is None else self._factor_at(epoch)
        self._set(self.get_lr() if factor is None else [rate * factor for rate in self.base_lrs])

    def _factor_at(self, epoch):
        """By how much the first rates are multiplied at an epoch; None where get_lr() tells it for any."""
        return None

    def _set(self, rates):
        rates = [rate_of(rate) for rate in rates]
        for group, rate in zip(self.groups, rates, strict=True):
            _set_rate(group, rate)
        self._last_lr = rates


class StepLR(LRScheduler):
    """The rate times gamma every step_size epochs."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        turn = self.last_epoch and self.last_epoch % self.step_size == 0
        return [rate * self.gamma if turn else rate for rate in self._rates()]

    def _factor_at(self, epoch):
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """The rate times gamma at each of the milestones."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        factor = self.gamma ** self.milestones[self.last_epoch]
        return [rate * factor for rate in self._rates()]

    def _factor_at(self, epoch):
        return self.gamma ** bisect.bisect_right(sorted(self.milestones.elements()), epoch)


class ExponentialLR(LRScheduler):
    """The rate times gamma each epoch."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [rate * self.gamma if self.last_epoch else rate for rate in self._rates()]

    def _factor_at(self, epoch):
        return self.gamma**epoch


class ConstantLR(LRScheduler):
    """The rate times factor for total_iters epochs, and then the rate."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor is a number from 0 to 1, not {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        rates = self._rates()
        if self.last_epoch == 0:
            return [rate * self.factor for rate in rates]
        return [rate / self.factor if self.last_epoch == self.total_iters else rate for rate in rates]

    def _factor_at(self, epoch):
        return self.factor if epoch < self.total_iters else 1.0


class LinearLR(LRScheduler):
    """The rate times a factor that goes from start_factor to end_factor in total_iters epochs."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1:
            raise ValueError(f"LinearLR: start_factor is a number above 0, up to 1, not {start_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        share = min(self.last_epoch, self.total_iters) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * share
        return [rate * factor for rate in self.base_lrs]


class LambdaLR(LRScheduler):
    """The first rate times what a function, or one for each group, makes of the epoch."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        many = isinstance(lr_lambda, list | tuple)
        self.lr_lambdas = list(lr_lambda) if many else [lr_lambda] * len(optimizer.param_groups)
        if len(self.lr_lambdas) != len(optimizer.param_groups):
            raise ValueError(
                f"LambdaLR: {len(self.lr_lambdas)} functions for {len(optimizer.param_groups)} groups"
            )
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [rate * function(self.last_epoch) for rate, function in pairs]


class MultiplicativeLR(LambdaLR):
    """The rate of now times what a function, or one for each group, makes of the epoch."""

    def get_lr(self):
        if self.last_epoch == 0:
            return self._rates()
        pairs = zip(self._rates(), self.lr_lambdas, strict=True)
        return [rate * function(self.last_epoch) for rate, function in pairs]


class PolynomialLR(LRScheduler):
    """The rate falls to 0 in total_iters epochs, as a power of what is left of them."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        left = 1 - min(self.last_epoch, self.total_iters) / self.total_iters
        return [rate * left**self.power for rate in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """The rate goes to eta_min in T_max epochs along half a wave of a cosine, and back."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (rate - self.eta_min) * share for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """CosineAnnealingLR that begins anew after T_0 epochs, then T_0 T_mult, and so on."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0, last_epoch=-1):  # noqa: N803
        if T_0 <= 0 or T_mult < 1:
            raise ValueError(f"CosineAnnealingWarmRestarts: T_0 {T_0} and T_mult {T_mult} are from 1 on")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        length, left = self.T_0, max(self.last_epoch, 0)
        while left >= length:
            left -= length
            length *= self.T_mult
        share = (1 + math.cos(math.pi * left / length)) / 2
        return [self.eta_min + (rate - self.eta_min) * share for rate in self.base_lrs]


class CyclicLR(LRScheduler):
    """The rate goes from base_lr to max_lr and back, again and again.

    Args:
        optimizer: Of mindspore.experimental.optim.
        base_lr: A number, or one for each group.
        max_lr: Likewise.
        step_size_up: Steps from base_lr to max_lr.
        step_size_down: Steps back, step_size_up by default.
        mode: 'triangular', 'triangular2' (half as high each cycle) or 'exp_range' (gamma to the step).
        gamma: Of 'exp_range'.
        scale_fn: A function of the cycle, or the step, that gives the height instead of a mode.
        scale_mode: 'cycle' or 'iterations': what scale_fn takes.
        last_epoch: -1, or the step that a training goes on from.
    """

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        last_epoch=-1,
    ):
        _needs_optimizer(optimizer, "CyclicLR")
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: mode is 'triangular', 'triangular2' or 'exp_range', not {mode!r}")
        groups = optimizer.param_groups
        lows, self.max_lrs = (_for_each(each, groups) for each in (base_lr, max_lr))
        if last_epoch == -1:
            for group, low in zip(groups, lows, strict=True):
                _set_rate(group, low)
        self.total = step_size_up + (step_size_up if step_size_down is None else step_size_down)
        self.rising = step_size_up / self.total
        self.mode, self.gamma = mode, gamma
        self.scale_fn, self.scale_mode = scale_fn, scale_mode
        super().__init__(optimizer, last_epoch)

    def _height(self, cycle):
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.mode == "exp_range":
            return self.gamma**self.last_epoch
        return 1.0 if self.mode == "triangular" else 1 / 2 ** (cycle - 1)

    def get_lr(self):
        cycle = math.floor(1 + self.last_epoch / self.total)
        at = 1 + self.last_epoch / self.total - cycle
        share = at / self.rising if at <= self.rising else (at - 1) / (self.rising - 1)
        height = self._height(cycle)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * share * height for low, high in pairs]


class SequentialLR(_Schedule):
    """One schedule after the other; each begins at its milestone.

    Args:
        optimizer: Of mindspore.experimental.optim.
        schedulers: Schedules of this optimizer.
        milestones: The epochs at which the second and later ones begin.
        last_epoch: -1, or the epoch that a training goes on from.
    """

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        self._belongs_to(optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: {len(schedulers)} schedules need one milestone less, not {milestones}"
            )
        if any(each.optimizer is not optimizer for each in schedulers):
            raise ValueError("SequentialLR: a schedule is one of another optimizer")
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            _set_rate(group, rate_of(group["initial_lr"]))
        for each in schedulers:
            each.last_epoch -= 1
        schedulers[0].step()
        self._last_lr = schedulers[0]._last_lr

    def step(self) -> None:
        """Sets the rates of the next epoch."""
        self.last_epoch += 1
        place = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place > 0 and self._milestones[place - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler._last_lr

    def get_last_lr(self):
        """The rates that the last step set, one for each group."""
        return [muster.Tensor(rate, muster.float32) for rate in self._last_lr]


class ReduceLROnPlateau(_Schedule):
    """The rate times factor where a number has not become better for `patience` epochs.

    Args:
        optimizer: Of mindspore.experimental.optim.
        mode: 'min' or 'max': what is better.
        factor: Below 1.
        patience: How many epochs without a better number pass first.
        threshold: How much better a number has to be.
        threshold_mode: 'rel' or 'abs'.
        cooldown: How many epochs after a change nothing is counted.
        min_lr: The smallest rate, or one for each group.
        eps: A smaller change of the rate is none.
    """

    state_is_shared = False  # the number may be each worker's own

    def __init__(
        self,
        optimizer,
        mode="min",
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode="rel",
        cooldown=0,
        min_lr=0,
        eps=1e-8,
    ):
        self._belongs_to(optimizer)
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau: factor is below 1, not {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau: mode is 'min' or 'max', threshold_mode 'rel' or 'abs', not {mode!r} and "
                f"{threshold_mode!r}"
            )
        self.factor, self.patience, self.cooldown = factor, patience, cooldown
        self.mode, self.threshold, self.threshold_mode, self.eps = mode, threshold, threshold_mode, eps
        groups = optimizer.param_groups
        self.min_lrs = _for_each(min_lr, groups)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = [rate_of(group["lr"]) for group in groups]

    @property
    def in_cooldown(self) -> bool:
        """Whether nothing is counted now."""
        return self.cooldown_counter > 0

    def _is_better(self, value) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "abs":
            return value * sign > self.best * sign + self.threshold
        if math.isinf(self.best):
            return not math.isinf(value)
        return value * sign > self.best * (1 + sign * self.threshold) * sign

    def step(self, metrics) -> None:
        """Takes the number of an epoch."""
        value = rate_of(metrics)
        self.last_epoch += 1
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [rate_of(group["lr"]) for group in self.optimizer.param_groups]

    def _reduce(self):
        for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            rate = rate_of(group["lr"])
            smaller = max(rate * self.factor, least)
            if rate - smaller > self.eps:
                _set_rate(group, smaller)

    def get_last_lr(self):
        """The rates of now, one for each group."""
        return [muster.Tensor(rate, muster.float32) for rate in self._last_lr]


__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
__getattr__ = _names.missing(__name__)
