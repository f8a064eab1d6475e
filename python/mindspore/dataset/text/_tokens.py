"""Operations on tokens: rows of words that text was cut into."""

from mindspore._lazy import numpy
from mindspore.dataset import _calls, _checks, _types
from mindspore.dataset._checks import PipelineError
from mindspore.dataset.text._ops import TextOperation
from mindspore.dataset.text._vocab import Vocab


class Lookup(TextOperation):
    """Words as their numbers."""

    def __init__(self, vocab, unknown_token=None, data_type="int32"):
        if not isinstance(vocab, Vocab):
            raise TypeError(
                f"Argument vocab with value {vocab} is not of type [<class 'Vocab'>], but got {type(vocab)}."
            )
        _checks.of_type("unknown_token", unknown_token, str, optional=True)
        self._ids, self._dtype = vocab._ids, _types.numpy_dtype(data_type)
        if self._dtype.kind not in "iufb":
            raise PipelineError(f"Lookup: data_type should be numeric, not {data_type}")
        if unknown_token is not None and unknown_token not in self._ids:
            raise PipelineError(f"Lookup: unknown_token: [{unknown_token}], does not exist in vocab.")
        self._unknown = None if unknown_token is None else self._ids[unknown_token]

    def _made(self, text):
        numbers = []
        for word in text.ravel():
            number = self._ids.get(str(word), self._unknown)
            if number is None:
                raise PipelineError(
                    f"Lookup: invalid data: the word: '{word}' doesn't exist in vocab, and there is no "
                    "unknown_token"
                )
            numbers.append(number)
        return numpy.array(numbers, self._dtype).reshape(text.shape)


class ToNumber(TextOperation):
    """Text as the numbers that it spells."""

    def __init__(self, data_type):
        self._dtype = _types.numpy_dtype(data_type)
        if self._dtype.kind not in "iuf":
            raise TypeError("data_type must be a numeric dtype.")

    def _made(self, text):
        try:
            if self._dtype.kind == "f":
                return text.astype(numpy.float64).astype(self._dtype)
            values = [int(each) for each in text.ravel()]
        except ValueError as error:
            raise PipelineError(f"ToNumber: string input is no number, or out of bounds: {error}") from None
        bounds = numpy.iinfo(self._dtype)
        for each in values:
            if not bounds.min <= each <= bounds.max:
                raise PipelineError(f"ToNumber: string input {each} will be out of bounds of {self._dtype}")
        return numpy.array(values, self._dtype).reshape(text.shape)


class Ngram(TextOperation):
    """Runs of `n` tokens joined; `n` may be several numbers."""

    def __init__(self, n, left_pad=("", 0), right_pad=("", 0), separator=" "):
        if not isinstance(n, int | list):
            raise ValueError(f"n needs to be a positive integer or a list of them, not {type(n)}.")
        self._sizes = [n] if isinstance(n, int) else list(n)
        if not self._sizes:
            raise ValueError("n needs to be a non-empty list of positive integers.")
        for at, each in enumerate(self._sizes):
            if not _checks.is_whole(each):
                raise TypeError(
                    f"Argument gram[{at}] with value {each} is not of type [<class 'int'>], but got "
                    f"{type(each)}."
                )
            if each <= 0:
                raise ValueError(f"Input gram_{at} must be greater than 0.")
        for name, pad in (("left_pad", left_pad), ("right_pad", right_pad)):
            if (
                not isinstance(pad, tuple)
                or len(pad) != 2
                or not isinstance(pad[0], str)
                or not _checks.is_whole(pad[1])
            ):
                raise ValueError(
                    f"{name} needs to be a tuple of (str, int) str is pad token and int is pad_width."
                )
            if pad[1] < 0:
                raise ValueError("padding width need to be positive numbers.")
        self._left, self._right = left_pad, right_pad
        self._separator = _checks.of_type("separator", separator, str)

    def _made(self, text):
        if text.ndim != 1:
            raise PipelineError(f"Ngram: the input shape should be 1D, got {text.shape}")
        words, made = [str(each) for each in text], []
        for size in self._sizes:
            left = [self._left[0]] * min(self._left[1], size - 1)
            right = [self._right[0]] * min(self._right[1], size - 1)
            whole = left + words + right
            made += [self._separator.join(whole[at : at + size]) for at in range(len(whole) - size + 1)] or [
                ""
            ]
        return numpy.array(made, dtype=str)


class SlidingWindow(_calls.Recorded):
    """Windows of `width` along an axis."""

    def __init__(self, width, axis=0):
        self._width = _checks.whole("width", width, 1)
        self._axis = _checks.of_type("axis", axis, int)

    def __call__(self, value):
        value = numpy.asarray(value)
        if value.ndim != 1:
            raise PipelineError(
                f"SlidingWindow: SlidingWindowOp supports 1D Tensors only for now, got {value.ndim}D"
            )
        if self._axis not in (0, -1):
            raise PipelineError(f"SlidingWindow: axis supports 0 or -1 only for now, got {self._axis}")
        rows = [value[at : at + self._width] for at in range(len(value) - self._width + 1)]
        return numpy.stack(rows) if rows else value[:0].reshape(0, 0)


class AddToken(TextOperation):
    """A token before (or behind) each row of tokens."""

    def __init__(self, token, begin=True):
        self._token = _checks.of_type("token", token, str)
        if not token:
            raise PipelineError("AddToken: Parameter token is not provided.")
        self._begin = _checks.of_type("begin", begin, bool)

    def _made(self, text):
        if text.ndim not in (1, 2):
            raise PipelineError(f"AddToken: input tensor rank should be 1 or 2, got {text.ndim}")
        token = numpy.full((*text.shape[:-1], 1), self._token)
        return numpy.concatenate([token, text] if self._begin else [text, token], -1)


class Truncate(_calls.Recorded):
    """At most `max_seq_len` tokens."""

    def __init__(self, max_seq_len):
        self._longest = _checks.whole("max_seq_len", max_seq_len, 1)

    def __call__(self, value):
        value = numpy.asarray(value)
        if value.ndim not in (1, 2):
            raise PipelineError(f"Truncate: input tensor rank should be 1 or 2, got {value.ndim}")
        return value[..., : self._longest]


class TruncateSequencePair(_calls.Recorded):
    """Two rows of tokens cut at their ends, the longer one first, to `max_length` in all."""

    def __init__(self, max_length):
        _checks.of_type("max_length", max_length, int)
        if max_length < 0:
            raise PipelineError(
                f"TruncateSequencePair: The parameter max_length must be greater than or equal to 0: "
                f"{max_length}"
            )
        self._longest = max_length

    def __call__(self, first, second):
        first, second = numpy.asarray(first), numpy.asarray(second)
        if first.ndim != 1 or second.ndim != 1:
            raise PipelineError("TruncateSequencePair: both inputs should be 1D")
        long, other = len(first), len(second)
        while long + other > self._longest:
            if long > other:
                long -= 1
            else:
                other -= 1
        return first[:long], second[:other]
