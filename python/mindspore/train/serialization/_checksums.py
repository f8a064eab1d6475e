"""Checksums behind .ckpt files, as save_checkpoint(crc_check=True) of MindSpore writes them."""

import os

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


def check(call: str, path: str) -> None:
    """ValueError where the checksum behind the file is another one; a warning where there is none."""
    if not os.path.isfile(path) or path.endswith(".safetensors"):
        return  # whoever reads it says what is wrong
    with open(path, "rb") as file:
        kept, size = _kept(file)
        if kept is None:
            _device.note_once(f"warning: {call}: {path} has no checksum: save it with crc_check=True")
        elif not _holds(file, kept, size):
            raise ValueError(
                f"{call}: the checksum of {path} is another one: it is damaged; take another copy"
            )


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
        muster.load_checkpoint(name)
    except (ValueError, RuntimeError):
        return False
    return True
