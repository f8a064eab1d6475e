"""Callbacks of the library in a loop that is written by hand: scripts make the run context themselves.

A Model hands its own context over, and the library's classes do their work in C++ then. What a script makes
(`RunContext(cb_params)`, cb_params a dict) they cannot read: the classes here act on it in Python.
"""

import contextlib
import os
import time
import weakref

import muster
import muster.train

PLAIN = ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")
METHODS = tuple(stage + name for stage in ("", "on_train_", "on_eval_") for name in PLAIN)
_SMALLER_IS_BETTER = (
    *("hausdorff_distance", "mae", "mse", "loss", "perplexity", "mean_surface_distance"),
    *("root_mean_square_distance", "eval_loss"),
)
_notes = weakref.WeakKeyDictionary()  # of callbacks: attributes of their own would be state that nobody saves


def _loss_of(outputs):
    from mindspore import _inside

    return _inside._handle_loss(outputs)


class _Notes:
    """What a callback has to remember from one call to the next, and the settings it was made with."""

    def __init__(self, **settings):
        self.__dict__.update(settings)


def noted(callback, **settings) -> None:
    """Keeps what the callback was made with."""
    _notes[callback] = _Notes(**settings)


def of(callback):
    """What is kept of a callback."""
    return _notes[callback]


def _dispatch(base, method, own):
    plain = method.removeprefix("on_train_").removeprefix("on_eval_")
    act = own.get(method) or (own.get(plain) if not method.startswith("on_eval_") else None)
    of_library = getattr(base, method)

    def call(self, run_context):
        if isinstance(run_context, muster.train.CallbackContext):
            of_library(self, run_context)
        elif act is not None:
            act(_notes[self], run_context.original_args(), run_context)

    call.__name__ = method
    call.__doc__ = of_library.__doc__
    return call


def acting(**own):
    """Decorates a class of the library: it acts on contexts of a script by `own`, functions by method."""

    def decorate(kind):
        for method in METHODS:
            if method not in kind.__dict__:
                setattr(kind, method, _dispatch(kind.__base__, method, own))
        return kind

    return decorate


# ---- LossMonitor ------------------------------------------------------------------------------------------


def print_loss(notes, params, run_context) -> None:
    """The loss of a step, every so many of them; ValueError where it is none."""
    loss = _loss_of(params.get("net_outputs"))
    step = (params["cur_step_num"] - 1) % params["batch_num"] + 1
    epoch = params.get("cur_epoch_num", 1)
    if isinstance(loss, float) and (loss != loss or loss in (float("inf"), float("-inf"))):
        raise ValueError(
            f"In epoch: {epoch} step: {step}, loss is {loss}, which is no number; try a smaller learning rate"
        )
    if params["cur_step_num"] <= notes.last:  # another loop has begun
        notes.last = 0
    if notes.every and params["cur_step_num"] - notes.last >= notes.every:
        notes.last = params["cur_step_num"]
        print(f"epoch: {epoch} step: {step}, loss is {loss}", flush=True)


def print_metrics(notes, params, run_context) -> None:
    """What the epoch's evaluation gave."""
    if metrics := params.get("metrics"):
        print(f"Eval result: epoch {params['cur_epoch_num']}, metrics: {metrics}")


# ---- TimeMonitor ------------------------------------------------------------------------------------------


def start_clock(notes, params, run_context) -> None:
    """An epoch begins."""
    notes.began = time.monotonic()


def print_time(notes, params, run_context) -> None:
    """How long an epoch and its steps took."""
    taken = (time.monotonic() - notes.began) * 1000
    steps = params.get("batch_num") or notes.data_size
    if not isinstance(steps, int) or steps < 1:
        raise ValueError(f"TimeMonitor: batch_num or data_size is the number of steps, not {steps!r}")
    mode = params.get("mode", "").title()
    print(f"{mode} epoch time: {taken:5.3f} ms, per step time: {taken / steps:5.3f} ms", flush=True)


# ---- ModelCheckpoint --------------------------------------------------------------------------------------


def begin_saving(notes, params, run_context) -> None:
    """Chooses a prefix that no file in the folder has yet."""
    os.makedirs(notes.directory, exist_ok=True)
    there, number, prefix = os.listdir(notes.directory), 0, notes.given
    while any(name.startswith(f"{prefix}-") for name in there):
        number += 1
        prefix = f"{notes.given}_{number}"
    notes.prefix, notes.files, notes.latest = prefix, [], ""
    notes.last, notes.saved_at = 0, time.monotonic()


def save_step(notes, params, run_context, last=False) -> None:
    """A file, if it is time for one."""
    step = params["cur_step_num"]
    if step == notes.last:
        return
    config = notes.config
    every, seconds = config.save_checkpoint_steps, config.save_checkpoint_seconds
    is_time = step >= notes.last + every if every else time.monotonic() - notes.saved_at > (seconds or 0)
    if not (is_time or last):
        return
    from mindspore.train import serialization

    name = f"{notes.prefix}-{params['cur_epoch_num']}_{(step - 1) % params['batch_num'] + 1}.{config.format}"
    notes.last, notes.saved_at = step, time.monotonic()
    notes.latest = os.path.join(os.path.realpath(notes.directory), name)
    appended = config.append_dict and {
        **config.append_dict,
        **{
            each: config.append_dict[each] + params[f"cur_{each}"]
            for each in ("epoch_num", "step_num")
            if each in config.append_dict
        },
    }
    network = config.saved_network or params["train_network"]
    serialization.save_checkpoint(network, notes.latest, append_dict=appended, format=config.format)
    notes.files = [each for each in notes.files if each != notes.latest] + [notes.latest]
    while config.keep_checkpoint_max and len(notes.files) > config.keep_checkpoint_max:
        with contextlib.suppress(FileNotFoundError):
            os.remove(notes.files.pop(0))


