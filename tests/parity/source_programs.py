"""Programs that read the files of source_files.py; FILES stands for the folder."""


def listed(kind, *arguments, read="rows"):
    return f"{read}(ds.{kind}({', '.join(('FILES + ' + repr(arguments[0]), *arguments[1:]))}, shuffle=False))"


COCO = "FILES + '/coco/{}.json'"
SOURCES = [
    *[
        listed("CocoDataset", "/coco/images", COCO.format("all"), repr(task))
        for task in ("Detection", "Stuff", "Keypoint", "Captioning", "Other")
    ],
    *[
        listed("CocoDataset", "/coco/images", COCO.format(name))
        for name in ("bad", "unnamed", "unboxed", "missing")
    ],
    listed("CocoDataset", "/coco/images", COCO.format("panoptic"), "'Panoptic'", "decode=True"),
    listed("CocoDataset", "/coco/nowhere", COCO.format("all")),
    listed("CocoDataset", "/coco/images", COCO.format("all"), "num_samples=1"),
    listed("CocoDataset", "/coco/images", COCO.format("all"), "num_shards=2", "shard_id=1"),
    *[
        f"ds.CocoDataset(FILES + '/coco/images', FILES + '/coco/{name}.json', '{task}').get_class_indexing()"
        for name, task in (("all", "Detection"), ("panoptic", "Panoptic"), ("all", "Captioning"))
    ],
    "ds.CocoDataset(FILES + '/coco/images', FILES + '/coco/all.json').get_col_names()",
    "ds.CocoDataset(FILES + '/coco/images', FILES + '/coco/all.json').get_dataset_size()",
    *[
        listed("VOCDataset", "/voc", repr(task), repr(usage))
        for task in ("Detection", "Segmentation")
        for usage in ("train", "val", "none", "thin", "what")
    ],
    listed("VOCDataset", "/voc", "decode=True"),
    listed("VOCDataset", "/voc", "'Detection'", "'train'", "{'dog': 3}", "decode=True"),
    listed("VOCDataset", "/voc", "'Detection'", "'train'", "{'cat': 3}"),
    listed("VOCDataset", "/voc", "'Segmentation'", "'train'", "{'cat': 3}"),
    listed("VOCDataset", "/voc", "'Other'"),
    "ds.VOCDataset(FILES + '/voc', 'Detection').get_class_indexing()",
    "ds.VOCDataset(FILES + '/voc', 'Segmentation').get_class_indexing()",
    *[
        listed("CelebADataset", "/celeba", f"usage={usage!r}")
        for usage in ("all", "train", "valid", "test", "other")
    ],
    listed("CelebADataset", "/celeba", "decode=True", "extensions=['.jpg']"),
    listed("CelebADataset", "/celeba", "extensions=['.png']"),
    *[
        listed("ManifestDataset", "/manifest/list.manifest", repr(usage))
        for usage in ("train", "eval", "inference", "other")
    ],
    listed("ManifestDataset", "/manifest/list.manifest", "class_indexing={'dog': 4}", "decode=True"),
    "ds.ManifestDataset(FILES + '/manifest/list.manifest').get_class_indexing()",
    *[
        listed(kind, *given, f"usage={usage!r}", read="digests")
        for kind, *given in (
            ("EMnistDataset", "/emnist", "'digits'"),
            ("QMnistDataset", "/qmnist"),
            ("USPSDataset", "/usps"),
            ("STL10Dataset", "/stl10"),
        )
        for usage in (None, "train", "test", "all", "other")
    ],
    listed("EMnistDataset", "/emnist", "'letters'"),
    listed("EMnistDataset", "/emnist", "'other'"),
    listed("QMnistDataset", "/qmnist", "'nist'", read="digests"),
    listed("QMnistDataset", "/qmnist", "'train'", "False", read="digests"),
    listed("STL10Dataset", "/stl10", "'train+unlabeled'", read="digests"),
    listed("STL10Dataset", "/stl10", "'unlabeled'", read="digests"),
    listed("SemeionDataset", "/semeion", read="digests"),
    listed("SemeionDataset", "/usps"),
    *[
        listed("CLUEDataset", f"/clue/{name}.json", repr(task), repr(usage))
        for name, task, usage in (
            ("afqmc", "AFQMC", "train"),
            ("afqmc_test", "AFQMC", "test"),
            ("afqmc", "CMNLI", "eval"),
            ("tnews", "TNEWS", "train"),
            ("iflytek", "IFLYTEK", "train"),
            ("csl", "CSL", "train"),
            ("csl", "CSL", "test"),
            ("wsc", "WSC", "train"),
            ("wsc", "WSC", "test"),
            ("wsc", "AFQMC", "train"),
            ("afqmc", "OTHER", "train"),
            ("afqmc", "AFQMC", "other"),
        )
    ],
    *[
        f"ds.CLUEDataset(FILES + '/clue/{task.lower()}.json', '{task}').get_col_names()"
        for task in ("TNEWS", "IFLYTEK", "CSL", "WSC")
    ],
    listed("CLUEDataset", "/clue/afqmc*.json"),
    "rows(ds.CLUEDataset([FILES + '/clue/afqmc.json'] * 2, shuffle=False))",
]
