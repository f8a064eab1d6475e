"""Files of MindRecord 3.0: a header as JSON, pages of blobs and of raw values, and an index as SQLite.

A file begins with a header of 16 MiB: its length (8 bytes, the least first) and JSON. Pages follow, of
`page_size` bytes each. A row of a page is its length (8 bytes) and its bytes: of a RAW_DATA page a
MessagePack map of the scalars, of a BLOB_DATA page the bytes and arrays in the order of `blob_fields`, each
behind its length (8 bytes, the greatest first) where there are several. Whole numbers in arrays take 1, 2, 4
or 8 bytes, as a code of two bits for each says. The index, FILE.db, has the places of each row and the fields
that are searched.
"""

import json
import os
import sqlite3
import struct

import numpy

HEADER = 16 << 20
PAGE = 32 << 20
_WHOLE = ("int32", "int64")
_WIDTHS = (numpy.dtype("<i1"), numpy.dtype("<i2"), numpy.dtype("<i4"), numpy.dtype("<i8"))


# ---- MessagePack -----------------------------------------------------------------------------------------


def pack(values):
    """A dict of scalars, by name."""
    made = (
        bytearray([0x80 | len(values)])
        if len(values) < 16
        else bytearray(b"\xde") + struct.pack(">H", len(values))
    )
    for name in sorted(values):
        made += _packed(name) + _packed(values[name])
    return bytes(made)


def _packed(value):
    if isinstance(value, str):
        data = value.encode()
        for limit, head in ((32, None), (1 << 8, ">BB"), (1 << 16, ">BH"), (1 << 32, ">BI")):
            if len(data) < limit:
                code = 0xD9 + (">BB", ">BH", ">BI").index(head) if head else 0
                return (struct.pack(head, code, len(data)) if head else bytes([0xA0 | len(data)])) + data
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        if 0 <= value < 128:
            return bytes([value])
        if -32 <= value < 0:
            return struct.pack(">b", value)
        kinds = ((0xCC, ">B"), (0xCD, ">H"), (0xCE, ">I"), (0xCF, ">Q"))
        if value < 0:
            kinds = ((0xD0, ">b"), (0xD1, ">h"), (0xD2, ">i"), (0xD3, ">q"))
        for code, form in kinds:
            try:
                return bytes([code]) + struct.pack(form, value)
            except struct.error:
                continue
    value = float(value)
    if float(numpy.float32(value)) == value:
        return b"\xca" + struct.pack(">f", value)
    return b"\xcb" + struct.pack(">d", value)


_FIXED = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_FIXED |= {0xCA: ">f", 0xCB: ">d"}
_LONG = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}


def unpack(data):
    """A map as `pack` wrote it."""
    code, at = data[0], 1
    if code == 0xDE:
        count, at = struct.unpack_from(">H", data, 1)[0], 3
    elif code & 0xF0 == 0x80:
        count = code & 0x0F
    else:
        raise ValueError(f"a row does not begin with a map but with byte {code:#x}: the file is damaged")
    made = {}
    for _ in range(count):
        name, at = _unpacked(data, at)
        made[name], at = _unpacked(data, at)
    return made


def _unpacked(data, at):
    code, at = data[at], at + 1
    if code < 0x80:
        return code, at
    if code >= 0xE0:
        return code - 256, at
    if code in (0xC2, 0xC3):
        return code == 0xC3, at
    if code in _FIXED:
        form = _FIXED[code]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if code in _LONG:
        form = _LONG[code]
        size, at = struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    elif code & 0xE0 == 0xA0:
        size = code & 0x1F
    else:
        raise ValueError(f"a row has a value of the unknown kind {code:#x}: the file is damaged")
    return data[at : at + size].decode(), at + size


# ---- Arrays ----------------------------------------------------------------------------------------------


def pack_whole(values):
    """Whole numbers, each as wide as it must be."""
    values = [int(each) for each in values]
    codes = [
        next(code for code in range(4) if -(1 << (8 << code) - 1) <= each < 1 << (8 << code) - 1)
        for each in values
    ]
    made = bytearray(struct.pack(">I", len(values)))
    for begin in range(0, len(codes), 4):
        four = [*codes[begin : begin + 4], 0, 0, 0][:4]
        made.append(four[0] << 6 | four[1] << 4 | four[2] << 2 | four[3])
    for code, each in zip(codes, values, strict=True):
        made += each.to_bytes(1 << code, "little", signed=True)
    return bytes(made)


