"""What MindSpore's optimizers have beside muster.nn.Optimizer's members."""

from collections import OrderedDict

import muster
from mindspore import _cells, _tensors
from mindspore.common.parameter import ParameterTuple
from muster import _attributes

Optimizer = muster.nn.Optimizer
_updated = Optimizer.parameters
_own_parameters_and_names = Optimizer.parameters_and_names


def _parameters(self) -> ParameterTuple:
    """What the optimizer updates."""
    return ParameterTuple(_updated.fget(self))


def parameters_and_names(self, name_prefix="", expand=True):
    """(path, parameter) of what belongs to all steps, of what the optimizer updates, and of its states."""
    own = list(_own_parameters_and_names(self, "", expand))
    paths = [path for path, _ in own]
    first = paths.index("global_step") + 1 if "global_step" in paths else 0
    updated = [(parameter.name, parameter) for parameter in _updated.fget(self)]
    found = {each._address: (path, each) for path, each in [*own[:first], *updated, *own[first:]]}
    prefix = f"{name_prefix}." if name_prefix else ""
    return _cells.Found((prefix + path, each) for path, each in found.values())


def get_parameters(self, expand=True):
    """What parameters_and_names() has, without the paths."""
    return _cells.Found(parameter for _, parameter in self.parameters_and_names(expand=expand))


def parameters_dict(self, recurse=True):
    """The same by name."""
    return OrderedDict((parameter.name, parameter) for parameter in self.get_parameters(recurse))


def trainable_params(self, recurse=True):
    """Those of them that have gradients."""
    return [parameter for parameter in self.get_parameters(recurse) if parameter.requires_grad]


def refuse_tables(call: str, optimizer, instead: str) -> None:
    """An error for tables on parameter servers, to which the gradients of their rows go as they are."""
    for parameter in filter(_tensors.is_served_table, optimizer.parameters):
        raise NotImplementedError(
            f"{call}: the gradients of the rows of table '{parameter.name}' go to parameter servers as they "
            f"are computed, where nothing scales them or takes an update back: {instead}"
        )


def of_steps(optimizer):
    """The optimizer as training steps take it: those of experimental.optim and mint.optim have groups."""
    return optimizer._as_optimizer() if hasattr(optimizer, "_as_optimizer") else optimizer


def with_groups(optimizer):
    """What a script gave for one of these."""
    return getattr(optimizer, "__dict__", {}).get("_with_groups", optimizer)


def refuse_served(optimizer) -> None:
    """An error where parameter servers hold what an optimizer of formulas in Python updates: they have none
    of these, nor does anybody reduce the gradients, so each worker would train a network of its own."""
    for parameter in optimizer.parameters:
        if _tensors.is_served(parameter):
            raise NotImplementedError(
                f"{type(optimizer).__name__} has no rule for parameter '{parameter.name}', which lives on "
                "parameter servers: choose SGD, Momentum, Adagrad, Adam, LazyAdam or FTRL of mindspore.nn, "
                "or leave out set_param_ps for it"
            )


class _IteratorLearningRate(muster.nn.LearningRateSchedule):
    """The rates of all steps, by MindSpore's name: called with a step it gives the rate of that."""

    def __init__(self, rates):
        super().__init__()
        self.__dict__["learning_rate"] = rates  # a parameter of the optimizer's

    def construct(self, global_step):
        if self.learning_rate.ndim == 0:
            return self.learning_rate
        last = self.learning_rate.size - 1
        return muster.ops.gather(self.learning_rate, muster.ops.minimum(global_step, last), 0)


_learning_rate = Optimizer.learning_rate


def _called(self, rate):
    """A cell that is called with a step: a schedule, or one for a parameter of rates, made once."""
    if isinstance(rate, muster.Cell):
        return rate
    cells = self.__dict__.setdefault("_rates", {})
    if rate._address not in cells:
        cells[rate._address] = _IteratorLearningRate(rate)
    return cells[rate._address]


