"""What a training has learned so far: kept to go back to, and packed for a rank that has none of it."""

import copy
import ctypes
import hashlib

import torch
from torch.nn.parallel import DistributedDataParallel

from muster.torch._points import check_readable, pack, unpack


def bare(model: torch.nn.Module) -> torch.nn.Module:
    return model.module if isinstance(model, DistributedDataParallel) else model


class _Copies:
    """Copies of tensors, into the same memory each time."""

    def __init__(self) -> None:
        self._tensors: list[torch.Tensor] = []
        self._copies: list[torch.Tensor] = []

    def take(self, tensors: list[torch.Tensor]) -> None:
        same = len(tensors) == len(self._tensors) and all(
            new is old and new.shape == kept.shape
            for new, old, kept in zip(tensors, self._tensors, self._copies, strict=True)
        )
        if same:
            torch._foreach_copy_(self._copies, tensors)
        else:
            self._tensors, self._copies = tensors, [tensor.detach().clone() for tensor in tensors]

    def put_back(self) -> None:
        if self._tensors:
            torch._foreach_copy_(self._tensors, self._copies)


class _OptimizerCopy:
    """The state of an optimizer beside its tensors: which there are, plain values, settings of groups."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer

    def take(self) -> list[torch.Tensor]:
        """Keeps what is no tensor; the tensors, which are kept elsewhere."""
        state = self._optimizer.state
        self._entries = {
            parameter: {
                name: value if isinstance(value, torch.Tensor) else copy.deepcopy(value)
                for name, value in values.items()
            }
            for parameter, values in state.items()
        }
        self._groups = [
            {name: copy.deepcopy(value) for name, value in group.items() if name != "params"}
            for group in self._optimizer.param_groups
        ]
        self._parameters = [list(group["params"]) for group in self._optimizer.param_groups]
        return [
            value
            for values in self._entries.values()
            for value in values.values()
            if isinstance(value, torch.Tensor)
        ]

    def put_back(self) -> None:
        self._optimizer.state.clear()
        for parameter, values in self._entries.items():
            self._optimizer.state[parameter] = {
                name: value if isinstance(value, torch.Tensor) else copy.deepcopy(value)
                for name, value in values.items()
            }
        groups = self._optimizer.param_groups
        del groups[len(self._groups) :]  # those that the body has added
        for group, kept, parameters in zip(groups, self._groups, self._parameters, strict=True):
            group.update(copy.deepcopy(kept), params=list(parameters))


class _ModuleCopy:
    """What a module has beside the values of its tensors: which buffers, and its settings()."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module

    def take(self) -> list[torch.Tensor]:
        """The tensors, which are kept elsewhere."""
        self._buffers = [(module, dict(module._buffers)) for module in self._module.modules()]
        self._settings = settings(self._module)
        return [*self._module.parameters(), *self._module.buffers()]

    def put_back(self) -> None:
        for module, buffers in self._buffers:
            module._buffers.update(buffers)  # a body may assign a new tensor to one
        set_settings(self._module, self._settings)


def settings(module: torch.nn.Module) -> dict:
    """Which of its modules are in train(), which of its parameters learn, and what modules keep in
    get_extra_state(): a script may change all of these."""
    return {
        "extra": {
            name: copy.deepcopy(each.get_extra_state())
            for name, each in module.named_modules()
            if type(each).get_extra_state is not torch.nn.Module.get_extra_state
        },
        "training": {name: each.training for name, each in module.named_modules()},
        "learns": {name: each.requires_grad for name, each in module.named_parameters()},
    }


def set_settings(module: torch.nn.Module, kept: dict) -> None:
    for name, each in module.named_modules():
        each.training = kept["training"].get(name, each.training)
        if name in kept["extra"]:
            each.set_extra_state(copy.deepcopy(kept["extra"][name]))
    for name, each in module.named_parameters():
        learns = kept["learns"].get(name, each.requires_grad)
        if each.requires_grad != learns:
            each.requires_grad_(learns)


