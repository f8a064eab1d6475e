"""Loggers for tools of others: what they need to know of a training, and how they are found by name."""

from muster import _core

_GROUP = "muster.loggers"


def _number(value):
    """The number, or the mean of an array, as files of numbers have it; None of anything else."""
    if isinstance(value, str | bytes):
        return None
    try:
        return float(value.mean() if getattr(value, "ndim", 0) else value)
    except (TypeError, ValueError, OverflowError):
        return None


class Logger(_core.Callback):
    """A callback that gives the numbers of each step to log(), for the subclass to pass on.

    `every` steps, on rank 0, or on every rank with `all_ranks`. A training that goes on after a loss
    repeats no step that this process has logged; a process that comes back logs those behind its recovery
    point once more.
    """

    state_is_shared = True

    def __init__(self, *, every=1, all_ranks=False):
        super().__init__()
        if not isinstance(every, int):
            raise TypeError(
                f"{type(self).__name__}: every is a number of steps, not {every!r} ({type(every).__name__})"
            )
        if every < 1:
            raise ValueError(f"{type(self).__name__}: every is at least 1 step, not {every}")
        self._every, self._all_ranks = every, all_ranks
        self._logged = self._evaluated = 0
        self._is_open = False

    def open(self, run_context):
        """A training begins: called once, before the first log()."""

    def log(self, values, step):
        """Floats by name: loss and learning_rate, or behind an evaluation of fit "eval/<metric>".

        A metric of several numbers, as one for each class, is their mean; one of none is not there.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method log(self, values, step)")

    def close(self):
        """The training has ended, however it did; not called where open() was not."""

    # ---- What the training calls ----

    def _writes_here(self):
        return self._all_ranks or _core._rank() == 0

    def on_train_begin(self, run_context):
        """Calls open()."""
        self._logged = self._evaluated = 0
        if self._writes_here():
            self.open(run_context)
            self._is_open = True

    def on_train_step_begin(self, run_context):
        """Notes the learning rate that the step takes."""
        if self._writes_here():
            self._rate = run_context._next_rate()

    def on_train_step_end(self, run_context):
        """Calls log() with the numbers of the step."""
        step = run_context.cur_step_num
        if not self._writes_here() or step % self._every or step <= self._logged:
            return
        self._logged = step
        values = {"loss": run_context._loss(), "learning_rate": self._rate}
        self.log({name: value for name, value in values.items() if value is not None}, step)

    def on_train_epoch_end(self, run_context):
        """Calls log() with the results of fit's evaluation."""
        step, results = run_context.cur_step_num, run_context.eval_results
        if not self._writes_here() or not results or step <= self._evaluated:
            return
        self._evaluated = step
        numbers = {f"eval/{name}": _number(value) for name, value in results.items()}
        self.log({name: number for name, number in numbers.items() if number is not None}, step)

    def __exit__(self, *error):
        if self._is_open:
            self._is_open = False
            self.close()

    def state_dict(self):
        """The step that was logged last."""
        return {"logged": self._logged, "evaluated": self._evaluated}

    def load_state_dict(self, state):
        """Goes on behind that step; in the same process behind what it has logged itself."""
        self._logged = max(self._logged, state["logged"])
        self._evaluated = max(self._evaluated, state["evaluated"])


def logger_names():
    """Names of the loggers that installed packages bring, by the entry point group muster.loggers."""
    from importlib import metadata  # which takes longer to load than muster

    return sorted(point.name for point in metadata.entry_points(group=_GROUP))


def logger(name, **settings):
    """The logger of that name, made with these settings. ValueError names those that are installed."""
    from importlib import metadata

    for point in metadata.entry_points(group=_GROUP, name=name):
        return point.load()(**settings)
    names = ", ".join(logger_names()) or "none"
    raise ValueError(f"no package brings a logger '{name}' (entry point group {_GROUP}); installed: {names}")
