"""What the body of a recoverable loop keeps from one step to the next, as points hold it."""

from collections.abc import Collection, Mapping, Sequence

from muster._core import Callback, Cell, Parameter, Tensor

_PLAIN = (bool, int, float, str, type(None), Tensor)


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
    """A list or a dict of numbers, texts, tensors and arrays: the object stays, its elements go back.

    Args:
        kept: The list or dict.
        beside: Keys of a dict whose elements have been taken care of.
    """

    def __init__(self, kept, beside: Collection = ()) -> None:
        super().__init__()
        self.kept, self.beside = kept, frozenset(beside)

    def _elements(self) -> list | dict:
        if isinstance(self.kept, list):
            return self.kept
        return {key: value for key, value in self.kept.items() if key not in self.beside}

    def state_dict(self) -> dict:
        return {"kept": self._elements()}

    def load_state_dict(self, state: dict) -> None:
        if isinstance(self.kept, list):
            self.kept[:] = state["kept"]
            return
        for key in self._elements():
            del self.kept[key]
        self.kept.update(state["kept"])


def _refuse(name: object, kept: object) -> None:
    raise TypeError(
        f"recoverable: states: '{name}' is {type(kept).__name__}, which has no state that could be set "
        "again: give a Parameter, a cell, a list or dict that the body changes in place, or an object with "
        "state_dict() and load_state_dict()"
    )


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
        elif isinstance(each, list | dict):
            kept.append(_KeptElements(each))
        elif isinstance(states, dict) and isinstance(each, _PLAIN):
            plain.append(name)
        else:
            _refuse(name, each)
    if isinstance(states, dict) and (plain or not states):
        kept.append(_KeptElements(states, named.keys() - plain))
    return parameters, kept
