"""Ranks that find each other through the store which PyTorch hands in, and connect."""

import json
import os
import secrets
import socket
import sys
import time
from datetime import timedelta

from torch.distributed import HashStore, PrefixStore, TCPStore

from muster import _collective
from muster._version import __version__
from muster.torch._liveness import Liveness, identity
from muster.torch._state import first_words_seconds

_LOOPBACK = "127.0.0.1"
_FIRST_EPOCH = 1
_PAUSE_SECONDS = 0.1
_LEAVING_SECONDS = 0.05
_WHY_NOT = 'is it started, with backend "muster", too, and does it create the same groups in the same order?'


def _under_prefixes(store):
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return store


def master_of(store) -> str:
    """By what people know the job: "host:port" of its store, or its file."""
    master = _master(store)
    if master is not None and master[1] != 1:
        return f"{master[0]}:{master[1]}"
    return getattr(_under_prefixes(store), "path", "") or "an unknown store"


def _master(store) -> tuple[str, int] | None:
    """Where the store is served, which every host can reach: of a TCPStore, else of the environment."""
    store = _under_prefixes(store)
    host = getattr(store, "host", None) or os.environ.get("MASTER_ADDR")
    port = getattr(store, "port", None) or os.environ.get("MASTER_PORT") or 1
    return (host, int(port)) if host else None


def ends_with_rank_0(store) -> bool:
    """Whether rank 0 serves the store, and not an agent or a file system that outlives the ranks."""
    is_of_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return isinstance(_under_prefixes(store), TCPStore) and not is_of_agent


def see_rank_0_leave() -> None:
    """For a rank that leaves: rank 0's store ends with its group, some milliseconds later than this one may
    come back to make another group, and who meets at the old store fails. Nobody says when it has ended.
    Gloo takes about as long to close its connections."""
    time.sleep(_LEAVING_SECONDS)


def _routed_address(store) -> str:
    """The address by which this host reaches the store: what the others can reach it by."""
    master = _master(store)
    if master is None:
        master = (socket.gethostname(), 1)  # a store of files: the address that this host's name has
    family, kind, _, _, address = socket.getaddrinfo(*master, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)  # a datagram socket sends nothing: this asks for the route alone
        return probe.getsockname()[0]


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


