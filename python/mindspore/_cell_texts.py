"""What print(cell) shows: MindSpore's text, by class. Cells that are not here show their name and children.

A cell of one's own shows what its extend_repr() gives, as in MindSpore.
"""

from muster._attributes import kinds_of

import muster

Cell = muster.Cell


def _listed(cell, names) -> str:
    return ", ".join(f"{name}={value}" for name, value in ((each, getattr(cell, each)) for each in names))


def _only_if(cell, name) -> str:
    value = getattr(cell, name)
    return f", {name}={value}" if value else ""


def _dense(cell) -> str:
    sizes = f"input_channels={cell.in_channels}, output_channels={cell.out_channels}"
    activation = cell.name_cells().get("activation")
    shown = "" if activation is None else f", activation={activation}"
    return sizes + _only_if(cell, "has_bias") + shown


def _bi_dense(cell) -> str:
    sizes = f"in1_channels={cell.in1_channels}, in2_channels={cell.in2_channels}"
    return f"{sizes}, output_channels={cell.out_channels}" + _only_if(cell, "has_bias")


def _initial(value, default: str) -> str:
    """A name as it is given; of the initializer that stands for None its class."""
    return default if value is None else str(value)


_FORMATS = {"Conv3d": "NCDHW", "Conv3dTranspose": "NCDHW"}


def _convolution(cell) -> str:
    shape = ("kernel_size", "stride", "pad_mode", "padding", "dilation", "group", "has_bias")
    bias = _initial(cell.bias_init, "Uniform") if cell.has_bias else cell.bias_init
    return (
        f"input_channels={cell.in_channels}, output_channels={cell.out_channels}, {_listed(cell, shape)}, "
        f"weight_init={_initial(cell.weight_init, 'HeUniform')}, "
        f"bias_init={bias}, "
        f"format={_of_class(_FORMATS, cell) or 'NCHW'}"
    )


_STATISTICS = ("gamma", "beta", "moving_mean", "moving_variance")


def _batch_norm(cell) -> str:
    # cell.momentum is of the batch's part, 1 - the argument, which MindSpore shows as it comes back.
    kept = f"num_features={cell.num_features}, eps={cell.eps}, momentum={1.0 - cell.momentum}"
    return f"{kept}, {_listed(cell, _STATISTICS)}"


def _instance_norm(cell) -> str:
    return _listed(cell, ("num_features", "eps", "momentum", *_STATISTICS))


def _layer_norm(cell) -> str:
    kept = _listed(cell, ("normalized_shape", "begin_norm_axis", "begin_params_axis"))
    return f"{kept}, gamma{cell.gamma}, beta={cell.beta}"  # "gamma" without "=" is MindSpore's text


def _pool(cell) -> str:
    return f"kernel_size={cell.kernel_size}, stride={cell.stride}, pad_mode={cell.pad_mode.upper()}"


def _pool_of_one_axis(cell) -> str:
    kernel, stride = ((1, *each) for each in (cell.kernel_size, cell.stride))
    return f"kernel_size={kernel}, stride={stride}, pad_mode={cell.pad_mode.upper()}"


def _pool_of_three_axes(cell) -> str:
    kernel, stride = cell._given
    return f"kernel_size={kernel}, stride={stride}, pad_mode={cell.pad_mode.upper()}"


def _dropout(cell) -> str:
    return f"keep_prob={cell.keep_prob}" if cell.p is None else f"p={cell.p}"


def _embedding(cell) -> str:
    table = _listed(cell, ("vocab_size", "embedding_size", "use_one_hot", "embedding_table"))
    return f"{table}, dtype={cell.embedding_table.dtype}, padding_idx={cell.padding_idx}"


def _attributes(*names):
    return lambda cell: _listed(cell, names)


def _nothing(cell) -> str:
    return ""


# Of the first class of a cell that is here.
_SETTINGS = {
    "Dense": _dense,
    "BiDense": _bi_dense,
    "Conv1d": _convolution,
    "Conv2d": _convolution,
    "Conv3d": _convolution,
    "Conv1dTranspose": _convolution,
    "Conv2dTranspose": _convolution,
    "Conv3dTranspose": _convolution,
    "BatchNorm1d": _batch_norm,
    "BatchNorm2d": _batch_norm,
    "_InstanceNorm": _instance_norm,
    "LayerNorm": _layer_norm,
    "GroupNorm": _attributes("num_groups", "num_channels"),
    "MaxPool1d": _pool_of_one_axis,
    "AvgPool1d": _pool_of_one_axis,
    "MaxPool2d": _pool,
    "AvgPool2d": _pool,
    "MaxPool3d": _pool_of_three_axes,
    "AvgPool3d": _pool_of_three_axes,
    "Dropout": _dropout,
    "Dropout2d": _attributes("p"),
    "Dropout3d": _attributes("p"),
    "Embedding": _embedding,
    "Norm": _attributes("axis", "keep_dims"),
}
_RECURRENT = {
    "LSTM": lambda cell: "_DynamicLSTMCPUGPU",
    "GRU": lambda cell: "_DynamicGRUCPUGPU",
    "RNN": lambda cell: f"_DynamicRNN{cell.nonlinearity.capitalize()}",
}


def _of_class(table, cell):
    return next((table[kind] for kind in kinds_of(cell) if kind in table), None)


def extend_repr(self) -> str:
    """What stands in the brackets of print(cell): settings, for people; cells of one's own define theirs."""
    return (_of_class(_SETTINGS, self) or _nothing)(self)


def _children(cell):
    """(name, text) of what stands below a cell: no helpers, whose names begin with `_` in library classes."""
    recurrent = _of_class(_RECURRENT, cell)
    if recurrent is not None:
        return [("rnn", f"{recurrent(cell)}()"), ("dropout_op", f"Dropout(p={float(cell.dropout)})")]
    return [(name, repr(child)) for name, child in cell.name_cells().items() if name != "_draw"]


def text_of(self) -> str:
    """The class, extend_repr() and the children, a line for each."""
    settings, children = self.extend_repr(), _children(self)
    rank = self.placed_rank
    place = "" if rank is None else f" on worker {rank}"
    if not children:
        return f"{type(self).__name__}({settings}){place}"
    lines = [*([settings] if settings else []), *(f"({name}): {text}" for name, text in children)]
    inner = "\n".join(lines).replace("\n", "\n  ")
    return f"{type(self).__name__}(\n  {inner}\n){place}"


def install() -> None:
    """Cells of both packages are one class, so both show this once mindspore is imported."""
    Cell.extend_repr = extend_repr
    Cell.__repr__ = text_of
    Cell.__str__ = text_of


install()
