"""Flight recorders of a run of Muster, as files that PyTorch's analyzer (`torchfrtrace`) reads.

The recorder of a worker is a file of its run's folder (docs/formats/flight.md); PyTorch's is a pickle for
each rank. Messages between two ranks are left out: the analyzer wants those of a group in one order on all
ranks.
"""

import pickle
import struct
import sys
from collections import defaultdict
from pathlib import Path

_HEAD = struct.Struct("<8sIIQQqIIII")
_GROUP = struct.Struct("<QQqII")
_RECORD = struct.Struct("<QQQQqqIBBBB")
_RECORD_BYTES, _GROUPS, _GROUPS_AT, _RECORDS_AT = 64, 64, 4096, 8192
_KINDS = [
    *("", "all_reduce", "broadcast", "all_gather", "barrier", "", ""),  # messages are none
    *("reduce", "reduce_scatter", "all_to_all", "gather", "scatter"),
]
_DTYPES = [
    *("Float", "Double", "Int", "Long", "Byte", "UInt32", "Char"),
    *("Bool", "BFloat16", "Half", "Short", "UInt16", "UInt64"),
]
_REDUCE = {"all_reduce", "reduce", "reduce_scatter"}
_COMPLETED = 2


class _Flight:
    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        magic, size, self.records_max, _, _, self.began, self.rank, self.world, _, _ = _HEAD.unpack_from(data)
        if magic != b"MUSTFLT1" or size != _RECORD_BYTES:
            raise ValueError(f"{path} is no flight recorder of this version of Muster")
        places = range(_GROUPS_AT, _GROUPS_AT + _GROUPS * _RECORD_BYTES, _RECORD_BYTES)
        groups = [_GROUP.unpack_from(data, at) for at in places]
        self.groups = {group: (rank, size) for group, _, _, rank, size in groups if group}
        places = range(_RECORDS_AT, _RECORDS_AT + self.records_max * _RECORD_BYTES, _RECORD_BYTES)
        records = [_RECORD.unpack_from(data, at) for at in places]
        self.records = sorted(
            record for record in records if record[0] and record[1] in self.groups and _KINDS[record[7]]
        )


def _members(flights: list[_Flight]) -> dict[int, list[int]]:
    """The ranks of the job in each group, by their rank in it; without those of which there is no file."""
    ranks: dict[int, dict[int, int]] = defaultdict(dict)
    for flight in flights:
        for group, (rank, _) in flight.groups.items():
            ranks[group][rank] = flight.rank
    return {group: [found[rank] for rank in sorted(found)] for group, found in ranks.items()}


def _sizes(kind: str, count: int, ranks: int) -> tuple[list[list[int]], list[list[int]]]:
    many, one = [[count * ranks]], [[count]]
    return {"all_gather": (one, many), "reduce_scatter": (many, one)}.get(kind, (one, one))


def _entry(flight: _Flight, record: tuple, names: dict[int, tuple[str, str]]) -> dict:
    serial, group, number, count, begin, end, _, call, dtype, _, state = record
    kind = _KINDS[call]
    _, ranks = flight.groups[group]
    given, made = _sizes(kind, count, ranks)
    dtypes = [_DTYPES[dtype] if kind in _REDUCE else "Byte"]
    return {
        "record_id": serial,
        "op_id": serial,
        "pg_id": int(names[group][0]),
        "process_group": names[group],
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "is_p2p": False,
        "profiling_name": f"c10d:{kind}",  # a library that the analyzer knows
        "input_sizes": given,
        "output_sizes": made,
        "input_dtypes": dtypes,
        "output_dtypes": dtypes,
        "state": "completed" if state == _COMPLETED else "started",
        "time_created_ns": begin,
        "time_discovered_started_ns": begin,
        "time_discovered_completed_ns": end or None,
        "retired": state == _COMPLETED,
        "timeout_ms": 0,
        "frames": [],
    }


def write_traces(run: Path, to: Path) -> list[Path]:
    """A file for each rank of the run in that folder; of one that came back, what its last process did."""
    newest: dict[int, _Flight] = {}
    for path in (run / "flight").glob("*.flight"):
        flight = _Flight(path)
        if flight.rank not in newest or newest[flight.rank].began < flight.began:
            newest[flight.rank] = flight
    if not newest:
        raise FileNotFoundError(f"{run} has no flight recorders: is it the folder of a run of `muster run`?")
    flights = [newest[rank] for rank in sorted(newest)]
    members = _members(flights)
    sizes = {group: size for flight in flights for group, (_, size) in flight.groups.items()}
    # Those of all ranks have the name that PyTorch gives its first group.
    names = {
        group: (str(i), "default_pg" if sizes[group] == flights[0].world else f"group {group:x}")
        for i, group in enumerate(sorted(members))
    }
    to.mkdir(parents=True, exist_ok=True)
    written = []
    for flight in flights:
        config = {
            names[group][0]: {"name": names[group][0], "desc": names[group][1], "ranks": str(members[group])}
            for group in flight.groups
        }
        entries = [_entry(flight, record, names) for record in flight.records]
        written.append(to / f"rank_{flight.rank}")
        written[-1].write_bytes(
            pickle.dumps({"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries})
        )
    return written


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit("usage: python -m muster.torch trace RUN_FOLDER FOLDER")
    run, to = map(Path, sys.argv[2:])
    written = write_traces(run, to)
    print(f"wrote {len(written)} files; read them with: torchfrtrace --prefix rank_ {to}")
