"""Receives from any rank, over receives that each name a rank.

A receive from any rank is posted to all of them, into buffers of its own, and takes the first message; the
other posts stay open and have the next message of their ranks. So once a tag has had such a receive, all
receives with that tag go through here, in the order in which they are made: what arrives from a rank goes to
the oldest receive that takes it.
"""

import ctypes
import threading
from collections import deque

import torch

ANY = -1


class Receive:
    """One receive, with what CollectiveWork asks of a native call. source: which rank it came from."""

    def __init__(self, address: int, size_bytes: int, source: int) -> None:
        self.address, self.size_bytes, self.wanted = address, size_bytes, source
        self.source = source
        self._error: Exception | None = None
        self._done = threading.Event()
        self._followers: list = []
        self._lock = threading.Lock()

    def takes(self, source: int) -> bool:
        return self.wanted in (ANY, source)

    def is_done(self) -> bool:
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        if not self._done.wait(timeout):
            return False
        if self._error is not None:
            raise self._error
        return True

    def on_done(self, then) -> None:
        with self._lock:
            if not self._done.is_set():
                self._followers.append(then)
                return
        then(self._error)

    def finish(self, error: Exception | None) -> None:
        with self._lock:
            self._error = error
            self._done.set()
        for then in self._followers:
            then(error)


class Mailbox:
    """The receives of one tag of a group."""

    def __init__(self, native, tag: int) -> None:
        self._native, self._tag = native, tag
        self._others = [rank for rank in range(native.size) if rank != native.rank]
        self._waiting: deque[Receive] = deque()
        self._posted: dict[int, torch.Tensor] = {}  # by rank: where its next message goes
        self._arrived: dict[int, torch.Tensor] = {}  # by rank: what came when nobody waited for it
        self._lock = threading.RLock()

    def receive(self, address: int, size_bytes: int, source: int) -> Receive:
        """Raises RuntimeError where a message of another size is expected from a rank already."""
        made = Receive(address, size_bytes, source)
        with self._lock:
            self._check_sizes(made)
            came = next((rank for rank in self._arrived if made.takes(rank)), None)
            if came is None:
                self._waiting.append(made)
                for rank in self._others:
                    self._post(rank)
                return made
            buffer = self._arrived.pop(came)
        self._deliver(made, came, buffer)
        return made

    def _check_sizes(self, made: Receive) -> None:
        for rank, buffer in {**self._posted, **self._arrived}.items():
            if made.takes(rank) and buffer.numel() != made.size_bytes:
                raise RuntimeError(
                    f"muster: a receive of {made.size_bytes} bytes with tag {self._tag}, and an earlier one "
                    f"from any rank expects {buffer.numel()} bytes from rank {rank} with it: give "
                    "messages of other sizes another tag"
                )

    def _post(self, rank: int) -> None:
        """Asks for the next message of a rank, if somebody waits for it and nobody has asked."""
        first = next((one for one in self._waiting if one.takes(rank)), None)
        if first is None or rank in self._posted:
            return
        buffer = self._posted[rank] = torch.empty(first.size_bytes, dtype=torch.uint8)
        call = self._native.receive(buffer.data_ptr(), first.size_bytes, rank, self._tag, asynchronous=True)
        call.on_done(lambda error: self._arrive(rank, error))

    def _arrive(self, rank: int, error: Exception | None) -> None:
        with self._lock:
            buffer = self._posted.pop(rank)
            taking = [one for one in self._waiting if one.takes(rank)]
            if error is None:
                taking = taking[:1]
                if not taking:
                    self._arrived[rank] = buffer
            for one in taking:
                self._waiting.remove(one)
            if error is None:
                self._post(rank)
        for one in taking:
            if error is None:
                self._deliver(one, rank, buffer)
            else:
                one.finish(error)

    def _deliver(self, receive: Receive, rank: int, buffer: torch.Tensor) -> None:
        ctypes.memmove(receive.address, buffer.data_ptr(), receive.size_bytes)
        receive.source = rank
        receive.finish(None)
