"""Strategies of operators as layouts over a mesh: what semi-automatic networks divide where every worker is
given the whole batch."""

import itertools
import math

import muster
from mindspore import _device, _names
from mindspore.parallel import _utils

# What a script has said so far, and the axes of the mesh once there is one: their sizes, all of them prime,
# so that products of them are whatever a strategy cuts.
_said = {"cuts": False, "full_batch": False, "matrix": None, "axes": None, "searches": True, "planned": False}


def note_search(searches: bool) -> None:
    """Whether automatic mode looks for a plan by itself (recursive_programming) where nothing is cut."""
    _said["searches"] = searches


def note_cuts(matrix=None) -> None:
    """A strategy cuts something; perhaps one of a Layout, whose device matrix this is."""
    _said["cuts"] = True
    if _said["matrix"] is None:
        _said["matrix"] = matrix
    begin_if_due()


def note_full_batch(full_batch: bool) -> None:
    """Whether every worker is given the whole batch."""
    _said["full_batch"] = full_batch
    begin_if_due()


def gives_whole_batches() -> bool:
    """Whether every worker is given the whole batch."""
    return _said["full_batch"] and _utils._is_in_auto_parallel_mode()


def begin_if_due() -> None:
    """Makes the mesh once all that it needs was said: the mode, the whole batch, and something to cut."""
    from mindspore.parallel import _pipeline

    context = muster._core._context()
    if not (_said["full_batch"] and _utils._is_in_auto_parallel_mode()) or _said["axes"] is not None:
        return
    stages = _pipeline.stages()
    workers = context["world_size"] // stages  # of one stage
    if workers <= 1 or (stages > 1 and not _pipeline.is_staged()):
        return
    if not _said["cuts"]:
        return _begin_plan() if stages == 1 else None
    _end_plan()
    axes = [prime for size in _said["matrix"] or (workers,) for prime in _primes_of(size)]
    if math.prod(axes) != workers:
        axes = _primes_of(workers)
    muster.set_auto_parallel_context(parallel_mode="stand_alone")
    muster.parallel.mesh(stages=stages, **{f"d{axis}": size for axis, size in enumerate(axes)})
    _said["axes"] = axes


def _begin_plan() -> None:
    """The workers share samples and weights as is found at the first step, by times measured then."""
    is_automatic = _utils._get_parallel_mode() == "auto_parallel"
    is_eager = muster._core._is_in_eager_mode()  # op by op, nothing is divided
    if _said["planned"] or is_eager or not (_said["searches"] and is_automatic):
        return
    muster.set_auto_parallel_context(parallel_mode="stand_alone")
    muster.parallel.plan()
    _said["planned"] = True


def _end_plan() -> None:
    if _said["planned"]:
        muster.parallel.mesh()
    _said["planned"] = False


def leave() -> None:
    """Operators are whole from now on: the workers share the batch."""
    was_on = is_on()
    _end_plan()
    if was_on:
        muster.parallel.mesh()
        muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    _said["axes"] = None


def end() -> None:
    """Nothing was said."""
    _end_plan()
    if _said["axes"] is not None:
        muster.parallel.mesh()
    _said.update(cuts=False, full_batch=False, matrix=None, axes=None, searches=True)


def is_on() -> bool:
    """Whether operators are divided: by strategies, or by a plan."""
    return _said["axes"] is not None or _said["planned"]


def _primes_of(number):
    primes, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            primes.append(divisor)
            number //= divisor
        divisor += 1
    return primes


# ---- Which dimensions are the same ------------------------------------------------------------------------


def _aligned(shapes):
    """Those that broadcast against each other: the same places from the end."""
    rank = max(len(shape) for shape in shapes)
    return [tuple(range(rank - len(shape), rank)) for shape in shapes]


def _of_product(shapes, primitive):
    rank = max(len(shape) for shape in shapes)
    a, b = _aligned(shapes)
    row, inner, column = rank - 2, rank, rank - 1
    ends = [(row, inner), (inner, column)]
    if getattr(primitive, "transpose_a", False):
        ends[0] = ends[0][::-1]
    if getattr(primitive, "transpose_b", False):
        ends[1] = ends[1][::-1]
    return [(*a[:-2], *ends[0]), (*b[:-2], *ends[1])]


def _of_channels(shapes):
    """The tensors behind the first have a number for each channel, its dimension 1."""
    return [tuple(range(len(shapes[0]))), *[(1,)[: len(shape)] for shape in shapes[1:]]]


def _of_rows(shapes):
    """The second tensor has a number for each row, or for whatever the first dimensions of the first are;
    a third one has one for each class (the weights of NLLLoss)."""
    rows = [tuple(range(len(shape))) for shape in shapes[:2]]
    return [*rows, *[(1,)[: len(shape)] for shape in shapes[2:]]]


_OF_CHANNELS = ("BiasAdd", "BatchNorm", "InstanceNorm", "GroupNorm", "PReLU")
_OF_ROWS = (
    "SparseSoftmaxCrossEntropyWithLogits",
    "NLLLoss",
    "UnsortedSegmentSum",
    "UnsortedSegmentMin",
    "UnsortedSegmentMax",
    "UnsortedSegmentProd",
)


