"""What libraries for MindSpore import from its inside and Muster has by another name, or as a few lines.

An import that fails stops the whole library, also where one function of it uses the name. `find` gives what
stands at a path; what has no meaning on a CPU is refused at its use (`_refused.py`).
"""

import contextlib
import importlib
import os


def _initializer_tensor(kind: str, **settings):
    from mindspore.common import initializer

    def elements(shape):
        return initializer.initializer(getattr(initializer, kind)(**settings), list(shape)).asnumpy()

    return elements


def _init_random_normal(mean, sigma, shape):
    """numpy's array of a normal distribution; two calls draw other elements."""
    return _initializer_tensor("Normal", sigma=float(sigma), mean=float(mean))(shape)


def _init_random_uniform(a, b, shape):
    """numpy's array of a uniform distribution from `a` to `b`."""
    half = (b - a) / 2
    return _initializer_tensor("Uniform", scale=float(half))(shape) + (a + half)


def _get_graph_seed(op_seed, kernel_name):
    """The two seeds of a random op of this name: that of `set_seed`, then its own."""
    from mindspore import _misc

    return (_misc.get_seed() or 0, op_seed or 0)


def _make_directory(path, arg_name="path") -> str:
    """The real path of a folder, which is made where it is not there."""
    if not isinstance(path, str) or not path.strip():
        raise TypeError(f"{arg_name} is the path of a folder, not {path!r}")
    real = os.path.realpath(path)
    os.makedirs(real, exist_ok=True)
    return real


def _handle_loss(loss):
    """A loss as callbacks print it: a number, or the first of several tensors."""
    import muster

    if isinstance(loss, (tuple, list)):
        return loss[0] if isinstance(loss[0], muster.Tensor) else loss
    return float(loss.asnumpy().mean()) if isinstance(loss, muster.Tensor) else loss


def _transfer_tensor_to_tuple(inputs):
    """One tensor as a tuple of it."""
    import muster

    return (inputs,) if isinstance(inputs, muster.Tensor) else inputs


def _set_cur_net(net) -> None:
    """Nothing: a checkpoint is asked for with its network."""


def _is_sharding_propagation() -> bool:
    """Whether the script has chosen this search for the layouts of its ops."""
    from mindspore import context

    settings = map(context.get_auto_parallel_context, ("search_mode", "auto_parallel_search_mode"))
    return "sharding_propagation" in settings


def _device_number_check(parallel_mode, device_number) -> None:
    if parallel_mode == "stand_alone" and device_number != 1:
        raise ValueError(f"parallel_mode='stand_alone' is of one device, not of {device_number}")


def _get_parameter_broadcast() -> bool:
    """What set_auto_parallel_context was given as parameter_broadcast."""
    from mindspore import context

    return context.get_auto_parallel_context("parameter_broadcast")


def _grad_overflow(gradient):
    """1.0 where an element of the gradient is not finite, else 0.0."""
    from mindspore import ops

    return 1.0 - ops.isfinite(gradient).all().astype("float32")


_registered: dict = {}  # initializers of scripts, by name


def _register(*aliases):
    """A decorator of an initializer's class, which is kept under its name and these."""

    def keep(kind):
        for name in (kind.__name__.lower(), *aliases):
            _registered.setdefault(name, kind)
        return kind

    return keep


_MOMENTS = "begin end epoch_begin epoch_end step_begin step_end"


class _CallbackManager:
    """Callbacks that are called together, as loops of libraries' own do: within `with`, by their methods."""

    def __init__(self, callbacks=None):
        several = isinstance(callbacks, (list, tuple))
        self._callbacks = list(callbacks) if several else [] if callbacks is None else [callbacks]
        self._entered = contextlib.ExitStack()
        for each in self._callbacks:
            _check_callback(each)

    def __enter__(self):
        for each in self._callbacks:
            self._entered.enter_context(each)
        return self

    def __exit__(self, *error):
        return self._entered.__exit__(*error)

    def __getattr__(self, name):
        plain = name.removeprefix("on_").removeprefix("train_").removeprefix("eval_")
        if plain not in _MOMENTS.split():
            raise AttributeError(f"_CallbackManager has no {name}")

        def call(run_context):
            for each in self._callbacks:
                defined = next((own for own in (name, plain) if _defines(each, own)), None)
                if defined is not None:
                    getattr(each, defined)(run_context)

        return call


