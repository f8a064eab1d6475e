"""Event files of TensorBoard by hand: what a script wants to show beside the callback's numbers."""

import operator
import os
import time
import weakref
from collections.abc import Mapping

from muster import _core


def _is_real(value):
    import numbers  # here, for a quick start

    return isinstance(value, numbers.Real)


def _ended(file, process):
    """The file of a writer that nobody has closed; a forked child leaves it to its parent."""
    if os.getpid() == process:
        file.flush()


def _step(step):
    if step is None:
        return 0
    return step if type(step) is int else operator.index(step)


def _array(values, what, tag):
    import numpy  # takes longer than all of muster, and many scripts need none

    array = values.asnumpy() if hasattr(values, "asnumpy") else numpy.asarray(values)
    if array.dtype.kind not in "fiub":
        array = array.astype(numpy.float32) if array.dtype.name == "bfloat16" else array
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{what} '{tag}': numbers are needed, not {array.dtype}")
    return array


def _one_number(value, tag):
    array = _array(value, "scalar", tag)
    if array.size != 1:
        raise ValueError(f"scalar '{tag}': one number is needed, not an array of shape {array.shape}")
    return array.item()


def _check_times(walltime):
    if walltime is not None:
        raise ValueError(f"walltime is {walltime}: each addition has the time at which it is made")


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


def _drawn(figure):
    """uint8 (height, width, 4) of a figure of matplotlib's."""
    import numpy
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return numpy.array(canvas.buffer_rgba())


def _setting(name, value):
    """A text, bool or float of add_hparams()."""
    if hasattr(value, "ndim") and value.ndim == 0:  # of numpy, or a tensor
        value = (value.asnumpy() if hasattr(value, "asnumpy") else value).item()
    if isinstance(value, bool | str):
        return value
    if not _is_real(value):
        raise TypeError(f"hparams: {name} is a {type(value).__name__}: a number, text or bool is needed")
    return float(value)


def _new_folder(comment):
    """Where PyTorch's class writes by itself: runs/Nov30_08-15-00_host."""
    import socket

    return os.path.join("runs", f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}")


