"""mindspore.load and what goes with it, and nn.GraphCell."""

import os

import muster
from mindspore import _names
from mindspore.train._mindir._graph import FuncGraph, load_graph

_END = ".mindir"


def _file_name(call: str, file_name) -> str:
    if not isinstance(file_name, str):
        raise ValueError(f"{call}: file_name is a string, not {type(file_name).__name__}")
    if not file_name.endswith(_END):
        raise ValueError(f"{call}: the name of a MindIR file ends with {_END}; {file_name!r} does not")
    if not os.path.exists(file_name):
        raise ValueError(
            f"{call}: there is no file {file_name!r}; export() with file_format='MINDIR' makes one"
        )
    return file_name


def load(file_name, **kwargs) -> FuncGraph:
    """The graph of a MindIR file, of Muster's or of MindSpore's: nn.GraphCell runs it.

    ValueError names a file that is not there, RuntimeError one that is damaged or encrypted,
    NotImplementedError ops that Muster has not.
    """
    call = "mindspore.load"
    others = sorted(set(kwargs) - {"dec_key", "dec_mode", "obf_func"})
    if others:
        raise TypeError(f"{call}() has no argument {others[0]!r}; it takes file_name, dec_key and dec_mode")
    if "obf_func" in kwargs:
        raise NotImplementedError(f"{call}: networks are not obfuscated: leave obf_func away")
    _names.refuse(call, dec_key=(kwargs.get("dec_key"), None))
    return load_graph(_file_name(call, file_name))


class GraphCell(muster.Cell):
    """Runs a graph that mindspore.load read, with its parameters, which can be trained.

    Args:
        graph: What mindspore.load gave.
        params_init: Values for parameters of the graph, by name: tensors of their shapes and dtypes. Names
            that the graph has not are passed over.
        obf_random_seed: None.
    """

    def __init__(self, graph, params_init=None, obf_random_seed=None):
        super().__init__()
        if obf_random_seed is not None:
            raise NotImplementedError("GraphCell: networks are not obfuscated: leave obf_random_seed away")
        if not isinstance(graph, FuncGraph):
            raise TypeError(f"GraphCell: graph is what mindspore.load gives, not {type(graph).__name__}")
        given = {} if params_init is None else params_init
        if not isinstance(given, dict):
            raise TypeError(f"GraphCell: params_init is a dict, not {type(given).__name__}")
        for name, value in given.items():
            if not isinstance(name, str) or not isinstance(value, muster.Tensor):
                raise TypeError(
                    "GraphCell: params_init has names and tensors or parameters, not "
                    f"{name!r}: {type(value).__name__}"
                )
        for name, parameter in graph.parameters.items():
            if name in given:
                _set(parameter, given[name])
            self._params[name] = parameter  # under a name with dots, as no attribute can have
        self.graph = graph

    def construct(self, *inputs):
        """What the graph gives for these inputs."""
        for at, each in enumerate(inputs):
            if not isinstance(each, muster.Tensor | int | float | bool | tuple | list):
                raise TypeError(f"GraphCell: input {at} is a Tensor, not {type(each).__name__}")
        return self.graph.run(inputs)


def _set(parameter, value) -> None:
    if tuple(value.shape) != tuple(parameter.shape) or value.dtype != parameter.dtype:
        raise ValueError(
            f"GraphCell: {parameter.name} is {parameter.dtype} {tuple(parameter.shape)}, and params_init has "
            f"{value.dtype} {tuple(value.shape)} for it"
        )
    parameter.set_data(value)


def load_mindir(file_name):
    """What the file says, as a message whose fields can be read and set: `save_mindir` writes it."""
    from mindspore.train._mindir import _wire

    with open(_file_name("mindspore.load_mindir", file_name), "rb") as file:
        content = file.read()
    try:
        return _wire.read("Model", content)
    except _wire.DamagedError as damage:
        raise RuntimeError(f"mindspore.load_mindir: {file_name} is no MindIR file: {damage}") from None


def convert_model(mindir_file, convert_file, file_format) -> None:
    """The network of a MindIR file as an ONNX file."""
    if file_format != "ONNX":
        raise ValueError(f"convert_model: file_format is 'ONNX', not {file_format!r}")
    graph = load(mindir_file)
    inputs = []
    for name, dtype, sizes in graph.inputs():
        if any(size < 0 for size in sizes):
            raise RuntimeError(
                f"convert_model: input {name!r} of {mindir_file} has the shape {sizes}: export it with sizes"
            )
        dtype = "bool_" if dtype == "bool" else dtype
        inputs.append(muster.ops.ones(sizes, dtype=getattr(muster, dtype)))
    from mindspore.train.serialization import export

    export(GraphCell(graph), *inputs, file_name=convert_file, file_format=file_format)


def save_mindir(model, file_name) -> None:
    """Writes a message of load_mindir, as FILE_NAME.mindir."""
    from mindspore.train._mindir import _wire

    if not isinstance(model, _wire.Message) or model.kind != "Model":
        raise TypeError(f"save_mindir: model is what load_mindir gave, not {type(model).__name__}")
    if not isinstance(file_name, str):
        raise TypeError(f"save_mindir: file_name is a string, not {type(file_name).__name__}")
    content = _wire.write(model)
    with open(file_name if file_name.endswith(_END) else file_name + _END, "wb") as file:
        file.write(content)
