"""mindspore.dataset.config: how passes over datasets are made."""

import enum

from muster.dataset import config as _library
from muster.dataset.config import (
    get_multiprocessing_timeout_interval,
    get_num_parallel_workers,
    get_prefetch_size,
)

from mindspore import _device, _names
from mindspore.dataset import _checks

__all__ = [
    "ErrorSamplesMode",
    "get_debug_mode",
    "get_error_samples_mode",
    "get_iterator_mode",
    "get_multiprocessing_timeout_interval",
    "get_num_parallel_workers",
    "get_prefetch_size",
    "get_seed",
    "load",
    "set_debug_mode",
    "set_error_samples_mode",
    "set_iterator_mode",
    "set_multiprocessing_timeout_interval",
    "set_num_parallel_workers",
    "set_prefetch_size",
    "set_seed",
    "set_sending_batches",
]


class ErrorSamplesMode(enum.IntEnum):
    """What becomes of a row for which an operation of map() fails."""

    RETURN = 0
    REPLACE = 1
    SKIP = 2


# What MindSpore's own pipeline can be told and this one has no use for: kept, and said once.
_settings = {
    "auto_num_workers": False,
    "auto_offload": False,
    "autotune_interval": 0,
    "callback_timeout": 60,
    "dynamic_shape": False,
    "enable_autotune": False,
    "enable_shared_mem": True,
    "enable_watchdog": True,
    "fast_recovery": True,
    "monitor_sampling_interval": 1000,
    "multiprocessing_start_method": "fork",
    "numa_enable": False,
}
_LEAST = {"autotune_interval": 0, "callback_timeout": 1, "monitor_sampling_interval": 1}
_START_METHODS = ("fork", "spawn")
_drawn = set()  # seeds that get_seed() gave and nobody chose: those have 64 bits
_modes = {"error_samples": ErrorSamplesMode.RETURN, "iterator": {"do_copy": False, "parallel_convert": False}}
_debug_hooks = []  # of debug mode, where it is on (dataset.debug)
_debug = {"mode": False}
__all__ += [f"{verb}_{name}" for name in _settings for verb in ("get", "set")]


def get_seed():
    """The seed of all that is random in datasets."""
    seed = _library.get_seed()
    if seed > _checks.UINT32_MAX:
        _drawn.add(seed)
    return seed


def set_seed(seed):
    """The seed of all that is random in datasets: a number of 0 to 4294967295, or what get_seed() gave."""
    _library.set_seed(seed if seed in _drawn else _checks.whole("seed", seed, 0, _checks.UINT32_MAX))


def set_prefetch_size(size):
    """How many items are made ahead."""
    _library.set_prefetch_size(_checks.whole("size", size, 1))


def set_num_parallel_workers(num):
    """How many workers make rows, where an operation does not say so."""
    _checks.of_type("num", num, int)
    try:
        _library.set_num_parallel_workers(num)
    except ValueError as error:
        raise _checks.PipelineError(str(error)) from None


def set_multiprocessing_timeout_interval(interval):
    """After how many seconds without a row processes are named that still work on one."""
    _library.set_multiprocessing_timeout_interval(_checks.whole("interval", interval, 1))


def set_error_samples_mode(error_samples_mode):
    """Whether a row for which an operation of map() fails ends the pass, is left out, or is replaced.

    REPLACE has rows that came well once more, behind the last one.
    """
    if not isinstance(error_samples_mode, ErrorSamplesMode):
        raise TypeError(f"error_samples_mode is an ErrorSamplesMode, not {error_samples_mode!r}")
    _modes["error_samples"] = error_samples_mode


def get_error_samples_mode():
    """What set_error_samples_mode chose."""
    return _modes["error_samples"]


def set_debug_mode(debug_mode_flag, debug_hook_list=None):
    """In debug mode rows are made one by one, and hooks (dataset.debug.DebugHook) see what operations of
    map() take and give: those of the list, by default one that prints types and shapes. It counts for what
    is mapped from then on.
    """
    from mindspore.dataset import debug

    _checks.of_type("debug_mode_flag", debug_mode_flag, bool)
    hooks = [debug.PrintMetaDataHook()] if debug_hook_list is None else debug_hook_list
    _checks.of_type("debug_hook_list", hooks, list)
    for hook in hooks:
        if not isinstance(hook, debug.DebugHook):
            raise TypeError(f"set_debug_mode: debug_hook_list holds hooks of dataset.debug, not {hook!r}")
    if hooks:
        _debug_hooks[:] = hooks
    _debug["mode"] = debug_mode_flag


def get_debug_mode():
    """Whether debug mode is on."""
    return _debug["mode"]


def set_iterator_mode(do_copy=False, parallel_convert=False):
    """Kept: rows are never shared with the pipeline, and are converted as they come."""
    for name, value in (("do_copy", do_copy), ("parallel_convert", parallel_convert)):
        _checks.of_type(name, value, bool)
    _modes["iterator"] = {"do_copy": do_copy, "parallel_convert": parallel_convert}


def get_iterator_mode():
    """What set_iterator_mode chose."""
    return dict(_modes["iterator"])


def set_sending_batches(batch_num):
    """Taken without effect: nothing is sent to a device."""
    _checks.of_type("batch_num", batch_num, int)


_OF_FILES = {
    "numParallelWorkers": set_num_parallel_workers,
    "opConnectorSize": set_prefetch_size,
    "prefetchSize": set_prefetch_size,
    "seed": set_seed,
}


def load(file):
    """Takes settings from a JSON file: numParallelWorkers, opConnectorSize, seed, monitorSamplingInterval,
    callbackTimeout. Others in it are left alone.

    Raises:
        RuntimeError: The file cannot be read, or is none of JSON.
    """
    import json

    _checks.of_type("file", file, str)
    try:
        with open(file, encoding="utf-8") as stream:
            settings = json.load(stream)
    except (OSError, ValueError) as error:
        raise RuntimeError(f"config.load: {file} cannot be read: {error}") from None
    if not isinstance(settings, dict):
        raise RuntimeError(f"config.load: {file} holds no settings by name")
    for name, value in settings.items():
        if name in _OF_FILES:
            _OF_FILES[name](value)
        elif name in ("monitorSamplingInterval", "callbackTimeout"):
            __getattr__("set_" + {"m": "monitor_sampling_interval", "c": "callback_timeout"}[name[0]])(value)


def _check_setting(setting, value):
    if type(value) is not type(_settings[setting]):
        raise TypeError(f"set_{setting} takes {type(_settings[setting]).__name__}, not {value!r}")
    if setting in _LEAST:
        _checks.whole(setting, value, _LEAST[setting])
    if setting == "multiprocessing_start_method" and value not in _START_METHODS:
        raise ValueError(f"set_multiprocessing_start_method takes one of {_START_METHODS}, not {value!r}")


def __getattr__(name: str):
    verb, _, setting = name.partition("_")
    if setting not in _settings or verb not in ("get", "set"):
        return _names.missing(__name__)(name)

    def get():
        return _settings[setting]

    def keep(value, *_):
        _check_setting(setting, value)
        if setting != "callback_timeout":
            _device.note_once(
                f"note: mindspore.dataset.config.{name} has no effect: the pipeline sees to it itself"
            )
        _settings[setting] = value

    return get if verb == "get" else keep
