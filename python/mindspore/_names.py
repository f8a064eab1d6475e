"""Names that MindSpore has and Muster has not (yet): every use of one says so."""

import importlib
import importlib.machinery
import os
import sys
import types

from mindspore import _paths

_LEVEL = "GLOG_v"
GLOG_V = os.environ.get(_LEVEL, "2")  # as it was when mindspore was imported; mindspore.log loads later
TYPE_CHECKING = False  # typing takes a while to import
if TYPE_CHECKING:
    from typing import Any


def missing(module: str, later: tuple[str, ...] = (), holders: dict[str, str] | None = None):
    """A module's __getattr__ that says what is not provided.

    Args:
        module: Its name.
        later: Modules below it that are imported when they are used.
        holders: By name, modules that have it, imported likewise.
    """

    def get(name: str) -> "Any":
        path = f"{module}.{name}"
        if name in later or path in _paths.OLDER_PATHS or path in _paths.REFUSED_MODULES:
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
        holder, shared = _paths.ALSO.get(module, (module, ""))
        if name in shared.split():
            return getattr(importlib.import_module(holder), name)
        if (value := importlib.import_module("mindspore._inside").find(module, name)) is not None:
            return value
        # Not `from mindspore import`: that would ask this function for it.
        refused = importlib.import_module("mindspore._refused")
        for above in (module, holder):
            if (value := refused.find(f"{above}.{name}")) is not None:
                setattr(sys.modules[module], name, value)
                return value
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
    """A loader of modules that have the names of another one, or only names that are refused at their use."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module) -> None:
        if module.__name__ in _paths.REFUSED_MODULES:
            module.__all__ = []
            module.__getattr__ = missing(module.__name__)
            return
        holder = importlib.import_module(_paths.OLDER_PATHS[module.__name__])
        module.__doc__ = f"An older path of {holder.__name__}."
        module.__all__ = list(holder.__all__)

        def get(name: str):
            below = f"{module.__name__}.{name}"
            if below in _paths.OLDER_PATHS:
                return importlib.import_module(below)
            try:
                return getattr(holder, name)
            except AttributeError:
                inside = importlib.import_module("mindspore._inside").find(module.__name__, name)
                if (found := inside or _imported_there(name)) is not None:
                    return found
                if name.endswith("_ext") and module.__name__.startswith("mindspore.ops.function."):
                    return getattr(importlib.import_module("mindspore.ops.auto_generate"), name)
                raise

        module.__getattr__ = get


def _imported_there(name: str):
    """What a file of MindSpore has because it imports it: `from mindspore.nn.layer.conv import Parameter`."""
    for holder in ("mindspore", "mindspore.nn", "mindspore.common.initializer", "mindspore.communication"):
        known = importlib.import_module(holder)
        if name in getattr(known, "__all__", ()) and not name.startswith("_"):
            return getattr(known, name)
    return None


class _MissingModules:
    """`from mindspore.nn import Conv2d` and `import mindspore.train` end here, after every other finder."""

    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if name in _paths.OLDER_PATHS or name in _paths.REFUSED_MODULES:
            return importlib.machinery.ModuleSpec(name, _OlderPath, is_package=True)
        if name.startswith("mindspore."):
            raise ImportError(sentence(name))
        return None

    @staticmethod
    def find_distributions(context=None):
        """What importlib.metadata.version("mindspore") asks, by which libraries know what they run on."""
        if context is not None and context.name not in (None, "mindspore"):
            return []
        return [importlib.import_module("mindspore._distribution").Distribution()]


def _beside(path: str, holder: str) -> types.ModuleType:
    """A module for a path that ends like a function: an import that finds it leaves the function in place."""
    module = types.ModuleType(path, f"An older path of {holder}.")
    module.__path__ = []
    module.__getattr__ = lambda name: getattr(importlib.import_module(holder), name)
    return module


def refuse_missing_modules() -> None:
    if not any(finder is _MissingModules for finder in sys.meta_path):
        sys.meta_path.append(_MissingModules)
    for path, holder in _paths.BESIDE_FUNCTIONS.items():
        sys.modules.setdefault(path, _beside(path, holder))
