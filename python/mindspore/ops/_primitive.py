"""Ops as classes: made once with their settings, called with tensors. `P.ReduceSum(keep_dims=True)(x, 1)`."""

import sys

from mindspore import _device, _kinds, _names
from mindspore.ops import _inputs
from muster import Tensor, _core

# What classes of convolutions and of their gradients are made with, behind sizes.
CONVOLUTION = {
    "pad_mode": "valid",
    "pad": 0,
    "pad_list": None,
    "mode": 1,
    "stride": 1,
    "dilation": 1,
    "group": 1,
    "data_format": "NCHW",
}


class _OfSettings:
    """`inspect.signature` of a class that is made with settings: their names and defaults."""

    def __get__(self, instance, owner):
        defaults = vars(owner).get("_defaults")
        if instance is not None or defaults is None:
            raise AttributeError("__signature__")
        from inspect import Parameter, Signature

        return Signature(
            [
                Parameter(
                    name,
                    Parameter.POSITIONAL_OR_KEYWORD,
                    default=Parameter.empty if default is ... else default,
                )
                for name, default in defaults.items()
            ]
        )


class Primitive:
    """An op and its settings. A subclass keeps them as attributes and computes in `compute`."""

    _owner = None  # a reference to the built-in cell whose primitive this is
    _place = None
    _strategy = None
    _recomputes = False
    _asks_for = None  # the accelerator of set_device()
    _kinds_of_inputs = ""
    __signature__ = _OfSettings()

    def __init_subclass__(cls, **settings):
        super().__init_subclass__(**settings)
        if cls.__module__.startswith("mindspore."):
            cls._kinds_of_inputs = _inputs.of(cls.__name__)
            _kinds.watch(f"ops.{cls.__name__}", cls)

    def __init__(self, name: str | None = None):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{type(self).__name__}: a primitive's name is a string, not {name!r}")
        self.name = name or type(self).__name__

    def compute(self, *inputs):
        """What the op gives for these inputs."""
        raise NotImplementedError(_names.sentence(f"mindspore.ops.{self.name}"))

    def __call__(self, *inputs, **named):
        if named:
            from mindspore.ops import _call_names

            inputs = _call_names.inputs_of(self, inputs, named)
        if self._strategy is not None:
            return self._strategy.call(self._call, inputs, self.name, self)
        return self._call(*inputs)

    def _call(self, *inputs):
        if self._kinds_of_inputs:
            _inputs.check(type(self).__name__, self._kinds_of_inputs, inputs)
        if self._asks_for is not None:
            _device.run_on(self._asks_for, f"{self.name}.set_device()")
        if self._recomputes:
            return _core.recompute(_core._call_primitive, self._place, self.compute, inputs)
        return _core._call_primitive(self._place, self.compute, inputs)

    def add_prim_attr(self, name: str, value) -> "Primitive":
        """Keeps an attribute that MindSpore's compiler would read."""
        setattr(self, name, value)
        return self

    add_attr = add_prim_attr

    def del_prim_attr(self, name: str) -> "Primitive":
        """Forgets an attribute."""
        self.__dict__.pop(name, None)
        return self

    def set_device(self, device_target: str) -> "Primitive":
        """Where the op runs: 'CPU' is where it does; 'GPU' and 'Ascend' run there, too, and a call says so.

        Raises:
            TypeError: `device_target` is no string.
            ValueError: There is no such device.
        """
        if not isinstance(device_target, str):
            raise TypeError(f"set_device: device_target is a string, not {device_target!r}")
        self._asks_for = _device.accelerator(device_target, f"{self.name}.set_device()")
        return self.add_prim_attr("primitive_target", device_target)

    def set_stage(self, stage: int) -> "Primitive":
        """Keeps a number that MindSpore's compiler would read: cells have stages (`pipeline_stage`)."""
        return self.add_prim_attr("stage", stage)

    def init_prim_io_names(self, inputs, outputs) -> None:
        """The names of inputs and outputs, which nothing here asks for."""

    def _obeying_cell(self):
        """The built-in cell that computes by itself what this primitive of it says, or None."""
        cell = self._owner() if self._owner is not None else None
        if cell is None:
            return None
        from mindspore.parallel import _cell_strategies

        return cell if _cell_strategies.is_of_library(type(cell)) else None

    def __getstate__(self) -> dict:
        """A copy is of the cell that has it."""
        return {name: value for name, value in vars(self).items() if name != "_owner"}

    def place(self, role: str, rank: int) -> "Primitive":
        """Where its calls run in a job that divides its network over the workers: muster.nn.Cell.place."""
        if self._obeying_cell() is not None:
            self._obeying_cell().place(role, rank)
        caller = sys._getframe(1)
        name = getattr(self, "name", type(self).__name__)
        self._place = _core._place_primitive(name, role, rank, caller.f_code.co_filename, caller.f_lineno)
        return self

    def shard(self, in_strategy=None, out_strategy=None) -> "Primitive":
        """How its tensors are to be divided over the workers: checked here, and against the shapes of a call.

        A tuple with one tuple of cuts, or one Layout, for each tensor. TypeError and ValueError as
        mindspore.shard.
        """
        from mindspore.parallel import _cell_strategies, _strategies

        name = getattr(self, "name", type(self).__name__)
        strategy = _strategies.Strategy(name, *self._of_tensors(in_strategy, out_strategy))
        if name in ("MatMul", "BatchMatMul") and not getattr(self, "enable_nd_tp", False):
            transposes = (getattr(self, "transpose_a", False), getattr(self, "transpose_b", False))
            _strategies.check_matmul(name, strategy, *transposes)
        self._strategy = strategy
        if self._obeying_cell() is not None:
            _cell_strategies.obey(self._obeying_cell())
        return self

    def _of_tensors(self, in_strategy, out_strategy):
        """The strategies as those of the tensors that the op takes and gives."""
        return in_strategy, out_strategy

    def recompute(self, mode: bool = True) -> "Primitive":
        """The backward pass computes again what it needs of the op, instead of keeping it."""
        if not isinstance(mode, bool):
            raise TypeError(f"recompute: mode is True or False, not {mode!r}")
        self._recomputes = mode
        if self._obeying_cell() is not None:
            from mindspore import _cells

            _cells._recompute(self._obeying_cell(), mode)
        return self

    def __repr__(self) -> str:
        settings = ", ".join(
            f"{name}={value}"
            for name, value in vars(self).items()
            if name != "name" and not name.startswith("_")
        )
        return f"Prim[{self.name}]" + (f"<{settings}>" if settings else "")


