#!/usr/bin/env python3
"""Writes the names that MindSpore has: python/muster/_check/names.txt.

<a Python with mindspore 2.7.0> tools/mindspore_names.py

A line for each module, and for each class whose members scripts use: its name, and the public names in it.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType

FILE = Path(__file__).resolve().parents[1] / "python/muster/_check/names.txt"
MODULES = (
    "mindspore",
    "mindspore.amp",
    "mindspore.boost",
    "mindspore.common",
    "mindspore.common.dtype",
    "mindspore.common.initializer",
    "mindspore.communication",
    "mindspore.communication.comm_func",
    "mindspore.communication.management",
    "mindspore.context",
    "mindspore.dataset",
    "mindspore.dataset.audio",
    "mindspore.dataset.text",
    "mindspore.dataset.transforms",
    "mindspore.dataset.vision",
    "mindspore.device_context.cpu",
    "mindspore.experimental.optim",
    "mindspore.experimental.optim.lr_scheduler",
    "mindspore.hal",
    "mindspore.log",
    "mindspore.mindrecord",
    "mindspore.mint",
    "mindspore.mint.distributed",
    "mindspore.mint.linalg",
    "mindspore.mint.nn",
    "mindspore.mint.nn.functional",
    "mindspore.mint.optim",
    "mindspore.mint.special",
    "mindspore.nn",
    "mindspore.nn.probability.distribution",
    "mindspore.numpy",
    "mindspore.ops",
    "mindspore.ops.composite",
    "mindspore.ops.function",
    "mindspore.ops.functional",
    "mindspore.ops.operations",
    "mindspore.parallel",
    "mindspore.profiler",
    "mindspore.rewrite",
    "mindspore.runtime",
    "mindspore.scipy",
    "mindspore.scipy.linalg",
    "mindspore.train",
    "mindspore.train.callback",
    "mindspore.train.serialization",
)
CLASSES = (
    ("mindspore", "Tensor"),
    ("mindspore", "Parameter"),
    ("mindspore", "Model"),
    ("mindspore.nn", "Cell"),
    ("mindspore.nn", "CellList"),
    ("mindspore.nn", "SequentialCell"),
    ("mindspore.nn", "Optimizer"),
    ("mindspore.nn", "Metric"),
    ("mindspore.ops", "Primitive"),
    ("mindspore.dataset", "Dataset"),
    ("mindspore.train", "Callback"),
)


def public(names: list[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith("_"))


def names_of_module(module: ModuleType) -> list[str]:
    """What it exports, and the rest of MindSpore that it holds: scripts use both. No modules of others."""
    exported = set(getattr(module, "__all__", ()))

    def is_mindspores(name: str) -> bool:
        value = getattr(module, name, None)
        owner = value.__name__ if inspect.ismodule(value) else getattr(type(value), "__module__", "")
        if inspect.isclass(value) or inspect.isroutine(value):
            owner = getattr(value, "__module__", None) or ""
        return name in exported or owner.startswith("mindspore")

    return public([name for name in dir(module) if hasattr(module, name) and is_mindspores(name)])


def main() -> None:
    lines = []
    for name in MODULES:
        module = importlib.import_module(name)
        lines.append(f"{name} {' '.join(names_of_module(module))}")
    for name, cls in CLASSES:
        members = dir(getattr(importlib.import_module(name), cls))
        lines.append(f"{name}.{cls} {' '.join(public(members))}")
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
