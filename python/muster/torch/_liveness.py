"""Processes of this host that ended: calls of a group whose rank is gone fail, and say which.

Ranks of one host share memory, where nobody sees the other end closing; without this a call would wait for
its whole timeout, 30 minutes by default. The kernel tells at once when a process ends (pidfd_open, Linux
5.3); what the rank has sent before stays in shared memory, and can be received. Ranks on other hosts are
missed by their connections.
"""

import os
import threading

from muster.torch._watch import watch


def identity() -> list:
    """Of this process, for others that may be in the same process namespace."""
    return [os.readlink("/proc/self/ns/pid"), os.getpid()]


class Liveness:
    """Of a group: tells it when a rank of this host has ended. identities: identity() by rank."""

    def __init__(self, native, identities: list[list]) -> None:
        self._native, self._watch = native, watch()
        self._lock, self._ends = threading.Lock(), False
        namespace = identity()[0]
        self._watched = [
            self._watch.add_process(process, lambda rank=rank, process=process: self._lose(rank, process))
            for rank, (other, process) in enumerate(identities)
            if rank != native.rank and other == namespace
        ]

    def _lose(self, rank: int, process: int) -> None:
        with self._lock:
            if not self._ends:
                self._native.lose(rank, f"rank {rank} (process {process}) has ended")

    def close(self) -> None:
        with self._lock:
            self._ends = True
        for descriptor in self._watched:
            if descriptor is not None:
                self._watch.remove(descriptor)
        self._watched = []
