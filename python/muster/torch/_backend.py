"""The translator between c10d's backend interface and Muster's collective calls.

Each method takes lists of tensors and an options object as c10d gives them, checks them, and makes one native
call. Where the options say that the caller waits (asyncOp of `all_reduce(..., async_op=False)`) the call is
done when the method returns and there is no Work; else the Work keeps the tensors until the end.
"""

import threading
import time
from datetime import timedelta

import torch
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import Backend

from muster._collective import Group, compiled_calls
from muster.torch._compiled import part
from muster.torch._errors import RAISED, failure, name_group
from muster.torch._rendezvous import see_rank_0_leave
from muster.torch._sparse import add_sparse
from muster.torch._tensors import (
    DTYPES,
    Outputs,
    check_dense,
    dtype,
    in_reals,
    readable,
    reduction,
    rows_of_ranks,
    size_bytes,
    starts_of,
)
from muster.torch._watch import watch
from muster.torch._work import ANY, CollectiveWork

_LONGEST_PAUSE_SECONDS = 0.05  # between two looks at the store
_UNSET = timedelta(milliseconds=-1)  # c10d's kUnsetTimeout: that of the group

made = threading.local()  # .work: what this thread's last call returned; see _process_group.py


def _only(tensors, what: str) -> torch.Tensor:
    if len(tensors) != 1:
        raise RuntimeError(f"muster: {what} takes one tensor, not {len(tensors)}: call it once for each")
    return tensors[0]


def _check_count(tensors, size: int, what: str) -> None:
    if len(tensors) != size:
        raise RuntimeError(f"muster: {what} takes {size} tensors, one of each rank, not {len(tensors)}")


def _check_same(tensors, like: torch.Tensor, what: str) -> None:
    for index, tensor in enumerate(tensors):
        if tensor.dtype != like.dtype:
            raise RuntimeError(f"muster: {what} {index} is {tensor.dtype} and the other tensor {like.dtype}")


def _check_size(tensor: torch.Tensor, numel: int, what: str) -> None:
    if tensor.numel() != numel:
        raise RuntimeError(f"muster: {what} has {tensor.numel()} elements, and {numel} are needed")


def _check_rank(rank: int, size: int, what: str) -> None:
    if not 0 <= rank < size:
        raise RuntimeError(f"muster: rank {rank} of {what} is none of this group's, 0 to {size - 1}")


