"""Sources of well-known data sets of texts that are read in Python."""

import csv
import io
import json
import os

from mindspore._lazy import numpy
from mindspore.dataset import _cache
from mindspore.dataset._checks import PipelineError
from mindspore.dataset._dataset import Shuffle
from mindspore.dataset._named_sources import _below, _folder, _lines, _NamedDataset, _Order, _read_bytes
from mindspore.dataset._small_sources import _in_turn, _one_of


class _TextDataset(_NamedDataset):
    """Texts in files by usage: a subclass names `_FILES`, `_COLUMNS`, and reads a file in `_rows_of`.

    The rows of several files come in turn.
    """

    _FILES: dict = {}  # noqa: RUF012
    _COLUMNS: tuple = ()

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(None, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, _cache.refused(cache))
        folder = _folder(dataset_dir)
        _one_of("usage", usage, (None, *self._FILES))
        files = self._FILES.get(usage) or self._FILES["all"]
        rows = [list(self._rows_of(os.path.join(folder, name))) for name in files]
        self._read_files(list(self._columns_of(usage)), rows)

    def _columns_of(self, usage):
        return self._COLUMNS

    def _rows_of(self, path):
        raise NotImplementedError


class _LessOftenShuffled(_TextDataset):
    """MindSpore's other order of arguments."""

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        num_parallel_workers=None,
        cache=None,
    ):
        super().__init__(
            dataset_dir, usage, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache
        )


def _by_usage(*names, **files):
    """The files of each usage; 'all' are those of `names`, in their order."""
    return {**{usage: (name,) for usage, name in files.items()}, "all": tuple(files[name] for name in names)}


# ---- Tables ------------------------------------------------------------------------------------------------


class _Table:
    """Rows of cells in quotes."""

    def _rows_of(self, path):
        rows = [row for row in csv.reader(io.StringIO(_read_bytes(path).decode(), newline="")) if row]
        for row in rows:
            if len(row) != len(self._COLUMNS):
                raise PipelineError(f"{path}: a row has {len(row)} cells, {len(self._COLUMNS)} wanted: {row}")
        return rows


_TEST_FIRST = _by_usage("test", "train", train="train.csv", test="test.csv")
_TRAIN_FIRST = _by_usage("train", "test", train="train.csv", test="test.csv")


class AGNewsDataset(_Table, _TextDataset):
    """News in four classes: columns index, title and description, strings."""

    _FILES = _TEST_FIRST
    _COLUMNS = ("index", "title", "description")


class AmazonReviewDataset(_Table, _TextDataset):
    """Reviews of products: columns label, title and content, strings."""

    _FILES = _TEST_FIRST
    _COLUMNS = ("label", "title", "content")


class DBpediaDataset(_Table, _TextDataset):
    """Articles in 14 classes: columns class, title and content, strings."""

    _FILES = _TEST_FIRST
    _COLUMNS = ("class", "title", "content")


class YahooAnswersDataset(_Table, _TextDataset):
    """Questions in ten classes: columns class, title, content and answer, strings."""

    _FILES = _TEST_FIRST
    _COLUMNS = ("class", "title", "content", "answer")


class SogouNewsDataset(_Table, _LessOftenShuffled):
    """News in five classes: columns index, title and content, strings."""

    _FILES = _TRAIN_FIRST
    _COLUMNS = ("index", "title", "content")


class YelpReviewDataset(_Table, _LessOftenShuffled):
    """Reviews of places: columns label and text, strings."""

    _FILES = _TRAIN_FIRST
    _COLUMNS = ("label", "text")


class SST2Dataset(_TextDataset):
    """Sentences of reviews of films: columns sentence and, but for usage='test', label, strings."""

    _FILES = {usage: (f"{usage}.tsv",) for usage in ("train", "test", "dev")}  # noqa: RUF012
    _FILES["all"] = _FILES["train"]

    def __init__(self, dataset_dir, usage=None, *args, **kwargs):
        _one_of("usage", usage, (None, "train", "test", "dev"))
        super().__init__(dataset_dir, usage, *args, **kwargs)

    def _columns_of(self, usage):
        return ("sentence",) if usage == "test" else ("sentence", "label")

    def _rows_of(self, path):
        head, *rows = [line.split("\t") for line in _lines(path) if line.strip()]
        at = head.index("sentence")
        return [row[at:] for row in rows]


# ---- Lines -------------------------------------------------------------------------------------------------


class _LinesOf(_TextDataset):
    """The lines of files that are not blank: column text."""

    _COLUMNS = ("text",)

    def _rows_of(self, path):
        return [[line] for line in _lines(path) if line.strip()]


class WikiTextDataset(_LinesOf):
    """Lines of articles of Wikipedia: column text, a string."""

    _FILES = _by_usage(
        *("test", "train", "valid"),
        train="wiki.train.tokens",
        test="wiki.test.tokens",
        valid="wiki.valid.tokens",
    )


