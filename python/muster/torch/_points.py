"""Points of a training on disk (MS_RECOVERY_PATH): where it goes on when all of its processes have died.

A file is a line that says what it is, a SHA-256 of the rest, and what torch.save wrote. It is complete or
not there: written beside its name, synced, and renamed. The newest two are kept.
"""

import contextlib
import hashlib
import io
import os
import sys
from pathlib import Path

import torch

_MAGIC = b"muster torch point 1\n"
_SUFFIX = ".point"
_KEPT = 2


def pack(state: dict) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def _of_numpy() -> list:
    """What scalars and arrays of numpy are pickled by: means of losses often are such."""
    try:
        import numpy
    except ImportError:
        return []
    scalar = numpy.float64(0).__reduce__()[0]
    array = numpy.zeros(0).__reduce__()[0]
    kinds = {type(numpy.dtype(kind)) for kind in (*"?bhilqBHILQefdg",)}
    return [scalar, array, numpy.ndarray, numpy.dtype, *kinds]


def unpack(data, what: str) -> dict:
    """Raises ValueError where it holds more than tensors, numbers, strings, lists and dicts of them."""
    try:
        with torch.serialization.safe_globals(_of_numpy()):
            return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(_unreadable(what, error)) from error


def _unreadable(what: str, error: Exception) -> str:
    return (
        f"muster: {what} cannot be read: state_dict() of what recoverable() was given may hold tensors, "
        f"arrays, numbers, strings, lists and dicts alone: {str(error).splitlines()[0]}"
    )


def check_readable(state, what: str) -> None:
    """Raises ValueError where unpack() would not read it, as a rank that comes back does."""
    try:
        packed = pack({"state": _without_values(state)})
    except Exception as error:
        raise ValueError(_unreadable(what, error)) from error
    unpack(packed, what)


def _without_values(value):
    """The same with empty tensors."""
    if isinstance(value, torch.Tensor):
        return torch.empty(0, dtype=value.dtype, device="cpu")
    if type(value) is dict:
        return {name: _without_values(each) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_without_values, value))
    return value


class Points:
    """Those of one rank; find() sees those of all ranks. folder: None keeps none."""

    def __init__(self, folder: str | None, rank: int) -> None:
        self.folder = None if folder is None else Path(folder) / "torch"
        self._rank = rank

    def packed(self, state: dict) -> bytes | None:
        return None if self.folder is None else pack(state)

    def write(self, payload: bytes, count: int) -> None:
        """A point behind `count` steps. A disk that refuses it is a line, and the training goes on."""
        name = self.folder / f"{count:012d}-rank{self._rank}{_SUFFIX}"
        try:
            self._write(name, payload)
        except OSError as error:
            print(
                f"muster: the point {name} was not written, and the next is tried: {error}", file=sys.stderr
            )
            return
        for old in self._own()[:-_KEPT]:
            with contextlib.suppress(OSError):
                old.unlink()

    def _own(self) -> list[Path]:
        return sorted(self.folder.glob(f"*-rank{self._rank}{_SUFFIX}"))

    def _write(self, name: Path, payload: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        new = name.with_suffix(".new")
        with open(new, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(payload).digest())
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, name)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def find(self) -> dict | None:
        """What the newest whole point of any rank holds; damaged ones are passed over with a line."""
        if self.folder is None or not self.folder.is_dir():
            return None
        for name in sorted(self.folder.glob(f"*{_SUFFIX}"), reverse=True):
            try:
                return self._read(name)
            except (OSError, ValueError) as error:
                print(f"muster: the point {name} is passed over: {error}", file=sys.stderr)
        return None

    def _read(self, name: Path) -> dict:
        data = name.read_bytes()
        start = len(_MAGIC) + hashlib.sha256().digest_size
        if (
            data[: len(_MAGIC)] != _MAGIC
            or hashlib.sha256(data[start:]).digest() != data[len(_MAGIC) : start]
        ):
            raise ValueError("it is damaged")
        return unpack(data[start:], f"the point {name}")

    def remove_all(self) -> None:
        """Of all ranks: the job that they were of has ended well, and another begins."""
        if self.folder is None:
            return
        for name in self.folder.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):
                name.unlink()
