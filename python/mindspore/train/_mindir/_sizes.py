"""Inputs of unknown sizes: the network is traced for two sizes of each, and what differs is left open."""

import muster
from mindspore.train._mindir import _wire

# Of each axis a small size and a large one, all unlike: what comes of one of them is seen wherever it is. The
# third axis and the fourth are those of pictures, which networks halve several times.
_TRIED = ((2, 131), (29, 137), (96, 233), (112, 241), (53, 149), (59, 151))
_END = 2**31 - 1  # StridedSlice ends where the axis does


def filled(inputs, which: int) -> list:
    """The inputs with numbers in the place of open sizes: the same at one axis of all, as of a batch."""
    found = []
    for each in inputs:
        if isinstance(each, muster.Tensor) and any(size < 0 for size in each.shape):
            if len(each.shape) > len(_TRIED):
                raise NotImplementedError(
                    f"export: unknown sizes of more than {len(_TRIED)} axes are not provided"
                )
            shape = [
                size if size >= 0 else tried[which] for size, tried in zip(each.shape, _TRIED, strict=False)
            ]
            each = muster.ops.ones(tuple(shape), dtype=each.dtype)
        found.append(each)
    return found


def merged(first: _wire.Message, other: _wire.Message) -> _wire.Message:
    """`first` with -1 where its sizes differ from those of the other file of the same network."""
    _check_primitives(first.primitives, other.primitives)
    _Merge(first.graph, other.graph).run()
    return first


_ELSE = "export: for other sizes the network computes something else: export it for the sizes needed"


def _check_primitives(first, other) -> None:
    if [each.op_type for each in first] != [each.op_type for each in other]:
        raise NotImplementedError(_ELSE)
    for a, b in zip(first, other, strict=True):
        if _wire.write(a) != _wire.write(b):
            raise NotImplementedError(
                f"export: {a.op_type} has a setting that follows the size of an input, as borders do with "
                "pad_mode='same': export the network for the sizes needed"
            )


class _Merge:
    def __init__(self, first, other):
        self._graphs = first, other
        self._constants = {}
        self._types = {}

    def run(self) -> None:
        first, other = self._graphs
        same = len(first.node) == len(other.node) and len(first.parameter) == len(other.parameter)
        if not same or any(
            (a.op_type, a.input, a.output) != (b.op_type, b.input, b.output)
            for a, b in zip(first.node, other.node, strict=True)
        ):
            raise NotImplementedError(_ELSE)
        for a, b in zip(first.input, other.input, strict=True):
            self._note(a.name, a.tensor, b.tensor)
        for a, b in zip(first.node, other.node, strict=True):
            if a.op_type == "Constant":
                self._constants[a.output[0]] = a.attribute[0], b.attribute[0]
            else:
                self._check_node(a)
                self._open_type(a.output[0], a.attribute[0], b.attribute[0])
        for a, b in zip(first.output, other.output, strict=True):
            self._open_type("", a.attr_info, b.attr_info)
            self._note("", a.tensor, b.tensor)

    def _note(self, name, first, other) -> None:
        """Opens the sizes of one tensor, and keeps what they were."""
        for a, b in zip(first, other, strict=True):
            if len(a.dims) != len(b.dims):
                raise NotImplementedError("export: for other sizes the network has tensors with other axes")
            self._types[name] = list(a.dims), list(b.dims)
            a.dims = [size if size == another else -1 for size, another in zip(a.dims, b.dims, strict=True)]

    def _open_type(self, name, first, other) -> None:
        if first.type == _wire.TENSORS:
            self._note(name, first.tensors, other.tensors)
        for a, b in zip(first.values, other.values, strict=True):
            self._open_type("", a, b)

    def _check_node(self, node) -> None:
        """Constants of a node that follow the sizes: only in some places they can."""
        what = node.op_type.removeprefix("REF::").partition(":")[0]
        for place, name in enumerate(node.input):
            if name not in self._constants:
                continue
            first, other = self._constants[name]
            if _wire.write(first) == _wire.write(other):
                continue
            if (
                first.type != _wire.TUPLE
                or len(first.values) != len(other.values)
                or not self._opened(what, place, node, first.values, other.values)
            ):
                raise NotImplementedError(
                    f"export: {what} has an argument that follows the size of an input in a way that cannot "
                    "be written down: export the network for the sizes needed"
                )

    def _opened(self, what, place, node, first, other) -> bool:
        axes = [axis for axis, (a, b) in enumerate(zip(first, other, strict=True)) if a.ints != b.ints]
        fits = len(axes) == 1 if what == "Reshape" else self._covers(node, axes, first, other)
        if not fits or (what, place) not in (("Reshape", 1), ("BroadcastTo", 1), ("StridedSlice", 2)):
            return False
        for axis in axes:
            first[axis].ints = [_END if what == "StridedSlice" else -1]
        return True

    def _covers(self, node, axes, first, other) -> bool:
        """Whether the numbers at these axes are the whole sizes of the node's first input."""
        sizes = self._types.get(node.input[0])
        if sizes is None:
            return False
        lead = len(first) - len(sizes[0])
        return all(
            axis >= lead
            and sizes[0][axis - lead] == first[axis].ints[0]
            and sizes[1][axis - lead] == other[axis].ints[0]
            for axis in axes
        )
