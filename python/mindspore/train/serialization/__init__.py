"""mindspore.train.serialization: parameters to files and back."""

import collections
import os

import muster
from mindspore import _device, _errors, _names
from mindspore import context as context

_FORMATS = ("ckpt", "safetensors")
# What becomes the other as a parameter of a net, unless strict_load is asked for.
_KINDS = (
    {muster.float16, muster.bfloat16, muster.float32, muster.float64},
    {muster.int8, muster.int16, muster.int32, muster.int64},
)


def _refuse_settings(call: str, settings: dict) -> None:
    _names.refuse(call, **{name: (value, None, False) for name, value in settings.items()})


def save_checkpoint(
    save_obj,
    ckpt_file_name,
    integrated_save=True,
    async_save=False,
    append_dict=None,
    enc_key=None,
    enc_mode="AES-GCM",
    choice_func=None,
    crc_check=False,
    format="ckpt",
    **settings,
):
    """A cell's parameters, a dict, or a list of {"name": ..., "data": ...}; `append_dict` adds numbers,
    tensors and strings.

    Of divided parameters each file has wholes, in a call of all workers; with integrated_save=False each
    worker writes its pieces, with their layout in the file."""
    call = "mindspore.save_checkpoint"
    _refuse_settings(call, {"enc_key": enc_key, **settings})
    if not isinstance(crc_check, bool):
        raise TypeError(f"{call}: crc_check is True or False, not {crc_check!r}")
    if format not in _FORMATS:
        raise ValueError(f"{call}: format must be 'ckpt' or 'safetensors', not {format!r}")
    if crc_check and format != "ckpt":
        raise NotImplementedError(f"{call}: checksums are provided for 'ckpt', not {format!r}: leave it away")
    if async_save:
        _device.note_once("note: async_save has no effect: a checkpoint is on disk when the call returns")
    if isinstance(save_obj, muster.Cell):
        parameters = list(save_obj.get_parameters())
        items = {parameter.name: parameter for parameter in parameters}
        if len(items) < len(parameters):
            _note_lost(call, parameters)
    elif isinstance(save_obj, dict):
        items = dict(save_obj)
    else:
        from mindspore.train.serialization import _choice

        items = _choice.items_of(call, save_obj)
    if choice_func is not None:
        items = {name: value for name, value in items.items() if choice_func(name)}
    items |= {key: _kept(value) for key, value in (append_dict or {}).items()}
    name = _path(call, ckpt_file_name)
    name = name if name.endswith(format) else f"{name}.{format}"
    _write(call, items, name, bool(integrated_save))
    if crc_check:
        from mindspore.train.serialization import _checksums

        _checksums.add(name)


def _note_lost(call: str, parameters: list) -> None:
    """A warning of the names that several parameters have: the file holds the last one of each."""
    counts = collections.Counter(parameter.name for parameter in parameters)
    shared = ", ".join(name for name, count in counts.items() if count > 1)
    _device.note_once(
        f"warning: {call}: several parameters have the name {shared}, and the file holds the last of them: "
        "give them names of their own"
    )


def _kept(value):
    """What a file keeps of an entry of append_dict: of a generator its state."""
    if hasattr(value, "get_state") and hasattr(value, "manual_seed"):
        return value.get_state()
    return value


def _write(call: str, items: dict, path: str, is_whole: bool) -> None:
    strings = {name: value for name, value in items.items() if isinstance(value, str)}
    if not strings:
        muster.save_checkpoint(items, path, is_whole)
        return
    if path.endswith("safetensors"):
        raise TypeError(f"{call}: {next(iter(strings))!r} is a string, which a file of 'ckpt' alone keeps")
    from mindspore.train.serialization import _strings

    tensors = {name: value for name, value in items.items() if name not in strings}
    _strings.write(path, strings, lambda file: muster.save_checkpoint(tensors, file, is_whole))


def _path(call, name) -> str:
    if not isinstance(name, str | os.PathLike):
        raise TypeError(f"{call}: the name of the file is a string or a path, not {type(name).__name__}")
    return str(name)


def load_checkpoint(
    ckpt_file_name,
    net=None,
    strict_load=False,
    filter_prefix=None,
    dec_key=None,
    dec_mode="AES-GCM",
    specify_prefix=None,
    choice_func=None,
    format="ckpt",
    **settings,
):
    """The parameters of a file by name; with `net`, they are set there too. The file tells its own format."""
    call = "mindspore.load_checkpoint"
    is_checked = settings.pop("crc_check", False)
    _refuse_settings(call, {"dec_key": dec_key, **settings})
    values = _read(call, _path(call, ckpt_file_name), is_checked)
    if any(each is not None for each in (specify_prefix, filter_prefix, choice_func)):
        from mindspore.train.serialization import _choice

        values = _choice.chosen(call, values, specify_prefix, filter_prefix, choice_func)
    if net is not None:
        load_param_into_net(net, values, strict_load)
    return values


def _read(call: str, path: str, is_checked: bool) -> dict:
    """What the file holds; it may have a checksum behind it."""
    if not isinstance(is_checked, bool):
        raise TypeError(f"{call}: crc_check is True or False, not {is_checked!r}")
    if is_checked:
        from mindspore.train.serialization import _checksums

        _checksums.check(call, path)
    try:
        values = muster.load_checkpoint(path)
    except FileNotFoundError as error:
        raise _errors.MissingFileError(str(error)) from None
    from mindspore.train.serialization import _strings

    return values | _strings.read(path)


