"""How a tensor lies on devices: a description, since networks are divided by place() here."""

import copy
import math

_VIRTUAL = "interleaved_parallel"


def _check_axes(device_matrix, alias_name):
    for name, value, kind in (("device_matrix", device_matrix, int), ("alias_name", alias_name, str)):
        if not isinstance(value, tuple) or not all(isinstance(each, kind) for each in value):
            raise TypeError(f"Layout: {name} is a tuple of {kind.__name__}, not {value!r}")
    if len(device_matrix) != len(alias_name) or len(set(alias_name)) != len(alias_name):
        raise ValueError(f"Layout: each axis of {device_matrix} has a name of its own, not {alias_name}")
    if {"", "None"} & set(alias_name):
        raise ValueError(f"Layout: '' and 'None' are no names of axes: {alias_name}")
    if _VIRTUAL in alias_name[:-1]:
        raise ValueError(f"Layout: '{_VIRTUAL}' is the last axis: {alias_name}")


def _behind_virtual(axis):
    """An axis of a tensor map, which counts from the last, where the last is none of the workers."""
    if not isinstance(axis, tuple):
        return axis - 1 if axis > 0 else -1
    axes = tuple(each - 1 for each in axis if each > 0)
    return axes if len(axes) > 1 else axes[0] if axes else -1


class Layout:
    """Devices as a matrix whose axes have names; layout("dp", "None") says which axis each one of a tensor is
    divided over.

    Args:
        device_matrix: The length of each axis.
        alias_name: The name of each axis.
        rank_list: The devices, in order; None: from 0.
    """

    def __init__(self, device_matrix, alias_name, rank_list=None):
        _check_axes(device_matrix, alias_name)
        devices = math.prod(device_matrix)
        if rank_list is None:
            rank_list = list(range(devices))
        if not isinstance(rank_list, list) or not all(isinstance(rank, int) for rank in rank_list):
            raise TypeError(f"Layout: rank_list is a list of int, not {rank_list!r}")
        if len(rank_list) != devices:
            raise ValueError(f"Layout: rank_list has {len(rank_list)} devices, {device_matrix} has {devices}")
        self._device_shape, self._alias_name, self._rank_list = device_matrix, alias_name, rank_list
        self._tensor_map = None

    def __call__(self, *tensor_map):
        used = set()

        def axis(name):
            if isinstance(name, tuple):
                return tuple(axis(each) for each in name)
            if name == "None":
                return -1
            if name not in self._alias_name or name in used:
                raise ValueError(f"Layout: {name!r} is no axis of {self._alias_name}, or was used before")
            used.add(name)
            return len(self._alias_name) - 1 - self._alias_name.index(name)

        made = copy.deepcopy(self)
        made._tensor_map = tuple(axis(name) for name in tensor_map)
        return made

    def of_workers(self):
        """Without the axis 'interleaved_parallel', which has no workers: it cuts what each of them has once
        more, for an accelerator's calls beside its computing, and changes no result."""
        if self._alias_name[-1:] != (_VIRTUAL,):
            return self
        made = copy.deepcopy(self)
        made._device_shape, made._alias_name = self._device_shape[:-1], self._alias_name[:-1]
        made._rank_list = self._rank_list[: math.prod(made._device_shape)]
        if self._tensor_map is not None:
            made._tensor_map = tuple(_behind_virtual(axis) for axis in self._tensor_map)
        return made

    def to_dict(self):
        """What it says, by name."""
        if self._tensor_map is None:
            raise ValueError("Layout: call it with the axes of a tensor first")
        return {
            "device_matrix": self._device_shape,
            "tensor_map": self._tensor_map,
            _VIRTUAL: _VIRTUAL in self._alias_name,
            "alias_name": self._alias_name,
            "rank_list": self._rank_list,
        }
