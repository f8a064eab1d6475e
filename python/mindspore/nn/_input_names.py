"""Inputs of cells by MindSpore's names: loss_fn(logits=x, labels=y). The library takes them by place."""

import muster

# The names, in order; where mindspore.nn and mindspore.mint.nn have one cell, each name that either has.
_CELLS = {
    "x": """
        BatchNorm1d BatchNorm2d Conv2d Dense Dropout ELU Flatten GELU LeakyReLU LogSoftmax ReLU6 SiLU Tanh
        AvgPool2d MaxPool2d
    """,
    "input": "AdaptiveAvgPool2d Identity ReLU Softmax",
    "input x": "HSigmoid HSwish Sigmoid",
    "input_x": "LayerNorm",
    "input_x input x": "LogSigmoid Mish SeLU",
    "ids": "Embedding",
    "logits, labels": """
        BCELoss CrossEntropyLoss L1Loss MSELoss NLLLoss SmoothL1Loss SoftmaxCrossEntropyWithLogits
    """,
    "input, target": "BCEWithLogitsLoss",
    "data, label": "WithLossCell",
    "input_data": "SequentialCell",
    "gradients": "Adam AdamWeightDecay Lamb Momentum RMSProp SGD",
    "grads": "Adagrad FTRL",
}


_names = {}  # of the classes: the names of each input, and the construct that takes them by place


def _in_order(cell, args, kwargs):
    """All inputs by place, or None for a cell whose construct takes them by name itself.

    TypeError for a name that is unknown, given twice or left out.
    """
    names, construct = next((_names[kind] for kind in type(cell).__mro__ if kind in _names), (None, None))
    if names is None or type(cell).construct is not construct:  # a script's subclass has its own
        return None
    called, shown = f"{type(cell).__name__}.construct()", ", ".join(each[0] for each in names)
    places = {name: at for at, known in enumerate(names) for name in known}
    given = {}
    for name, value in kwargs.items():
        if name not in places:
            raise TypeError(f"{called} got an unexpected keyword argument '{name}'; it takes {shown}")
        if places[name] < len(args) or places[name] in given:
            raise TypeError(f"{called} got multiple values for argument '{name}'")
        given[places[name]] = value
    for at in range(len(args), max(given)):
        if at not in given:
            raise TypeError(f"{called} missing '{names[at][0]}': it takes {shown}")
    return (*args, *(given[at] for at in sorted(given)))


def attach(cells) -> None:
    """Has the cells of a module take their inputs by name."""
    for names, kinds in _CELLS.items():
        parts = tuple(tuple(each.split()) for each in names.split(","))
        for kind in kinds.split():
            _names[cells[kind]] = parts, cells[kind].construct
    muster._core._order_inputs_by(_in_order)
