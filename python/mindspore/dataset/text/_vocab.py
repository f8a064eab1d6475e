"""Vocabularies: words and their numbers."""

import os

from mindspore.dataset import _checks
from mindspore.dataset._checks import PipelineError


def _specials(special_tokens):
    if special_tokens is None:
        return []
    _checks.of_type("special_tokens", special_tokens, list, tuple)
    tokens = list(special_tokens)
    for at, token in enumerate(tokens):
        _checks.of_type(f"special_tokens[{at}]", token, str)
    if len(set(tokens)) != len(tokens):
        raise ValueError("special_tokens contains duplicate.")
    return tokens


def _with_specials(words, special_tokens, special_first):
    _checks.of_type("special_first", special_first, bool)
    specials = _specials(special_tokens)
    if set(specials) & set(words):
        raise PipelineError("special_tokens and word_list contain duplicate word")
    return [*specials, *words] if special_first else [*words, *specials]


class Vocab:
    """Words and their numbers; made by from_list, from_dict, from_file or from_dataset."""

    def __init__(self):
        self._ids = {}

    @classmethod
    def _of(cls, words):
        made = cls()
        made._ids = {word: number for number, word in enumerate(words)}
        return made

    @classmethod
    def from_list(cls, word_list, special_tokens=None, special_first=True):
        """Words in the order given."""
        _checks.of_type("word_list", word_list, list)
        for at, word in enumerate(word_list):
            _checks.of_type(f"word_list[{at}]", word, str)
        if len(set(word_list)) != len(word_list):
            raise PipelineError("from_list: word_list contains duplicate word")
        return cls._of(_with_specials(word_list, special_tokens, special_first))

    @classmethod
    def from_dict(cls, word_dict):
        """Words with the numbers given."""
        _checks.of_type("word_dict", word_dict, dict)
        for word, number in word_dict.items():
            _checks.of_type("word", word, str)
            _checks.of_type("word_id", number, int)
            if number < 0:
                raise ValueError(
                    f"Input word_id is not within the required interval of [0, 2147483647]: {number}."
                )
        made = cls()
        made._ids = dict(word_dict)
        return made

    @classmethod
    def from_file(cls, file_path, delimiter="", vocab_size=None, special_tokens=None, special_first=True):
        """A word a line; of each line what comes before `delimiter`."""
        for name, value in (("file_path", file_path), ("delimiter", delimiter)):
            _checks.of_type(name, value, str)
        if vocab_size is not None:
            _checks.of_type("vocab_size", vocab_size, int)
            if vocab_size <= 0:
                raise ValueError("Input vocab_size must be greater than 0.")
        if not os.path.isfile(file_path):
            raise PipelineError(f"from_file: {file_path} does not exist or is no file")
        words = []
        with open(file_path, encoding="utf-8") as lines:
            for line in lines:
                word = line.rstrip("\r\n")
                words.append(word.split(delimiter)[0] if delimiter else word)
        words = words[:vocab_size]
        if len(set(words)) != len(words):
            raise PipelineError("from_file: word_list contains duplicate word")
        return cls._of(_with_specials(words, special_tokens, special_first))

    @classmethod
    def from_dataset(
        cls, dataset, columns=None, freq_range=None, top_k=None, special_tokens=None, special_first=True
    ):
        """The words of a dataset, the most frequent first."""
        import collections

        import numpy

        from mindspore.dataset._dataset import Dataset

        if not isinstance(dataset, Dataset):
            raise TypeError(f"Argument dataset with value {dataset} is not of type [<class 'Dataset'>]")
        names = _checks.names("columns", columns) or dataset.get_col_names()
        low, high = freq_range or (None, None)
        for each in (low, high):
            if each is not None:
                _checks.whole("freq_range", each, 0, 2**63 - 1)
        if low is not None and high is not None and low > high:
            raise ValueError("frequency_range[0] must be at most frequency_range[1]")
        if top_k is not None:
            _checks.whole("top_k", top_k, 1)
        counts = collections.Counter()
        for row in dataset.project(names).create_tuple_iterator(num_epochs=1, output_numpy=True):
            for column in row:
                if column.dtype.kind not in "US":
                    raise PipelineError("from_dataset: a column holds no text")
                counts.update(str(word) for word in numpy.atleast_1d(column).ravel())
        kept = [
            word
            for word, count in counts.items()
            if (low is None or count >= low) and (high is None or count <= high)
        ]
        kept.sort(key=lambda word: (-counts[word], word))
        return cls._of(_with_specials(kept[:top_k], special_tokens, special_first))

    def vocab(self):
        """The words with their numbers, as a dict."""
        return dict(self._ids)

    def tokens_to_ids(self, tokens):
        """The number of a word, or of each of several; -1 for unknown ones."""
        _checks.of_type("tokens", tokens, str, list, *_arrays())
        if isinstance(tokens, str):
            return self._ids.get(tokens, -1)
        for at, token in enumerate(tokens):
            _checks.of_type(f"tokens[{at}]", token, str)
        return [self._ids.get(str(token), -1) for token in tokens]

    def ids_to_tokens(self, ids):
        """The word of a number, or of each of several; '' for unknown ones."""
        _checks.of_type("ids", ids, int, list, *_arrays())
        words = {number: word for word, number in self._ids.items()}
        if _checks.is_whole(ids):
            return words.get(_whole(ids), "")
        found = [words.get(_whole(each), "") for each in ids]
        return found[0] if len(found) == 1 else found  # one number of a list is one word, as in MindSpore


def _whole(number):
    _checks.of_type("ids", number, int)
    if number < 0:
        raise ValueError(f"Input ids is not within the required interval of [0, 2147483647]: {number}")
    return int(number)


def _arrays():
    import numpy

    return (numpy.ndarray,)
