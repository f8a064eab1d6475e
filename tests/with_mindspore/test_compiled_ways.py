"""Calls that mean another thing in code that MindSpore compiles than in its eager mode."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Tensor, nn, ops

_X = Tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
def mode(request):
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


def _greatest(x):
    """The sum of the greatest elements of columns, negative where indices came with them."""
    found = x.max(0)
    return -found[0].sum() if isinstance(found, tuple) else found.sum()


def _chosen(x):
    """The same, behind a choice that no trace can make: it runs op by op."""
    if x.sum() > 3:
        return _greatest(x)
    return x.sum()


class _Greatest(nn.Cell):
    def construct(self, x):
        return _greatest(x)


class _Chosen(nn.Cell):
    def construct(self, x):
        return _chosen(x)


class _Part(nn.Cell):
    """The values alone in the compiled method; around it what the mode says."""

    @ms.jit
    def compiled(self, x):
        return _greatest(x)

    def construct(self, x):
        return self.compiled(x), _greatest(x)


def test_max_of_an_axis_without_names_gives_the_values_alone_in_compiled_code(mode):
    is_graph = mode == ms.GRAPH_MODE
    assert float(_greatest(_X)) == -7  # a script's own lines are not compiled, whatever the mode
    for compiled in (ms.jit(_greatest), ms.jit(_chosen)):
        assert float(compiled(_X)) == 7
    assert [float(each) for each in _Part()(_X)] == [7, 7 if is_graph else -7]
    for cell in (_Greatest(), _Chosen()):
        assert float(cell(_X)) == (7 if is_graph else -7)
        assert float(ms.value_and_grad(cell)(_X)[0]) == (7 if is_graph else -7)
    for function in (_greatest, _chosen):
        value, gradient = ms.value_and_grad(function)(_X)
        assert float(value) == (7 if is_graph else -7)
        assert gradient.asnumpy().tolist() == ([[0, 0], [1, 1]] if is_graph else [[0, 0], [-1, -1]])
    assert ms.vmap(_greatest)(Tensor([[[1.0], [2.0]], [[3.0], [5.0]]])).tolist() == [2, 5]
    assert float(_greatest(_X)) == -7


@ms.jit
def _all_ways(x):
    return x.min(1), x.min(1, True), x.max(-1)[0], x.max(dim=0), x.max(0, keepdim=True)


def test_names_choose_in_compiled_code_as_in_eager_code():
    least, kept, first, by_name, with_kept = _all_ways(_X)
    assert least.tolist() == [1, 3] and kept.tolist() == [[1], [3]]
    assert float(first) == 2  # the first of the values, which have no indices
    assert [each.tolist() for each in by_name] == [[3, 4], [1, 1]]
    assert [each.tolist() for each in with_kept] == [[[3, 4]], [[1, 1]]]


def test_interleaved_parts_of_a_batch_are_summed(mode):
    class Mean(nn.Cell):
        def construct(self, x):
            return x.mean()

    x = Tensor([[1.0], [2.0], [3.0], [6.0]])
    assert float(nn.MicroBatchInterleaved(Mean(), 2)(x)) == 6
    assert float(nn.MicroBatchInterleaved(Mean(), 4)(x)) == 12


def _corners(boxes):
    """Corners of boxes by middle and size, written into a tensor of its own while the boxes are read."""
    corners = ops.Identity()(boxes)
    corners[:, 0] = boxes[:, 0] - boxes[:, 1] / 2
    corners[:, 1] = boxes[:, 0] + boxes[:, 1] / 2
    return corners


class _Corners(nn.Cell):
    def construct(self, boxes):
        return _corners(boxes)


def test_identity_gives_a_tensor_of_its_own(mode):
    for corners in (_corners, ms.jit(_corners), _Corners()):
        boxes = Tensor([[4.0, 2.0]])
        assert corners(boxes).tolist() == [[3, 5]]
        assert boxes.tolist() == [[4, 2]]
    flags, numbers = ops.Identity()(Tensor([True])), ops.Identity()(Tensor([2], ms.int8))
    assert (flags.dtype, numbers.dtype) == (ms.bool_, ms.int8) and bool(flags[0])
    assert ms.grad(lambda x: (ops.Identity()(x) * 3).sum())(Tensor([1.0])).tolist() == [3]
