"""A reader of TensorBoard's event files of its own, from the formats' descriptions: TFRecord and protobuf."""

import struct
from pathlib import Path


def crc32c(data):
    """CRC-32C bit by bit, then masked as records carry it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The contents of all records; an assertion fails where one is cut or damaged."""
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == crc32c(data[at : at + 8])
        content = data[at + 12 : at + 12 + size]
        assert len(content) == size
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == crc32c(content)
        yield content
        at += 16 + size


def _number(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return number, at


def fields(data):
    """{number: [value]} of a message: ints, and bytes of all that is longer."""
    found, at = {}, 0
    while at < len(data):
        key, at = _number(data, at)
        if key & 7 == 0:
            value, at = _number(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = _number(data, at)
            value, at = data[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def files(folder):
    """Event files of a folder, oldest first."""
    return sorted(Path(folder).glob("events.out.tfevents.*"))


def values(folder):
    """(tag, step, fields of the Summary.Value) of all event files of a folder."""
    found = []
    for file in files(folder):
        events = [fields(record) for record in records(file.read_bytes())]
        assert events[0][3] == [b"brain.Event:2"]
        for event in events[1:]:
            for summary in event.get(5, []):
                for value in fields(summary)[1]:
                    known = fields(value)
                    found.append((known[1][0].decode(), event.get(2, [0])[0], known))
    return found


def scalars(folder):
    """{tag: [(step, number)]} in the order in which they were written."""
    found = {}
    for tag, step, value in values(folder):
        if 2 in value:
            found.setdefault(tag, []).append((step, struct.unpack("<f", value[2][0])[0]))
    return found
