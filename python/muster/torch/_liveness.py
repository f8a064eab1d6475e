"""Processes of this host that ended: a group whose rank is gone ends, too, and says which.

Ranks of one host share memory, where nobody sees the other end closing; without this a call would wait for
its whole timeout, 30 minutes by default. The kernel tells when a process ends (pidfd_open, Linux 5.3).
Ranks on other hosts are missed by their connections.
"""

import os
import select
import threading

GRACE_SECONDS = 1.0  # what a rank has left in shared memory before its end is read first


def identity() -> list:
    """Of this process, for others that may be in the same process namespace."""
    return [os.readlink("/proc/self/ns/pid"), os.getpid()]


class _Watch:
    """One thread that sleeps until a watched process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict = {}  # by descriptor: who is told
        self._poll = select.epoll()
        threading.Thread(target=self._run, name="muster-liveness", daemon=True).start()

    def add(self, process: int, ended) -> int | None:
        """Calls ended() after the grace when the process ends; what to give to remove()."""
        try:
            descriptor = os.pidfd_open(process)
        except ProcessLookupError:
            self._tell(ended)
            return None
        with self._lock:
            self._watched[descriptor] = ended
            self._poll.register(descriptor, select.EPOLLIN | select.EPOLLONESHOT)
        return descriptor

    def remove(self, descriptor: int) -> None:
        with self._lock:
            if self._watched.pop(descriptor, None) is not None:
                self._poll.unregister(descriptor)
                os.close(descriptor)

    def _tell(self, ended) -> None:
        timer = threading.Timer(GRACE_SECONDS, ended)
        timer.daemon = True
        timer.start()

    def _run(self) -> None:
        while True:
            for descriptor, _ in self._poll.poll():
                with self._lock:
                    ended = self._watched.get(descriptor)
                if ended is not None:
                    self._tell(ended)


_watch: tuple[int, _Watch] | None = None  # of the process with that number: a fork has no thread
_lock = threading.Lock()


def _of_this_process() -> _Watch:
    global _watch
    with _lock:
        if _watch is None or _watch[0] != os.getpid():
            _watch = (os.getpid(), _Watch())
        return _watch[1]


class Liveness:
    """Of a group: aborts it when a rank of this host has ended. identities: identity() by rank."""

    def __init__(self, native, identities: list[list]) -> None:
        self._native, self._watch = native, _of_this_process()
        self._lock, self._ends = threading.Lock(), False
        namespace = identity()[0]
        self._watched = [
            self._watch.add(process, lambda rank=rank, process=process: self._abort(rank, process))
            for rank, (other, process) in enumerate(identities)
            if rank != native.rank and other == namespace
        ]

    def _abort(self, rank: int, process: int) -> None:
        with self._lock:
            if not self._ends:
                self._ends = True
                self._native.abort(f"rank {rank} (process {process}) has ended")

    def close(self) -> None:
        with self._lock:
            self._ends = True
        for descriptor in self._watched:
            if descriptor is not None:
                self._watch.remove(descriptor)
        self._watched = []
