"""Event files of TensorBoard by hand: what a script wants to show beside the callback's numbers."""

import os
from collections.abc import Mapping

from muster import _core


def _is_real(value):
    import numbers  # here, for a quick start

    return isinstance(value, numbers.Real)


def _array(values, what, tag):
    import numpy  # takes longer than all of muster, and many scripts need none

    array = values.asnumpy() if hasattr(values, "asnumpy") else numpy.asarray(values)
    if array.dtype.kind not in "fiub":
        array = array.astype(numpy.float32) if array.dtype.name == "bfloat16" else array
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{what} '{tag}': numbers are needed, not {array.dtype}")
    return array


def _pixels(image, tag, dataformats):
    """uint8 (height, width, channels); floats are from 0 to 1."""
    import numpy

    array = _array(image, "image", tag)
    if sorted(dataformats.upper()) not in (["H", "W"], ["C", "H", "W"]) or len(dataformats) != array.ndim:
        raise ValueError(
            f"image '{tag}': its shape is {array.shape}, and dataformats {dataformats!r}: 'CHW', 'HWC' "
            "or 'HW'"
        )
    order = dataformats.upper()
    if "C" not in order:
        array, order = array[..., None], order + "C"
    array = numpy.transpose(array, [order.index(axis) for axis in "HWC"])
    if array.dtype.kind == "f":
        array = numpy.nan_to_num(array.astype(numpy.float32)).clip(0, 1) * 255 + 0.5
    return numpy.ascontiguousarray(array.clip(0, 255).astype(numpy.uint8))


class SummaryWriter:
    """Writes an event file of TensorBoard in `log_dir`, by the names and arguments of PyTorch's class.

    What is added is on disk after flush(), close(), or 64 additions. One thread at a time. Each process
    writes a file of its own: in a job, let one rank do it. With `goes_on` it is the newest file of this
    rank in `log_dir`, where there is one: that of a process that was lost.
    """

    def __init__(self, log_dir: str | os.PathLike[str], *, goes_on: bool = False) -> None:
        """OSError where the folder or file cannot be made."""
        self.log_dir = os.fspath(log_dir)
        self._file = _core._EventFile(self.log_dir, str(_core._rank()), goes_on)
        self._waiting = 0

    def __repr__(self) -> str:
        return f"SummaryWriter({self.log_dir!r})"

    @property
    def path(self) -> str:
        """The file that is written."""
        return self._open().path

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _added(self):
        self._waiting += 1
        if self._waiting >= 64:
            self.flush()

    def _open(self):
        if self._file is None:
            raise ValueError(f"SummaryWriter: the file in '{self.log_dir}' is closed")
        return self._file

    def last_step(self, tag: str) -> int:
        """The last step that the file has of `tag`; -1: none."""
        return self._open().last_step(tag)

    def add_scalar(self, tag: str, scalar_value: object, global_step: int = 0) -> None:
        """One number, or a tensor of one element."""
        if type(scalar_value) is not float:  # most are, and a thousand of them are a step
            if not _is_real(scalar_value):
                scalar_value = _array(scalar_value, "scalar", tag).reshape(())[()]
            scalar_value = float(scalar_value)
        self._open().add_scalar(tag, scalar_value, global_step)
        self._added()

    def add_histogram(self, tag: str, values: object, global_step: int = 0) -> None:
        """Numbers of any shape; NaN and infinities are left out."""
        flat = _array(values, "histogram", tag).astype("float64").ravel()
        self._open().add_histogram(tag, flat, global_step)
        self._added()

    def add_image(self, tag: str, img_tensor: object, global_step: int = 0, dataformats: str = "CHW") -> None:
        """A picture with 1, 3 or 4 channels: integers from 0 to 255, or floats from 0 to 1."""
        self._open().add_image(tag, _pixels(img_tensor, tag, dataformats), global_step)
        self._added()

    def add_images(
        self, tag: str, img_tensor: object, global_step: int = 0, dataformats: str = "NCHW"
    ) -> None:
        """Several pictures, as `tag`/0, `tag`/1 and so on."""
        if not dataformats.upper().startswith("N"):
            raise ValueError(f"images '{tag}': dataformats is {dataformats!r}: it begins with N")
        for index, image in enumerate(_array(img_tensor, "images", tag)):
            self.add_image(f"{tag}/{index}", image, global_step, dataformats[1:])

    def add_text(self, tag: str, text_string: str, global_step: int = 0) -> None:
        """A text, in Markdown."""
        self._open().add_text(tag, text_string, global_step)
        self._added()

    def add_tensor(self, tag: str, tensor: object, global_step: int = 0) -> None:
        """A tensor of any shape, for programs that read the file: TensorBoard draws none."""
        self._open().add_tensor(tag, tensor, global_step)
        self._added()

    def add_graph(self, model: _core.Cell, input_to_model: object) -> None:
        """What the cell `model` computes of the tensor, or of the list of tensors."""
        inputs = list(input_to_model) if isinstance(input_to_model, list | tuple) else [input_to_model]
        self._open().add_graph(model, inputs)
        self._added()

    def add_hparams(
        self, hparam_dict: Mapping[str, object], metric_dict: Mapping[str, object] | None = None
    ) -> None:
        """The settings of this run, and its results as scalars: {"lr": 0.1}, {"accuracy": 0.98}."""
        settings = {}
        for name, value in hparam_dict.items():
            if isinstance(value, bool | str):
                settings[name] = value
            elif _is_real(value):
                settings[name] = float(value)
            else:
                raise TypeError(
                    f"hparams: {name} is a {type(value).__name__}: a number, text or bool is needed"
                )
        self._open().add_settings(settings, list(metric_dict or {}))
        for name, value in (metric_dict or {}).items():
            self.add_scalar(name, value)
        self._added()

    def flush(self) -> None:
        """What was added is in the file."""
        self._open().flush()
        self._waiting = 0

    def close(self) -> None:
        """Flushes and closes; again it does nothing."""
        if self._file is not None:
            self.flush()
            self._file = None
