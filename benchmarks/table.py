"""The table of benchmarks/README.md from medians."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

COLUMNS = {"mindspore": "MindSpore", "torch": "PyTorch", "mpi": "Open MPI", "muster": "Muster"}
PEERS = ("mindspore", "torch", "mpi")


def seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e6:.2g} us"


def share(value: float) -> str:
    return f"{value:.4f}"


def mebibytes(value: float) -> str:
    return f"{value / (1 << 20):.0f} MiB"


@dataclass(frozen=True)
class Row:
    key: str  # of the medians
    what: str
    show: Callable[[float], str] = seconds
    at_most: float | None = None  # what Muster must reach
    of_mpi: float | None = None  # or: so much of Open MPI's time
    below: float | None = None  # or: so far below MindSpore's at most; such a figure is no cost

    def target(self) -> str:
        if self.at_most is not None:
            return f"<= {self.show(self.at_most)}"
        if self.below is not None:
            return f">= MindSpore - {self.below:g}"
        return "" if self.of_mpi is None else f"<= {self.of_mpi:g} x Open MPI"

    def reached(self, values: Mapping[str, float]) -> str:
        if self.below is not None:
            if "muster" not in values or "mindspore" not in values:
                return ""
            return "yes" if values["muster"] >= values["mindspore"] - self.below else "NO"
        limit = self.at_most
        if self.of_mpi is not None and "mpi" in values:
            limit = self.of_mpi * values["mpi"]
        if limit is None or "muster" not in values:
            return ""
        return "yes" if values["muster"] <= limit else "NO"

    def ratio(self, values: Mapping[str, float]) -> str:
        """How many times the best peer's figure is Muster's."""
        peers = [values[peer] for peer in PEERS if peer in values]
        if not peers or "muster" not in values or self.below is not None:
            return ""
        return f"{min(peers) / values['muster']:.2f}"

    def cells(self, values: Mapping[str, float]) -> list[str]:
        figures = [self.show(values[column]) if column in values else "-" for column in COLUMNS]
        return [self.what, *figures, self.ratio(values), self.target(), self.reached(values)]


def all_reduce_rows() -> list[Row]:
    sizes = (("1 KiB", 1 << 10, 1.0), ("1 MiB", 1 << 20, 0.5), ("102 MB", 102228128, 0.4))
    rows = [
        Row(f"all_reduce {size} {ranks}", f"all_reduce {name}, {ranks} processes", of_mpi=share)
        for name, size, share in sizes
        for ranks in (2, 4, 8)
    ]
    rows += [
        Row(
            f"all_reduce {size} {ranks} touched",
            f"the same {name}, {ranks} processes, shared buffers",
            of_mpi=share,
        )
        for name, size, share in sizes[1:]
        for ranks in (2, 4, 8)
    ]
    return [*rows, Row("all_reduce 102228128 2 tcp", "all_reduce 102 MB, 2 processes, TCP", of_mpi=1.0)]


ROWS = [
    Row("job 2", "whole job, 2 workers", at_most=1.5),
    Row("job 8", "whole job, 8 workers", at_most=3.0),
    Row("job 2, OMP_NUM_THREADS unset", "the same, 2 workers, OMP_NUM_THREADS unset", at_most=1.5),
    Row("job 8, OMP_NUM_THREADS unset", "the same, 8 workers, OMP_NUM_THREADS unset", at_most=3.0),
    Row("step 2", "step, 2 workers", at_most=0.15e-3),
    Row("step 8", "step, 8 workers", at_most=1.0e-3),
    Row("start 2", "start to first step, 2 workers"),
    Row("start 8", "start to first step, 8 workers", at_most=1.2),
    *all_reduce_rows(),
    Row("placed job", "seed 003, 5 workers: whole job, 10 epochs and evaluation", at_most=6.0),
    Row("placed step", "seed 003, 5 workers: training step", at_most=1.8e-3),
    Row("placed accuracy", "seed 003, 5 workers: accuracy on 992 test digits", share, below=0.02),
    Row("crossing 1024", "a message of 1 KiB to another process"),
    Row("crossing 65536", "a message of 64 KiB to another process", at_most=15e-6),
    Row("crossing 1048576", "a message of 1 MiB to another process"),
    Row("picture", "a CIFAR picture through the pipeline of seed 002", at_most=1 / 8000),
    Row("memory 2", "peak resident memory of a worker, of 2", mebibytes, at_most=120 << 20),
    Row("memory 8", "peak resident memory of a worker, of 8", mebibytes, at_most=120 << 20),
]


def render(
    medians: Mapping[str, Mapping[str, float]], headings: Mapping[str, str], machine: str, rounds: int
) -> str:
    header = [
        "what",
        *(headings.get(column, title) for column, title in COLUMNS.items()),
        "best peer / Muster",
        "target",
        "reached",
    ]
    lines = [header, ["---"] * len(header)]
    lines += [row.cells(medians[row.key]) for row in ROWS if row.key in medians]
    body = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return f"Medians of {rounds} alternating rounds on {machine}.\n\n{body}"