def load_param_into_net(net, parameter_dict, strict_load=False, remove_redundancy=False):
    """Sets the net's parameters; returns the names that found no counterpart: (of the net, of the file).

    Without `strict_load` the file's names may begin with more than the net's (the backbone of a network).
    """
    call = "mindspore.load_param_into_net"
    _refuse_settings(call, {"remove_redundancy": remove_redundancy})
    if not isinstance(net, muster.Cell):
        raise TypeError(f"{call}: net is a Cell, not {type(net).__name__}")
    if not isinstance(parameter_dict, dict):
        raise TypeError(f"{call}: parameter_dict is a dict, not {type(parameter_dict).__name__}")
    values = {name: value for name, value in parameter_dict.items() if not isinstance(value, str)}
    for name, value in values.items():
        if not isinstance(name, str) or not hasattr(value, "dtype"):
            raise TypeError(f"{call}: a dict of names and parameters is needed, not {name!r}: {value!r}")
    parameters = list(net.get_parameters())
    missing = [each.name for each in parameters if each.name not in values]
    if missing and not strict_load:
        values |= _behind_prefixes(call, missing, values)
    rows = {}
    for parameter in parameters:
        if (value := values.get(parameter.name)) is None:
            continue
        if getattr(value, "_is_piece", False) and value.dtype == parameter.dtype:
            continue  # is held so, or joined with those of the files beside
        fits = _fits(parameter, value, strict_load)
        if not fits or tuple(value.shape) != tuple(parameter.shape):
            if not fits or not _may_be_rows_of(parameter, value):
                raise RuntimeError(_difference(call, parameter, value))
            rows[parameter.name] = _difference(call, parameter, value)
        values[parameter.name] = value.astype(parameter.dtype)
    missing, left = muster.load_param_into_net(net, values, strict=False)
    if isinstance(net, muster.nn.Optimizer):
        left = _without_updated(parameters, values, left)
    for name in missing:
        if name in rows:
            raise RuntimeError(rows[name])
    if missing:
        _device.note_once(f"warning: {call}: parameters of the net without a value: {', '.join(missing)}")
    return missing, left


def _without_updated(parameters: list, values: dict, left: list[str]) -> list[str]:
    """Sets what an optimizer updates, which belongs to the network; gives the names that are left then."""
    updated = {parameter.name: parameter for parameter in parameters if parameter.name in left}
    for name, parameter in updated.items():
        parameter.set_data(values[name])
    return [name for name in left if name not in updated]


def _fits(parameter, value, strict_load: bool) -> bool:
    """Whether it is of the parameter's dtype, or becomes it."""
    is_near = any({value.dtype, parameter.dtype} <= kind for kind in _KINDS)
    return value.dtype == parameter.dtype or (is_near and not strict_load)


def _difference(call: str, parameter, value) -> str:
    return (
        f"{call}: {parameter.name} is {parameter.dtype} {tuple(parameter.shape)} in the net and "
        f"{value.dtype} {tuple(value.shape)} in the parameter_dict"
    )


def _may_be_rows_of(parameter, value) -> bool:
    """Of what lives on parameter servers a worker has one row, whatever the rows: muster compares those."""
    is_row = parameter.ndim == 2 and parameter.shape[0] == 1 and tuple(parameter.shape[1:]) == value.shape[1:]
    return is_row and muster.get_ps_context("enable_ps")


def _behind_prefixes(call: str, missing: list[str], values: dict) -> dict:
    from mindspore.train.serialization import _prefixes

    found, prefixes = _prefixes.behind(missing, values)
    for prefix in prefixes:
        _device.note_once(f"warning: {call}: names of the file are taken without their prefix {prefix!r}")
    return found


def export(net: object, *inputs: object, file_name: object, file_format: str, **kwargs: object) -> None:
    """What `net` computes of `inputs`, not training, as FILE_NAME.mindir or FILE_NAME.onnx.

    Args:
        net: A cell, or for MINDIR a function.
        inputs: Tensors, whose shapes and dtypes those of the file are; for MINDIR also numbers, which are
            constants of the file.
        file_format: "MINDIR", which mindspore.load reads, here and in MindSpore; or "ONNX".
        kwargs: For MINDIR custom_func, a function that is given the file as a message and may change it.

    NotImplementedError names an op that cannot be exported, its cell and its line.
    """
    call = "mindspore.export"
    if file_format not in ("AIR", "MINDIR", "ONNX"):
        raise ValueError(f"{call}: file_format is 'MINDIR' or 'ONNX', not {file_format!r}")
    if file_format == "AIR":
        raise ValueError(f"{call}: AIR files are for Ascend alone: use 'MINDIR' or 'ONNX'")
    if file_format == "MINDIR":
        from mindspore.train._mindir import _export

        _export.export(net, inputs, _path(call, file_name), **kwargs)
        return
    _refuse_settings(call, kwargs)
    name = _path(call, file_name)
    muster.export(net, inputs, name if name.endswith(".onnx") else name + ".onnx")


__all__ = [
    "check_checkpoint",
    "convert_model",
    "export",
    "load",
    "load_checkpoint",
    "load_param_into_net",
    "save_checkpoint",
]
__getattr__ = _names.missing(
    __name__,
    holders={
        **dict.fromkeys(
            ("tensor_to_ms_type", "tensor_to_np_type"), "mindspore.train.serialization._element_types"
        ),
        **dict.fromkeys(("convert_model", "load"), "mindspore.train._mindir._cells"),
        **dict.fromkeys(
            ("_load_dismatch_prefix_params", "_update_param"), "mindspore.train.serialization._one_by_one"
        ),
        "check_checkpoint": "mindspore.train.serialization._checksums",
    },
)
