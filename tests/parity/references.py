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


def ftrl_l1():
    """FTRL(learning_rate=0.05, l1=0.3, l2=0.1)."""
    weights = {name: numbers(name, shape).astype(np.float64) for name, shape in SHAPES.items()}
    sums = {name: np.full(shape, 0.1) for name, shape in SHAPES.items()}
    linear = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    figures = {}
    for step in range(STEPS):
        for name, weight in weights.items():
            gradient = numbers(f"{name} at {step}", weight.shape).astype(np.float64)
            grown = sums[name] + gradient**2
            linear[name] += gradient - (np.sqrt(grown) - np.sqrt(sums[name])) / 0.05 * weight
            sums[name] = grown
            least = np.sign(linear[name]) * 0.3 - linear[name]
            moved = least / (np.sqrt(grown) / 0.05 + 2 * 0.1)
            weights[name] = np.where(np.abs(linear[name]) > 0.3, moved, 0.0)
            if step in (0, STEPS - 1):
                figures[f"{name} after {step + 1}"] = weights[name]
    return figures


def lamb(beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0):
    """Lamb(0.05, ...)."""
    weights = {name: numbers(name, shape).astype(np.float64) for name, shape in SHAPES.items()}
    means = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    squares = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    figures = {}
    for step in range(STEPS):
        for name, weight in weights.items():
            gradient = numbers(f"{name} at {step}", weight.shape).astype(np.float64)
            means[name] = beta1 * means[name] + (1 - beta1) * gradient
            squares[name] = beta2 * squares[name] + (1 - beta2) * gradient**2
            mean, square = means[name] / (1 - beta1 ** (step + 1)), squares[name] / (1 - beta2 ** (step + 1))
            decay = 0.0 if "gamma" in name or "beta" in name else weight_decay
            direction = mean / (np.sqrt(square) + eps) + decay * weight
            rate = 0.05 * np.linalg.norm(weight) / np.linalg.norm(direction)
            weights[name] = weight - rate * direction
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
    "optimizers/ftrl_l1": (
        "MindSpore's kernel for the CPU adds l1 whatever the sign; its documentation's formula decides",
        ftrl_l1,
    ),
    "optimizers/lamb": ("MindSpore has no Lamb for the CPU; its documentation's formula decides", lamb),
    "optimizers/lamb_options": (
        "MindSpore has no Lamb for the CPU; its documentation's formula decides",
        lambda: lamb(0.8, 0.9, 1e-4, 0.1),
    ),
    "optimizers/lars": ("MindSpore has no LARS for the CPU", lars),
}
