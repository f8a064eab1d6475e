"""What MindSpore and Muster must agree on, written once for both.

Each case runs with the package that is given to it as `ms`, and gives figures by name. All numbers come from
a counter: element i of the tensor named s is frac(|sin(i + 1 + h)| * 43758.5453) in double, scaled to its
bounds and rounded to float32, where h is the CRC-32 of s modulo 1000.
"""

import zlib

import numpy as np

STEPS = 5


def numbers(name, shape, low=-1.0, high=1.0):
    """float32 numbers in [low, high) that only `name`, `shape` and the bounds decide."""
    count = int(np.prod(shape, dtype=np.int64))
    place = np.arange(count, dtype=np.float64) + 1 + zlib.crc32(name.encode()) % 1000
    unit = np.modf(np.abs(np.sin(place)) * 43758.5453)[0]
    return (low + (high - low) * unit).astype(np.float32).reshape(shape)


def classes(name, shape, count):
    """int32 class numbers below `count`."""
    return np.minimum(numbers(name, shape, 0, count).astype(np.int32), count - 1)


class Given:
    """A tensor that a case is called with."""

    def __init__(self, values, differentiable=True):
        self.values = values
        self.differentiable = differentiable


def real(name, shape, low=-1.0, high=1.0):
    return Given(numbers(name, shape, low, high))


def labels(name, shape, count):
    return Given(classes(name, shape, count), False)


def fixed(values):
    return Given(values, False)


def figure(tensor):
    return np.asarray(tensor.asnumpy(), np.float64)


def set_parameters(ms, cell):
    for path, parameter in cell.parameters_and_names():
        low, high = (0.5, 1.5) if "variance" in path or "gamma" in path else (-1.0, 1.0)
        values = numbers("parameter " + path.split(".")[-1], parameter.shape, low, high)
        parameter.set_data(ms.Tensor(values))


class CellCase:
    """Forward values, and the gradients of sum(y * w) for the inputs and the parameters."""

    def __init__(self, make, *given, train=False, keeps=()):
        self.make = make
        self.given = given
        self.train = train
        self.keeps = keeps  # parameters whose values afterwards are recorded

    def run(self, ms):
        cell = self.make(ms)
        cell.set_train(self.train)
        set_parameters(ms, cell)
        tensors = [ms.Tensor(given.values) for given in self.given]
        figures = {}
        if not self.train:  # in training the second run would see other moving statistics
            figures["forward"] = figure(cell(*tensors))
        weights = cell.trainable_params()
        position = 0 if self.given[0].differentiable else None

        def weighed(*inputs):
            y = cell(*inputs)
            return (y * ms.Tensor(numbers("w", y.shape))).sum(), y

        grad_fn = ms.value_and_grad(weighed, position, weights or None, has_aux=True)
        (_, y), gradients = grad_fn(*tensors)
        if self.train:
            figures["forward"] = figure(y)
        if position is None:
            by_input, by_weight = None, gradients
        else:
            by_input, by_weight = gradients if weights else (gradients, ())
        if by_input is not None:
            figures["gradient of input"] = figure(by_input)
        for parameter, gradient in zip(weights, by_weight, strict=True):
            figures[f"gradient of {parameter.name.split('.')[-1]}"] = figure(gradient)
        for name in self.keeps:
            figures[f"{name} afterwards"] = figure(getattr(cell, name))
        return figures


SHAPES = {"conv.weight": (4, 16), "fc.weight": (3, 5), "fc.bias": (3,), "bn.gamma": (4,), "bn.beta": (4,)}


def parameters(ms):
    return [ms.Parameter(ms.Tensor(numbers(name, shape)), name=name) for name, shape in SHAPES.items()]


class OptimizerCase:
    """Parameters after one and after five steps."""

    def __init__(self, make):
        self.make = make  # (ms, parameters) -> optimizer

    def run(self, ms):
        updated = parameters(ms)
        optimizer = self.make(ms, updated)
        figures = {}
        for step in range(STEPS):
            gradients = tuple(
                ms.Tensor(numbers(f"{parameter.name} at {step}", parameter.shape))
                for parameter in optimizer.parameters
            )
            optimizer(gradients)
            for parameter in updated:
                if step in (0, STEPS - 1):
                    figures[f"{parameter.name} after {step + 1}"] = figure(parameter)
        return figures


