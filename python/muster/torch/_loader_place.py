"""The place in a loader: which epoch, which batch, and how a process that comes late gets there."""

import ctypes
import zlib
from collections.abc import Sequence

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler

from muster.torch import _generators

_SAMPLE = 1024  # elements of a tensor of a batch
_END = object()
_PARTS = {
    "sampler",
    "batch_sampler",
    "_sampler",
    "dataset",
    "datasets",
    "transform",
    "transforms",
    "collate_fn",
}
_PARTS_MAX = 100  # in a list: a longer one has indices or rows


def sampler_of_epochs(loader):
    """What is told of epochs: the sampler of a DataLoader, or of its batches."""
    for found in (
        getattr(loader, "sampler", None),
        getattr(getattr(loader, "batch_sampler", None), "sampler", None),
    ):
        if hasattr(found, "set_epoch"):
            return found
    return None


def _each(value) -> list:
    """Of a list or dict of a few."""
    if not isinstance(value, list | tuple | dict):
        return [value]
    several = value.values() if isinstance(value, dict) else value
    return list(several) if len(several) <= _PARTS_MAX else []


def _parts_of(loader) -> list:
    """The loader and what it is made of: loaders, samplers, datasets, transforms, whatever wraps those."""
    parts, seen = [loader], {id(loader)}
    for part in parts:  # it grows
        for name, value in list(getattr(part, "__dict__", {}).items()):
            for each in _each(value):
                is_part = name in _PARTS or isinstance(each, DataLoader | Sampler | Dataset)
                if is_part and id(each) not in seen:
                    seen.add(id(each))
                    parts.append(each)
    return parts


def told_of_epochs(loader) -> list:
    """What has set_epoch(): samplers of rows and of batches, datasets, and those of loaders in a loader."""
    return [part for part in _parts_of(loader) if callable(getattr(part, "set_epoch", None))]


def generators_of(loader) -> list:
    """Those that its parts have: generator= of a DataLoader or a sampler, and a script's own."""
    found = {
        id(value): value
        for part in _parts_of(loader)
        for value in getattr(part, "__dict__", {}).values()
        if _generators.is_generator(value)
    }
    return list(found.values())


def end_workers(loader) -> None:
    """Those that persist: nobody keeps their generators, so each epoch begins with new ones."""
    for part in _parts_of(loader):
        if getattr(part, "persistent_workers", False):
            part._iterator = None  # what has them


def passes_cheaply(loader) -> bool:
    """Whether batches can be passed over by their indices: the process itself reads rows of a map."""
    return (
        isinstance(loader, DataLoader)
        and loader.prefetch_factor is None  # no processes that read ahead
        and not isinstance(loader.dataset, IterableDataset)
        and loader.batch_sampler is not None
    )


def digest_of(batch) -> int:
    """Of what its tensors begin with: two readings of a batch that were not the same are seen by it."""
    digest = 0
    for each in torch.utils._pytree.tree_leaves(batch):
        if isinstance(each, torch.Tensor) and each.layout is torch.strided and each.device.type == "cpu":
            some = each.detach().flatten()[:_SAMPLE].contiguous()
            digest = zlib.crc32(ctypes.string_at(some.data_ptr(), some.nbytes), digest)
    return digest


def other_rows(batch: int, epoch: int, rank: int) -> str:
    """What to say of a batch whose digest is not what it was."""
    return (
        f"warning: batch {batch} of epoch {epoch} has other rows where rank {rank} reads it again: its "
        "loader keeps rows of earlier batches (a buffer that shuffles), drawn with random numbers that the "
        "steps draw, too, and the training ends with other numbers than without that death: let the rows "
        "draw from a torch.Generator that is an attribute of the dataset, or in worker processes of the "
        "DataLoader"
    )


class LoaderPlace:
    """epoch and step: of the batch that next() gives, from 0. Opening an epoch may use the generators.

    generators: the script's own that are kept beside those of the process. recovers: no epoch has the worker
    processes of another.
    """

    def __init__(self, loader, sampler, generators: Sequence = (), *, recovers: bool = False) -> None:
        self._generators, self._recovers = generators, recovers
        self._loader, self._told = loader, told_of_epochs(loader) if sampler is None else [sampler]
        if not all(hasattr(each, "set_epoch") for each in self._told):
            raise ValueError(
                f"muster: sampler of recoverable() is a {type(sampler).__name__} without set_epoch()"
            )
        self.epoch, self.step = 0, 0
        self.digest = 0  # of the batch that next() gave last, where other rows may come when it is read again
        self._batches = None

    def _open(self) -> None:
        for each in self._told:
            each.set_epoch(self.epoch)
        if self._recovers:
            end_workers(self._loader)
        self._batches = iter(self._loader)

    def next(self):
        """The batch of this place, or END at the end of the epoch; the place stays until advance()."""
        if self._batches is None:
            self._open()
        batch = next(self._batches, _END)
        if self._recovers and batch is not _END and not passes_cheaply(self._loader):
            self.digest = digest_of(batch)
        return batch

    def advance(self) -> None:
        self.step += 1

    def end_epoch(self) -> None:
        if self.step == 0 and self.epoch > 0:
            raise ValueError(
                f"muster: epoch {self.epoch} of recoverable() has no batch: its loader, a "
                f"{type(self._loader).__name__}, has to begin anew for each epoch, as a DataLoader or a list "
                "does, and a generator or a zip() does not"
            )
        self.epoch, self.step, self._batches = self.epoch + 1, 0, None

    def _pass_one(self) -> bool:
        """Whether there was a batch to pass over."""
        if not (passes_cheaply(self._loader) and hasattr(self._batches, "_next_index")):
            return not is_end(self.next())
        try:
            self._batches._next_index()
        except StopIteration:
            return False
        return True

    def move(self, epoch: int, step: int, at_epoch: bytes, at_last: bytes) -> None:
        """To another place: an epoch is opened with its own generators, and batches are passed over.

        at_last: the generators with which the last of these was read, for what it leaves to the next.
        """
        self.epoch, self.step, self._batches = epoch, step, None
        if step == 0:
            return
        _generators.restore(at_epoch, self._generators)
        self._open()
        for index in range(step):
            if 0 < index == step - 1:  # the first was read with what opening the epoch has left
                _generators.restore(at_last, self._generators)
            if not self._pass_one():
                raise ValueError(
                    f"muster: the job is at batch {step} of epoch {epoch}, and the loader of this script has "
                    f"{index} an epoch: start the script as it was"
                )


def is_end(batch) -> bool:
    return batch is _END
