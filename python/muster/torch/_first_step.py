"""What the first step of a loop shows that a death would lose: it is told there, and not by other numbers."""

import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

_UNNAMED = (
    "the loop uses {what} that recoverable() is not told of: it begins anew in a rank that comes back, and "
    "the training ends with other numbers: {how}"
)
_NO_UPDATE = (
    "no optimizer has made a step in the first step of recoverable(): gradients that are summed over several "
    "steps are lost with a rank, and the training ends with other numbers than without that death: sum them "
    "within a step, whose batch may be a list of batches"
)


def _is_scheduled(optimizer) -> bool:
    """Whether a scheduler of learning rates was made for it: they leave this key in each group."""
    return any("initial_lr" in group for group in optimizer.param_groups)


class FirstStep:
    """Sees which optimizers make a step from now on. named: what recoverable() was told of."""

    def __init__(self, optimizers: list, named: list) -> None:
        self._optimizers, self._named = optimizers, named
        self._is_updated, self._scaler = False, None
        self._handle = register_optimizer_step_post_hook(self._note)

    def _note(self, *_) -> None:
        self._is_updated = True
        frame = sys._getframe(1)
        while frame is not None and frame.f_code is not torch.amp.GradScaler.step.__code__:
            frame = frame.f_back
        if frame is not None and frame.f_locals["self"].is_enabled():
            self._scaler = frame.f_locals["self"]

    def end(self) -> list[str]:
        """What is to be said."""
        self._handle.remove()
        told = []
        if self._scaler is not None and all(state is not self._scaler for state in self._named):
            told.append(_UNNAMED.format(what="a GradScaler", how='states={"scaler": scaler}'))
        knows_schedulers = any(hasattr(state, "get_last_lr") for state in self._named)
        if not knows_schedulers and any(map(_is_scheduled, self._optimizers)):
            told.append(_UNNAMED.format(what="a scheduler of learning rates", how="lr_scheduler=scheduler"))
        return told if self._is_updated else [*told, _NO_UPDATE]
