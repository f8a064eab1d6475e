"""mindspore.mindrecord: files of MindRecord written and read."""

from mindspore import _names

_FILES = (
    "FAILED",
    "FileReader",
    "FileWriter",
    "MRMOpenError",
    "ParamTypeError",
    "ParamValueError",
    "SUCCESS",
)

__all__ = list(_FILES)
__getattr__ = _names.later(__name__, dict.fromkeys(_FILES, "_files"))
