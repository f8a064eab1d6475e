"""Tensors that a loop carries from step to step in variables of its own, as the hidden state of an LSTM.

What a body stores before it loads it is made anew in each step, so the code says which variables are carried;
what they hold says whether that changes from step to step.
"""

import dis
import re
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType

import torch

from muster.torch._other_weights import attributes, is_plain

_ACCESS = re.compile(r"(LOAD|STORE|DELETE)_(?:FAST|NAME|GLOBAL|DEREF)(?!_AND_CLEAR)")
_ATTRIBUTE = re.compile(r"(LOAD|STORE|DELETE)_(?:ATTR|METHOD)")
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
_JUMPS_ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE")
_JUMPS = {*dis.hasjrel, *dis.hasjabs}
_DEPTH_MAX = 3  # of lists in lists: hidden states of layers are tuples in a list


class _Code:
    """Which variables are loaded where, and what comes behind what. Exceptions are no way that it knows."""

    def __init__(self, code: CodeType) -> None:
        self._instructions = list(dis.get_instructions(code))
        self._offsets = [each.offset for each in self._instructions]
        self._places = {offset: index for index, offset in enumerate(self._offsets)}
        self._accesses = self._read_accesses()

    def _read_accesses(self) -> list[list[tuple[str, str]]]:
        """Of each instruction: kinds, and names as `hidden` and `self.hidden`."""
        accesses: list[list[tuple[str, str]]] = []
        owner = ""
        for each in self._instructions:
            attribute = _ATTRIBUTE.fullmatch(each.opname)
            if attribute is not None:
                owner = f"{owner}.{each.argval}" if owner else ""
                accesses.append([(attribute[1], owner)] if owner else [])
                continue
            names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
            accesses.append(list(zip(_ACCESS.findall(each.opname), names, strict=False)))
            owner = accesses[-1][-1][1] if accesses[-1] and accesses[-1][-1][0] == "LOAD" else ""
        return accesses

    def at(self, offset: int) -> int:
        """The instruction that is there, or has its cache there."""
        return max(index for index, each in enumerate(self._offsets) if each <= offset)

    def is_loop(self, place: int) -> bool:
        return self._instructions[place].opname.startswith("FOR_ITER")

    def _behind(self, place: int) -> list[int]:
        each = self._instructions[place]
        behind = [self._places[each.argval]] if each.opcode in _JUMPS else []
        if each.opname not in (*_ENDS, *_JUMPS_ALWAYS) and place + 1 < len(self._instructions):
            behind.append(place + 1)
        return behind

    def _body(self, begin: int, loop: int | None) -> dict[int, list[int]]:
        """What comes behind what, of all that runs from `begin` to the next turn of the loop."""
        behind: dict[int, list[int]] = {}
        waiting = [begin]
        while waiting:
            place = waiting.pop()
            if place not in behind and place != loop:
                behind[place] = self._behind(place)
                waiting += behind[place]
        if loop is None:
            return behind
        returns = {loop}  # and not what runs once, behind a break
        while more := {p for p, following in behind.items() if p not in returns and returns & {*following}}:
            returns |= more
        return {place: following for place, following in behind.items() if place in returns}

    def carried(self, loop: int | None = None) -> set[str]:
        """Variables that are loaded before they are stored: in a turn of the loop, or in the function."""
        begin = 0 if loop is None else loop + 1
        behind = self._body(begin, loop)
        live: dict[int, set[str]] = {place: set() for place in behind}
        is_changed = True
        while is_changed:
            is_changed = False
            for place in sorted(behind, reverse=True):
                needed = set().union(*(live.get(each, set()) for each in behind[place]))
                for kind, name in reversed(self._accesses[place]):
                    (needed.add if kind == "LOAD" else needed.discard)(name)
                is_changed |= needed != live[place]
                live[place] = needed
        return live.get(begin, set())

    def stored(self) -> set[str]:
        return {name for accesses in self._accesses for kind, name in accesses if kind == "STORE"}


