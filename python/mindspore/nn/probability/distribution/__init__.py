"""mindspore.nn.probability.distribution: probabilities, moments and draws of distributions."""

from mindspore import _names
from mindspore.nn.probability.distribution._base import Distribution
from mindspore.nn.probability.distribution._continuous import Beta, Exponential, Gamma, Normal, Uniform
from mindspore.nn.probability.distribution._discrete import Bernoulli, Categorical, Geometric, Poisson
from mindspore.nn.probability.distribution._of_place import Cauchy, HalfNormal, Laplace, Logistic, StudentT
from mindspore.nn.probability.distribution._transformed import Gumbel, LogNormal, TransformedDistribution

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Laplace",
    "LogNormal",
    "Logistic",
    "Normal",
    "Poisson",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
]
__getattr__ = _names.missing(__name__)
