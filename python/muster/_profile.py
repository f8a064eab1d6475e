"""Profiles: where the time of a training goes, as tables and as a trace for Perfetto.

Each rank writes rank<N>.json in a folder: what its main thread did and each op, on the host's monotonic
clock. `report` joins those of all ranks.
"""

import contextlib
import os
import sys

from muster import _core

NAMES = (
    "computing",
    "dispatch",
    "communication",
    "waiting",
    "reading data",
    "saving",
    "evaluating",
    "script",
)
_OF_PHASE = {
    "reading_data": "reading data",
    "computing": "dispatch",  # what is left of it when its ops are counted
    "saving": "saving",
    "evaluating": "evaluating",
    "starting": "script",
    "script": "script",
}


def _own_time(op):
    """Nanoseconds of an op on the main thread."""
    return op[4] - (op[8] if len(op) > 8 else 0)


class _Rank:
    """What one rank has written."""

    def __init__(self, data):
        self.data = data
        self.rank, self.host = data["rank"], data["host"]
        self.wall = data["end"] - data["begin"]
        # Of the main thread; a fourth number says that an op ran on another one.
        self.own_spans = [span for span in data["op_spans"] if len(span) == 3]
        self.calls = [span for span in self.own_spans if data["ops"][span[0]][2]]  # with other workers
        self.offset = 0  # what its clock lacks to that of the first rank
        self.waited = [0] * len(self.calls)

    def shares(self):
        """Nanoseconds by name: NAMES, which add up to the whole."""
        of = dict.fromkeys(NAMES, 0)
        for phase, time in self.data["phases"].items():
            of[_OF_PHASE[phase]] += time
        for name, time in self._ops_by_phase():
            of[name] -= time
        of["computing"] = sum(_own_time(op) for op in self.data["ops"] if not op[2])
        of["waiting"] = sum(self.waited)
        of["communication"] = sum(_own_time(op) for op in self.data["ops"] if op[2]) - of["waiting"]
        return {name: max(0, time) for name, time in of.items()}

    def _ops_by_phase(self):
        """(name, time) of ops that ran while the main thread did that; of dropped spans as if it computed."""
        spans, at = sorted(self.data["phase_spans"], key=lambda span: span[1]), 0
        counted = 0
        for _, begin, end in sorted(self.own_spans, key=lambda span: span[1]):
            while at + 1 < len(spans) and spans[at + 1][1] <= begin:
                at += 1
            counted += end - begin
            yield _OF_PHASE[spans[at][0]] if spans else "dispatch", end - begin
        yield "dispatch", sum(map(_own_time, self.data["ops"])) - counted


def _rank_files(folder):
    """(rank, path) of what ranks have written."""
    for name in os.listdir(folder):
        number = name.removeprefix("rank").removesuffix(".json")
        if number.isdecimal() and name == f"rank{number}.json":
            yield int(number), os.path.join(folder, name)


def _read(path):
    import json  # here and below: `import muster` loads none of these

    try:
        with open(path) as file:
            return _Rank(json.load(file))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"'{path}' is no whole profile ({type(error).__name__}: {error}): record it again, or take the "
            "file away for a report of the other ranks"
        ) from error


def _load(folder):
    ranks = [_read(path) for _, path in _rank_files(folder)]
    if not ranks:
        raise FileNotFoundError(f"there is no profile in '{folder}': rank0.json is what a profile writes")
    ranks.sort(key=lambda rank: rank.rank)
    _join(ranks)
    return ranks


