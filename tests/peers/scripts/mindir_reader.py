"""Real MindSpore reads what Muster exported: FOLDER has N.mindir and N.npz, inputs x0... and outputs y0...

Prints a line for each file that it does not read, or that gives another result, and how many agree.

    mindir_reader.py FOLDER
"""

import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn


def flat(value):
    if isinstance(value, (tuple, list)):
        return [each for part in value for each in flat(part)]
    return [value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)]


def numbered(arrays, letter):
    return [arrays[f"{letter}{at}"] for at in range(sum(name[0] == letter for name in arrays.files))]


agree = 0
for path in sorted(Path(sys.argv[1]).glob("*.mindir")):
    arrays = np.load(path.with_suffix(".npz"))
    try:
        given = flat(nn.GraphCell(ms.load(str(path)))(*map(ms.Tensor, numbered(arrays, "x"))))
        for theirs, ours in zip(given, numbered(arrays, "y"), strict=True):
            assert theirs.dtype == ours.dtype and theirs.shape == ours.shape, "another type"
            np.testing.assert_allclose(theirs, ours, 1e-5, 1e-5)
        agree += 1
    except Exception as error:
        print(f"{path.name}: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
print(f"{agree} agree")
