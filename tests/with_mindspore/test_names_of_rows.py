"""Classes that are made from rows have their names in every package."""

import ast
import inspect
import sys

import pytest
from muster.dataset import transforms, vision
from places import COMPAT_PACKAGES, PACKAGES

from muster import _core, nn

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore
import mindspore.dataset

MODULES = {"vision": (vision, _core._vision), "transforms": (transforms, _core._transforms)}
OPERATIONS = [(module, name) for module, (_, classes) in MODULES.items() for name in sorted(classes)]
OPTIMIZERS = sorted(_core._optimizers)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_has_its_name_in_every_package(name):
    assert getattr(nn, name) is getattr(mindspore.nn, name)
    assert name in nn.__all__ and name in mindspore.nn.__all__
    stub = ast.parse((PACKAGES / "muster/_core.pyi").read_text())
    bodies = {node.name: node.body for node in stub.body if isinstance(node, ast.ClassDef)}
    init = next(node for node in bodies[name] if getattr(node, "name", "") == "__init__")
    assert [argument.arg for argument in init.args.args][:2] == ["self", "params"]
    assert name in (PACKAGES / "muster/nn.pyi").read_text()
    assert inspect.getdoc(getattr(nn, name)) == _core._optimizers[name].__doc__


@pytest.mark.parametrize(("module", "name"), OPERATIONS)
def test_an_operation_has_its_name_in_every_package(module, name):
    ours, classes = MODULES[module]
    theirs = getattr(mindspore.dataset, module)
    assert getattr(ours, name) is classes[name]
    assert issubclass(getattr(theirs, name), classes[name])
    assert name in ours.__all__ and name in theirs.__all__
    assert issubclass(classes[name], _core.Transform) and classes[name].__doc__
    stub = ast.parse((PACKAGES / "muster/_core.pyi").read_text())
    assert name in {node.name for node in stub.body if isinstance(node, ast.ClassDef)}
    assert name in (PACKAGES / f"muster/dataset/{module}.pyi").read_text()
