"""Steps of load_param_into_net under MindSpore's names, for libraries that load parameters one by one."""

from mindspore.train import serialization
from mindspore.train.serialization import _prefixes

_CALL = "mindspore.load_param_into_net"


def _update_param(param, new_param, strict_load):
    """`param` takes the elements of `new_param`, which must be like it."""
    fits = serialization._fits(param, new_param, strict_load)
    if not fits or tuple(new_param.shape) != tuple(param.shape):
        raise RuntimeError(serialization._difference(_CALL, param, new_param))
    param.set_data(new_param.astype(param.dtype))


def _load_dismatch_prefix_params(net, parameter_dict, param_not_load, strict_load):
    """Loads what is still missing from names that begin with more, and takes it out of `param_not_load`."""
    found, _ = _prefixes.behind(param_not_load, parameter_dict)
    for parameter in net.get_parameters():
        if parameter.name in found and parameter.name in param_not_load:
            _update_param(parameter, found[parameter.name], strict_load)
            param_not_load.remove(parameter.name)
