"""More of mindspore._checkparam: checks of dtypes, axes, files' names and what containers hold."""

import functools
import inspect
import re


def _named(kinds) -> str:
    return " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)


def _subject(arg_name, prim_name) -> str:
    name = f"'{arg_name}'" if arg_name else "the value"
    return f"{prim_name}: {name}" if prim_name else name


def _several(kinds) -> tuple:
    return tuple(kinds) if isinstance(kinds, (tuple, list, set)) else (kinds,)


def _element(dtype):
    from mindspore.common.dtype import TensorType

    return dtype.element_type() if isinstance(dtype, TensorType) else dtype


def check_type_name(arg_name, arg_type, valid_types, prim_name):
    """One of the dtypes or types; of the type of a tensor the dtype counts, and is given back."""
    kind, kinds = _element(arg_type), _several(valid_types)
    if kind not in kinds:
        raise TypeError(f"{_subject(arg_name, prim_name)} is {_named(kinds)}, not {_named([kind])}")
    return kind


def check_subclass(arg_name, type_, template_types, prim_name, addition_error_info=None):
    """One of the types, or a dtype of one: float32 is among `number`."""
    from mindspore.common.dtype import TensorType, issubclass_

    kinds = _several(template_types)
    is_tensor = isinstance(type_, TensorType)
    if any(issubclass_(type_, kind) or (is_tensor and _holds(kind, type_)) for kind in kinds):
        return
    note = f" {addition_error_info}" if addition_error_info else ""
    raise TypeError(f"{_subject(arg_name, prim_name)} is {_named(kinds)}, not {type_}{note}")


def _holds(kind, tensor_type) -> bool:
    """Whether tensors of `tensor_type` are those of `kind`."""
    if not isinstance(kind, type(tensor_type)):
        return False
    return kind.element_type() in (None, tensor_type.element_type())


def check_types_same_and_valid(args, valid_values, prim_name):
    """Each of the types by its name is one of the valid ones, and all are the same."""
    first = None
    for name, kind in args.items():
        check_subclass(name, kind, valid_values, prim_name)
        first = first or (name, kind)
        if str(kind) != str(first[1]):
            raise TypeError(
                f"{_subject(name, prim_name)} is {first[1]}, the type of '{first[0]}', not {kind}"
            )


def check_tensor_dtype_valid(arg_name, arg_type, valid_dtypes, prim_name):
    """The type of a tensor with one of the dtypes."""
    from mindspore.common.dtype import TensorType

    check_subclass(arg_name, arg_type, [TensorType(each) for each in _several(valid_dtypes)], prim_name)


def check_tensors_dtypes_same_and_valid(args, valid_dtypes, prim_name):
    """Types of tensors by their names: one dtype, which is valid."""
    from mindspore.common.dtype import TensorType

    check_types_same_and_valid(args, [TensorType(each) for each in _several(valid_dtypes)], prim_name)


def check_valid_input(arg_name, arg_value, prim_name):
    """Anything but None."""
    if arg_value is None:
        raise ValueError(f"{_subject(arg_name, prim_name)} is not None")
    return arg_value


def _by_regular(pattern: str):
    def check(target, reg=None, flag=re.ASCII, prim_name=None):
        """True: a string of the form."""
        if re.match(reg or pattern, target, flag) is None:
            raise ValueError(f"{_subject(target, prim_name)} does not match {reg or pattern!r}")
        return True

    return check


check_str_by_regular = _by_regular(r"^\w+[0-9a-zA-Z_.]*$")
check_str_and_none_by_regular = _by_regular(r"^\w*[0-9a-zA-Z_.\-]*$")


def check_file_name_by_regular(target, reg=None, prim_name=None):
    """True: a path of a file, and of no folder."""
    if not isinstance(target, str):
        raise TypeError(f"{_subject(target, prim_name)} is a string, not {type(target).__name__}")
    if target.endswith(("/", "\\")):
        raise ValueError(f"{_subject(target, prim_name)} is a file, not a folder")
    return _by_regular(r"^[0-9a-zA-Z@_\-.:/\\]+$")(target, reg, 0, prim_name)


def check_element_type_of_iterable(arg_name, arg_value, valid_types, prim_name=None):
    """A list or tuple of values of the types."""
    if not isinstance(arg_value, (list, tuple)):
        raise TypeError(f"{_subject(arg_name, prim_name)} is a list or tuple, not {type(arg_value).__name__}")
    _check_elements(arg_name, arg_value, valid_types, prim_name)


