"""The backend of a job that recovers (MS_ENABLE_RECOVERY=1): its group is made anew when a rank has died.

Before the loop of recoverable() no group is connected: who comes back runs its script from the top, alone.
There DistributedDataParallel hears its own answers, since the loop hands parameters out anyway; a first other
call connects all ranks. In the loop a call that a death cuts does not raise: the step is
aborted, its numbers are dropped, and the loop makes it again.

Lightning's loop (lightning.py) begins anew instead, on all ranks: there the same call raises.
"""

import contextlib
import ctypes
import os
import sys
import threading
import time

import torch
from torch.nn.parallel import DistributedDataParallel

from muster.torch._backend import MusterBackend
from muster.torch._errors import FAILURES, failure
from muster.torch._rejoin import MissingRanksError, Rendezvous
from muster.torch._rendezvous import master_of
from muster.torch._state import GroupState
from muster.torch._void_calls import Cleared, Outputs, clear, give_own_objects

RECOVERS = "MS_ENABLE_RECOVERY"
CAME_BACK = "MUSTER_RESTART_COUNT"
_EXIT_CODE_PEER_LOST = 69  # no launcher starts again who says so
_TAG = 1 << 40  # of messages between ranks that have met again
_RETRY_SECONDS = 0.05


def recovers() -> bool:
    return os.environ.get(RECOVERS) == "1"


class _Void:
    """A call that was cut, as one that is done."""

    def is_done(self) -> bool:
        return True

    def wait(self, timeout: float | None = None) -> bool:
        return True

    def on_done(self, then) -> None:
        then(None)

    def source(self) -> int:
        return 0


_VOID = _Void()


class _Cuttable:
    """A native call under way, whose failure aborts the step.

    outputs: what it writes, and does not where it fails.
    """

    def __init__(self, calls: "RecoveringCalls", call, outputs: Outputs) -> None:
        self._calls, self._call, self._outputs = calls, call, outputs
        self._is_cut = False

    def is_done(self) -> bool:
        return self._call.is_done()

    def wait(self, timeout: float | None = None) -> bool:
        try:
            return self._call.wait(timeout)
        except FAILURES as error:
            self._calls.cut(error)
            self._give_zeros()
            return True

    def _give_zeros(self) -> None:
        if not self._is_cut:
            self._is_cut = True
            clear(self._outputs)

    def on_done(self, then) -> None:
        def end(error) -> None:
            if isinstance(error, FAILURES):
                self._calls.note(error)
                self._give_zeros()
                error = error if self._calls.raises else None
            then(error)

        self._call.on_done(end)

    def source(self) -> int:
        return _VOID.source() if self._is_cut else self._call.source()


def _is_made_for_ddp() -> bool:
    code = DistributedDataParallel.__init__.__code__
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


# What DistributedDataParallel calls when it is made, in a world where all others say the same.
def _broadcast_alone(data, size_bytes, root, *_args, **_kwargs) -> None:
    pass


def _gather_alone(source, outputs, sizes, *_args, **_kwargs) -> None:
    for address, size in zip(outputs, sizes, strict=True):
        ctypes.memmove(address, source, size)


_ALONE = {"broadcast": _broadcast_alone, "all_gather_sizes": _gather_alone}


