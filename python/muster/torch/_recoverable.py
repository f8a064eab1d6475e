"""The loop of a PyTorch training that survives the death of its ranks: recoverable()."""

import os
import sys
import threading
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist

from muster.torch import _generators
from muster.torch._behind_the_end import RUN, end_of_this_run
from muster.torch._ddp import ForwardPasses, check_renewable, ddp_modules, renew, share_buffers
from muster.torch._errors import FAILURES
from muster.torch._first_steps import FirstSteps
from muster.torch._loader_place import LoaderPlace, generators_of, is_end, other_rows
from muster.torch._points import Points, pack, unpack
from muster.torch._recovering_backend import (
    RecoveringBackend,
    join_records,
    join_unequal,
    recovers,
    split_records,
    split_unequal,
)
from muster.torch._step_mark import step_mark
from muster.torch._training_state import TrainingState

_CUTS_MAX = 3
_NO_BATCH = object()


class _OverError(Exception):
    """The loop has ended well on this host, and others may have left."""


def _backend():
    """The backend that recovers, or None where nothing does: no group, no MS_ENABLE_RECOVERY."""
    if not (dist.is_available() and dist.is_initialized() and recovers()):
        return None
    group = dist.distributed_c10d._get_default_group()
    found = group._get_backend(torch.device("cpu"))
    if not isinstance(found, RecoveringBackend):
        raise ValueError(
            f"muster: recoverable() needs a group of Muster, and the default one is of "
            f'{dist.get_backend()}: init_process_group("muster"), after import muster.torch'
        )
    return found


def _warn(rank: int, text: str) -> None:
    if rank == 0:
        print(f"muster: warning: {text}", file=sys.stderr, flush=True)


def _listed(one_or_several) -> list:
    if one_or_several is None:
        return []
    return list(one_or_several) if isinstance(one_or_several, list | tuple) else [one_or_several]


def decide(plan: list[dict]) -> tuple[int, int, str]:
    """From all claims: whose state all go on with, how many steps that has, and where it lies.

    A rank that has counted a step has seen that all had finished it: the others count it, too. Where no rank
    lives that was in the loop, the newest point of any disk; where there is none, what rank 0 begins with.
    """
    for kind in ("live", "disk"):
        having = [(claim["count"], -rank) for rank, claim in enumerate(plan) if claim["kind"] == kind]
        if having:
            count, rank = max(having)
            return -rank, count, kind
    return 0, 0, "none"


