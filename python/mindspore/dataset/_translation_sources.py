"""Sources of well-known data sets of translations that are read in Python."""

import os
import xml.etree.ElementTree

from mindspore.dataset import _cache, _checks
from mindspore.dataset._checks import PipelineError
from mindspore.dataset._dataset import Shuffle
from mindspore.dataset._named_sources import _folder, _lines, _NamedDataset, _Order, _read_bytes
from mindspore.dataset._small_sources import _one_of

_TAGS = (
    *("<url", "<keywords", "<talkid", "<description", "<reviewer", "<translator", "<title", "<speaker"),
    *("<doc", "</doc"),
)
_USAGES = ("train", "valid", "test", "all")


def _tagged(one, other):
    """Pairs of lines; those of tags are left out."""
    for pair in zip(_lines(one), _lines(other), strict=False):
        if all(pair) and not any(tag in line for tag in _TAGS for line in pair):
            yield [line.strip(" ") for line in pair]


def _segments(path):
    """The sentences of an XML file, document by document."""
    try:
        root = xml.etree.ElementTree.fromstring(_read_bytes(path))
    except xml.etree.ElementTree.ParseError as error:
        raise PipelineError(f"Invalid file, failed to load xml file: {path} ({error})") from None
    return [[(each.text or "").strip(" ") for each in document.iter("seg")] for document in root.iter("doc")]


def _paired(one, other):
    """Pairs of sentences of two XML files."""
    for documents in zip(_segments(one), _segments(other), strict=False):
        yield from map(list, zip(*documents, strict=False))


class _Translations(_NamedDataset):
    """Columns text and translation, strings; a subclass says where its files are."""

    def _begin_pairs(self, dataset_dir, usage, pair, sets, order, num_parallel_workers, cache):
        self._start(order, num_parallel_workers, _cache.refused(cache))
        folder = _folder(dataset_dir)
        if usage is not None:
            _checks.of_type("usage", usage, str)
            _one_of("usage", usage, _USAGES)
        usage = usage or "all"
        files = []
        if usage in ("train", "all"):
            files.append(list(_tagged(*(self._tags_path(folder, pair, each) for each in pair))))
        for part, name in zip(("valid", "test"), sets, strict=True):
            if usage in (part, "all"):
                files.append(list(_paired(*(self._xml_path(folder, pair, name, each) for each in pair))))
        self._read_files(["text", "translation"], files)

    def _tags_path(self, folder, pair, language):
        return os.path.join(self._place(folder, pair), f"train.tags.{'-'.join(pair)}.{language}")

    def _xml_path(self, folder, pair, name, language):
        return os.path.join(
            self._place(folder, pair), f"{self._START}.{name}.{'-'.join(pair)}.{language}.xml"
        )


def _languages(pair, allowed):
    """A pair of different languages as a tuple."""
    _checks.of_type("language_pair", pair, list, tuple)
    if len(pair) != 2:
        raise ValueError(f"language_pair should be a list or tuple of length 2, but got {len(pair)}")
    for each in pair:
        _checks.of_type("language_pair", each, str)
    if tuple(pair) not in allowed:
        raise ValueError(f"Input language_pair is not within the valid set of {sorted(allowed)}: {pair}")
    return tuple(pair)


_PAIRS_2016 = {pair for each in ("ar", "cs", "de", "fr") for pair in (("en", each), (each, "en"))}
_SETS_2016 = ("dev2010", "tst2010", "tst2011", "tst2012", "tst2013", "tst2014")


class IWSLT2016Dataset(_Translations):
    """Talks and their translations: columns text and translation, strings; `language_pair` (None: de, en)."""

    _START = "IWSLT16.TED"

    def __init__(
        self,
        dataset_dir,
        usage=None,
        language_pair=None,
        valid_set=None,
        test_set=None,
        num_samples=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        num_parallel_workers=None,
        cache=None,
    ):
        order = _Order(None, shuffle, num_samples, num_shards, shard_id)
        pair = ("de", "en") if language_pair is None else _languages(language_pair, _PAIRS_2016)
        sets = [valid_set or "tst2013", test_set or "tst2014"]
        for name, value in zip(("valid_set", "test_set"), sets, strict=True):
            _one_of(name, value, _SETS_2016)
        self._begin_pairs(dataset_dir, usage, pair, sets, order, num_parallel_workers, cache)

    def _place(self, folder, pair):
        return os.path.join(folder, "texts", *pair, "-".join(pair))


_PAIRS_2017 = {
    (a, b) for a in ("en", "nl", "de", "it", "ro") for b in ("en", "nl", "de", "it", "ro") if a != b
}


class IWSLT2017Dataset(_Translations):
    """Talks and their translations: columns text and translation, strings; `language_pair` (None: de, en)."""

    _START = "IWSLT17.TED"

    def __init__(
        self,
        dataset_dir,
        usage=None,
        language_pair=None,
        num_samples=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        num_parallel_workers=None,
        cache=None,
    ):
        order = _Order(None, shuffle, num_samples, num_shards, shard_id)
        pair = ("de", "en") if language_pair is None else _languages(language_pair, _PAIRS_2017)
        self._begin_pairs(
            dataset_dir, usage, pair, ("dev2010", "tst2010"), order, num_parallel_workers, cache
        )

    def _place(self, folder, pair):
        return os.path.join(folder, "texts", "DeEnItNlRo", "DeEnItNlRo", "DeEnItNlRo-DeEnItNlRo")
