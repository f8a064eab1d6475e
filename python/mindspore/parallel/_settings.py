"""Settings of set_auto_parallel_context beside the mode: what they are checked for, and what they do."""

import math
import sys

import muster
from mindspore import _device, _names
from mindspore.parallel import _mesh, _pipeline
from mindspore.parallel._layout import Layout

_BOOLS = (
    *(
        "auto_pipeline",
        "enable_alltoall",
        "enable_parallel_optimizer",
        "force_fp32_communication",
        "full_batch",
    ),
    *("gradient_fp32_sync", "loss_repeated_mean", "parameter_broadcast", "pipeline_result_broadcast"),
)
_SEARCHES = ("recursive_programming", "sharding_propagation", "dynamic_programming")
# Settings that change no result here, and why.
_NOTED = {
    "enable_alltoall": "it is about accelerators",
    "force_fp32_communication": "16 bits are added in float32 and rounded once",
    "gradient_fp32_sync": "gradients travel in their own dtype",
    "group_ckpt_save_file": "checkpoints hold whole parameters",
    "loss_repeated_mean": "no loss is repeated",
    "optimizer_weight_shard_size": "the workers that share the batch share the state of optimizers",
    "parameter_broadcast": "parameters begin equal on all workers, which is proved before the first step",
    "strategy_ckpt_load_file": "checkpoints hold whole parameters, which fit every layout",
}
_KEYS = {
    "parallel_optimizer_config": (
        *("gradient_accumulation_shard", "parallel_optimizer_threshold", "optimizer_weight_shard_size"),
        "optimizer_level",
    ),
    "pipeline_config": ("pipeline_interleave", "pipeline_scheduler"),
    "strategy_ckpt_config": ("load_file", "save_file", "only_trainable_params"),
}
_LEVELS = ("level1", "level2", "level3")
_given = {}  # what was said of the dataset


def check_dataset_strategy(strategy):
    """'full_batch', 'data_parallel', or a tuple with one tuple of cuts, or Layout, for each column."""
    is_layout = isinstance(strategy, tuple) and all(isinstance(each, tuple | Layout) for each in strategy)
    if not is_layout and strategy not in ("full_batch", "data_parallel"):
        raise ValueError(
            "dataset_strategy is 'full_batch', 'data_parallel', or a tuple with one tuple of cuts for each "
            f"column, not {strategy!r}"
        )
    _forget_slices()
    _given["dataset_strategy"] = strategy
    if muster._core._context()["world_size"] == 1:  # perhaps there are more workers soon
        return strategy
    _mesh.note_full_batch(strategy == "full_batch")
    if strategy == "full_batch":
        _device.note_once(
            "note: full_batch: each worker computes all rows that it reads, but for what shard() divides, "
            "with the numbers of one process; give the dataset num_shards and shard_id instead to share the "
            "work"
        )
    elif is_layout:
        _choose_slices(strategy)
    return strategy


def _forget_slices() -> None:
    """What a dataset gives is whole."""
    if "mindspore.dataset._slices" in sys.modules:
        sys.modules["mindspore.dataset._slices"].choose(())
        sys.modules["mindspore.dataset._iterators"].join_with(None)


def join_workers(given) -> None:
    """The job has formed: what was set while this process was alone counts for all of its workers."""
    save_strategy_of(given)
    _pipeline.join_workers()
    if "dataset_strategy" in _given:
        check_dataset_strategy(_given["dataset_strategy"])
    _mesh.begin_if_due()


def forget() -> None:
    """Nothing was said of outputs and columns."""
    muster._core._replicate_outputs(False)
    _given.clear()
    _forget_slices()


def _choose_slices(strategy) -> None:
    """What a dataset gives are slices, where they are cut along more than their rows."""
    from mindspore.dataset import _iterators, _slices
    from mindspore.parallel import _strategies

    columns = [_strategies.slices_of(each) for each in strategy]
    _check_slices(strategy, [cuts for cuts, _ in columns])
    slices = _slices.choose(columns)
    _iterators.join_with(_slices.joined if slices else None)
    # Slices of all rows are joined to the whole batch.
    _mesh.note_full_batch(slices and all(cuts[0] == 1 for cuts, _ in columns if cuts))
    _device.note_once(
        "note: dataset_strategy: the slices that all workers read are joined; every worker computes the "
        "whole batch, with the numbers of one process"
        if slices
        else "note: dataset_strategy: each worker computes the rows that its dataset gives"
    )


def _check_slices(strategy, cuts) -> None:
    """ValueError where a column is cut into more slices than there are workers, or the workers do not share
    them equally."""
    workers = muster._core._context()["world_size"]
    for at, given in enumerate(strategy):
        slices = math.prod(cuts[at])
        if slices == 0 or workers % slices:
            choices = ", ".join(str(each) for each in range(1, workers + 1) if workers % each == 0)
            raise ValueError(
                f"dataset_strategy: column {at} is cut by {given} into {slices} slices, and this job has "
                f"{workers} workers: choose cuts whose product is one of {choices}, or start {slices} workers"
            )


