"""mindspore.dataset.config: how passes over datasets are made."""

from muster.dataset.config import (
    get_multiprocessing_timeout_interval,
    get_num_parallel_workers,
    get_prefetch_size,
    get_seed,
    set_multiprocessing_timeout_interval,
    set_num_parallel_workers,
    set_prefetch_size,
    set_seed,
)

from mindspore import _names

__all__ = [
    "get_multiprocessing_timeout_interval",
    "get_num_parallel_workers",
    "get_prefetch_size",
    "get_seed",
    "set_multiprocessing_timeout_interval",
    "set_num_parallel_workers",
    "set_prefetch_size",
    "set_seed",
]
__getattr__ = _names.missing(__name__)
