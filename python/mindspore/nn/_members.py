"""What MindSpore's optimizers, losses and lists of cells have beside the members of muster.nn's."""

import functools
import math

import muster
from mindspore import _device
from mindspore.common.parameter import ParameterTuple
from mindspore.ops._training import assign_add
from mindspore.ops.composite import HyperMap, Map
from muster import _attributes

Optimizer = muster.nn.Optimizer


def _as_they_are(self, value):
    return value


def _set_target(self, value) -> None:
    if value not in ("CPU", "Ascend", "GPU"):
        raise ValueError(f"{type(self).__name__}: target is 'CPU', 'Ascend' or 'GPU', not {value!r}")


def _is_schedule(rate) -> bool:
    return isinstance(rate, muster.nn.LearningRateSchedule)


def _dynamic_lr(self) -> bool:
    rates = self.learning_rate if isinstance(self.learning_rate, tuple) else (self.learning_rate,)
    return any(map(_is_schedule, rates))


def _is_group_lr(self) -> bool:
    return isinstance(self.learning_rate, tuple)


def _filter(self) -> tuple:
    return (True,) * len(self.parameters)


def _decays(self) -> tuple:
    """The weight decay of each parameter, as it was given."""
    given = self._given_weight_decay
    return given if isinstance(given, tuple) else (given,) * len(self.parameters)


def _decays_at_all(decay) -> bool:
    return not isinstance(decay, (int, float)) or decay != 0


def _decay_flags(self) -> tuple:
    """Which parameters decay: those of groups with a decay; without groups all but beta and gamma."""
    if self.is_group:
        return tuple(_decays_at_all(decay) for decay in _decays(self))
    return tuple("beta" not in each.name and "gamma" not in each.name for each in self.parameters)


def _dynamic_decay_flags(self):
    flags = tuple(isinstance(decay, muster.Cell) for decay in _decays(self))
    return flags if self.is_group else any(flags)


def _of_groups(name, value):
    """An attribute that optimizers with groups of parameters have."""

    def get(self):
        if not self.is_group:
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
        return value(self)

    return _Preset(get)


def _group_lr(self) -> list:
    rates = self.learning_rate
    return list(rates) if isinstance(rates, tuple) else [rates] * len(self.parameters)


def _of_none(self) -> tuple:
    return (False,) * len(self.parameters)


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
    "decay_flags": _Preset(_decay_flags),
    "dynamic_decay_flags": _Preset(_dynamic_decay_flags),
    "dynamic_weight_decay": _Preset(
        lambda self: any(isinstance(each, muster.Cell) for each in _decays(self))
    ),
    "exec_weight_decay": _Preset(lambda self: any(_decays_at_all(each) for each in _decays(self))),
    "group_lr": _of_groups("group_lr", _group_lr),
    "group_weight_decay": _of_groups("group_weight_decay", lambda self: list(_decays(self))),
    "need_scale": _Preset(lambda self: self.loss_scale != 1),
    "cache_enable": _Preset(_of_none),
    "ps_parameters": _Preset(_of_none),
    "optim_filter": _Preset(_filter),
    "use_parallel": _Preset(lambda self: False),
    "reciprocal_scale": property(lambda self: 1 / self.loss_scale),
    "map_": _Preset(lambda self: Map()),
    "hyper_map": _Preset(lambda self: HyperMap()),
    "map_reverse": _Preset(lambda self: Map(reverse=True)),
    "hyper_map_reverse": _Preset(lambda self: HyperMap(reverse=True)),
    "assignadd": _Preset(lambda self: assign_add),
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


# ---- Parameters of other dtypes ----------------------------------------------------------------------------

# What fills a parameter is the argument `<name>_init`, but for these.
_INITIALS = {"embedding_table": "embedding_table", "moving_variance": "moving_var_init"}
_FLOATING = (muster.float16, muster.bfloat16, muster.float32, muster.float64)


def default_initial(name: str, weight_shape):
    """What fills the weight and the bias of dense layers and convolutions that were given nothing."""
    if name == "weight":
        return muster.initializers.he_uniform(math.sqrt(5))
    return muster.initializers.uniform(1 / math.sqrt(math.prod(weight_shape[1:])))


def _own_dtype(initial, dtype):
    """A tensor that fills a parameter gives it its dtype, as in MindSpore."""
    is_tensor = isinstance(initial, muster.Tensor) and initial.dtype in _FLOATING
    return initial.dtype if is_tensor else dtype


