"""A backend of torch.distributed: collective calls of CPU tensors over Muster.

    torch.distributed.init_process_group("muster")

finds it by the entry point `muster` of the group `torch.distributed.backends`; where PyTorch does not look
there yet, `import muster.torch` before the call registers it. With an accelerator:
`init_process_group("cpu:muster,cuda:nccl")`.
"""

import torch

OLDEST = (2, 6)  # of PyTorch: the first whose options say which calls are asynchronous


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def _check_version() -> None:
    found = torch.__version__
    if _version(found) < OLDEST:
        raise ImportError(
            f"muster.torch needs PyTorch {OLDEST[0]}.{OLDEST[1]} or newer, and this is {found}: "
            f"pip install 'torch>={OLDEST[0]}.{OLDEST[1]}'"
        )
    if not torch.distributed.is_available():
        raise ImportError(
            f"muster.torch needs torch.distributed, which this PyTorch ({found}) was built without: "
            "install one with USE_DISTRIBUTED=1, as the packages for Linux have it"
        )


_check_version()

# After the checks, which say what is missing.
from muster.torch._behind_the_end import meet_nobody_behind_the_end  # noqa: E402
from muster.torch._ddp import keep_works_of_reducers  # noqa: E402
from muster.torch._group import create  # noqa: E402
from muster.torch._recoverable import recoverable  # noqa: E402


def register() -> None:
    """Makes `muster` known to torch.distributed as a backend of CPU tensors; again does nothing."""
    backend = torch.distributed.Backend
    if "muster" not in backend.backend_list:
        backend.register_backend("muster", create, extended_api=True, devices=["cpu"])


register()
keep_works_of_reducers()
meet_nobody_behind_the_end()

__all__ = ["recoverable", "register"]
