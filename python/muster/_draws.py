"""Numbers of random and numpy.random, where a job that recovers needs the same ones again.

Their states belong to the process and are lost with it; no recovery point holds them.
"""

import functools
import hashlib
import os
import sys

from muster import _core, _random_seeds

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
    numpy = sys.modules.get("numpy.random")
    kept = numpy.get_state(legacy=False) if numpy else None
    words = kept and (kept["state"]["key"].tobytes(), kept["state"]["pos"], kept["has_gauss"], kept["gauss"])
    return plain and plain.getstate(), words


def _number(*parts: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=4).digest(), "little")


class Steps:
    """The steps of a loop, whose bodies draw by the state before the loop, the epoch and the step.

    So a process that comes back draws what was drawn before, and workers that are seeded apart draw apart.
    """

    def __init__(self, steps: _core.RecoverableSteps, watch: "_carried.Watch") -> None:
        self._steps, self._watch = steps, watch
        self._before = _number(states())

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
        for module in ("random", "numpy.random"):
            _random_seeds.seed(module, _number(self._before, *place))

    def stop(self) -> None:
        """The step that runs now is the last."""
        self._steps.stop()

    @property
    def is_aborted(self) -> bool:
        """Whether the step whose body runs is aborted."""
        return self._steps.is_aborted


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
