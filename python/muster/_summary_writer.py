"""Event files of TensorBoard by hand: what a script wants to show beside the callback's numbers."""

import math
import operator
import os
import time
import weakref
from collections.abc import Mapping

from muster import _core, _summary_values


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


def _time(walltime):
    """Seconds since 1970."""
    return time.time() if walltime is None else float(walltime)


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
    return _pixels_of_all(array)


def _pixels_of_all(array):
    import numpy

    if array.dtype.kind == "f":
        array = numpy.nan_to_num(array.astype(numpy.float32)).clip(0, 1) * 255 + 0.5
    return numpy.ascontiguousarray(array.clip(0, 255).astype(numpy.uint8))


def _write(folder, name, content):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)


def _drawn(figure):
    """uint8 (height, width, 4) of a figure of matplotlib's."""
    import numpy
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return numpy.array(canvas.buffer_rgba())


def _boxes(values, tag):
    """Float rows of left, top, right and bottom."""
    import numpy

    boxes = _array(values, "boxes", tag)
    if boxes.ndim != 2 or boxes.shape[1] != 4 or not numpy.isfinite(boxes).all():
        raise ValueError(f"boxes '{tag}': finite numbers (count, 4) are needed, not the shape {boxes.shape}")
    return boxes.tolist()


def _row_of_pictures(pictures):
    """(frames, height, width, channels) of (count, frames, height, width, channels), beside each other."""
    import numpy

    return numpy.concatenate(list(pictures), axis=2)


def _sprite(pictures):
    """One picture of (count, height, width, channels), row by row, as wide as high in pictures."""
    import numpy

    count, height, width, channels = pictures.shape
    across = math.ceil(math.sqrt(count))
    sprite = numpy.zeros((across * height, across * width, channels), numpy.uint8)
    for at, picture in enumerate(pictures):
        top, left = at // across * height, at % across * width
        sprite[top : top + height, left : left + width] = picture
    return sprite


