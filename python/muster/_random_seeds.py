"""The seeds of numpy.random and random, also where they are not imported yet.

Their imports take longer than that of muster, and many scripts need none.
"""

import sys
from importlib.machinery import PathFinder


class _SeededLoader:
    """Loads a module as its own loader does, and seeds it."""

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


_numbers: dict[str, int] = {}  # by module, of those that are not imported yet


class _Finder:
    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if name not in _numbers:
            return None
        number = _numbers.pop(name)
        if not _numbers:
            sys.meta_path.remove(_Finder)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _SeededLoader(spec.loader, number)
        return spec


def seed(module: str, number: int) -> None:
    """The module's seed(number), now or when it is imported: 'random' or 'numpy.random'."""
    if module in sys.modules:
        sys.modules[module].seed(number)
        return
    _numbers[module] = number
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
