"""What MindSpore's optimizers, losses and lists of cells have beside the members of muster.nn's."""

import muster
from mindspore import _device
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


class _Preset:
    """An attribute that is there at once and that a script may write, as optimizers of users do."""

    def __init__(self, value):
        self._value = value

    def __get__(self, instance, owner=None):
        return self if instance is None else self._value(instance)


_MEMBERS = {
    "target": property(lambda self: "CPU", _set_target),
    "_set_base_target": _set_target,
    "unique": property(lambda self: True, lambda self, value: None),
    "_parameters": property(lambda self: self.parameters),
    "param_length": property(lambda self: len(self.parameters)),
    "is_group_lr": property(_is_group_lr),
    "dynamic_lr": property(_dynamic_lr),
    "_is_dynamic_lr_or_weight_decay": _dynamic_lr,
    "optim_filter": _Preset(_filter),
    "use_parallel": _Preset(lambda self: False),
    "reciprocal_scale": property(lambda self: 1 / self.loss_scale),
    "map_": _Preset(lambda self: Map()),
    "hyper_map": _Preset(lambda self: HyperMap()),
    "map_reverse": _Preset(lambda self: HyperMap(reverse=True)),
    "assignadd": _Preset(lambda self: _assign_add),
    "global_step_increase_tensor": _Preset(lambda self: muster.Tensor(1, muster.int32)),
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


# ---- Precision ---------------------------------------------------------------------------------------------

_to_float = muster.Cell.to_float


def half(dtype):
    """The dtype that computes for `dtype`: bfloat16 for float16, once said."""
    if str(dtype).lower() != "float16":
        return dtype
    _device.note_once("note: float16 computes in bfloat16, whose range is that of float32")
    return muster.bfloat16


def to_float(self, dst_type):
    """muster.Cell.to_float; float16 computes in bfloat16."""
    return _to_float(self, half(dst_type))


# ---- Lists of cells ----------------------------------------------------------------------------------------


def _prefix_within(cells) -> str:
    """What MindSpore puts before the place of a cell that joins a list of these, (key, cell) pairs.

    It is what stands before the key in the name of the list's first parameter, as far as that can be told.
    """
    named = ((key, cell.get_parameters()) for key, cell in cells)
    firsts = [(key, parameters[0].name.split(".")) for key, parameters in named if parameters][:2]
    if not firsts:
        return ""
    (first_key, first), prefix = firsts[0], ""
    for index, part in enumerate(first):
        if part == first_key:
            prefix = "".join(f"{name}." for name in first[:index])
            if len(firsts) == 2 and firsts[1][1][index : index + 1] == [firsts[1][0]]:
                break
    return prefix


def _joined(self, cell, append, prefix: str) -> None:
    place = f"{len(self)}."
    before = {id(each) for each in self.cells()}
    append(self, cell)
    if id(cell) in before:
        return
    path = f"{self.param_prefix}.{place}" if self.param_prefix else place
    for parameter in cell.get_parameters():
        if parameter.name.startswith(path):
            parameter.name = prefix + place + parameter.name[len(path) :]


def _appending(append):
    def named(self, cell):
        """Adds a cell at the end; its parameters are named by the place, as MindSpore names them."""
        _joined(self, cell, append, _prefix_within(_keyed(self)))

    return named


def _extending(append):
    def named(self, cells):
        """Adds cells at the end; their parameters are named by the places, as MindSpore names them."""
        prefix = _prefix_within(_keyed(self))
        for cell in cells:
            _joined(self, cell, append, prefix)
        return self

    return named


def _keyed(self):
    return [(str(place), cell) for place, cell in enumerate(self)]


def install() -> None:
    """Both packages have one class of each, so both have these members once mindspore is imported."""
    for name, member in _MEMBERS.items():
        if not hasattr(Optimizer, name):
            setattr(Optimizer, name, member)
    for name, member in _LOSS_MEMBERS.items():
        setattr(LossBase, name, member)
    muster.Cell.to_float = to_float
    for kind in (muster.nn.CellList, muster.nn.SequentialCell):
        append = kind.append
        kind.append = _appending(append)
        kind.extend = kind.__iadd__ = _extending(append)


install()