def _tensors(value, depth: int = _DEPTH_MAX) -> list[torch.Tensor]:
    """Of more than one element: losses and counts are numbers to show."""
    if isinstance(value, torch.Tensor):
        return [value] if is_plain(value) and value.numel() > 1 else []
    if depth == 0 or not isinstance(value, list | tuple | dict):
        return []
    parts = value.values() if isinstance(value, dict) else value
    return [tensor for part in parts for tensor in _tensors(part, depth - 1)]


def _sums(value) -> list[tuple[torch.Tensor, int]]:
    """The second number is another where other elements were put into the tensor."""
    plain = [(each, each.detach().resolve_conj().resolve_neg().contiguous()) for each in _tensors(value)]
    return [(each, int(flat.view(torch.uint8).sum(dtype=torch.int64))) for each, flat in plain]


def _attributes(owner) -> dict[str, object]:
    """A module's are those that are no parameters, buffers or modules of it."""
    if isinstance(owner, torch.optim.Optimizer | Iterator):
        return {}  # the first step tells of optimizers; and iterators, as that of the loop, hold batches
    return dict(vars(owner)) if isinstance(owner, torch.nn.Module) else attributes(owner)


def _loops() -> list[tuple[FrameType, set[str]]]:
    """The functions in whose loop this step is a turn, with what these loops carry."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        code = _Code(frame.f_code)
        place = code.at(max(frame.f_lasti, 0))
        if code.is_loop(place):
            found.append((frame, code.carried(place)))
        frame = frame.f_back
    return found


def _is_carried_by(owner, name: str) -> bool:
    """Whether a method of its class begins with what a call before has left in that attribute."""
    for kind in type(owner).__mro__:
        for method in vars(kind).values():
            code = method.__code__ if isinstance(method, FunctionType) else None
            if code is None or name not in code.co_names or not code.co_varnames:
                continue
            read, own = _Code(code), f"{code.co_varnames[0]}.{name}"
            if own in read.stored() and own in read.carried():
                return True
    return False


class Carried:
    """What is carried into a step, and is another behind it. model, named: what recoverable() was told of."""

    def __init__(self, model: torch.nn.Module, named: list) -> None:
        self._model, self._named = model, named
        self._before = {name: _sums(value) for name, value in self._values().items()}

    def _values(self) -> dict[str, object]:
        """By the names that the script has for them."""
        loops = _loops()
        carried = {name for _, names in loops for name in names}
        found = {
            name: value for frame, names in loops for name, value in frame.f_locals.items() if name in names
        }
        for whole, owner, name in self._attributes_around(loops):
            if whole in carried or _is_carried_by(owner, name):
                found[whole] = vars(owner)[name]
        return found

    def _attributes_around(self, loops: list) -> list[tuple[str, object, str]]:
        """Those with tensors, of what the functions have in which the loops run."""
        holders = [(name, value) for frame, _ in loops for name, value in frame.f_locals.items()]
        owners = {}
        for name, holder in (*holders, ("model", self._model)):
            is_module = isinstance(holder, torch.nn.Module)
            for inside, owner in holder.named_modules() if is_module else [("", holder)]:
                owners.setdefault(id(owner), (f"{name}.{inside}" if inside else name, owner))
        for told in self._named:
            owners.pop(id(told), None)
        return [
            (f"{name}.{attribute}", owner, attribute)
            for name, owner in owners.values()
            for attribute, value in _attributes(owner).items()
            if _tensors(value)
        ]

    def _places(self) -> set[int]:
        """Where the tensors lie that are kept."""
        learned = [*self._model.parameters(), *self._model.buffers()]
        learned += [each.grad for each in learned if each.grad is not None]
        told = [_attributes(state) for state in self._named]
        return {tensor.data_ptr() for tensor in _tensors([learned, told])}

    def changed(self) -> list[str]:
        """By the names that the script has for them."""
        kept, now = self._places(), {name: _sums(value) for name, value in self._values().items()}
        return [
            name
            for name in {**self._before, **now}
            if self._is_changed(self._before.get(name, []), now.get(name, []), kept)
        ]

    @staticmethod
    def _is_changed(before: list, now: list, kept: set[int]) -> bool:
        is_same = len(before) == len(now) and all(
            new is old and summed == sum_before
            for (new, summed), (old, sum_before) in zip(now, before, strict=True)
        )
        return not is_same and any(tensor.data_ptr() not in kept for tensor, _ in now or before)
