"""mindspore.profiler: where the time goes, written as Muster's profile (a table and a trace for Perfetto)."""

import enum
import os
import weakref

from mindspore import _device, _names
from mindspore.profiler._dynamic import DynamicProfilerMonitor
from muster import _core, _profile

_written: dict[str, int] = {}  # by folder: profiles that this process has written there
# Of accelerators, or of versions before: they count for nothing.
_SETTINGS = {
    "activities",
    "aic_metrics",
    "data_process",
    "data_simplification",
    "experimental_config",
    "export_type",
    "hbm_ddr",
    "host_stack",
    "host_sys",
    "l2_cache",
    "mstx",
    "mstx_domain_exclude",
    "mstx_domain_include",
    "op_time",
    "parallel_strategy",
    "pcie",
    "profile_communication",
    "profile_framework",
    "profile_memory",
    "profiler_level",
    "record_shapes",
    "sync_enable",
    "sys_interconnection",
    "sys_io",
    "timeline_limit",
    "with_stack",
}


class ProfilerAction(enum.Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARM_UP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class _Schedule:
    """Behind `skip_first` steps, in turn: `wait` and `warmup` steps that are not recorded, `active` that are.

    `repeat` times; 0: until the end. Called with a step, from 0, it gives the ProfilerAction of it.
    """

    def __init__(self, *, wait, active, warmup=0, repeat=0, skip_first=0):
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
        self.wait, self.active, self.warmup = wait, active, warmup
        self.repeat, self.skip_first = repeat, skip_first

    def __repr__(self):
        return f"schedule({', '.join(f'{name}={value}' for name, value in self.to_dict().items())})"

    def __call__(self, step):
        at = (step - self.skip_first) % (self.wait + self.warmup + self.active)
        if self.turn(step) is not None:
            is_last = at == self.wait + self.warmup + self.active - 1
            return ProfilerAction.RECORD_AND_SAVE if is_last else ProfilerAction.RECORD
        is_warm_up = self._is_in_a_turn(step) and at >= self.wait
        return ProfilerAction.WARM_UP if is_warm_up else ProfilerAction.NONE

    def to_dict(self):
        """The arguments of it."""
        return {name: getattr(self, name) for name in ("wait", "active", "warmup", "repeat", "skip_first")}

    def _is_in_a_turn(self, step):
        turn = (step - self.skip_first) // (self.wait + self.warmup + self.active)
        return turn >= 0 and (not self.repeat or turn < self.repeat)

    def turn(self, step):
        """The turn, from 0, in which step `step`, from 0, is recorded; None: it is not."""
        idle = self.wait + self.warmup
        turn, at = divmod(step - self.skip_first, idle + self.active)
        return turn if self._is_in_a_turn(step) and at >= idle else None


schedule = _Schedule  # a profiler's argument has this name, too


class _Handler:
    """What tensorboard_trace_handler() gives: a function of a profiler, whose profiles go into its folder."""

    latest = None  # where profilers write whose own function calls a handler

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, profiler):
        """Nothing: what was recorded is written and analysed by then."""


def tensorboard_trace_handler(dir_name=None, worker_name=None, analyse_flag=True, async_mode=False):
    """Where profiles are written; a handler for on_trace_ready, or to be called by such a function."""
    _Handler.latest = os.fspath(dir_name or "./data")
    return _Handler(_Handler.latest)


class _Recording:
    """What goes on for a Profiler, and ends with it, or with the process, at the latest."""

    def __init__(self, folder):
        self._folder = folder
        self._is_on = False

    def begin(self):
        """Nothing where it is on already."""
        self._is_on = self._is_on or _profile.begin("mindspore.profiler")

    def end(self):
        """Whether anything was written: in a folder of its own where this process wrote here before."""
        if not self._is_on:
            return False
        self._is_on = False
        place = os.path.abspath(self._folder)
        _written[place] = number = _written.get(place, 0) + 1
        folder = self._folder if number == 1 else os.path.join(self._folder, str(number))
        _profile.stop(folder)
        _profile.tell(folder, _core._world_size())
        return True


def _checked(name, value, is_right, what):
    if value is not None and not is_right:
        raise TypeError(f"Profiler: {name} is {what}, not {type(value).__name__}")
    return value


