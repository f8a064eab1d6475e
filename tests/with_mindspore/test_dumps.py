"""Tensors and gradients that are written to files: TensorDump, tensordump and DumpGradient."""

import re
import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops


def _written(folder):
    """What the files hold, in the order of their numbers; and their names without numbers."""
    files = sorted(folder.glob("*.npy"), key=lambda file: int(re.findall(r"\d+", file.stem)[-1]))
    return [np.load(file).tolist() for file in files], [re.sub(r"\d+$", "N", file.stem) for file in files]


def test_each_call_writes_a_file_of_its_own(tmp_path):
    dump = ops.TensorDump()
    dump(f"{tmp_path}/a", Tensor([1.0]))
    dump(f"{tmp_path}/a.npy", Tensor([2.0]))
    ops.tensordump(f"{tmp_path}/b", Tensor([3], ms.int32))
    ops.tensordump(f"{tmp_path}/c", Tensor([4.0], ms.bfloat16), "in")
    values, names = _written(tmp_path)
    assert values == [[1], [2], [3], [4]]
    assert names == ["a_float32_N", "a_float32_N", "b_int32_N", "c_bfloat16_N"]


def test_a_graph_writes_one_in_each_run(tmp_path):
    dump = ops.TensorDump()

    @ms.jit
    def step(x):
        dump(f"{tmp_path}/x", x)
        return x + 1

    for number in (1.0, 2.0):
        step(Tensor([number]))
    assert _written(tmp_path)[0] == [[1], [2]]


def test_a_gradient_is_written_and_flows_on(tmp_path):
    dump = ops.DumpGradient()

    def tripled(x):
        return dump(f"{tmp_path}/dx.npy", x, "out") * 3

    assert ms.grad(tripled)(Tensor([1.0])).tolist() == [3]
    assert _written(tmp_path) == ([[3]], ["dx_float32_N"])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ops.TensorDump("both"), ValueError),
        (lambda: ops.TensorDump()("", Tensor([1.0])), ValueError),
        (lambda: ops.TensorDump()(1, Tensor([1.0])), TypeError),
        (lambda: ops.tensordump("a", 1.0), TypeError),
    ],
)
def test_what_is_no_name_or_no_tensor_is_an_error(call, error):
    with pytest.raises(error):
        call()
