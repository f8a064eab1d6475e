"""Callbacks of Dataset.map: called when a pass, an epoch and each so many steps begin and end."""

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


_HOOKS = ("ds_begin", "ds_epoch_begin", "ds_epoch_end", "ds_step_begin", "ds_step_end")


def _checked(callbacks):
    is_list = isinstance(callbacks, list | tuple)
    given = list(callbacks) if is_list else [callbacks]
    for number, each in enumerate(given):
        _checks.of_type(f"callbacks[{number}]" if is_list else "callbacks", each, DSCallback)
    return given


class Called(_rows.Node):
    """Rows as they are, with callbacks. An epoch is a pass over all, whatever repeat() comes behind."""

    def __init__(self, child, callbacks):
        super().__init__([child], child.columns)
        self._callbacks = _checked(callbacks)
        self._steps = self._in_epoch = 0

    def _call(self, hook, draw):
        for each in self._callbacks:
            if hook in ("ds_step_begin", "ds_step_end") and (self._in_epoch - 1) % each.step_size:
                continue
            getattr(each, hook)(CallbackParam(draw.number + 1, self._in_epoch, self._steps))

    def _begin(self, draw):
        if draw.number == 0 and draw.begins:  # the first pass of an iterator
            self._steps = 0
            for each in self._callbacks:
                if not any(getattr(type(each), hook) is not getattr(DSCallback, hook) for hook in _HOOKS):
                    raise AttributeError(f"{type(each).__name__} defines none of {', '.join(_HOOKS)}")
                each.ds_begin(CallbackParam(0, 0, 0))
        if draw.begins:
            self._in_epoch = 0
            self._call("ds_epoch_begin", draw)

    def rows(self, draw):
        if draw.is_look:
            yield from self.children[0].rows(draw)
            return
        self._begin(draw)
        for row in self.children[0].rows(draw):
            self._steps += 1
            self._in_epoch += 1
            self._call("ds_step_begin", draw)
            yield row
            self._call("ds_step_end", draw)
        if draw.ends:
            self._call("ds_epoch_end", draw)


def __getattr__(name):
    if name != "WaitedDSCallback":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from mindspore.dataset import _waited

    return _waited.WaitedDSCallback


__all__ = ["DSCallback", "WaitedDSCallback"]  # noqa: F822 - see __getattr__