class RecoveringCalls:
    """Stands where a backend has its native group, and calls the newest one.

    connect_first(): makes the group of a call before the loop. failure: what cut the step that runs, or None.
    raises: whether calls that are cut say so, in the loop, too.
    """

    def __init__(self, rank: int, size: int, connect_first) -> None:
        self.rank, self.size = rank, size
        self.native = None
        self.liveness = None
        self.is_in_loop, self.raises = False, False
        self.failure: BaseException | None = None
        self._connect_first = connect_first
        self._cleared = Cleared(rank, size)
        self._lock = threading.Lock()

    def note(self, error: BaseException) -> None:
        with self._lock:
            if self.failure is None:
                self.failure = error

    def cut(self, error: BaseException) -> None:
        self.note(error)
        if self.raises:
            raise error

    def is_void(self) -> bool:
        """Whether what calls give now has no meaning."""
        return self.is_in_loop and self.failure is not None

    def _void(self, error: BaseException, name: str, args: tuple):
        self.cut(error)
        clear(self._cleared.outputs(name, args))
        return _VOID

    def state(self) -> tuple:
        """As of the native group; nothing is under way between two of them."""
        native = self.native
        return native.state() if native is not None else ("", 0, 0, 0, [])

    def attach(self, native, liveness) -> None:
        self.native, self.liveness, self.failure = native, liveness, None

    def detach(self, reason: str) -> None:
        """The group is over: peers that wait in it are told."""
        native, liveness, self.native, self.liveness = self.native, self.liveness, None, None
        if liveness is not None:
            liveness.close()
        if native is not None:
            native.abort(reason)
            native.close()

    def shut(self) -> None:
        native, liveness, self.native, self.liveness = self.native, self.liveness, None, None
        if liveness is not None:
            liveness.close()
        if native is not None:
            native.close()

    def __getattr__(self, name: str):
        def call(*args, **kwargs):
            if self.failure is not None:
                return self._void(self.failure, name, args)
            if self.native is None:
                if name in _ALONE and _is_made_for_ddp():
                    _ALONE[name](*args, **kwargs)
                    return _VOID
                if not self._connect_first(name):
                    return _VOID
            try:
                made = getattr(self.native, name)(*args, **kwargs)
            except FAILURES as error:
                if not self.is_in_loop:
                    raise
                return self._void(error, name, args)
            if not self.is_in_loop or made is None:
                return made
            return _Cuttable(self, made, self._cleared.outputs(name, args))

        if name.startswith("_"):
            raise AttributeError(name)
        setattr(self, name, call)
        return call


