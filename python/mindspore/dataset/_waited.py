"""Callbacks of Dataset.map that meet the training: its steps behind, those of the dataset ahead."""

import threading
import types

from mindspore.dataset import _callbacks, config
from mindspore.train import Callback

# What the context of the training has, as it was at the end of the step.
_OF_TRAINING = ("batch_num", "cur_epoch_num", "cur_step_num", "epoch_num", "net_outputs")


class WaitedDSCallback(Callback, _callbacks.DSCallback):
    """Base class: `sync_epoch_begin` and `sync_step_begin` are called once the training has come so far.

    Give one object to `map(callbacks=)` and to `Model.train(callbacks=)`. Before the rows of each epoch and
    of each step but the first it waits for the epoch, the step before, then calls the method with the
    contexts of both: `train_run_context` (`cur_epoch_num`, `cur_step_num`, `epoch_num`, `batch_num`,
    `net_outputs` as they were at the end of that step) and `ds_run_context`.

    Args:
        step_size: Rows of a step: the size of a batch.

    Raises:
        RuntimeError: The training has not come so far in `config.set_callback_timeout` seconds (60), as where
            a batch takes rows of the next step.
    """

    def __init__(self, step_size=1):
        _callbacks.DSCallback.__init__(self, step_size)
        self._changed = threading.Condition()
        self._ended = False
        self._train_context = None
        self._epochs = self._train_steps = 0
        self._trainer = None

    def sync_epoch_begin(self, train_run_context, ds_run_context):
        """Before the rows of an epoch but the first, behind the training's epoch before."""

    def sync_step_begin(self, train_run_context, ds_run_context):
        """Before the rows of a step but the first, behind the training's step before."""

    def on_train_begin(self, run_context):
        """Notes which thread trains."""
        self._trainer = threading.get_ident()

    def step_end(self, run_context):
        """The training has made a step."""
        self._came(run_context, steps=1)

    def epoch_end(self, run_context):
        """The training has made an epoch."""
        self._came(run_context, epochs=1)

    def end(self, run_context):
        """The training is over: nothing waits any more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _came(self, run_context, steps=0, epochs=0):
        with self._changed:
            given = getattr(run_context, "original_args", lambda: run_context)()
            self._train_context = types.SimpleNamespace(
                **{name: getattr(given, name, None) for name in _OF_TRAINING}
            )
            self._train_steps += steps
            self._epochs += epochs
            self._changed.notify_all()

    def _wait(self, what, there):
        """Whether the training has come so far (False: it is over)."""
        seconds = config.get_callback_timeout()
        with self._changed:
            if threading.get_ident() == self._trainer:  # nobody else would train meanwhile
                seconds = 0
            if not self._changed.wait_for(lambda: self._ended or there(), seconds):
                raise RuntimeError(
                    f"WaitedDSCallback: {what} of the dataset came before the training's step or epoch "
                    f"before it had ended ({self._train_steps} steps and {self._epochs} epochs had, "
                    f"step_size is {self.step_size}); step_size is to be the size of the batches (waited "
                    f"{seconds} s)"
                )
            return not self._ended

    def ds_epoch_begin(self, ds_run_context):
        """Waits for the epoch before."""
        epoch = ds_run_context.cur_epoch_num
        if epoch > 1 and self._wait(f"epoch {epoch}", lambda: self._epochs >= epoch - 1):
            self.sync_epoch_begin(self._train_context, ds_run_context)

    def ds_step_begin(self, ds_run_context):
        """Waits for the step before."""
        row = ds_run_context.cur_step_num
        before = (row - 1) // self.step_size
        if before and self._wait(f"row {row}", lambda: self._train_steps >= before):
            self.sync_step_begin(self._train_context, ds_run_context)


__all__ = ["WaitedDSCallback"]
