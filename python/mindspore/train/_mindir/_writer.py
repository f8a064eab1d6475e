"""A network as a MindIR file: its trace, whose rows become primitives of MindSpore.

What a row is there stands in its alias (muster/graph/ops, `primitives`) or in `_rules`. A row that has
neither is written as a primitive `muster.<row>`, which Muster reads, and MindSpore refuses by its name.
"""

import os

import muster
from mindspore._lazy import numpy
from mindspore.train._mindir import _wire
from muster import _core

_BYTES_MAX = (2 << 30) - 1  # of protocol buffers
TYPE_IDS = {
    "bool": 30,
    "int8": 32,
    "int16": 33,
    "int32": 34,
    "int64": 35,
    "uint8": 37,
    "uint16": 38,
    "uint32": 39,
    "uint64": 40,
    "float16": 42,
    "float32": 43,
    "float64": 44,
    "bfloat16": 45,
}


def name_of(dtype) -> str:
    """ "float32" of a dtype."""
    return str(dtype).lower().removeprefix("muster.").removesuffix("_")


def tensor_message(dtype, shape, elements=None, **others) -> _wire.Message:
    """A tensor, or with no elements what there is to know of one."""
    message = _wire.Message("Tensor", dims=list(shape), data_type=_wire.DTYPES[name_of(dtype)], **others)
    if elements is not None:
        message.raw_data = elements
    return message


def elements_of(tensor) -> bytes:
    if tensor.dtype == muster.bfloat16:
        wide = numpy.ascontiguousarray(tensor.astype(muster.float32).asnumpy())
        return (wide.view("uint32") >> 16).astype("uint16").tobytes()
    return numpy.ascontiguousarray(tensor.asnumpy()).tobytes()


def attribute(name: str, value) -> _wire.Message:
    """A value as MindSpore writes it: numbers in a sequence are lists of one."""
    return _attribute(name, value, False)


def _attribute(name, value, is_inside) -> _wire.Message:
    if isinstance(value, muster.DType):
        value = TYPE_IDS[name_of(value)]
    made = _wire.Message("Attribute", name=name)
    if value is None:
        made.type = _wire.NONE
    elif isinstance(value, bool):
        made.type, made.i = _wire.BOOL, int(value)
    elif isinstance(value, int):
        made.type = _wire.INT64
        setattr(made, *(("ints", [value]) if is_inside else ("i", value)))
    elif isinstance(value, float):
        made.type = _wire.FLOAT
        setattr(made, *(("floats", [value]) if is_inside else ("f", value)))
    elif isinstance(value, str):
        made.type = _wire.STRING
        setattr(made, *(("strings", [value.encode()]) if is_inside else ("s", value.encode())))
    elif isinstance(value, tuple | list):
        made.type = _wire.TUPLE if isinstance(value, tuple) else _wire.LIST
        made.values = [_attribute("", each, True) for each in value]
        if isinstance(value, tuple):
            made.seq_info = _wire.Message("SeqInfo", is_dyn_len=0)
    else:
        made.type = _wire.TENSORS
        made.tensors = [tensor_message(value.dtype, value.shape, elements_of(value), name="value0")]
    return made


def type_attribute(name: str, types) -> _wire.Message:
    """The type of what a node gives: one (dtype, shape), or a tuple of them, nested."""
    made = _wire.Message("Attribute", name=name)
    if isinstance(types, list):
        made.type = _wire.TUPLE
        made.values = [type_attribute("", each) for each in types]
        made.seq_info = _wire.Message("SeqInfo", is_dyn_len=0)
    else:
        made.type = _wire.TENSORS
        made.tensors = [tensor_message(*types)]
    return made


