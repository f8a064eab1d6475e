"""What MindSpore's cells have beside muster.Cell's members."""

import functools
import time
from collections import OrderedDict
from collections.abc import MutableMapping

import muster
from mindspore import _cell_state, _device, _names, _tensors

Cell = muster.Cell
_children = Cell.name_cells  # the library's, without what MindSpore's adds


def _hook(kind):
    def register(self, hook_fn):
        from mindspore import _hooks

        return _hooks.register(self, kind, hook_fn)

    def register_forward(self, hook_fn, with_kwargs=False):
        from mindspore import _hooks

        return _hooks.register(self, kind, hook_fn, with_kwargs)

    register = register_forward if kind.startswith("forward") else register
    register.__doc__ = f"Calls hook_fn with each call of the cell ({kind}); the answer's remove() ends it."
    register.__name__ = f"register_{kind}_hook"
    return register


class Found(list):
    """What a walk over a cell finds: a list, and the iterator that MindSpore gives. next() takes one after
    the other, and a loop takes what is left then."""

    __slots__ = ("_rest",)

    def __iter__(self):
        return self._rest if hasattr(self, "_rest") else super().__iter__()

    def __next__(self):
        if not hasattr(self, "_rest"):
            self._rest = super().__iter__()
        return next(self._rest)


_get_parameters, _parameters_and_names = Cell.get_parameters, Cell.parameters_and_names
_cells_and_names = Cell.cells_and_names


def get_parameters(self, expand=True):
    """All parameters of the tree, each once, in the order of insertion; without `expand` only its own."""
    return Found(_get_parameters(self, expand))


def parameters_and_names(self, name_prefix="", expand=True):
    """(path, parameter) for each of them."""
    return Found(_parameters_and_names(self, name_prefix, expand))


def cells_and_names(self, cells=None, name_prefix=""):
    """(path, cell) for this cell and all below, each once, but for those in the set `cells`, which takes the
    others. A string in its place is the prefix."""
    if isinstance(cells, str):
        return Found(_cells_and_names(self, cells))
    return Found(_walk(self, cells, name_prefix) if cells else _cells_and_names(self, name_prefix))


def _walk(cell, seen: set, path: str):
    if cell in seen:
        return
    seen.add(cell)
    yield path, cell
    for name, child in _children(cell).items():
        yield from _walk(child, seen, f"{path}.{name}" if path else name)


def apply(self, fn):
    """Calls fn(cell) for all cells below, then for this one. Gives the cell."""
    for cell in self.cells():
        cell.apply(fn)
    fn(self)
    return self


def _requires_grad(self) -> bool:
    return self.__dict__.get("_requires_grad", False)


def _set_requires_grad(self, value: bool) -> None:
    self.__dict__["_requires_grad"] = value
    muster._core._record_calls(self, bool(value))


def set_grad(self, requires_grad=True):
    """A GradOperation for the inputs of the last call uses its forward pass. Gives the cell."""
    self.requires_grad = requires_grad
    return self


def _phase(self) -> str:
    return self.__dict__.get("_phase", "train")


def _set_phase(self, value: str) -> None:
    self.__dict__["_phase"] = value


_set_train = Cell.set_train


def set_train(self, mode=True):
    """Training, or not, for this cell and all below; `phase` follows. Gives the cell."""
    self.phase = "train" if mode else "predict"
    return _set_train(self, bool(mode))


def check_names(self) -> None:
    """ValueError when two parameters have one name."""
    names = set()
    for parameter in self.get_parameters():
        if parameter.name in names:
            raise ValueError(f"two parameters of {type(self).__name__} have the name '{parameter.name}'")
        names.add(parameter.name)


def _unchanging(name: str, why: str):
    def method(self, *args, **kwargs):
        _device.note_once(f"note: Cell.{name}() has no effect: {why}")
        return self

    method.__doc__ = f"Changes nothing: {why}."
    method.__name__ = name
    return method


def _silent(name: str, why: str):
    def method(self, *args, **kwargs):
        return None

    method.__doc__ = f"Changes nothing: {why}."
    method.__name__ = name
    return method


def _refused(name: str):
    def method(self, *args, **kwargs):
        raise NotImplementedError(_names.sentence(f"mindspore.nn.Cell.{name}"))

    method.__doc__ = "Not provided yet: raises NotImplementedError."
    method.__name__ = name
    return method


_recompute = muster.Cell.recompute


def recompute(self, **kwargs) -> None:
    """The backward pass computes again what the cell computes, instead of keeping it: the same bits, more
    time, less memory. What takes part in collective calls or writes parameters is kept, whatever the
    arguments say.

    Raises:
        TypeError: An argument is not True or False.
        ValueError: There is no such argument.
    """
    for name, value in kwargs.items():
        if name not in (
            "mp_comm_recompute",
            "parallel_optimizer_comm_recompute",
            "recompute_slice_activation",
        ):
            raise ValueError(f"Cell.recompute: there is no argument {name!r}")
        if not isinstance(value, bool):
            raise TypeError(f"Cell.recompute: {name} is True or False, not {value!r}")
    _recompute(self)