def _join(ranks):
    """Clocks of hosts on that of the first, and of each call what was waiting for others.

    A call of all workers ends for all of them at about the same time, and takes as long as for the one that
    comes last: what the others are in it longer is waiting.
    """
    counts = {len(rank.calls) for rank in ranks}
    if len(counts) != 1 or counts == {0}:
        return
    import statistics

    first = ranks[0]
    for rank in ranks[1:]:
        if rank.host != first.host:
            pairs = zip(first.calls, rank.calls, strict=True)
            rank.offset = round(statistics.median(mine[2] - other[2] for mine, other in pairs))
    for number, calls in enumerate(zip(*(rank.calls for rank in ranks), strict=True)):
        least = min(end - begin for _, begin, end in calls)
        for rank, (_, begin, end) in zip(ranks, calls, strict=True):
            rank.waited[number] = end - begin - least


def _time_text(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds / 1e3:.3g} us"


def _table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        + "\n"
        for row in rows
    )


def _ranks_table(ranks):
    rows = [["rank", "time", *NAMES]]
    for rank in ranks:
        shares = rank.shares()
        rows.append(
            [str(rank.rank), _time_text(rank.wall)]
            + [f"{100 * shares[name] / max(1, rank.wall):.1f} %" for name in NAMES]
        )
    return _table(rows)


_CACHED = 4 << 20  # bytes of a call that may come from caches, to which the peak of memory is no limit


def _rates(flops, size_bytes, calls, time, peaks):
    """Of what an op did in `time` nanoseconds: GFLOP/s, GB/s, and the greater share of the two peaks."""
    if not time or not size_bytes:
        return ["", "", ""]
    rates = flops / time, size_bytes / time
    shares = [rate / peak for rate, peak in zip(rates, peaks or (), strict=False)]
    if size_bytes / calls < _CACHED:
        del shares[1:]
    share = max(shares, default=0)
    return [
        f"{rates[0]:.3g}" if flops else "",
        f"{rates[1]:.3g}",
        f"{100 * share:.0f} %" if share else "",
    ]


def _ops_table(rank, most=20):
    total = sum(op[4] for op in rank.data["ops"]) or 1
    by_what = {}
    for what, _, talks, calls, time, flops, size_bytes, *_ in rank.data["ops"]:
        known = by_what.setdefault(what, [0, 0, 0, 0])
        work = (0, 0) if talks else (flops, size_bytes)  # what travels is no work of this processor
        for at, more in enumerate((calls, time, *work)):
            known[at] += more
    rows = [["op", "calls", "each", "time", "share", "GFLOP/s", "GB/s", "of the peak"]]
    slowest = sorted(by_what.items(), key=lambda item: -item[1][1])
    for what, (calls, time, flops, size_bytes) in slowest[:most]:
        row = [what, str(calls), _time_text(time / calls), _time_text(time), f"{100 * time / total:.1f} %"]
        rows.append(row + _rates(flops, size_bytes, calls, time, rank.data.get("peaks")))
    rest = slowest[most:]
    if rest:
        time = sum(each[1] for _, each in rest)
        rows.append(
            [
                f"{len(rest)} more",
                str(sum(each[0] for _, each in rest)),
                "",
                _time_text(time),
                f"{100 * time / total:.1f} %",
                *("", "", ""),
            ]
        )
    return _table(rows)


def _size_text(size_bytes):
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if size_bytes >= size:
            return f"{size_bytes / size:.3g} {unit}"
    return f"{size_bytes / 1024:.3g} KiB"


def _memory_text(rank):
    """What a step holds where it holds most, and who made it."""
    what, held, parameters, largest = rank.data["peak"]
    if not held:
        return ""
    rows = [[f"  {maker}", _size_text(size)] for maker, size in largest]
    return (
        f"\nmemory of rank {rank.rank}: {_size_text(held)} between ops at the peak, beside "
        f"{_size_text(parameters)} of parameters and of the optimizer; it is in {what}, and the largest are "
        f"then\n{_table(rows)}"
    )