class SummaryWriter:
    """Writes an event file of TensorBoard in `log_dir`, by the names and arguments of PyTorch's class.

    Without `log_dir` the folder is runs/<time>_<host>, and `comment` behind that. What is added is on disk
    after flush(), close(), or `max_queue` additions, with the first one that comes `flush_secs` behind the
    last time, and when the writer or the script ends. One thread at a time. Each process writes a file of its
    own: in a job, let one rank do it. With `goes_on` it is the newest file of this rank in `log_dir`, where
    there is one: that of a process that was lost. A step that is None is 0. What has no part in what is shown
    (filename_suffix, new_style, double_precision, bins, max_bins) counts for nothing.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 64,
        flush_secs: float = 120,
        filename_suffix: str = "",
        *,
        goes_on: bool = False,
    ) -> None:
        """OSError where the folder or file cannot be made."""
        if purge_step is not None:
            raise ValueError(
                f"SummaryWriter: purge_step is {purge_step}: no step of a file is taken back here; "
                "goes_on=True writes on in it, and last_step(tag) says behind which step"
            )
        self.log_dir = _new_folder(comment) if log_dir is None else os.fspath(log_dir)
        self._file = _core._EventFile(self.log_dir, str(_core._rank()), goes_on)
        self._end = weakref.finalize(self, _ended, self._file, os.getpid())
        self._waiting, self._waiting_max = 0, max_queue
        self._flush_secs, self._flushed_at = flush_secs, time.monotonic()
        self._parts = {}  # of add_scalars(), by folder: a run for each

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
        if self._waiting >= self._waiting_max or time.monotonic() - self._flushed_at >= self._flush_secs:
            self.flush()

    def _open(self):
        if self._file is None:
            raise ValueError(f"SummaryWriter: the file in '{self.log_dir}' is closed")
        return self._file

    def last_step(self, tag: str) -> int:
        """The last step that the file has of `tag`; -1: none."""
        return self._open().last_step(tag)

    def add_scalar(
        self,
        tag: str,
        scalar_value: object,
        global_step: int | None = 0,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """One number, or a tensor of one element."""
        _check_times(walltime)
        if type(scalar_value) is not float:  # most are, and a thousand of them are a step
            if not _is_real(scalar_value):
                scalar_value = _one_number(scalar_value, tag)
            scalar_value = float(scalar_value)
        self._open().add_scalar(tag, scalar_value, _step(global_step))
        self._added()

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, object],
        global_step: int | None = 0,
        walltime: float | None = None,
    ) -> None:
        """Several numbers that are drawn as one: each is `main_tag` of a run in a folder below log_dir."""
        _check_times(walltime)
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self._parts:
                self._open()
                self._parts[folder] = SummaryWriter(folder, max_queue=self._waiting_max)
            self._parts[folder].add_scalar(main_tag, value, global_step)

    def add_histogram(
        self,
        tag: str,
        values: object,
        global_step: int | None = 0,
        bins: object = None,
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Numbers of any shape; NaN and infinities are left out."""
        _check_times(walltime)
        flat = _array(values, "histogram", tag).astype("float64").ravel()
        self._open().add_histogram(tag, flat, _step(global_step))
        self._added()

    def add_image(
        self,
        tag: str,
        img_tensor: object,
        global_step: int | None = 0,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture with 1, 3 or 4 channels: integers from 0 to 255, or floats from 0 to 1."""
        _check_times(walltime)
        self._open().add_image(tag, _pixels(img_tensor, tag, dataformats), _step(global_step))
        self._added()

    def add_images(
        self,
        tag: str,
        img_tensor: object,
        global_step: int | None = 0,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Several pictures, as `tag`/0, `tag`/1 and so on."""
        _check_times(walltime)
        if not dataformats.upper().startswith("N"):
            raise ValueError(f"images '{tag}': dataformats is {dataformats!r}: it begins with N")
        for index, image in enumerate(_array(img_tensor, "images", tag)):
            self.add_image(f"{tag}/{index}", image, global_step, dataformats=dataformats[1:])

    def add_figure(
        self,
        tag: str,
        figure: object,
        global_step: int | None = 0,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A figure of matplotlib's, or a list of them; `close` closes them."""
        _check_times(walltime)
        is_list = isinstance(figure, list | tuple)
        for index, each in enumerate(figure if is_list else [figure]):
            name = f"{tag}/{index}" if is_list else tag
            self.add_image(name, _drawn(each), global_step, dataformats="HWC")
            if close:
                from matplotlib import pyplot

                pyplot.close(each)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = 0, walltime: float | None = None
    ) -> None:
        """A text, in Markdown."""
        _check_times(walltime)
        if not isinstance(text_string, str):
            raise TypeError(f"text '{tag}': a text is needed, not {type(text_string).__name__}")
        self._open().add_text(tag, text_string, _step(global_step))
        self._added()

    def add_tensor(self, tag: str, tensor: object, global_step: int | None = 0) -> None:
        """A tensor of any shape, for programs that read the file: TensorBoard draws none."""
        self._open().add_tensor(tag, tensor, _step(global_step))
        self._added()

    def add_graph(self, model: _core.Cell, input_to_model: object) -> None:
        """What the cell `model` computes of the tensor, or of the list of tensors."""
        inputs = list(input_to_model) if isinstance(input_to_model, list | tuple) else [input_to_model]
        self._open().add_graph(model, inputs)
        self._added()

    def add_hparams(
        self, hparam_dict: Mapping[str, object], metric_dict: Mapping[str, object] | None = None
    ) -> None:
        """The settings of this run, and its results as scalars: {"lr": 0.1}, {"accuracy": 0.98}.

        A setting that is None is left out.
        """
        settings = {name: _setting(name, value) for name, value in hparam_dict.items() if value is not None}
        self._open().add_settings(settings, list(metric_dict or {}))
        for name, value in (metric_dict or {}).items():
            self.add_scalar(name, value)
        self._added()

    def flush(self) -> None:
        """What was added is in the file."""
        self._open().flush()
        self._waiting, self._flushed_at = 0, time.monotonic()
        for part in self._parts.values():
            part.flush()

    def close(self) -> None:
        """Flushes and closes; again it does nothing."""
        if self._file is not None:
            self.flush()
            self._end.detach()
            self._file = None
            for part in self._parts.values():
                part.close()
