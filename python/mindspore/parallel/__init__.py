"""mindspore.parallel: what scripts ask of the job that they are a part of."""

from mindspore import _device, _names
from mindspore.parallel import _utils
from mindspore.parallel._layout import Layout
from mindspore.parallel._strategies import shard


def set_algo_parameters(**settings) -> None:
    """Settings of the search that divides networks, which is not made here: they change nothing."""
    for name in settings:
        _device.note_once(
            f"note: set_algo_parameters({name}=...) has no effect: no network is divided by search"
        )


def reset_algo_parameters() -> None:
    """There are none to reset."""


_CHECKPOINTS = (
    "convert_checkpoint_by_rank",
    "convert_checkpoints",
    "load_distributed_checkpoint",
    "load_segmented_checkpoints",
    "merge_pipeline_strategys",
    "merge_sliced_parameter",
    "rank_list_for_convert",
    "rank_list_for_transform",
    "sync_pipeline_shared_parameters",
    "transform_checkpoint_by_rank",
    "transform_checkpoints",
    "unified_safetensors",
)

__all__ = ["Layout", "_utils", "reset_algo_parameters", "set_algo_parameters", "shard", *_CHECKPOINTS]
__getattr__ = _names.missing(
    __name__,
    later=("auto_parallel", "nn"),
    holders={
        "AutoParallel": "mindspore.parallel.auto_parallel",
        "GradAccumulation": "mindspore.parallel.nn",
        **dict.fromkeys(_CHECKPOINTS, "mindspore.parallel._checkpoints"),
    },
)