class ListCase:
    """Figures of a function, or of a schedule at each step."""

    def __init__(self, run):
        self.function = run

    def run(self, ms):
        return {"values": np.asarray(self.function(ms), np.float64)}


def schedule(make):
    def run(ms):
        cell = make(ms)
        return [float(cell(ms.Tensor(step, ms.int32)).asnumpy().reshape(())) for step in range(9)]

    return ListCase(run)


IMAGE = (2, 4, 7, 6)
x = real("x", IMAGE, -2, 2)
flat = real("x", (3, 5), -3, 3)


def cell_cases():
    cases = {
        "conv2d_same": CellCase(lambda ms: ms.nn.Conv2d(4, 6, 3, has_bias=True), x),
        "conv2d_same_stride": CellCase(lambda ms: ms.nn.Conv2d(4, 6, (3, 2), stride=2), x),
        "conv2d_valid_dilation": CellCase(lambda ms: ms.nn.Conv2d(4, 6, 3, pad_mode="valid", dilation=2), x),
        "conv2d_pad_group": CellCase(
            lambda ms: ms.nn.Conv2d(4, 6, 3, 2, pad_mode="pad", padding=(1, 0, 2, 1), group=2), x
        ),
        "conv2d_depthwise": CellCase(lambda ms: ms.nn.Conv2d(4, 4, 3, pad_mode="pad", padding=1, group=4), x),
        "batch_norm2d_train": CellCase(
            lambda ms: ms.nn.BatchNorm2d(4), x, train=True, keeps=("moving_mean", "moving_variance")
        ),
        "batch_norm2d_eval": CellCase(lambda ms: ms.nn.BatchNorm2d(4), x),
        "batch_norm2d_options": CellCase(
            lambda ms: ms.nn.BatchNorm2d(4, eps=0.01, momentum=0.5, affine=False, use_batch_statistics=True),
            x,
            train=True,
            keeps=("moving_mean", "moving_variance"),
        ),
        "batch_norm1d_train": CellCase(
            lambda ms: ms.nn.BatchNorm1d(5),
            real("x", (8, 5), -2, 2),
            train=True,
            keeps=("moving_mean", "moving_variance"),
        ),
        "batch_norm1d_eval": CellCase(lambda ms: ms.nn.BatchNorm1d(5), real("x", (8, 5), -2, 2)),
        "max_pool2d_valid": CellCase(lambda ms: ms.nn.MaxPool2d(2, 2), x),
        "max_pool2d_same": CellCase(lambda ms: ms.nn.MaxPool2d(3, 2, "same"), x),
        "max_pool2d_pad": CellCase(lambda ms: ms.nn.MaxPool2d(3, 2, pad_mode="pad", padding=1), x),
        "avg_pool2d_valid": CellCase(lambda ms: ms.nn.AvgPool2d((2, 3), (2, 1)), x),
        "avg_pool2d_same": CellCase(lambda ms: ms.nn.AvgPool2d(3, 2, "same"), x),
        "avg_pool2d_pad": CellCase(lambda ms: ms.nn.AvgPool2d(3, 2, "pad", padding=1), x),
        "avg_pool2d_not_counting": CellCase(
            lambda ms: ms.nn.AvgPool2d(3, 2, "pad", padding=1, count_include_pad=False), x
        ),
        "adaptive_avg_pool2d": CellCase(lambda ms: ms.nn.AdaptiveAvgPool2d((3, 4)), x),
        "dense": CellCase(lambda ms: ms.nn.Dense(5, 4), flat),
        "dense_activation": CellCase(
            lambda ms: ms.nn.Dense(5, 4, has_bias=False, activation="relu"), real("x", (2, 3, 5))
        ),
        "flatten": CellCase(lambda ms: ms.nn.Flatten(), real("x", (2, 3, 4))),
        "layer_norm": CellCase(lambda ms: ms.nn.LayerNorm((5,)), real("x", (2, 3, 5), -3, 3)),
        "layer_norm_axes": CellCase(lambda ms: ms.nn.LayerNorm((3, 5), 1, 1), real("x", (2, 3, 5), -3, 3)),
        "embedding": CellCase(lambda ms: ms.nn.Embedding(7, 3), labels("ids", (2, 5), 7)),
        "dropout_eval": CellCase(lambda ms: ms.nn.Dropout(p=0.5), flat),
        "dropout_nothing": CellCase(lambda ms: ms.nn.Dropout(p=0.0), flat, train=True),
        "softmax": CellCase(lambda ms: ms.nn.Softmax(), flat),
        "softmax_axis": CellCase(lambda ms: ms.nn.Softmax(0), flat),
        "log_softmax": CellCase(lambda ms: ms.nn.LogSoftmax(), flat),
        "leaky_relu": CellCase(lambda ms: ms.nn.LeakyReLU(), flat),
        "gelu": CellCase(lambda ms: ms.nn.GELU(), flat),
        "gelu_exact": CellCase(lambda ms: ms.nn.GELU(approximate=False), flat),
        "sequential": CellCase(
            lambda ms: ms.nn.SequentialCell([ms.nn.Dense(5, 4), ms.nn.Tanh(), ms.nn.Identity()]), flat
        ),
    }
    for name in ("ReLU", "SiLU", "Sigmoid", "Tanh", "ELU"):
        cases[name.lower()] = CellCase(lambda ms, name=name: getattr(ms.nn, name)(), flat)
    cases["relu6"] = CellCase(lambda ms: ms.nn.ReLU6(), real("x", (3, 5), -4, 12))
    return cases


