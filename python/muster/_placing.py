"""Stages that are chosen: which cells of a network run on which workers."""

from collections.abc import Callable, Iterator

from muster import _core
from muster._core import Cell, Tensor
from muster._summary import traced_calls


class _Call:
    """The first call of a cell and the cells that it calls; what all of its calls cost."""

    def __init__(self, cell: Cell) -> None:
        self.cell, self.cost, self.calls = cell, 0.0, list[_Call]()


def _calls_of(net: Cell, inputs: tuple[Tensor, ...]) -> _Call:
    """The first call of each cell, as a tree."""
    top = _Call(net)
    under_way, known = [top], {id(net): top}

    def watch(cell: Cell, run: Callable[[], object]) -> object:
        is_new = id(cell) not in known
        made = known.setdefault(id(cell), _Call(cell))
        if is_new:
            under_way[-1].calls.append(made)
        under_way.append(made)
        begin = _core._traced_cost()
        result = run()
        made.cost += _core._traced_cost() - begin
        under_way.pop()
        return result

    traced_calls(net, inputs, watch)
    return top


def _blocks(top: _Call, count: int, needed: int) -> list[_Call]:
    """Calls in their order, at least `count` where there are, of which none is inside of another: the
    costliest are taken apart, unless much of them is their own and there are as many as needed."""
    blocks, whole = [top], top.cost
    while True:
        apart = [each for each in blocks if sum(call.cost for call in each.calls) >= 0.9 * each.cost > 0]
        if not apart and len(blocks) < needed:
            apart = [each for each in blocks if each.calls]
        costliest = max(apart, key=lambda each: each.cost, default=None)
        if costliest is None or (len(blocks) >= count and costliest.cost < whole / count):
            return blocks
        at = blocks.index(costliest)
        blocks[at : at + 1] = costliest.calls


def _cuts(costs: list[float], stages: int) -> list[int]:
    """The stage of each block: the costliest stage costs as little as can be, and each has one."""
    total = [0.0]
    for cost in costs:
        total.append(total[-1] + cost)
    best = [(total[end], 0) for end in range(len(total))]  # of the first `end` on one stage; where it begins
    begins = [best]
    for stage in range(1, stages):
        best = [
            min(
                (max(begins[-1][begin][0], total[end] - total[begin]), begin)
                for begin in range(stage, max(end, stage + 1))
            )
            for end in range(len(total))
        ]
        begins.append(best)
    ranks, end = [0] * len(costs), len(costs)
    for stage in range(stages - 1, 0, -1):
        begin = begins[stage][end][1]
        ranks[begin:end] = [stage] * (end - begin)
        end = begin
    return ranks


def _ranks_in(call: _Call, chosen: dict[int, int]) -> set[int]:
    if id(call.cell) in chosen:
        return {chosen[id(call.cell)]}
    return set().union(*(_ranks_in(each, chosen) for each in call.calls))


def _whole(call: _Call, chosen: dict[int, int]) -> Iterator[tuple[Cell, int]]:
    """Cells and their stages: a cell all of whose blocks are on one stage is placed in their stead."""
    for each in call.calls:
        ranks = _ranks_in(each, chosen)
        if len(ranks) == 1:
            yield each.cell, ranks.pop()
        else:
            yield from _whole(each, chosen)


def _placed(net: Cell) -> Iterator[str]:
    return (
        path or type(net).__name__ for path, cell in net.cells_and_names() if cell.placed_rank is not None
    )


def place(net: Cell, *inputs: Tensor, stages: int | None = None) -> dict[str, int]:
    """Places the cells of a network on stages that cost about the same: `Cell.place`, chosen.

        parallel.mesh(data=2, model=2, stages=2)
        print(parallel.place(net, Tensor(numpy.zeros((32, 784), numpy.float32))))

    The network is traced, and not run. Its cells are cut, in the order in which they are called, where the
    costliest stage costs least, counted in operations and bytes of the way forward: the same on all workers.

    Args:
        net: The network. None of its cells is placed.
        inputs: What it is called with, with the shapes of a batch; values do not matter.
        stages: How many; None: those of the mesh, or of all workers.

    Returns:
        The stage of each cell that was placed, by its path. What is inside of it runs there, too.

    Raises:
        TypeError: `net` is no cell, an input no tensor, or `stages` no whole number.
        ValueError: `stages` is below 1, or more than there are cells to place; a cell is placed already.
    """
    if not isinstance(net, Cell):
        raise TypeError(f"place takes a network (muster.Cell), not {type(net).__name__}")
    if not inputs or not all(isinstance(each, Tensor) for each in inputs):
        raise TypeError("place: the tensors that the network is called with are missing")
    from muster import parallel

    stages = parallel._stages() if stages is None else stages
    if isinstance(stages, bool) or not isinstance(stages, int):
        raise TypeError(f"place: stages is a whole number, not {stages!r}")
    if stages < 1:
        raise ValueError(f"place: {stages} stages: at least one is needed")
    if already := next(_placed(net), None):
        raise ValueError(f"place: '{already}' is placed already: choose all places by hand, or none")
    top = _calls_of(net, inputs)
    blocks = _blocks(top, 8 * stages, stages)
    if stages > len(blocks):
        raise ValueError(
            f"place: {stages} stages, and the network has {len(blocks)} cells that can be placed one by one: "
            f"choose 1 to {len(blocks)}"
        )
    ranks = _cuts([each.cost for each in blocks], stages)
    chosen = {id(block.cell): rank for block, rank in zip(blocks, ranks, strict=True)}
    paths = {id(cell): path for path, cell in net.cells_and_names()}
    return {paths[id(cell)]: cell.place("MS_WORKER", rank).placed_rank for cell, rank in _whole(top, chosen)}