def _trace(ranks):
    """In Chrome's trace format, times in microseconds."""
    start = min(rank.data["begin"] + rank.offset for rank in ranks)
    events = []
    for rank in ranks:

        def span(name, category, begin, end, thread=0, rank=rank):
            return {
                "ph": "X",
                "name": name,
                "cat": category,
                "pid": rank.rank,
                "tid": thread,
                "ts": (begin + rank.offset - start) / 1e3,
                "dur": (end - begin) / 1e3,
            }

        events.append(
            {
                "ph": "M",
                "name": "process_name",
                "pid": rank.rank,
                "args": {"name": f"rank {rank.rank} ({rank.host})"},
            }
        )
        events += [
            span(phase.replace("_", " "), "phase", *times) for phase, *times in rank.data["phase_spans"]
        ]
        for thread, (index, begin, end, *_) in _with_threads(rank.data["op_spans"]):
            what, _, talks, *_ = rank.data["ops"][index]
            events.append(span(what, "communication" if talks else "op", begin, end, thread))
        events += _held(rank, start)
    if len({len(rank.calls) for rank in ranks}) == 1:
        events += _arrows(ranks, start)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _with_threads(spans):
    """Each with a number: 0 is the main thread; those of others take the first that is free then."""
    free_from = []
    for span in sorted(spans, key=lambda span: span[1]):
        if len(span) == 3:
            yield 0, span
            continue
        free = (at for at, end in enumerate(free_from) if end <= span[1])
        at = next(free, len(free_from))
        free_from[at : at + 1] = [span[2]]
        yield at + 1, span


def _held(rank, start):
    """What lies between ops, as a curve."""
    before = None
    for index, begin, _ in rank.own_spans:
        held = rank.data["ops"][index][7]
        if held == before:
            continue
        before = held
        yield {
            "ph": "C",
            "name": "memory between ops",
            "pid": rank.rank,
            "ts": (begin + rank.offset - start) / 1e3,
            "args": {"MiB": held / (1 << 20)},
        }


def _arrows(ranks, start):
    """From the rank that comes last into a call to all others, whose ends it lets go."""
    for number, calls in enumerate(zip(*(rank.calls for rank in ranks), strict=True)):
        last = max(range(len(ranks)), key=lambda index: calls[index][1] + ranks[index].offset)
        for index, rank in enumerate(ranks):
            if index == last:
                continue
            common = {"name": "lets go", "cat": "wait", "id": number * len(ranks) + index, "tid": 0}
            begin = calls[last][1] + ranks[last].offset - start
            end = max(begin, calls[index][2] + rank.offset - start)
            yield {**common, "ph": "s", "pid": ranks[last].rank, "ts": begin / 1e3}
            yield {**common, "ph": "f", "bp": "e", "pid": rank.rank, "ts": end / 1e3}


def report(folder):
    """The tables of a folder's profile as text; writes trace.json there. FileNotFoundError without one."""
    from muster._profile_hints import hints

    ranks = _load(folder)
    dropped = sum(rank.data["dropped"] for rank in ranks)
    return (
        f"{_ranks_table(ranks)}\nops of rank {ranks[0].rank}:\n{_ops_table(ranks[0])}"
        f"{_memory_text(ranks[0])}\n{hints(ranks)}"
        + (f"{dropped} spans are not in the trace, only in the tables\n" if dropped else "")
        + _write_trace(folder, ranks)
    )


def _write_trace(folder, ranks):
    """Where it is, or why it is not: the tables are worth showing without it."""
    import json

    path = os.path.join(folder, "trace.json")
    try:
        with open(path, "w") as file:
            json.dump(_trace(ranks), file)
    except OSError as error:
        return f"no trace is written: {error}\n"
    return f"trace for ui.perfetto.dev or chrome://tracing: {path}\n"


def start():
    """Records from now on. ValueError where a profile is recorded already."""
    _core._start_profile()


def begin(what):
    """start() by a part of a script; under `muster profile`, which records that too, it says so: False."""
    if _records_all:
        print(
            f"muster: {what} writes no profile of its own: this run is recorded from begin to end",
            file=sys.stderr,
            flush=True,
        )
        return False
    start()
    return True