def loss_cases():
    logits = real("logits", (4, 5), -3, 3)
    numbers_of = labels("labels", (4,), 5)
    image_logits = real("logits", (2, 5, 3, 2), -3, 3)
    image_labels = labels("labels", (2, 3, 2), 5)
    chances = numbers("chances", (4, 5), 0.1, 1)
    chances = fixed(chances / chances.sum(1, keepdims=True, dtype=np.float32))
    image_chances = fixed(numbers("chances", (2, 5, 3, 2), 0.1, 1))
    target = fixed(numbers("target", (4, 5), -2, 2))
    unit = real("unit", (4, 5), 0.05, 0.95)
    yes = fixed(numbers("yes", (4, 5), 0, 1))
    log_chances = real("logs", (4, 5), -3, -0.1)
    image_logs = real("logs", (2, 5, 3, 2), -3, -0.1)

    def weight(ms, shape=(5,)):
        return ms.Tensor(numbers("class weight", shape, 0.5, 2))

    cases = {
        "cross_entropy_weight": CellCase(
            lambda ms: ms.nn.CrossEntropyLoss(weight(ms), ignore_index=1), logits, numbers_of
        ),
        "cross_entropy_smooth": CellCase(
            lambda ms: ms.nn.CrossEntropyLoss(label_smoothing=0.1), logits, numbers_of
        ),
        "cross_entropy_weight_smooth": CellCase(
            lambda ms: ms.nn.CrossEntropyLoss(weight(ms), reduction="sum", label_smoothing=0.2),
            logits,
            numbers_of,
        ),
        "cross_entropy_image_weight": CellCase(
            lambda ms: ms.nn.CrossEntropyLoss(weight(ms)), image_logits, image_labels
        ),
        "cross_entropy_chances_weight_smooth": CellCase(
            lambda ms: ms.nn.CrossEntropyLoss(weight(ms), label_smoothing=0.2), logits, chances
        ),
        "nll_weight": CellCase(lambda ms: ms.nn.NLLLoss(weight(ms), ignore_index=2), log_chances, numbers_of),
        "bce_weight": CellCase(lambda ms: ms.nn.BCELoss(weight(ms, (4, 5))), unit, yes),
        "bce_with_logits_weights": CellCase(
            lambda ms: ms.nn.BCEWithLogitsLoss(weight=weight(ms, (4, 5)), pos_weight=weight(ms)), logits, yes
        ),
        "smooth_l1_beta": CellCase(lambda ms: ms.nn.SmoothL1Loss(0.5, "mean"), logits, target),
    }
    for reduction in ("mean", "sum", "none"):
        plain = {
            "l1": ("L1Loss", logits, target),
            "mse": ("MSELoss", logits, target),
            "smooth_l1": ("SmoothL1Loss", logits, target),
            "bce": ("BCELoss", unit, yes),
            "bce_with_logits": ("BCEWithLogitsLoss", logits, yes),
            "nll": ("NLLLoss", log_chances, numbers_of),
            "nll_image": ("NLLLoss", image_logs, image_labels),
            "softmax_cross_entropy": ("SoftmaxCrossEntropyWithLogits", logits, chances),
            "cross_entropy": ("CrossEntropyLoss", logits, numbers_of),
            "cross_entropy_image": ("CrossEntropyLoss", image_logits, image_labels),
            "cross_entropy_chances": ("CrossEntropyLoss", logits, chances),
            "cross_entropy_image_chances": ("CrossEntropyLoss", image_logits, image_chances),
        }
        for name, (kind, *given) in plain.items():
            cases[f"{name}_{reduction}"] = CellCase(
                lambda ms, kind=kind, r=reduction: getattr(ms.nn, kind)(reduction=r), *given
            )
        cases[f"softmax_cross_entropy_sparse_{reduction}"] = CellCase(
            lambda ms, r=reduction: ms.nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction=r),
            logits,
            numbers_of,
        )
    return cases


