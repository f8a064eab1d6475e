"""mindspore.dataset.config: how passes over datasets are made."""

from muster.dataset.config import (
    get_multiprocessing_timeout_interval,
    get_num_parallel_workers,
    get_prefetch_size,
    get_seed,
    set_multiprocessing_timeout_interval,
    set_num_parallel_workers,
    set_prefetch_size,
    set_seed,
)

from mindspore import _device, _names

__all__ = [
    "get_multiprocessing_timeout_interval",
    "get_num_parallel_workers",
    "get_prefetch_size",
    "get_seed",
    "set_multiprocessing_timeout_interval",
    "set_num_parallel_workers",
    "set_prefetch_size",
    "set_seed",
]

# What MindSpore's own pipeline can be told and this one has no use for: kept, and said once.
_settings = {
    "auto_num_workers": False,
    "auto_offload": False,
    "autotune_interval": 0,
    "callback_timeout": 60,
    "debug_mode": False,
    "enable_autotune": False,
    "enable_shared_mem": True,
    "enable_watchdog": True,
    "fast_recovery": True,
    "monitor_sampling_interval": 1000,
    "numa_enable": False,
}
__all__ += [f"{verb}_{name}" for name in _settings for verb in ("get", "set")]


def __getattr__(name: str):
    verb, _, setting = name.partition("_")
    if setting not in _settings or verb not in ("get", "set"):
        return _names.missing(__name__)(name)

    def get():
        return _settings[setting]

    def keep(value, *_):
        if type(value) is not type(_settings[setting]):
            raise TypeError(f"{name} takes {type(_settings[setting]).__name__}, not {value!r}")
        _device.note_once(
            f"note: mindspore.dataset.config.{name} has no effect: the pipeline sees to it itself"
        )
        _settings[setting] = value

    return get if verb == "get" else keep
