"""What a group is at, for `muster status`; and whether a call of it takes far too long.

How long a call may take is learned: three times the longest pause between two ends of calls so far, at least
ten seconds, and five minutes for the first calls, before which programs load and compile. MUSTER_STUCK_LIMIT
sets it in seconds; 0 turns the warning off. Nothing is stopped: that is what the timeout of the group is for.
"""

import math
import os
import sys
import time

_FIRST_CALLS = 5
_FIRST_SECONDS, _SHORTEST_SECONDS, _TIMES_LONGEST = 300.0, 10.0, 3.0
_RENDEZVOUS_SECONDS = 30.0  # ranks import, and prepare data, before they come


def _fixed_limit() -> float | None:
    text = os.environ.get("MUSTER_STUCK_LIMIT")
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"MUSTER_STUCK_LIMIT is {text!r}: give seconds, or 0 for no warning") from None


def first_words_seconds() -> float:
    """After how long a rank says that it waits for another one to come to a rendezvous."""
    limit = _fixed_limit()
    return _RENDEZVOUS_SECONDS if limit is None else limit or math.inf


class GroupState:
    """name: of the group. ranks: those of the whole job, by the group's. master: where the job's store is."""

    def __init__(self, native, name: str, ranks: list[int], master: str) -> None:
        self._native, self.name, self.ranks, self.master = native, name, ranks, master
        self.world_rank = ranks[native.rank]
        self._fixed_limit = _fixed_limit()
        now = time.monotonic()
        self._ended, self._since, self._longest = 0, now, 0.0  # calls and messages; since when not one more
        self._under_way, self._under_way_since = None, now
        self._told = 0.0  # how long the call under way had taken when it was last told of
        self._closed = False

    def close(self) -> None:
        """No more looks; what was told of as stuck and has gone on is told of now."""
        self._read(time.monotonic())
        self._closed = True

    # ---- on the thread of the watch -------------------------------------------------------------------

    def look(self, now: float) -> None:
        read = self._read(now)
        if read is None:
            return
        kind, number, _, _, awaited = read
        waited = now - self._under_way_since
        limit = self._limit()
        if not kind or limit == 0 or waited < max(limit, 2 * self._told):
            return
        self._told = waited
        self._say(f" warning: {self._stuck(kind, number, awaited, waited)}")

    def _say(self, text: str) -> None:
        print(f"muster[rank {self.world_rank}]{text}", file=sys.stderr, flush=True)

    def _read(self, now: float):
        if self._closed:
            return None
        try:
            read = self._native.state()
        except Exception:  # it was closed meanwhile
            return None
        kind, number, finished, messages, _ = read
        if (kind, number) != self._under_way:
            self._under_way, self._under_way_since = (kind, number), now
        if finished + messages != self._ended:
            self._go_on(now, finished + messages)
        return read

    def _go_on(self, now: float, ended: int) -> None:
        paused = now - self._since
        if self._ended:
            self._longest = max(self._longest, paused)
        if self._told:
            self._say(f": the calls of {self.name} go on, after {paused:.3g} s")
        self._ended, self._since, self._told = ended, now, 0.0
        if self._under_way is not None and self._under_way[0] in ("send", "receive"):
            self._under_way_since = now

    def _limit(self) -> float:
        if self._fixed_limit is not None:
            return self._fixed_limit
        if self._ended < _FIRST_CALLS:
            return _FIRST_SECONDS
        return max(_SHORTEST_SECONDS, _TIMES_LONGEST * self._longest)

    def _stuck(self, kind: str, number: int, awaited: list[int], waited: float) -> str:
        what = f"{kind} {number}"
        if kind in ("send", "receive"):
            what = f"{kind} {'to' if kind == 'send' else 'from'} rank {self.ranks[number]}"
            awaited = [number]
        names = ", ".join(f"rank {self.ranks[rank]}" for rank in awaited) or "ranks of other hosts"
        return (
            f"rank {self.world_rank} is in {what} of {self.name} for {waited:.3g} s (no pause between calls "
            f"was longer than {self._longest:.3g} s) and waits for {names}: "
            "muster status shows what each rank is at"
        )

    def shown(self) -> dict | None:
        """As muster/launch/torch_ranks.cpp reads it; ranks are those of the whole job."""
        now = time.monotonic()
        read = self._read(now)
        if read is None:
            return None
        kind, number, finished, messages, awaited = read
        made = {"name": self.name, "ranks": self.ranks, "finished": finished, "messages": messages}
        if not kind:
            return made
        made |= {"call": kind, "for_s": round(now - self._under_way_since, 3)}
        if kind in ("send", "receive"):
            peer = self.ranks[number]
            return made | {"peer": peer, "waits_for": [peer]}
        return made | {"number": number, "waits_for": [self.ranks[rank] for rank in awaited]}
