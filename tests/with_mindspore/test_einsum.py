"""Einstein's notation beside numpy's, for drawn equations."""

import random

import numpy
import pytest
from mindspore import Tensor, grad, ops

SIZES = {"a": 2, "b": 3, "c": 4, "d": 1, "e": 5}


def drawn(seed):
    """An equation of up to three operands, and their numbers."""
    draw = random.Random(seed)
    terms = ["".join(draw.sample("abcde", draw.randint(1, 4))) for _ in range(draw.choice([1, 2, 2, 2, 3]))]
    labels = sorted(set("".join(terms)))
    result = "".join(draw.sample(labels, draw.randint(0, len(labels))))
    numbers = numpy.random.default_rng(seed)
    operands = [numbers.standard_normal([SIZES[label] for label in term]) for term in terms]
    return f"{','.join(terms)}->{result}", operands


def test_drawn_equations_give_numpys_sums():
    for seed in range(300):
        equation, operands = drawn(seed)
        found = ops.einsum(equation, *map(Tensor, operands)).asnumpy()
        numpy.testing.assert_allclose(
            found, numpy.einsum(equation, *operands), atol=1e-12, err_msg=f"{equation}, seed {seed}"
        )


@pytest.mark.parametrize("equation", ["bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk", "bhkq,bkhd->bhqd", "ij,kj->ki"])
def test_gradients_of_matrices_are_those_of_their_sums(equation):
    sizes = {"b": 2, "h": 3, "q": 4, "k": 5, "d": 2, "i": 3, "j": 2}
    numbers = numpy.random.default_rng(5)
    first, second = (
        numbers.standard_normal([sizes[label] for label in term])
        for term in equation.split("->")[0].split(",")
    )
    weights = numpy.einsum(equation, first, second)
    found = grad(lambda a, b: (ops.einsum(equation, a, b) * Tensor(weights)).sum(), (0, 1))(
        Tensor(first), Tensor(second)
    )
    terms, result = equation.split("->")
    one, other = terms.split(",")
    numpy.testing.assert_allclose(
        found[0].asnumpy(), numpy.einsum(f"{result},{other}->{one}", weights, second), atol=1e-12
    )
    numpy.testing.assert_allclose(
        found[1].asnumpy(), numpy.einsum(f"{result},{one}->{other}", weights, first), atol=1e-12
    )


def test_a_tensor_whose_axes_stay_is_another_tensor():
    x = Tensor(numpy.ones((2, 2)))
    y = ops.einsum("ij->ij", x)
    y[0] = 5
    assert x.asnumpy().max() == 1