def _rates(self):
    """A parameter, or a cell where steps have rates of their own; with rates of groups a tuple, one for each
    parameter, all of one kind."""
    rates = _learning_rate.fget(self)
    each = rates if isinstance(rates, tuple) else (rates,)
    if any(isinstance(rate, muster.Cell) or rate.ndim > 0 for rate in each):
        each = tuple(_called(self, rate) for rate in each)
    return each if isinstance(rates, tuple) else each[0]


def get_lr_parameter(self, param):
    """The learning rate of a parameter, or of several as a tuple."""
    if isinstance(param, (tuple, list)):
        return tuple(self.get_lr_parameter(each) for each in param)
    names = [parameter.name for parameter in _parameters(self)]
    if not isinstance(param, muster.Parameter) or param.name not in names:
        raise TypeError(f"get_lr_parameter() takes a parameter that the optimizer updates, not {param!r}")
    rates = _learning_rate.fget(self)
    return rates[names.index(param.name)] if isinstance(rates, tuple) else rates


def _each(decays, number):
    """Numbers as tensors; cells as `number` takes them. With groups a tuple of those of all parameters."""
    if isinstance(decays, tuple):
        return tuple(_each(decay, number) for decay in decays)
    return muster.ops.full((), decays, dtype=muster.float32) if isinstance(decays, float) else number(decays)


def _weight_decay(self, given):
    return _each(self._given_weight_decay, lambda cell: cell)


def get_weight_decay(self):
    """The weight decay of the next step; with groups a tuple of those of all parameters."""
    if hasattr(type(self), "weight_decay") or "weight_decay" in self.__dict__:  # a class of one's own
        return self.weight_decay
    return _each(self._given_weight_decay, lambda cell: cell(self.global_step))


def broadcast_params(self, optim_result):
    """What it is given: parameters are updated on every worker."""
    return optim_result


def flatten_gradients(self, gradients):
    """What it is given: gradients are joined by size (comm_fusion)."""
    return gradients


def _sparse_primitive(self):
    """What MindSpore's compiler would read of updates of single rows (add_prim_attr)."""
    from mindspore.ops import Primitive

    if "_sparse_opt" not in self.__dict__:
        self.__dict__["_sparse_opt"] = Primitive(f"FusedSparse{type(self).__name__}")
    return self.__dict__["_sparse_opt"]


_MEMBERS = {
    "parameters": property(_parameters, _updated.fset, doc=_parameters.__doc__),
    "parameters_and_names": parameters_and_names,
    "get_parameters": get_parameters,
    "parameters_dict": parameters_dict,
    "trainable_params": trainable_params,
    "learning_rate": property(_rates, _learning_rate.fset, doc=_rates.__doc__),
    "get_lr_parameter": get_lr_parameter,
    "get_weight_decay": get_weight_decay,
    "broadcast_params": broadcast_params,
    "flatten_gradients": flatten_gradients,
    "unique": property(lambda self: True, lambda self, value: None),
    "target": property(lambda self: "CPU", lambda self, value: None),
    "sparse_opt": property(_sparse_primitive),
    "param_length": property(lambda self: len(_updated.fget(self))),
    "group_params": property(_parameters),
    "is_group_lr": property(lambda self: isinstance(self.learning_rate, (tuple, list))),
}


# ---- What optimizers were made with, and their states ------------------------------------------------------


def _settings(optimizer) -> dict:
    """What a built-in optimizer was made with, by name; nothing of others."""
    return optimizer.__dict__.get("_settings", {})


def _setting(name):
    def get(optimizer, given):
        settings = _settings(optimizer)
        if name not in settings:
            raise AttributeError(f"'{type(optimizer).__name__}' has no attribute '{name}'")
        return settings[name]

    return get


def _tensor(name, shape=()):
    """A setting that is a tensor in MindSpore; what is no number, as a schedule of decays, stays as it is."""

    def get(optimizer, given):
        value = _setting(name)(optimizer, given)
        if not isinstance(value, (int, float)):
            return value
        return muster.ops.full(shape, float(value), dtype=muster.float32)

    return get


