"""The thread of this process that watches over its groups: it sleeps, and makes no call slower.

It tells of processes that end, answers `muster status`, and looks each second at what calls are under way.
"""

import os
import select
import threading
import time

from muster.torch._state_desk import StateDesk

_TICK_SECONDS = 1.0


class Watch:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict = {}  # by descriptor: who is told that it is readable
        self._states: list = []  # of groups
        self._poll = select.epoll()
        self._desk: StateDesk | None = None
        threading.Thread(target=self._run, name="muster-watch", daemon=True).start()

    def add_process(self, process: int, ended) -> int | None:
        """Calls ended() when the process ends; what to give to remove(). It must not keep this thread."""
        try:
            descriptor = os.pidfd_open(process)
        except ProcessLookupError:
            ended()
            return None
        self._add(descriptor, ended, select.EPOLLIN | select.EPOLLONESHOT)
        return descriptor

    def _add(self, descriptor: int, told, events: int) -> None:
        with self._lock:
            self._told[descriptor] = told
            self._poll.register(descriptor, events)

    def remove(self, descriptor: int) -> None:
        with self._lock:
            if self._told.pop(descriptor, None) is not None:
                self._poll.unregister(descriptor)
                os.close(descriptor)

    def add_state(self, state) -> None:
        """The state of a group is looked at and shown from now on."""
        with self._lock:
            self._states.append(state)
            is_first, self._desk = self._desk is None, self._desk or StateDesk(state.world_rank)
        if is_first and self._desk.descriptor is not None:
            self._add(self._desk.descriptor, lambda: self._desk.answer(self._shown()), select.EPOLLIN)

    def remove_state(self, state) -> None:
        with self._lock:
            if state in self._states:
                self._states.remove(state)

    def _shown(self) -> list:
        with self._lock:
            return list(self._states)

    def _run(self) -> None:
        next_tick = time.monotonic() + _TICK_SECONDS
        while True:
            for descriptor, _ in self._poll.poll(max(0.0, next_tick - time.monotonic())):
                with self._lock:
                    told = self._told.get(descriptor)
                if told is not None:
                    told()
            now = time.monotonic()
            if now >= next_tick:
                next_tick = now + _TICK_SECONDS
                for state in self._shown():
                    state.look(now)


_watch: tuple[int, Watch] | None = None  # of the process with that number: a fork has no thread
_lock = threading.Lock()


def watch() -> Watch:
    """Of this process."""
    global _watch
    with _lock:
        if _watch is None or _watch[0] != os.getpid():
            _watch = (os.getpid(), Watch())
        return _watch[1]
