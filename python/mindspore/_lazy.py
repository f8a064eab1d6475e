"""numpy, loaded with its first use: that takes longer than all of mindspore, and many scripts need none."""

import sys


class _Numpy:
    def __getattr__(self, name):
        import numpy

        value = getattr(numpy, name)
        setattr(self, name, value)  # the next look at it is an ordinary one
        return value


TYPE_CHECKING = False  # typing takes a while to import
if TYPE_CHECKING:
    import numpy as numpy
else:
    numpy = sys.modules.get("numpy") or _Numpy()
