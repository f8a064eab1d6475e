"""mindspore.dataset: pipelines with MindSpore's arguments."""

from mindspore import _names
from mindspore import context as context
from mindspore.dataset import config
from mindspore.dataset._dataset import Dataset, Shuffle, zip
from mindspore.dataset._samplers import (
    BuiltinSampler,
    DistributedSampler,
    IterSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from mindspore.dataset._sources import (
    Cifar10Dataset,
    Cifar100Dataset,
    FashionMnistDataset,
    GeneratorDataset,
    ImageFolderDataset,
    KMnistDataset,
    MappableDataset,
    MnistDataset,
    NumpySlicesDataset,
    PaddedDataset,
)

# Names that load with their first use, by the module that has them.
_LATER = {
    "BatchInfo": "_rows",
    "DSCallback": "_callbacks",
    "DatasetCache": "_cache",
    "WaitedDSCallback": "_waited",
    **dict.fromkeys(("FakeImageDataset", "RandomDataset"), "_fake_sources"),
    **dict.fromkeys(("CityscapesDataset", "KITTIDataset", "WIDERFaceDataset"), "_scene_sources"),
    "Schema": "_types",
    **dict.fromkeys(("compare", "deserialize", "serialize", "show"), "_serializing"),
    **dict.fromkeys(("CSVDataset", "MindDataset", "TFRecordDataset", "TextFileDataset"), "_files"),
    **dict.fromkeys(("CelebADataset", "CocoDataset", "ManifestDataset", "VOCDataset"), "_named_sources"),
    **dict.fromkeys(
        ("CLUEDataset", "EMnistDataset", "QMnistDataset", "STL10Dataset", "SemeionDataset", "USPSDataset"),
        "_small_sources",
    ),
    **dict.fromkeys(
        (
            *("AGNewsDataset", "AmazonReviewDataset", "CoNLL2000Dataset", "DBpediaDataset", "EnWik9Dataset"),
            *("IMDBDataset", "Multi30kDataset", "PennTreebankDataset", "SQuADDataset", "SST2Dataset"),
            *("SogouNewsDataset", "UDPOSDataset", "WikiTextDataset", "YahooAnswersDataset"),
            "YelpReviewDataset",
        ),
        "_text_sources",
    ),
    **dict.fromkeys(
        (
            *("Caltech256Dataset", "Food101Dataset", "LFWDataset", "OmniglotDataset", "Places365Dataset"),
            *("RenderedSST2Dataset", "SUN397Dataset", "SVHNDataset"),
        ),
        "_picture_sources",
    ),
    **dict.fromkeys(("LJSpeechDataset", "SpeechCommandsDataset", "YesNoDataset"), "_sound_sources"),
    **dict.fromkeys(
        ("CMUArcticDataset", "GTZANDataset", "LibriTTSDataset", "TedliumDataset"), "_speech_sources"
    ),
    **dict.fromkeys(
        ("DIV2KDataset", "FlickrDataset", "LSUNDataset", "PhotoTourDataset", "SBUDataset"),
        "_further_picture_sources",
    ),
    **dict.fromkeys(("Caltech101Dataset", "Flowers102Dataset", "SBDataset"), "_mat_sources"),
    **dict.fromkeys(("IWSLT2016Dataset", "IWSLT2017Dataset"), "_translation_sources"),
}

__all__ = [
    "BuiltinSampler",
    "Cifar10Dataset",
    "Cifar100Dataset",
    "Dataset",
    "DistributedSampler",
    "FashionMnistDataset",
    "GeneratorDataset",
    "ImageFolderDataset",
    "IterSampler",
    "KMnistDataset",
    "MappableDataset",
    "MnistDataset",
    "NumpySlicesDataset",
    "PKSampler",
    "PaddedDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Shuffle",
    "SubsetRandomSampler",
    "SubsetSampler",
    "WeightedRandomSampler",
    "config",
    "transforms",
    "vision",
    "zip",
    *_LATER,
]
__getattr__ = _names.later(__name__, _LATER, ("text", "transforms", "vision", "audio", "engine"))