def cast_param(self, param):
    """The parameter as it is: what computes in lower precision casts it."""
    return param


def cast_inputs(self, inputs, dst_type):
    """The floating tensors of a tuple in another dtype."""
    is_floating = (muster.float32, muster.float64, muster.bfloat16, getattr(muster, "float16", None))
    return tuple(each.astype(dst_type) if each.dtype in is_floating else each for each in inputs)


_init_parameters_data = muster.Cell.init_parameters_data


def init_parameters_data(self, auto_parallel_mode=False):
    """Makes the elements of all parameters now. Gives each parameter by itself."""
    made = _init_parameters_data(self, auto_parallel_mode).values()
    return {parameter: parameter for parameter in made}


def get_inputs(self):
    """What set_inputs() was given."""
    return self.__dict__.get("_inputs")


def set_inputs(self, *inputs, **kwargs) -> None:
    """Notes them: each shape is traced by itself."""
    self.__dict__["_inputs"] = inputs or kwargs


def get_flags(self):
    """What add_flags() was given."""
    return self.__dict__.setdefault("_flags", {})


def add_flags(self, **flags):
    """Notes them; they change nothing. Gives the cell."""
    self.get_flags().update(flags)
    for name, value in flags.items():
        self.__dict__[name] = value
    return self


def add_flags_recursive(self, **flags):
    """The same for all cells below, too."""
    for _, cell in self.cells_and_names():
        cell.add_flags(**flags)
    return self


def compile(self, *args, **kwargs) -> None:
    """Runs the cell once, which makes its plan; parameters keep their values where they are whole."""
    kept = [(parameter, _values_of(parameter)) for parameter in self.get_parameters()]
    self(*args, **kwargs)
    for parameter, values in kept:
        if values is not None:
            parameter.set_data(muster.Tensor(values))


def _values_of(parameter):
    """A copy; None where this worker has not all of it."""
    if _tensors.is_served_table(parameter):
        return None
    try:
        return parameter.asnumpy().copy()
    except ValueError:  # other workers have it, or pieces of it
        return None


def compile_and_run(self, *args, **kwargs):
    """What the call gives."""
    return self(*args, **kwargs)


def _ordered(name: str):
    """A method of the library whose dict is an OrderedDict in MindSpore."""
    of_library = getattr(Cell, name)

    @functools.wraps(of_library)
    def method(self, *args, **kwargs):
        return OrderedDict(of_library(self, *args, **kwargs))

    return method


def infer_param_pipeline_stage(self) -> list:
    """The parameters of this stage: all."""
    return list(self.get_parameters())


def _set_cell_type(self, value) -> None:
    self.__dict__["_cell_type"] = value


def offload(self, *args, **kwargs) -> None:
    """Changes nothing: memory is main memory."""


def buffers(self, recurse=True):
    """The tensors of register_buffer() of this cell and of those below."""
    return iter([tensor for _, tensor in self.named_buffers(recurse=recurse)])


def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
    """(name, tensor) of the same."""
    found = []
    for path, cell in self.cells_and_names(prefix) if recurse else [(prefix, self)]:
        for name in _cell_state.buffer_names(cell):
            found.append((f"{path}.{name}" if path else name, getattr(cell, name)))
    return iter([(name, tensor) for name, tensor in found if tensor is not None])


def _require_name(call, name) -> None:
    """Of an attribute that `call` makes."""
    if not isinstance(name, str):
        raise TypeError(f"{call}(): a name is a string, not {name!r}")
    if not name or "." in name:
        raise KeyError(f'{call}(): a name is not empty and may not contain ".", unlike {name!r}')


def _taken(call, cell, name) -> KeyError:
    return KeyError(f"{call}(): {type(cell).__name__} has an attribute {name!r}: take another name")


def register_buffer(self, name, tensor, persistent=True) -> None:
    """A tensor that belongs to the cell and is not trained.

    Raises:
        TypeError: `name` is no string, or `tensor` neither a Tensor nor None.
        KeyError: `name` is empty or has a dot, or the cell has another attribute of this name.
    """
    _require_name("register_buffer", name)
    if name not in _cell_state.buffer_names(self) and hasattr(self, name):
        raise _taken("register_buffer", self, name)
    if tensor is not None and not isinstance(tensor, muster.Tensor):
        raise TypeError(f"register_buffer() takes a Tensor or None, not {type(tensor).__name__}")
    self.__dict__.setdefault("_buffers", {})[name] = persistent
    setattr(self, name, tensor)


