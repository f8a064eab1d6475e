"""mindspore.parallel._utils: the settings of the job, as scripts ask for them."""

import muster
from mindspore import _names


def _get_gradients_mean() -> bool:
    """Whether gradients are averaged over the workers."""
    return muster._core._context()["gradients_mean"]


def _get_device_num() -> int:
    """The number of workers."""
    return muster._core._context()["world_size"]


def _get_pipeline_stages() -> int:
    """How many stages the network is cut into."""
    from mindspore.parallel import _pipeline

    return _pipeline.stages()


def _get_global_rank() -> int:
    """Which of the workers this is."""
    return muster._core._context()["rank"]


_OF_ONE_PROCESS = ("semi_auto_parallel", "auto_parallel")
_divided = {"mode": ""}  # one of these or "hybrid_parallel", where a script has chosen it


def _choose_divided(mode) -> None:
    """Workers that share what MindSpore would divide by itself: the batch, with the numbers of one process.
    "": no such mode."""
    from mindspore.parallel import _mesh

    _divided["mode"] = mode
    if mode not in _OF_ONE_PROCESS:
        _mesh.end()
    elif not _mesh.is_on():
        muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
        _mesh.begin_if_due()


def _reduces_by_itself() -> bool:
    """Whether gradients are those of the whole batch without a reducer in the script."""
    if _divided["mode"] not in _OF_ONE_PROCESS:  # so it mostly is, and each step asks
        return False
    return _is_in_data_parallel_mode() and _get_device_num() > 1


def _get_parallel_mode() -> str:
    """How the workers share the training."""
    return _divided["mode"] or muster._core._context()["parallel_mode"]


def _is_in_data_parallel_mode() -> bool:
    """Whether they share the data."""
    return muster._core._context()["parallel_mode"] == "data_parallel"


def _get_enable_parallel_optimizer() -> bool:
    """Whether workers share the state of optimizers."""
    return muster._core._context()["zero_level"] > 0


def _get_stage_device_num() -> int:
    """The number of workers of one stage."""
    from mindspore.parallel import _pipeline

    return _get_device_num() // _pipeline.stages()


def _is_in_auto_parallel_mode() -> bool:
    """Whether the script has chosen semi_auto_parallel or auto_parallel."""
    return _divided["mode"] in _OF_ONE_PROCESS


def _is_pynative_parallel() -> bool:
    """Whether MindSpore divides eager code, as it never does here."""
    return False


def _get_loss_repeated_mean() -> bool:
    """Whether a repeated loss is averaged."""
    return True


def _get_full_batch() -> bool:
    """Whether each worker is given the whole batch."""
    return False


__getattr__ = _names.missing(__name__)
