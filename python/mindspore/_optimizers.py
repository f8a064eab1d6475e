"""What MindSpore's optimizers have beside muster.nn.Optimizer's members."""

import muster
from mindspore.common.parameter import ParameterTuple

Optimizer = muster.nn.Optimizer
_updated = Optimizer.parameters


def _parameters(self) -> ParameterTuple:
    """What the optimizer updates."""
    return ParameterTuple(_updated.fget(self))


def get_lr_parameter(self, param):
    """The learning rate of a parameter, or of several as a tuple."""
    if isinstance(param, (tuple, list)):
        return tuple(self.get_lr_parameter(each) for each in param)
    names = [parameter.name for parameter in _parameters(self)]
    if not isinstance(param, muster.Parameter) or param.name not in names:
        raise TypeError(f"get_lr_parameter() takes a parameter that the optimizer updates, not {param!r}")
    rates = self.learning_rate
    return rates[names.index(param.name)] if isinstance(rates, (tuple, list)) else rates


def get_weight_decay(self):
    """The weight decay; with groups a tuple of those of all parameters."""
    if hasattr(type(self), "weight_decay") or "weight_decay" in self.__dict__:
        return self.weight_decay
    return muster._attributes._arguments(self).get("weight_decay", 0.0)  # a class of one's own


def broadcast_params(self, optim_result):
    """What it is given: parameters are updated on every worker."""
    return optim_result


def flatten_gradients(self, gradients):
    """What it is given: gradients are joined by size (comm_fusion)."""
    return gradients


_MEMBERS = {
    "parameters": property(_parameters, _updated.fset, doc=_parameters.__doc__),
    "get_lr_parameter": get_lr_parameter,
    "get_weight_decay": get_weight_decay,
    "broadcast_params": broadcast_params,
    "flatten_gradients": flatten_gradients,
    "unique": property(lambda self: True, lambda self, value: None),
    "target": property(lambda self: "CPU", lambda self, value: None),
    "param_length": property(lambda self: len(_updated.fget(self))),
    "group_params": property(_parameters),
    "is_group_lr": property(lambda self: isinstance(self.learning_rate, (tuple, list))),
}


def install() -> None:
    """Optimizers of both packages are one class, so both have these members once mindspore is imported."""
    for name, member in _MEMBERS.items():
        setattr(Optimizer, name, member)


install()
