"""Optimizers whose parameters have 16 bits: several are updated as those of 32 bits are, but for rounding."""

import numpy
import pytest

import muster
from muster import nn

OPTIMIZERS = {
    "SGD": lambda parameters: nn.SGD(parameters, 0.1, momentum=0.9),
    "Momentum": lambda parameters: nn.Momentum(parameters, 0.1, 0.9),
    "Adam": nn.Adam,
    "AdamWeightDecay": nn.AdamWeightDecay,
    "Lamb": lambda parameters: nn.Lamb(parameters, 0.01),
    "FTRL": nn.FTRL,
    "RMSProp": nn.RMSProp,
    "Adagrad": nn.Adagrad,
}
WEIGHTS, GRADIENTS = (numpy.random.default_rng(seed).standard_normal((3, 4, 5)) for seed in (1, 2))


def trained(make, dtypes):
    """Three parameters after three steps, as float32."""
    parameters = [
        muster.Parameter(muster.Tensor(weight, muster.float32).astype(dtype), name=f"weight_{number}")
        for number, (weight, dtype) in enumerate(zip(WEIGHTS, dtypes, strict=True))
    ]
    optimizer = make(parameters)
    gradients = [
        muster.Tensor(gradient, muster.float32).astype(dtype)
        for gradient, dtype in zip(GRADIENTS, dtypes, strict=True)
    ]
    for _ in range(3):
        optimizer(*gradients)
    return numpy.stack([parameter.astype(muster.float32).asnumpy() for parameter in parameters])


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize(
    "dtypes",
    [[muster.float16] * 3, [muster.bfloat16] * 3, [muster.float32, muster.float16, muster.float16]],
    ids=["float16", "bfloat16", "mixed"],
)
def test_several_are_updated(make, dtypes):
    assert trained(make, dtypes) == pytest.approx(trained(make, [muster.float32] * 3), abs=0.03)