class Writer:
    """The graph of a file while it is made."""

    def __init__(self, name: str, shares_constants: bool = True):
        self._shares_constants = shares_constants
        self.graph = _wire.Message("Graph", name=name, bprop_hash="", bprop_filepath="")
        self.graph.node, self.graph.output, self.graph.input, self.graph.parameter = [], [], [], []
        self._primitives = {}
        self._constants = {}
        self._loads = {}
        self.foreign = set()  # rows that MindSpore has no counterpart for

    def unique(self, what: str) -> str:
        return f"{self.graph.name}:{what}:{len(self.graph.node)}"

    def constant(self, value) -> str:
        """The name of a constant: a number, a text, a tuple of them, None, a dtype or a tensor."""
        key = (type(value), repr(value)) if not isinstance(value, muster.Tensor) else id(value)
        if not self._shares_constants:
            key = len(self.graph.node)
        if key not in self._constants:
            name = f"ValueNode_{len(self.graph.node)}"
            node = _wire.Message(
                "Node", op_type="Constant", output=[name], attribute=[attribute("value", value)]
            )
            self.graph.node.append(node)
            self._constants[key] = name, value  # the value, so that its id stays its own
        return self._constants[key][0]

    def _state(self) -> str:
        if "state" not in self._constants:
            name = f"ValueNode_{len(self.graph.node)}"
            value = _wire.Message("Attribute", name="value", type=_wire.UMONAD)
            self.graph.node.append(
                _wire.Message("Node", op_type="Constant", output=[name], attribute=[value])
            )
            self._constants["state"] = name, None
        return self._constants["state"][0]

    def primitive(self, op_type: str, attributes=None) -> str:
        """The name of a primitive: with attributes, or one whose settings are inputs."""
        settings = {"": None} if attributes is None else attributes
        key = (op_type, repr(sorted(settings.items())))
        if key not in self._primitives:
            made = _wire.Message("Primitive", name=f"{op_type}:{len(self._primitives)}", op_type=op_type)
            made.prim_type = _wire.PRIMITIVE_FUNCTION if attributes is None else _wire.PRIMITIVE
            made.instance_name = ""
            made.attribute = [attribute(*each) for each in (attributes or {}).items()]
            self._primitives[key] = made
        return self._primitives[key].name

    def add(self, op_type: str, inputs, types, attributes=None) -> str:
        """The name of what a node gives, which is of these types."""
        primitive = self.primitive(op_type, attributes)
        name = self.unique(op_type)
        node = _wire.Message(
            "Node", op_type=f"REF::{primitive}", name=name, input=list(inputs), output=[name]
        )
        node.attribute = [type_attribute("shape", types)]
        node.domain = f"Default/{op_type}-op{len(self.graph.node)}"
        self.graph.node.append(node)
        return name

    def items(self, whole: str, types) -> list:
        """The parts of what a node gives."""
        return [
            self.add("TupleGetItem", [whole, self.constant(at)], each, attributes={})
            for at, each in enumerate(types)
        ]

    def parameter(self, parameter, name: str) -> str:
        """What loads a parameter."""
        if name not in self._loads:
            full = f"{self.graph.name}:{name}"
            message = tensor_message(parameter.dtype, parameter.shape, elements_of(parameter), name=full)
            message.ref_key, message.compression_type = name, 0
            self.graph.parameter.append(message)
            types = (parameter.dtype, tuple(parameter.shape))
            self._loads[name] = self.add("Load", [full, self._state()], types, attributes={})
        return self._loads[name]

    def input(self, name: str, dtype, shape) -> str:
        full = f"{self.graph.name}:{name}"
        self.graph.input.append(_wire.Message("ValueInfo", name=full, tensor=[tensor_message(dtype, shape)]))
        return full

    def model(self) -> _wire.Message:
        return _wire.Message(
            "Model",
            ir_version="0.1.1",
            producer_name="Muster",
            producer_version=muster.__version__,
            model_version="2.7.0",
            little_endian=1,
            mind_ir_version=3,
            graph=self.graph,
            primitives=list(self._primitives.values()),
        )


class Call:
    """One node of a trace on its way into the file: what a rule is called with."""

    def __init__(self, writer: Writer, node: dict, names: dict, values: list, used: set):
        self.writer = writer
        self.row = node["op"]
        self.attributes = node["attributes"]
        self.inputs = [names[each] for each in node["inputs"]]
        self.types = [values[each] for each in node["inputs"]]
        self.output_types = [values[each] for each in node["outputs"]]
        self.used = [each in used for each in node["outputs"]]

    def get(self, name: str, otherwise):
        return self.attributes.get(name, otherwise)

    def uses_only_first(self) -> bool:
        return not any(self.used[1:])

    def make(self, op_type: str, *inputs, types=None, attributes=None) -> str:
        """A node: inputs that are no names are constants, given as `(value,)`."""
        names = [self.writer.constant(each[0]) if isinstance(each, tuple) else each for each in inputs]
        return self.writer.add(op_type, names, self.output_types[0] if types is None else types, attributes)


def _own(call: Call) -> list:
    """The row itself, for Muster alone."""
    if any(value is None for value in call.attributes.values()):
        raise NotImplementedError("it is a branch or a loop: export what it computes in one case")
    types = call.output_types
    name = call.make(
        _wire.OWN + call.row,
        *call.inputs,
        types=types[0] if len(types) == 1 else list(types),
        attributes={"settings": _settings(call.attributes)},
    )
    call.writer.foreign.add(call.row)
    return [name] if len(types) == 1 else call.writer.items(name, types)


def _settings(attributes: dict) -> tuple:
    """Names, kinds and values, as _operators._settings reads them; numbers keep all their digits."""
    kept = []
    for name, value in attributes.items():
        if isinstance(value, muster.DType):
            kept.append((name, "dtype", name_of(value)))
        elif isinstance(value, float):
            kept.append((name, "float", value.hex()))
        else:
            kept.append((name, "", value))
    return tuple(kept)


def _flatten(result, flat: list):
    """The structure of a result, with numbers of tensors in the place of tensors."""
    if isinstance(result, tuple | list):
        return [_flatten(each, flat) for each in result]
    if isinstance(result, dict):
        raise TypeError("export: the network gives a dict; MindIR has tensors and tuples of them")
    if result is None:
        raise TypeError("export: the network gives None; MindIR has tensors and tuples of them")
    flat.append(result if isinstance(result, muster.Tensor) else muster.Tensor(result))
    return len(flat) - 1


