"""A cell's bprop: the gradient that its class gives itself. Numbers are those of MindSpore 2.7.0."""

import gc
import weakref

import numpy as np
import pytest
from job import Job

import muster
from muster import dataset, nn, ops


@pytest.fixture(params=["graph", "eager"], autouse=True)
def mode(request):
    muster.set_context(mode=request.param)
    yield request.param
    muster.set_context(mode="graph")


X = muster.Tensor(np.array([1, 2], np.float32))
Y = muster.Tensor(np.array([3, 4], np.float32))


def gradients(fn, *inputs, weights=None, position=0):
    _, found = muster.value_and_grad(fn, position, weights)(*inputs)
    return found


class Squared(nn.Cell):
    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (dout * 100 + out + x,)


class Two(nn.Cell):
    def construct(self, x, y):
        return x * y, x + y

    def bprop(self, x, y, out, dout):
        return dout[0] * 10 + out[0] * 0, dout[1] * 20


class Times(nn.Cell):
    def construct(self, x, n):
        return x * n

    def bprop(self, x, n, out, dout):
        return dout * n * 10, None


class Weighted(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = muster.Parameter(muster.Tensor(np.array([5, 6], np.float32)), name="w")

    def construct(self, x):
        return x * self.w

    def bprop(self, x, out, dout):
        return (dout * 7,)


class Same(nn.Cell):
    def construct(self, x):
        return x

    def bprop(self, x, out, dout):
        return (-dout,)


class Product(nn.Cell):
    def construct(self, pair):
        return pair[0] * pair[1]

    def bprop(self, pair, out, dout):
        return ((dout * pair[1] * 10, dout * pair[0] * 10),)


class Outer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = Squared()

    def construct(self, x):
        return self.inner(x)

    def bprop(self, x, out, dout):
        return (dout * 1000,)


def test_its_gradient_takes_the_place_of_constructs():
    assert gradients(Squared(), X).tolist() == [102, 106]


def test_the_value_is_that_of_construct():
    assert Squared()(X).tolist() == [1, 4]
    value, _ = muster.value_and_grad(Squared())(X)
    assert value.tolist() == [1, 4]


def test_set_grad_changes_nothing():
    assert gradients(Squared().set_grad(False), X).tolist() == [102, 106]


def test_outputs_and_their_gradients_come_in_the_form_of_construct():
    found = gradients(Two(), X, Y, position=(0, 1))
    assert [each.tolist() for each in found] == [[10, 10], [20, 20]]


def test_an_output_that_nothing_used_has_gradients_of_zero():
    net = Two()
    found = gradients(lambda x, y: net(x, y)[0].sum(), X, Y, position=(0, 1))
    assert [each.tolist() for each in found] == [[10, 10], [0, 0]]


def test_arguments_that_are_no_tensors_are_handed_on():
    net = Times()
    assert gradients(lambda x: net(x, 3), X).tolist() == [30, 30]
    assert gradients(lambda x: net(x, n=3), X).tolist() == [30, 30]


def test_gradients_of_arguments_that_are_no_tensors_may_be_left_out():
    class Only(Times):
        def bprop(self, x, n, out, dout):
            return (dout * n * 10,)

    net = Only()
    assert gradients(lambda x: net(x, 3), X).tolist() == [30, 30]


def test_one_gradient_may_come_without_a_tuple_and_none_is_zero():
    class Alone(Squared):
        def bprop(self, x, out, dout):
            return dout * 100

    class Nothing(Squared):
        def bprop(self, x, out, dout):
            return (None,)

    assert gradients(Alone(), X).tolist() == [100, 100]
    assert gradients(Nothing(), X).tolist() == [0, 0]


def test_tuples_of_tensors_get_tuples_of_gradients():
    net = Product()
    found = gradients(lambda a, b: net((a, b)).sum(), X, Y, position=(0, 1))
    assert [each.tolist() for each in found] == [[30, 40], [10, 20]]


def test_parameters_that_construct_uses_get_zeros_and_that_is_said(capfd):
    net = Weighted()
    of_input, of_weights = gradients(net, X, weights=net.trainable_params())
    assert of_input.tolist() == [7, 7]
    assert of_weights[0].tolist() == [0, 0]
    said = capfd.readouterr().err
    assert said.count("Weighted defines bprop, so what it holds itself is not trained: 'w'") == 1


def test_a_parameter_that_is_an_input_gets_its_gradient():
    class Uses(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = muster.Parameter(muster.Tensor(np.array([5, 6], np.float32)), name="w")
            self.product = Two()

        def construct(self, x):
            return self.product(self.w, x)[0]

    net = Uses()
    assert gradients(net, X, position=None, weights=net.trainable_params())[0].tolist() == [10, 10]


def test_what_flows_past_the_cell_stays_apart():
    net = Same()
    assert gradients(lambda x: (net(x) * 2 + x * 3).sum(), X).tolist() == [1, 1]


def test_outputs_that_are_one_tensor_have_a_gradient_each():
    class Twice(nn.Cell):
        def construct(self, x):
            y = x * x
            return y, y

        def bprop(self, x, out, dout):
            return (dout[0] * 10 + dout[1],)

    net = Twice()
    assert gradients(lambda x: (net(x)[0] * 2 + net(x)[1] * 3).sum(), X).tolist() == [23, 23]


def test_the_outer_of_two_counts():
    assert gradients(Outer(), X).tolist() == [1000, 1000]


def test_a_cell_without_one_around_it_passes_gradients_on():
    assert gradients(nn.SequentialCell(Squared(), nn.ReLU()), X).tolist() == [102, 106]


def test_what_construct_computes_without_a_gradient_has_one():
    class Rounded(nn.Cell):
        def construct(self, x):
            return ops.cast(ops.cast(x, muster.int32), muster.float32)

        def bprop(self, x, out, dout):
            return (dout,)

    x = muster.Tensor(np.array([1.5, -2.5], np.float32))
    value, found = muster.value_and_grad(Rounded())(x)
    assert value.tolist() == [1, -2]
    assert found.tolist() == [1, 1]


def test_construct_may_keep_something_for_it():
    class Keeps(Squared):
        def construct(self, x):
            self.kept = x * 2
            return x * x

        def bprop(self, x, out, dout):
            return (dout * self.kept,)

    assert gradients(Keeps(), X).tolist() == [2, 4]


def test_the_second_gradient_goes_through_it():
    net = Squared()
    assert gradients(lambda x: gradients(net, x).sum(), X).tolist() == [103, 107]


def test_the_second_gradient_goes_through_out_by_it_too():
    class Exp(nn.Cell):
        def construct(self, x):
            return ops.exp(x)

        def bprop(self, x, out, dout):
            return (dout * out * 2,)

    net = Exp()
    found = gradients(lambda x: gradients(net, x).sum(), X)
    np.testing.assert_allclose(found.asnumpy(), [10.873119, 29.55624], rtol=1e-6)


def test_a_cell_that_only_the_gradient_needs_lives_until_it_is_taken():
    def loss(x):
        y = Squared()(x)
        gc.collect()
        return y.sum()

    assert gradients(loss, X).tolist() == [102, 106]


def test_the_bprop_of_a_subclass_of_a_built_in_cell_counts():
    class Clipped(nn.ReLU):
        def bprop(self, x, out, dout):
            return (dout * 5,)

    assert gradients(Clipped(), X).tolist() == [5, 5]
    assert gradients(nn.SequentialCell(Clipped()), X).tolist() == [5, 5]


def test_in_bfloat16_it_sees_what_construct_saw():
    class Doubled(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, out, dout):
            assert x.dtype == out.dtype == dout.dtype == muster.bfloat16
            return (dout * 3,)

    net = Doubled().to_float(muster.bfloat16)
    found = gradients(lambda x: ops.cast(net(x), muster.float32).sum(), X)
    assert found.dtype == muster.float32
    assert found.tolist() == [3, 3]


def test_a_gradient_of_another_dtype_or_of_the_shape_that_the_input_was_broadcast_to_is_fitted():
    class Sum(nn.Cell):
        def construct(self, x, y):
            return x + y

        def bprop(self, x, y, out, dout):
            wide = muster.Tensor(np.array([[1, 1], [1, 1], [2, 2]], np.int64))
            return wide, wide

    y = muster.Tensor(np.ones((3, 1), np.float32))
    of_x, of_y = gradients(Sum(), X, y, position=(0, 1))
    assert of_x.dtype == of_y.dtype == muster.float32
    assert of_x.tolist() == [4, 4]
    assert of_y.tolist() == [[2], [2], [4]]


def test_none_beside_the_gradient_of_the_only_input_is_left_out():
    class Pair(nn.Cell):
        def construct(self, x):
            return x * x, None

        def bprop(self, x, out, dout):
            return dout

    pair = Pair()
    assert gradients(lambda x: pair(x)[0], X).tolist() == [1, 1]


def test_it_may_take_the_gradient_of_the_cell_that_made_its_output():
    class Square(nn.Cell):
        def construct(self, x):
            return x * x

    class Twice(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Square()

        def construct(self, x):
            return self.inner(x)

        def bprop(self, x, out, dout):
            return (gradients(self.inner, x) * 2,)

    assert gradients(Twice(), X).tolist() == [4, 8]


WRONG = {
    "too many": (lambda x, dout: (dout, dout), "gives one gradient for each input, 1; it gave 2"),
    "none": (lambda x, dout: (), "gives one gradient for each input, 1; it gave 0"),
    "shape": (
        lambda x, dout: (ops.ones((3,), muster.float32),),
        r"input 0 is float32 \(3,\), and the input is float32 \(2,\)",
    ),
    "no tensor": (lambda x, dout: (3,), "int as the gradient of input 0"),
    "no tuple": (lambda x, dout: 3, "a tuple of gradients, not int"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_it_gives_wrongly_is_an_error_that_names_cell_and_input(name):
    give, expected = WRONG[name]

    class Wrong(nn.Cell):
        def construct(self, x):
            return x * x

        def bprop(self, x, out, dout):
            return give(x, dout)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.wrong = Wrong()

        def construct(self, x):
            return self.wrong(x)

    with pytest.raises(ValueError, match="Wrong 'wrong': .*bprop.*" + expected):
        gradients(Net(), X)


def test_arguments_that_it_does_not_take_are_pythons_error():
    class Short(Squared):
        def bprop(self, x, dout):
            return (dout,)

    with pytest.raises(TypeError, match="bprop"):
        gradients(Short(), X)


class Learns(nn.Cell):
    """y = w x, where the gradient of w has the wrong sign, so that training moves away."""

    def __init__(self, factor):
        super().__init__()
        self.w = muster.Parameter(muster.Tensor(np.ones((1, 1), np.float32)), name="w")
        self.product = self.Product(factor)

    class Product(nn.Cell):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def construct(self, x, w):
            return ops.matmul(x, w)

        def bprop(self, x, w, out, dout):
            return ops.matmul(dout, w.T), ops.matmul(x.T, dout) * self.factor

    def construct(self, x):
        return self.product(x, self.w)


def trained(factor):
    rows = (np.ones((2, 1), np.float32), np.full((2, 1), 3, np.float32))
    data = dataset.NumpySlicesDataset(rows, ["x", "y"], shuffle=False).batch(2)
    net = Learns(factor)
    muster.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.25)).train(1, data)
    return net.w.asnumpy().item()


def test_a_model_trains_by_it():
    assert trained(1) == 2.0  # 1 - 0.25 * 2 * (1 - 3)
    assert trained(-1) == 0.0


JOB = """
import numpy as np
import muster
from muster import dataset, nn, ops
muster.init()
muster.set_context(mode={mode!r})
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
class Product(nn.Cell):
    def construct(self, x, w):
        return ops.matmul(x, w)
    def bprop(self, x, w, out, dout):
        return ops.matmul(dout, w.T), ops.matmul(x.T, dout) * -1
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = muster.Parameter(muster.Tensor(np.ones((1, 1), np.float32)), name="w")
        self.product = Product()
    def construct(self, x):
        return self.product(x, self.w)
rank = muster.get_rank()
rows = (np.ones((2, 1), np.float32), np.full((2, 1), 3 + 4 * rank, np.float32))
data = dataset.NumpySlicesDataset(rows, ["x", "y"], shuffle=False).batch(2)
net = Net()
muster.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.25)).train(1, data)
assert net.w.asnumpy().item() == -1.0, net.w.asnumpy()  # 1 + 0.25 * mean(2 * (1 - 3), 2 * (1 - 7))
"""


def test_workers_of_a_data_parallel_job_train_by_it(mode):
    with Job(JOB.format(mode=mode), workers=2) as job:
        for process in job.workers:
            assert process.wait() == 0, process.output()


def test_a_cell_with_one_ends_with_its_last_reference():
    def used():
        net = Squared()
        gradients(lambda x: net(x).sum(), X)
        net(X)
        return weakref.ref(net)

    found = used()
    gc.collect()
    assert found() is None
