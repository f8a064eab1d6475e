"""Programs that read the files of more_source_files.py; FILES stands for the folder."""

from source_programs import listed


def usages(kind, folder, *parts, read="rows"):
    return [listed(kind, folder, f"usage={part!r}", read=read) for part in (*parts, "other")]


def of_three(kind, folder):
    """Of three files MindSpore's order depends on the number of processors."""
    ordered = usages(kind, folder, "train", "valid", "test")
    return ordered + [listed(kind, folder, f"usage={part!r}", read="unordered") for part in (None, "all")]


TABLES = {
    "AGNewsDataset": 3,
    "AmazonReviewDataset": 3,
    "DBpediaDataset": 3,
    "SogouNewsDataset": 3,
    "YahooAnswersDataset": 4,
    "YelpReviewDataset": 2,
}
MORE_SOURCES = [
    *[
        program
        for kind, columns in TABLES.items()
        for program in (
            *usages(kind, f"/table/{columns}", None, "train", "test", "all"),
            f"ds.{kind}(FILES + '/table/{columns}').get_col_names()",
            f"ds.{kind}(FILES + '/table/{columns}').get_dataset_size()",
            f"ds.{kind}(FILES + '/nowhere')",
        )
    ],
    *of_three("WikiTextDataset", "/lines"),
    *of_three("PennTreebankDataset", "/lines"),
    listed("EnWik9Dataset", "/lines"),
    listed("EnWik9Dataset", "/imdb"),
    *usages("IMDBDataset", "/imdb", None, "train", "test", "all"),
    "ds.IMDBDataset(FILES + '/imdb', 'train').get_class_indexing()",
    *usages("SST2Dataset", "/sst2", None, "train", "dev", "test"),
    *usages("SQuADDataset", "/squad", None, "train", "dev", "all"),
    *of_three("Multi30kDataset", "/multi30k"),
    listed("Multi30kDataset", "/multi30k", "'train'", "['de', 'en']"),
    listed("Multi30kDataset", "/multi30k", "'train'", "['fr', 'en']"),
    *usages("CoNLL2000Dataset", "/words", None, "train", "test", "all"),
    *of_three("UDPOSDataset", "/words"),
    *usages("Places365Dataset", "/places", None, "train-standard", "train-challenge", "val", read="digests"),
    *[
        listed("Places365Dataset", "/places", repr(usage), "False", "True", read="digests")
        for usage in ("train-standard", "train-challenge", "val")
    ],
    *usages("Food101Dataset", "/food", None, "train", "test", "all", read="digests"),
    listed("Food101Dataset", "/food", "'test'", "decode=True", read="digests"),
    listed("SUN397Dataset", "/sun", read="digests"),
    listed("SUN397Dataset", "/sun", "decode=True", read="digests"),
    listed("SUN397Dataset", "/food"),
    listed("Caltech256Dataset", "/caltech", read="digests"),
    listed("Caltech256Dataset", "/caltech", "decode=True", read="digests"),
    *[
        listed("OmniglotDataset", "/omniglot", f"background={which}", read="digests")
        for which in (None, True, False, 3)
    ],
    *[
        listed("LFWDataset", "/lfw", repr(task), repr(usage), repr(kind), read="digests")
        for task, usage, kind in (
            *(
                (task, usage, None)
                for task in ("people", "pairs")
                for usage in (None, "train", "test", "all")
            ),
            *((task, "10fold", kind) for task in ("people", "pairs") for kind in ("original", "funneled")),
            *((None, None, None), ("other", None, None), (None, "other", None), (None, None, "other")),
        )
    ],
    *usages("RenderedSST2Dataset", "/rendered", None, "train", "val", "test", "all", read="digests"),
    *usages("SVHNDataset", "/svhn", None, "train", "test", "extra", "all", read="digests"),
    *[
        listed("CityscapesDataset", "/cityscapes", repr(usage), "'fine'", repr(task), read="digests")
        for usage in ("train", "val", "test", "all", "other")
        for task in ("instance", "semantic", "polygon", "color", "other")
    ],
    listed("CityscapesDataset", "/cityscapes", "decode=True", read="digests"),
    listed("CityscapesDataset", "/cityscapes", "'train_extra'", read="digests"),
    listed("CityscapesDataset", "/cityscapes", "quality_mode='coarse'", read="digests"),
    *usages("KITTIDataset", "/kitti", None, "train", "test", read="digests"),
    listed("KITTIDataset", "/kitti", "decode=True", read="digests"),
    listed("KITTIDataset", "/kitti"),
    "ds.KITTIDataset(FILES + '/kitti').get_col_names()",
    *usages("WIDERFaceDataset", "/faces", None, "train", "valid", "test", "all", read="digests"),
    listed("WIDERFaceDataset", "/faces", "'train'", "decode=True"),
    "ds.WIDERFaceDataset(FILES + '/faces').get_col_names()",
    listed("YesNoDataset", "/sounds/yesno", read="unordered"),
    "ds.YesNoDataset(FILES + '/sounds/yesno').get_col_names()",
    *usages("SpeechCommandsDataset", "/sounds/words", None, "train", "valid", "test", "all"),
    "ds.SpeechCommandsDataset(FILES + '/sounds/words').get_col_names()",
    listed("LJSpeechDataset", "/sounds/read"),
    "ds.LJSpeechDataset(FILES + '/sounds/read').get_col_names()",
]
