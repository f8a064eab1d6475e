"""mindspore._c_expression.amp: dtypes that ops are computed in, chosen op by op while a script runs."""

import enum

import muster
from mindspore import _names


class AmpLevel(enum.Enum):
    """Which ops are cast."""

    AmpO0 = "AmpO0"
    AmpO1 = "AmpO1"
    AmpO2 = "AmpO2"
    AmpO3 = "AmpO3"
    AmpAuto = "AmpAuto"


class AmpStrategy:
    """What push_amp_strategy() was given."""

    def __init__(self, amp_level, amp_dtype, white_list, black_list):
        self.amp_level, self.amp_dtype = amp_level, amp_dtype
        self.white_list, self.black_list = white_list, black_list


_pushed: list[AmpStrategy] = []


def create_amp_strategy(amp_level, amp_dtype, white_list, black_list) -> AmpStrategy:
    """What casts, and what it casts to."""
    return AmpStrategy(amp_level, amp_dtype, white_list, black_list)


def push_amp_strategy(amp_level, amp_dtype, white_list, black_list) -> None:
    """Ops compute as the level says from now on. AmpO0 and float32 change nothing.

    Raises:
        NotImplementedError: Other levels: which ops a script calls is not known here before it calls them.
    """
    if amp_level is not AmpLevel.AmpO0 and amp_dtype is not muster.float32:
        raise NotImplementedError(
            f"push_amp_strategy({amp_level}, {amp_dtype}) is not provided: cast the network with "
            "mindspore.amp.auto_mixed_precision or to_float, or the tensors with astype"
        )
    _pushed.append(AmpStrategy(amp_level, amp_dtype, white_list, black_list))


def pop_amp_strategy() -> None:
    """What was pushed last counts no more."""
    if _pushed:
        _pushed.pop()


def get_curr_amp_strategy() -> AmpStrategy | None:
    """What was pushed last; None: nothing."""
    return _pushed[-1] if _pushed else None


__all__ = [
    "AmpLevel",
    "AmpStrategy",
    "create_amp_strategy",
    "get_curr_amp_strategy",
    "pop_amp_strategy",
    "push_amp_strategy",
]
__getattr__ = _names.missing(__name__)
