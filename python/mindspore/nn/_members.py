"""What MindSpore's optimizers and losses have beside the members of muster.nn's."""

import muster
from mindspore.ops.composite import HyperMap, Map
from muster import ops

Optimizer = muster.nn.Optimizer


def _as_they_are(self, value):
    return value


def _set_target(self, value) -> None:
    if value not in ("CPU", "Ascend", "GPU"):
        raise ValueError(f"{type(self).__name__}: target is 'CPU', 'Ascend' or 'GPU', not {value!r}")


def _assign_add(parameter, value):
    return ops.assign_add(parameter, ops.cast(value, parameter.dtype))


def _is_schedule(rate) -> bool:
    return isinstance(rate, muster.nn.LearningRateSchedule)


def _dynamic_lr(self) -> bool:
    rates = self.learning_rate if isinstance(self.learning_rate, tuple) else (self.learning_rate,)
    return any(_is_schedule(rate) or rate.ndim > 0 for rate in rates)


def _is_group_lr(self) -> bool:
    return isinstance(self.learning_rate, tuple)


def _filter(self) -> tuple:
    return (True,) * len(self.parameters)


_MEMBERS = {
    "target": property(lambda self: "CPU", _set_target),
    "_set_base_target": _set_target,
    "unique": property(lambda self: True, lambda self, value: None),
    "_parameters": property(lambda self: self.parameters),
    "param_length": property(lambda self: len(self.parameters)),
    "is_group_lr": property(_is_group_lr),
    "dynamic_lr": property(_dynamic_lr),
    "_is_dynamic_lr_or_weight_decay": _dynamic_lr,
    "optim_filter": property(_filter),
    "use_parallel": property(lambda self: False),
    "reciprocal_scale": property(lambda self: 1 / self.loss_scale),
    "map_": property(lambda self: Map()),
    "hyper_map": property(lambda self: HyperMap()),
    "map_reverse": property(lambda self: HyperMap(reverse=True)),
    "assignadd": property(lambda self: _assign_add),
    "global_step_increase_tensor": property(lambda self: muster.Tensor(1, muster.int32)),
    "broadcast_params": _as_they_are,
    "flatten_gradients": _as_they_are,
    "_grad_sparse_indices_deduplicate": _as_they_are,
}


# ---- Losses ------------------------------------------------------------------------------------------------

LossBase = muster.nn.LossBase
_given_reduction = LossBase.reduction.__get__


def _set_reduction(self, value) -> None:
    self.__dict__["_reduction"] = value


_LOSS_MEMBERS = {
    "reduction": property(
        lambda self: self.__dict__.get("_reduction", _given_reduction(self)),
        _set_reduction,
        doc="'mean', 'sum' or 'none'; written, it is a note: get_loss() reduces as the constructor was told.",
    ),
    "reduce": property(lambda self: _given_reduction(self) != "none"),
    "average": property(lambda self: _given_reduction(self) != "sum"),
    "get_axis": lambda self, x: tuple(range(x.ndim)),
}


def install() -> None:
    """Both packages have one class of each, so both have these members once mindspore is imported."""
    for name, member in _MEMBERS.items():
        if not hasattr(Optimizer, name):
            setattr(Optimizer, name, member)
    for name, member in _LOSS_MEMBERS.items():
        setattr(LossBase, name, member)


install()
