"""A training of Lightning whose ranks can die and come back: fit().

    import muster.torch.lightning

    strategy = DDPStrategy(process_group_backend="muster")
    trainer = lightning.Trainer(accelerator="cpu", devices=4, strategy=strategy)
    muster.torch.lightning.fit(trainer, model, data)  # was: trainer.fit(model, data)

Lightning's loops count batches, call hooks and write files in the middle of a step, so that a step cannot be
made twice. What they can is to begin from a checkpoint. So each rank keeps one in memory, from before each
batch, and when a rank is lost all ranks leave trainer.fit(), meet (the one that was started again, too), and
begin again from the newest of these checkpoints, in the processes that they have.
"""

import copy
import io
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

from muster.torch import _generators
from muster.torch._behind_the_end import RUN, end_of_this_run
from muster.torch._ddp import ddp_modules, share_buffers
from muster.torch._errors import FAILURES
from muster.torch._loader_place import (
    digest_of,
    end_workers,
    generators_of,
    other_rows,
    passes_cheaply,
    sampler_of_epochs,
)
from muster.torch._points import Points, pack, unpack
from muster.torch._recoverable import decide, take_the_only_loop
from muster.torch._recovering_backend import RecoveringBackend, recovers, split_records
from muster.torch._step_mark import step_mark

OLDEST = (2, 6)  # of Lightning: the first whose loops begin in the middle of an epoch as here
_CUTS_MAX = 3


def _say(text: str) -> None:
    print(f"muster: {text}", file=sys.stderr, flush=True)


def _check_trainer(trainer) -> None:
    """Raises ImportError for an older Lightning, ValueError for a strategy whose ranks are not all alike."""
    package = type(trainer).__module__.partition(".")[0]
    version = getattr(sys.modules[package], "__version__", "0.0")
    major, minor = version.split(".")[:2]
    if (int(major), int(minor)) < OLDEST:
        raise ImportError(
            f"muster.torch.lightning needs Lightning {OLDEST[0]}.{OLDEST[1]} or newer, this is {version}: "
            f"pip install '{package.replace('_', '-')}>={OLDEST[0]}.{OLDEST[1]}'"
        )
    strategy = type(trainer.strategy).__name__
    if strategy != "DDPStrategy" or trainer.strategy.process_group_backend != "muster":
        raise ValueError(
            'muster: fit() needs Trainer(strategy=DDPStrategy(process_group_backend="muster")), this is '
            f"{strategy} over {getattr(trainer.strategy, 'process_group_backend', None) or 'its own backend'}"
        )


def _reads_ahead(fetcher) -> bool:
    """Whether a batch is read before the step of the one before: so the last is known without a length."""
    return fetcher.length is None


def _digest_ahead(fetcher) -> int:
    """Of the batch that comes next, where it was read already; else 0."""
    return digest_of(fetcher.batches[0]) if _reads_ahead(fetcher) and fetcher.batches else 0


def _pass(fetcher, count: int, before_last: Callable[[], None]) -> None:
    """Passes over the first batches of an epoch that has just been opened.

    before_last: called before the last of them, behind which who reads ahead reads the batch that comes next.
    """
    if not count:
        return
    batches = fetcher if _reads_ahead(fetcher) else fetcher.iterator
    pass_one = batches.__next__
    loaders = fetcher.combined_loader.flattened
    if len(loaders) == 1 and not _reads_ahead(fetcher) and passes_cheaply(loaders[0]):
        [opened] = fetcher.iterator._iterator.iterators
        pass_one = getattr(opened, "_next_index", pass_one)
    for index in range(count):
        if index == count - 1:
            before_last()
        try:
            pass_one()
        except StopIteration:
            raise ValueError(
                f"muster: the job is at batch {count} of its epoch, and the loader of this script has "
                f"{index}: start the script as it was"
            ) from None


def _modes(model) -> dict[str, bool]:
    return {name: module.training for name, module in model.named_modules()}


def _set_modes(model, modes: dict[str, bool]) -> None:
    """A validation that was cut has left the modules of this rank in eval()."""
    for name, module in model.named_modules():
        module.training = modes.get(name, module.training)


def _joined(records: list[bytes]) -> list[torch.Tensor]:
    return [
        torch.frombuffer(bytearray(record), dtype=torch.uint8)
        if record
        else torch.empty(0, dtype=torch.uint8, device="cpu")
        for record in records
    ]


