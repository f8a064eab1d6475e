"""DynamicProfilerMonitor: a file says, while a training runs, which of its steps are recorded."""

import json
import os
import weakref

from mindspore import _device
from muster import _core

_FILE = "profiler_config.json"


def _steps_of(text):
    """(start_step, stop_step) of a configuration; None: nothing is recorded. ValueError where it is none."""
    config = json.loads(text)
    if not isinstance(config, dict):
        raise ValueError("it is no object")
    start, stop = (config.get(name, -1) for name in ("start_step", "stop_step"))
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in (start, stop)):
        raise ValueError(f"start_step is {start!r} and stop_step {stop!r}: numbers of steps are needed")
    if start < 1 or config.get("is_valid") is False:
        return None
    if stop < start:
        raise ValueError(f"start_step is {start} and stop_step {stop}: stop_step is not before start_step")
    return start, stop


class DynamicProfilerMonitor(_core.Callback):
    """Records the steps, from 1, that `cfg_path`/profiler_config.json names.

    Such as {"start_step": 5, "stop_step": 9}. A callback of a Model; in a loop by hand step() says that a
    step is done. The file is looked at before each step, so it may change while the training runs; each
    change may name other steps, and has a profile of its own, as those of Profiler in `output_path`. Where
    there is no such file rank 0 makes one that records nothing. The interval of looking (`poll_interval`)
    and settings of accelerators count for nothing.
    """

    def __init__(self, cfg_path, output_path="dyn_profile_data", poll_interval=2, **settings):
        super().__init__()
        for name, path in (("cfg_path", cfg_path), ("output_path", output_path)):
            if not isinstance(path, str | os.PathLike):
                raise TypeError(f"DynamicProfilerMonitor: {name} is a path, not {type(path).__name__}")
        from mindspore.profiler import _Recording

        self._file = os.path.join(cfg_path, _FILE)
        self._recording = _Recording(os.fspath(output_path))
        weakref.finalize(self, self._recording.end)  # a loop that ends before that step
        self._read = None  # when the file that was read was written
        self._steps = None  # those to be recorded
        self._done = 0  # steps, of a loop by hand
        self._make()
        self._before(1)

    def _make(self):
        if os.path.exists(self._file) or _core._rank() != 0:
            return
        os.makedirs(os.path.dirname(self._file) or ".", exist_ok=True)
        with open(self._file, "w") as file:
            json.dump({"start_step": -1, "stop_step": -1}, file, indent=2)

    def _look(self, step):
        """Reads the file where it has changed."""
        try:
            written = os.stat(self._file).st_mtime_ns
            if written == self._read:
                return
            self._read, self._steps = written, None
            self._recording.end()
            with open(self._file) as file:
                self._steps = _steps_of(file.read())
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            _device.note_once(f"note: DynamicProfilerMonitor records nothing by '{self._file}': {error}")
        if self._steps and self._steps[0] < step:
            print(
                f"muster: DynamicProfilerMonitor records nothing: start_step is {self._steps[0]} in "
                f"'{self._file}', and step {step} is the next; name a later one",
                flush=True,
            )

    def _before(self, step):
        self._look(step)
        if self._steps and step == self._steps[0]:
            self._recording.begin()

    def _behind(self, step):
        if self._steps and step >= self._steps[1]:
            self._recording.end()

    def step(self):
        """A step is done."""
        self._done += 1
        self._behind(self._done)
        self._before(self._done + 1)

    def on_train_step_begin(self, run_context):
        """Begins before the step that the file names first."""
        self._before(run_context.cur_step_num)

    def on_train_step_end(self, run_context):
        """Ends behind the step that the file names last."""
        self._behind(run_context.cur_step_num)

    def __exit__(self, *error):
        """Ends, where the training ends before that step."""
        self._recording.end()

    def state_dict(self):
        """Nothing: a profile is of one process."""
        return {}

    def load_state_dict(self, state):
        """Nothing."""
