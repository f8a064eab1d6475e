"""Groups of some workers."""

from collections.abc import Iterable

from muster import _core

_made: dict[tuple[int, ...], int] = {}  # how often there was a group of these ranks without a name


class Group:
    """Some workers of the job, for the `group` of collective calls: muster.new_group makes it.

    Attributes:
        name: What errors call it.
        ranks: Its workers, by their rank in the job.
        rank: This worker's rank in it, from 0; None in a worker that is not in it.
        size: How many workers it has.
    """

    def __init__(self, name: str, ranks: Iterable[int]) -> None:
        self.name, self.ranks = name, tuple(ranks)
        own = _core.get_rank()
        self.rank = self.ranks.index(own) if own in self.ranks else None
        self.size = len(self.ranks)

    @property
    def _name_of_group(self) -> str:
        if self.rank is None:
            raise ValueError(f"worker {_core.get_rank()} is not in {self}")
        return self.name

    def close(self) -> None:
        """Its calls are over, and what it holds is free. In a worker that is not in it: nothing."""
        if self.rank is not None:
            _core._destroy_group(self.name)

    def __repr__(self) -> str:
        return f"group '{self.name}' (workers {', '.join(map(str, self.ranks))})"


def new_group(ranks: Iterable[int], name: str | None = None) -> Group:
    """A group of some workers of the job, for collective calls and messages that they alone make.

    Its members connect when they first call together; the others may make it, too, and take no part. A worker
    may be in many groups, whose calls do not wait for each other.

    Args:
        ranks: Its workers' ranks in the job, all different; the order is that of their ranks in the group.
        name: The same on all members, another one for each group; without it one is made of the ranks and
            of how often there was such a group.

    Raises:
        ValueError: Ranks that do not exist or come twice, or a name that a group of other workers has.
        NotImplementedError: Some of the workers in a job whose processes may come back (MS_ENABLE_RECOVERY).
    """
    members = tuple(int(rank) for rank in ranks)
    workers = _core.get_group_size()
    if not members or len(set(members)) < len(members) or not all(0 <= rank < workers for rank in members):
        raise ValueError(
            f"new_group: different ranks from 0 to {workers - 1} are needed, not {list(members)}"
        )
    if name is None:
        _made[members] = _made.get(members, 0) + 1
        name = f"{','.join(map(str, members))}#{_made[members]}"
    if _core.get_rank() in members:
        _core._create_group(name, members)
    return Group(name, members)