class _Desk:
    """What each rank says through the store, and what all have said.

    A store may be older than the ranks: torchrun keeps one for all restarts, with what dead ranks have said
    in it. So rank 0 draws a word, under which all is said, and the others take the newest until its list of
    ranks has them.
    """

    def __init__(self, store, rank: int, ranks: list[int], timeout: timedelta) -> None:
        """ranks: of the job, by those of the group."""
        self._all_words, self._rank, self._size, self._timeout = store, rank, len(ranks), timeout
        self._ranks = ranks
        self.store = store  # under the word, once they have met

    def meet(self, said: dict) -> list[dict]:
        """What all ranks say; the first thing that is said."""
        if self._rank > 0:
            return self._follow({**said, "drawn": secrets.token_hex(8)})
        word = secrets.token_hex(8)
        self._take(word)
        self._all_words.set("muster/word", word)
        met = self.exchange("rank", said)
        self.store.set("all", json.dumps(met))
        return met

    def _follow(self, said: dict) -> list[dict]:
        until = time.monotonic() + self._timeout.total_seconds()
        self._wait(self._all_words, "muster/word", 0)
        while time.monotonic() < until:
            self._take(self._all_words.get("muster/word").decode())
            self._say("rank", said)
            if self._comes(self.store, "all", _PAUSE_SECONDS):
                met = json.loads(self.store.get("all"))
                if met[self._rank : self._rank + 1] == [said]:  # the group before may have been smaller
                    return met
                time.sleep(_PAUSE_SECONDS)  # of ranks that are gone: rank 0 has not come yet
        missing = [rank for rank in range(self._size) if not self.store.check([f"rank/{rank}"])]
        raise self._late(missing[0] if missing else 0)

    def _take(self, word: str) -> None:
        self.store = PrefixStore(f"muster/{word}", self._all_words)

    def exchange(self, topic: str, said):
        self._say(topic, said)
        return [self._get(f"{topic}/{rank}", rank) for rank in range(self._size)]

    def job_id(self) -> int:
        """A number that rank 0 draws: two jobs that reach each other's ports tell each other apart."""
        if self._rank == 0:
            self.store.set("job", json.dumps(secrets.randbits(62) + 1))
        return self._get("job", 0)

    def _say(self, topic: str, said) -> None:
        self.store.set(f"{topic}/{self._rank}", json.dumps(said))

    def _get(self, key: str, who: int):
        self._wait(self.store, key, who)
        return json.loads(self.store.get(key))

    def _wait(self, store, key: str, who: int) -> None:
        begin, limit, pause = time.monotonic(), self._timeout.total_seconds(), first_words_seconds()
        left = limit
        while not self._comes(store, key, min(left, pause)):
            waited = time.monotonic() - begin
            left, pause = limit - waited, 2 * pause
            if left <= 0:
                raise self._late(who)
            self._say_waiting(who, waited, limit)

    def _say_waiting(self, who: int, seconds: float, limit: float) -> None:
        if self._rank > 1:
            return  # rank 0 says whom it waits for, and the first of the others that it waits for rank 0
        print(
            f"muster[rank {self._ranks[self._rank]}] warning: rank {self._ranks[who]} has not come to the "
            f"rendezvous of {self._which()} for {seconds:.3g} s (the timeout of the group is {limit:g} s): "
            f"{_WHY_NOT}",
            file=sys.stderr,
            flush=True,
        )

    def _which(self) -> str:
        is_whole = self._ranks == list(range(self._size))
        return f"{self._size} ranks" if is_whole else f"ranks {', '.join(map(str, self._ranks))}"

    @staticmethod
    def _comes(store, key: str, seconds: float) -> bool:
        try:
            store.wait([key], timedelta(seconds=seconds))
        except RuntimeError:
            return bool(store.check([key]))
        return True

    def _late(self, who: int) -> RuntimeError:
        return RuntimeError(
            f"muster: rank {self._ranks[who]} did not come to the rendezvous of {self._which()} within "
            f"{self._timeout.total_seconds():g} s (this is rank {self._ranks[self._rank]}): {_WHY_NOT}"
        )


def _check_versions(versions: list[str], rank: int) -> None:
    for other, version in enumerate(versions):
        if version != __version__:
            raise RuntimeError(
                f"muster: rank {other} runs Muster {version} and rank {rank} Muster {__version__}: "
                "install one version for all ranks"
            )


def _check_reachable(addresses: list[str], rank: int) -> None:
    for other, address in enumerate(addresses):
        if _is_loopback(address):
            raise RuntimeError(
                f"muster: rank {other} can be reached at {address} only, and the ranks are on several "
                f"hosts (this is rank {rank}): give MASTER_ADDR (or init_method) an address or name of rank "
                "0's host that the other hosts reach, not localhost"
            )


def connect(store, rank: int, ranks: list[int], timeout: timedelta):
    """The group of ranks that share `store`, what watches over its processes, and its own part of the store.

    rank: in the group. ranks: of the job, by those of the group.
    Raises RuntimeError naming the rank that did not come within `timeout`, that has another version of
    Muster, or that others cannot reach.
    """
    if len(ranks) == 1:
        store = HashStore()  # it asks nobody: rank 0, whose store it would ask, may have left
    desk = _Desk(store, rank, ranks, timeout)
    met = desk.meet({"version": __version__, "host": _collective.host_key(), "process": identity()})
    _check_versions([other["version"] for other in met], rank)
    one_host = len({other["host"] for other in met}) == 1
    listener = _collective.Listener(_LOOPBACK if one_host else _routed_address(store))
    own = [_collective.host_key(), listener.address, listener.port, listener.local_name]
    endpoints = [tuple(endpoint) for endpoint in desk.exchange("endpoint", own)]
    if not one_host:
        _check_reachable([address for _, address, _, _ in endpoints], rank)
    seconds = timeout.total_seconds()
    native = _collective.connect(
        rank,
        endpoints,
        listener,
        job_id=desk.job_id(),
        epoch=_FIRST_EPOCH,
        connect_timeout=seconds,
        call_timeout=seconds,
    )
    own_host = met[rank]["host"]
    processes = [other["process"] if other["host"] == own_host else ["", 0] for other in met]
    return native, Liveness(native, processes), desk.store