def check_element_type_of_dict(arg_name, arg_value, key_types, value_types, prim_name=None):
    """A dict with keys and values of the types."""
    if not isinstance(arg_value, dict):
        raise TypeError(f"{_subject(arg_name, prim_name)} is a dict, not {type(arg_value).__name__}")
    _check_elements(arg_name, arg_value.keys(), key_types, prim_name)
    _check_elements(arg_name, arg_value.values(), value_types, prim_name)


def check_size_and_element_type_of_tuple(
    arg_name, arg_value, expect_size, expect_element_type, prim_name=None
):
    """A tuple of so many values of the type."""
    if not isinstance(arg_value, tuple):
        raise TypeError(f"{_subject(arg_name, prim_name)} is a tuple, not {type(arg_value).__name__}")
    if len(arg_value) != expect_size:
        raise ValueError(f"{_subject(arg_name, prim_name)} has {expect_size} elements, not {len(arg_value)}")
    _check_elements(arg_name, arg_value, [expect_element_type], prim_name)


def _check_elements(arg_name, elements, kinds, prim_name) -> None:
    for element in elements:
        if not isinstance(element, tuple(kinds)):
            raise TypeError(
                f"{_subject(arg_name, prim_name)} holds {_named(kinds)}, "
                f"not {element!r} of {type(element).__name__}"
            )


def check_axis_in_range(axis, ndim):
    """The axis, counted from the front."""
    if not isinstance(axis, int):
        raise TypeError(f"an axis is an int, not {type(axis).__name__}")
    if not -ndim <= axis < ndim:
        raise ValueError(f"'axis' is in [-{ndim}, {ndim}), not {axis}")
    return axis % ndim


def check_axis_valid(axes, ndim):
    """A tuple of the axes, counted from the front; None: all of them."""
    if axes is None:
        return tuple(range(ndim))
    found = tuple(check_axis_in_range(axis, ndim) for axis in _several(axes))
    if len(set(found)) != len(found):
        raise ValueError(f"each axis is named once, not as in {axes}")
    return found


def check_and_canonicalize_axes(axes, ndim):
    """Like `check_axis_valid`, of a tuple or one axis."""
    return check_axis_valid(axes if isinstance(axes, tuple) else (axes,), ndim)


def args_type_check(*type_args, **type_kwargs):
    """A decorator: arguments of the function are None or of these types, by position or name."""

    def decorate(function):
        signature = inspect.signature(function)
        kinds = signature.bind_partial(*type_args, **type_kwargs).arguments
        kinds = kinds.get("kwargs", kinds)

        @functools.wraps(function)
        def checked(*args, **kwargs):
            values = signature.bind(*args, **kwargs).arguments
            for name, value in values.get("kwargs", values).items():
                if name in kinds and value is not None and not isinstance(value, kinds[name]):
                    raise TypeError(f"'{name}' is {kinds[name]}, not {type(value).__name__}")
            return function(*args, **kwargs)

        return checked

    return decorate


def is_stub_tensor(tensor) -> bool:
    """False: tensors of Muster have their elements when they are asked for them, and no other form."""
    return hasattr(tensor, "stub")


def _expanded(count: int, kinds=tuple):
    def expand(value):
        """A tuple of so many ints; one int stands for all of them."""
        values = tuple(value) if isinstance(value, kinds) else (value,) * count
        if len(values) != count or any(type(each) is not int for each in values):
            raise TypeError(f"an int or a tuple of {count} ints is needed, not {value!r}")
        return values

    return expand


once, twice, triple = (_expanded(count) for count in (1, 2, 3))
once_sequence, twice_sequence, triple_sequence = (_expanded(count, (tuple, list)) for count in (1, 2, 3))

__all__ = [
    *("args_type_check", "check_and_canonicalize_axes", "check_axis_in_range", "check_axis_valid"),
    *("check_element_type_of_dict", "check_element_type_of_iterable", "check_file_name_by_regular"),
    *("check_size_and_element_type_of_tuple", "check_str_and_none_by_regular", "check_str_by_regular"),
    *("check_subclass", "check_tensor_dtype_valid", "check_tensors_dtypes_same_and_valid"),
    *("check_type_name", "check_types_same_and_valid", "check_valid_input"),
    *("is_stub_tensor", "once", "once_sequence", "triple", "triple_sequence", "twice", "twice_sequence"),
]
