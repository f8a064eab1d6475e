"""Strategies of the primitives that built-in cells keep (`net.fc.matmul.shard(...)`): the cells divide what
they compute, and their parameters, likewise."""

from mindspore import _names
from muster import ops

_OF_NORM = ("x", "gamma", "beta", "moving_mean", "moving_variance")
# The tensors of each primitive, by the cell's names: "x" is what the cell takes, "y" what it gives.
_TENSORS = {
    "conv2d": ("x", "weight"),
    "conv2d_transpose": ("x", "weight"),
    "matmul": ("x", "weight"),
    "gather": ("embedding_table", "x"),
    "layer_norm": ("x", "gamma", "beta"),
    "bn_train": _OF_NORM,
    "bn_infer": _OF_NORM,
    "prelu": ("x", "w"),
    "bias_add": ("y", "bias"),
}
# MindSpore's cells take all dimensions of what they are called with, but for these last ones, as one.
_LAST = {"Dense": 1, "Embedding": 0}
_made = {}  # by class: that of its cells with strategies
_following_class = {}  # by class: that of its cells which follow a strategy as a whole (Cell.shard)


def obey(cell) -> None:
    """From now on calls of the cell follow the strategies of its primitives. A class of a script whose
    construct calls these primitives does so by itself."""
    kind = type(cell)
    if is_of_library(kind) and kind not in _made.values():
        if kind not in _made:
            _made[kind] = _obeying(kind)
        cell.__class__ = _made[kind]


def follow(cell, strategy) -> None:
    """From now on what the cell takes and gives is divided as the strategy says, wherever it is called."""
    kind = type(cell)
    if kind not in _following_class.values():
        if kind not in _following_class:
            _following_class[kind] = _following_whole(kind)
        cell.__class__ = _following_class[kind]
    cell.__dict__["_strategy"] = strategy


def _following_whole(kind):
    def construct(self, *inputs, **named):
        """What the cell computes, divided over the workers."""
        strategy = self.__dict__["_strategy"]
        return strategy.call(lambda *given: kind.construct(self, *given, **named), inputs, kind.__name__)

    return _subclass(kind, construct)


def is_of_library(kind) -> bool:
    """Whether what cells of this class compute is the library's."""
    owner = next(each for each in kind.__mro__ if "construct" in each.__dict__)
    return owner.__module__.partition(".")[0] in ("muster", "mindspore")


def _obeying(kind):
    def construct(self, *inputs):
        """What the cell computes, divided over the workers."""
        function, x = kind.construct, inputs[0]
        given = {
            name: each for name, each in self.__dict__["_primitives"].items() if each._strategy is not None
        }
        for name, primitive in given.items():
            function = _following(function, name, primitive)
        outer = _joined_dimensions(kind, x, given)
        if outer == 0:
            return function(self, *inputs)
        result = function(self, ops.reshape(x, (-1, *x.shape[outer:])), *inputs[1:])
        return ops.reshape(result, (*x.shape[:outer], *result.shape[1:]))

    return _subclass(kind, construct)


def _subclass(kind, construct):
    """A class that is called as `kind` is, and shown as it."""
    members = {"construct": construct, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), members)


def _following(function, name, primitive):
    """`function` of a cell and its inputs, whose tensors are divided as the primitive's strategy says."""
    tensors, strategy = _TENSORS.get(name, ("x",)), primitive._strategy

    def behind(cell, *inputs):
        given = (function(cell, *inputs), *(getattr(cell, each) for each in tensors[1:]))
        return strategy.call(lambda y, *others: y, given, primitive.name, primitive)

    def divided(cell, x, *others):
        def computed(*parts):
            return function(cell, parts[tensors.index("x")], *others)

        given = tuple(x if each == "x" else getattr(cell, each) for each in tensors)
        return strategy.call(computed, given, primitive.name, primitive)

    return behind if tensors[0] == "y" else divided


def _joined_dimensions(kind, x, given):
    """How many dimensions of x become one, where strategies are for what MindSpore's cell makes of it."""
    last = next((_LAST[each.__name__] for each in kind.__mro__ if each.__name__ in _LAST), None)
    if last is None or len(x.shape) <= last + 1:
        return 0
    for name, primitive in given.items():
        at = next(at for at, each in enumerate(_TENSORS.get(name, ("x",))) if each in ("x", "y"))
        cuts = (primitive._strategy.inputs or ())[at : at + 1]
        if cuts and cuts[0] is not None and len(cuts[0]) == last + 1:
            return len(x.shape) - last
    return 0


__getattr__ = _names.missing(__name__)
