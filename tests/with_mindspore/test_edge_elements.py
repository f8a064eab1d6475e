"""Ops at elements that are apart: zeros, bools, ends of a dtype; numbers as MindSpore 2.7.0 gives them."""

import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops
from mindspore.ops import operations


def gradients(function, *inputs):
    found = ms.grad(function, tuple(range(len(inputs))))(*inputs)
    return [each.asnumpy().tolist() for each in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize(
    "dtype, values, counts",
    [
        (np.int64, [2**40 - 1, -1, -(2**63), 0], [40, 64, 1, 0]),
        (np.int32, [-1, 6, -(2**31)], [32, 2, 1]),
        (np.int8, [-1, -128, 7], [8, 1, 3]),
        (np.uint8, [255, 128, 0], [8, 1, 0]),
        (np.uint32, [2**32 - 1, 5], [32, 2]),
    ],
)
def test_bits_are_counted_in_each_width(dtype, values, counts):
    made = operations.PopulationCount()(Tensor(np.array(values, dtype)))
    assert made.asnumpy().tolist() == counts
    assert made.dtype == ms.uint8


@pytest.mark.parametrize("dtype, end", [(np.float16, 65504.0), (np.float64, sys.float_info.max)])
def test_a_segment_of_no_elements_has_the_end_of_its_dtype(dtype, end):
    x, ids = Tensor(np.array([3, 5], dtype)), Tensor([1, 1])
    assert ops.unsorted_segment_max(x, ids, 2).asnumpy().tolist() == [-end, 5]
    assert ops.unsorted_segment_min(x, ids, 2).asnumpy().tolist() == [end, 3]


def test_products_of_segments_have_gradients_where_elements_are_0():
    x = Tensor([2.0, 0.0, 3.0, 0.0, 0.0, 4.0, 5.0])
    ids = Tensor([0, 0, 0, 1, 1, 1, 2])
    products = ops.unsorted_segment_prod(x, ids, 4)
    assert products.asnumpy().tolist() == [0, 0, 5, 1]
    of_x = ms.grad(lambda x: ops.unsorted_segment_prod(x, ids, 4).sum())(x)
    assert of_x.asnumpy().tolist() == [0, 6, 0, 0, 0, 0, 1]


def test_bools_are_scattered_as_bools():
    x, updates = Tensor([True, False, False]), Tensor([True, False, True])
    indices = Tensor([[0], [0], [1]])
    assert operations.ScatterNd()(indices, updates, (3,)).asnumpy().tolist() == [True, True, False]
    made = operations.TensorScatterElements(0, "add")(x, Tensor([0, 0, 2]), updates)
    assert made.asnumpy().tolist() == [True, False, True]


def test_shrinking_compares_halves_with_the_whole_bound():
    x = Tensor([0.3, -0.3, 0.2], ms.float16)
    assert operations.HShrink(0.3)(x).asnumpy().tolist() == [*x.asnumpy()[:2].tolist(), 0]
    assert ops.hardshrink(Tensor([0.3, 0.31], ms.float64), 0.3).asnumpy().tolist() == [0, 0.31]


def test_the_factor_of_a_logarithm_has_its_gradient_at_0():
    of_x, of_y = gradients(ops.xlogy, Tensor([0.0, 0.0, 2.0]), Tensor([0.0, 1.0, 1.0]))
    assert of_x == [0, 0, 0] and of_y[1:] == [0, 2]
    assert gradients(ops.xlogy, Tensor([0.0]), Tensor([3.0]))[0] == pytest.approx([np.log(3)])
    assert ops.xlogy(Tensor([0.0, 0.0]), Tensor([-1.0, np.inf])).asnumpy().tolist() == [0, 0]
    assert gradients(ops.xdivy, Tensor([0.0, 2.0]), Tensor([0.0, 4.0])) == [[0, 0.25], [0, -0.125]]


def test_losses_have_gradients_of_logits_alone():
    logits, labels = Tensor([[0.0, 0.0]]), Tensor([[0.0, 1.0]])
    both = operations.SoftmaxCrossEntropyWithLogits()
    assert gradients(lambda x, y: both(x, y), logits, labels) == [[[0.5, -0.5]], [[0, 0]]]
    loss = operations.NLLLoss()
    of_logits, of_weight = gradients(lambda x, w: loss(x, Tensor([1]), w), logits, Tensor([1.0, 3.0]))
    assert of_logits == [[0, -1]] and of_weight == [0, 0]


def test_regions_have_no_gradient():
    features = Tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    regions = Tensor([[0.0, 0, 0, 3, 3]])
    align = operations.ROIAlign(2, 2, 0.5, 2)
    of_features, of_regions = gradients(lambda x, r: align(x, r), features, regions)
    assert of_regions == [[0] * 5]
    assert np.sum(of_features) == pytest.approx(4)


def test_axes_are_flattened_from_the_last_one_on():
    x = Tensor(np.arange(6).reshape(1, 2, 3))
    assert ops.flatten(x, order="F").asnumpy().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.flatten("F").asnumpy().tolist() == x.flatten(order="F").asnumpy().tolist() == [0, 3, 1, 4, 2, 5]
    assert gradients(lambda x: ops.flatten(x, "F")[0], Tensor([[1.0, 2.0], [3.0, 4.0]])) == [[[1, 0], [1, 0]]]
    for order, error in (("A", ValueError), (None, TypeError)):
        with pytest.raises(error, match="order"):
            ops.flatten(x, order)


def test_matrices_of_halves_are_factorized():
    x = Tensor([[2.0, 0.0], [1.0, 4.0]], ms.float16)
    q, r = ops.qr(x)
    assert q.dtype == r.dtype == ms.float16
    assert np.allclose(q.asnumpy() @ r.asnumpy(), x.asnumpy(), atol=1e-2)
    sign, logarithm = ops.slogdet(x)
    assert logarithm.dtype == ms.float16
    assert [float(sign), float(logarithm)] == pytest.approx([1, np.log(8)], abs=1e-2)
    made = ops.lu_solve(Tensor([[2.0], [8.0]], ms.float16), x, Tensor([1, 2], ms.int32))
    assert made.dtype == ms.float16 and made.asnumpy().tolist() == [[1.0], [1.5]]


@pytest.mark.parametrize("mode", ["iou", "iof"])
def test_boxes_that_end_before_they_begin_overlap_nothing(mode):
    anchors = Tensor(np.array([[0, 0, 2, 2], [2, 2, 1, 1], [3, 3, 1, 1]], np.float32))
    truth = Tensor(np.array([[0, 0, 2, 2], [2, 2, 1, 1]], np.float32))
    assert ops.iou(anchors, truth, mode).asnumpy().tolist() == [[1, 0, 0], [0, 0, 0]]
