"""mindspore._extends: what cells of libraries are registered with."""

import functools
import inspect

from mindspore import _names


def cell_attr_register(fn=None, attrs=None):
    """A decorator of `__init__` that keeps what the cell was made with as `cell_init_args`.

    Args:
        fn: The `__init__`; None where the decorator is called with `attrs`.
        attrs: Attributes, by one name or several, whose values are kept instead of the arguments.
    """
    if attrs is not None and not isinstance(attrs, (str, list)):
        raise ValueError(f"cell_attr_register: attrs is a name or a list of names, not {attrs!r}")

    def decorate(init):
        @functools.wraps(init)
        def keep(self, *args, **kwargs):
            init(self, *args, **kwargs)
            if attrs is None:
                arguments = list(inspect.signature(init).bind(self, *args, **kwargs).arguments.values())[1:]
            else:
                names = [attrs] if isinstance(attrs, str) else attrs
                arguments = [getattr(self, name) for name in names if hasattr(self, name)]
            self.cell_init_args = type(self).__name__ + str(arguments)

        return keep

    return decorate if fn is None else decorate(fn)


__all__ = ["cell_attr_register"]
__getattr__ = _names.missing(__name__)
