"""muster.recoverable of trainings with one optimizer or several, and with what their bodies keep."""

from collections.abc import Mapping, Sequence

from muster import _core
from muster.nn import Cell, Optimizer


class _Together(Cell):
    """A network beside further optimizers, whose parameters are saved with it. Names stay as they are."""

    def __init__(self, net: Cell, others: Sequence[Cell]) -> None:
        super().__init__(auto_prefix=False)
        self.net = net
        for number, optimizer in enumerate(others):
            setattr(self, f"optimizer_{number}", optimizer)


class _StateOf(Cell):
    """The parameters that an optimizer keeps outside of its attributes, as those with parameter groups do."""

    def __init__(self, parameters: Sequence) -> None:
        super().__init__(auto_prefix=False)
        for number, parameter in enumerate(parameters):
            setattr(self, f"state_{number}", parameter)


def _cell_of(optimizer: object) -> Cell:
    if not isinstance(optimizer, Cell):
        raise TypeError(
            f"recoverable: an optimizer is one of muster.nn or a cell, not {type(optimizer).__name__}"
        )
    kept = getattr(optimizer, "kept_parameters", None)
    return optimizer if kept is None else _StateOf(kept())


def recoverable(
    net: Cell,
    optimizer: Cell | Sequence[Cell],
    dataset: object,
    epochs: int = 1,
    *,
    save_steps: int = 100,
    states: Mapping[str, object] | Sequence[object] | None = None,
) -> _core.RecoverableSteps:
    """The two loops of a training that is written by hand, over epochs and over the items of a dataset.

    `for epoch, step, (data, label) in muster.recoverable(net, optimizer, data_set, epochs=10):`, both numbers
    from 0. A training with several optimizers gives all of them, in a list. In a job with
    MS_ENABLE_RECOVERY=1 the parameters of `net` and of the optimizers are saved every `save_steps` steps.
    When a process is lost, the first collective call of the body waits until it has come back, and the others
    give it their state: no step is lost or made twice. Where that cannot be (a second call of the body was
    cut off, for example), the step is aborted (is_aborted): the optimizers do nothing in it, and all workers
    go on from the last step that all of them have saved. Numbers and data go back with it, variables of the
    script do not. There, `random` and `numpy.random` are seeded before each body, from their states before
    the loop, the epoch and the step. Elsewhere it is just the loops.

    states: What the body keeps from one step to the next beside them: gradients that it adds up, a loss
        scaler, a count. A dict, whose numbers and tensors the body changes in it (`states["sums"] = ...`), or
        a list; in both may be Parameters, cells, lists, deques and dicts (which stay the same objects: their
        elements go back), generators of random numbers of Python and NumPy, objects with Parameters as
        attributes (whose numbers are kept, too), or with state_dict() and load_state_dict(). It is
        each worker's own: when a process is lost, all go back to the last point, unless an object says
        `state_is_shared = True` because it is the same on all workers whenever a body begins. A Parameter
        that the body changes and that nobody has named is an error in a job that recovers, and other
        variables that it changes are told.
    """
    optimizers = list(optimizer) if isinstance(optimizer, list | tuple) else [optimizer]
    if not optimizers:
        raise ValueError("recoverable: there is no optimizer")
    steps = [each for each in optimizers if isinstance(each, Optimizer)]
    first = steps[0] if steps else None
    others = [_cell_of(each) for each in optimizers if each is not first]
    everything = _Together(net, others) if others else net
    from muster import _carried, _draws, _kept  # few scripts have such a loop

    parameters, kept = _kept.kept_in(states)
    kept += [_kept.KeptObject(schedule) for each in optimizers for schedule in getattr(each, "schedules", ())]
    steps = _core._recoverable(everything, first, dataset, epochs, save_steps, parameters, kept)
    if not _draws.recovers():
        return steps
    return _draws.Steps(steps, _carried.Watch(dataset, _kept.held_in(states)))  # type: ignore[return-value]
