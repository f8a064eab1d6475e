"""Code that a graph cannot hold runs op by op: texts of tensors, attributes that are set, other results."""

import sys

import numpy as np
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Tensor, nn


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def mode(request):
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_what_a_compiled_function_prints_has_elements_in_each_call(capsys):
    @ms.jit
    def doubled(x):
        y = x * 2
        print("y is", y, f"{y}", repr(y))
        return y

    for number in (1.0, 2.0):
        assert doubled(Tensor([number])).asnumpy().tolist() == [2 * number]
        printed = capsys.readouterr().out
        text = f"[{2 * number:.0f}.]"
        whole = f"Tensor(shape=[1], dtype=Float32, value= [ {2 * number:.8e}])"
        assert printed == f"y is {text} {text} {whole}\n"


def test_a_function_that_prints_has_its_gradients(capsys):
    weight = ms.Parameter(Tensor([3.0, 4.0]), name="w")

    def loss(x):
        y = weight * x
        print("loss of", y)
        return y.sum()

    both = ms.value_and_grad(loss, 0, [weight])
    for x in ([1.0, 2.0], [5.0, 6.0]):
        value, (of_x, of_weights) = both(Tensor(x))
        assert float(value) == 3 * x[0] + 4 * x[1]
        assert of_x.asnumpy().tolist() == [3, 4]
        assert of_weights[0].asnumpy().tolist() == x
    assert capsys.readouterr().out == "loss of [3. 8.]\nloss of [15. 24.]\n"


class _Keeps(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")
        self.hidden = None

    def construct(self, x):
        h = self.dense(x)
        self.hidden = h
        self.parts = {"all": [h, (h * 2,)]}
        return h.sum()


def test_attributes_that_construct_sets_have_elements(mode):
    cell = _Keeps()
    for number in (1.0, 2.0):
        x = Tensor(np.full((1, 2), number, np.float32))
        assert float(cell(x)) == 4 * number
        assert cell.hidden.asnumpy().tolist() == [[2 * number] * 2]
        assert cell.parts["all"][1][0].asnumpy().tolist() == [[4 * number] * 2]
    value, gradients = ms.value_and_grad(cell, None, cell.trainable_params())(Tensor([[5.0, 6.0]]))
    assert float(value) == 22
    assert gradients[0].asnumpy().tolist() == [[5, 6], [5, 6]]
    assert cell.hidden.asnumpy().tolist() == [[11, 11]]


def test_numbers_that_construct_sets_do_not_end_the_graph():
    class Counts(nn.Cell):
        def construct(self, x):
            self.size = x.shape[0]
            return x * 2

    cell = Counts()
    cell(Tensor([1.0, 2.0]))
    assert cell.size == 2


def test_results_of_compiled_functions_may_be_anything():
    @ms.jit
    def arrays(x):
        return x.asnumpy() + 1, np.array([1, 2]), {"a": np.zeros(2)}

    for number in (1, 2):
        first, second, third = arrays(Tensor([number]))
        assert first.tolist() == [number + 1]
        assert second.tolist() == [1, 2]
        assert third["a"].tolist() == [0, 0]

    class Net(nn.Cell):
        @ms.jit
        def construct(self, x):
            return x.asnumpy() * 3

    assert Net()(Tensor([4])).tolist() == [12]
