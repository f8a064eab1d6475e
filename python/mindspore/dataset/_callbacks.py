"""Callbacks of Dataset.map: called when a pass, an epoch and each so many steps begin and end."""

import itertools

from mindspore.dataset import _checks, _rows


class CallbackParam:
    """Where the pass is: cur_epoch_num, cur_step_num of all and in the epoch, from 1 on."""

    def __init__(self, epoch, step_in_epoch, step):
        self.cur_epoch_num = epoch
        self.cur_step_num_in_epoch = step_in_epoch
        self.cur_step_num = step


class DSCallback:
    """Base class: define ds_begin, ds_epoch_begin, ds_epoch_end, ds_step_begin or ds_step_end."""

    def __init__(self, step_size=1):
        _checks.whole("step_size", step_size, 1)
        self.step_size = step_size

    def ds_begin(self, ds_run_context):
        """Before the first row of all."""

    def ds_epoch_begin(self, ds_run_context):
        """Before the first row of a pass."""

    def ds_epoch_end(self, ds_run_context):
        """Behind the last row of a pass."""

    def ds_step_begin(self, ds_run_context):
        """Before each `step_size` rows."""

    def ds_step_end(self, ds_run_context):
        """Behind each `step_size` rows."""


class Called(_rows.Node):
    """Rows as they are, with callbacks."""

    def __init__(self, child, callbacks):
        super().__init__([child], child.columns)
        self._callbacks = list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
        for each in self._callbacks:
            if not isinstance(each, DSCallback):
                is_list = isinstance(callbacks, list | tuple)
                name = f"callbacks[{self._callbacks.index(each)}]" if is_list else "callbacks"
                _checks.of_type(name, each, DSCallback)
        self._steps = 0

    def _call(self, hook, epoch, step):
        for each in self._callbacks:
            if hook in ("ds_step_begin", "ds_step_end") and (step - 1) % each.step_size:
                continue
            getattr(each, hook)(CallbackParam(epoch, step, self._steps))

    def rows(self, draw):
        epoch = draw.epoch + 1
        if self._steps == 0:
            self._call("ds_begin", 0, 0)
        self._call("ds_epoch_begin", epoch, 0)
        rows = self.children[0].rows(draw)
        step = 0
        for step in itertools.count(1):
            row = next(rows, None)
            if row is None:
                break
            self._steps += 1
            self._call("ds_step_begin", epoch, step)
            yield row
            self._call("ds_step_end", epoch, step)
        self._call("ds_epoch_end", epoch, step - 1)


class WaitedDSCallback(DSCallback):
    """Would wait for steps of the training: making one is an error that says so."""

    def __init__(self, step_size=1):
        from mindspore import _names

        raise NotImplementedError(_names.sentence("mindspore.dataset.WaitedDSCallback"))


__all__ = ["DSCallback", "WaitedDSCallback"]
