"""mindspore.parallel._utils: the settings of the job, as scripts ask for them."""

import muster
from mindspore import _names


def _get_gradients_mean() -> bool:
    """Whether gradients are averaged over the workers."""
    return muster._core._context()["gradients_mean"]


def _get_device_num() -> int:
    """The number of workers."""
    return muster._core._context()["world_size"]


def _get_global_rank() -> int:
    """Which of the workers this is."""
    return muster._core._context()["rank"]


def _get_parallel_mode() -> str:
    """How the workers share the training."""
    return muster._core._context()["parallel_mode"]


def _is_in_data_parallel_mode() -> bool:
    """Whether they share the data."""
    return _get_parallel_mode() == "data_parallel"


def _get_enable_parallel_optimizer() -> bool:
    """Whether optimizers are divided over workers, as they never are here."""
    return False


def _get_stage_device_num() -> int:
    """The number of workers of one stage: all."""
    return _get_device_num()


def _is_in_auto_parallel_mode() -> bool:
    """Whether MindSpore divides the network by itself, as it never does here."""
    return False


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
