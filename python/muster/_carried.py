"""What the body of a recoverable loop changes, and no recovery point holds.

A process that comes back begins with what the script sets before the loop. That is told, and not left to
other numbers at the end.
"""

import contextlib
import dis
import functools
import hashlib
import io
import itertools
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType

from muster import _draws, _kept, _loop_names
from muster._core import Callback, CallbackContext, Cell, Parameter, Tensor
from muster._core import RecoverableSteps as _RecoverableSteps
from muster._loaded import loaded

_BODIES_LOOKED_AT = 8
_EPOCHS_LOOKED_AT = 3
_ROWS_LOOKED_AT = 8
_ROWS_UNTIL_TOLD = 3
_ELEMENTS = 64  # of a container: the last ones
_BYTES = 1 << 16  # of an array
_DEPTH = 4
_CALLS_DEEP = 2
_NAMES_TOLD = 6
_NUMBERS = 8  # of a list
_LIBRARIES = ("muster", "mindspore", "numpy")
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_GENERATOR = 0x20  # inspect.CO_GENERATOR: inspect takes long to import

_ADVICE = (
    "Keep it in states, as in muster.recoverable(net, optimizer, data_set, states={{'name': it}}): a list or "
    "dict that the body changes in place, a generator of random numbers, or an object with state_dict() and "
    "load_state_dict()"
)
_BEFORE = (
    "muster warning: recoverable: the body of the loop changes {names}, and no recovery point holds that: in "
    "a process that comes back it is what the script has set before the loop, and what depends on it has "
    f"other numbers than without that death. {_ADVICE}"
)
_BEHIND = (
    "muster warning: recoverable: the training goes on at epoch {epoch}, step {step}. {names}, which the "
    "body of the loop changes, did not go there with it: no recovery point holds that, and what depends on "
    f"it has other numbers now. {_ADVICE}"
)
_OVER = (
    "muster warning: recoverable: the loop was over before this process came back, and its body is not run "
    "again: {names}, which it changes, is what the script has set before the loop, and what depends on it "
    f"has other numbers now. {_ADVICE}"
)
_ITERATORS = (
    "muster warning: recoverable: the body of the loop takes from {names}, and no recovery point holds where "
    "an iterator is: in a process that comes back it begins anew, and gives other items than without that "
    "death. Read its data with the others, as in muster.dataset.zip((data_set, other)), or take items by "
    "epoch and step from what has __getitem__"
)
_IN_CELLS = (
    "muster warning: steps of the training change {names}, and no recovery point holds that: in a process "
    "that comes back it is what the script has set before the training, and the training ends with other "
    "numbers than without that death. Make it a Parameter with requires_grad=False, which construct() assigns"
)
_IN_CALLBACKS = (
    "muster warning: callbacks of the training change {names}, and no recovery point holds that: in a "
    "process that comes back it is what the script has set before the training, and what depends on it has "
    "other numbers than without that death. Keep it in attributes of a Callback with state_dict() and "
    "load_state_dict(); a state_dict() that returns {{}} says that it may begin anew"
)
_IN_SOURCES = (
    "muster warning: passes over a GeneratorDataset change {names}, and no recovery point holds that: in a "
    "process that comes back it is what the script has set, and the rows of {name} are others where they "
    "depend on it. Set it in on_train_epoch_begin() of a callback, from cur_epoch_num; or give {name} "
    "__getitem__ and __len__, and leave the order to a sampler"
)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names)[:_NAMES_TOLD])


