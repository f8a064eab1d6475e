"""What MindSpore's tensors and parameters have beside muster's; functions by name are in _members."""

import muster
from muster import _core

Tensor = muster.Tensor


def register_hook(self, hook):
    """A function that is called with the gradient of the tensor; what it gives, unless None, takes its place.

    The handle's remove() ends it.
    """
    from mindspore import _hooks

    functions = {0: hook}

    def through(gradient):
        return functions[0](gradient) if functions else None

    _core._set_value(self, _hooks.with_gradient(self, through))
    return _hooks.HookHandle(functions, 0)


_PARAMETER_MEMBERS = {
    "layerwise_parallel": property(lambda self: False, lambda self, value: None),
    "parallel_optimizer": property(lambda self: True, lambda self, value: None),
    "parallel_optimizer_comm_recompute": property(lambda self: False, lambda self, value: None),
    "comm_fusion": property(lambda self: 1, lambda self, value: None),
    "unique": property(lambda self: False, lambda self, value: None),
    "sliced": property(lambda self: False, lambda self, value: None),
    "is_init": property(lambda self: False, lambda self, value: None),
    "cache_enable": property(lambda self: False, lambda self, value: None),
    "cache_shape": property(lambda self: (), lambda self, value: None),
    "is_param_ps": property(lambda self: False),
    "init_in_server": property(lambda self: False, lambda self, value: None),
    "key": property(lambda self: -1, lambda self, value: None),
    "requires_aggr": property(lambda self: True, lambda self, value: None),
    "pipeline_stages": property(lambda self: []),
    "param_info": property(lambda self: self),
    "inited_param": property(lambda self: None),
    "is_default_input_init": property(lambda self: False),
    "copy": lambda self: self.clone(),
}


def _parameter_text(self) -> str:
    return (
        f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype}, "
        f"requires_grad={self.requires_grad})"
    )


def install() -> None:
    """Tensors of both packages are one class, so both have these members once mindspore is imported."""
    Tensor.register_hook = register_hook
    for name, member in _PARAMETER_MEMBERS.items():
        setattr(_core.Parameter, name, member)
    _core.Parameter.__str__ = _parameter_text
    _core.Parameter.__repr__ = _parameter_text


install()
