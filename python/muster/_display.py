"""How objects of the package show themselves: what people look for, and never an address."""

from muster import _core


def _named(self: object) -> str:
    return f"{type(self).__name__}()"


def _dataset(self: _core.Dataset) -> str:
    parts = []
    try:
        parts.append(f"columns={self.get_col_names()}")
        parts.append(f"batch_size={self.get_batch_size()}")
        if self.get_repeat_count() != 1:
            parts.append(f"repeat={self.get_repeat_count()}")
    except Exception as error:  # a source that cannot be read is shown, too
        parts.append(f"{type(error).__name__}: {error}")
    return f"{type(self).__name__}({', '.join(parts)})"


def _model(self: _core.Model) -> str:
    network = repr(self.predict_network).replace("\n", "\n  ")
    return f"{type(self).__name__}(\n  (network): {network}\n)"


def _explanation(self: _core.Explanation) -> str:
    return (
        f"Explanation({self.name!r}: {len(self.steps)} kernel calls, {self.arena_bytes} bytes of values; "
        "print() shows all)"
    )


def _context(self: _core.CallbackContext) -> str:
    return f"{type(self).__name__}(epoch={self.cur_epoch_num}, step={self.cur_step_num})"


_OF = {
    "CallbackContext": _context,
    "Dataset": _dataset,
    "Explanation": _explanation,
    "Model": _model,
}


def install() -> None:
    for name, kind in vars(_core).items():
        if isinstance(kind, type) and kind.__repr__ is object.__repr__:
            kind.__repr__ = _OF.get(name, _named)