def groups(ps):
    return [
        {"params": ps[:1], "lr": 0.02, "weight_decay": 0.3},
        {"params": ps[1:3], "weight_decay": 0.0},
        {"params": ps[3:]},
        {"order_params": ps[::-1]},
    ]


def optimizer_cases():
    def case(kind, *arguments, **options):
        return OptimizerCase(lambda ms, ps: getattr(ms.nn, kind)(ps, *arguments, **options))

    def grouped(kind, *arguments, **options):
        return OptimizerCase(lambda ms, ps: getattr(ms.nn, kind)(groups(ps), *arguments, **options))

    cases = {
        "sgd": case("SGD"),
        "sgd_momentum": case("SGD", 0.05, momentum=0.9, dampening=0.3, weight_decay=0.1, loss_scale=4.0),
        "sgd_nesterov": case("SGD", 0.05, momentum=0.9, nesterov=True, weight_decay=0.1),
        "sgd_groups": grouped("SGD", 0.05, weight_decay=0.1, loss_scale=2.0),
        "momentum": case("Momentum", 0.05, 0.9),
        "momentum_options": case("Momentum", 0.05, 0.9, 0.1, 4.0, True),
        "momentum_groups": grouped("Momentum", 0.05, 0.9, 0.1),
        "momentum_list": case("Momentum", [0.1, 0.05, 0.04, 0.02, 0.01], 0.9),
        "momentum_schedule": OptimizerCase(
            lambda ms, ps: ms.nn.Momentum(ps, ms.nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5), 0.9)
        ),
        "adam": case("Adam"),
        "adam_options": case(
            "Adam", 0.05, 0.8, 0.9, 1e-4, use_nesterov=True, weight_decay=0.1, loss_scale=4.0
        ),
        "adam_amsgrad": case("Adam", 0.05, use_amsgrad=True),
        "adam_groups": grouped("Adam", 0.05, weight_decay=0.1),
        "adam_schedule": OptimizerCase(
            lambda ms, ps: ms.nn.Adam(ps, ms.nn.ExponentialDecayLR(0.1, 0.5, 2, True))
        ),
        "adam_weight_decay": case("AdamWeightDecay"),
        "adam_weight_decay_options": case("AdamWeightDecay", 0.05, 0.8, 0.9, 1e-4, 0.1),
        "adam_weight_decay_groups": grouped("AdamWeightDecay", 0.05, weight_decay=0.1),
        "rms_prop": case("RMSProp"),
        "rms_prop_options": case("RMSProp", 0.05, 0.8, 0.5, 1e-3, loss_scale=2.0, weight_decay=0.1),
        "rms_prop_centered": case("RMSProp", 0.05, 0.8, 0.5, 1e-3, centered=True),
        "rms_prop_groups": grouped("RMSProp", 0.05, weight_decay=0.1),
        "adagrad": case("Adagrad"),
        "adagrad_options": case("Adagrad", 0.5, 0.05, loss_scale=2.0, weight_decay=0.1),
        "adagrad_fixed": case("Adagrad", learning_rate=0.05, update_slots=False),
        "adagrad_groups": grouped("Adagrad", learning_rate=0.05, weight_decay=0.1),
        "ftrl": case("FTRL"),
        "ftrl_options": case(
            "FTRL", initial_accum=0.2, learning_rate=0.05, lr_power=-0.3, l2=0.1, loss_scale=2.0
        ),
        "ftrl_l1": case("FTRL", learning_rate=0.05, l1=0.3, l2=0.1),
        "ftrl_decay": OptimizerCase(
            lambda ms, ps: ms.nn.FTRL([{"params": ps, "weight_decay": 0.1}], learning_rate=0.05)
        ),
        "lamb": case("Lamb", 0.05),
        "lamb_options": case("Lamb", 0.05, 0.8, 0.9, 1e-4, 0.1),
        "adadelta": case("Adadelta"),
        "adadelta_options": case("Adadelta", 0.5, 0.8, 1e-3, 2.0, 0.1),
        "adadelta_groups": grouped("Adadelta", 0.5, weight_decay=0.1),
        "ada_max": case("AdaMax"),
        "ada_max_options": case("AdaMax", 0.05, 0.8, 0.9, 1e-4, 0.1, 2.0),
        "ada_max_groups": grouped("AdaMax", 0.05, weight_decay=0.1),
        "proximal_adagrad": case("ProximalAdagrad"),
        "proximal_adagrad_options": case(
            "ProximalAdagrad", 0.2, 0.05, 0.1, 0.2, loss_scale=2.0, weight_decay=0.1
        ),
        "lazy_adam": case("LazyAdam"),
        "lazy_adam_options": case("LazyAdam", 0.05, 0.8, 0.9, 1e-4, False, True, 0.1, 4.0),
        "adam_offload": case("AdamOffload", 0.05, use_nesterov=True),
        "asgd": case("ASGD"),
        "asgd_options": case("ASGD", 0.05, 0.1, 0.5, 2.0, 0.1),
        "asgd_groups": grouped("ASGD", 0.05, t0=1.0, weight_decay=0.1),
        "asgd_list": case("ASGD", [0.1, 0.05, 0.04, 0.02, 0.01], t0=1.0),
        "rprop": case("Rprop"),
        "rprop_options": case("Rprop", 0.05, (0.4, 1.5), (0.02, 0.2), 0.1),
        "rprop_groups": grouped("Rprop", 0.05),
        "ada_factor": case("AdaFactor"),
        "ada_factor_warmup": case("AdaFactor", beta1=0.8, warmup_init=True, weight_decay=0.1),
        "ada_factor_rate": case(
            "AdaFactor", 0.05, (1e-20, 1e-2), 0.5, 0.6, None, 0.1, relative_step=False, loss_scale=2.0
        ),
        "ada_factor_fixed": case("AdaFactor", 0.05, scale_parameter=False, relative_step=False),
        "ada_factor_list": case("AdaFactor", [0.1, 0.05, 0.04, 0.02, 0.01], relative_step=False),
        "lars": OptimizerCase(
            lambda ms, ps: ms.nn.LARS(ms.nn.Momentum(ps, 0.05, 0.9, 0.1, 2.0), epsilon=1e-8, coefficient=0.02)
        ),
    }
    return cases


