"""Expressions of MindSpore's names give what MindSpore 2.7.0 gave (tests/parity/expressions.py)."""

import subprocess
import sys

import pytest
from job import clean_environment
from places import ROOT

NAMES = sorted(place.stem for place in (ROOT / "tests/parity/expressions").glob("*.txt"))


def test_there_are_expressions():
    assert len(NAMES) >= 1


@pytest.mark.parametrize("mode", ["--check", "--eager"])
@pytest.mark.parametrize("name", NAMES)
def test_expressions_agree_with_mindspores_figures(name, mode):
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/parity/expressions.py"), mode, name],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1 and done.stdout.endswith(" agree\n"), done.stdout


LOADED = """
import sys, mindspore
print([name for name in sys.modules if name.startswith(("mindspore.numpy", "mindspore.mint", "numpy"))])
mindspore.numpy.sum
print("mindspore.numpy" in sys.modules, "numpy" in sys.modules)
"""


def test_mindspores_numpy_is_loaded_when_it_is_asked_for():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines() == ["[]", "True False"], done.stderr


SIGNATURES = """
import importlib, inspect, mindspore
modules = ("numpy", "mint", "mint.nn", "mint.nn.functional", "mint.linalg", "mint.special", "mint.optim")
modules += ("experimental.optim", "experimental.optim.lr_scheduler")
places = {f"mindspore.{name}": importlib.import_module(f"mindspore.{name}") for name in modules}
names = [(place, name) for place, module in places.items() for name in module.__all__]
names += [("Tensor", name) for name in dir(mindspore.Tensor) if not name.startswith("_")]
for place, name in names:
    value = getattr(places.get(place, mindspore.Tensor), name, None)
    if inspect.isfunction(value) or (inspect.isclass(value) and "mint" in value.__module__):
        inspect.signature(value)
        words = (value.__doc__ or "").strip().splitlines()
        if not words or not words[0].endswith("."):
            print(place, name, words)
"""


def test_every_function_says_what_it_does():
    done = subprocess.run(
        [sys.executable, "-c", SIGNATURES],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


MEMBERS = """
import importlib
from mindspore import _members
for module, names in _members._OWN.items():
    found = vars(importlib.import_module(f"mindspore._members.{module}"))
    print(*[name for name in names.split() if name not in found])
import mindspore as ms
x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
try:
    x.storage
except AttributeError as error:
    print(error)
print(x.std.__name__, x.mT.shape, isinstance(ms.Tensor.__dict__["std"], type(ms.grad)))
"""


def test_members_of_tensor_are_put_in_place_when_they_are_asked_for():
    done = subprocess.run(
        [sys.executable, "-c", MEMBERS], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    *lines, missing, found = done.stdout.splitlines()
    assert lines == [""] * len(lines), done.stdout
    assert "'Tensor' object has no attribute 'storage'" in missing, done.stderr
    assert found == "std (2, 2) True"


PATHS = """
from mindspore.ops.auto_generate import gen_ops_prim
from mindspore.ops.auto_generate.gen_ops_prim import Add, MatMul
from mindspore.ops.auto_generate.pyboost_inner_prim import concat_impl, softmax_impl
from mindspore import ops
print(Add is ops.Add, concat_impl is ops.concat, gen_ops_prim.ReLU is ops.ReLU)
try:
    gen_ops_prim.NoSuchOp
except AttributeError as error:
    print(error)
"""


def test_ops_are_found_by_the_paths_of_tables():
    done = subprocess.run(
        [sys.executable, "-c", PATHS], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    first, missing = done.stdout.splitlines()
    assert first == "True True True", done.stderr
    assert "gen_ops_prim.NoSuchOp is not provided" in missing
