"""Where the rows of a source stand: for errors that say so."""

from muster import _signatures

_PLACES = ("dataset_dir", "dataset_file", "dataset_files")  # arguments of sources; mostly the first one


class Placed:
    """A source that remembers the files or the folder that it was given."""

    __signature__ = _signatures.OfClass()  # of __init__, not of __new__

    def __new__(cls, *args, **named):
        made = super().__new__(cls)
        made._call = args, named
        made._read_from = next((named[name] for name in _PLACES if name in named), args[0] if args else None)
        return made

    def _origins(self):
        places = self._read_from if isinstance(self._read_from, list | tuple) else [self._read_from]
        return [place for place in places if isinstance(place, str)]