def _folder_of(on_trace_ready, output_path):
    if isinstance(on_trace_ready, _Handler):
        return on_trace_ready.folder
    return _Handler.latest if on_trace_ready and _Handler.latest and output_path == "./data" else output_path


def _note_unknown(settings):
    """A name that is written wrong would count for nothing, as those of accelerators do."""
    import difflib

    for name in settings:
        if name not in _SETTINGS:
            known = ["output_path", "start_profile", "schedule", "on_trace_ready", *_SETTINGS]
            near = difflib.get_close_matches(name, known, 1)
            way_out = f"; did you mean {near[0]}?" if near else f": {', '.join(known[:4])} are its settings"
            _device.note_once(f"note: Profiler knows no {name}, which counts for nothing{way_out}")


class Profiler:
    """Records from its creation, or start(), to stop() or analyse(), and writes the profile in `output_path`.

    There each rank has rank<N>.json; in a process alone trace.json is written too and the tables are
    printed; in a job `muster profile OUTPUT_PATH` shows all ranks. Settings of accelerators count for
    nothing. With a `schedule`, step() says that a step is done, and only the steps of the schedule are
    recorded, a profile for each turn. A function as on_trace_ready is called with the profiler when one is
    written. Of several profiles of a process the first is in `output_path`, others in `output_path`/2, /3
    and so on. One that nobody stops ends with the Profiler, or with the process.
    """

    def __init__(
        self, *, output_path="./data", start_profile=True, schedule=None, on_trace_ready=None, **settings
    ):
        _note_unknown(settings)
        if on_trace_ready is tensorboard_trace_handler:  # as examples of MindSpore's have it
            on_trace_ready = on_trace_ready()
        if isinstance(on_trace_ready, str):
            on_trace_ready = _Handler(on_trace_ready)
        _checked("on_trace_ready", on_trace_ready, callable(on_trace_ready), "a function")
        what = "what mindspore.profiler.schedule(wait=..., active=...) gives"
        self._schedule = _checked("schedule", schedule, isinstance(schedule, _Schedule), what)
        self._tell = on_trace_ready
        self._recording = _Recording(_folder_of(on_trace_ready, os.fspath(output_path)))
        weakref.finalize(self, self._recording.end)
        self._step = 0
        self._turn = None  # the one that is recorded
        self._is_started = False
        if start_profile:
            self.start()

    def start(self):
        """Records from now on, with a schedule the steps of it; where it does already, nothing."""
        self._is_started = True
        if self._schedule:
            self._look()
        else:
            self._recording.begin()

    def stop(self):
        """Ends the recording and writes it; where nothing is recorded, nothing."""
        self._is_started = False
        self._end()

    def _end(self):
        self._turn = None
        if self._recording.end() and self._tell:
            self._tell(self)

    def analyse(self, *args, **kwargs):
        """stop(): what is written is analysed already."""
        self.stop()

    analyze = analyse

    @classmethod
    def offline_analyse(cls, path, *args, **kwargs):
        """analyse(path) of this module."""
        analyse(path)

    def step(self):
        """A step is done."""
        self._step += 1
        if self._schedule and self._is_started:
            self._look()

    def _look(self):
        """Ends the turn that is over and begins the one that the step is in."""
        turn = self._schedule.turn(self._step)
        if turn == self._turn:
            return
        self._end()
        if turn is not None:
            self._recording.begin()
            self._turn = turn

    def op_analyse(self, *args, **kwargs):
        """Not provided: the table of ops is printed at stop()."""
        raise NotImplementedError(_names.sentence("mindspore.profiler.Profiler.op_analyse"))

    def add_metadata(self, *args, **kwargs):
        """Accepted; told once that it is not written."""
        _device.note_once("note: a profile has no metadata: Profiler.add_metadata writes nothing")

    add_metadata_json = add_metadata

    def __enter__(self):
        if not self._is_started:
            self.start()
        return self

    def __exit__(self, *error):
        self.stop()


