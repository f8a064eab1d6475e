"""value_and_grad and jit, against gradients that are known."""

import concurrent.futures
import threading

import numpy
import pytest

import muster
from muster import nn


def tensor(*values):
    return muster.Tensor(numpy.array(values, numpy.float32))


def square_sum(x):
    return (x * x).sum()


def test_a_number_as_grad_position_gives_one_gradient():
    value, gradient = muster.value_and_grad(square_sum)(tensor(1, 2, 3))
    assert value.item() == 14.0
    assert gradient.tolist() == [2.0, 4.0, 6.0]


def test_several_grad_positions_give_a_tuple():
    _, gradients = muster.value_and_grad(lambda x, y: (x * y).sum(), (0, 1))(tensor(1, 2), tensor(3, 4))
    assert [gradient.tolist() for gradient in gradients] == [[3.0, 4.0], [1.0, 2.0]]


def test_positions_and_weights_give_a_pair():
    weight = muster.Parameter([2.0, 3.0], name="w")
    grad_fn = muster.value_and_grad(lambda x: (x * weight).sum(), 0, [weight])
    value, (inputs, weights) = grad_fn(tensor(5, 7))
    assert value.item() == 31.0
    assert inputs.tolist() == [2.0, 3.0]
    assert isinstance(weights, tuple) and weights[0].tolist() == [5.0, 7.0]


def test_one_parameter_gives_one_gradient():
    weight = muster.Parameter([2.0], name="w")
    _, gradient = muster.value_and_grad(lambda x: (x * weight).sum(), None, weight)(tensor(5))
    assert gradient.tolist() == [5.0]


def test_what_is_beside_the_loss_takes_no_part_in_the_gradient():
    def with_aux(x):
        return square_sum(x), x * 100

    (value, aux), gradient = muster.value_and_grad(with_aux, has_aux=True)(tensor(3))
    assert (value.item(), aux.tolist(), gradient.tolist()) == (9.0, [300.0], [6.0])


def test_arguments_that_are_no_tensors_are_a_part_of_the_signature():
    grad_fn = muster.value_and_grad(lambda x, times: (x * times).sum())
    assert grad_fn(tensor(1), 2)[1].tolist() == [2.0]
    assert grad_fn(tensor(1), 3)[1].tolist() == [3.0]
    assert grad_fn(tensor(1), times=2)[1].tolist() == [2.0]
    assert len(grad_fn.traces) == 3
    assert grad_fn(tensor(1), 2)[1].tolist() == [2.0]
    assert len(grad_fn.traces) == 3


def test_a_trace_says_why_it_was_made():
    grad_fn = muster.value_and_grad(square_sum)
    grad_fn(tensor(1, 2))
    grad_fn(tensor(1))
    assert [trace["signature"] for trace in grad_fn.traces] == ["float32 (2,)", "float32 (1,)"]
    assert grad_fn.traces[0]["reason"] == "first call"
    assert "(1,)" in grad_fn.traces[1]["reason"]


def test_true_and_one_and_one_point_zero_are_different_arguments():
    seen = []

    @muster.jit
    def note(x, flag):
        seen.append(flag)
        return x

    for flag in (True, 1, 1.0, True, 1, 1.0):
        note(tensor(1), flag)
    assert [repr(flag) for flag in seen] == ["True", "1", "1.0"]


def test_an_array_is_an_input_like_a_tensor():
    double = muster.jit(lambda x: x * 2)
    assert double(numpy.float32([1, 2])).tolist() == [2.0, 4.0]
    assert double(numpy.float32([5, 6])).tolist() == [10.0, 12.0]
    assert len(double.traces) == 1


def test_a_function_that_fails_can_be_called_again():
    calls = []

    @muster.jit
    def fails_once(x):
        calls.append(1)
        if len(calls) == 1:
            raise OSError("not now")
        return x

    with pytest.raises(OSError, match="not now"):
        fails_once(tensor(1))
    assert fails_once(tensor(1)).tolist() == [1.0]


def test_gradients_of_nothing_are_refused():
    with pytest.raises(ValueError, match="gradients of what"):
        muster.value_and_grad(square_sum, None)
    with pytest.raises(ValueError, match="argument 1"):
        muster.value_and_grad(square_sum, 1)(tensor(1))
    with pytest.raises(TypeError, match="function or a cell"):
        muster.jit(3)


def test_results_stay_what_they_were_when_the_plan_runs_again():
    double = muster.jit(lambda x: x * 2)
    first = double(tensor(1))
    view = double(tensor(2)).asnumpy()
    for i in range(20):
        double(tensor(i))
    assert first.tolist() == [2.0]
    assert view.tolist() == [4.0]


