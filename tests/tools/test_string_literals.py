"""tools/string_literals.py fills the lines of texts in C++, and changes no text."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from string_literals import WIDTH, filled  # noqa: E402

RAGGED = """
      .documentation =
          "In place: parameter p, gradient, learning_rate (), accumulator n and linear coefficient u, which "
          "are "
          "written. g = gradient / loss_scale + weight_decay p; u += g - (m^-lr_power - n^-lr_power) p; n = "
          "m, "
          "else 0.",
"""


def text_of(source: str) -> str:
    begin, end = source.index('"'), source.rindex('"') + 1
    return ast.literal_eval("(" + source[begin:end] + ")")


def test_a_text_with_ragged_lines_gets_full_ones():
    made = filled(RAGGED)
    assert text_of(made) == text_of(RAGGED)
    assert len(made.splitlines()) == len(RAGGED.splitlines()) - 2
    assert max(map(len, made.splitlines())) <= WIDTH
    assert filled(made) == made


@pytest.mark.parametrize(
    "source",
    [
        '  f("one line");\n',
        '  f("usage:\\n"\n    "  run\\n"\n    "  stop\\n");\n',  # lines that end there
        '  f("\\x1b"\n    "b and more");\n',  # joined it would be \x1bb
        '  f("one",\n    "two");\n',  # two texts
        '  f(R"(\n"a "\n"b")");\n',
        '  // "a "\n  //   "b"\n',
    ],
)
def test_other_lines_stay_as_they_are(source):
    assert filled(source) == source