def stop(folder):
    """Ends the profile and writes rank<N>.json in `folder`; its path. ValueError where none is recorded.

    What a greater job has left in the folder goes: its ranks would be taken for those of this one.
    """
    path = _core._stop_profile(os.fspath(folder))
    for rank, other in list(_rank_files(folder)) if _core._rank() == 0 else ():
        if rank >= _core._world_size():
            os.remove(other)
    return path


def tell(folder, ranks):
    """What rank 0 prints at the end of a profile: of a job the others may still write."""
    if _core._rank() != 0:
        return
    if ranks == 1:
        print(report(folder), end="", flush=True)
    else:
        print(f"profile of rank 0 written; of all {ranks} ranks: muster profile {folder}", flush=True)


@contextlib.contextmanager
def profile(folder="muster-profile"):
    """Records what runs in a `with` block; behind it the tables are printed and the trace is written.

    In a job every rank writes rank<N>.json in `folder`, and `muster profile FOLDER` shows all of them.
    ValueError where a profile is recorded already; where `muster profile` records the whole script, nothing.
    """
    is_mine = begin("train.profile")
    try:
        yield
    finally:
        if is_mine:
            stop(folder)
            tell(folder, _core._world_size())


class Profiler(_core.Callback):
    """Records the steps `start` to `stop` of a training, from 1, and shows where their time went.

    Each rank writes rank<N>.json in `folder`. In a process alone the tables are printed and
    `folder`/trace.json is written; in a job `muster profile FOLDER` does both for all ranks. An op costs
    0.1 us more meanwhile, else nothing. For a loop by hand: train.profile().
    """

    def __init__(self, start=10, stop=59, folder="muster-profile"):
        super().__init__()
        if not 1 <= start <= stop:
            raise ValueError(
                f"Profiler: start is {start} and stop {stop}: steps from 1, stop not before start"
            )
        self._first, self._last, self._folder = start, stop, os.fspath(folder)
        self._is_recording = self._has_begun = False

    def on_train_begin(self, run_context):
        """None of its steps is recorded yet."""
        self._has_begun = False

    def on_train_step_begin(self, run_context):
        """Begins before step `start`."""
        if run_context.cur_step_num == self._first and not self._is_recording:
            self._has_begun = True
            self._is_recording = begin("train.Profiler")

    def on_train_step_end(self, run_context):
        """Ends behind step `stop`."""
        if run_context.cur_step_num >= self._last:
            self._end()

    def __exit__(self, *error):
        self._end()
        if not self._has_begun and _core._rank() == 0:
            print(
                f"muster: train.Profiler recorded nothing: the training did not come to step {self._first}, "
                "where it starts",
                file=sys.stderr,
                flush=True,
            )

    def _end(self):
        if self._is_recording:
            self._is_recording = False
            stop(self._folder)
            tell(self._folder, _core._world_size())

    def state_dict(self):
        """Nothing: a profile is of one process."""
        return {}

    def load_state_dict(self, state):
        """Nothing."""


_records_all = False


def record_until_exit(folder):
    """What `muster profile` does to a script."""
    global _records_all
    _core._report_use()
    if os.environ.get("MS_ROLE", "MS_WORKER") != "MS_WORKER":
        return  # the scheduler and servers train nothing
    import atexit
    import signal
    import threading

    owner = os.getpid()

    def end():
        if os.getpid() == owner:  # a forked child leaves the profile to its parent
            stop(folder)
            tell(folder, _core._world_size())

    def end_script(number, frame):
        if os.getpid() == owner:
            sys.exit(128 + number)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    start()
    _records_all = True
    atexit.register(end)
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end_script)  # as timeout(1) and launchers send it


def show():
    """What `muster profile FOLDER` does."""
    try:
        print(report(sys.argv[1]), end="")
    except (OSError, ValueError) as error:
        sys.exit(f"muster profile: {error}")