def zero_of(level, threshold_kb):
    """muster.parallel.Zero by MindSpore's names: 'level1' to 'level3', and KB."""
    if level not in _LEVELS:
        raise ValueError(f"optimizer_level is one of {', '.join(_LEVELS)}, not {level!r}")
    if isinstance(threshold_kb, bool) or not isinstance(threshold_kb, int) or threshold_kb < 0:
        raise ValueError(
            f"the threshold of the parallel optimizer is a number of KB from 0, not {threshold_kb!r}"
        )
    return muster.parallel.Zero(_LEVELS.index(level) + 1, threshold_kb << 10)


def checked(settings) -> dict:
    """The settings, or an error that names the first one that is not provided or not of its kind."""
    from mindspore import context

    for name, value in settings.items():
        if name not in context._PARALLEL_DEFAULTS and name != "global_rank":
            raise NotImplementedError(_names.sentence(f"mindspore.set_auto_parallel_context({name})"))
        if name in _BOOLS and not isinstance(value, bool):
            raise TypeError(f"{name} is True or False, not {value!r}")
        if name in _KEYS:
            _check_keys(name, value)
        if name in ("search_mode", "auto_parallel_search_mode") and value not in _SEARCHES:
            raise ValueError(f"{name} is one of {', '.join(_SEARCHES)}, not {value!r}")
        if name in ("search_mode", "auto_parallel_search_mode"):
            _mesh.note_search(value == "recursive_programming")
        if name == "dataset_strategy":
            check_dataset_strategy(value)
        if name == "full_batch" and value:
            check_dataset_strategy("full_batch")
        if name == "grad_accumulation_step" and value != 1:
            raise NotImplementedError(
                "grad_accumulation_step is not provided: nn.GradAccumulationCell takes a batch in parts"
            )
        if name == "auto_pipeline" and value:
            raise NotImplementedError("auto_pipeline is not provided: set the pipeline_stage of cells")
        if name == "strategy_ckpt_config" and value.get("load_file"):
            _device.note_once(f"note: {name}: load_file has no effect: {_NOTED['strategy_ckpt_load_file']}")
        if name in _NOTED and value != context._PARALLEL_DEFAULTS[name]:
            _device.note_once(f"note: {name} has no effect: {_NOTED[name]}")
        if name == "global_rank":
            _device.note_once("note: global_rank has no effect: the cluster says which worker this is")
    return {name: value for name, value in settings.items() if name != "global_rank"}


def _check_keys(name, value) -> None:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is a dict with {', '.join(_KEYS[name])}, not {value!r}")
    others = [key for key in value if key not in _KEYS[name]]
    if others:
        raise ValueError(f"{name} has {', '.join(_KEYS[name])}, not {', '.join(map(repr, others))}")


def apply(given) -> None:
    """Makes what was set so far count."""
    muster._core._replicate_outputs(given.get("pipeline_result_broadcast", False))
    save_strategy_of(given)
    config = given.get("pipeline_config", {})
    _pipeline.choose(
        given.get("pipeline_stages", 1),
        config.get("pipeline_interleave", False),
        config.get("pipeline_scheduler", "1f1b"),
    )
    if "enable_parallel_optimizer" not in given and "parallel_optimizer_config" not in given:
        return
    config = given.get("parallel_optimizer_config", {})
    zero = zero_of(config.get("optimizer_level", "level1"), config.get("parallel_optimizer_threshold", 64))
    if config.get("gradient_accumulation_shard"):
        _device.note_once(
            "note: gradient_accumulation_shard has no effect: gradients of parts are added up whole"
        )
    if not given.get("enable_parallel_optimizer", False):
        zero = muster.parallel.Zero(0)
    share_state(zero)


def save_strategy_of(given) -> None:
    """Writes the strategy file that these settings ask for, once the number of workers is known."""
    config = given.get("strategy_ckpt_config", {})
    path = config.get("save_file") or given.get("strategy_ckpt_save_file")
    if path and muster._core._context()["world_size"] > 1:
        from mindspore.parallel import _checkpoints  # here: what it imports takes milliseconds of every start

        _checkpoints.save_strategy(path)


def share_state(zero) -> None:
    """muster.parallel.Zero; op by op each worker keeps the whole state, with the same numbers."""
    if zero.level > 0 and muster._core._context()["mode"] == "eager":
        _device.note_once(
            "note: the parallel optimizer has no effect in PYNATIVE_MODE: each worker keeps the whole state"
        )
        zero = muster.parallel.Zero(0)
    muster.set_auto_parallel_context(zero=zero)


__getattr__ = _names.missing(__name__)
