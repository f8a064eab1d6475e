"""What the body of a recoverable loop keeps from one step to the next, as points hold it."""

import random
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

from muster._core import Callback, Cell, Parameter, Tensor
from muster._loaded import loaded

_PLAIN = (bool, int, float, str, type(None), Tensor)


def _is_plain(value: object) -> bool:
    return isinstance(value, _PLAIN) and not isinstance(value, Parameter)


def _has_state_dict(kept: object) -> bool:
    return callable(getattr(kept, "state_dict", None)) and callable(getattr(kept, "load_state_dict", None))


def _parameters_of(kept: object) -> list | None:
    """The Parameters that are all of its state, or None."""
    if isinstance(kept, Parameter):
        return [kept]
    if isinstance(kept, Cell):
        return list(kept.get_parameters())
    if isinstance(kept, list | tuple | Mapping):
        values = list(kept.values()) if isinstance(kept, Mapping) else list(kept)
        found = [_parameters_of(each) for each in values] if values else [None]
        return None if None in found else [parameter for each in found for parameter in each]
    held = [_parameters_of(each) for each in getattr(kept, "__dict__", {}).values()]
    return [parameter for each in held if each is not None for parameter in each] or None


class KeptObject(Callback):
    """An object with state_dict() and load_state_dict()."""

    def __init__(self, kept) -> None:
        super().__init__()
        self.kept = kept

    @property
    def state_is_shared(self) -> bool:
        return bool(getattr(self.kept, "state_is_shared", False))

    def state_dict(self) -> dict:
        return {"kept": self.kept.state_dict()}

    def load_state_dict(self, state: dict) -> None:
        self.kept.load_state_dict(state["kept"])


class _KeptElements(Callback):
    """A list, deque or dict of numbers, texts, tensors and arrays: the object stays, its elements go back.

    Args:
        kept: The list, deque or dict.
        beside: Keys of a dict whose elements have been taken care of.
    """

    def __init__(self, kept, beside: Collection = ()) -> None:
        super().__init__()
        self.kept, self.beside = kept, frozenset(beside)

    def _elements(self) -> list | dict:
        if isinstance(self.kept, list | deque):
            return list(self.kept)
        return {key: value for key, value in self.kept.items() if key not in self.beside}

    def state_dict(self) -> dict:
        return {"kept": self._elements()}

    def load_state_dict(self, state: dict) -> None:
        if isinstance(self.kept, list | deque):
            self.kept.clear()
            self.kept.extend(state["kept"])
            return
        for key in self._elements():
            del self.kept[key]
        self.kept.update(state["kept"])


class _KeptEntry(Callback):
    """The list, deque or dict that stands in the dict of states: the body may also put another one there."""

    def __init__(self, states: dict, name: object) -> None:
        super().__init__()
        self.states, self.name = states, name

    def state_dict(self) -> dict:
        now = self.states[self.name]
        return {"kept": list(now) if isinstance(now, deque) else now}

    def load_state_dict(self, state: dict) -> None:
        now, before = self.states[self.name], state["kept"]
        if isinstance(now, list | deque) and isinstance(before, list):
            now.clear()
            now.extend(before)
        elif isinstance(now, dict) and isinstance(before, dict):
            now.clear()
            now.update(before)
        else:
            self.states[self.name] = before


def draws_numbers(kept: object) -> bool:
    """Whether it is a generator of random numbers, of Python or NumPy."""
    numpy = loaded("numpy.random")
    kinds = (random.Random, *((numpy.Generator, numpy.RandomState) if numpy else ()))
    return isinstance(kept, kinds)


class _KeptDraws(Callback):
    """A generator of random numbers, of Python or NumPy: it draws the same again."""

    def __init__(self, kept) -> None:
        super().__init__()
        self.kept = kept

    def state_dict(self) -> dict:
        if isinstance(self.kept, random.Random):
            return {"kept": self.kept.getstate()}
        bits = getattr(self.kept, "bit_generator", None)
        return {"kept": bits.state if bits is not None else self.kept.get_state(legacy=False)}

    def load_state_dict(self, state: dict) -> None:
        kept = state["kept"]
        if isinstance(self.kept, random.Random):
            version, words, gauss = kept
            self.kept.setstate((version, tuple(words), gauss))
        elif hasattr(self.kept, "bit_generator"):
            self.kept.bit_generator.state = kept
        else:
            self.kept.set_state(kept)


def _is_kept_whole(kept: object) -> bool:
    says_all = _has_state_dict(kept) and not isinstance(kept, Cell)
    return says_all or isinstance(kept, deque) or draws_numbers(kept)


def held_in(states: object) -> Iterator[object]:
    """Objects of recoverable(states=) all of whose state points hold."""
    yield states
    if not isinstance(states, list | tuple | Mapping):
        return
    for each in states.values() if isinstance(states, Mapping) else states:
        if isinstance(each, list | tuple | Mapping):
            yield from held_in(each)
        elif _is_kept_whole(each):
            yield each


def _refuse(name: object, kept: object) -> None:
    raise TypeError(
        f"recoverable: states: '{name}' is {type(kept).__name__}, which has no state that could be set "
        "again: give a Parameter, a cell, a list, deque or dict that the body changes in place, a generator "
        "of random numbers, or an object with state_dict() and load_state_dict()"
    )


def _plain_beside(kept: object) -> list:
    """The numbers, texts and tensors of an object that has Parameters beside them."""
    if isinstance(kept, Cell | Parameter | list | tuple | Mapping):
        return []
    own = vars(kept)
    plain = [name for name, each in own.items() if _is_plain(each)]
    return [_KeptElements(own, own.keys() - plain)] if plain else []


def kept_in(states: Mapping[str, object] | Sequence[object] | None) -> tuple[list, list]:
    """The Parameters, and callbacks with the state of everything else.

    What a dict holds by itself (numbers, tensors, None) the body changes in that dict.
    """
    if not isinstance(states, Mapping | Sequence | None) or isinstance(states, str):
        raise TypeError(f"recoverable: states is a dict or a list, not {type(states).__name__}")
    named = states if isinstance(states, Mapping) else dict(enumerate(states or ()))
    parameters, kept, plain = [], [], []
    for name, each in named.items():
        if _has_state_dict(each) and not isinstance(each, Cell):
            kept.append(KeptObject(each))
        elif (found := _parameters_of(each)) is not None:
            parameters += found
            kept += _plain_beside(each)
        elif draws_numbers(each):
            kept.append(_KeptDraws(each))
        elif isinstance(each, list | deque | dict):
            kept.append(_KeptEntry(states, name) if isinstance(states, dict) else _KeptElements(each))
        elif isinstance(states, dict) and isinstance(each, _PLAIN):
            plain.append(name)
        else:
            _refuse(name, each)
    if isinstance(states, dict) and (plain or not states):
        kept.append(_KeptElements(states, named.keys() - plain))
    return parameters, kept
