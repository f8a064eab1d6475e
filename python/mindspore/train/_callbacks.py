"""Callbacks with MindSpore's arguments."""

import os
import time
import weakref

import muster.train
from mindspore import _device, _names
from mindspore.train import _by_hand
from muster.train import Callback, LambdaCallback, ProgressBar


class _ContextType(type):
    """What a Model hands to callbacks is a RunContext too, though a class of the library."""

    def __instancecheck__(cls, each):
        return super().__instancecheck__(each) or isinstance(each, muster.train.CallbackContext)


class _StopRequested:
    """RunContext._stop_requested of what a Model hands to callbacks: scripts set it to end the training."""

    def __get__(self, context, owner=None):
        return self if context is None else context.get_stop_requested()

    def __set__(self, context, value):
        if value:
            context.request_stop()
        elif context.get_stop_requested():
            raise NotImplementedError(
                "run_context._stop_requested = False: the end of this training was asked for by a callback "
                "and cannot be taken back; leave out the callback that calls request_stop()"
            )


muster.train.CallbackContext._stop_requested = _StopRequested()


class RunContext(metaclass=_ContextType):
    """What callbacks know of a training: to call a callback of one's own by hand.

    `original_args` is a dict; original_args() gives it back. A Model makes contexts itself.
    """

    def __init__(self, original_args):
        if not isinstance(original_args, dict):
            raise TypeError(
                f"The argument 'original_args' of RunContext should be dict type, "
                f"but got {type(original_args)}."
            )
        self._original_args = original_args
        self._stop_requested = False

    def original_args(self):
        """The dict that it was made with, the same object."""
        return self._original_args

    def request_stop(self):
        """Notes that the training is to end."""
        self._stop_requested = True

    def get_stop_requested(self):
        """Whether request_stop() was called."""
        return self._stop_requested


class _OfSubclasses:
    """An attribute that is state where a script's subclass has it, and lies beside the object otherwise."""

    def __init__(self):
        self._values = weakref.WeakKeyDictionary()

    def __set_name__(self, owner, name):
        self._owner, self._name = owner, name

    def _kept_by(self, instance):
        return self._values.setdefault(instance, {}) if type(instance) is self._owner else vars(instance)

    def __get__(self, instance, owner=None):
        return self if instance is None else self._kept_by(instance)[self._name]

    def __set__(self, instance, value):
        self._kept_by(instance)[self._name] = value


@_by_hand.acting(step_end=_by_hand.print_loss, on_train_epoch_end=_by_hand.print_metrics)
class LossMonitor(muster.train.LossMonitor):
    """muster.train.LossMonitor."""

    _per_print_times, _last_print_time = _OfSubclasses(), _OfSubclasses()

    def __init__(self, per_print_times=1):
        super().__init__(per_print_times)
        _by_hand.noted(self, every=per_print_times, last=0)


@_by_hand.acting(epoch_begin=_by_hand.start_clock, epoch_end=_by_hand.print_time)
class TimeMonitor(muster.train.TimeMonitor):
    """muster.train.TimeMonitor."""

    def __init__(self, data_size=None, data_time=False):
        if not isinstance(data_time, bool):
            raise TypeError(f"TimeMonitor: data_time is True or False, not {data_time!r}")
        super().__init__(data_size, data_time)
        _by_hand.noted(self, data_size=data_size, began=time.monotonic())


@_by_hand.acting(step_end=_by_hand.schedule_rate)
class LearningRateScheduler(muster.train.LearningRateScheduler):
    """muster.train.LearningRateScheduler."""

    def __init__(self, learning_rate_function):
        super().__init__(learning_rate_function)
        _by_hand.noted(self, function=learning_rate_function)


@_by_hand.acting(on_train_end=_by_hand.print_stop)
class EarlyStopping(muster.train.EarlyStopping):
    """muster.train.EarlyStopping."""

    def __init__(
        self,
        monitor="eval_loss",
        min_delta=0,
        patience=0,
        verbose=False,
        mode="auto",
        baseline=None,
        restore_best_weights=False,
    ):
        chosen = _by_hand.mode_of(mode, monitor)
        super().__init__(monitor, min_delta, patience, verbose, chosen, baseline, restore_best_weights)
        _by_hand.watching(
            self,
            **{"monitor": monitor, "min_delta": abs(min_delta), "patience": patience, "verbose": verbose},
            **{"mode": mode, "baseline": baseline, "restores": restore_best_weights},
        )

    def on_train_begin(self, run_context):
        """Begins anew."""
        if isinstance(run_context, muster.train.CallbackContext):
            super().on_train_begin(run_context)
        _by_hand.begin_watching(_by_hand.of(self))

    def on_train_epoch_end(self, run_context):
        """Asks for the end where nothing has got better for `patience` epochs."""
        if isinstance(run_context, muster.train.CallbackContext):
            _by_hand.stop_of_model(self, super().on_train_epoch_end, run_context)
        else:
            _by_hand.stop_early(_by_hand.of(self), run_context.original_args(), run_context)

    @property
    def stopped_epoch(self):
        """The epoch behind which the training was ended; 0: it was not."""
        return _by_hand.of(self).stopped_epoch


