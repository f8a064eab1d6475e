"""Strings among the entries of .ckpt files, as save_checkpoint(append_dict={"name": "text"}) of MindSpore
writes them: an entry whose type is "str" and whose content has four bytes a character."""

import os

from mindspore.train._mindir._wire import varint_bytes

_TYPE = b"str"
_CODING = "utf-32-le"
_VALUE, _NAME, _TENSOR = 1, 1, 2  # fields of a file, and of an entry
_DIMS, _KIND, _CONTENT = 1, 2, 3  # fields of a tensor
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_OWN = "muster."  # entries that are no one's but the format's


def _block(field: int, content: bytes) -> bytes:
    return bytes((field << 3 | _DELIMITED,)) + varint_bytes(len(content)) + content


def _entry(name: str, text: str) -> bytes:
    # numpy, with which MindSpore reads it, has no text of no character: an empty one is a zero.
    content = (text or "\0").encode(_CODING)
    tensor = bytes((_DIMS << 3, 0)) + _block(_KIND, _TYPE) + _block(_CONTENT, content)
    return _block(_VALUE, _block(_NAME, name.encode()) + _block(_TENSOR, tensor))


def _refuse_others(path: str, beside: str) -> None:
    """Files of several parts say each other's names, so their names cannot change."""
    folder, name = os.path.split(beside)
    others = [each for each in os.listdir(folder or ".") if each.startswith(name) and each != name]
    for each in others:
        os.remove(os.path.join(folder, each))
    if others:
        raise NotImplementedError(
            f"mindspore.save_checkpoint: append_dict has strings, and {path} is written with rows of "
            "parameter servers beside it: give numbers and tensors alone"
        )


def write(path: str, strings: dict[str, str], save) -> None:
    """Calls save(path of a file) and adds entries to what it writes; only the whole file gets its name."""
    beside = f"{path}.strings-{os.getpid()}"
    try:
        save(beside)
        _refuse_others(path, beside)
        with open(beside, "ab") as file:
            for name, text in strings.items():
                file.write(_entry(name, text))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.remove(beside)


class _Heads:
    """A file's fields one by one; what is long is passed over, not read."""

    def __init__(self, file, end: int):
        self.file, self.end = file, end

    def number(self) -> int:
        total = shift = 0
        while byte := self.file.read(1):
            total |= (byte[0] & 0x7F) << shift
            if byte[0] < 0x80:
                return total
            shift += 7
        raise EOFError

    def fields(self, end: int):
        """(field, begin, size) of each that has a size, up to the byte `end`."""
        while (at := self.file.tell()) < end:
            field, kind = divmod(self.number(), 8)
            if kind == _VARINT:
                self.number()
            elif kind == _DELIMITED:
                size = self.number()
                begin = self.file.tell()
                if begin + size > self.end:
                    return  # not an entry: a checksum stands behind them
                yield field, begin, size
                self.file.seek(begin + size)
            elif kind in (_FIXED64, _FIXED32):
                self.file.seek(at + 1 + (8 if kind == _FIXED64 else 4))
            else:
                return

    def bytes_at(self, begin: int, size: int) -> bytes:
        self.file.seek(begin)
        return self.file.read(size)


def _read_entry(heads: _Heads, begin: int, size: int):
    name, kind, contents = "", b"", []
    for field, at, length in heads.fields(begin + size):
        if field == _NAME:
            name = heads.bytes_at(at, length).decode()
        elif field == _TENSOR:
            for inner, start, inner_size in heads.fields(at + length):
                if inner == _KIND:
                    kind = heads.bytes_at(start, inner_size)
                elif inner == _CONTENT:
                    contents.append((start, inner_size))
    if kind != _TYPE or name.startswith(_OWN):
        return None
    return name, b"".join(heads.bytes_at(*each) for each in contents).decode(_CODING).rstrip("\0")


def read(path: str) -> dict[str, str]:
    """The strings of a .ckpt file, which the reader of its tensors has found sound, by name."""
    if not os.path.isfile(path) or path.endswith(".safetensors"):
        return {}
    with open(path, "rb") as file:
        heads = _Heads(file, os.path.getsize(path))
        found = []
        for field, begin, size in heads.fields(heads.end):
            if field == _VALUE:
                found.append(_read_entry(heads, begin, size))
    return dict(each for each in found if each is not None)