def _check_optimizer(optimizer, owned: set[int]) -> None:
    name = type(optimizer).__name__
    if name == "ZeroRedundancyOptimizer":
        raise ValueError(
            "muster: recoverable() needs a state that all ranks have, and ZeroRedundancyOptimizer has a part "
            "on each: use its optimizer_class itself"
        )
    others = sum(
        id(parameter) not in owned for group in optimizer.param_groups for parameter in group["params"]
    )
    if others:
        raise ValueError(
            f"muster: {name} has {others} parameters that the model of recoverable() has not: give it all "
            "models, as nn.ModuleList([first, second])"
        )


class TrainingState:
    """model: a module, or DistributedDataParallel of one. states: objects with state_dict() by name. own:
    such of which each rank has its own.

    Raises ValueError for what is not the same on all ranks, or not whole.
    """

    def __init__(self, model, optimizers, states: dict, own: dict) -> None:
        self._module, self._optimizers, self._states = bare(model), optimizers, states
        self._own = own
        owned = set()
        for name, parameter in self._module.named_parameters():
            owned.add(id(parameter))
            if type(parameter.data).__name__ == "DTensor":
                raise ValueError(
                    f"muster: recoverable() needs a model that all ranks have, and of {name} each has a part "
                    "(a DTensor): it is for DistributedDataParallel"
                )
        for optimizer in optimizers:
            _check_optimizer(optimizer, owned)
        for name, state in (*states.items(), *own.items()):
            for method in ("state_dict", "load_state_dict"):
                if not callable(getattr(state, method, None)):
                    raise ValueError(
                        f"muster: {name} of recoverable() is a {type(state).__name__} without {method}()"
                    )
        self._copies = _Copies()
        self._module_copy = _ModuleCopy(self._module)
        self._optimizer_copies = [_OptimizerCopy(optimizer) for optimizer in optimizers]
        self._kept_states: dict = {}
        self._kept_own: dict = {}

    @torch.no_grad()
    def keep(self) -> None:
        """For go_back(): as it is now."""
        tensors = self._module_copy.take()
        for optimizer_copy in self._optimizer_copies:
            tensors += optimizer_copy.take()
        self._copies.take(tensors)
        self._kept_states = {name: copy.deepcopy(state.state_dict()) for name, state in self._states.items()}
        self._kept_own = copy.deepcopy(self._own_values())

    @torch.no_grad()
    def go_back(self) -> None:
        """As it was at keep(); without gradients."""
        for optimizer_copy in self._optimizer_copies:
            optimizer_copy.put_back()
        self._module_copy.put_back()
        self._copies.put_back()
        for name, state in self._states.items():
            state.load_state_dict(copy.deepcopy(self._kept_states[name]))
        for name, state in self._own.items():
            state.load_state_dict(copy.deepcopy(self._kept_own[name]))
        self._drop_gradients()

    def _drop_gradients(self) -> None:
        for parameter in self._module.parameters():
            parameter.grad = None

    def digests(self) -> dict[str, int]:
        """By name of a state: a number that says what it holds."""
        return {name: _digest(state.state_dict()) for name, state in self._states.items()}

    def check_readable(self) -> None:
        """Raises ValueError, naming it, for what a rank that comes back could not read."""
        for name, state in self._states.items():
            check_readable(state.state_dict(), f"the state {name!r} of recoverable()")
        for name, state in self._own_values().items():
            check_readable(state, f"the state {name!r} of recoverable(own_states=)")
        for optimizer in self._optimizers:
            check_readable(optimizer.state_dict(), f"the state of {type(optimizer).__name__}")
        check_readable(settings(self._module), "what get_extra_state() gives")

    def pack(self) -> dict:
        """Refers to the tensors, and copies none."""
        return {
            "parameters": {name: value.detach() for name, value in self._module.named_parameters()},
            "buffers": {name: value.detach() for name, value in self._module.named_buffers()},
            "settings": settings(self._module),
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
            "groups": [self._names_of_groups(optimizer) for optimizer in self._optimizers],
            "states": {name: state.state_dict() for name, state in self._states.items()},
        }

    def _own_values(self) -> dict:
        return {name: _detached(state.state_dict()) for name, state in self._own.items()}

    def pack_own(self) -> bytes:
        return pack(self._own_values()) if self._own else b""

    def load_own(self, packed: bytes) -> None:
        values = unpack(packed, "what this rank had in own_states") if packed else {}
        _check_names("own_states", dict.fromkeys(self._own), dict.fromkeys(values))
        for name, state in self._own.items():
            state.load_state_dict(values[name])

    def _names_of_groups(self, optimizer) -> list[list[str]]:
        names = {id(parameter): name for name, parameter in self._module.named_parameters()}
        return [[names[id(each)] for each in group["params"]] for group in optimizer.param_groups]

    @torch.no_grad()
    def load(self, packed: dict) -> None:
        """Raises ValueError where it is that of another script."""
        for kind, own in (
            ("parameters", dict(self._module.named_parameters())),
            ("buffers", dict(self._module.named_buffers())),
        ):
            _check_names(
                kind,
                {n: tuple(v.shape) for n, v in own.items()},
                {n: tuple(v.shape) for n, v in packed[kind].items()},
            )
            for name, value in packed[kind].items():
                own[name].copy_(value)
        _check_names("states", dict.fromkeys(self._states), dict.fromkeys(packed["states"]))
        if len(packed["optimizers"]) != len(self._optimizers):
            raise ValueError(
                f"muster: the state has {len(packed['optimizers'])} optimizers, this script "
                f"{len(self._optimizers)}"
            )
        own = dict(self._module.named_parameters())
        groups_of_all = packed.get("groups") or [[]] * len(self._optimizers)  # not in older points
        for optimizer, state, groups in zip(
            self._optimizers, packed["optimizers"], groups_of_all, strict=True
        ):
            for names in groups[len(optimizer.param_groups) :]:  # that the body has added since
                optimizer.add_param_group({"params": [own[name] for name in names]})
            _load_optimizer(optimizer, state)
        set_settings(self._module, packed.get("settings") or settings(self._module))
        for name, state in packed["states"].items():
            self._states[name].load_state_dict(state)
        self._drop_gradients()