class PennTreebankDataset(_LinesOf):
    """Sentences of the Penn Treebank: column text, a string."""

    _FILES = _by_usage(
        *("test", "train", "valid"), train="ptb.train.txt", test="ptb.test.txt", valid="ptb.valid.txt"
    )


class EnWik9Dataset(_NamedDataset):
    """The lines of the file enwik9, blank ones too: column text, a string."""

    def __init__(
        self,
        dataset_dir,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=True,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(None, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, _cache.refused(cache))
        lines = _lines(os.path.join(_folder(dataset_dir), "enwik9"))
        self._read(["text"], lines, lambda line: [line])


class Multi30kDataset(_NamedDataset):
    """Descriptions of pictures in two languages: columns text and translation, strings.

    `language_pair` is ["en", "de"] or ["de", "en"]; None: the first.
    """

    def __init__(
        self,
        dataset_dir,
        usage=None,
        language_pair=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        shuffle = Shuffle.GLOBAL if shuffle is None else shuffle
        order = _Order(None, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, _cache.refused(cache))
        folder = _folder(dataset_dir)
        parts = {"test": "mmt16_task1_test/test", "train": "training/train", "valid": "validation/val"}
        _one_of("usage", usage, (None, *parts, "all"))
        pair = _one_of("language_pair", list(language_pair or ["en", "de"]), (["en", "de"], ["de", "en"]))
        starts = [parts[usage]] if usage in parts else parts.values()

        def rows_of(start):
            texts = [_lines(os.path.join(folder, f"{start}.{language}")) for language in pair]
            return list(zip(*texts, strict=False))

        self._read(["text", "translation"], _in_turn([rows_of(start) for start in starts]), list)


class IMDBDataset(_NamedDataset):
    """Reviews of films, a file each: columns text, a string, and label () int32, 1 for those that praise."""

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, _cache.refused(cache))
        folder = _folder(dataset_dir)
        _one_of("usage", usage, (None, "train", "test", "all"))
        parts = ("train", "test") if usage in (None, "all") else (usage,)
        rows = [
            (path, label)
            for part in parts
            for place, label in (("pos", 1), ("neg", 0))
            for path in _below(folder, part, place)
        ]
        self._read(
            ["text", "label"],
            rows,
            lambda row: [numpy.asarray(_read_bytes(row[0]).decode()), numpy.asarray(row[1], numpy.int32)],
        )


# ---- Sentences and questions -------------------------------------------------------------------------------


class _Sentences(_LessOftenShuffled):
    """A word a line with its marks; a blank line ends a sentence."""

    _BETWEEN = " "

    def _rows_of(self, path):
        rows, words = [], []
        for line in [*_lines(path), ""]:
            if line.strip():
                words.append(line.split(self._BETWEEN))
            elif words:
                rows.append([numpy.asarray(column) for column in zip(*words, strict=True)])
                words = []
        return rows


class CoNLL2000Dataset(_Sentences):
    """Sentences in chunks: columns word, pos_tag and chunk_tag, each a string for each word."""

    _FILES = _by_usage("test", "train", train="train.txt", test="test.txt")
    _COLUMNS = ("word", "pos_tag", "chunk_tag")


class UDPOSDataset(_Sentences):
    """Sentences with parts of speech: columns word, universal and stanford, each a string for each word."""

    _FILES = _by_usage(
        *("valid", "test", "train"),
        train="en-ud-tag.v2.train.txt",
        test="en-ud-tag.v2.test.txt",
        valid="en-ud-tag.v2.dev.txt",
    )
    _COLUMNS = ("word", "universal", "stanford")
    _BETWEEN = "\t"


def _answers(given):
    """Texts and places; of none '' at the greatest place, as MindSpore has it."""
    texts = [each["text"] for each in given] or [""]
    places = [each["answer_start"] for each in given] or [2**32 - 1]
    return numpy.asarray(texts), numpy.asarray(places, numpy.uint32)


class SQuADDataset(_TextDataset):
    """Questions on texts: columns context, question and text (answers,), strings, and answer_start uint32."""

    _FILES = {"train": ("train",), "dev": ("dev",), "all": ("train", "dev")}  # noqa: RUF012
    _COLUMNS = ("context", "question", "text", "answer_start")

    def _rows_of(self, path):
        folder, start = os.path.split(path)
        found = sorted(name for name in os.listdir(folder) if name.startswith(f"{start}-v"))
        if not found:
            raise PipelineError(f"SQuADDataset: there is no {start}-v1.1.json in {folder}")
        whole = os.path.join(folder, found[-1])
        try:
            return [
                [paragraph["context"], asked["question"], *_answers(asked["answers"])]
                for article in json.loads(_read_bytes(whole))["data"]
                for paragraph in article["paragraphs"]
                for asked in paragraph["qas"]
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise PipelineError(f"Invalid file, {whole} is no file of SQuAD: {error!r}") from None
