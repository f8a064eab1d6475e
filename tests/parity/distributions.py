"""Prints what nn.probability.distribution gives, as JSON: under MindSpore 2.7.0 it is distributions.json."""

import json

import mindspore.nn.probability.distribution as msd
import numpy as np
from mindspore import Tensor

REALS, TRUTHS, CLASSES = [-0.5, 0.0, 0.7, 1.0, 2.5], [0.0, 1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 2.0]
CASES = {  # parameters, values, parameters of another one
    "Normal": ([1.0, 2.0], REALS, [0.5, 1.5]),
    "Uniform": ([0.0, 2.0], REALS, [-1.0, 3.0]),
    "Exponential": ([1.5], REALS, [0.5]),
    "Bernoulli": ([0.3], TRUTHS, [0.6]),
    "Categorical": ([[0.2, 0.3, 0.5]], CLASSES, [[0.1, 0.3, 0.6]]),
}
OF_VALUES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival")
OF_PARAMETERS = ("mean", "mode", "var", "sd", "entropy")
OF_TWO = ("kl_loss", "cross_entropy")


def tensor(values):
    return Tensor(np.array(values, np.float32))


def answer(kind, method, when):
    """[dtype, shape, numbers] of a method; `when` are its parameters given: 'made', or with the 'call'."""
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
    numbers = result.asnumpy()
    return [str(numbers.dtype), list(numbers.shape), numbers.astype(float).ravel().tolist()]


def answers():
    given = {}
    for kind in CASES:
        for method in OF_VALUES + OF_PARAMETERS + OF_TWO:
            for when in ("made", "call"):
                if (kind, method) != ("Uniform", "mode"):
                    given[f"{kind}.{method}.{when}"] = answer(kind, method, when)
    return given


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(given)}" for name, given in answers().items()]
    print("{", ",\n".join(lines), "}", sep="\n")
