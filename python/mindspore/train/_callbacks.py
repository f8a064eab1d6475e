"""Callbacks with MindSpore's arguments."""

import os

import muster.train
from mindspore import _device, _names
from muster.train import (
    Callback,
    EarlyStopping,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ProgressBar,
    ReduceLROnPlateau,
)


class _ContextType(type):
    """What a Model hands to callbacks is a RunContext too, though a class of the library."""

    def __instancecheck__(cls, each):
        return super().__instancecheck__(each) or isinstance(each, muster.train.CallbackContext)


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


class TimeMonitor(muster.train.TimeMonitor):
    """muster.train.TimeMonitor."""

    def __init__(self, data_size=None, data_time=False):
        if not isinstance(data_time, bool):
            raise TypeError(f"TimeMonitor: data_time is True or False, not {data_time!r}")
        super().__init__(data_size, data_time)


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
        self.append_dict = _appended(append_info)
        super().__init__(
            save_checkpoint_steps,
            save_checkpoint_seconds,
            keep_checkpoint_max,
            saved_network,
            self.append_dict,
            integrated_save,
            format,
        )


class ModelCheckpoint(muster.train.ModelCheckpoint):
    """Writes DIRECTORY/PREFIX-EPOCH_STEP.ckpt, or .safetensors."""

    def __init__(self, prefix="CKP", directory=None, config=None):
        for name, value in (("prefix", prefix), ("directory", directory)):
            if callable(value):
                raise NotImplementedError(
                    _names.sentence(f"mindspore.train.ModelCheckpoint({name}=function)")
                )
        super().__init__(prefix, directory, config)

    @property
    def latest_ckpt_file_name(self):
        """The whole path of the last file that was written; '' before."""
        name = super().latest_ckpt_file_name
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