class Steps(Iterator):
    """What recoverable() returns: the steps of a training."""

    def __init__(
        self, model, optimizers, loader, epochs: int, sampler, states: dict, own: dict, save_steps: int
    ) -> None:
        self._model, self._epochs, self._save_steps = model, epochs, save_steps
        self._stops = False
        self._backend = _backend()
        self._of_script = [
            *generators_of(loader),
            *(state for state in states.values() if _generators.is_generator(state)),
        ]
        recovers = self._backend is not None
        self._place = LoaderPlace(loader, sampler, self._of_script, recovers=recovers)
        if self._backend is not None:
            self._ddp = ddp_modules(model)
            for module in self._ddp:
                check_renewable(module)
            self._passes = [ForwardPasses(module) for module in self._ddp]
            self._calls = self._backend.calls
            self._rank, self._size = self._calls.rank, self._calls.size
            named = {name: s for name, s in states.items() if not _generators.is_generator(s)}
            self._state = TrainingState(model, optimizers, named, own)
            told = [*states.values(), *own.values()]
            self._first_steps: FirstSteps | None = FirstSteps(model, optimizers, told)
            self._begin_recovery()
        self._steps = self._plain() if self._backend is None else self._recovering()

    def _begin_recovery(self) -> None:
        self._count = 0  # steps that count, for all
        self._is_live = False  # whether this process has the state behind them
        self._is_in_step, self._is_finished = False, False  # of the step that runs: begun, its body done
        self._cut_at, self._cuts = -1, 0  # the step that was cut last, and how often, though nobody died
        self._batch = _NO_BATCH
        self._own_generators = b""  # where the body of the step began
        self._generators: list[bytes] = []  # of all ranks, where the last step ended
        self._last_generators: list[bytes] = []  # and the one before: with these its batch was read
        self._digests: list[int] = []  # of what all ranks have read for it
        self._epoch_generators: list[bytes] = []  # and where the epoch began
        self._own_states: list[bytes] = []  # of all ranks, where the last step ended
        folder = os.environ.get("MS_RECOVERY_PATH") or None
        self._points = Points(folder, self._rank)
        self._is_writer = int(os.environ.get("LOCAL_RANK") or self._rank) == 0
        self._writing: threading.Thread | None = None
        self._mark = step_mark(folder)
        self._point: dict | None = None

    # ---- what the user sees ---------------------------------------------------------------------------

    def __iter__(self) -> "Steps":
        return self

    def __next__(self):
        return next(self._steps)

    def stop(self) -> None:
        """The step that runs now is the last. All ranks say it at one step; do not leave by break."""
        self._stops = True

    @property
    def is_aborted(self) -> bool:
        """Whether the step whose body runs is void: a rank was lost in the middle, and it is made again.

        What collective calls have given the body since is no number of this training.
        """
        return self._backend is not None and self._calls.failure is not None

    # ---- the loop -------------------------------------------------------------------------------------

    def _plain(self):
        """Nothing dies, or all do: two loops."""
        while self._place.epoch < self._epochs and not self._stops:
            batch = self._place.next()
            if is_end(batch):
                self._place.end_epoch()
                continue
            yield self._place.epoch, self._place.step, batch
            self._place.advance()

    def _recovering(self):
        end = end_of_this_run(self._points)
        if end is not None:
            self._load(end)  # it died behind the loop
            return
        self._point = self._points.find()
        if self._point is not None and self._point["is_over"]:
            self._point = None  # of a job that ended well: this is another one
            self._points.remove_all()
        self._recover()
        self._calls.is_in_loop = True
        try:
            while self._fetch() or not self._end():
                if self._batch is _NO_BATCH:
                    continue
                self._begin_step()
                yield self._place.epoch, self._place.step, self._batch
                if not self._commit():
                    self._recover()
        finally:
            self._calls.is_in_loop = False

    def _fetch(self) -> bool:
        """The batch of the next step, or the one that was interrupted; False when there is none left."""
        while self._batch is _NO_BATCH:
            if self._place.epoch >= self._epochs:
                return False
            batch = self._place.next()
            if is_end(batch):
                self._place.end_epoch()
                self._epoch_generators = self._generators
                # What the loader has drawn behind its last batch, as a RandomSampler does, no other rank has.
                _generators.restore(self._generators[self._rank], self._of_script)
            else:
                self._batch = batch
        return True

    def _begin_step(self) -> None:
        if self._first_steps is not None:
            self._first_steps.begin(self._count)
        self._state.keep()
        self._own_generators = _generators.record(self._of_script)
        self._is_in_step = True

    # ---- a step counts for all or for none ------------------------------------------------------------

    def _commit(self) -> bool:
        """The body is done: whether the step counts. No rank counts it before all have come here."""
        if self._calls.failure is not None:
            return False
        try:
            share_buffers(self._ddp, self._calls.native)
            own, own_states = _generators.record(self._of_script), self._state.pack_own()
            has_drawn = own != self._generators[self._rank]
            self._is_finished = True
            places = self._backend.gather_numbers(
                [
                    self._place.epoch,
                    self._place.step,
                    has_drawn,
                    self._stops,
                    self._leaves_open_passes(),
                    self._place.digest,
                    len(own_states),
                ]
            )
            self._check_places(places)
            generators = self._generators
            if self._count == 0:
                self._compare_states()
            if any(row[2] for row in places):
                generators = self._backend.gather_bytes(own)
            own_states = self._backend.gather_bytes(own_states, [row[6] for row in places])
        except FAILURES as error:
            self._calls.cut(error)
            return False
        self._last_generators, self._generators = self._generators, generators
        self._own_states = own_states
        self._digests = [row[5] for row in places]
        if any(row[4] for row in places):
            self._renew_reducers()
        self._count_step()
        return True

    def _tell_of_first_steps(self) -> None:
        if self._first_steps is None:
            return
        told = self._first_steps.end(self._count)
        if self._count == 1:
            self._state.check_readable()
        else:
            self._first_steps = None
        for text in told:
            _warn(self._rank, text)

    def _compare_states(self) -> None:
        """Behind the first step: tells of states that differ between ranks, since one alone is given on."""
        digests = self._state.digests()
        rows = self._backend.gather_numbers(digests.values()) if digests else []
        for name, of_ranks in zip(digests, zip(*rows, strict=True), strict=True):
            other = next((rank for rank, digest in enumerate(of_ranks) if digest != of_ranks[0]), None)
            if other is not None:
                _warn(
                    self._rank,
                    f"the state {name!r} of recoverable() is not the same on rank 0 and rank {other}, and a "
                    "rank that comes back gets it from another: make it of numbers that all ranks have, as "
                    "all_reduce gives them (statistics of normalizations: dist.broadcast(buffer, 0) of each "
                    "of its buffers())",
                )

    def _leaves_open_passes(self) -> bool:
        return any(
            passes.is_last_open(module) for module, passes in zip(self._ddp, self._passes, strict=True)
        )

    def _renew_reducers(self) -> None:
        """No step begins with what a pass before it has left: a rank that comes back has not made that."""
        for module, passes in zip(self._ddp, self._passes, strict=True):
            renew(module)
            passes.forget()

    def _count_step(self) -> None:
        self._is_in_step = self._is_finished = False
        self._batch = _NO_BATCH
        self._count += 1
        self._place.advance()
        if self._stops:
            self._place.epoch, self._place.step = self._epochs, 0
        self._mark(self._count)
        self._tell_of_first_steps()
        if self._count % self._save_steps == 0:
            self._write_point(is_over=False)

    def _check_places(self, rows: list[list[int]]) -> None:
        for rank, (epoch, step, _, stops, *_) in enumerate(rows):
            own_epoch, own_step, _, own_stops, *_ = rows[self._rank]
            if (epoch, step) != (own_epoch, own_step):
                raise RuntimeError(
                    f"muster: rank {rank} has made step {step} of epoch {epoch} and rank {self._rank} step "
                    f"{own_step} of epoch {own_epoch}: the loaders of all ranks need as many batches "
                    "(DistributedSampler, or drop_last)"
                )
            if stops != own_stops:
                which = rank if stops else self._rank
                raise RuntimeError(
                    f"muster: rank {which} alone has called stop(): all ranks do at the same step"
                )

    # ---- all ranks meet, and go on from one state -----------------------------------------------------

    def _recover(self) -> None:
        begin = time.monotonic()
        plan, cause = self._backend.meet(self._claim, self._settle, self._say_missing)
        self._check_progress(plan, cause)
        self._say_recovered(plan, time.monotonic() - begin, cause)

    def _check_progress(self, plan: list[dict], cause) -> None:
        """A step that is cut again and again, though no rank died, is cut by the script."""
        nobody_died = all(claim["kind"] == "live" for claim in plan)
        same = nobody_died and self._cut_at == self._count
        self._cuts = self._cuts + 1 if same else int(nobody_died)
        self._cut_at = self._count
        if self._cuts == _CUTS_MAX:
            raise RuntimeError(
                f"muster: step {self._place.step} of epoch {self._place.epoch} was cut {_CUTS_MAX} times, "
                f"and no rank died: do all ranks make the same calls, and within the group's timeout? {cause}"
            ) from cause

    def _claim(self) -> dict:
        kind, count = ("live", self._count) if self._is_live else ("none", 0)
        if not self._is_live and self._point is not None:
            kind, count = "disk", self._point["count"]
        return {"place": "loop", "kind": kind, "count": count, "is_finished": self._is_finished}

    def _settle(self, plan: list[dict]) -> None:
        """All have met: each gets what it lacks. What fails leaves this rank with what it had."""
        source, count, kind = decide(plan)
        self._check_claims(plan, count, kind)
        if kind == "none":
            self._generators = self._epoch_generators = self._last_generators = self._backend.gather_bytes(
                _generators.record(self._of_script)
            )
            self._digests = [0] * self._size
            own_states = self._state.pack_own()
            sizes = [size for [size] in self._backend.gather_numbers([len(own_states)])]
            self._own_states = self._backend.gather_bytes(own_states, sizes)
        if self._rank == source:
            self._become_source(kind)
            self._give(plan, count, kind)
        else:
            self._take(plan, source, count, kind)
        self._renew_reducers()
        self._calls.native.barrier()
        self._is_live = True
        self._point = None

    def _check_claims(self, plan: list[dict], count: int, kind: str) -> None:
        for rank, claim in enumerate(plan):
            if claim["place"] != "loop":
                raise RuntimeError(
                    f"muster: rank {rank} makes a call before the loop of recoverable(), and rank "
                    f"{self._rank} is in it: all ranks make the same calls"
                )
            is_behind = claim["kind"] == "live" and claim["count"] < count
            if is_behind and not (claim["is_finished"] and claim["count"] == count - 1):
                raise RuntimeError(
                    f"muster: rank {rank} has made {claim['count']} steps, and others {count}: it was not "
                    "among them when they made the last"
                )

    def _become_source(self, kind: str) -> None:
        if kind == "disk":
            self._load(self._point)
        self._go_back()
        self._is_live = True

    def _go_back(self) -> None:
        if self._is_in_step:
            self._state.go_back()
            _generators.restore(self._own_generators, self._of_script)
            self._is_finished = self._stops = False  # stop() may have been said for void numbers

    def _lacks(self, claim: dict, count: int, kind: str) -> str:
        if kind != "live" or claim["kind"] != "live":
            return "all"
        return "" if claim["count"] == count else "generators"

    def _give(self, plan: list[dict], count: int, kind: str) -> None:
        packed: dict[str, bytes] = {}
        for rank, claim in enumerate(plan):
            lacking = self._lacks(claim, count, kind)
            if rank == self._rank or not lacking:
                continue
            if lacking not in packed:
                packed[lacking] = pack(self._packed(lacking, is_over=False))
            self._backend.send_bytes(packed[lacking], rank)

    def _take(self, plan: list[dict], source: int, count: int, kind: str) -> None:
        lacking = self._lacks(plan[self._rank], count, kind)
        if not lacking:
            self._go_back()
            return
        packed = unpack(self._backend.receive_bytes(source), f"the state of rank {source}")
        if lacking == "all":
            self._load(packed)
            self._is_live = True
        else:
            self._last_generators = self._generators
            self._generators = split_records(packed["generators"], self._size)
            self._digests = packed["digests"]
            self._own_states = split_unequal(packed["own_states"])
            self._count_step()

    # ---- the state as a whole -------------------------------------------------------------------------

    def _packed(self, what: str, is_over: bool) -> dict:
        drawn = {
            "generators": join_records(self._generators),
            "digests": self._digests,
            "own_states": join_unequal(self._own_states),
        }
        if what == "generators":
            return drawn
        return {
            **drawn,
            "size": self._size,
            "epoch": self._place.epoch,
            "step": self._place.step,
            "count": self._count,
            "is_over": is_over,
            "run": os.environ.get(RUN, ""),
            "last_generators": join_records(self._last_generators),
            "epoch_generators": join_records(self._epoch_generators),
            **self._state.pack(),
        }

    def _load(self, packed: dict) -> None:
        if packed["size"] != self._size:
            raise ValueError(
                f"muster: the job had {packed['size']} ranks, and this start has {self._size}: start as "
                "many, or remove MS_RECOVERY_PATH to start fresh"
            )
        self._state.load(packed)
        if "own_states" in packed:  # not in older points
            self._own_states = split_unequal(packed["own_states"])
            self._state.load_own(self._own_states[self._rank])
        packed.setdefault("last_generators", packed["generators"])  # not in older points
        self._digests = packed.get("digests", [0] * self._size)
        self._generators, self._last_generators, self._epoch_generators = (
            split_records(packed[what], self._size)
            for what in ("generators", "last_generators", "epoch_generators")
        )
        self._count, self._batch = packed["count"], _NO_BATCH
        self._is_in_step = self._is_finished = False
        own, own_last = self._epoch_generators[self._rank], self._last_generators[self._rank]
        self._place.move(packed["epoch"], packed["step"], own, own_last)
        if self._place.step > 0 and self._digests[self._rank] not in (0, self._place.digest):
            told = other_rows(self._place.step - 1, self._place.epoch, self._rank)
            print(f"muster: {told}", file=sys.stderr, flush=True)
        _generators.restore(self._generators[self._rank], self._of_script)

    # ---- points, and the end --------------------------------------------------------------------------

    def _write_point(self, is_over: bool) -> None:
        if not self._is_writer:
            return
        self._wait_for_point()
        payload = self._points.packed(self._packed("all", is_over))
        if payload is None:
            return
        self._writing = threading.Thread(
            target=self._points.write, args=(payload, self._count), name="muster-point"
        )
        self._writing.start()

    def _wait_for_point(self) -> None:
        if self._writing is not None:
            self._writing.join()
            self._writing = None

    def _is_over_on_disk(self) -> bool:
        """Whether this job, of this very start of the launcher, has ended well."""
        return end_of_this_run(self._points) is not None

    def _end(self) -> bool:
        """Behind the last step: nobody leaves before the end is kept. False: all have met again."""
        self._write_point(is_over=True)
        self._wait_for_point()
        try:
            self._calls.native.barrier()
            return True
        except FAILURES as error:
            self._calls.cut(error)
        try:
            self._recover()
        except _OverError:
            return True
        return False

    def _say_missing(self, missing: list[int]) -> None:
        if self._place.epoch >= self._epochs and self._is_live and self._is_over_on_disk():
            raise _OverError
        present = [rank for rank in range(self._size) if rank not in missing]
        if missing and self._is_live and self._rank == present[0]:
            which = "rank" if len(missing) == 1 else "ranks"
            print(
                f"muster: waiting for {which} {', '.join(map(str, missing))} of {self._size} to come back",
                file=sys.stderr,
                flush=True,
            )

    def _say_recovered(self, plan: list[dict], seconds: float, cause) -> None:
        source, _, kind = decide(plan)
        if self._rank != source or (kind == "none" and cause is None):
            return
        came = [str(rank) for rank, claim in enumerate(plan) if claim["kind"] != "live"]
        whence = {"live": f"from rank {source}", "disk": "from the disk", "none": "from the start"}[kind]
        print(
            f"muster: all {self._size} ranks go on {whence} with step {self._place.step} of epoch "
            f"{self._place.epoch}, after {seconds:.2f} s"
            + (f"; came back: {', '.join(came)}" if came and kind == "live" else "")
            + (f" ({cause})" if cause is not None else ""),
            file=sys.stderr,
            flush=True,
        )


