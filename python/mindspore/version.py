"""mindspore.version: the version of MindSpore whose names these are."""

from mindspore import __version__ as __version__

__all__ = ["__version__"]
