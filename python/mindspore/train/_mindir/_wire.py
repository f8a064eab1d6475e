"""The messages of a MindIR file, and their bytes.

A file is one message of protocol buffers, a Model. `_FIELDS` has the numbers, names and types of the fields
that are read or written here; others are skipped.
"""

import struct

# Types of attributes and of elements have the same numbers where both have one.
DTYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
}
FLOAT, INT64, STRING, BOOL, DOUBLE, TENSORS, TUPLE, LIST, DICT = 1, 7, 8, 9, 11, 19, 20, 21, 22
UMONAD, IOMONAD, NONE = 23, 24, 25
OWN = "muster."  # before the names of rows that MindSpore has no counterpart for
PRIMITIVE, PRIMITIVE_FUNCTION = 1, 2  # settings are attributes of the one, and inputs of the other

# By message: the number of each field, its name, and how it is written. "*" is a repeated one.
_FIELDS = {
    "Model": """
        1 ir_version text, 2 producer_name text, 3 producer_version text, 4 domain text, 5 model_version text,
        6 doc_string text, 7 graph Graph, 8 functions *Graph, 10 little_endian int, 12 primitives *Primitive,
        13 mind_ir_version int, 14 user_info *UserInfo
    """,
    "UserInfo": "1 key text, 2 value text",
    "Primitive": "1 name text, 2 op_type text, 3 attribute *Attribute, 4 instance_name text, 5 prim_type int",
    "Graph": """
        1 node *Node, 2 name text, 3 parameter *Tensor, 4 doc_string text, 5 input *ValueInfo,
        6 output *ValueInfo, 7 bprop_hash text, 8 attribute *Attribute, 9 bprop_filepath text,
        10 map_parameter *bytes
    """,
    "Node": """
        1 input *text, 2 output *text, 3 name text, 4 op_type text, 5 attribute *Attribute, 7 domain text
    """,
    "ValueInfo": "1 name text, 2 tensor *Tensor, 4 denotation text, 5 attr_info Attribute",
    "Tensor": """
        1 dims *int, 2 data_type int, 7 name text, 9 raw_data bytes, 12 external_data ExternalData,
        13 ref_key text, 14 min_dims *int, 15 max_dims *int, 16 compression_type int
    """,
    "ExternalData": "1 location text, 2 offset int, 3 length int",
    "Attribute": """
        1 name text, 2 f float, 3 i int, 4 d double, 5 s bytes, 6 t Tensor, 8 floats *float,
        9 doubles *double, 10 ints *int, 11 strings *bytes, 12 tensors *Tensor, 16 type int,
        17 values *Attribute, 18 seq_info SeqInfo
    """,
    "SeqInfo": "1 is_dyn_len int, 2 tuple_elem_item Attribute",
}


class _Field:
    def __init__(self, text: str):
        number, self.name, kind = text.split()
        self.number = int(number)
        self.repeated = kind.startswith("*")
        self.kind = kind.lstrip("*")


_BY_NUMBER = {
    message: {field.number: field for field in map(_Field, text.split(","))}
    for message, text in _FIELDS.items()
}
_BY_NAME = {
    message: {field.name: field for field in fields.values()} for message, fields in _BY_NUMBER.items()
}
_NOTHING = {"int": 0, "float": 0.0, "double": 0.0, "text": "", "bytes": b""}


class Message:
    """A message. Its fields are attributes: those that were not set are 0, "", an empty list or message."""

    def __init__(self, kind: str, **values):
        self.__dict__["kind"] = kind
        for name, value in values.items():
            setattr(self, name, value)

    def __getattr__(self, name):
        if name == "kind":  # while it is copied
            raise AttributeError(name)
        field = _BY_NAME[self.kind].get(name)
        if field is None:
            raise AttributeError(f"a MindIR {self.kind} has no field {name!r}")
        if field.repeated:
            value = {} if field.kind == "UserInfo" else []
        else:
            value = Message(field.kind) if field.kind in _FIELDS else _NOTHING[field.kind]
        if field.repeated or field.kind in _FIELDS:
            self.__dict__[name] = value
        return value

    def __setattr__(self, name, value):
        if name not in _BY_NAME[self.kind]:
            raise AttributeError(f"a MindIR {self.kind} has no field {name!r}")
        self.__dict__[name] = value

    def has(self, name: str) -> bool:
        """Whether the field was set."""
        return name in self.__dict__


