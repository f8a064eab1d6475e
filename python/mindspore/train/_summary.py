"""Summaries, written as TensorBoard's event files: MindSpore's own viewer has ended."""

import os
import time

from muster._summary_writer import SummaryWriter

import muster.train
from mindspore import _device, _summaries, _tensors
from mindspore._lazy import numpy
from mindspore.nn import Cell

_PLUGINS = ("tensor", "scalar", "image", "histogram")
# What only MindSpore's own viewer showed.
_LEFT_OUT = ("train_lineage", "eval_lineage", "dataset_graph", "custom_lineage_data", "graph", "LANDSCAPE")
_PICTURES_MAX = 8


def _checked_options(options, who="SummaryRecord"):
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise TypeError(f"{who}: export_options is a dict, not {type(options).__name__}")
    if options.keys() - {"tensor_format"} or options.get("tensor_format") not in ("npy", None):
        raise ValueError(f"{who}: export_options is {options!r}: {{'tensor_format': 'npy'}} is what there is")
    return options


def _checked_size(max_file_size, who="SummaryRecord"):
    if isinstance(max_file_size, bool) or not isinstance(max_file_size, int | None):
        raise TypeError(f"{who}: max_file_size is an int, not {type(max_file_size).__name__}")
    if max_file_size is not None and max_file_size < 1:
        raise ValueError(f"{who}: max_file_size is a number of bytes from 1, not {max_file_size}")
    return max_file_size


def _check_pattern(pattern):
    import re

    if not isinstance(pattern, str | None):
        raise TypeError(f"SummaryCollector: histogram_regular is a text, not {type(pattern).__name__}")
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ValueError(
            f"SummaryCollector: histogram_regular is {pattern!r}, which is no regular expression: {error}"
        ) from error


def _drawable(pictures):
    """uint8 of pictures with any numbers: 0 to 255 as they are, others stretched to that."""
    if pictures.dtype == numpy.uint8:
        return pictures
    pictures = numpy.nan_to_num(pictures.astype(numpy.float32))
    low, high = float(pictures.min()), float(pictures.max())
    if low < 0 or high > 255 or high <= 1:
        pictures = (pictures - low) * (255 / (high - low) if high > low else 0)
    return (pictures + 0.5).clip(0, 255).astype(numpy.uint8)