def numeric_gradient(function, values, step=1e-3):
    gradient = numpy.zeros_like(values)
    for at in numpy.ndindex(*values.shape):
        up, down = values.copy(), values.copy()
        up[at] += step
        down[at] -= step
        gradient[at] = (function(up) - function(down)) / (2 * step)
    return gradient


def test_the_gradient_of_a_net_is_that_of_finite_differences():
    muster.set_seed(3)
    net = nn.SequentialCell(nn.Dense(4, 5, "normal"), nn.Tanh(), nn.Dense(5, 3, "normal"))
    loss_fn = nn.CrossEntropyLoss()
    random = numpy.random.default_rng(5)
    data = muster.Tensor(random.standard_normal((6, 4), numpy.float32))
    label = muster.Tensor(numpy.arange(6, dtype=numpy.int32) % 3)
    weight = net.trainable_params()[0]
    _, (gradient, *_) = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())(
        data, label
    )

    def loss_at(values):
        weight.set_data(values)
        return loss_fn(net(data), label).item()

    expected = numeric_gradient(loss_at, weight.asnumpy().copy(), step=1e-2)
    numpy.testing.assert_allclose(gradient.asnumpy(), expected, atol=2e-4)


def test_an_optimizer_step_moves_parameters_against_their_gradients():
    weight = muster.Parameter([1.0, 2.0], name="w")
    optimizer = nn.SGD([weight], learning_rate=0.5)
    optimizer((tensor(1, -1),))
    assert weight.tolist() == [0.5, 2.5]
    optimizer.learning_rate = 0.25
    optimizer([tensor(1, -1)])
    assert weight.tolist() == [0.25, 2.75]
    assert optimizer.parameters == (weight,)


def test_an_optimizer_refuses_what_are_no_parameters():
    with pytest.raises(TypeError, match="takes Parameters, not Tensor"):
        nn.SGD([tensor(1)])
    with pytest.raises(TypeError, match="takes Parameters, not Tensor"):
        nn.SGD([{"params": [tensor(1)]}])


def test_the_reducer_gives_gradients_back_in_a_process_without_a_cluster():
    weight = muster.Parameter([1.0], name="w")
    reduced = nn.DistributedGradReducer([weight])((tensor(3),))
    assert [gradient.tolist() for gradient in reduced] == [[3.0]]


def test_operators_agree_with_numpy():
    a, b = numpy.float32([[1, 2], [3, 4]]), numpy.float32([[5, 6], [7, 8]])
    x, y = muster.Tensor(a), muster.Tensor(b)
    assert (x + y).tolist() == (a + b).tolist()
    assert (2 - x / 4).tolist() == (2 - a / 4).tolist()
    assert (x @ y).tolist() == (a @ b).tolist()
    assert (-x * y).tolist() == (-a * b).tolist()
    assert (x == x).asnumpy().all() and not (x == y).asnumpy().any()
    assert x.reshape(4).tolist() == x.reshape((-1,)).tolist() == a.ravel().tolist()
    assert x.argmax(axis=-1).tolist() == [1, 1]
    assert x.mean().item() == 2.5
    with pytest.raises(TypeError):
        x + "a"


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_threads_call_one_network_and_its_gradient_at_once(mode):
    muster.set_context(mode=mode)
    try:
        for _ in range(5):  # each time with traces to be made
            net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
            grad_fn = muster.value_and_grad(lambda x, net=net: net(x).sum(), None, net.trainable_params())

            def work(number, net=net, grad_fn=grad_fn):
                rows = 2 + number % 3
                x = muster.Tensor(numpy.full((rows, 4), number, numpy.float32))
                loss, gradients = grad_fn(x)
                return net(x).numpy().sum(), float(loss), gradients[-1].tolist() == [rows, rows]

            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                for whole, loss, is_right in pool.map(work, range(12)):
                    assert whole == pytest.approx(loss, rel=1e-5)
                    assert is_right
    finally:
        muster.set_context(mode="graph")


def test_a_thread_that_waits_for_a_trace_lets_others_run():
    seen, traced, goes_on = [], threading.Event(), threading.Event()

    class Slow(nn.Cell):
        def construct(self, x):
            traced.set()
            assert goes_on.wait(20)
            return x * 2

    x = muster.Tensor(numpy.ones(2, numpy.float32))
    slow, quick = Slow(), nn.ReLU()
    first = threading.Thread(target=lambda: seen.append(slow(x).tolist()))
    second = threading.Thread(target=lambda: seen.append(quick(x).tolist()))
    first.start()
    assert traced.wait(20)
    second.start()
    goes_on.set()
    first.join(20)
    second.join(20)
    assert sorted(seen) == [[1, 1], [2, 2]]
