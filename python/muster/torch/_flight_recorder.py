"""What PyTorch's flight recorder has seen of this rank, as a file that `torchfrtrace` reads.

PyTorch 2.15 records each call of a backend that is not its own, and writes what it has recorded when the
backend asks for it: here after a call that failed, once in a process, and where `muster status --dump` asks.
TORCH_FR_BUFFER_SIZE (0: nothing is recorded), TORCH_FR_DUMP_TEMP_FILE (where to: the rank is added) and
TORCH_FR_DUMP_ON_TIMEOUT (0: not after failures) are PyTorch's own settings. Older ones record their own
backends only: there is nothing to write.
"""

import os
import threading

import torch

_DEFAULT_FILE = "/tmp/nccl_trace_rank_"  # PyTorch's own
_lock = threading.Lock()
_dumped_by = 0  # the process that has written after a failure: a fork writes its own


def _is_on(*names: str) -> bool:
    value = next((os.environ[name] for name in names if os.environ.get(name)), "1")
    return value.lower() not in ("0", "false", "n", "no")


def is_recording() -> bool:
    world = torch.distributed.distributed_c10d._world
    return bool(getattr(world, "pg_flight_recorder_hooks", None))


def dump(world_rank: int) -> str:
    """Writes the file; says which, or why there is none."""
    if not is_recording():
        return "no flight recorder: it needs PyTorch 2.15, and TORCH_FR_BUFFER_SIZE is not to be 0"
    torch._C._distributed_c10d._dump_fr_trace_file(world_rank, backend="muster")
    return f"wrote {_file(world_rank)}"


def _file(world_rank: int) -> str:
    names = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
    begin = next((os.environ[name] for name in names if os.environ.get(name)), _DEFAULT_FILE)
    return f"{begin}{world_rank}"


def dump_after_failure(world_rank: int) -> None:
    global _dumped_by
    if not _is_on("TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT"):
        return
    with _lock:
        if _dumped_by == os.getpid():
            return
        _dumped_by = os.getpid()
    dump(world_rank)