def _apart(joined, size: int) -> list[bytes]:
    """The other way round; in points of older versions all records are of one length, and in one tensor."""
    if isinstance(joined, torch.Tensor):
        return split_records(joined, size)
    return [record.numpy().tobytes() for record in joined]


class _Point:
    """Where the training can begin again: before a batch.

    generators: of all ranks, now; openings and firsts: when loaders were opened for the epoch, and before its
    first batch, where samplers draw; reads: before the batch was read, of ranks that read ahead, and digests:
    of what those have read. checkpoint: Lightning's, or what torch.save() made of it.
    """

    def __init__(
        self,
        count: int,
        batch: int,
        modes: dict[str, bool],
        digests: list[int],
        generators,
        openings,
        firsts,
        reads,
        checkpoint,
    ) -> None:
        self.count, self.batch, self.modes, self.digests = count, batch, modes, digests
        self.generators, self.openings, self.firsts, self.reads = generators, openings, firsts, reads
        self._checkpoint = checkpoint

    def checkpoint_bytes(self) -> bytes:
        if not isinstance(self._checkpoint, bytes):
            buffer = io.BytesIO()
            torch.save(self._checkpoint, buffer)
            self._checkpoint = buffer.getvalue()
        return self._checkpoint

    def packed(self, is_over: bool) -> bytes:
        return pack(
            {
                "size": len(self.generators),
                "count": self.count,
                "batch": self.batch,
                "modes": self.modes,
                "digests": self.digests,
                "is_over": is_over,
                "run": os.environ.get(RUN, ""),
                "generators": _joined(self.generators),
                "openings": _joined(self.openings),
                "firsts": _joined(self.firsts),
                "reads": _joined(self.reads),
                "checkpoint": torch.frombuffer(bytearray(self.checkpoint_bytes()), dtype=torch.uint8),
            }
        )

    @classmethod
    def of(cls, found: dict, size: int) -> "_Point":
        if found["size"] != size:
            raise ValueError(
                f"muster: the job had {found['size']} ranks, and this start has {size}: start as many, or "
                "remove MS_RECOVERY_PATH to start fresh"
            )
        found.setdefault("firsts", found["openings"])  # not in points of older versions
        found.setdefault("reads", _joined([b""] * size))
        kept = [_apart(found[what], size) for what in ("generators", "openings", "firsts", "reads")]
        checkpoint = found["checkpoint"].numpy().tobytes()
        digests = found.get("digests", [0] * size)
        return cls(found["count"], found["batch"], found["modes"], digests, *kept, checkpoint)


def _loaders_of(loop) -> list:
    """Of a loop that trains or validates, once it has asked for them."""
    return [] if loop._combined_loader is None else list(loop._combined_loader.flattened)


def _end_workers(loop) -> None:
    for loader in _loaders_of(loop):
        end_workers(loader)


def _set_epoch(loop) -> None:
    """Before loaders are opened, whose workers read the first indices then: Lightning does it behind that."""
    for loader in _loaders_of(loop):
        sampler = sampler_of_epochs(loader)
        if sampler is not None:
            sampler.set_epoch(loop.epoch_progress.current.processed)


class _Random:
    """The random numbers of a rank: those of the process and the generators that its loaders have."""

    def __init__(self, trainer) -> None:
        self._loops = (trainer.fit_loop, trainer.fit_loop.epoch_loop.val_loop)
        self._first = _generators.record()
        self._firsts: dict[int, tuple] = {}  # those of loaders, and what they were when first seen

    def see(self) -> list:
        """Of the loaders that are there; to be called before they are opened."""
        found = [
            each for loop in self._loops for loader in _loaders_of(loop) for each in generators_of(loader)
        ]
        for each in found:
            if id(each) not in self._firsts:
                self._firsts[id(each)] = (each, _generators.state_of(each))
        return found

    def record(self) -> bytes:
        return _generators.record(self.see())

    def restore(self, kept: bytes) -> None:
        _generators.restore(kept, self.see())

    def lacks_loaders(self, kept: bytes) -> bool:
        """Whether `kept` has generators of loaders that no loop has asked for yet."""
        return len(kept) > len(self.record())

    def begin_again(self) -> None:
        _generators.restore(self._first)
        for generator, state in self._firsts.values():
            _generators.set_state(generator, state)


