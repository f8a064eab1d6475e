"""Words as vectors."""

from mindspore._lazy import numpy
from mindspore.dataset import _checks
from mindspore.dataset._checks import PipelineError
from mindspore.dataset.text._ops import TextOperation


class Vectors:
    """Words with a vector each, from a text file: a word and its numbers a line."""

    def __init__(self):
        self._vectors, self._size = {}, 0

    @classmethod
    def from_file(cls, file_path, max_vectors=None):
        """At most `max_vectors` words of the file."""
        _checks.of_type("file_path", file_path, str)
        if max_vectors is not None:
            _checks.whole("max_vectors", max_vectors, 0)
        made = cls()
        try:
            lines = open(file_path, encoding="utf-8")  # noqa: SIM115 - the error names the file
        except OSError as error:
            raise PipelineError(f"{cls.__name__}: {error}") from None
        with lines:
            for number, line in enumerate(lines):
                parts = line.rstrip().split(" ")
                if number == 0 and len(parts) == 2:
                    continue
                if max_vectors and len(made._vectors) == max_vectors:
                    break
                vector = numpy.array([float(each) for each in parts[1:]], numpy.float32)
                made._vectors.setdefault(parts[0], vector)
                made._size = len(vector)
        return made


class GloVe(Vectors):
    """Vectors of GloVe."""


class FastText(Vectors):
    """Vectors of fastText."""


class CharNGram(Vectors):
    """Vectors of runs of characters."""


class ToVectors(TextOperation):
    """Words as their vectors; unknown ones as `unk_init` (zeros)."""

    def __init__(self, vectors, unk_init=None, lower_case_backup=False):
        if not isinstance(vectors, Vectors):
            raise TypeError(
                f"Argument vectors with value {vectors} is not of type Vectors, but got {type(vectors)}."
            )
        _checks.of_type("unk_init", unk_init, list, tuple, optional=True)
        if unk_init is not None and len(unk_init) != vectors._size:
            raise PipelineError(f"ToVectors: unk_init must be the same length as vectors, {vectors._size}")
        self._vectors = vectors._vectors
        self._unknown = numpy.array(unk_init or [0] * vectors._size, numpy.float32)
        self._lower = _checks.of_type("lower_case_backup", lower_case_backup, bool)

    def _one(self, word):
        found = self._vectors.get(word)
        if found is None and self._lower:
            found = self._vectors.get(word.lower())
        return self._unknown if found is None else found

    def _made(self, text):
        return (
            self._one(str(text)) if text.ndim == 0 else numpy.stack([self._one(str(word)) for word in text])
        )
