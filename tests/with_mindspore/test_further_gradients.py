"""Gradients as classes, sets, and steps of optimizers for some rows: numbers as MindSpore's."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn
from mindspore.ops.operations import _grad_ops as G  # noqa: N812
from mindspore.ops.operations import _rl_inner_ops, array_ops, image_ops, math_ops, nn_ops, sparse_ops

FLOATS = (np.float32, np.float64)


@pytest.fixture(autouse=True, params=(ms.GRAPH_MODE, ms.PYNATIVE_MODE), ids=["graph", "pynative"])
def mode(request):
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def of(values, dtype=np.float32):
    return Tensor(np.array(values, dtype))


def close(made, expected):
    return np.allclose(made.asnumpy().ravel(), np.array(expected).ravel(), atol=1e-4)


# ---- Gradients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_of_uneven_pools_go_to_their_windows(dtype):
    x = of(np.arange(1, 10).reshape(1, 3, 3, 1), dtype)
    dy = of(np.array([1, 2, 3, 4]).reshape(1, 2, 2, 1), dtype)
    rows, columns = of([0, 1, 3], np.int64), of([0, 2, 3], np.int64)
    high = G.FractionalMaxPoolGrad()(x, of([[[[2], [3]], [[8], [9]]]], dtype), dy, rows, columns)
    assert close(high, [0, 1, 2, 0, 0, 0, 0, 3, 4])
    mean = G.FractionalAvgPoolGrad()(of([1, 3, 3, 1], np.int64), dy, rows, columns)
    assert close(mean, [0.5, 0.5, 2, 0.75, 0.75, 2, 0.75, 0.75, 2])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name, shares", [("Mean", [2.5, 0, 0.5, 2]), ("SqrtN", [2.70711, 0, 0.70711, 2])])
def test_gradients_of_segments_go_back_to_their_rows(name, shares, dtype):
    op = getattr(G, f"SparseSegment{name}Grad")()
    made = op(
        of([[1.0], [2.0]], dtype), of([0, 2, 0], np.int32), of([0, 0, 1], np.int32), Tensor(4, ms.int32)
    )
    assert made.shape == (4, 1) and close(made, [shares[0], 0, shares[2], 0])


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_gradient_of_a_median_goes_to_its_place(dtype):
    x = of([[3, 1, 2], [4, 6, 5]], dtype)
    made = G.MedianGrad(False, 1, False)(of([10, 20], dtype), x, of([2, 4], dtype), of([2, 0], np.int64))
    assert close(made, [0, 0, 10, 20, 0, 0])
    whole = G.MedianGrad(True)(of(3, dtype), of([1, 2, 2], dtype), of(2, dtype), of(1, np.int64))
    assert close(whole, [0, 1.5, 1.5])


def test_second_gradients_of_pools_are_taken_at_the_greatest():
    x = of(np.arange(16).reshape(1, 1, 4, 4))
    made = G.MaxPoolGradGrad(2, 2, "VALID")(
        x, of([[[[5, 7], [13, 15]]]]), of(np.arange(16).reshape(1, 1, 4, 4))
    )
    assert close(made, [5, 7, 13, 15])


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_of_sparse_tensors(dtype):
    values, default = G.SparseFillEmptyRowsGrad()(of([0, 2], np.int64), of([1, 2, 3], dtype))
    assert close(values, [1, 3]) and close(default, [2])
    indices, taken = of([[0, 1], [1, 2], [2, 3]], np.int64), of([[0, 1], [1, 2]], np.int64)
    made = G.SparseSliceGrad()(of([1, 2], dtype), indices, of([1, 1], np.int64), taken)
    assert close(made, [0, 1, 2])


def test_the_gradient_of_crops_is_an_image():
    op = image_ops.CropAndResizeGradImage(ms.float32, "nearest")
    crops, boxes = of(np.arange(1, 5).reshape(1, 2, 2, 1)), of([[0, 0, 1, 1]])
    made = op(crops, boxes, of([0], np.int32), of([1, 3, 3, 1], np.int32))
    assert close(made, [1, 0, 2, 0, 0, 0, 3, 0, 4])


# ---- Steps for some rows -----------------------------------------------------------------------------------


class Step(nn.Cell):
    """A step of parameters that are all 1, 2, ..."""

    def __init__(self, op, count):
        super().__init__()
        self.op = op
        whole = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
        self.all = ms.ParameterTuple([Parameter(Tensor(whole), name=f"p{at}") for at in range(count)])

    def construct(self, *inputs):
        return self.op(*self.all, *inputs)


GRADIENT, ROWS = of([[1, 2]]), of([1], np.int32)


@pytest.mark.parametrize(
    "op, count, inputs, row",
    [
        (nn_ops.SparseApplyMomentum(), 2, (0.1, GRADIENT, ROWS, 0.5), [2.75, 3.6]),
        (nn_ops.SparseApplyProximalGradientDescent(), 1, (0.1, 0.5, 0.5, GRADIENT, ROWS), [2.7143, 3.5714]),
        (nn_ops.SparseApplyAdagradDA(), 3, (GRADIENT, ROWS, 0.1, 0.5, 0.5, 2), [-0.14286, -0.17074]),
        (nn_ops.SparseApplyCenteredRMSProp(), 4, (0.1, 0.5, 0.5, 9.0, GRADIENT, ROWS), [1.4622, 1.9]),
    ],
    ids=["momentum", "proximal", "adagrad_da", "rms_prop"],
)
def test_a_step_changes_the_rows_that_have_a_gradient(op, count, inputs, row):
    step = Step(op, count)
    tensors = [
        each
        if isinstance(each, Tensor)
        else Tensor(each, ms.float32 if isinstance(each, float) else ms.int64)
        for each in inputs
    ]
    step(*tensors)
    assert close(step.all[0], [1, 2, *row, 5, 6]), step.all[0].asnumpy()


# ---- Sets and the rest -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation, values",
    [("a-b", [3, 4, 2]), ("b-a", [9, 3]), ("intersection", [1]), ("union", [1, 3, 4, 9, 2, 3])],
)
def test_operations_of_sets_give_sorted_rows(operation, values):
    first, second = of([[4, 1, 1, 3], [2, 2, 2, 2]], np.int32), of([[1, 9], [3, 3]], np.int32)
    places, made, shape = sparse_ops.DenseToDenseSetOperation(operation)(first, second)
    assert made.asnumpy().tolist() == values and len(places.asnumpy()) == len(values)
    assert shape.asnumpy()[0] == 2


def test_losses_with_their_gradients_sums_ranges_and_eigenvalues():
    loss, back = nn_ops.SparseSoftmaxCrossEntropyWithLogitsV2()(of([[0, 0]]), of([1], np.int32))
    assert close(loss, [np.log(2)]) and close(back, [0.5, -0.5])
    assert close(math_ops.AddV2()(of([1, 2]), of([3, 4])), [4, 6])
    made = array_ops.RangeV2()(Tensor(1, ms.int32), Tensor(9, ms.int32), Tensor(3, ms.int32))
    assert made.dtype == ms.int32 and made.asnumpy().tolist() == [1, 4, 7]
    assert close(math_ops.SelfAdjointEig(False)(of([[2, 1], [1, 2]]))[0], [1, 3])


def test_many_parameters_are_assigned_at_once():
    to = [Parameter(of([0, 0]), name="a"), Parameter(of([0]), name="b")]
    from_ = [Parameter(of([1, 2]), name="c"), Parameter(of([3]), name="d")]
    _rl_inner_ops.BatchAssign()(to, from_)
    assert close(to[0], [1, 2]) and close(to[1], [3])


def test_resized_lines_give_their_gradient_back():
    made = G.ResizeLinear1DGrad("align_corners")(of([[[1, 2, 3]]]), of([[[0, 0]]]))
    assert close(made, [2, 4])


# ---- Gradients by sizes, ends and boxes --------------------------------------------------------------------


@pytest.mark.parametrize(
    "mode, shares", [("reflect", [2, 8, 2]), ("edge", [3, 3, 6]), ("circular", [6, 3, 3])]
)
def test_gradients_of_padded_ends_go_to_what_stands_there(mode, shares):
    made = G.PadV3Grad(mode)(of([[[1, 2, 3, 2, 4]]]), Tensor([1, 1]))
    assert made.shape == (1, 1, 3) and close(made, shares)


def test_gradients_of_larger_volumes_are_those_of_the_volumes():
    dy = of(np.arange(8).reshape(1, 1, 2, 2, 2))
    assert close(G.UpsampleNearest3DGrad()(dy, (1, 1, 1, 1, 2), (2, 2, 2), None), [12, 16])
    assert close(G.UpsampleTrilinear3DGrad(True)(dy, (1, 1, 1, 1, 1), None, (2.0, 2.0, 2.0)), [28])


def test_boxes_have_gradients_but_for_points_right_on_pixels():
    images = of(np.arange(9).reshape(1, 3, 3, 1))
    boxes = of([[0.25, 0.25, 0.75, 0.75], [0.0, 0.25, 0.25, 1.0], [0.25, 0.25, 1.5, 0.75]])
    op = image_ops.CropAndResizeGradBoxes()
    made = op(of(np.ones((3, 2, 2, 1))), images, boxes, of([0, 0, 0], np.int32))
    # Rows are 3 apart and columns 1; half a box's points lie at each of its ends.
    assert close(made, [[12, 4, 12, 4], [0, 4, 12, 0], [12, 2, 0, 2]])
    with pytest.raises(ValueError, match="bilinear"):
        image_ops.CropAndResizeGradBoxes("nearest")(images, images, boxes, of([0], np.int32))
