"""The graph of a MindIR file, and running it node by node."""

import copy
import os

import muster
from mindspore._lazy import numpy
from mindspore.train._mindir import _operators, _wire

_CALL = "mindspore.load"


def load_graph(path: str) -> "FuncGraph":
    """The graph of a file, with its parameters. RuntimeError: it is none. NotImplementedError names ops."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        model = _wire.read("Model", content)
    except _wire.DamagedError as damage:
        raise RuntimeError(
            f"{_CALL}: {path} is no MindIR file, or is damaged or encrypted ({damage}). Muster reads files "
            "that are not encrypted: export it without enc_key"
        ) from None
    if not model.has("graph"):
        raise RuntimeError(f"{_CALL}: {path} has no graph: export it again")
    return FuncGraph(model, path)


class FuncGraph:
    """What mindspore.load gives: nn.GraphCell runs it. It cannot be changed."""

    def __init__(self, model: _wire.Message, path: str):
        self._path = path
        if model.graph.map_parameter:
            raise NotImplementedError(f"{_CALL}: {path} has a MapParameter, which Muster has not")
        self._inputs = [_input(each, path) for each in model.graph.input]
        self.parameters = {}
        self._values = {}
        for each in model.graph.parameter:
            name = each.ref_key or each.name[each.name.find(":") + 1 :]
            value = muster.Tensor(_elements(each, path))
            self.parameters[name] = self._values[each.name] = muster.Parameter(value, name=name)
        self._operators = self._find_operators(model.primitives)
        self._graphs = {each.name: _Steps(each, self) for each in [*model.functions, model.graph]}
        self._main = model.graph.name

    def __deepcopy__(self, memo) -> "FuncGraph":
        """A graph with parameters of its own; what does not change is shared."""
        made = memo[id(self)] = copy.copy(self)
        made.parameters = copy.deepcopy(self.parameters, memo)
        made._values = copy.deepcopy(self._values, memo)
        made._graphs = {name: steps.of(made) for name, steps in self._graphs.items()}
        return made

    def __repr__(self) -> str:
        return f"<FuncGraph of {self._path}: {len(self._inputs)} inputs>"

    def inputs(self) -> list:
        """(name, dtype, sizes) of each input; a size may be -1."""
        return self._inputs

    def _find_operators(self, primitives) -> dict:
        found, unknown, refused = {}, set(), []
        for each in primitives:
            if each.op_type in _STRUCTURE:
                found[each.name] = _STRUCTURE[each.op_type]
                continue
            try:
                found[each.name] = _operators.operator(each, self.value_of)
            except _operators.UnknownError as error:
                unknown.add(str(error))
            except (TypeError, ValueError, NotImplementedError) as error:
                refused.append(f"{each.op_type}: {error}")
        if unknown:
            raise NotImplementedError(
                f"{_CALL}: {self._path} has ops that Muster has not: {', '.join(sorted(unknown))}. Make the "
                "network as a cell and load its checkpoint, or export a part of it without them"
            )
        if refused:
            raise NotImplementedError(f"{_CALL}: {self._path} has an op that Muster refuses: {refused[0]}")
        return found

    def value_of(self, attribute: _wire.Message):
        """The value of an attribute, or of a constant."""
        kind = attribute.type
        if kind in (_wire.UMONAD, _wire.IOMONAD):
            return _STATE
        if kind == _wire.NONE:
            return None
        if kind in (_wire.TUPLE, _wire.LIST):
            values = [self.value_of(each) for each in attribute.values]
            return tuple(values) if kind == _wire.TUPLE else values
        if kind == _wire.DICT:
            return {each.name: self.value_of(each.values[0]) for each in attribute.values}
        if kind == _wire.STRING:
            return bytes(attribute.s if attribute.has("s") else attribute.strings[0]).decode()
        if kind == _wire.TENSORS:
            tensors = [muster.Tensor(_elements(each, self._path)) for each in attribute.tensors]
            return tensors[0] if len(tensors) == 1 else tuple(tensors)
        if kind == _wire.FLOAT:
            return attribute.f if attribute.has("f") else attribute.floats[0]
        if kind == _wire.DOUBLE:
            return attribute.d if attribute.has("d") else attribute.doubles[0]
        number = attribute.ints[0] if attribute.ints else attribute.i
        if kind == _wire.BOOL:
            return bool(number)
        if kind in _WHOLE:
            return number
        raise NotImplementedError(f"{_CALL}: {self._path} has a value of type {kind}, which is not provided")

    def run(self, inputs):
        """What the graph gives for these inputs."""
        if len(inputs) != len(self._inputs):
            names = ", ".join(name for name, _, _ in self._inputs)
            raise RuntimeError(
                f"GraphCell: the graph of {self._path} takes {len(self._inputs)} inputs ({names}), "
                f"not {len(inputs)}"
            )
        return self._graphs[self._main].run(inputs)


_WHOLE = frozenset([2, 3, 4, 5, 6, 7, 12, 13])


def _input(message: _wire.Message, path: str) -> tuple:
    tensor = message.tensor[0] if message.tensor else _wire.Message("Tensor")
    return message.name.split(":")[-1], _dtype_name(tensor, path), tuple(tensor.dims)


def _dtype_name(tensor: _wire.Message, path: str) -> str:
    for name, number in _wire.DTYPES.items():
        if number == tensor.data_type or (name == "float64" and tensor.data_type == 17):
            return name
    raise NotImplementedError(
        f"{_CALL}: {path} has elements of type {tensor.data_type}, which Muster has not"
    )


def _elements(tensor: _wire.Message, path: str):
    """The elements as an array of numpy; those of bfloat16 as a tensor."""
    content = tensor.raw_data
    if tensor.has("external_data"):
        content = _elsewhere(tensor.external_data, path)
    dtype = _dtype_name(tensor, path)
    shape = tuple(tensor.dims)
    stored = numpy.dtype("uint16" if dtype == "bfloat16" else dtype)
    if len(content) != stored.itemsize * numpy.prod(shape, dtype="int64"):
        raise RuntimeError(
            f"{_CALL}: {path} has {len(content)} bytes for {tensor.name or 'a constant'}, {dtype} {shape}: "
            "it is damaged; export it again"
        )
    elements = numpy.frombuffer(content, stored).reshape(shape)
    if dtype != "bfloat16":
        return elements.copy()
    wide = (elements.astype("uint32") << 16).view("float32")
    return muster.Tensor(wide).astype(muster.bfloat16)


def _elsewhere(place: _wire.Message, path: str) -> bytes:
    """Elements of a large network, which lie in a file beside it."""
    folder = os.path.dirname(os.path.abspath(path))
    name = os.path.normpath(os.path.join(folder, place.location))
    if os.path.commonpath([folder, name]) != folder:
        raise RuntimeError(f"{_CALL}: {path} names {place.location}, which is not below its folder")
    with open(name, "rb") as file:
        file.seek(place.offset)
        return file.read(place.length)


# ---- Running -------------------------------------------------------------------------------------------


_STATE = object()  # in whose order nodes with effects are: they stand in it in the file, so it says nothing


class _Closure:
    """A graph and its first arguments."""

    def __init__(self, graph, arguments=()):
        self.graph = graph
        self.arguments = arguments


def _partial(graph, *arguments):
    return _Closure(graph.graph, (*graph.arguments, *arguments))


def _switch(condition, first, second):
    return first if bool(condition) else second


_STRUCTURE = {
    "Load": lambda parameter: parameter,
    "UpdateState": lambda *inputs: _STATE,
    "Depend": lambda value, *others: value,
    "MakeTuple": lambda *values: values,
    "make_list": lambda *values: list(values),
    "MakeList": lambda *values: list(values),
    "TupleGetItem": lambda values, index: values[int(index)],
    "ListGetItem": lambda values, index: values[int(index)],
    "list_getitem": lambda values, index: values[int(index)],
    "TensorToScalar": lambda value: value.item(),
    "TensorMove": lambda value: muster.Tensor(value) if isinstance(value, muster.Parameter) else value,
    "Partial": _partial,
    "Switch": _switch,
    "StopGradient": lambda value: muster.ops.stop_gradient(value),
    "Return": lambda value: value,
}


class _Steps:
    """The nodes of one graph in their order."""

    def __init__(self, proto: _wire.Message, whole: FuncGraph):
        self._whole = whole
        self.name = proto.name
        self.inputs = [each.name for each in proto.input]
        self._outputs = [each.name for each in proto.output]
        self._constants = {}
        self._steps = []
        for node in proto.node:
            if node.op_type == "Constant":
                self._constants[node.output[0]] = whole.value_of(node.attribute[0])
            elif node.op_type.startswith("REF::"):
                self._steps.append((node.op_type[5:], list(node.input), node.output[0]))
            else:
                raise NotImplementedError(
                    f"{_CALL}: {whole._path} is of an old MindSpore (node {node.op_type!r}): export it "
                    "with MindSpore 2"
                )

    def of(self, whole: FuncGraph) -> "_Steps":
        """The same steps of a copy of the graph."""
        made = copy.copy(self)
        made._whole = whole
        return made

    def run(self, arguments):
        """The outputs. Loops are calls at the end: they go on in the next graph instead of within this."""
        steps = self
        while True:
            values = {**self._whole._values, **dict(zip(steps.inputs, arguments, strict=True))}
            values.update(steps._constants)
            for what, inputs, output in steps._steps:
                operator = self._whole._operators.get(what)
                found = [steps._value(values, each) for each in inputs]
                found = [each for each in found if each is not _STATE]
                if operator is not None:
                    values[output] = operator(*found)
                    continue
                closure = steps._value(values, what)
                if steps._outputs == [output]:
                    values = None
                    steps, arguments = closure.graph, (*closure.arguments, *found)
                    break
                values[output] = closure.graph.run((*closure.arguments, *found))
            else:
                outputs = tuple(steps._value(values, each) for each in steps._outputs)
                return outputs[0] if len(outputs) == 1 else outputs

    def _value(self, values: dict, name: str):
        if name in values:
            return values[name]
        return _Closure(self._whole._graphs[name])
