"""Devices that scripts ask for and this machine's processors answer for."""

import os
import sys
import types

import muster

_ACCELERATORS = ("GPU", "Ascend")
_notes = set()


def note_once(text: str) -> None:
    if text not in _notes:
        _notes.add(text)
        print(f"muster (as mindspore): {text}", file=sys.stderr, flush=True)


def settings_without_effect(place: str, names: str) -> types.SimpleNamespace:
    """Functions that set what a device has that is not there: they take anything, which is noted once."""

    def setting(name):
        def take(*values, **named) -> None:
            note_once(f"note: {place}.{name} has no effect: there is no such device")

        take.__name__ = take.__qualname__ = name
        return take

    return types.SimpleNamespace(**{name: setting(name) for name in names.split()})


def accelerator(device_target: str, asked_by: str) -> str | None:
    """The name of a device that there is not, which run_on() answers for; None: it is the CPU."""
    if device_target in _ACCELERATORS and os.environ.get("MUSTER_STRICT", "0") != "1":
        return device_target
    run_on(device_target, asked_by)
    return None


def run_on(device_target: str, asked_by: str) -> None:
    """'CPU'; 'GPU' and 'Ascend' run on the CPU after a warning, or with MUSTER_STRICT=1 are errors."""
    if device_target not in _ACCELERATORS:
        muster.set_context(device_target=device_target)
        return
    if os.environ.get("MUSTER_STRICT", "0") == "1":
        raise ValueError(
            f"{asked_by}: Muster has no kernels for {device_target} yet, and MUSTER_STRICT=1 is set"
        )
    note_once(
        f"warning: {asked_by} asks for {device_target}; Muster has no kernels for it yet and runs on CPU"
    )
