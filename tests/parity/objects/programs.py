"""Small programs about cells, parameters, tensors and gradients, and what each prints under MindSpore.

The .txt files hold the programs, answers.json what MindSpore 2.7.0 printed in PYNATIVE_MODE. It was made with

    python tests/parity/objects/programs.py tests/parity/objects/answers.json

where `mindspore` is that of its wheel (numpy 1.26.4).
"""

import contextlib
import io
import json
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
HEAD = """
import copy, inspect, pickle
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor, Parameter, ParameterTuple
from mindspore.common.initializer import *
"""


def programs() -> dict[str, str]:
    """The programs by their names."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.txt")))
    parts = re.split(r"^# --- (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def answer(name: str, code: str) -> str:
    """What the program prints; an error it ends with by its kind."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(HEAD + code, name, "exec"), {"__name__": "__main__"})
    except Exception as error:
        return f"{printed.getvalue()}raised {type(error).__name__}: {error}".strip()
    return printed.getvalue().strip()


def answers(mode: int) -> dict[str, str]:
    """Of all programs, in PYNATIVE_MODE (1) or GRAPH_MODE (0)."""
    import mindspore

    found = {}
    for name, code in programs().items():
        mindspore.set_context(mode=mode)
        mindspore.set_seed(1)
        found[name] = answer(name, code)
    return found


if __name__ == "__main__":
    made = answers(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    Path(sys.argv[1]).write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
