"""Typed stubs: what editors and type checkers see."""

import ast

from places import PACKAGES

import muster


def classes_and_functions():
    tree = ast.parse((PACKAGES / "muster/_core.pyi").read_text())
    return {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}


def test_every_public_name_is_in_the_stub():
    stubbed = classes_and_functions()
    public = {name for module in (muster.nn, muster.ops) for name in module.__all__}
    public |= {"Tensor", "Parameter", "value_and_grad", "init", "MnistDataset", "Rescale"}
    assert public - set(stubbed) == set()


def test_methods_carry_their_types():
    tensor = classes_and_functions()["Tensor"]
    methods = {node.name: ast.unparse(node) for node in tensor.body if isinstance(node, ast.FunctionDef)}
    assert "-> tuple[int, ...]" in methods["shape"]
    assert "-> bool | int | float" in methods["item"]


def test_the_package_says_that_it_is_typed():
    assert (PACKAGES / "muster/py.typed").exists()


def public_objects():
    for module in (muster, muster.nn, muster.ops, muster.initializers, muster.dataset):
        for name in module.__all__:
            yield f"{module.__name__}.{name}", getattr(module, name)
    for module in (muster.dataset.vision, muster.dataset.transforms):
        for name in module.__all__:
            yield f"{module.__name__}.{name}", getattr(module, name)


def test_every_public_name_has_a_docstring():
    bare = [
        name for name, value in public_objects() if not isinstance(value, muster.DType) and not value.__doc__
    ]
    assert bare == []
