"""Stages of a network: which cells run on which workers, by MindSpore's names."""

import weakref

import muster
from mindspore import _device, _names
from mindspore.parallel import _mesh

_chosen = {"stages": 1, "scheduler": "1f1b", "placed": False}
_early = []  # cells, by weak references, that got their stages before there were workers
_SCHEDULERS = ("1f1b", "gpipe", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")


def note_schedule(name) -> None:
    """One line: the schedule is 1F1B, and no result depends on it."""
    _device.note_once(f"note: {name} has no effect: stages run 1F1B; results are the same in every schedule")


def choose(stages=1, interleave=False, scheduler="1f1b") -> None:
    """How many stages the networks of this script have, and in what order they run.

    Raises:
        TypeError: `stages` is no whole number.
        ValueError: It is below 1, or does not divide the workers; there is no such scheduler.
    """
    if isinstance(stages, bool) or not isinstance(stages, int):
        raise TypeError(f"pipeline: stages is a whole number, not {stages!r}")
    if scheduler not in _SCHEDULERS:
        raise ValueError(f"pipeline: scheduler is one of {', '.join(_SCHEDULERS)}, not {scheduler!r}")
    check_workers(stages)
    if scheduler != "1f1b":
        note_schedule(f"scheduler='{scheduler}'")
    if interleave:
        note_schedule("interleave")
    if stages != _chosen["stages"]:
        _mesh.leave()
    _chosen.update(stages=stages, scheduler=scheduler)
    _mesh.begin_if_due()


def check_workers(stages) -> None:
    """ValueError where the workers of the job cannot be as many stages."""
    workers = muster._core._context()["world_size"]
    if stages < 1 or (workers > 1 and workers % stages):
        raise ValueError(
            f"pipeline: {stages} stages cannot share {workers} workers equally: choose one of "
            f"{', '.join(str(each) for each in range(1, workers + 1) if workers % each == 0)}, or start as "
            "many workers as a multiple of them"
        )


def stages() -> int:
    """How many stages were chosen."""
    return _chosen["stages"]


def is_staged() -> bool:
    """Whether cells of this script have stages; without any, all workers compute all of it."""
    return _chosen["placed"]


def check_micro_size(micro_size) -> None:
    """ValueError where there are fewer parts than stages."""
    if micro_size < stages():
        raise ValueError(
            f"PipelineCell: micro_size is {micro_size}, and there are {stages()} stages: choose as many "
            "parts, or more"
        )


def set_stage(cell, stage) -> None:
    """Cell.pipeline_stage = stage: the cell runs on the worker of that stage."""
    if isinstance(stage, bool) or not isinstance(stage, int):
        raise TypeError(f"pipeline_stage: a whole number, not {stage!r}")
    if stage < 0:
        raise ValueError(f"pipeline_stage: stages count from 0, and this is {stage}")
    cell.__dict__["_pipeline_stage"] = stage
    if muster._core._context()["world_size"] > 1:
        _place(cell)
    else:
        _early.append(weakref.ref(cell))


def _place(cell) -> None:
    _chosen["placed"] = True
    _mesh.begin_if_due()
    cell.place("MS_WORKER", stage_of(cell))


def join_workers() -> None:
    """The job has formed: cells that got their stages before are placed.

    Raises:
        ValueError: The workers cannot be as many stages.
    """
    check_workers(stages())
    if muster._core._context()["world_size"] > 1:
        for cell in filter(None, [each() for each in _early]):
            _place(cell)
    _early.clear()


def stage_of(cell):
    """What pipeline_stage was set to; 0: nothing."""
    return cell.__dict__.get("_pipeline_stage", 0)


def set_stages(network, config) -> None:
    """Sets the stages of cells by their paths; a KeyError has the paths that there are."""
    if not isinstance(config, dict):
        raise TypeError(f"stage_config is a dict of paths of cells and stages, not {config!r}")
    cells = {name: cell for name, cell in network.cells_and_names() if name}
    for name, stage in config.items():
        if name not in cells:
            raise KeyError(f"stage_config names '{name}'; the cells are {', '.join(cells)}")
        set_stage(cells[name], stage)


def check_stages(network) -> None:
    """ValueError where a cell has a stage that there is not."""
    if not isinstance(network, muster.Cell):
        return
    for name, cell in network.cells_and_names():
        stage = stage_of(cell)
        if stage >= stages():
            raise ValueError(
                f"'{name or type(cell).__name__}' has pipeline_stage {stage}, and there are {stages()} "
                f"stages, from 0 to {stages() - 1}: pipeline(stages={stage + 1}) makes as many"
            )


class PipelineGradReducer(muster.Cell):
    """Gradients of an accumulated loss as the optimizer takes them: the mean over the copies of the network,
    where there are several, divided by `scale_sense`.

    Args:
        parameters: Those that the gradients are of.
        scale_sense: What the loss was multiplied with.
        opt_shard: Not used.
    """

    def __init__(self, parameters, scale_sense=1.0, opt_shard=None):
        super().__init__(auto_prefix=False)
        from mindspore import _gradient

        self.scale_sense = scale_sense
        is_shared = muster._core._context()["parallel_mode"] == "data_parallel"
        self.grad_reducer = _gradient.Reducer(list(parameters)) if is_shared else None

    def construct(self, grads):
        """The gradients, in their order."""
        if self.grad_reducer is not None:
            grads = self.grad_reducer(grads)
        if isinstance(self.scale_sense, int | float) and self.scale_sense == 1:
            return grads
        return tuple(muster.ops.div(each, self.scale_sense) for each in grads)


__getattr__ = _names.missing(__name__)
