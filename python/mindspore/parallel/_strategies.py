"""What shard() is given: how each dimension of an op's tensors is divided over the workers."""

import math
import sys

import muster
from mindspore import _device, _names
from mindspore.parallel import _mesh, _utils
from mindspore.parallel._layout import Layout

_REPLICATED = (
    "note: shard() has no effect: operators are divided in semi-automatic mode where every worker is given "
    "the whole batch (full_batch=True, or dataset_strategy('full_batch')); here every worker computes all of "
    "an operator, with the same numbers and no memory saved (docs/guide/parallel.md)"
)


class Strategy:
    """A checked strategy, and where it was given.

    Args:
        what: Whose it is, for people.
        in_strategy, out_strategy: Tuples with one tuple of cuts, or one Layout, for each tensor; None: none.
        depth: How many frames above this call the line of the user is.
    """

    def __init__(self, what, in_strategy, out_strategy=None, depth=2):
        caller = sys._getframe(depth)
        file = caller.f_code.co_filename.rpartition("/")[2]
        self._what = f"{what} (shard at {file}:{caller.f_lineno})"
        in_strategy, out_strategy = _of_workers(in_strategy), _of_workers(out_strategy)
        self.inputs = self._checked("in_strategy", in_strategy)
        self.outputs = self._checked("out_strategy", out_strategy)
        self._given = in_strategy, out_strategy
        self._has_cut = False
        for each in (*(in_strategy or ()), *(out_strategy or ())):
            if isinstance(each, Layout):
                _mesh.note_cuts(each._device_shape)
        if any(cut > 1 for cut in _numbers((self.inputs, self.outputs))):
            _mesh.note_cuts()

    def _checked(self, name, strategy):
        if strategy is None:
            return None
        if not isinstance(strategy, tuple):
            raise TypeError(f"{self._what}: {name} is a tuple with one of each tensor, not {strategy!r}")
        return tuple(self._cuts(name, at, each) for at, each in enumerate(strategy))

    def _cuts(self, name, at, given):
        if given is None:  # whatever comes
            return None
        if isinstance(given, Layout):
            self._check_workers(f"{name}[{at}]", given, len(given._rank_list), max(given._rank_list) + 1)
            return cuts_of(given, self._what)
        is_tuple = isinstance(given, tuple)
        if is_tuple and given and all(isinstance(each, tuple) for each in given):
            return tuple(self._cuts(name, at, each) for each in given)  # of a tuple or list of tensors
        if not is_tuple or not all(isinstance(cut, int) and not isinstance(cut, bool) for cut in given):
            raise TypeError(
                f"{self._what}: {name}[{at}] is a tuple of whole numbers, or a Layout, not {given!r}"
            )
        if any(cut < 1 for cut in given):
            raise ValueError(f"{self._what}: {name}[{at}] is {given}: a dimension is cut into 1 part or more")
        pieces = 1
        for cut in given:
            pieces *= cut
        self._check_workers(f"{name}[{at}]", given, pieces, pieces)
        return given

    def _check_workers(self, name, given, pieces, needed):
        workers = _utils._get_stage_device_num()
        if workers <= 1 or (needed <= workers and workers % pieces == 0):
            return
        raise ValueError(
            f"{self._what}: {name} is {_text(given)}, which takes {pieces} workers; this job has "
            f"{workers}{_each_stage()}. Choose cuts whose product is one of {_divisors(workers)}, or start "
            f"{pieces} workers"
        )

    def call(self, function, inputs, name, primitive=None):
        """What `function` gives for `inputs`, divided so. ValueError where tensors cannot be."""
        if self._has_cut and not self._fits(inputs):
            return function(*inputs)  # the last batch of an epoch, or a prediction
        self.check_call(inputs)
        self._has_cut = True
        if not _mesh.is_on():
            if _utils._get_device_num() > 1:
                _device.note_once(_REPLICATED)
            return function(*inputs)
        of_inputs, of_outputs = self._given
        of_tensors = _flat(_without_numbers(of_inputs, inputs))
        tensors = iter(_mesh.divide(of_tensors, _tensors_in(inputs), name, primitive))
        result = function(*_replaced(inputs, tensors))
        if of_outputs is None:
            return result
        if not isinstance(result, tuple):
            return _mesh.divide(of_outputs, (result,), name)[0]
        return (*_mesh.divide(of_outputs, result[: len(of_outputs)], name), *result[len(of_outputs) :])

    def _fits(self, inputs) -> bool:
        """Whether the tensors of a call can be divided so, with a warning where not."""
        tensors, strategies = _tensors_in(inputs), _flat(_without_numbers(self.inputs, inputs)) or ()
        for tensor, cuts in zip(tensors, strategies, strict=False):
            shape = tuple(tensor.shape)
            if cuts is None or len(cuts) != len(shape) or not self._uneven(shape, cuts):
                continue
            muster.parallel.note_whole(shape)
            return False
        return True

    def check_call(self, inputs) -> None:
        """ValueError where the tensors that the op is called with cannot be divided so."""
        if self.inputs is None:
            return
        tensors, strategies = _tensors_in(inputs), _flat(_without_numbers(self.inputs, inputs))
        if len(tensors) != len(strategies):
            raise ValueError(
                f"{self._what}: in_strategy is for {len(strategies)} tensors, and {len(tensors)} were "
                f"given, of shapes {', '.join(str(tuple(each.shape)) for each in tensors)}"
            )
        for at, (cuts, tensor) in enumerate(zip(strategies, tensors, strict=True)):
            if cuts is not None:
                self.check_shape(f"input {at}", tuple(tensor.shape), cuts)

    def check_shape(self, name, shape, cuts, is_parameter=False) -> None:
        """ValueError where a tensor of this shape cannot be cut so."""
        if len(cuts) != len(shape):
            raise ValueError(
                f"{self._what}: {name} is {shape}, of {len(shape)} dimensions, and its strategy {cuts} has "
                f"{len(cuts)}"
            )
        for dim in self._uneven(shape, cuts, is_parameter):
            raise ValueError(
                f"{self._what}: {name} is {shape}, whose dimension {dim} cannot be cut into {cuts[dim]} "
                f"equal parts: choose one of {_divisors(shape[dim])}"
            )

    def _uneven(self, shape, cuts, is_parameter=False):
        """The dimensions that cannot be cut so."""
        # Where each worker has rows of its own, the first dimension is that of them all.
        has_own_rows = _utils._reduces_by_itself() and not is_parameter
        rows = _utils._get_stage_device_num() if has_own_rows else 1
        sizes = (size * (rows if dim == 0 else 1) for dim, size in enumerate(shape))
        return [dim for dim, (size, cut) in enumerate(zip(sizes, cuts, strict=True)) if size % cut]


