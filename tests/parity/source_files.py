"""Small files in the layouts of well-known data sets, which the programs of source_programs.py read."""

import json
import pathlib
import struct
import zlib

import numpy as np


def png(seed, height=4, width=5):
    """The bytes of a picture in colours."""
    pixels = np.random.RandomState(seed).randint(0, 256, (height, width, 3)).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data) & 0xFFFFFFFF)
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def put(path, data):
    """Writes bytes or text; folders come into being."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def coco(folder):
    """Three pictures: without objects, with two, with one."""
    images = [{"id": 9 - at, "file_name": f"{2 - at}.png", "height": 4, "width": 5} for at in range(3)]
    for at in range(3):
        put(folder / "images" / f"{at}.png", png(at))
    objects = [
        {"id": 1, "image_id": 8, "category_id": 3, "bbox": [1, 2, 3, 4], "iscrowd": 0, "area": 12},
        {"id": 2, "image_id": 7, "category_id": 5, "bbox": [0.5, 1, 2, 2], "iscrowd": 1, "area": 4},
        {"id": 3, "image_id": 8, "category_id": 5, "bbox": [0, 0, 1, 1], "iscrowd": 0, "area": 1},
    ]
    for at, each in enumerate(objects):
        each["segmentation"] = [[1, 2, 3, 4, 5, 6 + at]] + ([[7, 8]] if at == 0 else [])
        if each["iscrowd"]:
            each["segmentation"] = {"counts": [9, 8, 7], "size": [4, 5]}
        each["keypoints"] = [at, 1, 2, 3, 4, 0]
        each["num_keypoints"] = 1 + at
        each["caption"] = f"words {at}"
    categories = [{"id": 3, "name": "cat", "isthing": 1}, {"id": 5, "name": "dog", "isthing": 0}]
    put(
        folder / "all.json",
        json.dumps({"images": images, "annotations": objects, "categories": categories}),
    )
    panoptic = [
        {
            "image_id": 9 - at,
            "file_name": f"{at} of another folder.png",
            "segments_info": [
                {"id": 1, "category_id": 3 + 2 * at, "bbox": [at, 1, 2, 3], "iscrowd": 0, "area": 6}
            ],
        }
        for at in range(2)
    ]
    put(
        folder / "panoptic.json",
        json.dumps({"images": images[:2], "annotations": panoptic, "categories": categories}),
    )
    for name, lost in (("unnamed", "category_id"), ("unboxed", "bbox")):
        broken = [{key: value for key, value in each.items() if key != lost} for each in objects]
        put(
            folder / f"{name}.json",
            json.dumps({"images": images, "annotations": broken, "categories": categories}),
        )
    put(folder / "bad.json", "{")


def voc(folder):
    """Two pictures, one of them with two objects."""
    one = (
        "<object><name>{}</name><truncated>{}</truncated><difficult>{}</difficult><bndbox><xmin>{}</xmin>"
        "<ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox></object>"
    )
    objects = {"a": [("dog", 0, 1, 1, 1, 3, 4), ("cat", 1, 0, 2, 1, 5, 2)], "b": [("dog", 0, 0, 1, 2, 2, 3)]}
    for at, (name, found) in enumerate(objects.items()):
        put(folder / "JPEGImages" / f"{name}.jpg", png(at))
        put(folder / "SegmentationClass" / f"{name}.png", png(10 + at))
        text = "".join(one.format(*each) for each in found)
        put(folder / "Annotations" / f"{name}.xml", f"<annotation>{text}</annotation>")
    put(folder / "Annotations" / "c.xml", "<annotation></annotation>")
    put(folder / "JPEGImages" / "c.jpg", png(2))
    put(folder / "JPEGImages" / "d.jpg", png(3))
    put(folder / "Annotations" / "d.xml", f"<annotation>{one.format('dog', 0, 0, 3, 1, 3, 2)}</annotation>")
    for part in ("Main", "Segmentation"):
        put(folder / "ImageSets" / part / "train.txt", "b\na\n")
        put(folder / "ImageSets" / part / "val.txt", "b\n")
        put(folder / "ImageSets" / part / "none.txt", "c\n")
        put(folder / "ImageSets" / part / "thin.txt", "d\n")


def celeba(folder):
    """Three faces, one of each part."""
    names = ["000001.jpg", "000002.jpg", "000003.jpg"]
    lines = ["3", "Bald Young Smiling"]
    for at, name in enumerate(names):
        put(folder / name, png(at))
        lines.append(f"{name}  {'1' if at else '-1'} -1  {'1' if at < 2 else '-1'}")
    put(folder / "list_attr_celeba.txt", "\n".join(lines) + "\n")
    parts = "".join(f"{name} {at}\n" for at, name in enumerate(names))
    put(folder / "list_eval_partition.txt", parts)


def manifest(folder):
    """Lines of three uses."""
    lines = []
    for at, (usage, label) in enumerate([("train", "dog"), ("train", "cat"), ("eval", "dog")]):
        put(folder / f"{at}.png", png(at))
        line = {"source": str(folder / f"{at}.png"), "usage": usage, "annotation": [{"name": label}]}
        lines.append(json.dumps(line))
    put(folder / "list.manifest", "\n".join(lines) + "\n")


def idx(kind, shape, seed):
    """An IDX file: bytes in the given shape, or whole numbers of four bytes."""
    numbers = np.random.RandomState(seed).randint(0, 10, shape)
    header = struct.pack(">BBBB", 0, 0, kind, len(shape)) + struct.pack(f">{len(shape)}I", *shape)
    return header + numbers.astype({8: ">u1", 12: ">i4"}[kind]).tobytes()


def emnist(folder):
    for at, (part, count) in enumerate([("train", 3), ("test", 2)]):
        put(folder / f"emnist-digits-{part}-images-idx3-ubyte", idx(8, (count, 28, 28), at))
        put(folder / f"emnist-digits-{part}-labels-idx1-ubyte", idx(8, (count,), 5 + at))


def qmnist(folder):
    for at, (part, count) in enumerate([("qmnist-train", 3), ("qmnist-test", 2), ("xnist", 1)]):
        put(folder / f"{part}-images-idx3-ubyte", idx(8, (count, 28, 28), at))
        put(folder / f"{part}-labels-idx2-int", idx(12, (count, 8), 5 + at))


def usps(folder):
    for at, (name, count) in enumerate([("usps", 3), ("usps.t", 2)]):
        numbers = np.random.RandomState(at).randint(-8, 9, (count, 256)) / 8
        lines = [
            f"{label + 1} " + " ".join(f"{place + 1}:{value:g}" for place, value in enumerate(row)) + " "
            for label, row in enumerate(numbers)
        ]
        put(folder / name, "\n".join(lines) + "\n")


def semeion(folder):
    lines = []
    for row in range(3):
        dots = np.random.RandomState(row).randint(0, 2, 256)
        label = [int(at == row + 1) for at in range(10)]
        lines.append(" ".join(f"{dot}.0000" for dot in dots) + " " + " ".join(map(str, label)) + " ")
    put(folder / "semeion.data", "\n".join(lines) + "\n")


def stl10(folder):
    for at, (part, count) in enumerate([("train", 2), ("test", 1), ("unlabeled", 1)]):
        pixels = np.random.RandomState(at).randint(0, 256, (count, 3, 96, 96)).astype(np.uint8)
        put(folder / f"{part}_X.bin", pixels.tobytes())
        if part != "unlabeled":
            put(folder / f"{part}_y.bin", bytes(range(1, count + 1)))


CLUE_LINES = {
    "afqmc": [
        {"sentence1": "a b", "sentence2": "c", "label": "0"},
        {"sentence1": "", "sentence2": "e", "label": "1"},
    ],
    "afqmc_test": [
        {"id": 3, "sentence1": "x", "sentence2": "y"},
        {"id": 4, "sentence1": "z", "sentence2": "yy"},
    ],
    "tnews": [{"label": "102", "label_desc": "news", "sentence": "s", "keywords": "k,l"}],
    "iflytek": [{"label": "7", "label_des": "game", "sentence": "s"}],
    "csl": [{"id": 1, "abst": "words", "keyword": ["k", "long"], "label": "1"}],
    "wsc": [
        {
            "target": {"span2_index": 2, "span1_index": 0, "span1_text": "it", "span2_text": "she"},
            "idx": 5,
            "label": "true",
            "text": "it was she",
        }
    ],
}


def clue(folder):
    for name, lines in CLUE_LINES.items():
        put(folder / f"{name}.json", "".join(json.dumps(each) + "\n" for each in lines))


LAYOUTS = (coco, voc, celeba, manifest, emnist, qmnist, usps, semeion, stl10, clue)


def write(folder):
    """All of them below `folder`."""
    import more_source_files

    folder = pathlib.Path(folder)
    for layout in (*LAYOUTS, *more_source_files.LAYOUTS):
        layout(folder / layout.__name__)
