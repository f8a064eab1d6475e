"""nn.probability.distribution beside MindSpore's answers."""

import builtins
import importlib.util
import json
from pathlib import Path

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

PARITY = Path(__file__).parents[1] / "parity"
RECORDED = json.loads((PARITY / "distributions.json").read_text())
DRAWN = [name for name, answer in RECORDED.items() if not isinstance(answer, str)]


def programs():
    spec = importlib.util.spec_from_file_location("distributions", PARITY / "distributions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", RECORDED)
def test_a_distribution_gives_what_mindspore_gives(name):
    if isinstance(RECORDED[name], str):
        with pytest.raises(getattr(builtins, RECORDED[name])):
            programs().answer(*name.split("."))
        return
    dtype, shape, numbers = programs().answer(*name.split("."))
    assert [dtype, shape] == RECORDED[name][:2]
    np.testing.assert_allclose(numbers, RECORDED[name][2], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", [kind for kind in programs().CASES if f"{kind}.sd.made" in DRAWN])
def test_draws_have_the_moments_that_the_distribution_says(kind):
    mindspore.set_seed(3)
    made = getattr(programs().msd, kind)(*programs().CASES[kind][0])
    drawn = made.sample((20000,)).asnumpy().astype(np.float64)
    assert drawn.shape[0] == 20000
    mean, deviation = made.mean().asnumpy(), made.sd().asnumpy()
    np.testing.assert_array_less(abs(drawn.mean(0) - mean), 4 * deviation / 20000**0.5)
    np.testing.assert_allclose(drawn.std(0) / deviation, np.ones_like(deviation), rtol=0.06)


@pytest.mark.parametrize("shape", [0.3, 1.0, 3.0, 40.0])
def test_draws_of_gamma_have_the_mean_and_the_variance_of_their_shape(shape):
    mindspore.set_seed(3)
    count = 200_000
    drawn = (
        mindspore.ops.gamma((count,), mindspore.Tensor(shape), mindspore.Tensor(1.0))
        .asnumpy()
        .astype(np.float64)
    )
    assert abs(drawn.mean() - shape) < 4 * (shape / count) ** 0.5
    assert abs(drawn.var() / shape - 1) < 4 * ((6 / shape + 2) / count) ** 0.5  # of a kurtosis of 6 / shape


def test_the_median_of_draws_of_cauchy_is_its_place():
    mindspore.set_seed(3)
    drawn = nn.probability.distribution.Cauchy(1.0, 2.0).sample((20000,)).asnumpy()
    np.testing.assert_allclose(np.quantile(drawn, [0.25, 0.5, 0.75]), [-1, 1, 3], atol=0.1)


def test_a_transformed_distribution_draws_what_the_bijector_makes():
    mindspore.set_seed(3)
    made = programs().msb.ScalarAffine([2.0, 3.0], 1.0)(nn.probability.distribution.Normal(0.5, 2.0))
    drawn = made.sample((20000, 2)).asnumpy()
    np.testing.assert_allclose(drawn.mean(0), [2.0, 2.5], atol=0.2)
    np.testing.assert_allclose(drawn.std(0), [4.0, 6.0], rtol=0.05)


def test_a_bijector_in_a_graph_has_gradients():
    class Flow(nn.Cell):
        def __init__(self):
            super().__init__()
            self.bijector = programs().msb.Softplus(2.0)

        def construct(self, x):
            return self.bijector("forward", x).sum()

    gradient = mindspore.grad(Flow())(Tensor([0.0, 1.0]))
    np.testing.assert_allclose(gradient.asnumpy(), 1 / (1 + np.exp([-0.0, -2.0])), rtol=1e-5)


def test_a_parameter_of_a_distribution_is_trained():
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.of = nn.probability.distribution.Normal(mindspore.Parameter(Tensor([1.0]), name="m"), 2.0)

        def construct(self, x):
            return self.of.log_prob(x).sum()

    model = Model()
    gradients = mindspore.grad(model, None, model.trainable_params())(Tensor([5.0]))
    np.testing.assert_allclose(gradients[0].asnumpy(), [1.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda of, _: of.Cauchy(0.0, 1.0), "Cauchy(location = 0.0, scale = 1.0)"),
        (lambda of, _: of.Poisson(), "Poisson(rate = None)"),
        (lambda of, _: of.Gamma([1.0], [2.0]).extend_repr(), "'batch_shape = (1,)'"),
        (lambda of, _: of.HalfNormal(0.0, 1.0), "HalfNormal()"),
        (lambda _, by: by.ScalarAffine(), "ScalarAffine(scale = 1.0, shift = 0.0)"),
        (lambda _, by: by.Invert(by.Exp()), "Invert(\n  (_bijector): Exp(exp)\n)"),
    ],
)
def test_a_distribution_is_shown_as_mindspore_shows_it(made, text):
    assert repr(made(programs().msd, programs().msb)) == text


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (TypeError, lambda of, _: of.Normal(0.0, 1.0).log_prob(1.0)),
        (TypeError, lambda of, _: of.Normal(0.0, 1.0, dtype=mindspore.int32)),
        (TypeError, lambda of, _: of.Normal(0.0, 1.0, name=3)),
        (TypeError, lambda of, _: of.Normal(0.0, 1.0, seed=1.5)),
        (ValueError, lambda of, _: of.Normal(0.0, 1.0, seed=-1)),
        (TypeError, lambda of, _: of.Normal(True, 1.0)),
        (TypeError, lambda of, _: of.Normal(Tensor([1.0]), Tensor([1.0], mindspore.float16))),
        (TypeError, lambda of, _: of.Normal().mean()),
        (TypeError, lambda of, _: of.Normal(0.0, 1.0).sample([2])),
        (NotImplementedError, lambda of, _: of.Normal(0.0, 1.0)("of_another_kind")),
        (ValueError, lambda of, _: of.Normal(0.0, 1.0).kl_loss("Gamma", Tensor([1.0]), Tensor([1.0]))),
        (TypeError, lambda of, _: of.Gamma(2.0, 3.0)),
        (ValueError, lambda of, _: of.Geometric(1.0)),
        (TypeError, lambda _, by: by.ScalarAffine(2, 1)),
        (TypeError, lambda _, by: by.ScalarAffine(2.0, None)),
        (TypeError, lambda _, by: by.ScalarAffine(2.0).forward(Tensor([1, 2], mindspore.int32))),
        (ValueError, lambda _, by: by.PowerTransform(-1.0)),
        (ValueError, lambda of, by: by.Exp()(of.Normal(0.0, 1.0)).mean()),
    ],
)
def test_what_mindspore_refuses_is_refused_by_the_same_error(error, call):
    with pytest.raises(error):
        call(programs().msd, programs().msb)


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
    with pytest.raises(TypeError, match="sd is given neither here nor to Normal"):
        nn.probability.distribution.Normal(mean=0.0).log_prob(Tensor([1.0]))
