"""Names that MindSpore has and Muster has not (yet): every use of one says so."""

import importlib
import importlib.machinery
import os
import sys

from muster import _core

_LEVEL = "GLOG_v"
GLOG_V = os.environ.get(_LEVEL, "2")  # as it was when mindspore was imported; mindspore.log loads later
TYPE_CHECKING = False  # typing takes a while to import
if TYPE_CHECKING:
    from typing import Any

# Other paths to the names of a module, many of older versions: the modules that hold them.
_OLDER_PATHS = {
    "mindspore.common.api": "mindspore.common",
    "mindspore.common.seed": "mindspore.common",
    "mindspore.common.tensor": "mindspore.common",
    "mindspore.common.jit_config": "mindspore.common",
    "mindspore.communication.management": "mindspore.communication",
    "mindspore.nn.cell": "mindspore.nn",
    "mindspore.nn.dynamic_lr": "mindspore.nn",
    "mindspore.nn.layer": "mindspore.nn",
    **{
        f"mindspore.nn.layer.{part}": "mindspore.nn"
        for part in (
            *("activation", "basic", "combined", "container", "conv", "embedding", "image", "math"),
            *("normalization", "padding", "pooling", "rnn_cells", "rnns", "transformer"),
            *("channel_shuffle", "timedistributed"),
        )
    },
    "mindspore.nn.learning_rate_schedule": "mindspore.nn",
    "mindspore.nn.loss": "mindspore.nn",
    "mindspore.nn.loss.loss": "mindspore.nn",
    "mindspore.nn.metrics": "mindspore.train.metrics",
    "mindspore.nn.optim": "mindspore.nn",
    "mindspore.nn.optim.optimizer": "mindspore.nn",
    "mindspore.nn.wrap": "mindspore.nn",
    "mindspore.nn.wrap.cell_wrapper": "mindspore.nn",
    "mindspore.nn.wrap.grad_reducer": "mindspore.nn",
    "mindspore.nn.wrap.loss_scale": "mindspore.nn",
    **dict.fromkeys(
        (
            "mindspore.ops.auto_generate",
            "mindspore.ops.auto_generate.gen_ops_def",
            "mindspore.ops.auto_generate.gen_ops_prim",
            "mindspore.ops.composite.base",
            "mindspore.ops.composite.multitype_ops",
            "mindspore.ops.composite.multitype_ops.zeros_like_impl",
            "mindspore.ops.function",
            "mindspore.ops.operations._inner_ops",
            "mindspore.ops.operations._map_tensor_ops",
            "mindspore.ops.operations._quant_ops",
            "mindspore.ops.operations._rl_inner_ops",
            "mindspore.ops.operations._scalar_ops",
            "mindspore.ops.operations._sequence_ops",
            *(
                f"mindspore.ops.function.{part}_func"
                for part in (
                    *("array", "clip", "debug", "fft", "image", "linalg", "math", "nn", "other"),
                    *("parameter", "random", "sparse", "sparse_unary", "spectral", "vmap"),
                )
            ),
            "mindspore.ops.function.grad",
            "mindspore.ops.function.grad.grad_func",
            *(
                f"mindspore.ops.operations.{part}_ops"
                for part in (
                    *("array", "comm", "control", "custom", "debug", "image", "inner", "linalg"),
                    *("math", "nn", "other", "random", "rl", "sparse", "spectral"),
                )
            ),
            "mindspore.ops.operations.manually_defined",
            "mindspore.ops.operations.manually_defined.ops_def",
        ),
        "mindspore.ops",
    ),
    "mindspore.ops.operations._grad_ops": "mindspore.ops._gradient_primitives",
    "mindspore.train.amp": "mindspore.amp",
    "mindspore.dataset.callback": "mindspore.dataset._callbacks",
    "mindspore.dataset.core": "mindspore.dataset",
    "mindspore.dataset.core.config": "mindspore.dataset.config",
    "mindspore.dataset.engine": "mindspore.dataset",
    "mindspore.dataset.engine.datasets": "mindspore.dataset",
    "mindspore.dataset.engine.datasets_standard_format": "mindspore.dataset",
    "mindspore.dataset.engine.datasets_text": "mindspore.dataset",
    "mindspore.dataset.engine.datasets_user_defined": "mindspore.dataset",
    "mindspore.dataset.engine.datasets_vision": "mindspore.dataset",
    "mindspore.dataset.engine.iterators": "mindspore.dataset._iterators",
    "mindspore.dataset.engine.samplers": "mindspore.dataset",
    "mindspore.dataset.audio.transforms": "mindspore.dataset.audio",
    "mindspore.dataset.audio.utils": "mindspore.dataset.audio",
    "mindspore.dataset.text.transforms": "mindspore.dataset.text",
    "mindspore.dataset.text.utils": "mindspore.dataset.text",
    "mindspore.train.callback._callback": "mindspore.train.callback",
    "mindspore.train.callback._loss_monitor": "mindspore.train.callback",
    "mindspore.train.callback._time_monitor": "mindspore.train.callback",
    **{
        f"mindspore.train.callback.{part}": "mindspore.train.callback"
        for part in (
            *("_backup_and_restore", "_checkpoint", "_early_stop", "_history", "_lambda_callback"),
            *("_lr_scheduler_callback", "_reduce_lr_on_plateau"),
        )
    },
    **{
        f"mindspore.train.metrics.{part}": "mindspore.train.metrics"
        for part in (
            *("accuracy", "bleu_score", "confusion_matrix", "cosine_similarity", "dice", "error", "fbeta"),
            *("hausdorff_distance", "loss", "mean_surface_distance", "metric", "occlusion_sensitivity"),
            *("perplexity", "precision", "recall", "roc", "root_mean_square_surface_distance", "topk"),
        )
    },
    "mindspore.mindrecord.filereader": "mindspore.mindrecord",
    "mindspore.mindrecord.filewriter": "mindspore.mindrecord",
    "mindspore.train.loss_scale_manager": "mindspore.amp",
    "mindspore.train.summary": "mindspore.train",
    "mindspore.train.summary.summary_record": "mindspore.train",
    **{f"mindspore.nn.optim.{name.lower()}": "mindspore.nn" for name in _core._optimizers},
}


