"""Muster exports the networks of tests/parity/mindir_cases.py into FOLDER, with their inputs and outputs.

Prints how many; what cannot be exported, or has ops that only Muster reads, is left out, and named.

    mindir_writer.py FOLDER
"""

import sys
from pathlib import Path

import mindspore as ms
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "parity"))
from mindir_cases import all_cases, flat

folder, written = Path(sys.argv[1]), 0
for number, (name, (net, inputs)) in enumerate(all_cases().items()):
    net.set_train(False)
    tensors = [ms.Tensor(each) for each in inputs]
    path = folder / f"{number}.mindir"
    try:
        ms.export(net, *tensors, file_name=str(path), file_format="MINDIR")
    except Exception as error:
        print(f"{name}: {str(error).splitlines()[0]}")
        continue
    if any(each.op_type.startswith("muster.") for each in ms.load_mindir(str(path)).primitives):
        print(f"{name}: for Muster alone")
        path.unlink()
        continue
    given = {f"x{at}": each for at, each in enumerate(inputs)}
    given |= {f"y{at}": each for at, each in enumerate(flat(net(*tensors)))}
    np.savez(path.with_suffix(".npz"), **given)
    written += 1
print(f"{written} written")
