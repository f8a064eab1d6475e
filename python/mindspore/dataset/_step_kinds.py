"""Classes that tell datasets apart, as MindSpore has them: `isinstance(dataset, BatchDataset)`.

What a method of Dataset gives is of the class of its step; sources belong to the classes of what they hold.
The classes are for isinstance alone.
"""

from mindspore import _names
from mindspore.dataset._dataset import ConcatDataset as ConcatDataset
from mindspore.dataset._dataset import Dataset

_TEXTS = """
    AGNewsDataset AmazonReviewDataset CLUEDataset CoNLL2000Dataset DBpediaDataset EnWik9Dataset IMDBDataset
    IWSLT2016Dataset IWSLT2017Dataset Multi30kDataset PennTreebankDataset SQuADDataset SST2Dataset
    SogouNewsDataset TextFileDataset UDPOSDataset WikiTextDataset YahooAnswersDataset YelpReviewDataset
    """
_SOUNDS = """
    CMUArcticDataset GTZANDataset LJSpeechDataset LibriTTSDataset SpeechCommandsDataset TedliumDataset
    YesNoDataset
    """
_ANYTHING = """
    CSVDataset Caltech101Dataset Flowers102Dataset GeneratorDataset MindDataset NumpySlicesDataset
    PaddedDataset SBDataset SVHNDataset TFRecordDataset
    """


_ALL = frozenset(("texts", "sounds", "pictures"))


def _contents(dataset) -> frozenset:
    """What the rows may be: of a step, and of a source that takes any rows, all three."""
    if dataset.children:
        return _ALL
    ours = (each for each in type(dataset).__mro__ if each.__module__.startswith("mindspore."))
    for name in (each.__name__ for each in ours):
        if name in _ANYTHING.split():
            return _ALL
        for what, names in (("texts", _TEXTS), ("sounds", _SOUNDS)):
            if name in names.split():
                return frozenset((what,))
        if name.endswith("Dataset") and name not in ("Dataset", "MappableDataset"):
            return frozenset(("pictures",))
    return frozenset()


class _Kind(type):
    """isinstance asks the class what belongs to it."""

    def __instancecheck__(cls, instance) -> bool:
        return type.__instancecheck__(cls, instance) or (isinstance(instance, Dataset) and cls._has(instance))


def _kind(name: str, text: str, has) -> type:
    members = {"__doc__": text, "__module__": "mindspore.dataset", "_has": staticmethod(has)}
    return _Kind(name, (), members)


def _step(name: str, text: str, node: str, fits=lambda node: True) -> type:
    """The class of datasets whose last step is the node of _rows.py."""
    return _kind(name, text, lambda dataset: type(dataset._node).__name__ == node and fits(dataset._node))


SourceDataset = _kind("SourceDataset", "Made of no other.", lambda dataset: not dataset.children)
UnionBaseDataset = _kind("UnionBaseDataset", "Any rows.", lambda dataset: _contents(dataset) == _ALL)
TextBaseDataset = _kind("TextBaseDataset", "Of texts.", lambda dataset: "texts" in _contents(dataset))
AudioBaseDataset = _kind("AudioBaseDataset", "Of sounds.", lambda dataset: "sounds" in _contents(dataset))
VisionBaseDataset = _kind(
    "VisionBaseDataset", "Of pictures.", lambda dataset: "pictures" in _contents(dataset)
)
BatchDataset = _step("BatchDataset", "What batch() gives.", "Batch", lambda node: node._padding is None)
PaddedBatchDataset = _step(
    "PaddedBatchDataset", "What padded_batch() gives.", "Batch", lambda node: node._padding is not None
)
BucketBatchByLengthDataset = _step(
    "BucketBatchByLengthDataset", "What bucket_batch_by_length() gives.", "Buckets"
)
FilterDataset = _step("FilterDataset", "What filter() gives.", "Filter")
MapDataset = _step("MapDataset", "What map() gives.", "Map")
RepeatDataset = _step("RepeatDataset", "What repeat() gives.", "Repeat")
ShuffleDataset = _step("ShuffleDataset", "What shuffle() gives.", "Shuffle")
SkipDataset = _step("SkipDataset", "What skip() gives.", "Part", lambda node: node._end is None)
TakeDataset = _step("TakeDataset", "What take() gives.", "Part", lambda node: node._end is not None)
ZipDataset = _step("ZipDataset", "What zip() gives.", "Zip")

__all__ = [
    *("AudioBaseDataset", "BatchDataset", "BucketBatchByLengthDataset", "ConcatDataset", "FilterDataset"),
    *("MapDataset", "PaddedBatchDataset", "RepeatDataset", "ShuffleDataset", "SkipDataset"),
    *("SourceDataset", "TakeDataset", "TextBaseDataset", "UnionBaseDataset", "VisionBaseDataset"),
    "ZipDataset",
]
__getattr__ = _names.missing(__name__)
