"""What the first steps of a loop show that a death would lose: it is told there, and not by other numbers."""

import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from muster.torch._carried import Carried
from muster.torch._other_weights import OtherWeights

_UNNAMED = (
    "the loop uses {what} that recoverable() is not told of: it begins anew in a rank that comes back, and "
    "the training ends with other numbers: {how}"
)
_NO_UPDATE = (
    "no optimizer has made a step in the first step of recoverable(): gradients that are summed over several "
    "steps are lost with a rank, and the training ends with other numbers than without that death: sum them "
    "within a step, whose batch may be a list of batches"
)
_CARRIED = (
    "a step of the loop takes what the one before has left in {name}: a rank that comes back has none, the "
    "others have that of the step that was cut, and where a step computes with it the training ends with "
    'other numbers: give it as own_states={{"{last}": kept}}, which has state_dict() and load_state_dict()'
)
_ALL_OPTIMIZERS = "give all optimizers, [first, second], and all models, nn.ModuleList([first, second])"
_ALL_WEIGHTS = (
    'states={"average": average} with state_dict() and load_state_dict(), or all models as a ModuleList'
)


def _is_scheduled(optimizer) -> bool:
    """Whether a scheduler of learning rates was made for it: they leave this key in each group."""
    return any("initial_lr" in group for group in optimizer.param_groups)


def _learned(optimizers: list) -> set[int]:
    return {
        id(each) for optimizer in optimizers for group in optimizer.param_groups for each in group["params"]
    }


class FirstSteps:
    """Sees which optimizers make a step from now on. model, optimizers, named: what recoverable() was told
    of."""

    def __init__(self, model, optimizers: list, named: list) -> None:
        self._model, self._optimizers, self._named = model, optimizers, named
        self._is_updated, self._scaler = False, None
        self._told: list[str] = []  # weights, by their names
        self._others: dict[str, None] = {}  # optimizers of other parameters, by their class
        self._weights: OtherWeights | None = None
        self._carried: Carried | None = None
        self._handle = register_optimizer_step_post_hook(self._note)

    def begin(self, count: int) -> None:
        """Called by the loop, where the body of a step begins, behind `count` others."""
        if count == 0 and self._weights is None:
            self._weights = OtherWeights(self._model, self._named)
        if count == 1 and self._carried is None:  # what a first step makes for all others is not carried
            self._carried = Carried(self._model, self._named)

    def _note(self, optimizer, *_) -> None:
        self._is_updated = True
        if _learned([optimizer]) - _learned(self._optimizers):
            self._others[type(optimizer).__name__] = None
        frame = sys._getframe(1)
        while frame is not None and frame.f_code is not torch.amp.GradScaler.step.__code__:
            frame = frame.f_back
        if frame is not None and frame.f_locals["self"].is_enabled():
            self._scaler = frame.f_locals["self"]

    def end(self, count: int) -> list[str]:
        """What is to be said behind `count` steps; a rank that came back says nothing of those before it."""
        self._handle.remove()
        if count == 1:
            return self._told_of_first()
        if count > 2 or self._carried is None:
            return []
        names = [name for name in self._carried.changed() if name not in self._told]
        return [_CARRIED.format(name=name, last=name.rsplit(".", 1)[-1]) for name in names]

    def _told_of_first(self) -> list[str]:
        self._told = self._weights.changed() if self._weights is not None else []
        told = [_UNNAMED.format(what=f"an optimizer ({name})", how=_ALL_OPTIMIZERS) for name in self._others]
        for name in self._told:
            told.append(_UNNAMED.format(what=f"weights that it changes ({name})", how=_ALL_WEIGHTS))
        if self._scaler is not None and all(state is not self._scaler for state in self._named):
            told.append(_UNNAMED.format(what="a GradScaler", how='states={"scaler": scaler}'))
        knows_schedulers = any(hasattr(state, "get_last_lr") for state in self._named)
        if not knows_schedulers and any(map(_is_scheduled, self._optimizers)):
            told.append(_UNNAMED.format(what="a scheduler of learning rates", how="lr_scheduler=scheduler"))
        return told if self._is_updated else [*told, _NO_UPDATE]
