"""mindspore.profiler: accepted, and writes nothing. `muster explain` shows what takes how long."""

from mindspore import _device, _names

_NOTE = "note: the profiler writes nothing here; `muster explain --times script.py` shows what takes how long"


class Profiler:
    """Settings of any kind; its methods do nothing."""

    def __init__(self, *args, **kwargs):
        _device.note_once(_NOTE)

    def _nothing(self, *args, **kwargs):
        return None

    start = stop = analyse = analyze = op_analyse = add_metadata = add_metadata_json = step = _nothing

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class _Names:
    """Names that are accepted as settings."""

    def __getattr__(self, name: str) -> str:
        return name


class _ExperimentalConfig:
    """Accepted as a setting of a Profiler."""

    def __init__(self, *args, **kwargs):
        _device.note_once(_NOTE)


ProfilerLevel = _Names()
ProfilerActivity = _Names()
AicoreMetrics = _Names()
profile = Profiler


def schedule(*args, **kwargs):
    """Accepted as a setting of a Profiler."""


def tensorboard_trace_handler(*args, **kwargs):
    """Accepted as a setting of a Profiler."""


def mstx(*args, **kwargs):
    """Does nothing."""


__all__ = [
    "AicoreMetrics",
    "Profiler",
    "ProfilerActivity",
    "ProfilerLevel",
    "mstx",
    "profile",
    "schedule",
    "tensorboard_trace_handler",
]
__getattr__ = _names.missing(__name__)