def unpack_whole(data, dtype):
    """The array that pack_whole wrote."""
    count = struct.unpack_from(">I", data)[0]
    at = 4 + -(-count // 4)
    codes = [data[4 + number // 4] >> (6 - 2 * (number % 4)) & 3 for number in range(count)]
    made = []
    for code in codes:
        made.append(int.from_bytes(data[at : at + (1 << code)], "little", signed=True))
        at += 1 << code
    return numpy.array(made, dtype)


def pack_blobs(row, fields, schema):
    """The bytes and arrays of a row."""
    if not fields:
        return b"\0\0\0\0"
    parts = []
    for name in fields:
        kind = schema[name]["type"]
        if kind == "bytes":
            parts.append(bytes(row[name]))
        elif kind in _WHOLE:
            parts.append(pack_whole(numpy.asarray(row[name]).ravel()))
        else:
            parts.append(numpy.asarray(row[name]).astype(kind).tobytes())
    if len(parts) == 1:
        return parts[0]
    return b"".join(struct.pack(">Q", len(part)) + part for part in parts)


def unpack_blobs(data, fields, schema):
    """What pack_blobs wrote, by name."""
    made, at = {}, 0
    for name in fields:
        part = data
        if len(fields) > 1:
            size = struct.unpack_from(">Q", data, at)[0]
            part, at = data[at + 8 : at + 8 + size], at + 8 + size
        kind = schema[name]["type"]
        if kind == "bytes":
            made[name] = bytes(part)
            continue
        array = unpack_whole(part, kind) if kind in _WHOLE else numpy.frombuffer(part, kind).copy()
        made[name] = array.reshape(schema[name].get("shape", [-1]))
    return made


# ---- Files -----------------------------------------------------------------------------------------------


def blob_fields(schema):
    """The fields of a schema that are bytes or arrays."""
    return sorted(name for name, field in schema.items() if field["type"] == "bytes" or "shape" in field)


class File:
    """A file that is there: its header, and its rows by number."""

    def __init__(self, path):
        self.path = path
        try:
            self._file = open(path, "rb")  # noqa: SIM115 - open for as long as rows are read
        except OSError as error:
            raise RuntimeError(f"Invalid file, {path} cannot be opened: {error.strerror}") from None
        size = struct.unpack("<Q", self._file.read(8).ljust(8, b"\0"))[0]
        try:
            if not 0 < size < HEADER:
                raise ValueError
            self.header = json.loads(self._file.read(size))
        except ValueError:
            raise RuntimeError(
                f"Invalid file, {path} is no file of MindRecord: its header is damaged"
            ) from None
        described = self.header["schema"][0]
        self.schema, self.blobs = described["schema"], described["blob_fields"]
        if self.header.get("compression_size") is None:
            raise RuntimeError(
                f"Invalid file, {path} is of a version that is not read: {self.header.get('version')}"
            )
        index = path + ".db"
        if not os.path.isfile(index):
            raise RuntimeError(f"Invalid file, the index {index} is missing: both files belong together")
        with sqlite3.connect(f"file:{index}?mode=ro", uri=True) as database:
            self.places = database.execute(
                "SELECT PAGE_ID_RAW, PAGE_OFFSET_RAW, PAGE_OFFSET_RAW_END, PAGE_ID_BLOB, PAGE_OFFSET_BLOB, "
                "PAGE_OFFSET_BLOB_END FROM INDEXES ORDER BY ROW_ID"
            ).fetchall()

    def _read(self, page, begin, end):
        self._file.seek(self.header["header_size"] + page * self.header["page_size"] + begin + 8)
        return self._file.read(end - begin - 8)

    def row(self, number):
        """Row `number` as a dict."""
        raw_page, raw_begin, raw_end, page, begin, end = self.places[number]
        scalars = unpack(self._read(raw_page, raw_begin, raw_end))
        made = {name: scalars[name] for name in self.schema if name in scalars}
        return made | unpack_blobs(self._read(page, begin, end), self.blobs, self.schema)


_COLUMN_TYPES = {
    "string": "TEXT",
    "int32": "INTEGER",
    "int64": "INTEGER",
    "float32": "NUMERIC",
    "float64": "NUMERIC",
}


def write(path, addresses, number, schema, description, rows, indexes):
    """One of several files, with its index."""
    blobs = blob_fields(schema)
    pages = {"BLOB_DATA": [bytearray()], "RAW_DATA": [bytearray()]}
    firsts = [0]
    places = []
    for at, row in enumerate(rows):
        scalars = {name: row[name] for name in schema if name not in blobs} or {"id": at}
        where = []
        for kind, data in (("RAW_DATA", pack(scalars)), ("BLOB_DATA", pack_blobs(row, blobs, schema))):
            held = pages[kind]
            whole = struct.pack("<Q", len(data)) + data
            if len(whole) > PAGE:
                raise RuntimeError(f"row {at} takes {len(whole)} bytes; a page of MindRecord holds {PAGE}")
            if len(held[-1]) + len(whole) > PAGE:
                held.append(bytearray())
                if kind == "BLOB_DATA":
                    firsts.append(at)
            where += [len(held) - 1, len(held[-1]), len(held[-1]) + len(whole)]
            held[-1] += whole
        places.append(where)
    blob_pages = len(pages["BLOB_DATA"])
    ends = [*firsts[1:], len(places)]
    described = [
        _page("BLOB_DATA", at, at, number, len(held), (firsts[at], ends[at]))
        for at, held in enumerate(pages["BLOB_DATA"])
    ]
    described += [
        _page("RAW_DATA", blob_pages + at, at, number, len(held), (0, 0))
        for at, held in enumerate(pages["RAW_DATA"])
    ]
    header = {
        "header_size": HEADER,
        "index_fields": [{"index_field": name, "schema_id": 0} for name in indexes] or None,
        "page": described,
        "page_size": PAGE,
        "compression_size": 0,
        "schema": [{"blob_fields": blobs, "desc": description, "schema": schema}],
        "shard_addresses": addresses,
        "shard_id": number,
        "statistics": None,
        "version": "3.0",
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for at, held in enumerate([*pages["BLOB_DATA"], *pages["RAW_DATA"]]):
            file.seek(HEADER + at * PAGE)
            file.write(held)
    _write_index(path, schema, rows, places, indexes, blob_pages)


def _page(kind, number, of_kind, shard, size, rows):
    return {
        "end_row_id": rows[1],
        "page_id": number,
        "page_size": size,
        "page_type": kind,
        "page_type_id": of_kind,
        "row_group_ids": [{"id": of_kind if kind == "BLOB_DATA" else 0, "offset": 0}],
        "shard_id": shard,
        "start_row_id": rows[0],
    }


def _write_index(path, schema, rows, places, indexes, blob_pages):
    columns = "".join(
        f", INC_{at} INT, {name}_0 {_COLUMN_TYPES[schema[name]['type']]}" for at, name in enumerate(indexes)
    )
    keys = "".join(f", INC_{at}" for at in range(len(indexes)))
    if os.path.exists(path + ".db"):
        os.remove(path + ".db")
    with sqlite3.connect(path + ".db") as database:
        database.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
        database.execute("INSERT INTO SHARD_NAME VALUES(?)", (os.path.basename(path),))
        database.execute(
            "CREATE TABLE INDEXES(ROW_ID INT NOT NULL, PAGE_ID_RAW INT NOT NULL, PAGE_OFFSET_RAW INT NOT "
            "NULL, "
            "PAGE_OFFSET_RAW_END INT NOT NULL, ROW_GROUP_ID INT NOT NULL, PAGE_ID_BLOB INT NOT NULL, "
            f"PAGE_OFFSET_BLOB INT NOT NULL, PAGE_OFFSET_BLOB_END INT NOT NULL{columns}, PRIMARY "
            f"KEY(ROW_ID{keys}))"
        )
        for at, (row, where) in enumerate(zip(rows, places, strict=True)):
            raw_page, raw_begin, raw_end, page, begin, end = where
            values = [at, blob_pages + raw_page, raw_begin, raw_end, page, page, begin, end]
            for name in indexes:
                values += [0, row[name]]
            database.execute(f"INSERT INTO INDEXES VALUES({','.join('?' * len(values))})", values)
