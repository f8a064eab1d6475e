"""nn.probability.distribution beside MindSpore's answers."""

import importlib.util
import json
from pathlib import Path

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

PARITY = Path(__file__).parents[1] / "parity"
RECORDED = json.loads((PARITY / "distributions.json").read_text())


def programs():
    spec = importlib.util.spec_from_file_location("distributions", PARITY / "distributions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", RECORDED)
def test_a_distribution_gives_what_mindspore_gives(name):
    dtype, shape, numbers = programs().answer(*name.split("."))
    assert [dtype, shape] == RECORDED[name][:2]
    np.testing.assert_allclose(numbers, RECORDED[name][2], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", list(programs().CASES))
def test_draws_have_the_moments_that_the_distribution_says(kind):
    mindspore.set_seed(3)
    made = getattr(programs().msd, kind)(*programs().CASES[kind][0])
    drawn = made.sample((20000,)).asnumpy()
    assert drawn.shape == (20000,)
    assert drawn.mean() == pytest.approx(float(made.mean()), abs=4 * float(made.sd()) / 20000**0.5)
    assert drawn.std() == pytest.approx(float(made.sd()), rel=0.05)


def test_draws_are_of_each_element_of_the_parameters():
    made = nn.probability.distribution.Normal(Tensor([0.0, 100.0]), Tensor([[1.0], [2.0]]))
    assert made.batch_shape == (2, 2)
    assert made.sample((5,)).shape == (5, 2, 2)
    assert (made.sample((5,)).asnumpy()[..., 1] > 50).all()


def test_the_logarithm_of_a_probability_has_gradients():
    def loss(probs):
        return nn.probability.distribution.Categorical().log_prob(Tensor([0.0, 2.0]), probs).sum()

    gradient = mindspore.grad(loss)(Tensor([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]]))
    np.testing.assert_allclose(gradient.asnumpy(), [[5, 0, 0], [0, 0, 2]], rtol=1e-5)


def test_a_cell_may_hold_a_distribution():
    class Agent(nn.Cell):
        def __init__(self):
            super().__init__()
            self.choice = nn.probability.distribution.Categorical()

        def construct(self, logits):
            return self.choice("entropy", ops.softmax(logits))

    np.testing.assert_allclose(Agent()(Tensor([[1.0, 1.0]])).asnumpy(), np.log(2.0), rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        ("Normal", (0.0, -1.0), "sd is above 0"),
        ("Uniform", (2.0, 1.0), "high is above low"),
        ("Exponential", (0.0,), "rate is above 0"),
        ("Bernoulli", (1.5,), "from 0 to 1"),
        ("Categorical", ([0.5, 0.6],), "their sum is 1"),
    ],
)
def test_parameters_that_cannot_be_are_refused(kind, parameters, words):
    with pytest.raises(ValueError, match=words):
        getattr(nn.probability.distribution, kind)(*parameters)


def test_a_parameter_that_nobody_gives_is_named():
    with pytest.raises(ValueError, match="sd is given neither here nor to Normal"):
        nn.probability.distribution.Normal(mean=0.0).log_prob(Tensor([1.0]))
