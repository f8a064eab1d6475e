"""Operations on text: numpy arrays of str."""

import enum
import re
import unicodedata

from mindspore._lazy import numpy
from mindspore.dataset import _calls, _checks
from mindspore.dataset._checks import PipelineError
from mindspore.dataset.text._vocab import Vocab


class NormalizeForm(enum.IntEnum):
    """Forms of Unicode."""

    NONE = 0
    NFC = 1
    NFKC = 2
    NFD = 3
    NFKD = 4


def to_str(array, encoding="utf8"):
    """An array of bytes as str."""
    if not isinstance(array, numpy.ndarray):
        raise TypeError("input should be a NumPy array.")
    return array if array.dtype.kind == "U" else numpy.char.decode(array, encoding)


def to_bytes(array, encoding="utf8"):
    """An array of str as bytes."""
    if not isinstance(array, numpy.ndarray):
        raise ValueError("input should be a NumPy array.")
    return numpy.char.encode(array, encoding)


def _text(value, name):
    value = numpy.asarray(value)
    if value.dtype.kind not in "US":
        raise PipelineError(f"{name}: the input type should be string, got {value.dtype}")
    return to_str(value) if value.dtype.kind == "S" else value


def checked(name, value, wanted):
    """`value`, if it is a str or a bool, as `wanted` says."""
    if not isinstance(value, wanted):
        kind = {str: "string", bool: "boolean"}[wanted]
        raise TypeError(f"Wrong input type for {name}, should be {kind}.")
    return value


class TextOperation(_calls.Recorded):
    """An operation on an array of text."""

    def __call__(self, value):
        return self._made(_text(value, type(self).__name__))

    def __repr__(self):
        return type(self).__name__


class _Each(TextOperation):
    """Changes each text of an array."""

    def _made(self, text):
        made = [self._one(str(each)) for each in text.ravel()]
        return numpy.array(made, dtype=str).reshape(text.shape)


class CaseFold(_Each):
    """Without capitals, as Unicode folds them."""

    def _one(self, text):
        return _case_folded(text)


class NormalizeUTF8(_Each):
    """In one form of Unicode."""

    def __init__(self, normalize_form=NormalizeForm.NFKC):
        if not isinstance(normalize_form, NormalizeForm):
            raise TypeError("Wrong input type for normalization_form, should be enum of 'NormalizeForm'.")
        self._form = normalize_form

    def _one(self, text):
        return normalized(text, self._form)


def _case_folded(text):
    """As Unicode folds what is to be compared (NFKC_Casefold): without what has no width of its own."""
    text = "".join(each for each in text if unicodedata.category(each) != "Cf")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def normalized(text, form):
    """`text` in a form of Unicode."""
    return text if form == NormalizeForm.NONE else unicodedata.normalize(form.name, text)


class RegexReplace(_Each):
    """What matches a pattern replaced: all, or the first."""

    def __init__(self, pattern, replace, replace_all=True):
        self._pattern = compiled(_checks.of_type("pattern", pattern, str))
        self._replace = _template(_checks.of_type("replace", replace, str))
        self._count = 0 if _checks.of_type("replace_all", replace_all, bool) else 1

    def _one(self, text):
        return self._pattern.sub(self._replace, text, count=self._count)


def _template(replace):
    """What ICU puts in place of a match, as Python's template: `$1` is a group, `\\` makes a sign plain."""

    def spelt(match):
        group, sign = match.groups()
        return rf"\g<{group}>" if group else "\\\\" if sign == "\\" else sign

    return re.sub(r"\$(\d)|\\(.)", spelt, replace)


def compiled(pattern):
    """A pattern of ICU as Python's: \\p{...} of the common classes."""
    spelt = re.sub(r"\\p\{([^}]*)\}", lambda match: _CLASSES.get(match.group(1), match.group(0)), pattern)
    try:
        return re.compile(spelt)
    except re.error as error:
        raise PipelineError(f"the pattern {pattern!r} is none that is known: {error}") from None


