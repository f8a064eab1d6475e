"""Summaries: numbers by step in a file, and what MindSpore's own viewer would show."""

import os

import muster.train
from mindspore import _device


class SummaryRecord:
    """Scalars by step, as lines `step,name,value` of LOG_DIR/summary.csv; other values are left out."""

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
    ):
        self.log_dir = str(log_dir)
        import csv

        os.makedirs(log_dir, exist_ok=True)
        self._file = open(os.path.join(log_dir, "summary.csv"), "a", newline="")  # noqa: SIM115 - close() ends it
        self._lines = csv.writer(self._file)
        self._waiting = []
        self.mode = "train"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def set_mode(self, mode):
        """'train' or 'eval'."""
        if mode not in ("train", "eval"):
            raise ValueError(f"SummaryRecord: mode is 'train' or 'eval', not {mode!r}")
        self.mode = mode

    def add_value(self, plugin, name, value):
        """A value that the next record() writes: of the plugin 'scalar' one number."""
        if plugin == "scalar":
            self._waiting.append(
                (name, float(value.asnumpy().reshape(())) if hasattr(value, "asnumpy") else value)
            )
        else:
            _device.note_once(f"note: SummaryRecord.add_value('{plugin}') has no effect: scalars are written")

    def record(self, step, train_network=None, plugin_filter=None):
        """Writes what was added since the last time."""
        for name, value in self._waiting:
            self._lines.writerow([step, name, value])
        self._waiting = []
        return True

    def flush(self):
        """Everything recorded is in the file."""
        self._file.flush()

    def close(self):
        """Closes the file."""
        self._file.close()


class SummaryCollector(muster.train.Callback):
    """The loss of every `collect_freq`-th step, as SummaryRecord writes it."""

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
        self._record = SummaryRecord(summary_dir)
        self._every = collect_freq

    def on_train_step_end(self, run_context):
        """Notes the loss."""
        given = run_context.original_args()
        if given.cur_step_num % self._every == 0:
            loss = given.net_outputs
            self._record.add_value("scalar", "loss", loss[0] if isinstance(loss, tuple | list) else loss)
            self._record.record(given.cur_step_num)

    def on_train_end(self, run_context):
        """Closes the file."""
        self._record.flush()


__all__ = ["SummaryCollector", "SummaryRecord"]