def in_dtype(cell, dtype) -> None:
    """The parameters of a new cell of the library in the dtype that it was told, filled as it was told."""
    dtype = muster.float32 if dtype is None else muster.dtype(dtype)
    given, own = _attributes.given(cell), cell.parameters_and_names(expand=False)
    has_statistics = any(name == "moving_mean" for name, _ in own)
    if has_statistics and dtype.itemsize < 4:
        kind = type(cell).__name__
        raise NotImplementedError(
            f"mindspore.nn.{kind}(dtype={dtype}) is not provided: its statistics are sums over a batch, "
            "which 16 bits do not hold. Leave dtype out: inputs may be float16 all the same"
        )
    for name, parameter in own:
        initial = given.get(_INITIALS.get(name, f"{name}_init"))
        wanted = dtype if has_statistics else _own_dtype(initial, dtype)
        if wanted is parameter.dtype:
            continue
        if initial is None:
            initial = default_initial(name, cell.weight.shape)
        value = muster.nn.initializer(initial, parameter.shape, wanted)
        made = muster.Parameter(value, name=parameter.name, requires_grad=parameter.requires_grad)
        setattr(cell, name, made)


def of_any_dtype(kind):
    """A class of the library, whose parameters have the dtype that it is told."""
    place = _attributes.argument_names(kind.__init__.__nb_signature__[0][0]).index("dtype")

    @functools.wraps(kind.__init__)
    def init(self, *args, **kwargs):
        if len(args) > place:
            args, dtype = (*args[:place], None, *args[place + 1 :]), args[place]
        else:
            dtype = kwargs.pop("dtype", None)
        kind.__init__(self, *args, **kwargs)
        in_dtype(self, dtype)

    members = {"__init__": init, "__doc__": kind.__doc__, "__module__": "mindspore.nn"}
    return type(kind)(kind.__name__, (kind,), members)


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


def _renamed(self, prefix: str) -> None:
    """Names the parameters of each cell by its key, behind what MindSpore puts before it."""
    above = f"{self.param_prefix}." if self.param_prefix else ""
    for key, cell in _keyed(self) if prefix != above else ():
        path = f"{above}{key}."
        for parameter in cell.get_parameters():
            if parameter.name.startswith(path):
                parameter.name = f"{prefix}{key}.{parameter.name[len(path) :]}"


def _naming(change):
    """A method that changes the list, and names parameters by their keys, as MindSpore names them."""

    @functools.wraps(change)
    def named(self, *given):
        prefix = _prefix_within(_keyed(self))
        answer = change(self, *given)
        _renamed(self, prefix)
        return answer

    return named


def _deleting(delete):
    """`del cells[place]` and `del cells[from:to]`."""

    def deleted(self, places):
        numbers = range(len(self))[places] if isinstance(places, slice) else (places,)
        for number in sorted(numbers, reverse=True):
            delete(self, number)

    return deleted


def _checked(get):
    """`cells[place]`, whose place is a number or a slice."""

    @functools.wraps(get)
    def checked(self, place):
        if not isinstance(place, int | slice):
            raise TypeError(
                f"a place in a {type(self).__name__} is a number or a slice, not {type(place).__name__}"
            )
        return get(self, place)

    return checked


def _keyed(self):
    """The cells with their keys: their places, or what the dict of a SequentialCell has called them."""
    return list(self.name_cells().items())


def install() -> None:
    """Both packages have one class of each, so both have these members once mindspore is imported."""
    for name, member in _MEMBERS.items():
        if not hasattr(Optimizer, name):
            setattr(Optimizer, name, member)
    for name, member in _LOSS_MEMBERS.items():
        setattr(LossBase, name, member)
    muster.Cell.to_float = to_float
    for kind in (muster.nn.CellList, muster.nn.SequentialCell):
        kind.__getitem__ = _checked(kind.__getitem__)
        kind.__delitem__ = _deleting(kind.__delitem__)
        for name in ("append", "extend", "insert", "__iadd__", "__setitem__", "__delitem__"):
            setattr(kind, name, _naming(getattr(kind, name)))
    weights = muster.nn.TrainOneStepCell.weights
    muster.nn.TrainOneStepCell.weights = property(
        lambda self: ParameterTuple(weights.fget(self)), doc="The parameters that the optimizer updates."
    )


install()
