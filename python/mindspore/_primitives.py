"""Primitives that MindSpore's built-in cells keep as attributes, for subclasses that call them and for
scripts that say how they are divided over the workers."""

import weakref

import muster
from muster import _attributes


def _ops():
    from mindspore import ops

    return ops


def _conv2d(cell, given):
    return _ops().Conv2D(
        cell.out_channels,
        cell.kernel_size,
        pad_mode=given["pad_mode"],
        pad=given["padding"],
        stride=cell.stride,
        dilation=cell.dilation,
        group=given["group"],
    )


def _conv2d_transpose(cell, given):
    return _ops().Conv2DTranspose(
        cell.in_channels,
        cell.kernel_size,
        pad_mode=cell.pad_mode,
        pad=cell.padding,
        stride=cell.stride,
        dilation=cell.dilation,
        group=cell.group,
    )


def _max_pool(cell, given):
    return _ops().MaxPool(given["kernel_size"], given["stride"], given["pad_mode"])


def _avg_pool(cell, given):
    return _ops().AvgPool(given["kernel_size"], given["stride"], given["pad_mode"])


def _layer_norm(cell, given):
    return _ops().LayerNorm(given["begin_norm_axis"], given["begin_params_axis"], given["epsilon"])


def _batch_norm(is_training):
    return lambda cell, given: _ops().BatchNorm(is_training, given["eps"], given["momentum"])


def _plain(name, *args, **kwargs):
    return lambda cell, given: getattr(_ops(), name)(*args, **kwargs)


def _grad_reducer(cell, given):
    from mindspore import _gradient

    return _gradient.Reducer(cell.optimizer.parameters)


_LOSS = {
    "reduce_mean": _plain("ReduceMean"),
    "reduce_sum": _plain("ReduceSum"),
    "mul": _plain("Mul"),
    "cast": _plain("Cast"),
}
# Losses are divided as what comes in is: strategies of their primitives are checked, and say no more.
_LOSSES = ("LossBase", "SoftmaxCrossEntropy")
_OF_CELLS = {
    "Conv2d": {"conv2d": _conv2d, "bias_add": _plain("BiasAdd")},
    "Conv2dTranspose": {"conv2d_transpose": _conv2d_transpose, "bias_add": _plain("BiasAdd")},
    "Dense": {
        "matmul": _plain("MatMul", transpose_b=True),
        "bias_add": _plain("BiasAdd"),
        "reshape": _plain("Reshape"),
        "shape_op": _plain("Shape"),
    },
    "LayerNorm": {"layer_norm": _layer_norm},
    "MaxPool2d": {"max_pool": _max_pool},
    "AvgPool2d": {"avg_pool": _avg_pool},
    "Embedding": {"gather": _plain("Gather"), "dtype": lambda cell, given: muster.float32},
    "ReLU": {"relu": _plain("ReLU")},
    "Tanh": {"tanh": _plain("Tanh")},
    "Sigmoid": {"sigmoid": _plain("Sigmoid")},
    "GELU": {"gelu": _plain("GeLU")},
    "FastGelu": {"fast_gelu": _plain("FastGeLU")},
    "ReLU6": {"relu6": _plain("ReLU6")},
    "PReLU": {"prelu": _plain("PReLU")},
    "ELU": {"elu": lambda cell, given: _ops().Elu(given.get("alpha", 1.0))},
    "SeLU": {"selu": _plain("SeLU")},
    "HSwish": {"hswish": _plain("HSwish")},
    "HSigmoid": {"hsigmoid": _plain("HSigmoid")},
    "Softsign": {"softsign": _plain("Softsign")},
    "Dropout": {"dropout": lambda cell, given: _ops().Dropout(1.0 - cell.p)},
    "BatchNorm1d": {"bn_train": _batch_norm(True), "bn_infer": _batch_norm(False)},
    "BatchNorm2d": {"bn_train": _batch_norm(True), "bn_infer": _batch_norm(False)},
    "Softmax": {"softmax": lambda cell, given: _ops().Softmax(given["axis"])},
    "LogSoftmax": {"log_softmax": lambda cell, given: _ops().LogSoftmax(given["axis"])},
    "SequentialCell": {"cell_list": lambda cell, given: tuple(cell.cells())},
    "LossBase": _LOSS,
    "SoftmaxCrossEntropyWithLogits": {
        "softmax_cross_entropy": _plain("SoftmaxCrossEntropyWithLogits"),
        "sparse_softmax_cross_entropy": _plain("SparseSoftmaxCrossEntropyWithLogits"),
        "one_hot": _plain("OneHot"),
    },
    "TrainOneStepCell": {
        "grad": _plain("GradOperation", get_by_list=True, sens_param=True),
        "grad_no_sens": _plain("GradOperation", get_by_list=True),
        "grad_reducer": _grad_reducer,
        "reducer_flag": lambda cell, given: muster._core._context()["world_size"] > 1,
        "sense_flag": lambda cell, given: given.get("sens") is not None,
    },
}


def _kept(name, make):
    """The attribute, which is the same primitive whenever it is asked for: what a script sets on it stays."""

    def primitive_of(cell, given):
        kept = cell.__dict__.setdefault("_primitives", {})
        if name not in kept:
            kept[name] = make(cell, given)
        if isinstance(kept[name], _ops().Primitive):
            kept[name]._owner = weakref.ref(cell)  # a copy of a cell has copies of the primitives
        return kept[name]

    return primitive_of


def install() -> None:
    """Cells of both packages are one class, so both have these attributes once mindspore is imported."""
    for kind, attributes in _OF_CELLS.items():
        if kind not in ("SequentialCell", "TrainOneStepCell") and not kind.startswith(_LOSSES):
            attributes = {name: _kept(name, make) for name, make in attributes.items()}
        _attributes._SPECIAL[kind] = {**_attributes._SPECIAL.get(kind, {}), **attributes}


install()