def save_last(notes, params, run_context) -> None:
    """The last step, unless it is in a file."""
    save_step(notes, params, run_context, last=True)


def latest_file(callback) -> str:
    """The last file that such a loop had written; '' without one."""
    return getattr(_notes.get(callback), "latest", "")


# ---- EarlyStopping, ReduceLROnPlateau ---------------------------------------------------------------------


def watching(callback, **settings) -> None:
    """Keeps what the callback was made with; nothing has been seen."""
    noted(callback, **settings)
    begin_watching(_notes[callback])


def mode_of(mode, monitor):
    """'min' or 'max' for 'auto', as MindSpore chooses; what else there is goes through to be refused."""
    if mode != "auto":
        return mode
    return "min" if monitor in _SMALLER_IS_BETTER else "max"


def begin_watching(notes, params=None, run_context=None) -> None:
    """As if nothing had been seen."""
    notes.wait, notes.cooldown_left, notes.stopped_epoch, notes.best_weights = 0, 0, 0, None
    notes.smaller = mode_of(notes.mode, notes.monitor) == "min"
    notes.best = float("inf") if notes.smaller else float("-inf")


def _is_better(notes, value, than) -> bool:
    return value < than - notes.min_delta if notes.smaller else value > than + notes.min_delta


def _watched(notes, params, name):
    """The value that is watched, None where it is not there (a 0 counts as none in MindSpore, not here)."""
    of_loss = notes.monitor == "loss"
    value = (
        _loss_of(params.get("net_outputs")) if of_loss else params.get("eval_results", {}).get(notes.monitor)
    )
    if getattr(value, "shape", ()) != ():
        raise ValueError(f"{name}: {notes.monitor!r} is one number, not of shape {value.shape}")
    return None if value is None else float(value)


def stop_early(notes, params, run_context) -> None:
    """Asks for the end where nothing has got better for a while."""
    value = _watched(notes, params, "EarlyStopping")
    if value is None:
        return
    network = params.get("train_network")
    notes.wait += 1
    if notes.restores and notes.best_weights is None:
        notes.best_weights = _weights_of(network)
    if _is_better(notes, value, notes.best):
        notes.best = value
        if notes.restores:
            notes.best_weights = _weights_of(network)
        if notes.baseline is None or _is_better(notes, value, notes.baseline):
            notes.wait = 0
    if notes.wait < notes.patience:
        return
    notes.stopped_epoch = params["cur_epoch_num"]
    run_context.request_stop()
    if notes.restores:
        if notes.verbose:
            print("EarlyStopping: the parameters are those of the best epoch again")
        for name, parameter in network.parameters_dict().items():
            parameter.set_data(notes.best_weights[name])


def stop_of_model(callback, of_library, run_context) -> None:
    """The same in a training of a Model, which keeps it in C++; the epoch is noted."""
    notes, before = _notes[callback], run_context.get_stop_requested()
    of_library(run_context)
    if before:
        return
    if _ends_at_once(notes, run_context):
        run_context.request_stop()
        if notes.verbose:
            print(f"Epoch {run_context.cur_epoch_num}: early stopping")
    if run_context.get_stop_requested():
        notes.stopped_epoch = run_context.cur_epoch_num


def _ends_at_once(notes, run_context) -> bool:
    """MindSpore's patience of 0, its default, ends with the first epoch whose value is there, also one that
    is better; the library's ends with the first that is not better."""
    if notes.patience > 0 or run_context.get_stop_requested():
        return False
    return _watched(notes, run_context, "EarlyStopping") is not None


def _weights_of(network):
    return {name: muster.Tensor(each.asnumpy().copy()) for name, each in network.parameters_dict().items()}


def print_stop(notes, params, run_context) -> None:
    """When the training was ended."""
    if notes.stopped_epoch and notes.verbose:
        print(f"Epoch {notes.stopped_epoch}: early stopping")


def reduce_rate(notes, params, run_context) -> None:
    """A smaller learning rate where nothing has got better for a while."""
    rate = params["optimizer"].learning_rate
    if not isinstance(rate, muster.Parameter):
        raise ValueError(
            "ReduceLROnPlateau: the optimizer's learning rate is one number, no schedule and none of groups"
        )
    value = _watched(notes, params, "ReduceLROnPlateau")
    if value is None:
        return
    if notes.cooldown_left:
        notes.cooldown_left -= 1
        notes.wait = 0
    if _is_better(notes, value, notes.best):
        notes.best, notes.wait = value, 0
    elif not notes.cooldown_left:
        notes.wait += 1
        if notes.wait >= notes.patience:
            _set_rate(notes, params, rate)
            notes.cooldown_left, notes.wait = notes.cooldown, 0


def _set_rate(notes, params, rate) -> None:
    import numpy

    now = float(rate.asnumpy())
    if now <= numpy.float32(notes.min_lr):  # of the rate's dtype
        return
    new = max(now * notes.factor, notes.min_lr)
    params["optimizer"].learning_rate.set_data(muster.Tensor(new, rate.dtype))
    if notes.verbose:
        print(f"Epoch {params['cur_epoch_num']}: the learning rate is reduced to {new}")


# ---- LearningRateScheduler --------------------------------------------------------------------------------


def schedule_rate(notes, params, run_context) -> None:
    """The learning rate that the function gives for the step."""
    rate = params["optimizer"].learning_rate
    new = notes.function(float(rate.asnumpy()), params["cur_step_num"])
    params["optimizer"].learning_rate.set_data(muster.Tensor(float(new), rate.dtype))