class _Marks:
    """Values by name, as something that is equal as long as they are."""

    def __init__(self, held: set[int]) -> None:
        self.found: dict[str, object] = {}
        self.heavy: set[str] = set()  # names of tensors, arrays and what draws numbers
        self._seen = set(held)
        self._numpy = loaded("numpy")

    def changed_since(self, before: "_Marks") -> set[str]:
        """Names of what was there before, and was another value."""
        return {name for name, mark in self.found.items() if before.found.get(name, mark) != mark}

    def note(self, name: str, value: object, depth: int = 0) -> None:
        if isinstance(value, _PLAIN):
            self.found[name] = (type(value), repr(value))
        elif id(value) not in self._seen and depth < _DEPTH:
            self._seen.add(id(value))
            self._note_object(name, value, depth)

    def _note_object(self, name: str, value: object, depth: int) -> None:
        mark = self._mark(value, name, depth)
        if mark is not None:
            self.found[name] = mark
        elif isinstance(value, Cell) or _is_of_script(value):
            for attribute, each in _attributes_of(value):
                self.note(f"{name}.{attribute}", each, depth + 1)

    def _mark(self, value: object, name: str, depth: int) -> object:
        if isinstance(value, _PLAIN):
            return type(value), repr(value)
        if (state := self._state_of(value)) is not None:
            self.heavy.add(name)
            return state
        if isinstance(value, list | tuple | deque) and depth < _DEPTH:
            last = list(value)[-_ELEMENTS:]
            return type(value), len(value), [self._mark(each, name, depth + 1) for each in last]
        if isinstance(value, dict) and depth < _DEPTH:
            last = list(value.items())[-_ELEMENTS:]
            return len(value), [(repr(key), self._mark(each, name, depth + 1)) for key, each in last]
        return (set, len(value), hash(frozenset(value))) if isinstance(value, set | frozenset) else None

    def _state_of(self, value: object) -> object:
        """Of what holds many numbers, or draws them."""
        numpy = self._numpy
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = _elements_of(value)
        if isinstance(value, random.Random):
            return value.getstate()
        if numpy is None:
            return None
        if isinstance(value, numpy.random.Generator):
            return repr(value.bit_generator.state)
        if isinstance(value, numpy.random.RandomState):
            return repr(value.get_state(legacy=False))
        if isinstance(value, numpy.ndarray) and value.dtype.kind != "O":
            some = numpy.ascontiguousarray(value.reshape(-1)[: _BYTES // max(1, value.itemsize)])
            return value.shape, value.dtype.str, hashlib.blake2b(some.tobytes()).digest()
        return (value.dtype.str, repr(value)) if isinstance(value, numpy.generic) else None


def _elements_of(tensor: Tensor) -> object:
    try:
        return tensor.asnumpy()
    except Exception:  # of a dtype that NumPy lacks, or an aborted step
        return None


def _is_of_script(value: object) -> bool:
    """Whether its class is the script's own: what libraries keep is theirs to say."""
    if sys.modules.get(type(value).__module__) is None or _is_of_library(type(value)):
        return False
    return not isinstance(value, type) and hasattr(value, "__dict__")


def _is_of_library(made: type | FunctionType) -> bool:
    name = (made.__module__ or "").partition(".")[0]
    return name in _LIBRARIES or (name in sys.stdlib_module_names and name != "__main__")


def _attributes_of(value: object) -> Iterator[tuple[str, object]]:
    """Of a cell of a library what it is made of: cells of the script may be in it."""
    own = getattr(value, "__dict__", {})
    if _is_of_script(value):
        yield from ((name, each) for name, each in list(own.items()) if not name.startswith("__"))
    if isinstance(value, Cell):
        yield from ((name, cell) for name, cell in value.name_cells().items() if name not in own)


def _ids_below(value: object, depth: int = 0) -> Iterator[int]:
    """Of an object and of what it holds, which others look after."""
    yield id(value)
    if depth == _DEPTH or isinstance(value, type | ModuleType):
        return
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for each in [*itertools.islice(inner, _ELEMENTS), *getattr(value, "__dict__", {}).values()]:
        if not isinstance(each, _PLAIN):
            yield from _ids_below(each, depth + 1)


def _frame_of_loop(frame: FrameType | None) -> FrameType | None:
    """The script's; a progress bar around the steps is a generator in between."""
    while frame is not None and frame.f_code.co_flags & _GENERATOR:
        frame = frame.f_back
    return frame


def _names_in(frame: FrameType) -> tuple[frozenset[str], frozenset[str], frozenset[str]] | None:
    frame = _frame_of_loop(frame)
    return frame and _loop_names.of_loop(frame.f_code, frame.f_lasti)


def _variables_in(code: CodeType) -> Iterator[str]:
    """Names of modules that it reads or writes, in functions that are made there, too."""
    for instruction in dis.get_instructions(code):
        if isinstance(instruction.argval, CodeType):
            yield from _variables_in(instruction.argval)
        elif instruction.opname in ("LOAD_GLOBAL", "STORE_GLOBAL"):
            yield instruction.argval


def _variables_of(function: FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # its variable has no value yet
            yield name, cell.cell_contents
    for name in _variables_in(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _is_iterator(value: object) -> bool:
    """Whether taking from it is all that says where it is; files are told by what they read and write."""
    if isinstance(value, io.IOBase | _RecoverableSteps | _draws.Steps):
        return False
    return hasattr(type(value), "__next__") and iter(value) is value


def _iterators_in(name: str, value: object, depth: int = 0) -> Iterator[str]:
    """Of a variable, and of what functions and objects of the script take from."""
    inner: Iterable[tuple[str, object]] = ()
    if _is_iterator(value):
        yield name
    elif isinstance(value, FunctionType):
        inner = () if _is_of_library(value) else _variables_of(value)
    elif _is_of_script(value):
        inner = ((f"{name}.{attribute}", each) for attribute, each in _attributes_of(value))
    if depth < _CALLS_DEEP:
        for inner_name, each in inner:
            yield from _iterators_in(inner_name, each, depth + 1)


class Watch:
    """Looks at the script's variables around the first bodies.

    Args:
        dataset: What is read: its own state is not the body's.
        held: Objects that points hold.
    """

    def __init__(self, dataset: object, held: Iterable[object]) -> None:
        self._read = dataset, list(held)  # while they live, their ids are theirs
        self._held = {*_ids_below(dataset), *map(id, self._read[1])}
        self._bodies = 0
        self._place: tuple[int, int] | None = None
        self._marks: _Marks | None = None
        self._changed: set[str] = set()
        self._told_before: set[str] = set()
        self._is_elsewhere = False

    def begin_body(self, place: tuple[int, int], frame: FrameType) -> None:
        """The body of a step begins; place: its epoch and step."""
        if self._place is None:
            self._tell_of_iterators(frame)
        is_next = place == (0, 0) if self._place is None else place > self._place
        self._place = place
        if not is_next:
            self._is_elsewhere, self._bodies = True, 0
        self._marks = self._marks_now(frame) if self._bodies < _BODIES_LOOKED_AT else None

    def end_body(self, frame: FrameType) -> None:
        """The body is over: what it has changed is told."""
        before, self._marks = self._marks, None
        now = before and self._marks_now(frame)
        if not now:
            return
        self._bodies += 1
        news = now.changed_since(before)
        self._changed |= news
        if self._is_elsewhere and self._changed:
            self._tell(_BEHIND, self._changed)
            self._is_elsewhere = False
        elif heavy := (news & now.heavy) - self._told_before:
            self._tell(_BEFORE, heavy)
        self._told_before |= news & now.heavy

    def end_loop(self, frame: FrameType) -> None:
        """There is no step more; the loop may have been over before this process came."""
        names = _names_in(frame) if self._place is None else None
        if names and names[1]:
            self._tell(_OVER, names[1])

    def _tell_of_iterators(self, frame: FrameType) -> None:
        names, frame = _names_in(frame), _frame_of_loop(frame)
        if names is None:
            return
        scope = {**frame.f_globals, **frame.f_locals}
        read = [(name, scope[name]) for name in names[2] if name in scope]
        others = [(name, value) for name, value in read if id(value) not in self._held]
        found = {each for name, value in others for each in _iterators_in(name, value)}
        if found:
            self._tell(_ITERATORS, found)

    def _tell(self, text: str, names: Iterable[str]) -> None:
        epoch, step = self._place or (0, 0)
        print(text.format(names=_listed(names), epoch=epoch, step=step), file=sys.stderr, flush=True)

    def _marks_now(self, frame: FrameType) -> _Marks | None:
        names, frame = _names_in(frame), _frame_of_loop(frame)
        if names is None:
            return None
        written, read_first, _ = names
        marks = _Marks(self._held)
        for scope in (frame.f_locals, {} if frame.f_locals is frame.f_globals else frame.f_globals):
            for name, value in list(scope.items()):
                if not name.startswith("__") and (name in read_first or name not in written):
                    marks.note(name, value)
        return marks


class _FunctionMarks(_Marks):
    """What functions of the script have to do with outside of themselves."""

    def note_function(self, function: object) -> None:
        """A function, a method or another object that is called."""
        if isinstance(function, functools.partial):
            function = function.func
        owner = getattr(function, "__self__", None if isinstance(function, FunctionType) else function)
        if owner is not None and _is_of_script(owner):
            self.note(type(owner).__name__, owner)
        code = getattr(function, "__func__", function)
        called = code if isinstance(code, FunctionType) else getattr(type(code), "__call__", None)  # noqa: B004
        self._note_code(called)

    def _note_code(self, function: object) -> None:
        if not isinstance(function, FunctionType) or id(function) in self._seen or _is_of_library(function):
            return
        self._seen.add(id(function))
        for name, value in _variables_of(function):
            if isinstance(value, FunctionType):
                self._note_code(value)
            elif not isinstance(value, Cell | Callback):  # each is looked at by itself
                self.note(name, value)


class _Numbers(list):
    """Equal to those that more have been put to: a function may well keep what it has seen."""

    def __eq__(self, other: object) -> bool:
        return not isinstance(other, _Numbers) or len(self) != len(other) or super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


class _RowMarks(_FunctionMarks):
    """Of these what draws numbers, and numbers: a function may well keep rows that it has read."""

    def _mark(self, value: object, name: str, depth: int) -> object:
        if isinstance(value, list) and all(isinstance(each, int | float) for each in value[:_NUMBERS]):
            return _Numbers(value[:_NUMBERS])  # [0] counts where a function has no `nonlocal`
        return super()._mark(value, name, depth) if _kept.draws_numbers(value) else None


class RowWatch:
    """Looks at what a function of rows changes in variables of the script.

    Args:
        function: A function or another object that is called.
    """

    def __init__(self, function: object) -> None:
        self._function = function
        self._marks: _Marks | None = None
        self._rows = 0
        self._times: dict[str, int] = {}

    def _marks_now(self) -> _Marks:
        marks = _RowMarks(set())
        marks.note_function(self._function)
        return marks

    def begin_row(self) -> None:
        """A row is made: one of the first is looked at."""
        self._marks = self._marks_now() if self._rows < _ROWS_LOOKED_AT else None

    def end_row(self) -> str:
        """The names of what has changed with several rows, once; another thread may change it, but once."""
        before, self._marks = self._marks, None
        if before is None:
            return ""
        self._rows += 1
        for name in self._marks_now().changed_since(before):
            self._times[name] = self._times.get(name, 0) + 1
        names = [name for name, times in self._times.items() if times == _ROWS_UNTIL_TOLD]
        if names:
            self._rows = _ROWS_LOOKED_AT
        return _listed(names)


class SourceWatch:
    """Looks at what the passes over a source of rows change in it.

    Args:
        source: An object of the script.
    """

    def __init__(self, source: object) -> None:
        self._source = source
        self._marks: _Marks | None = None
        self._is_told = False

    def begin_pass(self) -> None:
        """A pass begins: what the one before has changed is told."""
        before, self._marks = self._marks, _FunctionMarks(set())
        name = getattr(self._source, "__name__", type(self._source).__name__)
        if isinstance(self._source, FunctionType):
            self._marks.note_function(self._source)
        else:
            self._marks.note(name, self._source)
        names = self._marks.changed_since(before) if before is not None and not self._is_told else set()
        if names:
            self._is_told = True
            print(_IN_SOURCES.format(names=_listed(names), name=name), file=sys.stderr, flush=True)


def _functions_of(callback: Callback) -> Iterator[Callable]:
    """What it calls of the script; nothing where it says itself what its state is."""
    yield from getattr(callback, "_functions", ())
    kinds = [kind for kind in type(callback).__mro__ if issubclass(kind, Callback)]
    methods = [each for kind in kinds for each in vars(kind).items() if isinstance(each[1], FunctionType)]
    if "state_dict" not in dict(methods):
        yield from (method for _, method in methods)


class _CallbackWatch:
    """Looks at what callbacks of a training change in variables of the script."""

    def __init__(self) -> None:
        self._marks: _FunctionMarks | None = None
        self._looks = {"step": 0, "epoch": 0}
        self._is_told = False

    def look(self, callbacks: Iterable[Callback]) -> None:
        """What has changed since the look before is told once."""
        if self._is_told:
            return
        before, self._marks = self._marks, _FunctionMarks(set())
        for callback in callbacks:
            for function in _functions_of(callback):
                self._marks.note_function(function)
        if names := self._marks.changed_since(before) if before is not None else set():
            self._is_told = True
            print(_IN_CALLBACKS.format(names=_listed(names)), file=sys.stderr, flush=True)

    def look_after(self, kind: str, most: int, callbacks: Iterable[Callback]) -> None:
        """Behind the first steps and epochs alone: looking costs time."""
        self._looks[kind] += 1
        if self._looks[kind] <= most:
            self.look(callbacks)


class AttributeWatch(Callback):
    """Looks at what the steps of a Model's training change beside parameters, in its network and callbacks.

    Args:
        network: The network that trains.
    """

    def __init__(self, network: Cell) -> None:
        super().__init__()
        self._network = network
        self._marks: _Marks | None = None
        self._steps = 0
        self._callbacks = _CallbackWatch()

    def on_train_begin(self, run_context: CallbackContext) -> None:
        """From here on what callbacks change is seen."""
        self._callbacks.look(run_context.list_callback)

    def on_train_epoch_end(self, run_context: CallbackContext) -> None:
        """Some callbacks act once an epoch."""
        self._callbacks.look_after("epoch", _EPOCHS_LOOKED_AT, run_context.list_callback)

    def _marks_now(self) -> _Marks:
        marks = _Marks(set())
        marks.note(type(self._network).__name__, self._network)
        return marks

    def on_train_step_begin(self, run_context: object) -> None:
        """What is changed once, as construct() is traced, a process that comes back changes, too."""
        self._steps += 1
        if 1 < self._steps <= _BODIES_LOOKED_AT:
            self._marks = self._marks_now()

    def on_train_step_end(self, run_context: CallbackContext) -> None:
        """Tells once what has changed."""
        self._callbacks.look_after("step", _BODIES_LOOKED_AT, run_context.list_callback)
        before, self._marks = self._marks, None
        if before is None:
            return
        names = self._marks_now().changed_since(before)
        if names:
            self._steps = _BODIES_LOOKED_AT
            print(_IN_CELLS.format(names=_listed(names)), file=sys.stderr, flush=True)

    def state_dict(self) -> dict:
        """Nothing: what it has seen is each process's own."""
        return {}

    def load_state_dict(self, state: dict) -> None:
        """Nothing to do."""
