"""Names that scripts take from the modules inside of MindSpore's nn."""

import functools

import muster

_Loss = muster.nn.LossBase


def opt_init_args_register(fn):
    """A decorator of an optimizer's __init__: keeps its arguments by name as `init_args`."""

    @functools.wraps(fn)
    def init(self, *args, **kwargs):
        names = fn.__code__.co_varnames[1 : fn.__code__.co_argcount]
        defaults = fn.__defaults__ or ()
        given = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        given |= dict(zip(names, args, strict=False)) | kwargs
        fn(self, *args, **kwargs)
        self.init_args = {name: given[name] for name in names if name in given and name != "params"}

    return init


class _VirtualDatasetCell(muster.Cell):
    """The network, with batches that are divided over the workers: nothing is to be done for that here."""

    def __init__(self, backbone):
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs):
        """What the network gives."""
        return self._backbone(*inputs)


__all__ = ["opt_init_args_register"]
