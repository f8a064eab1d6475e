"""What a training has learned so far: kept to go back to, and packed for a rank that has none of it."""

import copy

import torch
from torch.nn.parallel import DistributedDataParallel


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
        for group, kept in zip(self._optimizer.param_groups, self._groups, strict=True):
            group.update(copy.deepcopy(kept))


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
    """model: a module, or DistributedDataParallel of one. states: objects with state_dict() by name.

    Raises ValueError for what is not the same on all ranks, or not whole.
    """

    def __init__(self, model, optimizers, states: dict) -> None:
        self._module, self._optimizers, self._states = bare(model), optimizers, states
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
        for name, state in states.items():
            for method in ("state_dict", "load_state_dict"):
                if not callable(getattr(state, method, None)):
                    raise ValueError(
                        f"muster: {name} of recoverable() is a {type(state).__name__} without {method}()"
                    )
        self._copies = _Copies()
        self._optimizer_copies = [_OptimizerCopy(optimizer) for optimizer in optimizers]
        self._kept_states: dict = {}

    @torch.no_grad()
    def keep(self) -> None:
        """For go_back(): as it is now."""
        tensors = [*self._module.parameters(), *self._module.buffers()]
        for optimizer_copy in self._optimizer_copies:
            tensors += optimizer_copy.take()
        self._copies.take(tensors)
        self._kept_states = {name: copy.deepcopy(state.state_dict()) for name, state in self._states.items()}

    @torch.no_grad()
    def go_back(self) -> None:
        """As it was at keep(); without gradients."""
        for optimizer_copy in self._optimizer_copies:
            optimizer_copy.put_back()
        self._copies.put_back()
        for name, state in self._states.items():
            state.load_state_dict(copy.deepcopy(self._kept_states[name]))
        self._drop_gradients()

    def _drop_gradients(self) -> None:
        for parameter in self._module.parameters():
            parameter.grad = None

    def pack(self) -> dict:
        """Refers to the tensors, and copies none."""
        return {
            "parameters": {name: value.detach() for name, value in self._module.named_parameters()},
            "buffers": {name: value.detach() for name, value in self._module.named_buffers()},
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
            "states": {name: state.state_dict() for name, state in self._states.items()},
        }

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
        for optimizer, state in zip(self._optimizers, packed["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        for name, state in packed["states"].items():
            self._states[name].load_state_dict(state)
        self._drop_gradients()


def _check_names(kind: str, own: dict, found: dict) -> None:
    for name in sorted(own.keys() | found.keys()):
        if name not in own or name not in found or own[name] != found[name]:
            raise ValueError(
                f"muster: the {kind} of the job and of this script differ in {name}: "
                f"{found.get(name, 'not there')} and {own.get(name, 'not there')}: start the script as it "
                "was, or remove MS_RECOVERY_PATH to start fresh"
            )
