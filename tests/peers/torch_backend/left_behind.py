"""Leaves a call of torch's store that takes too long, and ends while it is under way."""

from datetime import timedelta

import torch.distributed as dist
from muster.torch import _rejoin

STORE = dist.TCPStore("127.0.0.1", 0, is_master=True)
OTHER = dist.TCPStore("127.0.0.1", STORE.port, is_master=False)


def wait(store: dist.TCPStore, seconds: float) -> None:
    """For a key that nobody sets."""
    try:
        store.wait(["never"], timedelta(seconds=seconds))
    except dist.DistStoreError:
        print("waited in vain", flush=True)


class Last:
    """Is destroyed while the interpreter ends, which takes so long."""

    def __del__(self, wait=wait, store=OTHER):
        wait(store, 1)


last = Last()
try:
    _rejoin._within(1, lambda: wait(STORE, 1.5))
except TimeoutError:
    print("left", flush=True)
