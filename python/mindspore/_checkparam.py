"""mindspore._checkparam: checks of arguments, as cells and optimizers of scripts' own make them.

Each gives its value back, or raises TypeError or ValueError that names the argument (`arg_name`) and the
class (`prim_name`).
"""

import math

from mindspore import _checkparam_kinds, _names
from mindspore._checkparam_kinds import _named, _several, _subject

EQ, NE, LT, LE, GT, GE = range(1, 7)
INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = range(7, 11)
IN, NOT_IN = 11, 12

_COMPARED = {
    EQ: ("equal to", lambda a, b: a == b),
    NE: ("other than", lambda a, b: a != b),
    LT: ("less than", lambda a, b: a < b),
    LE: ("at most", lambda a, b: a <= b),
    GT: ("greater than", lambda a, b: a > b),
    GE: ("at least", lambda a, b: a >= b),
}
_RANGES = {INC_NEITHER: "()", INC_LEFT: "[)", INC_RIGHT: "(]", INC_BOTH: "[]"}


def _check_kind(value, kind, arg_name, prim_name, takes_arrays=False) -> None:
    is_array = takes_arrays and hasattr(value, "dtype")  # numpy's, or one of its numbers
    if (isinstance(value, kind) and not isinstance(value, bool)) or is_array:
        return
    raise TypeError(f"{_subject(arg_name, prim_name)} is {kind.__name__}, not {type(value).__name__}")


def check_number(arg_name, arg_value, value, rel, prim_name):
    """A number that stands to `value` as `rel` (EQ, NE, LT, LE, GT, GE) says."""
    words, holds = _COMPARED[rel]
    if not holds(arg_value, value):
        raise ValueError(f"{_subject(arg_name, prim_name)} is {words} {value}, not {arg_value}")
    return arg_value


def check_is_number(arg_value, arg_type, arg_name=None, prim_name=None):
    """A number of the type that is neither infinite nor NaN."""
    _check_kind(arg_value, arg_type, arg_name, prim_name)
    if not math.isfinite(arg_value):
        raise ValueError(f"{_subject(arg_name, prim_name)} is finite, not {arg_value}")
    return arg_value


def check_is_int(arg_value, arg_name=None, prim_name=None):
    """An int, and no bool."""
    return check_is_number(arg_value, int, arg_name, prim_name)


def check_is_float(arg_value, arg_name=None, prim_name=None):
    """A float that is neither infinite nor NaN."""
    return check_is_number(arg_value, float, arg_name, prim_name)


def check_int(arg_value, value, rel, arg_name=None, prim_name=None):
    """An int that stands to `value` as `rel` says."""
    _check_kind(arg_value, int, arg_name, prim_name)
    return check_number(arg_name, arg_value, value, rel, prim_name)


def check_float(arg_value, value, rel, arg_name=None, prim_name=None):
    """A float that stands to `value` as `rel` says."""
    check_is_float(arg_value, arg_name, prim_name)
    return check_number(arg_name, arg_value, value, rel, prim_name)


def check_equal_int(arg_value, value, arg_name=None, prim_name=None):
    """The int `value`."""
    return check_int(arg_value, value, EQ, arg_name, prim_name)


def _sign_check(check, rel, words):
    def checked(arg_value, arg_name=None, prim_name=None):
        return check(arg_value, 0, rel, arg_name, prim_name)

    checked.__doc__ = words
    return checked


check_positive_int = _sign_check(check_int, GT, "An int above 0.")
check_non_negative_int = _sign_check(check_int, GE, "An int of at least 0.")
check_negative_int = _sign_check(check_int, LT, "An int below 0.")
check_non_positive_int = _sign_check(check_int, LE, "An int of at most 0.")
check_positive_float = _sign_check(check_float, GT, "A float above 0.")
check_non_negative_float = _sign_check(check_float, GE, "A float of at least 0.")
check_negative_float = _sign_check(check_float, LT, "A float below 0.")
check_non_positive_float = _sign_check(check_float, LE, "A float of at most 0.")