_taken = False  # one loop a process: who comes back would not know in which the others are


def take_the_only_loop() -> None:
    """Raises RuntimeError for a second one."""
    global _taken
    if _taken:
        raise RuntimeError(
            "muster: a job that recovers has one loop of recoverable(), or one fit() of Lightning: make one "
            "loop of all epochs"
        )
    _taken = True


def recoverable(
    model: torch.nn.Module,
    optimizer,
    loader,
    epochs: int = 1,
    *,
    lr_scheduler=None,
    sampler=None,
    states: dict | None = None,
    own_states: dict | None = None,
    save_steps: int = 100,
) -> Steps:
    """The two loops of a training, over epochs and over the batches of a loader, of a job that recovers.

        for epoch, step, (x, y) in muster.torch.recoverable(net, optimizer, loader, epochs=10):
            optimizer.zero_grad()
            loss_fn(net(x), y).backward()
            optimizer.step()

    Both numbers count from 0, the step within its epoch. Where MS_ENABLE_RECOVERY=1, which `muster run
    --max-restarts 10` sets, a rank that dies and is started again gets parameters, buffers, optimizer state,
    the state of random numbers and the place in the loader from the others, which keep their processes. Only
    the interrupted step is made again: its collective calls return without a right value, `is_aborted` says
    so, and all that the body has changed in what is named here is undone. Without the variable it is two
    loops.

    model: a module that all ranks have whole, as a rule DistributedDataParallel; several as an nn.ModuleList.
    optimizer: one, or a list. loader: a DataLoader or what else can be iterated again for each epoch.
    lr_scheduler: one, or a list; stepped by the body. sampler: whose set_epoch(epoch) is called where an
    epoch begins; without one, that of all that the loader has (samplers, datasets, loaders). states: further
    objects with state_dict() and load_state_dict() by name, the same on all ranks, and generators of torch,
    numpy or random, of which each rank has its own (those of the loader, its samplers and its dataset need
    not be named). own_states: objects with state_dict() and load_state_dict() of which each rank has its own,
    as the hidden state that a step leaves for the next one. save_steps: after so many steps a point is
    written to MS_RECOVERY_PATH, where the job goes on when all ranks have died.

    Raises ValueError for what cannot be kept: parts of parameters (FSDP, ZeroRedundancyOptimizer), parameters
    that the model has not, states without state_dict(), and behind the first step those of other things than
    tensors, numbers, arrays, strings, lists and dicts. SystemExit(69), with a line that names them, when
    ranks do not come back within MS_NODE_TIMEOUT (600 s).
    """
    if epochs < 0 or save_steps < 1:
        raise ValueError(f"muster: epochs={epochs} and save_steps={save_steps}: at least 0 and 1")
    if recovers() and dist.is_initialized():
        take_the_only_loop()
    named = dict(states or {})
    for index, scheduler in enumerate(_listed(lr_scheduler)):
        named[f"lr_scheduler {index}"] = scheduler
    return Steps(
        model, _listed(optimizer), loader, epochs, sampler, named, dict(own_states or {}), save_steps
    )
