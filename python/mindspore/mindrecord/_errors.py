"""Exceptions of mindspore.mindrecord: what Python says of such a mistake, under MindSpore's names."""


class MindRecordException(Exception):  # noqa: N818 - the name that MindSpore has
    """Base class of all of them."""


class ParamValueError(MindRecordException, ValueError):
    """An argument has a bad value."""


class ParamTypeError(MindRecordException, TypeError):
    """An argument is of a bad type."""


class ParamKindError(ParamValueError, ParamTypeError):
    """An argument is of a bad type, where MindSpore speaks of its value."""


class MRMOpenError(MindRecordException, RuntimeError):
    """A file cannot be opened."""


class MRMInvalidSchemaError(MindRecordException, RuntimeError):
    """A schema says something that files cannot hold."""


class MRMDefineIndexError(MindRecordException, RuntimeError):
    """A field cannot be an index."""


class MRMValidateDataError(MindRecordException, RuntimeError):
    """A row does not fit its schema."""
