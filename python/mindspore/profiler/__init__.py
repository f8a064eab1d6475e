"""mindspore.profiler: where the time goes, written as Muster's profile (a table and a trace for Perfetto)."""

import os

from mindspore import _device, _names
from muster import _core, _profile


class _Schedule:
    """What schedule() gives: which steps are recorded."""

    def __init__(self, wait, active, warmup, repeat, skip_first):
        for name, value in (
            ("wait", wait),
            ("warmup", warmup),
            ("repeat", repeat),
            ("skip_first", skip_first),
        ):
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"schedule: {name} is a number of steps from 0, not {value!r}")
        if not isinstance(active, int) or active < 1:
            raise ValueError(f"schedule: active is a number of steps from 1, not {active!r}")
        self.idle, self.active, self.repeat, self.skip_first = wait + warmup, active, repeat, skip_first

    def records(self, step):
        """Whether step `step`, from 0, is recorded."""
        step -= self.skip_first
        round_ = step // (self.idle + self.active)
        if step < 0 or (self.repeat and round_ >= self.repeat):
            return False
        return step % (self.idle + self.active) >= self.idle


def schedule(*, wait, active, warmup=0, repeat=0, skip_first=0):
    """Behind `skip_first` steps, in turn: `wait` and `warmup` steps that are not recorded, `active` that are.

    `repeat` times; 0: until the end.
    """
    return _Schedule(wait, active, warmup, repeat, skip_first)


def tensorboard_trace_handler(dir_name=None, worker_name=None, analyse_flag=True, async_mode=False):
    """Where a profile is written; a handler for on_trace_ready."""
    return os.fspath(dir_name or "./data")


class Profiler:
    """Records from its creation, or start(), to stop() or analyse(), and writes the profile in `output_path`.

    There each rank has rank<N>.json; in a process alone trace.json is written too and the tables are
    printed; in a job `muster profile OUTPUT_PATH` shows all ranks. Settings of accelerators count for
    nothing. With a `schedule`, step() says that a step is done, and only the steps of the schedule are
    recorded, a profile for each turn: the first in `output_path`, others in `output_path`/2, /3 and so on.
    """

    def __init__(
        self, *, output_path="./data", start_profile=True, schedule=None, on_trace_ready=None, **settings
    ):
        self._path = on_trace_ready if isinstance(on_trace_ready, str) else os.fspath(output_path)
        self._schedule = schedule if isinstance(schedule, _Schedule) else None
        self._step = 0
        self._is_recording = False
        self._written = 0
        self._is_started = False
        if start_profile:
            self.start()

    def start(self):
        """Records from now on, with a schedule the steps of it; where it does already, nothing."""
        self._is_started = True
        if self._schedule:
            self._look()
        else:
            self._record()

    def _record(self):
        if not self._is_recording:
            _profile.start()
            self._is_recording = True

    def stop(self):
        """Ends the recording and writes it; where nothing is recorded, nothing."""
        self._is_started = False
        self._end()

    def _end(self):
        if not self._is_recording:
            return
        self._is_recording = False
        self._written += 1
        folder = self._path if self._written == 1 else os.path.join(self._path, str(self._written))
        _profile.stop(folder)
        _profile.tell(folder, _core._world_size())

    def analyse(self, *args, **kwargs):
        """stop(): what is written is analysed already."""
        self.stop()

    analyze = analyse

    def step(self):
        """A step is done."""
        self._step += 1
        if self._schedule and self._is_started:
            self._look()

    def _look(self):
        self._record() if self._schedule.records(self._step) else self._end()

    def op_analyse(self, *args, **kwargs):
        """Not provided: the table of ops is printed at stop()."""
        raise NotImplementedError(_names.sentence("mindspore.profiler.Profiler.op_analyse"))

    def add_metadata(self, *args, **kwargs):
        """Accepted; told once that it is not written."""
        _device.note_once("note: a profile has no metadata: Profiler.add_metadata writes nothing")

    add_metadata_json = add_metadata

    def __enter__(self):
        if not self._schedule:
            self.start()
        return self

    def __exit__(self, *error):
        self.stop()


profile = Profiler


class _Names:
    """Names that are accepted as settings."""

    def __getattr__(self, name: str) -> str:
        return name


class _ExperimentalConfig:
    """Accepted as a setting of a Profiler: it is one of accelerators."""

    def __init__(self, *args, **kwargs):
        pass


ProfilerLevel = _Names()
ProfilerActivity = _Names()
AicoreMetrics = _Names()
HostSystem = _Names()
ExportType = _Names()


class mstx:  # noqa: N801
    """Marks for the tools of accelerators: accepted, and nothing is written."""

    def __init__(self, *args, **kwargs):
        pass

    @staticmethod
    def mark(message, stream=None, domain="default"):
        """Does nothing."""

    @staticmethod
    def range_start(message, stream=None, domain="default"):
        """0, the number of a range that is not written."""
        return 0

    @staticmethod
    def range_end(range_id, domain="default"):
        """Does nothing."""


__all__ = [
    "AicoreMetrics",
    "ExportType",
    "HostSystem",
    "Profiler",
    "ProfilerActivity",
    "ProfilerLevel",
    "mstx",
    "profile",
    "schedule",
    "tensorboard_trace_handler",
]
__getattr__ = _names.missing(__name__)
