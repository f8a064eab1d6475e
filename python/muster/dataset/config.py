"""How passes over datasets are made, for the whole process."""

from muster._core import get_data_prefetch as get_prefetch_size
from muster._core import get_data_seed as get_seed
from muster._core import get_data_worker_deadline as get_multiprocessing_deadline
from muster._core import get_data_worker_warning as get_multiprocessing_timeout_interval
from muster._core import get_data_workers as get_num_parallel_workers
from muster._core import set_data_prefetch as set_prefetch_size
from muster._core import set_data_seed as set_seed
from muster._core import set_data_worker_deadline as set_multiprocessing_deadline
from muster._core import set_data_worker_warning as set_multiprocessing_timeout_interval
from muster._core import set_data_workers as set_num_parallel_workers

__all__ = [
    "get_multiprocessing_deadline",
    "get_multiprocessing_timeout_interval",
    "get_num_parallel_workers",
    "get_prefetch_size",
    "get_seed",
    "set_multiprocessing_deadline",
    "set_multiprocessing_timeout_interval",
    "set_num_parallel_workers",
    "set_prefetch_size",
    "set_seed",
]