_CLASSES = {
    "Cc": r"\x00-\x1f\x7f-\x9f",
    "L": r"[^\W\d_]",
    "N": r"\d",
    "P": r"[!-/:-@\[-`{-~]",
    "Z": r"\s",
    "Han": r"[\u4e00-\u9fff]",
}


_DIGITS = {
    digit: f" {word} "
    for digit, word in zip(
        "0123456789",
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"],
        strict=True,
    )
}


class FilterWikipediaXML(_Each):
    """Wikipedia's markup as plain lower-case words."""

    _STEPS = (
        (r"<.*>", ""),
        (r"&amp;", "&"),
        (r"&lt;", "<"),
        (r"&gt;", ">"),
        (r"<ref[^<]*<\/ref>", ""),
        (r"<[^>]*>", ""),
        (r"\[http:[^] ]*", "["),
        (r"\|thumb", ""),
        (r"\|left", ""),
        (r"\|right", ""),
        (r"\|\d+px", ""),
        (r"\[\[image:[^\[\]]*\|", ""),
        (r"\[\[category:([^|\]]*)[^]]*\]\]", r"[[\1]]"),
        (r"\[\[[a-z\-]*:[^\]]*\]\]", ""),
        (r"\{\{[^\}]*\}\}", ""),
        (r"\{[^\}]*\}", ""),
        (r"\[", ""),
        (r"\]", ""),
        (r"&[^;]*;", " "),
    )

    def _one(self, text):
        for pattern, other in self._STEPS:
            text = re.sub(pattern, other, text)
        text = text.lower()
        for digit, word in _DIGITS.items():
            text = text.replace(digit, word)
        return re.sub(r"\s+", " ", re.sub(r"[^a-z\s]", " ", text)).strip(" ")


# ---- Words out of text -------------------------------------------------------------------------------------


class _Tokenizer(TextOperation):
    """Cuts a text; `with_offsets`: with where each token begins and ends, in bytes."""

    def __init__(self, with_offsets=False):
        self._with_offsets = checked("with_offsets", with_offsets, bool)

    def _made(self, text):
        if text.ndim != 0:
            raise PipelineError(f"{type(self).__name__}: the input shape should be scalar, got {text.shape}")
        cut = list(self._cut(str(text)))
        tokens = numpy.array([token for token, _ in cut] or [""], dtype=str)
        if not self._with_offsets:
            return tokens
        whole = str(text)
        begins = [len(whole[:begin].encode()) for _, begin in cut] or [0]
        ends = [begin + len(token.encode()) for begin, (token, _) in zip(begins, cut, strict=False)] or [0]
        return tokens, numpy.array(begins, numpy.uint32), numpy.array(ends, numpy.uint32)


class WhitespaceTokenizer(_Tokenizer):
    """Words between white space."""

    def _cut(self, text):
        return ((match.group(), match.start()) for match in re.finditer(r"\S+", text))


class UnicodeCharTokenizer(_Tokenizer):
    """Characters."""

    def _cut(self, text):
        return ((each, at) for at, each in enumerate(text))


def _script(character):
    if character.isspace():
        return "space"
    try:
        name = unicodedata.name(character)
    except ValueError:
        return "common"
    if character.isalpha() or unicodedata.category(character).startswith("M"):
        word = name.split()[0].split("-")[0]
        return "HAN" if word == "CJK" else word
    return "common"


class UnicodeScriptTokenizer(_Tokenizer):
    """Runs of one script."""

    def __init__(self, keep_whitespace=False, with_offsets=False):
        super().__init__(with_offsets)
        self._keep = checked("keep_whitespace", keep_whitespace, bool)

    def _cut(self, text):
        begin = 0
        for at in range(1, len(text) + 1):
            if at == len(text) or _script(text[at]) != _script(text[at - 1]):
                part = text[begin:at]
                if self._keep or not part.isspace():
                    yield part, begin
                begin = at