def _labels_of(name, shapes, primitive):
    """For each tensor a label of each dimension; what has one label is cut alike."""
    if name in ("MatMul", "BatchMatMul") and len(shapes) == 2:
        return _of_product(shapes, primitive)
    if name in ("Gather", "GatherV2", "EmbeddingLookup") and len(shapes) >= 2:
        return [tuple(range(len(shapes[0]))), tuple(range(100, 100 + len(shapes[1])))]
    if name in ("Conv2D", "Conv3D") and len(shapes) == 2:
        return [(0, 1, *range(10, 8 + len(shapes[0]))), (2, 1, *range(20, 18 + len(shapes[1])))]
    if name in _OF_CHANNELS and len(shapes[0]) > 1:
        return _of_channels(shapes)
    if name in _OF_ROWS and len(shapes) > 1 and len(shapes[0]) >= len(shapes[1]):
        return _of_rows(shapes)
    if primitive is None:  # a cell or a function: nothing is known of it
        return [tuple(range(100 * at, 100 * at + len(shape))) for at, shape in enumerate(shapes)]
    return _aligned(shapes)


# ---- Cuts as axes -----------------------------------------------------------------------------------------


def _taken(free, size):
    """The first axes of `free` whose product is `size`, which are taken from it; None: there are none."""
    for count in range(len(free) + 1):
        for axes in itertools.combinations(free, count):
            if math.prod(_said["axes"][axis] for axis in axes) == size:
                for axis in axes:
                    free.remove(axis)
                return axes
    return None


def _of_cuts(cuts, labels):
    """The layouts of tensors that are cut into so many parts; None where the mesh cannot."""
    sizes = {}
    for of_tensor, names in zip(cuts, labels, strict=True):
        for cut, label in zip(of_tensor, names, strict=True):
            sizes[label] = max(cut, sizes.get(label, 1))
    free, axes = list(range(len(_said["axes"]))), {}
    for label in sorted(sizes):
        taken = _taken(free, sizes[label])
        if taken is None:
            return None
        axes[label] = taken
    return [
        tuple(axes[label] if cut > 1 else () for cut, label in zip(of_tensor, names, strict=True))
        for of_tensor, names in zip(cuts, labels, strict=True)
    ]


def _of_layout(layout):
    """That of a Layout, whose device matrix is one of these axes; None where it is not."""
    if layout._rank_list != list(range(math.prod(_said["axes"]))):
        return None
    runs, first = [], 0
    for size in layout._device_shape:
        last, product = first, 1
        while product < size and last < len(_said["axes"]):
            product *= _said["axes"][last]
            last += 1
        if product != size:
            return None
        runs.append(tuple(range(first, last)))
        first = last

    def axes(place):
        if isinstance(place, tuple):
            return tuple(sorted(axis for each in place for axis in axes(each)))
        return () if place == -1 else runs[len(runs) - 1 - place]

    return tuple(axes(place) for place in layout._tensor_map)


def _layouts(strategy, shapes, name, primitive):
    """For each tensor its axes by dimension, or None."""
    from mindspore.parallel._layout import Layout

    if any(isinstance(each, Layout) for each in strategy):
        return [_of_layout(each) if isinstance(each, Layout) else None for each in strategy]
    labels = _labels_of(name, shapes, primitive)
    together = _of_cuts(strategy, labels)
    if together is not None:
        return together
    # More axes than there are, so what labels tell apart is cut by the same: each tensor stands for itself.
    alone = [_of_cuts((cuts,), (names,)) for cuts, names in zip(strategy, labels, strict=True)]
    return [axes and axes[0] for axes in alone]


# So begin the names of ops that write parameters.
_WRITING = ("Assign", "Scatter", "Apply", "SparseApply", "BatchNorm")


def _divided(tensor, axes, name):
    """The tensor, divided so. A parameter is from now on stored so, too, unless it is in another way; an op
    that writes it is given itself."""
    if axes is None or not any(axes):
        return tensor
    layout = tuple(tuple(f"d{axis}" for axis in of_dimension) or None for of_dimension in axes)
    is_parameter = isinstance(tensor, muster.Parameter)
    if is_parameter and not muster._core._is_divided(tensor):
        text = muster.parallel._layout_text(layout)
        muster._core._divide_parameter(tensor, muster.parallel._text(muster.parallel._mesh), text)
    return tensor if is_parameter and name.startswith(_WRITING) else muster.parallel.shard(tensor, layout)


def divide(strategy, tensors, name, primitive=None):
    """`tensors`, divided by `strategy`: a tuple of cuts, or a Layout, or None, for each of them."""
    if strategy is None or _said["axes"] is None or not muster._core._is_tracing():
        return tensors
    shapes = [tuple(each.shape) for each in tensors]
    whole = [(1,) * len(shape) for shape in shapes]
    given = [each if each is not None else ones for each, ones in zip(strategy, whole, strict=True)]
    layouts = _layouts(given, shapes, name, primitive)
    layouts = [axes if each is not None else () for axes, each in zip(layouts, strategy, strict=True)]
    if None in layouts:
        _device.note_once(
            f"note: {name}: how its tensor {layouts.index(None)} is cut has no effect: a mesh of "
            f"{' x '.join(map(str, _said['axes']))} workers cannot; every worker computes the whole"
        )
    return tuple(_divided(each, axes, name) for each, axes in zip(tensors, layouts, strict=True))


def divide_parameters(plan, parameters) -> None:
    """Those that a parameter_plan names, by their strategies."""
    if _said["axes"] is None:
        return
    for parameter in parameters:
        if parameter.name in plan and not muster._core._is_divided(parameter):
            given = plan[parameter.name]
            (axes,) = _layouts((given,), [tuple(parameter.shape)], "", None)
            if axes is not None and any(axes):
                layout = tuple(tuple(f"d{axis}" for axis in each) or None for each in axes)
                muster.parallel.shard(parameter, layout)


__getattr__ = _names.missing(__name__)
