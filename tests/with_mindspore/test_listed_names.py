"""Each name that a module lists can be had, also those that are loaded with their first use."""

import importlib
import pkgutil

import mindspore
import pytest

import muster

MODULES = sorted(
    module.name
    for package in (muster, mindspore)
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + ".")
    if not module.name.endswith((".torch", "._check"))  # PyTorch is no part of this; a command
)


@pytest.mark.parametrize("name", MODULES)
def test_every_listed_name_is_there(name):
    modules = [importlib.import_module(name)]
    for each in pkgutil.walk_packages(vars(modules[0]).get("__path__", ()), name + "."):
        modules.append(importlib.import_module(each.name))
    missing = [
        f"{module.__name__}.{listed}"
        for module in modules
        for listed in getattr(module, "__all__", ())
        if not hasattr(module, listed)
    ]
    assert missing == []