class RegexTokenizer(_Tokenizer):
    """What lies between matches of a pattern, and of the matches those that `keep_delim_pattern` matches."""

    def __init__(self, delim_pattern, keep_delim_pattern="", with_offsets=False):
        super().__init__(with_offsets)
        if delim_pattern is None:
            raise ValueError("delim_pattern is not provided.")
        self._delimiter = compiled(checked("delim_pattern", delim_pattern, str))
        keep = checked("keep_delim_pattern", keep_delim_pattern, str)
        self._keep = compiled(keep) if keep else None

    def _cut(self, text):
        at = 0
        for match in self._delimiter.finditer(text):
            if match.start() > at:
                yield text[at : match.start()], at
            if match.group() and self._keep is not None and self._keep.fullmatch(match.group()):
                yield match.group(), match.start()
            at = match.end()
        if at < len(text):
            yield text[at:], at


def _is_chinese(character):
    return any(low <= ord(character) <= high for low, high in _CHINESE)


_CHINESE = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F))
_CHINESE += ((0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
_UNUSED = re.compile(r"\[CLS\]|\[SEP\]|\[UNK\]|\[PAD\]|\[MASK\]|\[unused\d+\]")


def _stands_alone(character):
    is_ascii = not character.isalnum() and not character.isspace() and 33 <= ord(character) <= 126
    return is_ascii or unicodedata.category(character).startswith("P") or _is_chinese(character)


class BasicTokenizer(_Tokenizer):
    """Words, punctuation and Chinese characters, each on its own, as BERT cuts them."""

    def __init__(
        self,
        lower_case=False,
        keep_whitespace=False,
        normalization_form=NormalizeForm.NONE,
        preserve_unused_token=True,
        with_offsets=False,
    ):
        super().__init__(with_offsets)
        if not isinstance(normalization_form, NormalizeForm):
            raise TypeError("Wrong input type for normalization_form, should be enum of 'NormalizeForm'.")
        self._lower = checked("lower_case", lower_case, bool)
        self._keep = checked("keep_whitespace", keep_whitespace, bool)
        self._preserve = checked("preserve_unused_token", preserve_unused_token, bool)
        self._form = normalization_form

    def _folded(self, text):
        if self._lower:
            text = unicodedata.normalize("NFD", _case_folded(text))
            return "".join(each for each in text if unicodedata.category(each) != "Mn")
        return normalized(text, self._form)

    def _cut(self, text):
        at = 0
        kept = _UNUSED.finditer(text) if self._preserve else ()
        for match in kept:
            yield from self._plain(text[at : match.start()], at)
            yield match.group(), match.start()
            at = match.end()
        yield from self._plain(text[at:], at)

    def _plain(self, text, offset):
        text = "".join(" " if _is_control(each) else each for each in self._folded(text))
        word, begin = "", 0
        for at, each in enumerate(text):
            is_run = word and not _stands_alone(each) and word[-1].isspace() == each.isspace()
            if word and not is_run:
                yield from self._kept(word, offset + begin)
                word = ""
            if _stands_alone(each):
                yield each, offset + at
                continue
            begin = begin if word else at
            word += each
        yield from self._kept(word, offset + begin)

    def _kept(self, word, begin):
        if word and (self._keep or not word.isspace()):
            yield word, begin


def _is_control(character):
    return unicodedata.category(character) in ("Cc", "Cf")


class WordpieceTokenizer(_Tokenizer):
    """Words in pieces that a vocabulary has, the longest first."""

    def __init__(
        self, vocab, suffix_indicator="##", max_bytes_per_token=100, unknown_token="[UNK]", with_offsets=False
    ):
        super().__init__(with_offsets)
        if vocab is None:
            raise ValueError("vocab is not provided.")
        if not isinstance(vocab, Vocab):
            raise TypeError(f"Wrong input type for vocab, should be Vocab object, got {type(vocab)}.")
        self._vocab = vocab._ids
        self._suffix = checked("suffix_indicator", suffix_indicator, str)
        self._longest = _checks.whole("max_bytes_per_token", max_bytes_per_token, 0)
        self._unknown = checked("unknown_token", unknown_token, str)

    def _made(self, text):
        if text.ndim > 1:
            raise PipelineError(
                f"WordpieceTokenizer: the input shape should be 1D scalar or 1D, got {text.shape}"
            )
        return self.cut(numpy.atleast_1d(text))

    def cut(self, words, begins=None):
        """The pieces of all words, each of which begins at one of `begins` (None: at 0)."""
        tokens, first, last = [], [], []
        for word, begin in zip(words, begins or [0] * len(words), strict=True):
            pieces, places = self._pieces(str(word))
            tokens += pieces
            first += [begin + low for low, _ in places]
            last += [begin + high for _, high in places]
        made = numpy.array(tokens or [""], dtype=str)
        if not self._with_offsets:
            return made
        return made, numpy.array(first or [0], numpy.uint32), numpy.array(last or [0], numpy.uint32)

    def _pieces(self, word):
        """The pieces, and where they lie. A word of which only the beginning is known is unknown as a whole;
        where its first pieces lie is told all the same (as MindSpore 2.7.0 does).
        """
        size = len(word.encode())
        whole = [self._unknown or word]
        if size > self._longest:
            return whole, [(0, size)]
        found, places, begin = [], [], 0
        while begin < len(word):
            for end in range(len(word), begin, -1):
                piece = (self._suffix if begin else "") + word[begin:end]
                if piece in self._vocab:
                    found.append(piece)
                    places.append((len(word[:begin].encode()), len(word[:end].encode())))
                    begin = end
                    break
            else:
                return whole, [*places, (0, size)]
        return found, places


class BertTokenizer(TextOperation):
    """BasicTokenizer, then WordpieceTokenizer."""

    def __init__(
        self,
        vocab,
        suffix_indicator="##",
        max_bytes_per_token=100,
        unknown_token="[UNK]",
        lower_case=False,
        keep_whitespace=False,
        normalization_form=NormalizeForm.NONE,
        preserve_unused_token=True,
        with_offsets=False,
    ):
        self._piece = WordpieceTokenizer(
            vocab, suffix_indicator, max_bytes_per_token, unknown_token, with_offsets
        )
        self._words = BasicTokenizer(
            lower_case, keep_whitespace, normalization_form, preserve_unused_token, with_offsets
        )
        self._with_offsets = with_offsets

    def _made(self, text):
        if not self._with_offsets:
            return self._piece(self._words(text))
        words, begins, _ = self._words(text)
        return self._piece.cut(words, begins.tolist())


class PythonTokenizer(TextOperation):
    """A function from a str to a list of str."""

    def __init__(self, tokenizer):
        if not callable(tokenizer):
            raise TypeError(f"tokenizer is not a callable Python function, but {tokenizer!r}.")
        self._tokenizer = tokenizer

    def __call__(self, value):
        if not isinstance(value, numpy.ndarray):
            raise TypeError(f"input should be a NumPy array. Got {type(value)}.")
        return super().__call__(value)

    def _made(self, text):
        if text.ndim != 0:
            raise PipelineError(f"PythonTokenizer: the input shape should be scalar, got {text.shape}")
        return numpy.array(self._tokenizer(str(text)), dtype=str)


# ---- Refused -----------------------------------------------------------------------------------------------


def _refused(name, way):
    def init(self, *_, **__):
        raise NotImplementedError(f"text.{name} is not provided: {way}")

    return type(name, (), {"__init__": init, "__doc__": f"Refused: {way}.", "__module__": __name__})


JiebaTokenizer = _refused("JiebaTokenizer", "give PythonTokenizer the function jieba.lcut of package jieba")
SentencePieceTokenizer = _refused(
    "SentencePieceTokenizer", "give PythonTokenizer the method encode of package sentencepiece"
)
SentencePieceVocab = _refused("SentencePieceVocab", "train the model with package sentencepiece")