class Calls:
    """Those of one group. native: a group of muster._collective; store: of this group alone."""

    is_compiled = False  # whether calls of plain tensors go through the part in C++, and not through these
    meets_at_rank_0 = False  # of the default group: the job's store ends with rank 0

    def __init__(self, native, liveness, state, store, timeout: timedelta) -> None:
        self._options = Backend.Options("muster", timeout)
        self._begin(native)
        self.native, self._liveness, self._state = native, liveness, state
        if self.is_compiled:
            name_group(native._address, state)
        watch().add_state(state)
        self._rank, self._size = native.rank, native.size
        self._store, self._timeout = store, timeout
        self._sequence = 0
        self._barriers = 0
        self._coalesced: list[CollectiveWork] | None = None
        self._all_reduce = native.all_reduce

    def _begin(self, native) -> None:
        super().__init__(native.rank, native.size)

    # ---- what c10d asks -------------------------------------------------------------------------------

    def getBackendName(self) -> str:  # noqa: N802 - c10d's name
        return "muster"

    @property
    def options(self):
        return self._options

    # c10d asks the object for these, and its own answers would ask c10d again, without an end.
    supports_splitting = property(lambda self: True)
    supports_coalescing = property(lambda self: False)  # a batch of messages: each is under way at once
    supports_shrinking = property(lambda self: False)
    supports_reconfigure = property(lambda self: False)
    supports_window = property(lambda self: False)
    _supports_time_estimate = property(lambda self: False)

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def _set_sequence_number_for_group(self) -> None:
        """They start at 0 on every rank: there is nothing to agree on."""

    def get_error(self):
        return c10d.ErrorType.SUCCESS

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout
        self._options._timeout = timeout

    _set_default_timeout = set_timeout

    def eager_connect_single_device(self, device) -> None:
        """The ranks are connected already."""

    def abort(self) -> None:
        """Ends the calls that are under way, here and on the other ranks, with an error."""
        self._stop_watching()
        self.native.abort(f"rank {self._rank} has aborted its process group")

    def shutdown(self) -> None:
        self._stop_watching()
        self.native.close()
        if self.meets_at_rank_0 and self._rank != 0:
            see_rank_0_leave()

    def _stop_watching(self) -> None:
        self._liveness.close()
        self._state.close()
        watch().remove_state(self._state)

    # ---- how calls are made ---------------------------------------------------------------------------

    def _limit(self, timeout: timedelta) -> float:
        return self._timeout.total_seconds() if timeout == _UNSET else timeout.total_seconds()

    def _work(self, calls, outputs=(), kept=(), finish=None) -> CollectiveWork:
        work = CollectiveWork(calls, outputs, kept, finish, self._state)
        made.work = work
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    def _run(self, start, opts, outputs=(), kept=(), finish=None):
        """Calls start(asynchronous, timeout); the Work of it, or None when it is done."""
        self._sequence += 1
        asynchronous = getattr(opts, "asyncOp", True)  # not there in older ones: they wait for the Work
        try:
            call = start(asynchronous, self._limit(opts.timeout))
        except RAISED as error:
            raise failure(error, self._state) from error
        if asynchronous:
            return self._work([call], outputs, kept, finish)
        if finish is not None:
            finish()
        return None

    def _run_all(self, starts, opts, outputs=(), kept=(), finish=None):
        """The same of several calls, which end together."""
        self._sequence += 1
        limit = self._limit(opts.timeout)
        try:
            calls = [start(True, limit) for start in starts]
        except RAISED as error:
            raise failure(error, self._state) from error
        if getattr(opts, "asyncOp", True):
            return self._work(calls, outputs, kept, finish)
        work = CollectiveWork(calls, outputs, kept, finish, self._state)
        work.wait()
        return None

    def start_coalescing(self) -> None:
        self._coalesced = []

    def end_coalescing(self) -> CollectiveWork:
        """One Work of all calls since start_coalescing."""
        works, self._coalesced = self._coalesced or [], None
        calls = [call for work in works for call in work._calls]

        def settle() -> None:
            for work in works:
                work._settle()

        return self._work(calls, [tensor for work in works for tensor in work._outputs], works, settle)

    # ---- reductions -----------------------------------------------------------------------------------

    def allreduce(self, tensors, opts):
        tensor = tensors[0]
        is_plain = tensor.layout is torch.strided and tensor.is_contiguous() and tensor.dtype in DTYPES
        if len(tensors) != 1 or not is_plain:
            return self._allreduce_copied(_only(tensors, "all_reduce"), opts)
        self._sequence += 1
        asynchronous = getattr(opts, "asyncOp", True)  # not there in older ones: they wait for the Work
        address = tensor.data_ptr()
        kind, what = DTYPES[tensor.dtype], reduction(opts.reduceOp)
        timeout = self._limit(opts.timeout)
        try:
            call = self._all_reduce(address, address, tensor.numel(), kind, what, asynchronous, timeout)
        except RAISED as error:
            raise failure(error, self._state) from error
        return self._work([call], tensors, tensors) if asynchronous else None

    def _allreduce_copied(self, tensor, opts):
        if tensor.layout is torch.sparse_coo:
            return add_sparse(self, tensor, opts)
        tensor = in_reals(tensor, opts.reduceOp)
        out = Outputs([tensor], filled=True)
        [address] = out.addresses()

        def start(asynchronous, timeout):
            kind, what = dtype(tensor), reduction(opts.reduceOp)
            return self._all_reduce(address, address, tensor.numel(), kind, what, asynchronous, timeout)

        return self._run(start, opts, [tensor], [out], out.finish())

    def allreduce_sparse(self, tensors, opts):
        return self.allreduce(tensors, opts)

    def allreduce_coalesced(self, tensors, opts):
        """One call where the tensors have one dtype, over a flat copy; else one for each tensor."""
        if not tensors:
            raise RuntimeError("muster: all_reduce of a coalesced list needs at least one tensor")
        for tensor in tensors:
            check_dense(tensor)
        what = reduction(opts.reduceOp)
        kinds = sorted({dtype(tensor) for tensor in tensors})
        parts = [[tensor for tensor in tensors if dtype(tensor) == kind] for kind in kinds]
        flats = [torch.cat([tensor.detach().reshape(-1) for tensor in part]) for part in parts]

        def finish() -> None:
            with torch.no_grad():
                for part, flat in zip(parts, flats, strict=True):
                    for tensor, values in zip(part, flat.split([t.numel() for t in part]), strict=True):
                        tensor.copy_(values.view(tensor.shape))

        def starter(flat, kind):
            address, count = flat.data_ptr(), flat.numel()
            return lambda asynchronous, timeout: self._all_reduce(
                address, address, count, kind, what, asynchronous, timeout
            )

        starts = [starter(flat, kind) for flat, kind in zip(flats, kinds, strict=True)]
        return self._run_all(starts, opts, tensors, [tensors, flats], finish)

    def reduce(self, tensors, opts):
        _check_rank(opts.rootRank, self._size, "reduce")
        tensor = in_reals(_only(tensors, "reduce"), opts.reduceOp)
        at_root = self._rank == opts.rootRank
        out = Outputs([tensor], filled=True)
        [address] = out.addresses()
        kind, what = dtype(tensor), reduction(opts.reduceOp)

        def start(asynchronous, timeout):
            written = address if at_root else 0
            return self.native.reduce(
                address, written, tensor.numel(), kind, what, opts.rootRank, asynchronous, timeout
            )

        return self._run(start, opts, [tensor], [out], out.finish() if at_root else None)

    def _reduce_scatter(self, output, source, opts):
        out = Outputs([output])
        [address] = out.addresses()
        kind, what = dtype(output), reduction(opts.reduceOp)

        def start(asynchronous, timeout):
            return self.native.reduce_scatter(
                source.data_ptr(), address, output.numel(), kind, what, asynchronous, timeout
            )

        return start, out

    def reduce_scatter(self, outputs, input_lists, opts):
        output = _only(outputs, "reduce_scatter")
        inputs = _only(input_lists, "reduce_scatter")
        _check_count(inputs, self._size, "reduce_scatter")
        _check_same(inputs, output, "input")
        _check_size(inputs[self._rank], output.numel(), f"input {self._rank}, which this rank gets,")
        output, *inputs = [in_reals(tensor, opts.reduceOp) for tensor in (output, *inputs)]
        if len({tensor.numel() for tensor in inputs}) > 1:
            return self._reduce_to_each(output, inputs, opts)
        source = torch.cat([readable(tensor).detach().reshape(-1) for tensor in inputs])
        start, out = self._reduce_scatter(output, source, opts)
        return self._run(start, opts, [output], [source, out], out.finish())

    def _reduce_to_each(self, output, inputs, opts):
        """reduce_scatter of parts of different sizes: a reduction to each rank."""
        out = Outputs([output])
        sources = [readable(tensor) for tensor in inputs]
        kind, what = dtype(output), reduction(opts.reduceOp)

        def starter(root):
            source = sources[root]
            written = out.addresses()[0] if root == self._rank else 0
            return lambda asynchronous, timeout: self.native.reduce(
                source.data_ptr(), written, source.numel(), kind, what, root, asynchronous, timeout
            )

        starts = [starter(root) for root in range(self._size)]
        return self._run_all(starts, opts, [output], [sources, out], out.finish())

    def reduce_scatter_single(self, output, source, opts):
        start, kept, finish = self._reduce_scatter_single(output, source, opts)
        return self._run(start, opts, [output], kept, finish)

    def _reduce_scatter_single(self, output, source, opts):
        _check_same([source], output, "input")
        _check_size(source, output.numel() * self._size, f"the input of reduce_scatter on {self._size} ranks")
        source = in_reals(readable(source), opts.reduceOp)
        start, out = self._reduce_scatter(in_reals(output, opts.reduceOp), source, opts)
        return start, [source, out], out.finish()

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts):
        return self._coalesce(self._reduce_scatter_single, outputs, inputs, opts)

    def _coalesce(self, prepare, outputs, inputs, opts, result=None):
        """result: what the Work shows as its outputs, where that is not `outputs`."""
        _check_count(inputs, len(outputs), "a coalesced call of as many outputs")
        prepared = [prepare(out, source, opts) for out, source in zip(outputs, inputs, strict=True)]
        finishes = [finish for _, _, finish in prepared if finish is not None]

        def finish_all() -> None:
            for finish in finishes:
                finish()

        starts = [start for start, _, _ in prepared]
        shown = outputs if result is None else result
        return self._run_all(starts, opts, shown, [kept for _, kept, _ in prepared], finish_all)

    # ---- data from rank to rank -----------------------------------------------------------------------

    def broadcast(self, tensors, opts):
        _check_rank(opts.rootRank, self._size, "broadcast")
        tensor = _only(tensors, "broadcast")
        out = Outputs([tensor], filled=self._rank == opts.rootRank)
        [address] = out.addresses()

        def start(asynchronous, timeout):
            return self.native.broadcast(address, size_bytes(tensor), opts.rootRank, asynchronous, timeout)

        return self._run(start, opts, [tensor], [out], None if self._rank == opts.rootRank else out.finish())

    def _gather_lists(self, outputs, source):
        _check_count(outputs, self._size, "all_gather")
        _check_same(outputs, source, "output")
        _check_size(outputs[self._rank], source.numel(), f"output {self._rank}, which has this rank's input,")
        source, out = readable(source), Outputs(outputs)
        sizes = [size_bytes(tensor) for tensor in outputs]

        def start(asynchronous, timeout):
            return self.native.all_gather_sizes(
                source.data_ptr(), out.addresses(), sizes, asynchronous, timeout
            )

        return start, [source, out], out.finish()

    def allgather(self, output_lists, inputs, opts):
        source, outputs = _only(inputs, "all_gather"), _only(output_lists, "all_gather")
        start, kept, finish = self._gather_lists(outputs, source)
        return self._run(start, opts, outputs, kept, finish)

    def allgather_coalesced(self, output_lists, inputs, opts):
        """output_lists: one list a rank, with an output for each input."""
        _check_count(output_lists, self._size, "all_gather of a coalesced list")

        def prepare(index, source, opts):
            return self._gather_lists([outputs[index] for outputs in output_lists], source)

        return self._coalesce(prepare, list(range(len(inputs))), inputs, opts, output_lists)

    def all_gather_single(self, output, source, opts):
        start, kept, finish = self._all_gather_single(output, source, opts)
        return self._run(start, opts, [output], kept, finish)

    def _all_gather_single(self, output, source, opts):
        _check_same([source], output, "input")
        _check_size(output, source.numel() * self._size, f"the output of all_gather on {self._size} ranks")
        source, out = readable(source), Outputs([output])
        [address] = out.addresses()

        def start(asynchronous, timeout):
            return self.native.all_gather(
                source.data_ptr(), address, size_bytes(source), asynchronous, timeout
            )

        return start, [source, out], out.finish()

    def all_gather_single_coalesced(self, outputs, inputs, opts):
        return self._coalesce(self._all_gather_single, outputs, inputs, opts)

    def gather(self, output_lists, inputs, opts):
        _check_rank(opts.rootRank, self._size, "gather")
        source = readable(_only(inputs, "gather"))
        outputs = []
        if self._rank == opts.rootRank:
            outputs = _only(output_lists, "gather")
            _check_count(outputs, self._size, "gather")
            _check_same(outputs, source, "output")
            for rank, tensor in enumerate(outputs):
                _check_size(tensor, source.numel(), f"output {rank} of gather")
        out = Outputs(outputs)

        def start(asynchronous, timeout):
            return self.native.gather(
                source.data_ptr(), size_bytes(source), out.addresses(), opts.rootRank, asynchronous, timeout
            )

        return self._run(start, opts, outputs, [source, out], out.finish())

    def scatter(self, outputs, input_lists, opts):
        _check_rank(opts.rootRank, self._size, "scatter")
        output = _only(outputs, "scatter")
        inputs = []
        if self._rank == opts.rootRank:
            inputs = _only(input_lists, "scatter")
            _check_count(inputs, self._size, "scatter")
            _check_same(inputs, output, "input")
            for rank, tensor in enumerate(inputs):
                _check_size(tensor, output.numel(), f"input {rank} of scatter")
        sources, out = [readable(tensor) for tensor in inputs], Outputs([output])
        [address] = out.addresses()

        def start(asynchronous, timeout):
            addresses = [source.data_ptr() for source in sources]
            return self.native.scatter(
                addresses, address, size_bytes(output), opts.rootRank, asynchronous, timeout
            )

        return self._run(start, opts, [output], [sources, out], out.finish())

    def all_to_all_single(self, output, source, output_splits, input_splits, opts):
        _check_same([source], output, "input")
        source, out = readable(source), Outputs([output])
        in_sizes = rows_of_ranks(source, input_splits, self._size, "the input of all_to_all")
        out_sizes = rows_of_ranks(output, output_splits, self._size, "the output of all_to_all")
        ins, outs = starts_of(source.data_ptr(), in_sizes), starts_of(out.addresses()[0], out_sizes)

        def start(asynchronous, timeout):
            return self.native.all_to_all(
                ins, in_sizes, outs, out_sizes, asynchronous=asynchronous, timeout=timeout
            )

        return self._run(start, opts, [output], [source, out], out.finish())

    def alltoall(self, outputs, inputs, opts):
        _check_count(outputs, self._size, "all_to_all")
        _check_count(inputs, self._size, "all_to_all")
        sources, out = [readable(tensor) for tensor in inputs], Outputs(outputs)

        def start(asynchronous, timeout):
            return self.native.all_to_all(
                [source.data_ptr() for source in sources],
                [size_bytes(source) for source in sources],
                out.addresses(),
                [size_bytes(tensor) for tensor in outputs],
                asynchronous=asynchronous,
                timeout=timeout,
            )

        return self._run(start, opts, outputs, [sources, out], out.finish())

    # ---- messages and barriers ------------------------------------------------------------------------

    def send(self, tensors, to: int, tag: int):
        _check_rank(to, self._size, "send")
        source = readable(_only(tensors, "send"))
        call = self.native.send(source.data_ptr(), size_bytes(source), to, tag, asynchronous=True)
        return self._message(call, tensors, source, to)

    def recv(self, tensors, from_: int, tag: int):
        _check_rank(from_, self._size, "recv")
        tensor = _only(tensors, "recv")
        out = Outputs([tensor])
        [address] = out.addresses()
        call = self.native.receive(address, size_bytes(tensor), from_, tag, asynchronous=True)
        return self._message(call, tensors, out, from_, out.finish())

    def recv_anysource(self, tensors, tag: int):
        tensor = _only(tensors, "recv")
        out = Outputs([tensor])
        [address] = out.addresses()
        call = self.native.receive_from_any(address, size_bytes(tensor), tag)
        return self._message(call, tensors, out, ANY, out.finish())

    def _message(self, call, tensors, kept, peer: int, finish=None):
        work = self._work([call], tensors, [kept], finish)
        work.limit, work.peer = self._timeout.total_seconds(), peer
        return work

    def barrier(self, opts):
        return self._run(self.native.barrier, opts)

    def monitored_barrier(self, opts, wait_all_ranks: bool = False) -> None:
        """A barrier that names the ranks that did not come; the group lives on.

        It goes through the store, so that a rank that is late breaks nothing.
        """
        self._barriers += 1
        limit = self._limit(opts.timeout)
        keys = [f"muster/barrier/{self._barriers}/{rank}" for rank in range(self._size)]
        ended = f"muster/barrier/{self._barriers}/end"
        if self._rank == 0:
            missing = self._missing(keys, limit, wait_all_ranks)
            if missing:
                which = f"Rank {missing[0]}" if len(missing) == 1 else f"Ranks {', '.join(map(str, missing))}"
                raise RuntimeError(
                    f"[Rank 0]: {which} failed to pass monitoredBarrier in {round(limit * 1000)} ms"
                )
            self._store.set(ended, "")
            return
        self._store.set(keys[self._rank], "")
        try:
            cause = None if self._comes(ended, time.monotonic() + limit) else TimeoutError(f"{limit:g} s")
        except RuntimeError as error:  # the store has gone
            cause = error
        if cause is not None:
            raise RuntimeError(
                f"[Rank {self._rank}]: Rank {self._rank} successfully reached monitoredBarrier, but received "
                "errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank."
            ) from cause

    def _comes(self, key: str, deadline: float) -> bool:
        """Looks again and again: who waits through a store keeps other threads from it."""
        pause = 0.001
        while not self._store.check([key]):
            if time.monotonic() >= deadline:
                return False
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        return True

    def _missing(self, keys, limit: float, all_of_them: bool) -> list[int]:
        """The ranks above 0 that have not come to the barrier: all, or the first."""
        deadline = time.monotonic() + limit
        missing = []
        for rank in range(1, self._size):
            if time.monotonic() >= deadline and not missing:
                raise RuntimeError(
                    f"[Rank 0]: Rank 0 timed out in monitoredBarrier after {round(limit * 1000)} ms"
                )
            if not self._comes(keys[rank], deadline):
                missing.append(rank)
                if not all_of_them:
                    break
        return missing

    # ---- groups of some of the ranks ------------------------------------------------------------------

    def split(self, store, ranks, opts):
        """The backend of the ranks `ranks` of this group, in that order."""
        from muster.torch._group import backend

        timeout = opts._timeout if opts is not None else self._timeout
        of_job = [self._state.ranks[rank] for rank in ranks]
        own, name = list(ranks).index(self._rank), f"a split of {self._state.name}"
        return backend(store, own, of_job, timeout, name)


class MusterBackend(Calls, Backend):
    """Of PyTorchs whose backends can be written in Python; for older ones see _older.py.

    Where its part in C++ is compiled (_compiled.py, backend.cpp) calls of plain tensors do not come here.
    """

    def _begin(self, native) -> None:
        compiled = part() if isinstance(native, Group) else None
        if compiled is None:
            super()._begin(native)
        else:
            self.is_compiled = True
            compiled.begin_backend(
                self, native.rank, native.size, compiled_calls(), native._address, self._options
            )