def check_number_range(arg_value, lower_limit, upper_limit, rel, value_type, arg_name=None, prim_name=None):
    """A number in the range; `rel` (`INC_NEITHER` and so on) says which limits are in it."""
    _check_kind(arg_value, value_type, arg_name, prim_name, takes_arrays=True)
    begin, end = _RANGES[rel]
    above = arg_value >= lower_limit if begin == "[" else arg_value > lower_limit
    below = arg_value <= upper_limit if end == "]" else arg_value < upper_limit
    if not (above and below):
        limits = f"{begin}{lower_limit}, {upper_limit}{end}"
        raise ValueError(f"{_subject(arg_name, prim_name)} is in {limits}, not {arg_value}")
    return arg_value


def check_int_range(arg_value, lower_limit, upper_limit, rel, arg_name=None, prim_name=None):
    """An int between the limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, int, arg_name, prim_name)


def check_float_range(arg_value, lower_limit, upper_limit, rel, arg_name=None, prim_name=None):
    """A float between the limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, float, arg_name, prim_name)


def check_bool(arg_value, arg_name=None, prim_name=None):
    """A bool."""
    if not isinstance(arg_value, bool):
        raise TypeError(f"{_subject(arg_name, prim_name)} is a bool, not {type(arg_value).__name__}")
    return arg_value


def check_string(arg_value, valid_values, arg_name=None, prim_name=None):
    """One of the strings."""
    if not (isinstance(arg_value, str) and arg_value in valid_values):
        raise ValueError(f"{_subject(arg_name, prim_name)} is one of {list(valid_values)}, not {arg_value!r}")
    return arg_value


def check_value_type(arg_name, arg_value, valid_types, prim_name=None):
    """A value of one of the types; a bool is no int."""
    kinds = _several(valid_types)
    is_hidden_bool = isinstance(arg_value, bool) and bool not in kinds
    if is_hidden_bool or not isinstance(arg_value, kinds):
        raise TypeError(f"{_subject(arg_name, prim_name)} is {_named(kinds)}, not {type(arg_value).__name__}")
    return arg_value


def check_isinstance(arg_name, arg_value, classes):
    """An instance of the classes; else ValueError, as MindSpore has it."""
    if not isinstance(arg_value, classes):
        raise ValueError(f"'{arg_name}' is an instance of {classes}, not {arg_value}")
    return arg_value


def check_positive_int_sequence(sequence, arg_name=None, prim_name=None):
    """A tuple or list of ints above 0."""
    return _check_each(check_positive_int, sequence, arg_name, prim_name)


def check_non_negative_int_sequence(sequence, arg_name=None, prim_name=None):
    """A tuple or list of ints of at least 0."""
    return _check_each(check_non_negative_int, sequence, arg_name, prim_name)


def check_positive_float_sequence(sequence, arg_name=None, prim_name=None):
    """A tuple or list of floats above 0."""
    return _check_each(check_positive_float, sequence, arg_name, prim_name)


def _check_each(check, sequence, arg_name, prim_name):
    check_value_type(arg_name or "sequence", sequence, (tuple, list), prim_name)
    for index, value in enumerate(sequence):
        check(value, f"{arg_name or 'sequence'}[{index}]", prim_name)
    return sequence


def check(arg_name, arg_value, value_name, value, rel=EQ, prim_name=None, excp_cls=ValueError):
    """A number or sequence that stands to `value` as `rel` says."""
    words, holds = _COMPARED[rel]
    if not holds(arg_value, value):
        raise excp_cls(
            f"{_subject(arg_name, prim_name)} is {words} {value_name}, which is {value}, not {arg_value}"
        )
    return arg_value


class Rel:
    """The relations by their older names."""

    EQ, NE, LT, LE, GT, GE = EQ, NE, LT, LE, GT, GE
    INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH
    IN, NOT_IN = IN, NOT_IN


_CHECKS = {name: each for name, each in globals().items() if name.startswith("check_")}
Validator = type(
    "Validator",
    (),
    {"__doc__": "The checks as scripts for MindSpore before 2.0 have them."}
    | {name: staticmethod(each) for name, each in _CHECKS.items()},
)

__all__ = [
    *sorted(_CHECKS),
    *("check", "EQ", "NE", "LT", "LE", "GT", "GE", "IN", "NOT_IN"),
    *("INC_NEITHER", "INC_LEFT", "INC_RIGHT", "INC_BOTH", "Rel", "Validator"),
]
globals().update({name: getattr(_checkparam_kinds, name) for name in _checkparam_kinds.__all__})
__all__ += _checkparam_kinds.__all__
__getattr__ = _names.missing(__name__)
