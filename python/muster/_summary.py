"""summary: the cells of a network, what they give and how much they hold."""

import contextlib
from collections import namedtuple
from collections.abc import Callable, Iterator

from muster import _core
from muster._core import Cell, Parameter, SequentialCell, Tensor

# A cell: its path and class, the shapes that it gives, its own parameters, and the worker that it is placed
# on (None: it is not placed).
SummaryRow = namedtuple("SummaryRow", ["path", "cell", "output", "parameters", "bytes", "rank"])


class Summary:
    """What muster.summary returns; printed, it is a table."""

    def __init__(
        self, rows: tuple[SummaryRow, ...], parameters: int, trainable_parameters: int, size_bytes: int
    ) -> None:
        self.rows = rows
        self.parameters = parameters
        self.trainable_parameters = trainable_parameters
        self.bytes = size_bytes

    def __str__(self) -> str:
        head = ("cell", "type", "output", "parameters", "bytes", "rank")
        table = [
            (
                row.path or "(whole)",
                row.cell,
                row.output,
                f"{row.parameters:,}",
                f"{row.bytes:,}",
                "" if row.rank is None else str(row.rank),
            )
            for row in self.rows
        ]
        if all(row.rank is None for row in self.rows):
            head, table = head[:-1], [cells[:-1] for cells in table]
        widths = [max(map(len, column)) for column in zip(head, *table, strict=True)]
        lines = []
        for cells in (head, *table):
            left = [text.ljust(width) for text, width in zip(cells[:3], widths, strict=False)]
            right = [text.rjust(width) for text, width in zip(cells[3:], widths[3:], strict=True)]
            lines.append("  ".join(left + right).rstrip())
        lines.append(
            f"parameters: {self.parameters:,}, of which {self.trainable_parameters:,} are trained; "
            f"{self.bytes:,} bytes"
        )
        return "\n".join(lines)

    __repr__ = __str__


def summary(net: Cell, *inputs: Tensor) -> Summary:
    """The cells of `net` with what each gives for these inputs, its own parameters and their bytes.

    The network is traced and not run: nothing in it changes. Without inputs the outputs stay empty. A
    parameter that several cells share counts for the first. A cell that is called several times shows what it
    gave first. Where cells are placed (Cell.place), a column says on which worker each of them, and all below
    it, runs and has its parameters.
    """
    if not isinstance(net, Cell):
        raise TypeError(f"summary takes a network (muster.Cell), not {type(net).__name__}")
    outputs = _traced_outputs(net, inputs) if inputs else {}
    counted: set[int] = set()
    rows, everything = [], []
    ranks: dict[str, int | None] = {}
    for path, cell in net.cells_and_names():
        own = [one for one in cell.get_parameters(expand=False) if id(one) not in counted]
        counted.update(map(id, own))
        everything += own
        count, size = _size_of(own)
        ranks[path] = cell.placed_rank if cell.placed_rank is not None else ranks.get(_parent_of(path))
        rows.append(
            SummaryRow(path, type(cell).__name__, outputs.get(id(cell), ""), count, size, ranks[path])
        )
    count, size = _size_of(everything)
    trained, _ = _size_of([one for one in everything if one.requires_grad])
    return Summary(tuple(rows), count, trained, size)


def _parent_of(path: str) -> str:
    return path.rpartition(".")[0]


def _size_of(parameters: list[Parameter]) -> tuple[int, int]:
    return sum(one.size for one in parameters), sum(one.nbytes for one in parameters)


class _TraceEndedError(Exception):
    """Ends a trace before anything runs."""


def _traced_outputs(net: Cell, inputs: tuple[Tensor, ...]) -> dict[int, str]:
    outputs: dict[int, str] = {}

    def note(cell: Cell, run: Callable[[], object]) -> object:
        given = run()
        outputs.setdefault(id(cell), _shapes(given))
        return given

    traced_calls(net, inputs, note)
    return outputs


def traced_calls(
    net: Callable[..., object], inputs: tuple[Tensor, ...], watch: Callable[[Cell, Callable], object]
) -> None:
    """Traces net(*inputs), and runs nothing. For each call of a cell it calls `watch(cell, run)`."""

    def trace(*arguments: Tensor) -> None:
        with _watched_calls(watch):
            net(*arguments)
        raise _TraceEndedError

    with contextlib.suppress(_TraceEndedError):
        _core.jit(trace)(*inputs)


@contextlib.contextmanager
def _watched_calls(watch: Callable[[Cell, Callable], object]) -> Iterator[None]:
    """Built-in containers call their children in C++, where nobody would see it, so their children are called
    here."""
    call = Cell.__call__

    def watched(self: Cell, *arguments: object, **settings: object) -> object:
        def run() -> object:
            if type(self).construct is not SequentialCell.construct:
                return call(self, *arguments, **settings)
            given: object = arguments
            for child in self.cells():
                given = child(*given) if isinstance(given, tuple) else child(given)
            return given

        return watch(self, run)

    Cell.__call__ = watched
    try:
        yield
    finally:
        Cell.__call__ = call


def _shapes(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(_shapes, value)) + ")"
    return f"{tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