class _Fit:
    """One call of fit() in a job that recovers."""

    def __init__(self, trainer, model, backend, keep_every: int, save_every: int) -> None:
        self._trainer, self._model, self._first_modes = trainer, model, _modes(model)
        self._backend, self._calls = backend, backend.calls
        self._rank, self._size = backend.calls.rank, backend.calls.size
        self._keep_every, self._save_every = keep_every, save_every
        self._batches = self._saved = 0  # that were begun since the start of the job, and when one was saved
        self._point: _Point | None = None
        self._resumed: _Point | None = None  # with which this rank begins, until it is there
        self._random = _Random(trainer)
        self._opening = self._first_of_epoch = self._before_read = self._random.record()
        self._cut_at, self._cuts = -1, 0
        folder = os.environ.get("MS_RECOVERY_PATH") or None
        self._points = Points(folder, self._rank)
        self._is_writer = int(os.environ.get("LOCAL_RANK") or self._rank) == 0
        self._on_disk: dict | None = None
        self._mark = step_mark(folder)
        self._watch_loops()

    # ---- what is kept ---------------------------------------------------------------------------------

    def _watch_loops(self) -> None:
        loop, epoch_loop = self._trainer.fit_loop, self._trainer.fit_loop.epoch_loop
        load_states, open_next, advance = (
            loop._load_combined_loader_states,
            epoch_loop.on_run_start,
            epoch_loop.advance,
        )
        reset_validation = epoch_loop.val_loop.reset

        def before_first_opening() -> None:
            """Where the loop has its loaders, and opens them next."""
            load_states()
            _set_epoch(loop)
            _end_workers(loop)
            self._opening = self._before_opening()

        def on_run_start(fetcher) -> None:
            """Opens the loaders of later epochs; also called where they are open."""
            before, opened = self._before_opening(), loop._combined_loader._iterator
            _end_workers(loop)
            open_next(fetcher)
            if loop._combined_loader._iterator is not opened:
                self._opening = before

        def reset() -> None:
            _end_workers(epoch_loop.val_loop)
            self._random.see()
            reset_validation()

        def advance_from_point(fetcher) -> None:
            self._before_batch(fetcher)
            advance(fetcher)

        loop._load_combined_loader_states, epoch_loop.on_run_start = before_first_opening, on_run_start
        epoch_loop.val_loop.reset, epoch_loop.advance = reset, advance_from_point

    def _before_opening(self) -> bytes:
        """The loader draws where it is opened: who begins in the middle of an epoch draws the same."""
        if self._resumed is not None:
            self._random.restore(self._resumed.openings[self._rank])
        return self._random.record()

    def _before_batch(self, fetcher) -> None:
        loop = self._trainer.fit_loop
        if self._resumed is None:
            now = self._random.record()
            if loop.epoch_loop.batch_progress.current.ready == 0:
                self._first_of_epoch = now
            self._keep(now, self._before_read if _reads_ahead(fetcher) else b"", _digest_ahead(fetcher))
            self._before_read = now
            return
        point, self._resumed = self._resumed, None
        # All is as before this batch: what Lightning leaves out in an epoch that it begins again is not.
        loop._restarting = loop.epoch_loop.restarting = False
        _set_modes(self._model, point.modes)
        if self._random.lacks_loaders(point.generators[self._rank]):
            self._ask_for_validation()
        self._first_of_epoch = point.firsts[self._rank]
        self._random.restore(self._first_of_epoch)
        self._before_read = point.generators[self._rank]
        _pass(fetcher, point.batch, lambda: self._restore_some(point.reads[self._rank]))
        self._random.restore(self._before_read)
        self._compare_batch(_digest_ahead(fetcher), point)

    def _compare_batch(self, digest: int, point: _Point) -> None:
        if point.digests[self._rank] not in (0, digest):
            _say(other_rows(point.batch, self._trainer.current_epoch, self._rank))

    def _restore_some(self, kept: bytes) -> None:
        if kept:
            self._random.restore(kept)

    def _ask_for_validation(self) -> None:
        """Its loaders were asked for before all began again, as by the validation that tries all out."""
        self._trainer.validating = True
        self._trainer.fit_loop.epoch_loop.val_loop.setup_data()
        self._trainer.training = True

    def _keep(self, now: bytes, before_read: bytes, digest: int) -> None:
        """No rank keeps what is before a batch until all have come there."""
        self._batches += 1
        loop = self._trainer.fit_loop
        if self._point is not None and (
            self._batches - self._point.count < self._keep_every
            or not loop.epoch_loop._accumulated_batches_reached()  # gradients are in no checkpoint
        ):
            return
        place = [loop.epoch_progress.current.processed, loop.epoch_loop.batch_progress.current.ready]
        records = [now, self._opening, self._first_of_epoch, before_read]
        said = self._backend.gather_numbers([*place, digest, *map(len, records)])
        for rank, row in enumerate(said):
            other = row[: len(place)]
            if other != place:
                raise RuntimeError(
                    f"muster: rank {rank} is at batch {other[1]} of epoch {other[0]} and rank {self._rank} "
                    f"at batch {place[1]} of epoch {place[0]}: the loaders of all ranks need as many batches"
                )
        share_buffers(ddp_modules(self._trainer.strategy.model), self._calls.native)
        digests, *sizes = list(zip(*said, strict=True))[len(place) :]
        gathered = list(map(self._backend.gather_bytes, records, sizes))
        checkpoint = copy.deepcopy(self._trainer._checkpoint_connector.dump_checkpoint(weights_only=False))
        modes = _modes(self._model)
        self._point = _Point(self._batches, place[1], modes, list(digests), *gathered, checkpoint)
        self._mark(self._batches)
        if self._batches - self._saved >= self._save_every:
            self._saved = self._batches
            self._save(self._point, is_over=False)

    def _save(self, point: _Point, is_over: bool) -> None:
        if self._is_writer and self._points.folder is not None:
            self._points.write(point.packed(is_over), point.count)

    # ---- all ranks meet, and begin from one point -----------------------------------------------------

    def run(self, **arguments) -> None:
        end = end_of_this_run(self._points)
        if end is not None:
            self._take_end(end)
            return
        self._on_disk = self._points.find()
        if self._on_disk is not None and self._on_disk["is_over"]:
            self._on_disk = None  # of a job that ended well: this is another one
            self._points.remove_all()
        given = arguments.pop("ckpt_path", None)
        while True:
            begin = time.monotonic()
            self._calls.is_in_loop = self._calls.raises = False
            plan, cause = self._backend.meet(self._claim, self._settle, self._say_missing)
            self._check_progress(plan, cause)
            self._say_met(plan, time.monotonic() - begin, cause)
            self._calls.is_in_loop = self._calls.raises = True
            try:
                self._fit(given, arguments)
                return
            except Exception as error:
                if isinstance(error, FAILURES):
                    self._calls.note(error)
                if self._calls.failure is None:
                    raise  # the script's own
            finally:
                self._calls.is_in_loop = self._calls.raises = False

    def _fit(self, given, arguments) -> None:
        self._resumed = self._point
        if self._point is None:
            self._batches = self._saved = 0
            _set_modes(self._model, self._first_modes)
            self._random.begin_again()
            self._trainer.fit(self._model, ckpt_path=given, **arguments)
        else:
            self._batches = self._saved = self._point.count
            _set_modes(self._model, self._point.modes)
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*your dataloader is not resumable.*")  # ours is
                file = Path(folder) / "point.ckpt"
                file.write_bytes(self._point.checkpoint_bytes())
                self._trainer.fit(self._model, ckpt_path=file, weights_only=False, **arguments)
        self._end()

    def _end(self) -> None:
        """Nobody leaves before all have come here, and the end is kept."""
        if self._point is not None:
            checkpoint = {"state_dict": self._trainer.lightning_module.state_dict()}
            generators = self._point.generators
            over = _Point(self._batches + 1, 0, {}, [0] * self._size, *[generators] * 4, checkpoint)
            self._save(over, is_over=True)
        try:
            self._calls.native.barrier()
        except FAILURES:
            if end_of_this_run(self._points) is None:
                raise

    def _take_end(self, end: dict) -> None:
        """It died behind the end of the training: nobody is there to begin anything with."""
        found = torch.load(io.BytesIO(end["checkpoint"].numpy().tobytes()), weights_only=True)
        self._model.load_state_dict(found["state_dict"])
        _say(f"rank {self._rank} takes the end of the training from the disk")

    def _claim(self) -> dict:
        kind, count = "none", 0
        if self._point is not None:
            kind, count = "live", self._point.count
        elif self._on_disk is not None:
            kind, count = "disk", self._on_disk["count"]
        return {"place": "lightning", "kind": kind, "count": count}

    def _settle(self, plan: list[dict]) -> None:
        """All have met: who has an older point than another gets the newest."""
        source, count, kind = decide(plan)
        if kind == "none":
            return
        if self._rank == source:
            point = _Point.of(self._on_disk, self._size) if kind == "disk" else self._point
            payload = point.packed(is_over=False)
        for rank, claim in enumerate(plan):
            if rank == source or (claim["kind"], claim["count"]) == ("live", count):
                continue
            if self._rank == source:
                self._backend.send_bytes(payload, rank)
            elif self._rank == rank:
                found = unpack(self._backend.receive_bytes(source), f"the state of rank {source}")
                point = _Point.of(found, self._size)
        self._calls.native.barrier()
        if self._rank == source or (plan[self._rank]["kind"], plan[self._rank]["count"]) != ("live", count):
            self._point = point

    def _check_progress(self, plan: list[dict], cause) -> None:
        """What is cut again and again at one batch, though no rank died, is cut by the script."""
        count = decide(plan)[1]
        nobody_died = cause is not None and all(claim["kind"] == "live" for claim in plan)
        self._cuts = self._cuts + 1 if nobody_died and self._cut_at == count else int(nobody_died)
        self._cut_at = count
        if self._cuts == _CUTS_MAX:
            raise RuntimeError(
                f"muster: the training was cut {_CUTS_MAX} times behind batch {count}, and no rank died: do "
                f"all ranks make the same calls, and within the timeout of the strategy? {cause}"
            ) from cause

    def _say_missing(self, missing: list[int]) -> None:
        present = [rank for rank in range(self._size) if rank not in missing]
        if missing and self._point is not None and self._rank == present[0]:
            which = "rank" if len(missing) == 1 else "ranks"
            _say(f"waiting for {which} {', '.join(map(str, missing))} of {self._size} to come back")

    def _say_met(self, plan: list[dict], seconds: float, cause) -> None:
        source, _, kind = decide(plan)
        if self._rank != source or (kind == "none" and cause is None):
            return
        whence = {"live": f"from rank {source}", "disk": "from the disk", "none": "from the start"}[kind]
        where = "" if self._point is None else f" with batch {self._point.batch}"
        why = "" if cause is None else f" ({cause})"
        _say(f"all {self._size} ranks go on {whence}{where}, after {seconds:.2f} s{why}")


