"""The reference pages: made from the docstrings, of every public name."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "make_reference.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("make_reference", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_reference"] = module
    spec.loader.exec_module(module)
    return module


class Named:
    """A class with words."""

    def __init__(self, size: int = 3):
        """What `size` is."""

    def explained(self):
        """Says something."""

    def silent(self):
        pass


def module_with(**names):
    module = type(sys)("some.module")
    module.__doc__ = "Words of the module."
    module.__all__ = list(names)
    for name, value in names.items():
        setattr(module, name, value)
    return module


def test_the_pages_are_up_to_date_and_every_public_name_has_words():
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_class_shows_its_arguments_its_words_and_its_methods(tool):
    text = tool.Page(module_with(Named=Named)).text()
    assert "Named(size: int = 3)" in text
    assert "A class with words.\n\nWhat `size` is.\n" in text
    assert "- `explained()`: Says something.\n- `silent`" in text


def test_a_name_without_words_is_a_problem(tool):
    page = tool.Page(module_with(nothing=lambda: None))
    assert page.unexplained == ["some.module.nothing"]
