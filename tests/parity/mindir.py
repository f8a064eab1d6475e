"""Records what MindSpore exports as MindIR, and computes of it: mindir.json.xz.

Run by the Python of a venv with mindspore==2.7.0 and numpy==1.26.4:
    venv/bin/python tests/parity/mindir.py
A case that MindSpore cannot export, or cannot run from its own file, is named and not recorded.
"""

import base64
import json
import lzma
import sys
import tempfile
from pathlib import Path

import mindspore as ms
import numpy as np
from mindir_cases import all_cases, flat
from mindspore import nn

FILE = Path(__file__).with_suffix(".json.xz")


def packed(array) -> list:
    array = np.asarray(array)
    return [str(array.dtype), list(array.shape), base64.b64encode(array.tobytes()).decode()]


def recorded(net, inputs) -> dict:
    net.set_train(False)
    tensors = [ms.Tensor(each) for each in inputs]
    path = Path(tempfile.mkdtemp()) / "net.mindir"
    ms.export(net, *tensors, file_name=str(path), file_format="MINDIR")
    outputs = flat(nn.GraphCell(ms.load(str(path)))(*tensors))
    return {
        "file": base64.b64encode(path.read_bytes()).decode(),
        "inputs": [packed(each) for each in inputs],
        "outputs": [packed(each) for each in outputs],
    }


def main():
    ms.set_seed(1)
    found = {}
    for name, (net, inputs) in all_cases().items():
        try:
            found[name] = recorded(net, inputs)
        except Exception as error:
            print(f"not recorded: {name}: {str(error).strip().splitlines()[0]}")
    FILE.write_bytes(lzma.compress(json.dumps(found).encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(found)} cases, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    sys.exit(main())