def _load_optimizer(optimizer, state: dict) -> None:
    """PyTorch's load_state_dict() gives values the dtype of their parameter: of a bfloat16 one they may have
    more bits."""
    optimizer.load_state_dict(state)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, values in state["state"].items():
        loaded = optimizer.state[parameters[index]]
        for name, value in values.items():
            if isinstance(value, torch.Tensor) and loaded[name].dtype != value.dtype:
                loaded[name] = value.clone()


def _detached(value):
    """The same without gradients: those of a step are no part of it."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if type(value) is dict:
        return {name: _detached(each) for name, each in value.items()}
    return type(value)(map(_detached, value)) if type(value) in (list, tuple) else value


def _digest(value) -> int:
    summed = hashlib.sha256()

    def add(value) -> None:
        if isinstance(value, torch.Tensor):
            flat = value.detach().cpu().contiguous()
            summed.update(ctypes.string_at(flat.data_ptr(), flat.nbytes))
        elif isinstance(value, dict):
            for name, each in value.items():
                add(name)
                add(each)
        elif isinstance(value, list | tuple):
            for each in value:
                add(each)
        elif isinstance(value, str | int | float | None):
            summed.update(repr(value).encode())

    add(value)
    return int.from_bytes(summed.digest()[:8], "little", signed=True)


def _check_names(kind: str, own: dict, found: dict) -> None:
    for name in sorted(own.keys() | found.keys()):
        if name not in own or name not in found or own[name] != found[name]:
            raise ValueError(
                f"muster: the {kind} of the job and of this script differ in {name}: "
                f"{found.get(name, 'not there')} and {own.get(name, 'not there')}: start the script as it "
                "was, or remove MS_RECOVERY_PATH to start fresh"
            )
