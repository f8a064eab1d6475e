"""Calls that were made and may not be done yet, as torch.distributed.Work."""

import os
import threading
from datetime import timedelta
from queue import SimpleQueue

import torch
from torch.distributed import Work

from muster.torch._errors import failure

ANY = -1  # the peer of a receive from any rank
_NO_TIMEOUT = timedelta(0)  # c10d's kNoTimeout: as long as the call itself may take


class _Callbacks:
    """Threads that call what users have given to futures.

    It may wait for other calls, as PyTorch's PowerSGD does, which the thread that makes them could not end
    meanwhile: where all of these wait there is one more.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._lock, self._idle, self._waiting = threading.Lock(), 0, SimpleQueue()

    def run(self, function) -> None:
        with self._lock:
            is_taken = self._idle > 0
            self._idle -= is_taken
        if is_taken:
            self._waiting.put(function)
        else:
            threading.Thread(target=self._run, args=(function,), name="muster-callbacks", daemon=True).start()

    def _run(self, function) -> None:
        while True:
            function()
            del function  # it has tensors
            with self._lock:
                self._idle += 1
            function = self._waiting.get()


_callbacks = _Callbacks()


def _run_apart(function) -> None:
    global _callbacks
    if _callbacks.process != os.getpid():  # a fork has no threads
        _callbacks = _Callbacks()
    _callbacks.run(function)


class CollectiveWork(Work):
    """One call of a group, or several that end together.

    limit: how long wait() waits where nobody says it, in seconds; None leaves it to the calls, which have
    deadlines of their own. Messages have none. peer: of a message, the other rank, or ANY.

    calls: the native works. outputs: what result() gives. kept: tensors that must live until the end.
    finish: what is left to do with the data when all have arrived (a tensor that was not contiguous is
    written), once, on the thread that first looks. group: the state of the one that makes them.
    """

    def __init__(self, calls, outputs=(), kept=(), finish=None, group=None) -> None:
        super().__init__()
        self.limit: float | None = None
        self.peer: int | None = None
        self._calls, self._group = calls, group
        self._outputs = outputs
        self._kept = kept
        self._finish = finish
        self._error: BaseException | None = None
        self._future: torch.futures.Future | None = None
        self._settled = False
        self._lock = threading.Lock()

    def _settle(self) -> None:
        """All calls are done: writes the outputs."""
        with self._lock:
            finish, self._finish = self._finish, None
            if finish is not None and self._error is None:
                finish()
            self._kept = ()
            self._settled = True

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Waits until the data is there; True. Raises what failed, and RuntimeError after `timeout`."""
        seconds = timeout.total_seconds() if timeout > _NO_TIMEOUT else self.limit
        try:
            arrived = all([call.wait(seconds) is not False for call in self._calls])
        except Exception as error:
            self._error = failure(error, self._group)
            raise self._error from error
        if not arrived:
            raise RuntimeError(f"muster: the call is not done after {seconds:g} s, its timeout")
        self._settle()
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        if not all([call.is_done() for call in self._calls]):
            return False
        try:
            self.wait()
        except Exception as error:
            self._error = error
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error if self.is_completed() else None

    def result(self) -> list:
        self.wait()
        return list(self._outputs)

    def source_rank(self) -> int:
        self.wait()
        if self.peer is None:
            raise RuntimeError("muster: only a Work of send or recv has a source rank")
        return self._calls[0].source() if self.peer == ANY else self.peer

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        """A future of the outputs; its callbacks run on a thread of their own. Behind wait() it is done:
        reducers take its value at once.

        It is that of a callback: an error that set_exception() sets is a value to C++, where reducers of
        DistributedDataParallel take it for a list of tensors; one that a callback raises is an error there.
        """
        if self._future is None:
            ended = torch.futures.Future()
            self._future = ended.then(self._outcome)
            if self._settled:
                ended.set_result(None)
            else:
                _Countdown(self._calls, lambda error: self._end(ended, error))
        return self._future

    def _end(self, ended: torch.futures.Future, error) -> None:
        if error is not None:
            self._error = failure(error, self._group)
        _run_apart(lambda: ended.set_result(None))

    def _outcome(self, _) -> list:
        if self._error is not None:
            raise self._error
        self._settle()
        return list(self._outputs)

    def __del__(self) -> None:
        """Nobody waits any more: the tensors live on until nothing writes them."""
        if self._settled or all([call.is_done() for call in self._calls]):
            return
        kept, finish = (self._kept, self._outputs), self._finish

        def end(error, kept=kept) -> None:
            if error is None and finish is not None:
                finish()

        _Countdown(self._calls, end)


class _Countdown:
    """Calls then(error) when the last of several calls is done, or with its error when the first fails."""

    def __init__(self, calls, then) -> None:
        self._then = then
        self._left, self._lock = len(calls) + 1, threading.Lock()
        for call in calls:
            call.on_done(self._done)
        self._done(None)  # the one that is counted more: also of no calls there is an end

    def _done(self, error) -> None:
        with self._lock:
            if self._left <= 0:
                return
            self._left = 0 if error is not None else self._left - 1
            if self._left > 0:
                return
        self._then(error)
