"""muster.recoverable of trainings with one optimizer or several."""

from collections.abc import Sequence

from muster import _core
from muster.nn import Cell, Optimizer


class _Together(Cell):
    """A network beside further optimizers, whose parameters are saved with it. Names stay as they are."""

    def __init__(self, net: Cell, others: Sequence[Optimizer]) -> None:
        super().__init__(auto_prefix=False)
        self.net = net
        for number, optimizer in enumerate(others):
            setattr(self, f"optimizer_{number}", optimizer)


def recoverable(
    net: Cell,
    optimizer: Optimizer | Sequence[Optimizer],
    dataset: object,
    epochs: int = 1,
    *,
    save_steps: int = 100,
) -> _core.RecoverableSteps:
    """The two loops of a training that is written by hand, over epochs and over the items of a dataset.

    `for epoch, step, (data, label) in muster.recoverable(net, optimizer, data_set, epochs=10):`, both numbers
    from 0. A training with several optimizers gives all of them, in a list. In a job with
    MS_ENABLE_RECOVERY=1 the parameters of `net` and of the optimizers are saved every `save_steps` steps.
    When a process is lost, the first collective call of the body waits until it has come back, and the others
    give it their state: no step is lost or made twice. Where that cannot be (a second call of the body was
    cut off, for example), the step is aborted (is_aborted): the optimizers do nothing in it, and all workers
    go on from the last step that all of them have saved. Numbers and data go back with it, variables of the
    script do not, nor does what an optimizer keeps that was not given. Elsewhere it is just the loops.
    """
    optimizers = list(optimizer) if isinstance(optimizer, list | tuple) else [optimizer]
    if not optimizers:
        raise ValueError("recoverable: there is no optimizer")
    first, *others = optimizers
    everything = _Together(net, others) if others else net
    return _core.recoverable(everything, first, dataset, epochs, save_steps=save_steps)
