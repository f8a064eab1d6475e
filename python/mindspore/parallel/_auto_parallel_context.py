"""mindspore.parallel._auto_parallel_context: the settings as an object."""

from mindspore.parallel import _utils


class _Context:
    """The settings of set_auto_parallel_context."""

    get_parallel_mode = staticmethod(_utils._get_parallel_mode)
    get_device_num = staticmethod(_utils._get_device_num)
    get_global_rank = staticmethod(_utils._get_global_rank)
    get_gradients_mean = staticmethod(_utils._get_gradients_mean)
    get_full_batch = staticmethod(_utils._get_full_batch)


def auto_parallel_context() -> _Context:
    """The settings of set_auto_parallel_context."""
    return _Context()
