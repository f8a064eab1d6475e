"""Figures in float64, which decide where MindSpore cannot: by case, why, and a function that gives figures.

The figures given here take the place of MindSpore's, or join them.
"""

import numpy as np
from cases import SHAPES, STEPS, numbers


def lars():
    """LARS(Momentum(0.05, 0.9, weight_decay=0.1, loss_scale=2), epsilon=1e-8, coefficient=0.02)."""
    weights = {name: numbers(name, shape).astype(np.float64) for name, shape in SHAPES.items()}
    speeds = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    figures = {}
    for step in range(STEPS):
        for name, weight in weights.items():
            gradient = numbers(f"{name} at {step}", weight.shape).astype(np.float64) / 2
            if "bias" not in name:
                decay = 0.0 if "gamma" in name or "beta" in name else 0.1
                lengths = np.linalg.norm(gradient) + decay * np.linalg.norm(weight) + 1e-8
                gradient = 0.02 * np.linalg.norm(weight) / lengths * (gradient + decay * weight)
            speeds[name] = 0.9 * speeds[name] + gradient
            weights[name] = weight - 0.05 * speeds[name]
            if step in (0, STEPS - 1):
                figures[f"{name} after {step + 1}"] = weights[name]
    return figures


def momentum_nesterov():
    """Momentum(0.05, 0.9, 0.1, 4.0, use_nesterov=True)."""
    weights = {name: numbers(name, shape).astype(np.float64) for name, shape in SHAPES.items()}
    speeds = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    figures = {}
    for step in range(STEPS):
        for name, weight in weights.items():
            decay = 0.0 if "gamma" in name or "beta" in name else 0.1
            gradient = numbers(f"{name} at {step}", weight.shape).astype(np.float64) / 4 + decay * weight
            speeds[name] = 0.9 * speeds[name] + gradient
            weights[name] = weight - 0.05 * (gradient + 0.9 * speeds[name])
            if step in (0, STEPS - 1):
                figures[f"{name} after {step + 1}"] = weights[name]
    return figures


def adagrad_fixed():
    """Adagrad(learning_rate=0.05, update_slots=False): the sums of squares stay 0.1."""
    weights = {name: numbers(name, shape).astype(np.float64) for name, shape in SHAPES.items()}
    figures = {}
    for step in range(STEPS):
        for name, weight in weights.items():
            weights[name] = weight - 0.05 * numbers(f"{name} at {step}", weight.shape) / np.sqrt(0.1)
            if step in (0, STEPS - 1):
                figures[f"{name} after {step + 1}"] = weights[name]
    return figures


REFERENCES = {
    "optimizers/adagrad_fixed": (
        "MindSpore's kernel for the CPU adds squares up even so; its documentation's formula decides",
        adagrad_fixed,
    ),
    "optimizers/momentum_options": (
        "MindSpore's kernel for the CPU leaves out use_nesterov; its documentation's formula decides",
        momentum_nesterov,
    ),
    "optimizers/lars": ("MindSpore has no LARS for the CPU", lars),
}