def get_buffer(self, target):
    """The tensor of register_buffer() at a path."""
    path, _, name = target.rpartition(".")
    cell = self.get_sub_cell(path)
    if name not in _cell_state.buffer_names(cell):
        raise AttributeError(f"'{type(cell).__name__}' has no attribute '{name}' that is a buffer")
    return getattr(cell, name)


_insert_child = Cell.insert_child_to_cell


def insert_child_to_cell(self, child_name, child_cell) -> None:
    """Adds a child, which is an attribute too; None leaves the attribute empty.

    Raises:
        TypeError: `child_name` is no string, or `child_cell` neither a cell nor None.
        KeyError: `child_name` is empty or has a dot, or the cell has another attribute of this name.
    """
    _require_name("insert_child_to_cell", child_name)
    if getattr(self, child_name, None) is not None and child_name not in _children(self):
        raise _taken("insert_child_to_cell", self, child_name)
    if child_cell is None:
        setattr(self, child_name, None)
    else:
        _insert_child(self, child_name, child_cell)


class _OwnParameters(MutableMapping):
    """The parameters of a cell alone, by the names of its attributes: what is written reaches the cell."""

    def __init__(self, cell):
        self._cell = cell

    def _found(self) -> dict:
        return dict(self._cell.parameters_and_names(expand=False))

    def __getitem__(self, name):
        return self._found()[name]

    def __setitem__(self, name, value) -> None:
        setattr(self._cell, name, value)

    def __delitem__(self, name) -> None:
        if name not in self:
            raise KeyError(name)
        delattr(self._cell, name)

    def __iter__(self):
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())

    def __repr__(self) -> str:
        return repr(self._found())


class _OwnCells(_OwnParameters):
    """The cells that are attributes of a cell, or the places of a list of cells, likewise."""

    def _found(self) -> dict:
        return dict(_children(self._cell))


def get_sub_cell(self, target):
    """The cell at a path, as 'block.0.fc'; this one for ''."""
    cell = self
    for name in target.split(".") if target else ():
        children = cell.name_cells()
        if name not in children:
            raise AttributeError(f"{type(cell).__name__} has no attribute '{name}' that is a cell")
        cell = children[name]
    return cell


def get_parameter(self, target):
    """The parameter at a path, as 'block.0.fc.weight'."""
    path, _, name = target.rpartition(".")
    return dict(self.get_sub_cell(path).parameters_and_names(expand=False))[name]


def generate_scope(self) -> None:
    """Names the cells below: "Default/block-SequentialCell/0-Dense"."""
    _name_scopes(self, "Default")


def _name_scopes(cell, above: str) -> None:
    for name, child in cell.name_cells().items():
        child.__dict__["_scope"] = scope = f"{above}/{name}-{type(child).__name__}"
        _name_scopes(child, scope)


def get_scope(self):
    """What generate_scope() named the cell; None before."""
    return self.__dict__.get("_scope")


def parameters_broadcast_dict(self, recurse=True):
    """The parameters by name, all of which begin equal on all workers; None where there are none."""
    return OrderedDict((each.name, each) for each in self.get_parameters(expand=recurse)) or None


def update_cell_type(self, cell_type) -> None:
    """Notes it: nothing here asks for it."""
    self.cell_type = cell_type


def _kept(name: str, make):
    """A property that holds what it is set to, and what `make` makes before."""
    place = f"_kept_{name}"

    def get(self):
        return self.__dict__.setdefault(place, make())

    def put(self, value):
        self.__dict__[place] = value

    return property(get, put, doc="Holds what it is set to; nothing here asks for it.")


def _stage(self):
    from mindspore.parallel import _pipeline

    return _pipeline.stage_of(self)


def _set_stage(self, stage):
    from mindspore.parallel import _pipeline

    _pipeline.set_stage(self, stage)


def _shard(self, *args, **kwargs):
    from mindspore.parallel import _strategies

    return _strategies.shard_cell(self, *args, **kwargs)


# What MindSpore's compiler and its divided networks keep with a cell, and what each begins as.
_KEPT = {
    "_amp_level": str,  # set by amp.auto_mixed_precision
    "compile_cache": set,
    "create_time": time.time_ns,
    "exist_names": set,
    "exist_objs": set,
    "parallel_parameter_merge_net_dict": dict,
    "parallel_parameter_name_list": tuple,
    "parameter_layout_dict": dict,
    "phase_cache": dict,
}