def schedule_cases():
    lists = {
        "exponential_decay_lr": (0.1, 0.9, 9, 2, 2),
        "natural_exp_decay_lr": (0.1, 0.9, 9, 2, 2, True),
        "inverse_decay_lr": (0.1, 0.5, 9, 2, 2, True),
        "cosine_decay_lr": (0.01, 0.1, 9, 2, 2),
        "polynomial_decay_lr": (0.1, 0.01, 9, 2, 2, 0.5, True),
        "warmup_lr": (0.1, 9, 2, 2),
        "piecewise_constant_lr": ([2, 5, 9], [0.1, 0.05, 0.01]),
    }
    cases = {
        name: ListCase(lambda ms, name=name, given=given: getattr(ms.nn, name)(*given))
        for name, given in lists.items()
    }
    cells = {
        "ExponentialDecayLR": (0.1, 0.9, 4),
        "NaturalExpDecayLR": (0.1, 0.9, 4),
        "InverseDecayLR": (0.1, 0.5, 4),
    }
    for name, given in cells.items():
        for stair in (False, True):
            cases[f"{name}_{stair}"] = schedule(
                lambda ms, name=name, given=given, stair=stair: getattr(ms.nn, name)(*given, stair)
            )
    cases["CosineDecayLR"] = schedule(lambda ms: ms.nn.CosineDecayLR(0.01, 0.1, 4))
    cases["PolynomialDecayLR"] = schedule(lambda ms: ms.nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5))
    cases["PolynomialDecayLR_more"] = schedule(lambda ms: ms.nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5, True))
    cases["WarmUpLR"] = schedule(lambda ms: ms.nn.WarmUpLR(0.1, 4))
    return cases


FAMILIES = {
    "cells": cell_cases,
    "losses": loss_cases,
    "optimizers": optimizer_cases,
    "schedules": schedule_cases,
}


def all_cases():
    """Cases by "family/name"."""
    return {f"{family}/{name}": case for family, make in FAMILIES.items() for name, case in make().items()}
