"""How all ranks of a job that recovers meet, again and again, and connect a new group.

The store is torch's, served by rank 0 or by torchrun's agent: it may be gone and empty after any death, so
nothing that counts lies in it. Each rank says what it has (a claim) under its rank, with a number that it
has never said before. Rank 0 waits for a new claim of every rank and publishes all of them: the plan. A rank
follows the plan that has its own claim, and from the claims every rank concludes the same. Who finds that the
plan cannot be carried out, since one has died meanwhile, makes a new claim.
"""

import atexit
import json
import os
import secrets
import socket
import threading
import time
from datetime import timedelta

import torch.distributed as dist

from muster import _collective
from muster._version import __version__
from muster.torch._liveness import Liveness, identity
from muster.torch._rendezvous import (
    _check_reachable,
    _check_versions,
    _is_loopback,
    _routed_address,
    _under_prefixes,
)

_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.01
_LOOK_SECONDS = 0.5  # how long a rank waits for the plan before it looks who is missing
_OPERATION_SECONDS = 5.0  # for the store to answer: it is asked again until the deadline
_OPEN_SECONDS = 1.0  # for its client to be made, which tries for up to twice as long and a pause
_CONNECT_SECONDS = 10.0  # of ranks that have just said that they are there
_PREFIX = "muster/recoverable/"


class MissingRanksError(RuntimeError):
    """Some ranks did not come within the time."""


class _Left:
    """Threads that nobody waited for to the end, as they are in a call of torch's store.

    Back from there while the interpreter ends, such a thread cannot have the interpreter, and pybind11 ends
    the process by std::terminate: a training that had ended well counted as one that died. So the end waits
    for them; not for one that has stood still for long, which may be for ever.
    """

    def __init__(self) -> None:
        self._threads: list[tuple[threading.Thread, float]] = []

    def add(self, thread: threading.Thread, until: float) -> None:
        if not self._threads:
            atexit.register(self.wait)
        self._threads = [left for left in self._threads if left[0].is_alive()] + [(thread, until)]

    def wait(self) -> None:
        for thread, until in self._threads:
            thread.join(max(0.0, until - time.monotonic()))


_left = _Left()


def _within(seconds: float, function):
    """What function() gives or raises; TimeoutError after `seconds`: a store that stands still answers
    nothing, and its client waits for ever."""
    outcome: list = []

    def run() -> None:
        try:
            outcome.append((function(), None))
        except Exception as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, name="muster-store", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        _left.add(thread, time.monotonic() + seconds)
        raise TimeoutError
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


def _is_served(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), _OPERATION_SECONDS) as probe:
            return probe.getsockname() != probe.getpeername()  # it may have met itself
    except OSError:
        return False


class _Store:
    """torch's store, reached anew after each failure."""

    def __init__(self, store, size: int) -> None:
        self._first, self._size = _under_prefixes(store), size
        self._client = None if self._is_tcp() else self._first

    def _is_tcp(self) -> bool:
        return isinstance(self._first, dist.TCPStore)

    def where(self) -> str:
        return f"{self._first.host}:{self._first.port}" if self._is_tcp() else type(self._first).__name__

    def _open(self):
        host, port = self._first.host, self._first.port
        if not _is_served(host, port):
            raise ConnectionError(f"nobody listens at {host}:{port}")
        # After a reset, as by a process that is dying, it pauses for about as long as its timeout.
        client = dist.TCPStore(host, port, self._size, False, timedelta(seconds=_OPEN_SECONDS))
        client.set_timeout(timedelta(seconds=_OPERATION_SECONDS))
        return client

    def do(self, function):
        """function(store); ConnectionError where that fails: the next call reaches for the store anew."""

        def run():
            if self._client is None:
                self._client = self._open()
            return function(self._client)

        try:
            return _within(_OPERATION_SECONDS, run)
        except (RuntimeError, OSError) as error:
            self.renew()
            raise ConnectionError(f"the store at {self.where()} does not answer: {error}") from error

    def renew(self) -> None:
        if self._is_tcp():
            self._client = None


def _read(store, key: str):
    return json.loads(store.get(key)) if store.check([key]) else None


