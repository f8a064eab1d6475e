"""What the first step of a loop shows that a death would lose: it is told there, and not by other numbers."""

import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

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


class FirstStep:
    """Sees which optimizers make a step from now on. model, optimizers, named: what recoverable() was told
    of."""

    def __init__(self, model, optimizers: list, named: list) -> None:
        self._model, self._optimizers, self._named = model, optimizers, named
        self._is_updated, self._scaler = False, None
        self._others: dict[str, None] = {}  # optimizers of other parameters, by their class
        self._weights: OtherWeights | None = None
        self._handle = register_optimizer_step_post_hook(self._note)

    def begin(self) -> None:
        """Called by the loop, where the body of the step begins."""
        if self._weights is None:
            self._weights = OtherWeights(self._model, self._named)

    def _note(self, optimizer, *_) -> None:
        self._is_updated = True
        if _learned([optimizer]) - _learned(self._optimizers):
            self._others[type(optimizer).__name__] = None
        frame = sys._getframe(1)
        while frame is not None and frame.f_code is not torch.amp.GradScaler.step.__code__:
            frame = frame.f_back
        if frame is not None and frame.f_locals["self"].is_enabled():
            self._scaler = frame.f_locals["self"]

    def end(self) -> list[str]:
        """What is to be said."""
        self._handle.remove()
        told = [_UNNAMED.format(what=f"an optimizer ({name})", how=_ALL_OPTIMIZERS) for name in self._others]
        for name in self._weights.changed() if self._weights is not None else []:
            told.append(_UNNAMED.format(what=f"weights that it changes ({name})", how=_ALL_WEIGHTS))
        if self._scaler is not None and all(state is not self._scaler for state in self._named):
            told.append(_UNNAMED.format(what="a GradScaler", how='states={"scaler": scaler}'))
        knows_schedulers = any(hasattr(state, "get_last_lr") for state in self._named)
        if not knows_schedulers and any(map(_is_scheduled, self._optimizers)):
            told.append(_UNNAMED.format(what="a scheduler of learning rates", how="lr_scheduler=scheduler"))
        return told if self._is_updated else [*told, _NO_UPDATE]
