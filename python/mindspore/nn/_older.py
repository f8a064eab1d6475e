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


class _Kinds(type):
    """The type of a class that stands for several: isinstance(cell, _Conv)."""

    def _members(cls):
        from mindspore import nn

        return tuple(getattr(nn, name) for name in cls._names.split())

    def __instancecheck__(cls, each):
        return isinstance(each, cls._members())

    def __subclasscheck__(cls, kind):
        return issubclass(kind, cls._members())

    def __call__(cls, *args, **kwargs):
        raise TypeError(f"{cls.__name__} stands for {cls._names}: make one of those")


class _BatchNorm(metaclass=_Kinds):
    """What isinstance finds all batch normalizations by."""

    _names = "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm"


class _Conv(metaclass=_Kinds):
    """What isinstance finds all convolutions by."""

    _names = "Conv1d Conv2d Conv3d Conv1dTranspose Conv2dTranspose Conv3dTranspose"


_ACTIVATIONS = """
    softmin Softmin softmax Softmax softmax2d Softmax2d logsoftmax LogSoftmax relu ReLU relu6 ReLU6
    rrelu RReLU silu SiLU tanh Tanh tanhshrink Tanhshrink hardtanh Hardtanh gelu GELU fast_gelu FastGelu
    elu ELU sigmoid Sigmoid softsign Softsign prelu PReLU preluExt PReLUExt leakyrelu LeakyReLU
    hswish HSwish hsigmoid HSigmoid logsigmoid LogSigmoid softshrink SoftShrink hshrink HShrink
    threshold Threshold mish Mish
"""


def __getattr__(name: str):
    if name != "_activation":
        raise AttributeError(name)
    from mindspore import nn

    words = iter(_ACTIVATIONS.split())
    return {name: getattr(nn, kind) for name, kind in zip(words, words, strict=True)}


__all__ = ["opt_init_args_register"]