def without_settings(name: str, function) -> type[Primitive]:
    """The class of an op that is just a function."""

    def __init__(self, *args, **kwargs):  # noqa: N807 - it becomes the class's own
        if args or kwargs:
            given = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())])
            raise TypeError(
                f"{name} has no settings, not {given}: give its inputs where it is called, {name}()(...)"
            )
        Primitive.__init__(self)

    def compute(self, *inputs):
        return function(*inputs)

    members = {"__init__": __init__, "compute": compute, "__doc__": function.__doc__}
    return type(name, (Primitive,), {**members, "_settings": (), "_defaults": {}})


def of_row(name: str, settings: dict, function) -> type[Primitive]:
    """The class that an op row names. `settings` holds their defaults, `...` where there is none.

    `function` takes the inputs, and the settings by name.
    """

    def __init__(self, *args, **kwargs):  # noqa: N807 - it becomes the class's own
        Primitive.__init__(self)
        vars(self).update(_chosen(name, settings, args, kwargs))

    def compute(self, *inputs):
        return function(*inputs, **{each: getattr(self, each) for each in settings})

    members = {"__init__": __init__, "compute": compute, "__doc__": function.__doc__}
    return type(name, (Primitive,), {**members, "_settings": tuple(settings), "_defaults": settings})


def settings_of(primitive: type[Primitive]) -> tuple[str, ...]:
    """The names of what objects of this class are made with, in their order."""
    known = getattr(primitive, "_settings", None)
    if known is None:
        import inspect

        parameters = list(inspect.signature(primitive.__init__).parameters.values())[1:]
        known = tuple(each.name for each in parameters if each.kind == each.POSITIONAL_OR_KEYWORD)
    return known


def class_keeper(made: dict):
    """A decorator `(name, **settings)` that keeps in `made` the class of a function of the inputs, then the
    settings by name."""

    def of_name(name: str, **settings):
        def keep(function):
            made[name] = of_row(name, settings, function) if settings else without_settings(name, function)
            return function

        return keep

    return of_name


def sizes_of(shape) -> tuple:
    """The sizes that a tensor or a sequence says."""
    return tuple(shape.asnumpy().tolist()) if isinstance(shape, Tensor) else tuple(shape)


def _chosen(name: str, settings: dict, args: tuple, kwargs: dict) -> dict:
    """The settings of one object."""

    def refuse(what):
        usage = ", ".join(each if value is ... else f"{each}={value!r}" for each, value in settings.items())
        raise TypeError(f"{name}: {what}; it is made as {name}({usage})")

    if len(args) > len(settings):
        refuse(f"{len(args)} arguments were given")
    given = dict(zip(settings, args, strict=False))
    for key, value in kwargs.items():
        if key not in settings:
            refuse(f"there is no argument {key}={value!r}")
        if key in given:
            refuse(f"{key} was given twice")
        given[key] = value
    _kinds.check(f"ops.{name}", given)
    chosen = {**settings, **given}
    for key, value in chosen.items():
        if value is ...:
            refuse(f"{key} is missing")
    return chosen