def _power(name):
    def get(optimizer, given):
        return muster.ops.pow(_tensor(name)(optimizer, given), optimizer.global_step.reshape(()))

    return get


def _states(prefix):
    """The states whose names begin so, one for each parameter."""

    def get(optimizer, given):
        states = (each for _, each in _own_parameters_and_names(optimizer))
        found = [each for each in states if each.name.startswith(f"{prefix}.")]
        if not found:
            raise AttributeError(f"this {type(optimizer).__name__} keeps no '{prefix}'")
        return ParameterTuple(found)

    return get


def _all(kind, *names):
    return {name: kind(name) for name in names}


_BETAS = {**_all(_tensor, "beta1", "beta2", "eps")}
_BETAS_OF_ONE = {name: _tensor(name, (1,)) for name in ("beta1", "beta2", "eps")}
_OF_OPTIMIZERS = {
    "Momentum": {
        **_all(_tensor, "momentum"),
        **_all(_setting, "use_nesterov"),
        "moments": _states("moments"),
        "params": lambda optimizer, given: _parameters(optimizer),
    },
    "SGD": {
        **_all(_tensor, "momentum"),
        **_all(_setting, "dampening", "nesterov"),
        **_all(_states, "accum", "stat"),
    },
    "Adam": {
        **_BETAS,
        "beta1_power": _power("beta1"),
        "beta2_power": _power("beta2"),
        **_all(_setting, "use_locking", "use_nesterov", "use_amsgrad", "use_lazy", "use_offload"),
        **_all(_states, "moment1", "moment2", "vhat"),
    },
    "AdamWeightDecay": {**_BETAS_OF_ONE, "moments1": _states("adam_m"), "moments2": _states("adam_v")},
    "Lamb": {
        **_BETAS_OF_ONE,
        "moments1": _states("lamb_m"),
        "moments2": _states("lamb_v"),
        "params": lambda optimizer, given: _parameters(optimizer),
    },
    "RMSProp": {
        **_all(_setting, "momentum", "centered", "epsilon", "decay"),
        "mg": _states("mean_grad"),
        "ms": _states("mean_square"),
        "moment": _states("moment"),
    },
    "Adagrad": {"accum": _states("accum")},
    "FTRL": {
        **_all(_setting, "l1", "l2", "lr_power", "use_locking"),
        "lr": _setting("learning_rate"),
        **_all(_states, "moments", "linear"),
    },
    "Optimizer": {"weight_decay": _weight_decay},
}


# Settings that are floats in MindSpore, where a whole number is a mistake.
_FLOATS = {
    "Adam": ("beta1", "beta2", "eps"),
    "AdamWeightDecay": ("beta1", "beta2", "eps"),
    "Adagrad": ("accum",),
    "LARS": ("epsilon", "coefficient"),
    "FTRL": ("initial_accum", "learning_rate", "lr_power", "l1", "l2"),
    "Momentum": ("momentum",),
    "RMSProp": ("decay", "momentum", "epsilon"),
}


def require_floats(of, **settings) -> None:
    """Raises TypeError for the settings that are whole numbers."""
    for name, value in settings.items():
        if isinstance(value, int):
            raise TypeError(
                f"For '{of}', the type of '{name}' should be 'float', but got type '{type(value).__name__}'."
            )


def _check_settings(kind, settings) -> None:
    require_floats(kind, **{name: settings[name] for name in _FLOATS.get(kind, ())})


def install() -> None:
    """Optimizers of both packages are one class, so both have these members once mindspore is imported."""
    for name, member in _MEMBERS.items():
        setattr(Optimizer, name, member)
    muster._core._check_settings_of_optimizers(_check_settings)
    for kind, attributes in _OF_OPTIMIZERS.items():
        _attributes._SPECIAL[kind] = {**_attributes._SPECIAL.get(kind, {}), **attributes}


install()