def _tensors_in(inputs):
    """The tensors among the inputs of an op, those of a tuple or list one by one."""
    found = []
    for each in inputs:
        if hasattr(each, "shape"):
            found.append(each)
        elif isinstance(each, tuple | list):
            found.extend(part for part in each if hasattr(part, "shape"))
    return found


def _replaced(inputs, tensors):
    """The inputs with other tensors, in the same places."""
    made = []
    for each in inputs:
        if hasattr(each, "shape"):
            made.append(next(tensors))
        elif isinstance(each, tuple | list):
            parts = [next(tensors) if hasattr(part, "shape") else part for part in each]
            made.append(tuple(parts) if isinstance(each, tuple) else parts)
        else:
            made.append(each)
    return made


def _flat(strategies):
    """One strategy for each tensor; those of a tuple of tensors stand in a tuple of their own."""
    if strategies is None:
        return None
    flat = []
    for each in strategies:
        is_nested = (
            isinstance(each, tuple) and each and all(isinstance(part, tuple | Layout) for part in each)
        )
        flat.extend(each if is_nested else (each,))
    return tuple(flat)


def _without_numbers(strategies, inputs):
    """Strategies without those of inputs that are numbers, which are ()."""
    if strategies is None or len(strategies) != len(inputs):
        return strategies
    pairs = zip(strategies, inputs, strict=True)
    return tuple(each for each, given in pairs if each != () or hasattr(given, "shape"))


def _of_workers(given):
    """What was given, with Layouts as workers see them."""
    if isinstance(given, tuple):
        return tuple(_of_workers(each) for each in given)
    return given.of_workers() if isinstance(given, Layout) else given


def _each_stage() -> str:
    return "" if _utils._get_stage_device_num() == _utils._get_device_num() else " for each stage"


def _numbers(given):
    if isinstance(given, int):
        yield given
    for each in given if isinstance(given, tuple) else ():
        yield from _numbers(each)


def _text(given) -> str:
    if not isinstance(given, Layout):
        return str(given)
    return f"Layout({given._device_shape}, {given._alias_name})"


def _divisors(number) -> str:
    return ", ".join(str(each) for each in range(1, number + 1) if number % each == 0)


def cuts_of(layout, what="dataset_strategy"):
    """Into how many parts a Layout cuts each dimension."""
    if layout._tensor_map is None:
        raise ValueError(f'{what}: call the Layout with the axes of the tensor, as in layout("dp", "None")')
    lengths = layout._device_shape[::-1]

    def cut(axis):
        if isinstance(axis, tuple):
            product = 1
            for each in axis:
                product *= cut(each)
            return product
        return 1 if axis == -1 else lengths[axis]

    return tuple(cut(axis) for axis in layout._tensor_map)


def slices_of(given):
    """The cuts of a column, a tuple or a Layout, and the number of each worker's slice (none: its own)."""
    given = _of_workers(given)
    if not isinstance(given, Layout):
        return given, ()
    return cuts_of(given), _numbers_of(given)