def fit(trainer, model, *arguments, keep_every: int = 1, save_every: int = 100, **named) -> None:
    """trainer.fit(model, *arguments, **named) of a job whose ranks can die and come back.

    Where MS_ENABLE_RECOVERY=1, which `muster run --max-restarts 10` sets, a rank that dies and is started
    again gets what the others have, which keep their processes; all begin again before the batch that was
    interrupted, from a checkpoint of Lightning's own in memory: parameters, optimizers, schedulers, loops,
    callbacks, what on_save_checkpoint() adds, and the random numbers of each rank. Without the variable it is
    trainer.fit().

    trainer: with strategy=DDPStrategy(process_group_backend="muster"). keep_every: a checkpoint is kept
    before every so many batches; each is a copy of parameters and optimizer state, and as many batches are
    repeated. save_every: after so many batches one is written to MS_RECOVERY_PATH, for the case that all
    ranks die.

    Raises ImportError where Lightning is older than 2.6; ValueError for another strategy or backend.
    SystemExit(69), with a line that names them, when ranks do not come back within MS_NODE_TIMEOUT (600 s).
    """
    _check_trainer(trainer)
    if keep_every < 1 or save_every < keep_every:
        raise ValueError(f"muster: keep_every={keep_every} and save_every={save_every}: 1 <= keep <= save")
    if not recovers():
        trainer.fit(model, *arguments, **named)
        return
    take_the_only_loop()
    trainer.strategy.setup_environment()
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    if not isinstance(backend, RecoveringBackend):
        raise ValueError(
            f"muster: fit() needs a group of Muster, and the default one is of {dist.get_backend()}: leave "
            "out init_process_group()"
        )
    if arguments:
        names = ("train_dataloaders", "val_dataloaders", "datamodule", "ckpt_path")
        named |= dict(zip(names, arguments, strict=False))
    _Fit(trainer, model, backend, keep_every, save_every).run(**named)
