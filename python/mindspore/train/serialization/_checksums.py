"""Checksums behind .ckpt files, as save_checkpoint(crc_check=True) of MindSpore writes them."""

import contextlib
import os
import shutil
import tempfile

import muster
from mindspore import _device

_MARK = b"crc_num"
_DIGITS = 10
_SIZE = len(_MARK) + _DIGITS
_PIECE = 1 << 20


def _sum_of(file, size: int) -> int:
    import zlib

    total = 0
    while size > 0 and (piece := file.read(min(size, _PIECE))):
        total = zlib.crc32(piece, total)
        size -= len(piece)
    return total


def add(path: str) -> None:
    """Writes the checksum of a file behind it."""
    with open(path, "r+b") as file:
        total = _sum_of(file, os.path.getsize(path))
        file.seek(0, os.SEEK_END)
        file.write(_MARK + total.to_bytes(_DIGITS, "big"))
        file.flush()
        os.fsync(file.fileno())


def _kept(file):
    """The checksum behind an open file and the size of what is before it; None without one."""
    size = file.seek(0, os.SEEK_END) - _SIZE
    if size < 0:
        return None, size + _SIZE
    file.seek(size)
    end = file.read(_SIZE)
    file.seek(0)
    if not end.startswith(_MARK):
        return None, size + _SIZE
    return int.from_bytes(end[len(_MARK) :], "big"), size


def _holds(file, kept: int, size: int) -> bool:
    return _sum_of(file, size) == kept


@contextlib.contextmanager
def without(call: str, path: str, is_checked: bool):
    """The path of the file without a checksum: its own, or that of a copy.

    ValueError where the checksum is another one; checked when the caller wants it.
    """
    if not os.path.isfile(path) or path.endswith(".safetensors"):
        yield path  # whoever reads it says what is wrong
        return
    with open(path, "rb") as file:
        kept, size = _kept(file)
        if kept is None:
            if is_checked:
                _device.note_once(f"warning: {call}: {path} has no checksum: save it with crc_check=True")
            yield path
            return
        if is_checked and not _holds(file, kept, size):
            raise ValueError(
                f"{call}: the checksum of {path} is another one: it is damaged; take another copy"
            )
        with tempfile.NamedTemporaryFile(suffix=".ckpt") as copy:
            file.seek(0)
            shutil.copyfileobj(file, copy, _PIECE)
            copy.truncate(size)
            copy.flush()
            yield copy.name


def check_checkpoint(ckpt_file_name) -> bool:
    """Whether the file is a .ckpt that can be read, and its checksum holds where it has one."""
    name = os.fspath(ckpt_file_name)
    if not name.endswith(".ckpt"):
        return False
    with open(name, "rb") as file:
        kept, size = _kept(file)
        if kept is not None and not _holds(file, kept, size):
            return False
    try:
        with without("check_checkpoint", name, False) as path:
            muster.load_checkpoint(path)
    except (ValueError, RuntimeError):
        return False
    return True
