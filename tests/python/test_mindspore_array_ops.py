"""mindspore.ops: functions and classes that make, move, join and pick elements, as MindSpore names them."""

import re
import subprocess
import sys

import pytest
from job import clean_environment


def printed(code):
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import numpy as np, mindspore as ms\n"
            "from mindspore import Tensor, ops\n"
            "from mindspore.ops import operations as P\n"
            "x = Tensor(np.arange(6).reshape(2, 3).astype(np.float32))\n" + code,
        ],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


PAIRS = [  # what is written, and what it must equal: here, and in MindSpore 2.7.0 too
    ("ops.transpose(x, (1, 0))", "x.T"),
    ("ops.permute(x, (1, 0))", "x.T"),
    ("P.Transpose()(x, (1, 0))", "x.T"),
    ("P.Reshape()(x, (3, -1))", "x.reshape(3, 2)"),
    ("P.Squeeze(0)(ops.expand_dims(x, 0))", "x"),
    ("P.Squeeze()(ops.unsqueeze(x, 0))", "x"),
    ("P.ExpandDims()(x, 0)", "x.reshape(1, 2, 3)"),
    ("P.Concat(1)((x, x))", "ops.cat([x, x], 1)"),
    ("P.Stack()([x, x])", "ops.stack((x, x))"),
    ("P.Split(1, 3)(x)[1]", "x[:, 1:2]"),
    ("P.Unstack(1)(x)[2]", "x[:, 2]"),
    ("ops.unbind(x)[1]", "x[1]"),
    ("ops.chunk(x, 2, 1)[1]", "x[:, 2:]"),
    ("P.Gather()(x, Tensor([2, 0]), 1)", "x[:, [2, 0]]"),
    ("ops.index_select(x, 1, Tensor([1]))", "x[:, 1:2]"),
    ("P.TopK()(x, 1)[0]", "x[:, 2:]"),
    ("P.Tile()(x, (1, 2))", "ops.concat((x, x), 1)"),
    ("P.Pad(((0, 1), (1, 0)))(x)", "ops.pad(x, (1, 0, 0, 1))"),
    ("P.MirrorPad()(x, Tensor([[0, 0], [1, 0]]))", "ops.pad(x, (1, 0), 'reflect')"),
    ("P.MatMul(transpose_b=True)(x, x)", "x @ x.T"),
    (
        "P.BatchMatMul()(x.reshape(2, 1, 3), x.reshape(2, 3, 1))",
        "ops.bmm(x.reshape(2, 1, 3), x.reshape(2, 3, 1))",
    ),
    ("P.Slice()(x, (0, 1), (2, 1))", "x[:, 1:2]"),
    ("P.StridedSlice()(x, (0, 0), (2, 3), (1, 2))", "x[:, ::2]"),
    ("ops.strided_slice(x, (0, 1), (0, 0), (1, 1), 1, 3, shrink_axis_mask=2)", "x[:, 1]"),
    ("ops.strided_slice(x, (0, 0), (0, 1), (1, 1), ellipsis_mask=1)", "x[..., :1]"),
    ("P.Flatten()(x.reshape(2, 3, 1))", "x"),
    ("P.Fill()(ms.float32, (2, 3), 0)", "x * 0"),
    ("P.ZerosLike()(x)", "ops.zeros((2, 3))"),
    ("P.OnesLike()(x)", "ops.ones((2, 3), ms.float32)"),
    ("P.CumSum()(x, 1)", "ops.cumsum(x, 1)"),
    ("P.BroadcastTo((2, 2, 3))(x)", "ops.stack((x, x))"),
    ("P.ReverseV2([1])(x)", "ops.flip(x, (1,))"),
    ("ops.narrow(x, 1, 1, 2)", "x[:, 1:]"),
    ("P.OneHot()(Tensor([1, 0]), 2, Tensor(1.0), Tensor(0.0))", "ops.one_hot(Tensor([1, 0]), 2, 1.0, 0.0)"),
    ("ops.full((2, 3), 1.2)", "ops.ones((2, 3), ms.int64)"),
    ("ops.fill(ms.int32, (2,), 3)", "Tensor([3, 3], ms.int32)"),
    ("ops.scalar_to_tensor(2)", "Tensor(2.0, ms.float32)"),
    ("ops.arange(0, 1, 0.5)", "Tensor([0, 0.5], ms.float32)"),
]


def test_functions_and_classes_agree_with_the_methods_of_tensors():
    lines = "\n".join(
        f"a, b = {left}, {right}\n"
        f"assert a.dtype == b.dtype and np.array_equal(a.asnumpy(), b.asnumpy()), ({left!r}, a, b)"
        for left, right in PAIRS
    )
    printed(lines)


def test_shapes_are_tuples_of_numbers():
    assert printed("print(ops.shape(x), P.Shape()(x), ops.size(x), ops.rank(x))") == "(2, 3) (2, 3) 6 2"


def test_a_loop_with_mindspores_name():
    code = "print(ops.WhileLoop()(lambda state: state < 100, lambda state: state + 1, 10))"
    assert printed(code) == "100"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("P.Split(1, 2)(x)", r"cannot.*2 parts"),
        ("P.Unstack(1, 2)(x)", "as num says"),
        ("P.Pad(((1, 1),))(x)", "needs 2 pairs"),
        ("P.MatMul()(x[0], x)", "two matrices"),
        ("ops.embedding(Tensor([0]), x, max_norm=1.0)", "not provided"),
    ],
)
def test_what_does_not_fit_says_so(code, message):
    text = printed(f"try:\n    {code}\nexcept (ValueError, NotImplementedError) as error:\n    print(error)")
    assert re.search(message, text)