def _numbers_of(layout):
    """Which slice the devices of a Layout have, numbered by the dimensions of the tensor."""
    lengths = layout._device_shape[::-1]
    used = [axis for each in layout._tensor_map for axis in (each if isinstance(each, tuple) else (each,))]
    devices = len(layout._rank_list)
    if sorted(layout._rank_list) != list(range(devices)):
        raise ValueError(
            f"dataset_strategy: rank_list is an order of the workers from 0 on, not {layout._rank_list}"
        )
    numbers = [0] * devices
    for at, rank in enumerate(layout._rank_list):
        for axis in used:
            if axis != -1:
                place = at // math.prod(lengths[:axis]) % lengths[axis]
                numbers[rank] = numbers[rank] * lengths[axis] + place
    return numbers * max(1, _utils._get_device_num() // devices)


def check_matmul(what, strategy, transpose_a, transpose_b) -> None:
    """ValueError where both sides of a product are to be cut differently along what is summed up."""
    if strategy.inputs is None or len(strategy.inputs) != 2 or any(len(cuts) < 2 for cuts in strategy.inputs):
        return
    a, b = strategy.inputs
    of_a, of_b = a[-2 if transpose_a else -1], b[-1 if transpose_b else -2]
    if of_a != of_b:
        raise ValueError(
            f"{strategy._what}: what {what} sums up is cut into {of_a} parts by {a} and into {of_b} by {b}: "
            "both are to be the same"
        )


def check_parameters(strategy, plan, parameters) -> None:
    """ValueError where a parameter_plan cuts a parameter in a way that does not go; a warning where it names
    none, as MindSpore gives it."""
    if plan is None:
        return
    if not isinstance(plan, dict):
        raise TypeError(f"{strategy._what}: parameter_plan is a dict of names and strategies, not {plan!r}")
    by_name = {parameter.name: parameter for parameter in parameters}
    for name, given in _planned(plan).items():
        if name not in by_name:
            _device.note_once(
                f"warning: {strategy._what}: parameter_plan names '{name}', which is ignored: the parameters "
                f"are {', '.join(by_name)}"
            )
            continue
        cuts = strategy._cuts("parameter_plan", 0, given)
        strategy.check_shape(f"parameter '{name}'", tuple(by_name[name].shape), cuts, is_parameter=True)
        if any(cut > 1 for cut in cuts):
            _mesh.note_cuts(given._device_shape if isinstance(given, Layout) else None)


def _planned(plan):
    """A parameter_plan by the names of parameters: 'self.fc.weight', as a cell says it of its own, is one."""
    return {str(name).removeprefix("self."): _of_workers(given) for name, given in plan.items()}


def shard(fn, in_strategy, out_strategy=None, parameter_plan=None):
    """`fn`, whose tensors are to be divided over the workers so. The strategies are checked here, and against
    the shapes of a call before anything is computed.

    Args:
        fn: A cell or a function.
        in_strategy: A tuple with one tuple of cuts, or one Layout, for each tensor that it takes.
        out_strategy: Likewise, of what it gives; None: whatever comes.
        parameter_plan: A dict of names of parameters and strategies; None: none.

    Returns:
        A function of the same inputs.

    Raises:
        TypeError: `fn` cannot be called, or a strategy is no tuple of tuples of int or Layouts.
        ValueError: A strategy takes more workers than there are, or a number that does not divide theirs; a
            dimension cannot be cut so.
    """
    return _sharded(fn, in_strategy, out_strategy, parameter_plan, depth=3)[1]


def _sharded(fn, in_strategy, out_strategy, parameter_plan, depth):
    """The checked strategy, and `fn` divided by it."""
    if not callable(fn):
        raise TypeError(f"shard: fn is a cell or a function, not {type(fn).__name__}")
    name = getattr(fn, "__name__", type(fn).__name__)
    strategy = Strategy(name, in_strategy, out_strategy, depth=depth)
    cell = fn if hasattr(fn, "get_parameters") else getattr(fn, "__self__", None)
    if parameter_plan is not None and not hasattr(cell, "get_parameters"):
        raise TypeError(f"{strategy._what}: a parameter_plan is for a cell, and {name} is none")
    check_parameters(strategy, parameter_plan, cell.get_parameters() if parameter_plan is not None else ())

    if parameter_plan is not None:
        _mesh.divide_parameters(_planned(parameter_plan), cell.get_parameters())

    def sharded(*inputs):
        return strategy.call(fn, inputs, name)

    sharded.__name__ = name
    return strategy, sharded


def shard_cell(self, in_strategy, out_strategy=None, parameter_plan=None):
    """mindspore.shard of this cell: wherever it is called from now on."""
    from mindspore.parallel import _cell_strategies

    strategy, _ = _sharded(self, in_strategy, out_strategy, parameter_plan, depth=4)
    _cell_strategies.follow(self, strategy)
    return self.__call__


__getattr__ = _names.missing(__name__)
