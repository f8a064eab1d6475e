"""Prints what nn.probability.distribution gives, as JSON: under MindSpore 2.7.0 it is distributions.json."""

import json

import mindspore.nn.probability.bijector as msb
import mindspore.nn.probability.distribution as msd
import numpy as np
from mindspore import Tensor

REALS, TRUTHS, CLASSES = [-0.5, 0.0, 0.7, 1.0, 2.5], [0.0, 1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 2.0]
CASES = {  # parameters, values, parameters of another one
    "Normal": ([1.0, 2.0], REALS, [0.5, 1.5]),
    "Uniform": ([0.0, 2.0], REALS, [-1.0, 3.0]),
    "Exponential": ([1.5], REALS, [0.5]),
    "Bernoulli": ([0.3], TRUTHS, [0.6]),
    "Beta": ([[2.0, 0.5], [3.0, 1.5]], [0.1, 0.7], [[1.0, 2.5], [2.0, 2.0]]),
    "Cauchy": ([1.0, 2.0], REALS, [0.5, 1.5]),
    "Gamma": ([[2.0, 0.5], [1.5, 3.0]], [0.3, 2.5], [[1.0, 2.5], [2.0, 2.0]]),
    "Geometric": ([0.3], REALS, [0.6]),
    "Gumbel": ([1.0, 2.0], REALS, [0.5, 1.5]),
    "HalfNormal": ([0.0, 2.0], REALS, [0.5, 1.5]),
    "Laplace": ([1.0, 2.0], REALS, [0.5, 1.5]),
    "LogNormal": ([0.5, 0.7], [-0.5, 0.3, 1.0, 2.5], [0.0, 1.5]),
    "Logistic": ([1.0, 2.0], [-60.0, *REALS, 60.0], [0.5, 1.5]),
    "Poisson": ([[0.5, 3.0]], [[-1.0, 2.0], [0.0, 2.5]], [[1.0, 2.0]]),
    "StudentT": ([3.0, 1.0, 2.0], REALS, [2.0, 0.5, 1.5]),
    "Categorical": ([[0.2, 0.3, 0.5]], CLASSES, [[0.1, 0.3, 0.6]]),
}
OF_VALUES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival")
OF_PARAMETERS = ("mean", "mode", "var", "sd", "entropy")
OF_TWO = ("kl_loss", "cross_entropy")
VALUES = [0.2, 0.5, 0.9, 30.0]
BIJECTORS = {  # how one is made, and values; those of the inverse of GumbelCDF are below 1
    "Exp": (lambda: msb.Exp(), VALUES),
    "PowerTransform": (lambda: msb.PowerTransform([0.0, 0.5, 1.0, 2.0]), VALUES),
    "ScalarAffine": (lambda: msb.ScalarAffine(-2.0, 1.0), VALUES),
    "Softplus": (lambda: msb.Softplus([1.0, 2.0, 0.5, 1.0]), VALUES),
    "GumbelCDF": (lambda: msb.GumbelCDF(0.5, 2.0), VALUES[:3]),
    "Invert": (lambda: msb.Invert(msb.ScalarAffine(2.0, 1.0)), VALUES),
}
OF_BIJECTORS = ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian")
TRANSFORMED = {  # how one is made
    "affine": lambda: msb.ScalarAffine([2.0, 3.0], 1.0)(msd.Normal(0.5, 2.0)),
    "softplus": lambda: msd.TransformedDistribution(msb.Softplus(1.0), msd.Logistic(0.0, 1.0)),
}


def tensor(values):
    return Tensor(np.array(values, np.float32))


def answer(kind, method, when):
    """[dtype, shape, numbers] of a method; `when` are its parameters given: 'made', or with the 'call'."""
    if kind in BIJECTORS:
        return described(getattr(BIJECTORS[kind][0](), method)(tensor(BIJECTORS[kind][1])))
    if kind in TRANSFORMED:
        made = TRANSFORMED[kind]()
        return described(getattr(made, method)(*([tensor(VALUES[:2])] if method in OF_VALUES else [])))
    parameters, values, other = CASES[kind]
    given = [tensor(value) for value in parameters]
    made = getattr(msd, kind)(*(parameters if when == "made" else ()))
    late = given if when == "call" else []
    if method in OF_VALUES:
        result = getattr(made, method)(tensor(values), *late)
    elif method in OF_PARAMETERS:
        result = getattr(made, method)(*late)
    else:
        result = getattr(made, method)(kind, *map(tensor, other), *late)
    return described(result)


def described(result):
    """[dtype, shape, numbers] of a tensor."""
    numbers = result.asnumpy()
    return [str(numbers.dtype), list(numbers.shape), numbers.astype(float).ravel().tolist()]


def programs():
    for kind in CASES:
        for method in OF_VALUES + OF_PARAMETERS + OF_TWO:
            for when in ("made", "call"):
                yield kind, method, when
    for kind in BIJECTORS:
        for method in OF_BIJECTORS:
            yield kind, method, "made"
    for kind in TRANSFORMED:
        for method in (*OF_VALUES, "mean"):
            yield kind, method, "made"


def answers():
    """Of all programs; an error by its kind."""
    given = {}
    for program in programs():
        try:
            given[".".join(program)] = answer(*program)
        except (NotImplementedError, TypeError, ValueError) as error:
            given[".".join(program)] = type(error).__name__
    return given


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(given)}" for name, given in answers().items()]
    print("{", ",\n".join(lines), "}", sep="\n")