class Rendezvous:
    """Of one rank. limit: seconds for all ranks to come."""

    def __init__(self, store, rank: int, size: int, limit: float) -> None:
        self._store = _Store(store, size)
        self._routed = _routed_address(store)
        self._rank, self._size, self._limit = rank, size, limit
        self._used: set[str] = set()  # numbers of claims that stood in a plan
        self._deadline = 0.0

    def begin(self) -> None:
        """From now on the time counts."""
        self._deadline = time.monotonic() + self._limit

    def check_time(self, reason: BaseException) -> None:
        """Raises MissingRanksError when the time is over, with what failed last."""
        if time.monotonic() > self._deadline:
            raise MissingRanksError(
                f"muster: the {self._size} ranks met, and did not connect within {self._limit:g} s "
                f"(MS_NODE_TIMEOUT; this is rank {self._rank}): {reason}"
            )

    def meet(self, claim: dict, note=lambda missing: None):
        """All claims by rank, and the listener to connect with.

        note: called with the ranks that are missing, when that changes. Raises MissingRanksError naming them.
        """
        listener = _collective.Listener(_LOOPBACK if _is_loopback(self._routed) else self._routed)
        own = claim | {
            "number": secrets.token_hex(8),
            "version": __version__,
            "host": _collective.host_key(),
            "process": identity(),
            "endpoint": [_collective.host_key(), listener.address, listener.port, listener.local_name],
        }
        said, missing, trouble = False, None, ""
        self._store.renew()
        while True:
            try:
                plan, found = self._store.do(lambda store, said=said: self._look(store, own, said))
                said, trouble = True, ""
                if plan is not None:
                    self._used.update(claim["number"] for claim in plan)
                    _check_versions([claim["version"] for claim in plan], self._rank)
                    return plan, listener
                if found != missing:
                    missing = found
                    note(missing)
            except ConnectionError as error:
                said, trouble = False, str(error)
            if time.monotonic() > self._deadline:
                raise MissingRanksError(self._late(missing, trouble))
            time.sleep(_POLL_SECONDS)

    def _look(self, store, own: dict, said: bool):
        """The plan with this rank's claim, or None and the ranks whose new claims are missing."""
        if not said:
            store.set(f"{_PREFIX}claim/{self._rank}", json.dumps(own))
        if self._rank == 0:
            return self._count(store)
        key = f"{_PREFIX}plan/{own['number']}"
        end = time.monotonic() + _LOOK_SECONDS
        while (
            time.monotonic() < end
        ):  # store.wait() writes a warning to the log each time that it waits in vain
            if store.check([key]):
                return _read(store, key), []
            time.sleep(_POLL_SECONDS)
        return None, self._missing(self._claims(store))

    def _count(self, store):
        """Of rank 0: publishes the plan when all claims are new."""
        if not self._used:
            for claim in _read(store, f"{_PREFIX}plan") or []:
                self._used.add(claim["number"])
        claims = self._claims(store)
        missing = self._missing(claims)
        if missing:
            return None, missing
        plan = json.dumps(claims)
        store.set(f"{_PREFIX}plan", plan)
        for claim in claims:
            store.set(f"{_PREFIX}plan/{claim['number']}", plan)
        return claims, []

    def _claims(self, store) -> list:
        return [_read(store, f"{_PREFIX}claim/{rank}") for rank in range(self._size)]

    def _missing(self, claims: list) -> list[int]:
        return [rank for rank, claim in enumerate(claims) if claim is None or claim["number"] in self._used]

    def _late(self, missing, trouble: str) -> str:
        if trouble:
            who = f"rank 0, whose store the others meet at, is not there ({trouble})"
        elif missing:
            which = "rank" if len(missing) == 1 else "ranks"
            who = f"{which} {', '.join(map(str, missing))} of {self._size} did not come back"
        else:
            who = "rank 0, which counts the others, does not answer"
        return (
            f"muster: {who} within {self._limit:g} s (MS_NODE_TIMEOUT; this is rank {self._rank}): start it "
            "again, with the same command and variables; muster run --max-restarts 10 does"
        )

    def connect(self, plan: list[dict], listener, call_seconds: float):
        """The native group of a plan, and what watches over its processes. Raises what a death raises."""
        own = plan[self._rank]
        self._check_alive(plan, own)
        endpoints = [tuple(claim["endpoint"]) for claim in plan]
        if len({claim["host"] for claim in plan}) > 1:
            _check_reachable([address for _, address, _, _ in endpoints], self._rank)
        number = int(plan[0]["number"], 16) >> 2
        native = _collective.connect(
            self._rank,
            endpoints,
            listener,
            job_id=number + 1,
            epoch=1,
            connect_timeout=_CONNECT_SECONDS,
            call_timeout=call_seconds,
        )
        processes = [claim["process"] if claim["host"] == own["host"] else ["", 0] for claim in plan]
        return native, Liveness(native, processes)

    def _check_alive(self, plan: list[dict], own: dict) -> None:
        for rank, claim in enumerate(plan):
            namespace, process = claim["process"]
            if claim["host"] != own["host"] or namespace != own["process"][0]:
                continue
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                raise ConnectionError(f"rank {rank} (process {process}) has ended") from None
            except PermissionError:
                pass
