"""Weights that a loop changes though recoverable() is not told of them, as averages of weights (EMA) are."""

import ctypes
import sys
from types import FunctionType, ModuleType

import torch
from torch.nn.parameter import is_lazy

_SAMPLE = 1024  # elements of a tensor: an average of weights changes all of them
_NO_OBJECTS = (type, ModuleType, FunctionType, torch.nn.Module, torch.Tensor)


def _bare(name: str) -> str:
    """Of a parameter, whatever the module around it."""
    return name.removeprefix("_orig_mod.").removeprefix("module.")


def is_plain(value) -> bool:
    """Whether it has elements that can be looked at."""
    if not isinstance(value, torch.Tensor) or is_lazy(value) or type(value.data) is not torch.Tensor:
        return False
    return value.layout is torch.strided and value.device.type != "meta" and value.numel() > 0


def _sample(tensor: torch.Tensor) -> bytes:
    some = tensor.detach().flatten()[:_SAMPLE].contiguous().cpu()
    return ctypes.string_at(some.data_ptr(), some.nbytes)


def attributes(value) -> dict[str, object]:
    if isinstance(value, _NO_OBJECTS):
        return {}
    try:
        return dict(value.__dict__)
    except Exception:  # of a proxy, whatever it raises
        return {}


def _around_the_loop() -> dict[str, object]:
    """What the functions have in which the loop runs, and what the objects have that they have."""
    found: dict[str, object] = {}
    frame = sys._getframe(1)
    while frame is not None:
        own = dict(frame.f_locals)
        inner = {
            f"{name}.{inside}": each
            for name, value in own.items()
            for inside, each in attributes(value).items()
        }
        found = inner | own | found
        frame = frame.f_back
    return found


class OtherWeights:
    """Modules, and dicts and lists like those of parameters, from the beginning of a step on.

    model, named: what recoverable() was told of.
    """

    def __init__(self, model: torch.nn.Module, named: list) -> None:
        parts = [model, *model.children()]
        self._names = {_bare(name) for part in parts for name, _ in part.named_parameters()}
        self._names |= {_bare(name) for part in parts for name, _ in part.named_buffers()}
        self._shapes = [[each.shape for each in part.parameters() if not is_lazy(each)] for part in parts]
        known = self._places(
            [model, *named, *(each for state in named for each in attributes(state).values())]
        )
        self._seen: dict[str, tuple] = {}
        for name, holder in _around_the_loop().items():
            tensors = self._tensors(holder)
            places = {tensor.data_ptr() for tensor in tensors}
            if places - known:
                self._seen[name] = (holder, [_sample(tensor) for tensor in tensors])
                known |= places  # under another name it is no other one

    def _tensors(self, holder) -> list[torch.Tensor]:
        if isinstance(holder, torch.nn.Module):
            return [each for each in (*holder.parameters(), *holder.buffers()) if is_plain(each)]
        if isinstance(holder, dict):
            is_of_weights = all(isinstance(name, str) and _bare(name) in self._names for name in holder)
            tensors = list(holder.values()) if is_of_weights else []
        elif isinstance(holder, list | tuple) and len(holder) <= max(map(len, self._shapes)):
            tensors = list(holder)
            is_of_weights = [getattr(each, "shape", None) for each in tensors] in self._shapes
        else:
            return []
        return tensors if is_of_weights and all(map(is_plain, tensors)) else []

    def _places(self, holders: list) -> set[int]:
        return {tensor.data_ptr() for holder in holders for tensor in self._tensors(holder)}

    def changed(self) -> list[str]:
        """By the names that the script has for them."""
        return [
            name
            for name, (holder, before) in self._seen.items()
            if [_sample(tensor) for tensor in self._tensors(holder)] != before
        ]