def _in_inference(net, call):
    """`call` with all cells of the network out of training, as they were afterwards."""
    if not isinstance(net, muster.Cell):
        return call()
    modes = [(cell, cell.training) for _, cell in net.cells_and_names()]
    net.set_train(False)
    try:
        return call()
    finally:
        for cell, training in modes:
            cell.training = training


def model_of(net, inputs, names) -> tuple[_wire.Message, set]:
    """The file of a network as a message, and the rows in it that only Muster reads."""
    if not any(_is_open(each) for each in inputs):
        return _model_of(net, inputs, names)
    from mindspore.train._mindir import _sizes

    first, foreign = _model_of(net, _sizes.filled(inputs, 0), names, shares_constants=False)
    other, _ = _model_of(net, _sizes.filled(inputs, 1), names, shares_constants=False)
    return _sizes.merged(first, other), foreign


def _is_open(value) -> bool:
    return isinstance(value, muster.Tensor) and any(size < 0 for size in value.shape)


def _model_of(net, inputs, names, shares_constants=True) -> tuple[_wire.Message, set]:
    from mindspore.train._mindir import _rules

    structure = []
    tensors = [each for each in inputs if isinstance(each, muster.Tensor)]

    def call(*traced):
        given = iter(traced)
        flat = []
        arguments = [next(given) if isinstance(each, muster.Tensor) else each for each in inputs]
        structure.append(_flatten(net(*arguments), flat))
        return flat

    title = type(net).__name__ if isinstance(net, muster.Cell) else getattr(net, "__name__", "function")
    network = _in_inference(net, lambda: _core._traced_network(call, tensors, title))
    writer = Writer(f"1_{title}_construct_1", shares_constants)
    values = network["values"]
    found = {}
    for at, (value, name) in enumerate(zip(network["inputs"], names, strict=True)):
        found[value] = writer.input(name or f"x{at}", *values[value])
    for at, (value, parameter) in enumerate(network["parameters"]):
        found[value] = _Late(writer.parameter, parameter, parameter.name or f"parameter_{at}")
    for value, tensor in network["constants"]:
        found[value] = _Late(writer.constant, tensor)
    used = _used(network)
    for node in network["nodes"]:
        if used.isdisjoint(node["outputs"]) and not node["has_effect"]:
            continue
        for each in node["inputs"]:
            if isinstance(found[each], _Late):
                found[each] = found[each]()
        found.update(zip(node["outputs"], _written(writer, node, found, values, used, _rules), strict=False))
    outputs = [
        found[each]() if isinstance(found[each], _Late) else found[each] for each in network["outputs"]
    ]
    _add_outputs(writer, structure[-1], outputs, [values[each] for each in network["outputs"]])
    return writer.model(), writer.foreign


class _Late:
    """What comes into the file where it is first used."""

    def __init__(self, make, *arguments):
        self._make, self._arguments = make, arguments

    def __call__(self) -> str:
        return self._make(*self._arguments)


def _used(network: dict) -> set:
    """The values that outputs need."""
    used = set(network["outputs"])
    for node in reversed(network["nodes"]):
        if node["has_effect"] or not used.isdisjoint(node["outputs"]):
            used.update(node["inputs"])
    return used


def _written(writer, node, found, values, used, rules) -> list:
    call = Call(writer, node, found, values, used)
    try:
        made = rules.written(call)
        if made is None and node["op"] == "server_lookup":
            raise NotImplementedError(
                "its rows are on parameter servers: save_checkpoint() writes them all, and a process alone, "
                "which loads that file, exports the network"
            )
        if made is None and node["has_effect"]:
            raise NotImplementedError(
                "it changes a parameter or calls other workers: leave it out of the network"
            )
        return _own(call) if made is None else made
    except NotImplementedError as error:
        place = f" in {node['cell']}" if node["cell"] else ""
        line = f" ({node['line']})" if node["line"] else ""
        raise NotImplementedError(f"export: op '{node['op']}'{place}{line}: {error}") from None


def _add_outputs(writer, structure, outputs, types) -> None:
    def joined(part):
        if not isinstance(part, list):
            return outputs[part], types[part]
        made = [joined(each) for each in part]
        kinds = [kind for _, kind in made]
        return writer.add("MakeTuple", [name for name, _ in made], kinds, attributes={}), kinds

    name, kind = joined(structure)
    output = _wire.Message("ValueInfo", name=name)
    if isinstance(kind, list):
        output.attr_info = type_attribute("", kind)
    else:
        output.tensor = [tensor_message(*kind)]
    writer.graph.output.append(output)


def write_file(model: _wire.Message, path: str) -> None:
    """Writes the file at once: it is there as a whole, or as it was."""
    pieces = _wire.pieces(model)
    if (size := sum(map(len, pieces))) > _BYTES_MAX:
        raise NotImplementedError(
            f"export: {path!r} would have {size} bytes, and a MindIR file has at most {_BYTES_MAX}: "
            "export parts of the network, each to a file of its own"
        )
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    part = f"{path}.part"
    try:
        with open(part, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)