class SummaryRecord:
    """Values by step, of add_value() and of the Summary ops of a network, in an event file of TensorBoard.

    The file's name is TensorBoard's own (events.out.tfevents...), so `file_prefix` and `file_suffix` count
    for nothing; neither does `num_process`: the process itself writes. Above `max_file_size` bytes nothing
    more is written, which is said once. With export_options={'tensor_format': 'npy'} tensors are saved as
    .npy files too, below log_dir/export_<time>/tensor.
    """

    def __init__(
        self,
        log_dir,
        file_prefix="events",
        file_suffix="_MS",
        num_process=32,
        network=None,
        max_file_size=None,
        raise_exception=False,
        export_options=None,
        *,
        _goes_on=False,
    ):
        if not isinstance(file_prefix, str) or not isinstance(file_suffix, str):
            raise TypeError("SummaryRecord: file_prefix and file_suffix are strings")
        self.log_dir = os.path.realpath(log_dir)
        self._exports = _checked_options(export_options)
        self._export_dir = os.path.join(self.log_dir, f"export_{int(time.time())}", "tensor")
        self._max_file_size = _checked_size(max_file_size)
        self._raises = raise_exception
        self._mode = "train"
        self._waiting = {}  # (plugin, name): array
        self._is_full = False
        self._file = SummaryWriter(self.log_dir, goes_on=_goes_on)
        _summaries.opened(1)

    def __enter__(self):
        if self._file is None:
            raise ValueError("SummaryRecord has been closed")
        return self

    def __exit__(self, *error):
        self.close()

    def set_mode(self, mode):
        """'train' or 'eval', in which what Summary ops give is not recorded."""
        if mode not in ("train", "eval"):
            raise ValueError(f"SummaryRecord.set_mode: mode is 'train' or 'eval', not {mode!r}")
        self._mode = mode

    def add_value(self, plugin, name, value):
        """A value that the next record() writes.

        Plugins: 'scalar' (one element), 'tensor', 'histogram', and 'image' (batch, 1 or 3 channels, height,
        width), of which the first eight pictures are written. Lineages, landscapes and MindSpore's own graphs
        are not written, which is said once: no viewer shows them. ValueError for another plugin.
        """
        if plugin in _LEFT_OUT:
            _device.note_once(f"note: SummaryRecord.add_value('{plugin}') writes nothing: no viewer shows it")
            return
        if plugin not in _PLUGINS:
            known = ", ".join((*_PLUGINS, *_LEFT_OUT))
            raise ValueError(f"SummaryRecord.add_value: there is no plugin {plugin!r}: {known}")
        if not name or not isinstance(name, str):
            raise ValueError(f"SummaryRecord.add_value: name is a text that is not empty, not {name!r}")
        if not hasattr(value, "asnumpy"):
            raise TypeError(f"SummaryRecord.add_value: value is a Tensor, not {type(value).__name__}")
        self._waiting[plugin, name] = self._checked(plugin, name, value.asnumpy())

    @staticmethod
    def _checked(plugin, name, array):
        if plugin == "scalar" and array.size != 1:
            raise ValueError(f"SummaryRecord: the scalar '{name}' has one element, not {array.size}")
        if plugin == "image" and (array.ndim != 4 or array.shape[1] not in (1, 3)):
            raise ValueError(
                f"SummaryRecord: the image '{name}' is (batch, 1 or 3, height, width), not {array.shape}"
            )
        if plugin in ("tensor", "histogram") and array.size == 0:
            raise ValueError(f"SummaryRecord: the {plugin} '{name}' has no elements")
        return array

    def record(self, step, train_network=None, plugin_filter=None):
        """Writes what was added since the last time; False where the record is closed or its file full.

        `plugin_filter(plugin)` says what of it is written; the rest is dropped.
        """
        if isinstance(step, bool) or not isinstance(step, int):
            raise TypeError(f"SummaryRecord.record: step is an int, not {type(step).__name__}")
        if not isinstance(train_network, Cell | None):
            raise TypeError(
                f"SummaryRecord.record: train_network is a Cell, not {type(train_network).__name__}"
            )
        if self._file is None:
            return False
        values = [(plugin, name, value) for (plugin, name), value in self._waiting.items()]
        self._waiting = {}
        if self._mode == "train":
            values += _summaries.take()
        try:
            for plugin, name, value in values:
                if not self._is_full and (plugin_filter is None or plugin_filter(plugin)):
                    self._write(plugin, name, value, step)
            self._file.flush()
        except OSError as error:
            if self._raises:
                raise
            _device.note_once(f"note: SummaryRecord: {error}")
            return False
        self._look_at_size()
        return not self._is_full

    def _write(self, plugin, name, value, step):
        if plugin == "scalar":
            self._file.add_scalar(name, value, step)
        elif plugin == "histogram":
            self._file.add_histogram(name, value, step)
        elif plugin == "tensor":
            self._file.add_tensor(name, value, step)
            if self._exports.get("tensor_format"):
                os.makedirs(self._export_dir, exist_ok=True)
                safe = name.replace("/", "_")
                numpy.save(os.path.join(self._export_dir, f"{safe}_{step}.npy"), value)
        elif len(value) == 1:
            self._file.add_image(name, _drawable(value)[0], step)
        else:
            self._file.add_images(name, _drawable(value[:_PICTURES_MAX]), step)

    def _look_at_size(self):
        if self._max_file_size and not self._is_full:
            self._is_full = os.path.getsize(self._file.path) >= self._max_file_size
            if self._is_full:
                _device.note_once(
                    f"note: SummaryRecord: {self._file.path} has reached max_file_size="
                    f"{self._max_file_size}: nothing more is written"
                )

    def flush(self):
        """Everything recorded is in the file."""
        if self._file is not None:
            self._file.flush()

    def close(self):
        """Closes the file; again it does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None
            _summaries.opened(-1)


class SummaryCollector(muster.train.Callback):
    """Records the first step and every `collect_freq`-th one, on rank 0, in an event file of TensorBoard.

    Written are the loss ('loss/auto'), histograms of the optimizer's parameters whose names match
    `histogram_regular`, by default of the first five ('<name>/auto'), the network's graph, and what the
    Summary ops of the network give; tensors of TensorSummary every `collect_tensor_freq` steps, by default
    at about 20 steps of the training. `collect_specified_data` turns collect_metric, collect_graph and
    histogram_regular off or sets them; with keep_default_action=False the rest of them is off. Lineages,
    dataset graphs, input pictures and landscapes are not collected: only MindSpore's own viewer, which has
    ended, showed them. A training that goes on after a loss goes on in the file and repeats no step.
    """

    _DEFAULTS = {"collect_metric": True, "collect_graph": True, "histogram_regular": None}  # noqa: RUF012
    _OTHERS = (
        "collect_train_lineage",
        "collect_eval_lineage",
        "collect_input_data",
        "collect_dataset_graph",
        "collect_landscape",
    )
    state_is_shared = True

    def __init__(
        self,
        summary_dir,
        collect_freq=10,
        num_process=32,
        collect_specified_data=None,
        keep_default_action=True,
        custom_lineage_data=None,
        collect_tensor_freq=None,
        max_file_size=None,
        export_options=None,
    ):
        super().__init__()
        if not isinstance(summary_dir, str | os.PathLike):
            raise TypeError(f"SummaryCollector: summary_dir is a path, not {type(summary_dir).__name__}")
        if not isinstance(keep_default_action, bool):
            raise TypeError(
                f"SummaryCollector: keep_default_action is a bool, not {type(keep_default_action).__name__}"
            )
        for name, value in (("collect_freq", collect_freq), ("collect_tensor_freq", collect_tensor_freq)):
            if value is None and name == "collect_tensor_freq":
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"SummaryCollector: {name} is an int, not {type(value).__name__}")
            if value <= 0:
                raise ValueError(f"SummaryCollector: {name} should be greater than 0, but got {value}")
        self._dir, self._freq, self._tensor_freq = summary_dir, collect_freq, collect_tensor_freq
        if not isinstance(custom_lineage_data, dict | None):
            kind = type(custom_lineage_data).__name__
            raise TypeError(f"SummaryCollector: custom_lineage_data is a dict, not {kind}")
        _checked_options(export_options, "SummaryCollector")
        _checked_size(max_file_size, "SummaryCollector")
        self._settings = {"max_file_size": max_file_size, "export_options": export_options}
        self._wanted = self._processed(collect_specified_data, keep_default_action)
        self._record = None
        self._goes_on = False

    def __enter__(self):
        _summaries.opened(1)
        return self

    def __exit__(self, *error):
        _summaries.opened(-1)
        _summaries.want(True)
        if self._record is not None:
            self._record.close()
            self._record = None

    def _processed(self, given, keeps_defaults):
        if not isinstance(given, dict | None):
            raise TypeError(f"SummaryCollector: collect_specified_data is a dict, not {type(given).__name__}")
        given = dict(given or {})
        unknown = given.keys() - {*self._DEFAULTS, *self._OTHERS}
        if unknown:
            raise ValueError(
                f"SummaryCollector: collect_specified_data has unknown keys {sorted(unknown)}: "
                f"{', '.join((*self._DEFAULTS, *self._OTHERS))}"
            )
        for name, value in given.items():
            if name == "histogram_regular":
                _check_pattern(value)
            elif name != "collect_landscape" and not isinstance(value, bool):
                raise TypeError(f"SummaryCollector: {name} is a bool, not {type(value).__name__}")
        return {**(self._DEFAULTS if keeps_defaults else {}), **given}

    def _open(self):
        if self._record is None:
            self._record = SummaryRecord(self._dir, **self._settings, _goes_on=self._goes_on)
            self._done = self._record._file.last_step("loss/auto")
        return self._record

    def on_train_begin(self, run_context):
        """A training begins, in a file of its own; where one goes on, load_state_dict comes behind this."""
        self._goes_on = False
        self._is_first = True

    def _is_due(self, step):
        return step % self._freq == 0 or self._is_first

    def on_train_step_begin(self, run_context):
        """What the Summary ops of a step give that is not recorded is not kept."""
        _summaries.want(self._is_due(run_context.original_args().cur_step_num))

    def on_train_step_end(self, run_context):
        """Records the step."""
        given = run_context.original_args()
        if muster._core._rank() != 0 or not self._is_due(given.cur_step_num):
            return
        is_first, self._is_first = self._is_first, False
        record = self._open()
        if self._goes_on and given.cur_step_num <= self._done:
            _summaries.take()
            return
        if self._wanted.get("collect_metric"):
            loss = given.net_outputs
            loss = loss[0] if isinstance(loss, tuple | list) else loss
            record.add_value("scalar", "loss/auto", muster.Tensor(float(numpy.mean(loss.asnumpy()))))
        if "histogram_regular" in self._wanted and given.optimizer is not None:
            here = [each for each in given.optimizer.parameters if not _tensors.is_served_table(each)]
            self._add_histograms(record, here)
        if is_first and self._wanted.get("collect_graph") and not self._goes_on:
            self._add_graph(record, run_context)
        freq = self._tensor_freq or max(self._freq, given.batch_num * given.epoch_num // 20)
        has_tensors = is_first or given.cur_step_num % freq == 0
        record.record(given.cur_step_num, plugin_filter=lambda plugin: plugin != "tensor" or has_tensors)
        self._done = max(self._done, given.cur_step_num)

    def _add_histograms(self, record, parameters):
        import re

        pattern = self._wanted["histogram_regular"]
        found = parameters[:5] if pattern is None else [p for p in parameters if re.match(pattern, p.name)]
        for parameter in found:
            record.add_value("histogram", f"{parameter.name}/auto", parameter)

    @staticmethod
    def _add_graph(record, run_context):
        network, types = run_context.network, run_context._batch_types()
        inputs = types[:-1] if run_context.loss_fn is not None and len(types) > 1 else types
        try:
            record._file.add_graph(network, [muster.ops.zeros(shape, dtype) for dtype, shape in inputs])
        except Exception as error:  # a network that cannot be traced so is not drawn
            _device.note_once(f"note: SummaryCollector gets no graph of the network: {error}")

    def state_dict(self):
        """Nothing but that the training goes on."""
        return {}

    def load_state_dict(self, state):
        """The training goes on, maybe behind steps that are recorded already."""
        self._goes_on = True


__all__ = ["SummaryCollector", "SummaryRecord"]
