"""How the workers of a job share a training: the state of optimizers, operators over a mesh, and memory."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

from muster import _core, _later
from muster._core import recompute

TYPE_CHECKING = False  # typing takes a while to import
if TYPE_CHECKING:
    from typing import Any

    from muster._placing import place
else:
    __getattr__, __dir__ = _later.names(__name__, {"place": "muster._placing"})


class Zero:
    """What data-parallel workers share instead of each having all of it (ZeRO). Results are those of data
    parallel, bit for bit.

        muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, zero=Zero(2))

    Each worker keeps, and updates, its piece along the first axis, in graph mode, where the optimizer updates
    each element for itself (Adam, Momentum, SGD). What Lamb or an optimizer written in Python updates and
    keeps stays whole, and a line says so. `gather_parameters()` and checkpoints hold the whole; to read a
    divided parameter otherwise is an error.

    Args:
        level: 0: nothing. 1: the state of the optimizer. 2: that, and reduced gradients. 3: that, and the
            parameters, which are gathered for each use.
        threshold_bytes: Smaller parameters stay whole, as do those whose first axis the workers do not
            divide.

    Raises:
        ValueError: The level is not 0 to 3, or the threshold is below 0.
        TypeError: One of them is no whole number.

    Source: Rajbhandari et al., ZeRO (2020).
    """

    def __init__(self, level: int = 1, threshold_bytes: int = 64 << 10) -> None:
        for name, value in (("level", level), ("threshold_bytes", threshold_bytes)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"Zero: {name} is a whole number, not {value!r}")
        if not 0 <= level <= 3 or threshold_bytes < 0:
            raise ValueError(
                f"Zero: level is {level} and threshold_bytes {threshold_bytes}: levels go from 0 to 3, "
                "thresholds from 0"
            )
        self.level, self.threshold_bytes = level, threshold_bytes

    def __repr__(self) -> str:
        return f"Zero(level={self.level}, threshold_bytes={self.threshold_bytes})"


_mesh: dict[str, int] = {}
_shares = {"batch": False}  # whether all workers compute one batch together: over a mesh, or as a plan says
_has_divided: set[tuple[str, int]] = set()  # layouts over this mesh, and of how many dimensions


def mesh(*, stages: int = 1, **axes: int) -> None:
    """The workers as an array with named axes, the last of which varies fastest: mesh(data=2, model=4) of 8.

    After init(), and before the network is made. All workers then compute one batch together: each is given
    all of it, and what shard() says is divided. In a process alone it has no effect. The parallel mode is
    'stand_alone'. Without axes there is no mesh any more.

    With `stages` there are as many such meshes, and `Cell.place(rank=s)` puts a cell of the network on mesh
    s: mesh(data=2, model=2, stages=2) of 8. Worker w is in stage w mod stages. Between stages each worker
    hands on the pieces that it has.

    Args:
        stages: On how many meshes the network is placed.
        axes: The size of each axis by its name. Their product, times `stages`, is the number of workers.

    Raises:
        TypeError: A size is no whole number.
        ValueError: A size is below 1; the product is not the number of workers; the parallel mode is
            'data_parallel', which shares the batch in another way.
    """
    for name, size in {**axes, "stages": stages}.items():
        if isinstance(size, bool) or not isinstance(size, int):
            raise TypeError(f"mesh: {name} is a whole number of workers, not {size!r}")
    _core._mesh(list(axes.items()), stages)
    _begin({**axes, "stages": stages} if stages > 1 else axes)
    _shares["batch"] = bool(_mesh)


def _begin(axes: dict[str, int]) -> None:
    """Nothing has been divided over the mesh yet."""
    _mesh.clear()
    _mesh.update(axes)
    _has_divided.clear()


def _text(axes: dict[str, int]) -> str:
    return ",".join(f"{name}={size}" for name, size in axes.items())


def _size(memory: int | str) -> int:
    """Bytes of 2 << 30, or "2GiB"."""
    number, unit = memory, 1
    if isinstance(memory, str):
        units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
        unit = units.get(memory[-3:], 0)
        number = float(memory[:-3]) if unit and memory[:-3].strip().replace(".", "", 1).isdigit() else 0
    if isinstance(memory, bool) or not isinstance(memory, int | str) or number <= 0:
        raise ValueError(
            f"plan: memory is a number of bytes, or a text as '512MiB' or '2GiB', not {memory!r}"
        )
    return int(number * unit)


def plan(
    data: int | None = None,
    model: int = 1,
    zero: int | Zero = 0,
    *,
    memory: int | str | None = None,
) -> None:
    """Divides a step that has no layout of its own over the workers: `data` of them share its samples, and
    `model` of them its weights. After init(), before the network is made; the script stays as it is.

        parallel.plan(data=4, model=2)   # the line that `muster plan -n 8 train.py` gives
        parallel.plan()                  # chosen at the first step, by times that are measured then

    Every worker is given the whole batch, and the parallel mode is 'stand_alone'. Of the weights of products
    and convolutions one is cut by what it gives, the next by what it sums up, where `model` divides these.
    Numbers are those of one process, within rounding. In a process alone it has no effect.

    Args:
        data: The batch is cut into so many equal parts. None: all three are chosen at the first step that
            trains, by rank 0 for all.
        model: Weights are cut into so many parts. data * model is the number of workers.
        zero: 1: `data` also shares the state of the optimizer, and each sums up gradients of its pieces alone
            (`Zero`, whose level 2 this is, too). 3: also the parameters, which are gathered for each use. 0:
            nothing of these. Zero(3, threshold_bytes=0): likewise, with a threshold.
        memory: Of what is chosen, a worker may need no more at its peak, by prediction: bytes, or "512MiB".

    Raises:
        TypeError: One of them is no whole number.
        ValueError: `memory` is no size, or is given with `data`; data * model is not the number of workers;
            `zero` is not 0, 1 or 3; the parallel mode is 'data_parallel'; or, at the first step, no plan
            needs so little memory, or the batch cannot be cut so. (Later ones, as the last of an epoch, are
            computed whole by each worker then.)
        NotImplementedError: As mesh() says; or, at the first step, it runs in eager mode, or the optimizer is
            LARS.
    """
    shared = zero if isinstance(zero, Zero) else None
    zero = zero if shared is None else shared.level
    for name, value in (("data", data), ("model", model), ("zero", zero)):
        if isinstance(value, bool) or not isinstance(value, int | None):
            raise TypeError(f"plan: {name} is a whole number, not {value!r}")
    chosen = Zero(zero) if shared is None else shared
    memory_bytes = None if memory is None else _size(memory)
    _core._plan(data, model, chosen.level, chosen.threshold_bytes, memory_bytes)
    _shares["batch"] = True
    if data is not None:
        _begin({"data": data, "model": model})


def _stages() -> int:
    """Of the mesh, or all workers."""
    return _mesh.get("stages", 1) if _mesh else _core._context()["world_size"]


Layout = Sequence[str | Sequence[str] | None]


def shard(target: Any, layout: Layout) -> Any:
    """Says how a tensor, a parameter, or what a cell gives, is divided over the mesh.

        parallel.shard(net.fc1.weight, ("model", None))   # each worker holds, and trains, its rows
        x = parallel.shard(x, ("data", None))             # in construct: each computes its samples

    What is computed with it is divided likewise, as far as the ops have a rule; else a worker computes the
    whole. The numbers are those of one process: bit for bit where no sum is cut, and within rounding
    elsewhere.

    Args:
        target: A tensor in traced code; a Parameter, of which each worker then holds its piece, as of the
            state of its optimizer; or a cell or a function, of which the first result is meant.
        layout: For each dimension the axis of the mesh that cuts it, several of them in the mesh's order, or
            None: it is whole.

    Returns:
        The tensor; the Parameter; or a function that calls the cell.

    Raises:
        TypeError: `target` is none of these, or `layout` no sequence of names.
        ValueError: There is no mesh, or no such axis; an axis is used twice; the layout has another number of
            dimensions than the tensor, or does not divide one, with what would. (A tensor that comes behind
            others which it did divide, as the last batch of an epoch, stays whole, with a warning.)

    Source: Xu et al., GSPMD, arXiv 2105.04663.
    """
    if not _mesh:
        raise ValueError("shard: there is no mesh: call muster.parallel.mesh(data=2, model=2) before")
    text = _layout_text(layout)
    if isinstance(target, _core.Parameter) and not _core._is_tracing():
        _core._divide_parameter(target, _text(_mesh), text)
        return target
    if isinstance(target, _core.Tensor):
        alone = _core._context()["world_size"] == 1
        return target if alone else _divided(target, text)
    if callable(target):
        return _sharding_its_result(target, layout)
    raise TypeError(f"shard: a tensor, a Parameter or a cell is divided, not {type(target).__name__}")


def _divided(tensor: Any, text: str) -> Any:
    """The tensor in this layout; whole where another one was divided so, and this one cannot be: the last
    batch of an epoch, or a prediction."""
    kind = (text, len(tensor.shape))
    if kind in _has_divided and not _fits(tuple(tensor.shape), text):
        note_whole(tuple(tensor.shape))
        return tensor
    made = _core._shard(tensor, _text(_mesh), text)
    _has_divided.add(kind)
    return made


def _fits(shape: tuple[int, ...], text: str) -> bool:
    cuts = [math.prod(_mesh[name] for name in each.split("+") if name) for each in text.split(";")]
    return all(size % cut == 0 for size, cut in zip(shape, cuts, strict=True))


_told: set[tuple[int, ...]] = set()


def note_whole(shape: tuple[int, ...]) -> None:
    """Tells of a tensor that the workers do not share, once for its shape."""
    if shape not in _told:
        _told.add(shape)
        print(
            f"muster warning: a tensor of {shape} cannot be divided as those before it: each worker computes "
            "the whole of it (drop_remainder=True leaves away the last batch of an epoch)",
            file=sys.stderr,
            flush=True,
        )


def _layout_text(layout: Layout) -> str:
    if isinstance(layout, str) or not isinstance(layout, Sequence):
        raise TypeError(
            f"shard: layout has an axis or None for each dimension, as in ('data', None), not {layout!r}"
        )
    dims = []
    for each in layout:
        names = () if each is None else (each,) if isinstance(each, str) else tuple(each)
        for name in names:
            if isinstance(name, str) and (name not in _mesh or name == "stages"):
                axes = ", ".join(repr(each) for each in _mesh if each != "stages")
                raise ValueError(f"shard: the mesh has no axis {name!r}, it has {axes}")
        if not all(isinstance(name, str) and name for name in names):
            raise TypeError(f"shard: a dimension is cut by names of axes or None, not {each!r}")
        dims.append("+".join(names))
    return ";".join(dims)


def _sharding_its_result(function: Callable, layout: Layout) -> Callable:
    def sharded(*args, **kwargs):
        result = function(*args, **kwargs)
        if isinstance(result, tuple):
            return (shard(result[0], layout), *result[1:])
        return shard(result, layout)

    return sharded


def held_bytes(cell: Any) -> int:
    """How many bytes this worker holds of the parameters of a cell, such as an optimizer or a network: its
    pieces of what is divided, and nothing of what other workers have."""
    return cell._held_bytes()


def save_layout(path: Any, *cells: Any) -> None:
    """Writes how the workers of this job hold the parameters of cells as a mesh file, for
    `muster checkpoint convert --to` and `--from`. Rank 0 writes; every worker may call it.

        parallel.save_layout("mesh.toml", net, optimizer)

    Args:
        path: The file, a name or a path; one that is there is replaced.
        cells: A network, an optimizer, or several. The state of an optimizer is divided when that is first
            called.

    Raises:
        TypeError: One of `cells` is none.
        OSError: The file cannot be written.
    """
    text = _core._held_layout(list(cells))
    if _core._context()["rank"] == 0:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


__all__ = ["Zero", "held_bytes", "mesh", "place", "plan", "recompute", "save_layout", "shard"]