class profile(Profiler):  # noqa: N801
    """A Profiler with the arguments of MindSpore's `profile` in their order."""

    def __init__(
        self,
        activities=None,
        with_stack=False,
        profile_memory=False,
        data_process=False,
        parallel_strategy=False,
        start_profile=True,
        hbm_ddr=False,
        pcie=False,
        sync_enable=True,
        record_shapes=False,
        schedule=None,
        on_trace_ready=None,
        experimental_config=None,
        **settings,
    ):
        super().__init__(
            start_profile=start_profile, schedule=schedule, on_trace_ready=on_trace_ready, **settings
        )


def analyse(profiler_path, *args, **kwargs):
    """Prints the tables of the profiles in a folder and in those below it, and writes their traces."""
    folders = [path for path, _, files in os.walk(profiler_path) if "rank0.json" in files]
    if not folders:
        raise FileNotFoundError(
            f"there is no profile in '{profiler_path}': rank0.json is what a profile writes"
        )
    for folder in sorted(folders):
        print(_profile.report(folder), end="", flush=True)


def _record_by_variable(text):
    """What MS_PROFILER_OPTIONS does to a script: with "start" it is recorded to its end."""
    import json

    try:
        options = json.loads(text)
        folder = options.get("output_path") or "./data" if options.get("start") else None
    except (ValueError, AttributeError):
        _device.note_once(
            f"note: MS_PROFILER_OPTIONS is {text!r}, so nothing is recorded: it is JSON, such as "
            '{"start": true, "output_path": "profile"}'
        )
        return
    if folder:
        EnvProfiler.profiler = Profiler(output_path=folder)


class EnvProfiler:
    """What MS_PROFILER_OPTIONS says of this process."""

    profiler = None  # the one that goes on because of it

    @classmethod
    def init_profiler(cls):
        """Records from now on where the variable says so and nothing did before."""
        if cls.profiler is None and os.environ.get("MS_PROFILER_OPTIONS"):
            _record_by_variable(os.environ["MS_PROFILER_OPTIONS"])

    def analyse(self):
        """Ends the recording and writes it; where the variable asks for none, nothing."""
        if self.profiler is not None:
            self.profiler.stop()


class _ExperimentalConfig:
    """Accepted as a setting of a Profiler, and has what it was given: it is one of accelerators."""

    def __init__(
        self,
        profiler_level=None,
        aic_metrics=None,
        l2_cache=False,
        mstx=False,
        data_simplification=True,
        export_type=None,
        mstx_domain_include=None,
        mstx_domain_exclude=None,
        sys_io=False,
        sys_interconnection=False,
        host_sys=None,
    ):
        self.profiler_level = ProfilerLevel.Level0 if profiler_level is None else profiler_level
        self.aic_metrics = AicoreMetrics.AiCoreNone if aic_metrics is None else aic_metrics
        self.l2_cache, self.mstx, self.data_simplification = l2_cache, mstx, data_simplification
        self.export_type, self.host_sys = export_type, host_sys
        self.mstx_domain_include, self.mstx_domain_exclude = mstx_domain_include, mstx_domain_exclude
        self.sys_io, self.sys_interconnection = sys_io, sys_interconnection


def _names_of(name, *members, **values):
    """Settings that count for nothing; scripts look them up by name and by value, as in MindSpore."""
    return enum.Enum(name, {member: member for member in members} | values, module=__name__)


ProfilerLevel = _names_of("ProfilerLevel", "LevelNone", "Level0", "Level1", "Level2")
ProfilerActivity = _names_of("ProfilerActivity", "NPU", "GPU", "CPU")
AicoreMetrics = _names_of(
    "AicoreMetrics",
    "PipeUtilization",
    "ArithmeticUtilization",
    "Memory",
    "MemoryL0",
    "MemoryUB",
    "ResourceConflictRatio",
    "L2Cache",
    "MemoryAccess",
    AiCoreNone="None",
)
HostSystem = _names_of("HostSystem", CPU="cpu", MEM="mem", DISK="disk", NETWORK="network", OSRT="osrt")
ExportType = _names_of("ExportType", Db="db", Text="text")


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
    "DynamicProfilerMonitor",
    "EnvProfiler",
    "ExportType",
    "HostSystem",
    "Profiler",
    "ProfilerActivity",
    "ProfilerLevel",
    "_ExperimentalConfig",
    "mstx",
    "profile",
    "schedule",
    "tensorboard_trace_handler",
]
__getattr__ = _names.missing(__name__)