class DamagedError(Exception):
    """Bytes that are no message."""


def read(kind: str, content) -> Message:
    """The message `kind` in these bytes; blocks in it are views of them. DamagedError where they are none."""
    try:
        return _read(kind, memoryview(content))
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise DamagedError(str(error)) from None


def _read(kind: str, content) -> Message:
    message = Message(kind)
    values = message.__dict__
    for number, wire, value in _parts(content):
        field = _BY_NUMBER[kind].get(number)
        if field is None:
            continue
        items = _items(field, wire, value)
        if field.kind == "UserInfo":
            values.setdefault(field.name, {}).update((each.key, each.value) for each in items)
        elif field.repeated:
            values.setdefault(field.name, []).extend(items)
        else:
            values[field.name] = items[-1]
    return message


def _parts(content):
    """Number, type and value of each field: whole numbers, and views of bytes."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(content, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = content[at : at + size], at + size
        elif wire == 2:
            size, at = _varint(content, at)
            value, at = content[at : at + size], at + size
        else:
            raise DamagedError(f"a field of type {wire}")
        if at > len(content):
            raise DamagedError("it ends within a field")
        yield key >> 3, wire, value


def _varint(content, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise DamagedError("a number of more than ten bytes")


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


_WIRES = {"int": 0, "double": 1, "float": 5}


def _items(field: _Field, wire: int, value) -> list:
    """What one field of the bytes holds: several where numbers are packed."""
    if field.kind in ("float", "double"):
        letter = "f" if field.kind == "float" else "d"
        if len(value) % struct.calcsize(letter) or wire not in (2, _WIRES[field.kind]):
            raise DamagedError(f"field {field.name!r} is no number")
        return list(struct.unpack(f"<{len(value) // struct.calcsize(letter)}{letter}", value))
    if field.kind == "int":
        if wire == 0:
            return [_signed(value)]
        if wire != 2:
            raise DamagedError(f"field {field.name!r} is no number")
        numbers, at = [], 0
        while at < len(value):
            number, at = _varint(value, at)
            numbers.append(_signed(number))
        return numbers
    if wire != 2:
        raise DamagedError(f"field {field.name!r} is a number")
    if field.kind == "bytes":
        return [value]
    return [str(value, "utf-8") if field.kind == "text" else _read(field.kind, value)]


def write(message: Message) -> bytes:
    """The bytes of the message."""
    return b"".join(pieces(message))


def pieces(message: Message) -> list:
    """The bytes of the message in parts; blocks of elements are not copied."""
    made = []
    for field in _BY_NUMBER[message.kind].values():
        if not message.has(field.name):
            continue
        value = getattr(message, field.name)
        if field.kind == "UserInfo":
            value = [Message("UserInfo", key=key, value=each) for key, each in value.items()]
        for each in value if field.repeated else [value]:
            made += _written(field, each)
    return made


def _written(field: _Field, value) -> list:
    wire = _WIRES.get(field.kind, 2)
    key = varint_bytes(field.number << 3 | wire)
    if wire == 0:
        return [key, varint_bytes(int(value) & (1 << 64) - 1)]
    if wire != 2:
        return [key, struct.pack("<f" if wire == 5 else "<d", value)]
    plain = [value.encode() if field.kind == "text" else value]
    within = pieces(value) if field.kind in _FIELDS else plain
    return [key, varint_bytes(sum(map(len, within))), *within]


def varint_bytes(value: int) -> bytes:
    """A whole number in groups of seven bits, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