def _labelled(mat, metadata, header, label_img):
    """The rows of an embedding and of its metadata; ValueError where they do not fit."""
    vectors = _array(mat, "embedding", "mat")
    if vectors.ndim != 2:
        raise ValueError(f"add_embedding: mat is (rows, numbers), not {vectors.shape}")
    for name, given in (("metadata", metadata), ("label_img", label_img)):
        if given is not None and len(given) != len(vectors):
            raise ValueError(f"add_embedding: {name} has {len(given)} rows, and mat {len(vectors)}")
    rows = [] if metadata is None else metadata
    labels = [row if isinstance(row, list | tuple) else [row] for row in rows]
    return vectors, [list(header), *labels] if header else labels


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
    (filename_suffix, new_style, double_precision, bins, max_bins, verbose, use_strict_trace,
    hparam_domain_discrete) counts for nothing. `walltime` is the time of an addition in seconds since 1970.
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
        if type(scalar_value) is not float:  # most are, and a thousand of them are a step
            if not _is_real(scalar_value):
                scalar_value = _one_number(scalar_value, tag)
            scalar_value = float(scalar_value)
        self._open().add_scalar(tag, scalar_value, _step(global_step), _time(walltime))
        self._added()

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, object],
        global_step: int | None = 0,
        walltime: float | None = None,
    ) -> None:
        """Several numbers that are drawn as one: each is `main_tag` of a run in a folder below log_dir."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self._parts:
                self._open()
                self._parts[folder] = SummaryWriter(folder, max_queue=self._waiting_max)
            self._parts[folder].add_scalar(main_tag, value, global_step, walltime)

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
        flat = _array(values, "histogram", tag).astype("float64").ravel()
        self._open().add_histogram(tag, flat, _step(global_step), _time(walltime))
        self._added()

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: object,
        bucket_counts: object,
        global_step: int | None = 0,
        walltime: float | None = None,
    ) -> None:
        """A histogram that a script has counted itself: the upper end of each bucket, and its count."""
        limits, counts = (
            _array(each, "histogram", tag).ravel().astype("<f8") for each in (bucket_limits, bucket_counts)
        )
        if limits.size != counts.size:
            raise ValueError(
                f"histogram '{tag}': {limits.size} bucket_limits and {counts.size} bucket_counts"
            )
        whole = [float(each) for each in (min, max, num, sum, sum_squares)]
        value = _summary_values.histogram(tag, whole, limits.tobytes(), counts.tobytes())
        self._add_value(tag, value, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: object,
        global_step: int | None = 0,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture with 1, 3 or 4 channels: integers from 0 to 255, or floats from 0 to 1."""
        self._open().add_image(
            tag, _pixels(img_tensor, tag, dataformats), _step(global_step), _time(walltime)
        )
        self._added()

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: object,
        box_tensor: object,
        global_step: int | None = 0,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: list[str] | str | None = None,
    ) -> None:
        """A picture, and boxes on it: rows of left, top, right and bottom in pixels.

        `labels` has a text for each; with another number of them there are none. `rescale` times as large.
        Pillow draws.
        """
        pixels, boxes = _pixels(img_tensor, tag, dataformats), _boxes(box_tensor, tag)
        labels = [labels] if isinstance(labels, str) else list(() if labels is None else labels)
        shown = labels if len(labels) == len(boxes) else [""] * len(boxes)
        drawn = _summary_values.with_boxes(pixels, boxes, shown, rescale)
        self.add_image(tag, drawn, global_step, walltime, "HWC")

    def add_images(
        self,
        tag: str,
        img_tensor: object,
        global_step: int | None = 0,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Several pictures, as `tag`/0, `tag`/1 and so on."""
        if not dataformats.upper().startswith("N"):
            raise ValueError(f"images '{tag}': dataformats is {dataformats!r}: it begins with N")
        for index, image in enumerate(_array(img_tensor, "images", tag)):
            self.add_image(f"{tag}/{index}", image, global_step, walltime, dataformats[1:])

    def add_figure(
        self,
        tag: str,
        figure: object,
        global_step: int | None = 0,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A figure of matplotlib's, or a list of them; `close` closes them."""
        is_list = isinstance(figure, list | tuple)
        for index, each in enumerate(figure if is_list else [figure]):
            name = f"{tag}/{index}" if is_list else tag
            self.add_image(name, _drawn(each), global_step, walltime, "HWC")
            if close:
                from matplotlib import pyplot

                pyplot.close(each)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = 0, walltime: float | None = None
    ) -> None:
        """A text, in Markdown."""
        if not isinstance(text_string, str):
            raise TypeError(f"text '{tag}': a text is needed, not {type(text_string).__name__}")
        self._open().add_text(tag, text_string, _step(global_step), _time(walltime))
        self._added()

    def _add_value(self, tag, value, global_step, walltime):
        self._open().add_value(tag, value, _step(global_step), _time(walltime))
        self._added()

    def add_video(
        self,
        tag: str,
        vid_tensor: object,
        global_step: int | None = 0,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Videos beside each other, (count, frames, channels, height, width): a moving PNG among the images.

        Integers from 0 to 255, or floats from 0 to 1.
        """
        array = _array(vid_tensor, "video", tag)
        if array.ndim != 5 or array.shape[2] not in (1, 3, 4) or 0 in array.shape:
            raise ValueError(
                f"video '{tag}': (count, frames, 1, 3 or 4 channels, height, width) is needed, not "
                f"{array.shape}"
            )
        if not fps > 0:
            raise ValueError(f"video '{tag}': fps is {fps}: it is above 0")
        pixels = _pixels_of_all(array.transpose(0, 1, 3, 4, 2))
        self._add_value(tag, _summary_values.video(tag, _row_of_pictures(pixels), fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: object,
        global_step: int | None = 0,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """A sound of one channel: numbers from -1 to 1."""
        samples = _array(snd_tensor, "sound", tag).squeeze()
        if samples.ndim != 1:
            raise ValueError(f"sound '{tag}': one channel is needed, not the shape {samples.shape}")
        self._add_value(tag, _summary_values.sound(tag, samples, int(sample_rate)), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: object,
        predictions: object,
        global_step: int | None = 0,
        num_thresholds: int = 127,
        weights: object = None,
        walltime: float | None = None,
    ) -> None:
        """Precision and recall at `num_thresholds` probabilities.

        Labels are 0 or 1, predictions from 0 to 1.
        """
        labels, predictions = (_array(each, "curve", tag).ravel() for each in (labels, predictions))
        if labels.shape != predictions.shape:
            raise ValueError(f"curve '{tag}': {labels.size} labels and {predictions.size} predictions")
        # NaN fails this, too.
        if not ((predictions >= 0) & (predictions <= 1)).all() or num_thresholds < 2:
            raise ValueError(
                f"curve '{tag}': predictions are from 0 to 1, and num_thresholds at least 2: it is "
                f"{num_thresholds}"
            )
        weights = 1.0 if weights is None else _array(weights, "curve", tag).ravel()
        counts = _summary_values.pr_counts(labels.astype(float), predictions, num_thresholds, weights)
        self._add_value(tag, _summary_values.pr_curve(tag, counts), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: object,
        false_positive_counts: object,
        true_negative_counts: object,
        false_negative_counts: object,
        precision: object,
        recall: object,
        global_step: int | None = 0,
        num_thresholds: int = 127,
        weights: object = None,
        walltime: float | None = None,
    ) -> None:
        """The same of counts that a script has; num_thresholds and weights count for nothing."""
        import numpy

        counts = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        rows = [_array(each, "curve", tag).ravel() for each in (*counts, precision, recall)]
        if len({row.size for row in rows}) != 1:
            raise ValueError(f"curve '{tag}': the six have {[row.size for row in rows]} numbers")
        self._add_value(tag, _summary_values.pr_curve(tag, numpy.stack(rows)), global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: object,
        colors: object = None,
        faces: object = None,
        config_dict: Mapping[str, object] | None = None,
        global_step: int | None = 0,
        walltime: float | None = None,
    ) -> None:
        """A mesh, or a cloud of points without faces: each of (batch, number, 3); colors from 0 to 255.

        `config_dict` is what TensorBoard's scene takes: camera, lights and material.
        """
        import json

        parts = [None if each is None else _array(each, "mesh", tag) for each in (vertices, faces, colors)]
        for part in parts:
            if part is not None and (part.ndim != 3 or part.shape[2] != 3):
                raise ValueError(f"mesh '{tag}': its parts are (batch, number, 3), not {part.shape}")
        for name, value in _summary_values.mesh(tag, *parts, json.dumps(dict(config_dict or {}))):
            self._add_value(name, value, global_step, walltime)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, list]]) -> None:
        """Which scalars are drawn together: {category: {chart: ["Multiline", tags]}}.

        Or ["Margin", [value, lower, upper]]. Once for each writer: the first counts.
        """
        self._add_value(_summary_values.LAYOUT_TAG, _summary_values.layout(layout), 0, None)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart of several scalars."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart of a scalar between two others."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_embedding(
        self,
        mat: object,
        metadata: list | None = None,
        label_img: object = None,
        global_step: int | None = 0,
        tag: str = "default",
        metadata_header: list[str] | None = None,
    ) -> None:
        """Rows of numbers for TensorBoard's projector, in files of log_dir/<step>/<tag>.

        `metadata` has a label for each row, or with `metadata_header` a list of them; `label_img` a picture
        (rows, channels, height, width), of equal height and width.
        """
        vectors, labels = _labelled(mat, metadata, metadata_header, label_img)
        place = f"{_step(global_step):05d}/{tag.replace('/', '%2F')}"
        folder = os.path.join(self.log_dir, place)
        os.makedirs(folder, exist_ok=True)
        config = {"tensor_name": f"{tag}:{_step(global_step):05d}", "tensor_path": f"{place}/tensors.tsv"}
        _write(folder, "tensors.tsv", _summary_values.tsv(vectors.tolist()).encode())
        if labels:
            _write(folder, "metadata.tsv", _summary_values.tsv(labels).encode())
            config["metadata_path"] = f"{place}/metadata.tsv"
        text = "".join(f"  {name}: {_summary_values.quoted(value)}\n" for name, value in config.items())
        if label_img is not None:
            pictures = _pixels_of_all(_array(label_img, "embedding", tag).transpose(0, 2, 3, 1))
            _write(folder, "sprite.png", _summary_values.png(_sprite(pictures)[None]))
            size = "".join(f" single_image_dim: {each}" for each in pictures.shape[2:0:-1])
            text += f"  sprite {{ image_path: {_summary_values.quoted(place + '/sprite.png')}{size} }}\n"
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "a") as file:
            file.write(f"embeddings {{\n{text}}}\n")

    def get_logdir(self) -> str:
        """log_dir."""
        return self.log_dir

    def add_tensor(self, tag: str, tensor: object, global_step: int | None = 0) -> None:
        """A tensor of any shape, for programs that read the file: TensorBoard draws none."""
        self._open().add_tensor(tag, tensor, _step(global_step))
        self._added()

    def add_graph(
        self,
        model: _core.Cell,
        input_to_model: object,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """What the cell `model` computes of the tensor, or of the list of tensors."""
        inputs = list(input_to_model) if isinstance(input_to_model, list | tuple) else [input_to_model]
        self._open().add_graph(model, inputs)
        self._added()

    def add_hparams(
        self,
        hparam_dict: Mapping[str, object],
        metric_dict: Mapping[str, object] | None = None,
        hparam_domain_discrete: object = None,
        run_name: str | None = None,
        global_step: int | None = 0,
    ) -> None:
        """The settings of this run, and its results as scalars: {"lr": 0.1}, {"accuracy": 0.98}.

        A setting that is None is left out. `run_name`: of a run in that folder below log_dir.
        """
        if run_name is not None:
            with SummaryWriter(os.path.join(self.log_dir, run_name)) as writer:
                writer.add_hparams(hparam_dict, metric_dict, global_step=global_step)
            return
        settings = {name: _setting(name, value) for name, value in hparam_dict.items() if value is not None}
        self._open().add_settings(settings, list(metric_dict or {}))
        for name, value in (metric_dict or {}).items():
            self.add_scalar(name, value, global_step)
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