class RecoveringBackend(MusterBackend):
    """The backend of the default group of a job that recovers."""

    def __init__(self, store, rank: int, size: int, timeout) -> None:
        self.calls = RecoveringCalls(rank, size, self._connect_first)
        self.default_store, self.call_timeout = store, timeout
        self.rendezvous = None
        state = GroupState(self.calls, "the group", list(range(size)), master_of(store))
        super().__init__(self.calls, _NoLiveness(), state, store, timeout)
        give_own_objects(self.calls.is_void)

    def attach(self, native, liveness) -> None:
        self._coalesced = None
        self.calls.attach(native, liveness)

    def abort(self) -> None:
        self._stop_watching()
        self.calls.detach(f"rank {self.calls.rank} has aborted its process group")

    def shutdown(self) -> None:
        self._stop_watching()
        self.calls.shut()

    def limit_seconds(self) -> float:
        """Raises ValueError where the variable holds no number above 0."""
        text = os.environ.get("MS_NODE_TIMEOUT") or "600"
        with contextlib.suppress(ValueError):
            if float(text) > 0:
                return float(text)
        raise ValueError(f"muster: MS_NODE_TIMEOUT is {text!r}: give seconds, above 0")

    def opened_rendezvous(self) -> Rendezvous:
        if self.rendezvous is None:
            self.rendezvous = Rendezvous(
                self.default_store, self.calls.rank, self.calls.size, self.limit_seconds()
            )
        return self.rendezvous

    # ---- all ranks meet again -------------------------------------------------------------------------

    def meet(self, claim, settle, note) -> tuple[list[dict], BaseException | None]:
        """Connects a new group, until settle(plan) has ended well on it; the plan, and what failed first.

        claim(): what this rank has, now. note: called with the ranks that are missing, when that changes.
        Raises SystemExit, with a line that names them, when they do not come within MS_NODE_TIMEOUT.
        """
        cause = self.calls.failure
        meeting = self.opened_rendezvous()
        meeting.begin()
        while True:
            self.calls.detach(f"rank {self.calls.rank} meets the others again")
            try:
                plan, listener = meeting.meet(claim(), note)
                self.attach(*meeting.connect(plan, listener, self.call_timeout.total_seconds()))
                settle(plan)
                return plan, cause
            except MissingRanksError as error:
                print(error, file=sys.stderr, flush=True)
                raise SystemExit(_EXIT_CODE_PEER_LOST) from error
            except FAILURES as error:
                cause = cause or error
                meeting.check_time(error)
                time.sleep(_RETRY_SECONDS)

    def gather_bytes(self, own: bytes, sizes: list[int] | None = None) -> list[bytes]:
        """What each rank has. sizes: of all ranks, where they may differ."""
        if sizes is not None and not any(sizes):
            return [b""] * self.calls.size
        if sizes is not None:
            gathered = self.gather_bytes(own.ljust(max(sizes), b"\0"))
            return [each[:size] for each, size in zip(gathered, sizes, strict=True)]
        source = torch.frombuffer(bytearray(own), dtype=torch.uint8)
        gathered = torch.empty(self.calls.size * len(own), dtype=torch.uint8, device="cpu")
        self.calls.native.all_gather(source.data_ptr(), gathered.data_ptr(), len(own))
        return split_records(gathered, self.calls.size)

    def gather_numbers(self, numbers) -> list[list[int]]:
        source = torch.tensor([int(number) for number in numbers], dtype=torch.int64, device="cpu")
        gathered = torch.empty(self.calls.size, len(numbers), dtype=torch.int64, device="cpu")
        self.calls.native.all_gather(source.data_ptr(), gathered.data_ptr(), 8 * len(numbers))
        return gathered.tolist()

    def send_bytes(self, payload: bytes, rank: int) -> None:
        data = torch.frombuffer(bytearray(payload), dtype=torch.uint8)
        size = torch.tensor([data.numel()], device="cpu")
        limit = self.call_timeout.total_seconds()
        for tensor in (size, data):
            self.calls.native.send(tensor.data_ptr(), tensor.nbytes, rank, _TAG, timeout=limit)

    def receive_bytes(self, rank: int) -> memoryview:
        limit = self.call_timeout.total_seconds()
        size = torch.zeros(1, dtype=torch.int64, device="cpu")
        self.calls.native.receive(size.data_ptr(), size.nbytes, rank, _TAG, timeout=limit)
        data = bytearray(int(size))
        address = torch.frombuffer(data, dtype=torch.uint8).data_ptr()
        self.calls.native.receive(address, len(data), rank, _TAG, timeout=limit)
        return memoryview(data)

    def _connect_first(self, name: str) -> bool:
        """Connects for a call before the loop; False for one that the others have passed already."""
        came_back = int(os.environ.get(CAME_BACK) or 0) > 0
        if came_back and name == "barrier":
            return False
        if came_back:
            raise RuntimeError(
                f"muster: rank {self.calls.rank} was started again, and the others have passed this {name} "
                "before the loop of muster.torch.recoverable(), or never come to one: make it inside the "
                "loop, or let all ranks compute the value; scripts without recoverable() are started again "
                "as a whole: muster run --restart group"
            )
        meeting = self.opened_rendezvous()
        meeting.begin()
        try:
            plan, listener = meeting.meet({"place": "before the loop"})
            self.attach(*meeting.connect(plan, listener, self.call_timeout.total_seconds()))
        except FAILURES as error:
            raise failure(error) from error
        return True


def join_records(records: list[bytes]) -> torch.Tensor:
    return torch.frombuffer(bytearray(b"".join(records)), dtype=torch.uint8)


def split_records(records: torch.Tensor, size: int) -> list[bytes]:
    """The records of all ranks apart: the other way round."""
    data = ctypes.string_at(records.data_ptr(), records.numel())
    each = len(data) // size
    return [data[rank * each : (rank + 1) * each] for rank in range(size)]


def join_unequal(records: list[bytes]) -> dict:
    """Of records that have sizes of their own. The last byte is there for a tensor of none at all."""
    return {"sizes": [len(each) for each in records], "data": join_records([*records, b"\0"])}


def split_unequal(joined: dict) -> list[bytes]:
    [data], begin, records = split_records(joined["data"], 1), 0, []
    for size in joined["sizes"]:
        records.append(data[begin : begin + size])
        begin += size
    return records


class _NoLiveness:
    """Groups of a job that recovers have theirs in RecoveringCalls."""

    def close(self) -> None:
        pass