def _check_callback(each) -> None:
    from mindspore.train import Callback

    if not isinstance(each, Callback):
        raise TypeError(f"CallbackManager: callbacks are Callbacks or a list of them, not {each!r}")


def _defines(callback, name: str) -> bool:
    """Whether the callback's class, or one above it, has a method of its own for the moment."""
    from mindspore.train import Callback

    return getattr(type(callback), name) is not getattr(Callback, name)


class Backend:
    """The names of what collectives run by, of which Muster has its own here."""

    UNDEFINED, HCCL, NCCL, HCCL_MPI, MCCL = "undefined", "hccl", "nccl", "hccl_mpi", "mccl"


class StubTensor:
    """The class of tensors without elements yet, of which there are none here: isinstance says False."""


def _function_forbid_reuse(func):
    """The function, which MindSpore's graphs do not share between calls."""
    return func


class _StepSync:
    """A callback that does nothing: steps have ended when callbacks are called."""

    def __new__(cls):
        from mindspore.train import Callback

        return Callback()


_HERE = {
    "mindspore.common.api": "StubTensor _function_forbid_reuse",
    "mindspore.common.initializer": "_init_random_normal _init_random_uniform _register",
    "mindspore.common.seed": "_get_graph_seed",
    "mindspore.common._stub_tensor": "StubTensor",
    "mindspore.common.tensor": "StubTensor",
    "mindspore.nn.wrap.loss_scale": "_grad_overflow",
    "mindspore.parallel._utils": "_device_number_check _get_parameter_broadcast _is_sharding_propagation",
    "mindspore.train._utils": "_make_directory",
    "mindspore.train.callback._callback": (
        "_CallbackManager _CallbackManager:CallbackManager _handle_loss _set_cur_net:set_cur_net"
    ),
    "mindspore.train": "_CallbackManager _set_cur_net",
    "mindspore.train.model": "_CallbackManager _StepSync _transfer_tensor_to_tuple",
}
_ELSEWHERE = {
    "mindspore.common.tensor": {"_TensorMeta": "mindspore._tensors.TensorMeta"},
    "mindspore.communication._comm_helper": {"Backend": "mindspore._inside.Backend"},
    "mindspore.common.api": {"_pynative_executor": "mindspore._misc._pynative_executor"},
    "mindspore.common.hook_handle": {"HookHandle": "mindspore._hooks.HookHandle"},
    "mindspore.common.initializer": {"Tensor": "muster.Tensor"},
    "mindspore.common.sparse_tensor": {"RowTensorInner": "mindspore.common._sparse.RowTensor"},
    "mindspore.ops.function.nn_func": {
        name: f"mindspore.ops._attention_parts.{name}"
        for name in (
            *("_check_attn_mask_shape", "_check_kpm_shape", "_check_qkv_shape", "_in_projection"),
            *("_in_projection_packed", "_inner_dropout", "_inner_pad", "_interploate_ext_make_tuple"),
            *("_interpolate_ext_scale_factor_convert_size", "linear"),
        )
    },
    "mindspore.ops": {"Tensor": "muster.Tensor", "Parameter": "muster.Parameter"},
    "mindspore.train.callback._callback": {
        "InternalCallbackParam": "mindspore.train._more_callbacks.InternalCallbackParam"
    },
    "mindspore.train._utils": {"check_value_type": "mindspore._checkparam.check_value_type"},
    "mindspore.train.model": {
        "DatasetHelper": "mindspore.train.DatasetHelper",
        "RunContext": "mindspore.train.RunContext",
        "Validator": "mindspore._checkparam",
        "_InternalCallbackParam": "mindspore.train._more_callbacks._InternalCallbackParam",
        "connect_network_with_dataset": "mindspore.train.connect_network_with_dataset",
        "context": "mindspore.context",
    },
}


def find(module: str, name: str):
    """What stands at the name; None: nothing that is told here or refused."""
    for entry in _HERE.get(module, "").split():
        own, _, shown = entry.partition(":")
        if name == (shown or own):
            return globals()[own]
    if module == "mindspore.dataset" and name.endswith("Dataset"):
        kinds = importlib.import_module("mindspore.dataset._step_kinds")
        return getattr(kinds, name) if name in kinds.__all__ else None
    path = _ELSEWHERE.get(module, {}).get(name)
    if path is None:
        return importlib.import_module("mindspore._refused").find(f"{module}.{name}")
    holder, _, last = path.rpartition(".")
    found = getattr(importlib.import_module(holder), last, None)
    return importlib.import_module(path) if found is None else found