def set_comm_fusion(self, fusion_type, recurse=True):
    """Notes which gradients travel together (`Parameter.comm_fusion`): they are joined by size, see
    set_auto_parallel_context(comm_fusion=...). Gives the cell.

    Raises:
        TypeError, ValueError: `fusion_type` is no whole number from 0.
    """
    if isinstance(fusion_type, bool) or not isinstance(fusion_type, int):
        raise TypeError(f"set_comm_fusion: fusion_type is a whole number, not {fusion_type!r}")
    if fusion_type < 0:
        raise ValueError(f"set_comm_fusion: fusion_type is a number from 0, not {fusion_type}")
    _device.note_once(
        "note: Cell.set_comm_fusion() has no effect: gradients travel together by their size, as "
        "set_auto_parallel_context(comm_fusion=...) says"
    )
    for parameter in self.trainable_params(recurse):
        parameter.comm_fusion = fusion_type
    return self


_set_param_ps = Cell.set_param_ps


def set_param_ps(self, recurse=True, init_in_server=False) -> None:
    """Marks the trainable parameters: they live on parameter servers. A process of a job that has called no
    init() joins it here."""
    from mindspore import communication

    communication.join_servers()
    _set_param_ps(self, recurse, init_in_server)
    for parameter in self.trainable_params(recurse):
        parameter.is_param_ps = True


def _flatten_weights(self, fusion_size=0) -> None:
    """Changes nothing: gradients are joined by size (comm_fusion)."""


_MEMBERS = {
    "get_parameters": get_parameters,
    "parameters_and_names": parameters_and_names,
    "cells_and_names": cells_and_names,
    "apply": apply,
    "set_grad": set_grad,
    "check_names": check_names,
    "check_names_and_types": check_names,
    "check_names_and_refcount_for_flatten_weights": check_names,
    "recompute": recompute,
    "cast_param": cast_param,
    "cast_inputs": cast_inputs,
    "init_parameters_data": init_parameters_data,
    "get_inputs": get_inputs,
    "set_inputs": set_inputs,
    "get_flags": get_flags,
    "add_flags": add_flags,
    "add_flags_recursive": add_flags_recursive,
    "compile": compile,
    "compile_and_run": compile_and_run,
    "infer_param_pipeline_stage": infer_param_pipeline_stage,
    "offload": offload,
    **_cell_state.MEMBERS,
    "buffers": buffers,
    "named_buffers": named_buffers,
    "register_buffer": register_buffer,
    "get_buffer": get_buffer,
    "get_sub_cell": get_sub_cell,
    "get_parameter": get_parameter,
    "insert_child_to_cell": insert_child_to_cell,
    "_params": property(_OwnParameters),
    "_cells": property(_OwnCells),
    "flatten_weights": _flatten_weights,
    **{name: _kept(name, make) for name, make in _KEPT.items()},
    "generate_scope": generate_scope,
    "get_scope": get_scope,
    "parameters_broadcast_dict": parameters_broadcast_dict,
    "check_names_and_refresh_name": check_names,
    "update_cell_type": update_cell_type,
    "update_cell_prefix": _silent("update_cell_prefix", "parameters are named by their places"),
    "remove_redundant_parameters": _silent("remove_redundant_parameters", "no worker has a parameter twice"),
    "set_data_parallel": _silent("set_data_parallel", "networks are divided by place()"),
    "set_jit_config": _silent("set_jit_config", "code is traced, not parsed"),
    "jit_config_dict": property(lambda self: {}),
    "set_boost": _unchanging("set_boost", "there is no boost of the device's"),
    "set_comm_fusion": set_comm_fusion,
    "set_param_ps": set_param_ps,
    "set_parallel_input_with_inputs": _silent("set_parallel_input_with_inputs", "inputs are what they are"),
    "set_broadcast_flag": _unchanging("set_broadcast_flag", "parameters begin equal on all workers"),
    "set_auto_parallel": _unchanging("set_auto_parallel", "networks are divided by place()"),
    "enable_backward_hook": property(lambda self: "_hooks" in self.__dict__),
    "set_param_fl": _refused("set_param_fl"),
    "get_func_graph_proto": _refused("get_func_graph_proto"),
    "shard": _shard,
    "bprop_debug": property(lambda self: False, lambda self, value: None),
    "requires_grad": property(_requires_grad, _set_requires_grad),
    "phase": property(_phase, _set_phase),
    "set_train": set_train,
    "name_cells": _ordered("name_cells"),
    "parameters_dict": _ordered("parameters_dict"),
    "cell_type": property(lambda self: self.__dict__.get("_cell_type"), _set_cell_type),
    "register_forward_pre_hook": _hook("forward_pre"),
    "register_forward_hook": _hook("forward"),
    "register_backward_hook": _hook("backward"),
    "register_backward_pre_hook": _hook("backward_pre"),
    "pipeline_stage": property(_stage, _set_stage),
    "sharding": property(lambda self: None),
}


def install() -> None:
    """Cells of both packages are one class, so both have these members once mindspore is imported."""
    for name, member in _MEMBERS.items():
        setattr(Cell, name, member)


install()
