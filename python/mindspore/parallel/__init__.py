"""mindspore.parallel: what scripts ask of the job that they are a part of."""

from mindspore import _device, _names
from mindspore.parallel import _utils
from mindspore.parallel._layout import Layout
from mindspore.parallel._strategies import shard

# Of MindSpore's search, with what they are there without a word.
_ALGO_DEFAULTS = {
    "fully_use_devices": False,
    "elementwise_op_strategy_follow": False,
    "enable_algo_approxi": False,
    "algo_approxi_epsilon": 0.1,
    "tensor_slice_align_enable": False,
    "tensor_slice_align_size": 16,
}
_algo_parameters = dict(_ALGO_DEFAULTS)


def _known_algo_parameter(call: str, name: str) -> str:
    if name not in _ALGO_DEFAULTS:
        raise ValueError(f"{call}: there is no '{name}', only {', '.join(_ALGO_DEFAULTS)}")
    return name


def set_algo_parameters(**settings) -> None:
    """Settings of the search that divides networks: kept, and without effect, since the search made here
    has none."""
    for name, value in settings.items():
        wanted = type(_ALGO_DEFAULTS[_known_algo_parameter("set_algo_parameters", name)])
        if type(value) is not wanted:
            raise TypeError(f"set_algo_parameters: {name} is {wanted.__name__}, not {value!r}")
    for name, value in settings.items():
        _algo_parameters[name] = value
        _device.note_once(f"note: set_algo_parameters({name}=...) has no effect: the search here has no such")


def get_algo_parameters(attr_key):
    """What was set, or MindSpore's default."""
    return _algo_parameters[_known_algo_parameter("get_algo_parameters", attr_key)]


def reset_algo_parameters() -> None:
    """All are MindSpore's defaults again."""
    _algo_parameters.update(_ALGO_DEFAULTS)


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

__all__ = [
    "Layout",
    "_utils",
    "get_algo_parameters",
    "reset_algo_parameters",
    "set_algo_parameters",
    "shard",
    *_CHECKPOINTS,
]
__getattr__ = _names.missing(
    __name__,
    later=("auto_parallel", "nn"),
    holders={
        "AutoParallel": "mindspore.parallel.auto_parallel",
        "GradAccumulation": "mindspore.parallel.nn",
        **dict.fromkeys(_CHECKPOINTS, "mindspore.parallel._checkpoints"),
    },
)
