"""Names that are loaded with their first use: most scripts need none of them."""

import importlib
import sys


def names(module: str, holders: dict[str, str]):
    """The __getattr__ and the __dir__ of `module` for names by the module that has them."""

    def get(name: str):
        whole = sys.modules[module]
        if name not in holders:
            raise AttributeError(f"module '{module}' has no attribute '{name}'", name=name, obj=whole)
        value = getattr(importlib.import_module(holders[name]), name)
        setattr(whole, name, value)  # the next look at it is an ordinary one
        return value

    def list_all():
        return sorted({*vars(sys.modules[module]), *holders})

    return get, list_all
