"""Numbers of random and numpy.random, where a job that recovers needs the same ones again.

Their states belong to the process and are lost with it; no recovery point holds them.
"""

import functools
import operator
import os
import sys

from muster import _core, _random_seeds
from muster._loaded import loaded

TYPE_CHECKING = False  # package typing takes long to import
if TYPE_CHECKING:
    from muster import _carried

_ROWS_LOOKED_AT = 100
_ROWS_UNTIL_TOLD = 3  # another thread may draw while a row is made, but hardly so often


def recovers() -> bool:
    """Whether processes of this job that are lost come back."""
    return os.environ.get("MS_ENABLE_RECOVERY") == "1"


def states() -> tuple:
    """The states of both generators, None where one is not imported; equal if nobody has drawn."""
    plain = sys.modules.get("random")
    numpy = loaded("numpy.random")
    kept = numpy.get_state(legacy=False) if numpy else None
    words = kept and (kept["state"]["key"].tobytes(), kept["state"]["pos"], kept["has_gauss"], kept["gauss"])
    return plain and plain.getstate(), words


def _number(*parts: object) -> int:
    import hashlib  # few jobs recover

    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=4).digest(), "little")


class Steps:
    """The steps of a loop, whose bodies draw by the state before the loop, the epoch and the step.

    So a process that comes back draws what was drawn before, and workers that are seeded apart draw apart.
    """

    def __init__(self, steps: _core.RecoverableSteps, watch: "_carried.Watch") -> None:
        self._steps, self._watch = steps, watch
        # Each by itself: a script that seeds one of them leaves the other to chance.
        self._before = dict(zip(("random", "numpy.random"), map(_number, states()), strict=True))

    def __iter__(self) -> "Steps":
        return self

    def __next__(self) -> tuple:
        script = sys._getframe(1)
        self._watch.end_body(script)
        try:
            item = next(self._steps)
        except StopIteration:
            self._seed("end")  # the script goes on alike, too
            self._watch.end_loop(script)
            raise
        self._seed(*item[:2])
        self._watch.begin_body(item[:2], script)
        return item

    def _seed(self, *place: object) -> None:
        for module, before in self._before.items():
            _random_seeds.seed(module, _number(before, *place))

    def stop(self) -> None:
        """The step that runs now is the last."""
        self._steps.stop()

    @property
    def is_aborted(self) -> bool:
        """Whether the step whose body runs is aborted."""
        return self._steps.is_aborted


_OF_SOURCE = (
    "a GeneratorDataset's source '{name}' draws from random or numpy.random, whose states no recovery point "
    "holds: after a death the training ends with other numbers. {way}"
)
OF_ROWS = _OF_SOURCE.replace(
    "{way}", "In worker processes they are seeded for each row: GeneratorDataset(..., num_parallel_workers=2)"
)
IN_TURN = _OF_SOURCE.replace(
    "{way}", "Let it draw from a generator that it makes where a pass begins: numpy.random.default_rng(seed)"
)

_DRAWS = (
    "'{{name}}' of {0} draws from random or numpy.random, whose states no recovery point holds: after a "
    "death the training ends with other numbers. {1}"
)
OF_MAP = _DRAWS.format(
    "map()",
    "In worker processes they are seeded for each row: map(..., python_multiprocessing=True)",
)
OF_FILTER = _DRAWS.format("filter()", "Let it decide by what the row holds")
OF_BATCH = _DRAWS.format(
    "batch(per_batch_map=)",
    "Let it draw from a generator of the batch's own: numpy.random.default_rng((info.get_epoch_num(), "
    "info.get_batch_num())), where info is its last argument",
)
_OF_OWN = (
    "'{name}', which makes rows of the data, changes {names} with them, and no recovery point holds that: in "
    "a process that comes back it is what the script has set, and rows that depend on it are others. Draw "
    "from numpy.random in worker processes, where it is seeded for each row (python_multiprocessing=True of "
    "map(), num_parallel_workers=2 of GeneratorDataset), or make the generator of what the row itself has"
)
_ITSELF = object()


def told(function, text: str = OF_MAP, name: str | None = None, of=_ITSELF):
    """A function of rows, as a job that recovers calls it: that it draws is told once, by `text`.

    So is what `of` changes in variables of the script: another function that the row comes from, or None.
    """
    if not recovers():
        return function
    return _Told(function, text, name or _name_of(function), function if of is _ITSELF else of)


def _name_of(function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def told_source(source):
    """A source of rows, as a job that recovers reads it: told are that it draws, and what its passes change.

    One with `_tells` does so by itself.
    """
    if not recovers() or getattr(source, "_tells", False):
        return source
    if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        return _ToldRows(source)
    if hasattr(source, "__next__") or not (hasattr(source, "__iter__") or callable(source)):
        return source
    return _CountedPasses(source) if hasattr(source, "__len__") else _ToldPasses(source)


class _ToldRows:
    """Rows of a source that gives any of them."""

    def __init__(self, source) -> None:
        self._source = source
        at = functools.partial(operator.getitem, source)
        self._row = told(at, OF_ROWS, _name_of(source), getattr(source, "__getitem__", None))

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, number):
        return self._row(number)


class _ToldPasses:
    """Passes over a source that gives one row after the other."""

    def __init__(self, source) -> None:
        from muster import _carried

        self._source = source
        self._watch = _carried.SourceWatch(source)

    def __iter__(self):
        self._watch.begin_pass()
        rows = iter(self._source if hasattr(self._source, "__iter__") else self._source())
        following = told(rows.__next__, IN_TURN, _name_of(self._source), of=None)
        while True:
            try:
                yield following()
            except StopIteration:
                return


class _CountedPasses(_ToldPasses):
    """Those of a source that says how many rows it has."""

    def __len__(self) -> int:
        return len(self._source)


class _Told:
    def __init__(self, function, text: str, name: str, of) -> None:
        from muster import _carried  # jobs that recover alone have these

        self._function, self._text, self._name = function, text, name
        self._own = _carried.RowWatch(of)
        self._rows = self._drawn = 0
        self._process = os.getpid()
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *values):
        if self._rows == _ROWS_LOOKED_AT or os.getpid() != self._process:  # a worker process seeds its rows
            return self._function(*values)
        self._own.begin_row()
        before = states()
        answer = self._function(*values)
        self._rows += 1
        self._drawn += states() != before
        if self._drawn == _ROWS_UNTIL_TOLD:
            self._rows = _ROWS_LOOKED_AT
            self._tell(self._text.format(name=self._name))
        elif names := self._own.end_row():
            self._tell(_OF_OWN.format(name=self._name, names=names))
        return answer

    def _tell(self, text: str) -> None:
        print(f"muster warning: {text}", file=sys.stderr, flush=True)
