"""mindspore.nn.probability.distribution: probabilities, moments and draws of distributions."""

from mindspore import _names
from mindspore.nn.probability.distribution._base import Distribution
from mindspore.nn.probability.distribution._continuous import Exponential, Normal, Uniform
from mindspore.nn.probability.distribution._discrete import Bernoulli, Categorical

__all__ = ["Bernoulli", "Categorical", "Distribution", "Exponential", "Normal", "Uniform"]
__getattr__ = _names.missing(__name__)
