"""mindspore.mindrecord: files of MindRecord written and read."""

from mindspore import _names

_LATER = {
    **dict.fromkeys(("FAILED", "FileReader", "FileWriter", "SUCCESS"), "_files"),
    **dict.fromkeys(
        (
            *("MRMDefineIndexError", "MRMInvalidSchemaError", "MRMOpenError", "MRMValidateDataError"),
            *("MindRecordException", "ParamTypeError", "ParamValueError"),
        ),
        "_errors",
    ),
}

__all__ = list(_LATER)
__getattr__ = _names.later(__name__, _LATER)
