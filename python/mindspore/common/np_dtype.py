"""mindspore.common.np_dtype: bfloat16 as a type of numpy, which the package ml_dtypes has."""

from mindspore import _names

_missing = _names.missing(__name__)


def __getattr__(name: str):
    if name != "bfloat16":
        return _missing(name)
    import ml_dtypes  # with the first use: imports stay fast, and it need not be there

    return ml_dtypes.bfloat16


__all__ = ["bfloat16"]  # noqa: F822
