"""The seed of numpy.random, also where numpy is not imported yet.

Its import takes longer than that of muster, and many scripts need none.
"""

import sys
from importlib.machinery import PathFinder


class _SeededLoader:
    """Loads numpy.random as its own loader does, and seeds it."""

    def __init__(self, loader, number: int):
        self._loader = loader
        self._number = number

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module) -> None:
        self._loader.exec_module(module)
        module.seed(self._number)


class _Finder:
    number = 0

    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if name != "numpy.random":
            return None
        sys.meta_path.remove(_Finder)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _SeededLoader(spec.loader, _Finder.number)
        return spec


def seed(number: int) -> None:
    """numpy.random.seed(number), now or when numpy is imported."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(number)
        return
    _Finder.number = number
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
