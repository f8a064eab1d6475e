"""Modules that a script may have imported."""

import importlib
import sys
from types import ModuleType


def loaded(name: str) -> ModuleType | None:
    """The module, whole: one that another thread is just importing is waited for. None where nobody does."""
    return importlib.import_module(name) if name in sys.modules else None
