"""Names of mindspore.ops that load when one of them is first used, so that imports stay fast."""

import functools
import importlib

from mindspore.ops import _inputs

_MODULES = (
    "_numbers",
    "_moves",
    "_places",
    "_windows",
    "_volumes",
    "_resize",
    "_matrices",
    "_lapack",
    "_factors",
    "_later_activations",
    "_random",
    "_boxes",
    "_candidates",
    "_lengths",
    "_host",
    "_hybrid",
    "_later_losses",
    "_later_primitives",
    "_later_layers",
    "_further_primitives",
    "_samplings",
    "_sets",
    "_seldom_primitives",
    "_embedding_caches",
    "_sparse_primitives",
    "_sparse_rows",
    "_rest",
    "_updates",
    "_sparse_tensors",
    "_sparse_updates",
    "_collectives",
    "_data_types",
    "_derivatives",
    "_flash_attention",
    "_taylor",
    "primitive",
    "_named",
    "_view_primitives",
)


@functools.cache
def names() -> dict:
    """All of them, by name."""
    found = {}
    for each in _MODULES:
        module = importlib.import_module(f"mindspore.ops.{each}")
        watch = functools.partial(_inputs.watch, "mindspore.ops")
        found.update((name, watch(name, getattr(module, name))) for name in module.__all__)
    return found


def _refused_ops() -> tuple[str, ...]:
    return importlib.import_module("mindspore._refused").ops_below("mindspore.ops")


def of(missing, own: list, shows_refused=False):
    """The __getattr__ of a module that has the names of this one, too; `own` are its others.

    With `shows_refused` a star also takes the ops that are refused where they are called.
    """

    def get(name: str):
        if name in ("P", "function"):
            return importlib.import_module(f"mindspore.ops.{name.replace('P', 'operations')}")
        if name in ("auto_generate", "functional_overload"):
            return importlib.import_module(f"mindspore.ops.{name}")
        if name == "__all__":
            return sorted({*own, *names(), *(_refused_ops() if shows_refused else ())})
        if name.startswith("__") or name not in names():
            return missing(name)
        return names()[name]

    return get