def missing(module: str, later: tuple[str, ...] = (), holders: dict[str, str] | None = None):
    """A module's __getattr__ that says what is not provided.

    Args:
        module: Its name.
        later: Modules below it that are imported when they are used.
        holders: By name, modules that have it, imported likewise.
    """

    def get(name: str) -> "Any":
        if name in later or f"{module}.{name}" in _OLDER_PATHS:
            return importlib.import_module(f"{module}.{name}")
        if holders and name in holders:
            value = getattr(importlib.import_module(holders[name]), name)
            if module == "mindspore.nn":
                from mindspore import _kinds

                value = _kinds.watch(f"nn.{name}", value)
            setattr(sys.modules[module], name, value)
            return value
        if name.startswith("__"):
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        raise AttributeError(sentence(f"{module}.{name}"))

    return get


def later(module: str, holders: dict, submodules=()):
    """A module's __getattr__: names that load with their first use, by the module that has them."""
    say = missing(module)

    def get(name: str):
        if name in holders:
            return getattr(importlib.import_module(f"{module}.{holders[name]}"), name)
        if name in submodules:
            try:
                return importlib.import_module(f"{module}.{name}")
            except ImportError:
                return say(name)
        return say(name)

    return get


def sentence(name: str) -> str:
    return f"{name} is not provided by Muster yet (what is there, and what differs: docs/guide/mindspore.md)"


def refuse(call: str, /, **arguments) -> None:
    """Raises unless each argument, given as (value, neutral ones...), is neutral: it changes nothing here."""
    for name, (value, *neutral) in arguments.items():
        if value not in neutral:
            raise NotImplementedError(sentence(f"{call}({name}={value!r})"))


class _OlderPath:
    """A loader of modules that have the names of another one."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module) -> None:
        holder = importlib.import_module(_OLDER_PATHS[module.__name__])
        module.__doc__ = f"An older path of {holder.__name__}."
        module.__all__ = list(holder.__all__)

        def get(name: str):
            below = f"{module.__name__}.{name}"
            return importlib.import_module(below) if below in _OLDER_PATHS else getattr(holder, name)

        module.__getattr__ = get


class _MissingModules:
    """`from mindspore.nn import Conv2d` and `import mindspore.train` end here, after every other finder."""

    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if name in _OLDER_PATHS:
            return importlib.machinery.ModuleSpec(name, _OlderPath, is_package=True)
        if name.startswith("mindspore."):
            raise ImportError(sentence(name))
        return None


def refuse_missing_modules() -> None:
    if not any(finder is _MissingModules for finder in sys.meta_path):
        sys.meta_path.append(_MissingModules)
