"""Inputs without tensors among those that gradients are asked for, and results that are dicts."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Tensor, nn, ops

_X, _Y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], autouse=True)
def _mode(request):
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class _Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(Tensor([2.0, 5.0]), name="w")

    def construct(self, x, number, y=None):
        product = x * self.w * (1 if number is None or isinstance(number, str | list) else number)
        return product if y is None else product + y


def _plain(value):
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value.asnumpy().tolist()


def test_numbers_have_no_gradients_and_are_left_out():
    net = _Net()
    of_x, of_y, of_w = [6.0, 15.0], [1.0, 1.0], ([3.0, 6.0],)
    assert _plain(ms.grad(net, (0, 1, 2))(_X, 3, _Y)) == (of_x, of_y)
    assert _plain(ms.grad(net, (0, 1))(_X, 3)) == of_x
    assert ms.grad(net, 1)(_X, 3) == ()
    assert ms.grad(net, (1,))(_X, 3) == ()
    value, found = ms.value_and_grad(net, (0, 1), net.trainable_params())(_X, 3)
    assert _plain(value) == [6.0, 30.0]
    assert _plain(found) == (of_x, of_w)
    assert _plain(ms.grad(net, 1, net.trainable_params())(_X, 3)) == ((), of_w)
    assert _plain(ops.GradOperation(get_all=True)(net)(_X, 3)) == (of_x,)
    assert _plain(ops.GradOperation(get_all=True)(net)(_X, 3, _Y)) == (of_x, of_y)
    assert _plain(ops.GradOperation(get_all=True, get_by_list=True)(net, net.trainable_params())(_X, 3)) == (
        (of_x,),
        of_w,
    )
    (position, gradient) = ms.grad(net, (0, 1), return_ids=True)(_X, 3)
    assert (position, _plain(gradient)) == (0, of_x)


@pytest.mark.parametrize("other", [None, "text", True, [2, 3]])
def test_so_have_texts_none_and_lists_of_numbers(other):
    assert _plain(ms.grad(_Net(), (0, 1))(_X, other)) == [2.0, 5.0]


def test_one_function_is_called_with_numbers_and_with_tensors():
    gradients = ms.grad(_Net(), (0, 1))
    assert _plain(gradients(_X, 3)) == [6.0, 15.0]
    assert _plain(gradients(_X, _Y)) == ([6.0, 20.0], [2.0, 10.0])
    assert _plain(gradients(_X, 2)) == [4.0, 10.0]


def test_a_position_behind_the_inputs_is_an_error():
    with pytest.raises(ValueError, match="argument 3"):
        ms.grad(_Net(), (0, 3))(_X, 3)


def test_the_gradient_of_a_dict_of_results_is_a_dict():
    class Net(nn.Cell):
        def construct(self, x):
            return {"twice": x * 2, "square": x * x}

    sens = {"twice": Tensor([1.0, 10.0]), "square": Tensor([0.5, 1.0])}
    assert _plain(ops.GradOperation(sens_param=True)(Net())(_X, sens)) == [3.0, 24.0]
    with pytest.raises(ValueError, match="sens must be a dict of 2 tensors"):
        ops.GradOperation(sens_param=True)(Net())(_X, {"twice": _X})


def test_a_tuple_of_one_position_is_that_position():
    assert ms.grad(lambda x: x * x, (0,))(_X).tolist() == [2, 4]
    assert ms.value_and_grad(lambda x: x * x, (0,))(_X)[1].tolist() == [2, 4]
    net = _Net()
    of_x, of_weights = ms.grad(net, (0,), net.trainable_params())(_X, None)
    assert of_x.tolist() == [2, 5]
    assert [each.tolist() for each in of_weights] == [[1, 2]]


@pytest.mark.parametrize(
    ("positions", "error"),
    [((0, 0), ValueError), (-1, ValueError), (None, ValueError), (0.5, TypeError), ((0, "b"), TypeError)],
)
def test_positions_that_are_none_are_an_error(positions, error):
    for take in (ms.grad, ms.value_and_grad):
        with pytest.raises(error, match="grad_position"):
            take(lambda x, y: x * y, positions)


@pytest.mark.parametrize("take", [ms.grad, ms.value_and_grad])
@pytest.mark.parametrize("lone", [lambda x: x * x, lambda x: (x * x,)])
def test_a_loss_without_others_is_an_error_with_has_aux(take, lone):
    with pytest.raises(ValueError, match="at least two results"):
        take(lone, has_aux=True)(_X)


def test_so_it_is_for_products_with_jacobians():
    for call in (
        lambda: ops.jvp(lambda x: x * x, _X, _Y, has_aux=True),
        lambda: ops.vjp(lambda x: x * x, _X, has_aux=True),
        lambda: ops.jacrev(lambda x: x * x, has_aux=True)(_X),
    ):
        with pytest.raises(ValueError, match="at least two results"):
            call()


def test_one_result_behind_the_loss_is_no_tuple():
    for call in (
        lambda f: ops.vjp(f, _X, has_aux=True),
        lambda f: ms.vjp(f, _X, has_aux=True),
        lambda f: ops.jvp(f, _X, _Y, has_aux=True),
        lambda f: ms.jvp(f, _X, _Y, has_aux=True),
    ):
        assert call(lambda x: (x * 3, x + 1))[2].asnumpy().tolist() == [2, 3]
        others = call(lambda x: (x * 3, x, x + 1))[2]
        assert [each.asnumpy().tolist() for each in others] == [[1, 2], [2, 3]]


@pytest.mark.parametrize("of", [ops.vjp, ms.vjp])
def test_a_product_of_one_input_is_a_tuple_and_counts_an_input_as_flow_once(of):
    results, pulled = of(nn.ReLU(), _X)
    assert results.asnumpy().tolist() == [1, 2]
    (by_other,) = pulled(_Y)
    assert by_other.asnumpy().tolist() == [3, 4]
    (by_itself,) = of(lambda x: x * 3, _X)[1](_X)
    assert by_itself.asnumpy().tolist() == [3, 6]


class _Named(nn.Cell):
    def construct(self, x, *, a, b):
        return x * a + b * 2


def test_arguments_with_names_stand_behind_the_others():
    every = ops.GradOperation(get_all=True)(_Named())(_X, b=_Y, a=Tensor([5.0, 7.0]))
    assert [each.asnumpy().tolist() for each in every] == [[5, 7], [2, 2], [1, 2]]
    first = ops.GradOperation()(lambda *, a, b: a * b)(a=_X, b=_Y)
    assert first.asnumpy().tolist() == [3, 4]
    scaled = ops.GradOperation(sens_param=True)(_Named())(_X, Tensor([10.0, 1.0]), a=_Y, b=_X)
    assert scaled.asnumpy().tolist() == [30, 4]


def test_one_gradient_takes_arguments_by_place_and_by_name():
    gradient = ops.GradOperation(get_all=True)(lambda x, y: x * y)
    for found in (gradient(_X, _Y), gradient(_X, y=_Y), gradient(x=_X, y=_Y)):
        assert [each.asnumpy().tolist() for each in found] == [[3, 4], [1, 2]]


def test_several_results_change_with_the_inputs():
    def both(x, y):
        return x * y, x + y

    for jvp in (ms.jvp, ops.jvp):
        results, changes = jvp(both, (_X, _Y), (Tensor([1.0, 1.0]), Tensor([0.0, 1.0])))
        assert [each.asnumpy().tolist() for each in results] == [[3, 8], [4, 6]]
        assert [each.asnumpy().tolist() for each in changes] == [[3, 6], [1, 2]]


class _Boxes(Tensor):
    def area(self):
        return self[:, 0] * self[:, 1]


def test_inputs_of_gradients_have_the_classes_that_a_script_derived():
    boxes, plain = _Boxes([[2.0, 3.0]]), Tensor([[2.0, 3.0]])
    boxes.scale = 2

    def loss(x, y):
        return (x.area() * x.scale * y).sum() if isinstance(x, _Boxes) else x.sum()

    assert _plain(ms.grad(loss, (0, 1))(boxes, Tensor([5.0]))) == ([[30.0, 20.0]], [12.0])
    assert _plain(ms.grad(loss, (0, 1))(plain, Tensor([5.0]))) == ([[1.0, 1.0]], [0.0])
    assert _plain(ms.jit(lambda x: x.area())(boxes)) == [6.0]


def test_a_bprop_gets_the_classes_that_a_script_derived():
    class Sized(nn.Cell):
        def construct(self, x):
            return x.area()

        def bprop(self, x, out, flow):
            return ops.ones_like(x) * x.area() * flow

    assert _plain(ms.grad(lambda x: Sized()(x).sum())(_Boxes([[2.0, 3.0]]))) == [[6.0, 6.0]]


class _OfThree(nn.Cell):
    def construct(self, x, y, z=2):
        return x * x + y * z


def test_positions_count_arguments_that_are_given_by_name():
    net, z = _OfThree(), Tensor([5.0, 6.0])
    of_x, of_y, of_z = [2.0, 4.0], [5.0, 6.0], [3.0, 4.0]
    assert _plain(ms.grad(net, (0, 1, 2))(_X, z=z, y=_Y)) == (of_x, of_z, of_y)
    assert _plain(ms.grad(net, (0, 2))(_X, _Y, z=z)) == (of_x, of_z)
    assert _plain(ms.grad(net)(x=_X, y=_Y, z=z)) == of_x
    assert _plain(ms.grad(net, (1, 2))(_X, y=_Y, z=3)) == [3.0, 3.0]
    assert _plain(ms.value_and_grad(net, 1)(_X, y=_Y)) == ([7.0, 12.0], [2.0, 2.0])
    at, found = ms.grad(net, (1, 2), return_ids=True)(_X, z=3, y=_Y)
    assert (at, _plain(found)) == (2, [3.0, 3.0])


def test_a_position_behind_all_arguments_is_an_error():
    with pytest.raises(ValueError, match="argument 3"):
        ms.grad(_OfThree(), 3)(_X, y=_Y, z=2)