@_by_hand.acting(on_train_begin=_by_hand.begin_watching, on_train_epoch_end=_by_hand.reduce_rate)
class ReduceLROnPlateau(muster.train.ReduceLROnPlateau):
    """muster.train.ReduceLROnPlateau."""

    def __init__(
        self,
        monitor="eval_loss",
        factor=0.1,
        patience=10,
        verbose=False,
        mode="auto",
        min_delta=1e-4,
        cooldown=0,
        min_lr=0,
    ):
        chosen = _by_hand.mode_of(mode, monitor)
        super().__init__(monitor, factor, patience, verbose, chosen, min_delta, cooldown, min_lr)
        _by_hand.watching(
            self,
            **{"monitor": monitor, "factor": factor, "patience": patience, "verbose": verbose},
            **{"mode": mode, "min_delta": abs(min_delta), "cooldown": cooldown, "min_lr": min_lr},
        )


def _appended(append_info) -> dict | None:
    """What a list of 'epoch_num', 'step_num' and one dict adds to each file."""
    if not append_info:
        return None
    if not isinstance(append_info, list):
        raise TypeError(f"CheckpointConfig: append_info is a list, not {type(append_info).__name__}")
    appended, dicts = {}, [each for each in append_info if isinstance(each, dict)]
    for each in append_info:
        if isinstance(each, str) and each not in ("epoch_num", "step_num"):
            raise ValueError(f"CheckpointConfig: append_info has 'epoch_num' and 'step_num', not {each!r}")
        if not isinstance(each, str | dict) or len(dicts) > 1:
            raise TypeError("CheckpointConfig: append_info is a list of strings and of one dict")
        appended.update({each: 0} if isinstance(each, str) else each)
    for name, value in appended.items():
        if hasattr(value, "get_state") and hasattr(value, "manual_seed"):
            value = appended[name] = value.get_state()  # of a Generator
        if not isinstance(name, str) or not isinstance(value, int | float | muster.Tensor):
            raise TypeError(
                f"CheckpointConfig: append_info keeps numbers and tensors by name, not {name!r}: {value!r}"
            )
    return appended


class CheckpointConfig(muster.train.CheckpointConfig):
    """When ModelCheckpoint saves: every so many steps, else every so many seconds."""

    def __init__(
        self,
        save_checkpoint_steps=1,
        save_checkpoint_seconds=0,
        keep_checkpoint_max=5,
        keep_checkpoint_per_n_minutes=0,
        integrated_save=True,
        async_save=False,
        saved_network=None,
        append_info=None,
        enc_key=None,
        enc_mode="AES-GCM",
        exception_save=False,
        crc_check=False,
        format="ckpt",
        **settings,
    ):
        if format not in ("ckpt", "safetensors"):
            raise ValueError(f"CheckpointConfig: format is 'ckpt' or 'safetensors', not {format!r}")
        for name, value in (("integrated_save", integrated_save), ("async_save", async_save)):
            if not isinstance(value, bool) and not (name == "async_save" and isinstance(value, str)):
                raise TypeError(f"CheckpointConfig: {name} is True or False, not {value!r}")
        for name, value in (
            ("save_checkpoint_steps", save_checkpoint_steps),
            ("save_checkpoint_seconds", save_checkpoint_seconds),
            ("keep_checkpoint_max", keep_checkpoint_max),
            ("keep_checkpoint_per_n_minutes", keep_checkpoint_per_n_minutes),
        ):
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise TypeError(f"CheckpointConfig: {name} is a whole number, not {value!r}")
            if value is not None and value < 0:
                raise ValueError(f"CheckpointConfig: {name} is 0 or more, not {value}")
        how_often = (save_checkpoint_steps, save_checkpoint_seconds)
        if not any(how_often) and not any((keep_checkpoint_max, keep_checkpoint_per_n_minutes)):
            raise ValueError(
                "For 'CheckpointConfig', save_checkpoint_steps and the others can not be all None or 0"
            )
        _names.refuse(
            "mindspore.train.CheckpointConfig",
            keep_checkpoint_per_n_minutes=(keep_checkpoint_per_n_minutes, 0, None),
            enc_key=(enc_key, None),
            exception_save=(exception_save, False),
            crc_check=(crc_check, False),
            **{name: (value, None, False, 0) for name, value in settings.items()},
        )
        if async_save:
            _device.note_once(
                "note: async_save has no effect: a checkpoint is on disk before training goes on"
            )
        self.append_dict, self.saved_network = _appended(append_info), saved_network
        super().__init__(
            save_checkpoint_steps,
            save_checkpoint_seconds,
            keep_checkpoint_max,
            saved_network,
            self.append_dict,
            integrated_save,
            format,
        )


@_by_hand.acting(begin=_by_hand.begin_saving, step_end=_by_hand.save_step, end=_by_hand.save_last)
class ModelCheckpoint(muster.train.ModelCheckpoint):
    """Writes DIRECTORY/PREFIX-EPOCH_STEP.ckpt, or .safetensors."""

    def __init__(self, prefix="CKP", directory=None, config=None):
        for name, value in (("prefix", prefix), ("directory", directory)):
            if callable(value):
                raise NotImplementedError(
                    _names.sentence(f"mindspore.train.ModelCheckpoint({name}=function)")
                )
        super().__init__(prefix, directory, config)
        _by_hand.noted(self, given=prefix, directory=directory or ".", config=config or CheckpointConfig())

    @property
    def latest_ckpt_file_name(self):
        """The whole path of the last file that was written; '' before."""
        name = super().latest_ckpt_file_name or _by_hand.latest_file(self)
        return os.path.realpath(name) if name else name


__all__ = [
    "Callback",
    "CheckpointConfig",
    "EarlyStopping",
    "LambdaCallback",
    "LearningRateScheduler",
    "LossMonitor",
    "ModelCheckpoint",
    "ProgressBar",
    "ReduceLROnPlateau",
    "RunContext",
    "TimeMonitor",
]
