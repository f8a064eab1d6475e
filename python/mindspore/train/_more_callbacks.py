"""Callbacks that are written in Python, and what stands in for MindSpore's summaries."""

import os
import signal

from mindspore import _device
from mindspore.train import serialization
from mindspore.train._callbacks import Callback


class InternalCallbackParam(dict):
    """What a callback is told, as a dict whose entries are attributes."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(name)

    def __setattr__(self, name, value):
        self[name] = value


_InternalCallbackParam = InternalCallbackParam


def _loss_of(outputs):
    import numpy

    first = outputs[0] if isinstance(outputs, tuple | list) else outputs
    return float(numpy.mean(first.asnumpy())) if hasattr(first, "asnumpy") else first


class History(Callback):
    """Keeps each epoch's loss and metrics, as `history`, and the numbers of the last training's epochs, as
    `epoch`. Evaluations of fit are no epochs of their own."""

    def __init__(self):
        super().__init__()
        self.history = {}
        self.epoch = None

    def on_train_begin(self, run_context):
        """Counts epochs anew; `history` goes on."""
        self.epoch = {"epoch": []}

    def on_train_epoch_end(self, run_context):
        """Adds an epoch."""
        params = run_context.original_args()
        self.epoch["epoch"].append(params.cur_epoch_num)
        self.history.setdefault("net_output", []).append(_loss_of(params.net_outputs))
        for name, value in (params.eval_results or {}).items():
            self.history.setdefault(name, []).append(value)

    def state_dict(self):
        """What it has kept."""
        return {"epoch": self.epoch, "history": self.history}

    def load_state_dict(self, state):
        """Takes over what state_dict gave."""
        self.epoch, self.history = state["epoch"], state["history"]


class OnRequestExit(Callback):
    """Saves the parameters and ends the training behind the step in which a signal comes."""

    def __init__(
        self,
        save_ckpt=True,
        save_mindir=True,
        file_name="Net",
        directory="./",
        config_file=None,
        sig=signal.SIGTERM,
    ):
        super().__init__()
        for name, value in (("save_ckpt", save_ckpt), ("save_mindir", save_mindir)):
            if not isinstance(value, bool):
                raise TypeError(f"OnRequestExit: {name} must be a bool, not {type(value).__name__}")
        if not isinstance(file_name, str) or not file_name:
            raise ValueError("OnRequestExit: file_name must be a string that is not empty")
        if config_file is not None:
            raise NotImplementedError(
                "OnRequestExit: config_file is not provided: send the signal `sig` instead"
            )
        if sig in (signal.SIGKILL, signal.SIGINT):
            raise ValueError("OnRequestExit: sig must not be SIGKILL or SIGINT")
        self.save_ckpt, self.save_mindir, self.sig = save_ckpt, save_mindir, sig
        self.path = os.path.join(os.path.abspath(directory), file_name)
        self._came = False

    def _note(self, number, frame):
        self._came = True

    def on_train_begin(self, run_context):
        """Listens for the signal."""
        self._before = signal.signal(self.sig, self._note)

    def on_train_step_end(self, run_context):
        """Saves and ends, if the signal came."""
        if not self._came:
            return
        params = run_context.original_args()
        if self.save_ckpt:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            serialization.save_checkpoint(params.train_network, self.path + "_train.ckpt")
        if self.save_mindir:
            _device.note_once("note: OnRequestExit writes no MindIR: the checkpoint has the parameters")
        run_context.request_stop()

    def on_train_end(self, run_context):
        """Listens no more."""
        signal.signal(self.sig, self._before)


class BackupAndRestore(Callback):
    """Saves the parameters as backup.ckpt after epochs or steps, and begins with them where there is one."""

    def __init__(self, backup_dir, save_freq="epoch", delete_checkpoint=True):
        super().__init__()
        if not isinstance(backup_dir, str) or not backup_dir:
            raise ValueError("BackupAndRestore: backup_dir must be a string that is not empty")
        if save_freq != "epoch" and (not isinstance(save_freq, int) or save_freq < 1):
            raise ValueError(
                f"BackupAndRestore: save_freq must be 'epoch' or an int above 0, not {save_freq!r}"
            )
        if not isinstance(delete_checkpoint, bool):
            raise TypeError("BackupAndRestore: delete_checkpoint must be a bool")
        self._file = os.path.join(backup_dir, "backup.ckpt")
        self._freq, self._deletes = save_freq, delete_checkpoint

    def on_train_begin(self, run_context):
        """Takes the parameters of an earlier training."""
        if os.path.exists(self._file):
            values = serialization.load_checkpoint(self._file)
            serialization.load_param_into_net(run_context.original_args().train_network, values)

    def _save(self, run_context):
        os.makedirs(os.path.dirname(self._file) or ".", exist_ok=True)
        serialization.save_checkpoint(run_context.original_args().train_network, self._file)

    def on_train_step_end(self, run_context):
        """Saves, every `save_freq` steps."""
        if self._freq != "epoch" and run_context.original_args().cur_step_num % self._freq == 0:
            self._save(run_context)

    def on_train_epoch_end(self, run_context):
        """Saves, if it is to do so after epochs."""
        if self._freq == "epoch":
            self._save(run_context)

    def on_train_end(self, run_context):
        """Removes the file of a training that is done."""
        if self._deletes and os.path.exists(self._file):
            os.remove(self._file)


class SummaryCollector(Callback):
    """Accepted, and does nothing: Muster has a dashboard of its own."""

    def __init__(self, summary_dir, *_, **settings):
        super().__init__()
        _no_summaries("SummaryCollector")


class SummaryRecord:
    """Accepted, and writes nothing."""

    def __init__(self, log_dir, *_, **settings):
        _no_summaries("SummaryRecord")
        self.log_dir = log_dir

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def add_value(self, plugin, name, value):
        """Does nothing."""

    def record(self, step, train_network=None, plugin_filter=None):
        """Does nothing; True, as MindSpore's."""
        return True

    def set_mode(self, mode):
        """Does nothing."""

    def flush(self):
        """Does nothing."""

    def close(self):
        """Does nothing."""


def _no_summaries(name):
    _device.note_once(
        f"note: {name} writes no summary files: `muster dashboard` shows a training, LossMonitor prints "
        f"its loss"
    )


def data_sink(fn, dataset, sink_size=1, jit_config=None, input_signature=None):
    """A function that calls `fn` with the next `sink_size` rows of the dataset (of all, over and over)."""
    rows = iter(())

    def sink(*_):
        nonlocal rows
        answer = None
        for _ in range(sink_size if sink_size > 0 else dataset.get_dataset_size()):
            row = next(rows, None)
            if row is None:
                rows = dataset.create_tuple_iterator(num_epochs=1)
                row = next(rows)
            answer = fn(*row)
        return answer

    return sink
