"""Layouts of parameters as MindSpore says them: which parts of them this worker holds."""

import math
import tomllib

import muster
from mindspore import _names
from mindspore.parallel import _utils


def layouts_of(cells) -> dict:
    """By name a list: the device matrix, the tensor map (for each dimension which of the matrix, counted from
    its end; -1: whole), the shape held here, and three numbers that say nothing here."""
    held = tomllib.loads(muster._core._held_layout(cells))
    mesh = held["mesh"] or {"workers": _utils._get_device_num()}
    places = {axis: len(mesh) - 1 - at for at, axis in enumerate(mesh)}
    made = {}
    for cell in cells:
        for parameter in cell.get_parameters():
            cuts = held["parameters"].get(parameter.name, ["-"] * len(parameter.shape))
            axes = [[] if cut == "-" else cut.split("+") for cut in cuts]
            parts = [math.prod(mesh[axis] for axis in each) for each in axes]
            shape = [size // part for size, part in zip(parameter.shape, parts, strict=True)]
            made[parameter.name] = [
                list(mesh.values()),
                [_place(each, places) for each in axes],
                shape,
                0,
                True,
                "",
            ]
    return made


def _place(axes, places):
    found = tuple(places[axis] for axis in axes)
    return -1 if not found else found[0] if len(found) == 1 else found


def check_mode(call) -> None:
    """RuntimeError where no operators are divided."""
    if not _utils._is_in_auto_parallel_mode():
        raise RuntimeError(
            f"{call} is for semi-automatic and automatic mode: set parallel_mode, or AutoParallel"
        )


__getattr__ = _names.missing(__name__)
