"""Under which paths MindSpore has its names: one name at several paths is one object here, too.

python module_names.py PATH    writes {module: {package that has the same object: names}} of MindSpore 2.7.0
"""

import importlib
import json
import lzma
import pkgutil
import sys
from pathlib import Path

RECORD = Path(__file__).with_suffix(".json.xz")
PACKAGES = ["mindspore"] + [
    f"mindspore.{name}"
    for name in (
        *("ops", "nn", "train", "dataset", "dataset.vision", "dataset.text", "dataset.transforms", "numpy"),
        *("mint", "amp", "common.initializer", "mindrecord", "communication", "parallel"),
    )
]


def recorded() -> dict:
    """{module: {package: names}}"""
    return json.loads(lzma.decompress(RECORD.read_bytes()))


def modules(package):
    """Those below a package whose paths have no part that begins with an underscore."""
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if "._" in found.name:
            continue
        try:
            module = importlib.import_module(found.name)
        except BaseException:  # of devices that are not here, or what ends the process
            continue
        yield module
        if found.ispkg:
            yield from modules(module)


def own(module):
    """Names that a module lists, or that are made there."""
    for name in getattr(module, "__all__", vars(module)):
        made = getattr(getattr(module, str(name), None), "__module__", None)
        if not str(name).startswith("_") and ("__all__" in vars(module) or made == module.__name__):
            yield str(name)


def shared(module) -> dict:
    """The own names of a module whose objects a package has under the same name."""
    found = {}
    for name in sorted(own(module)):
        value = getattr(module, name, None)
        for package in PACKAGES if value is not None else ():
            if package != module.__name__ and getattr(sys.modules[package], name, None) is value:
                found.setdefault(package, []).append(name)
                break
    return found


def missing(module: str, package: str, names) -> list:
    """Of names that the package has here, those that the module lacks."""
    holder, here = importlib.import_module(package), importlib.import_module(module)
    return [name for name in names if hasattr(holder, name) and not hasattr(here, name)]


if __name__ == "__main__":
    import mindspore

    for each in PACKAGES:
        importlib.import_module(each)
    every = {module.__name__: shared(module) for module in modules(mindspore)}
    text = json.dumps({name: found for name, found in every.items() if found}, separators=(",", ":"))
    Path(sys.argv[1]).write_bytes(lzma.compress(text.encode(), preset=9))
