"""Small files in the layouts of further data sets, which the programs of more_source_programs.py read."""

import json
import struct
import zlib

import numpy as np
from source_files import png, put


def table(folder):
    """What AG News, DBpedia, Yelp and others have: cells in quotes, some with quotes, commas and nothing."""
    for columns in (2, 3, 4):
        for part, count in (("train", 3), ("test", 2)):
            rows = []
            for at in range(count):
                cells = [str(at + 1), f'{part}, ""a"" {at}', "", f" end {at} "][:columns]
                rows.append(",".join(f'"{cell}"' for cell in cells))
            put(folder / str(columns) / f"{part}.csv", "\n".join(rows) + "\n")


def lines(folder):
    """What WikiText, Penn Treebank and EnWik9 have: lines, some of them empty."""
    for part, count in (("train", 3), ("test", 2), ("valid", 1)):
        text = "".join(f" {part} {at} \n\n" for at in range(count))
        put(folder / f"wiki.{part}.tokens", text)
        put(folder / f"ptb.{part}.txt", text)
    put(folder / "enwik9", "<page>\n\n  <text>\n   \nlast")


def imdb(folder):
    for part in ("train", "test"):
        for label in ("pos", "neg"):
            for at in range(2):
                put(folder / part / label / f"{at}_{at + 3}.txt", f"{part} {label} <br /> {at}")


def sst2(folder):
    put(folder / "train.tsv", "sentence\tlabel\nit is good\t1\nbad , it is \t0\nagain\t1\n")
    put(folder / "dev.tsv", "sentence\tlabel\nso so\t0\n")
    put(folder / "test.tsv", "index\tsentence\n0\tfine\n1\tnot fine\n")


def squad(folder):
    def paragraph(context, *asked):
        return {"context": context, "qas": [{"id": "1", "question": q, "answers": a} for q, a in asked]}

    both = [{"text": "one", "answer_start": 3}, {"text": "two", "answer_start": 5}]
    train = [
        {
            "title": "t",
            "paragraphs": [paragraph("c", ("q", both[:1]), ("r", both)), paragraph("d", ("s", []))],
        },
        {"paragraphs": [paragraph("e", ("v", both[1:]))]},
    ]
    put(folder / "train-v1.1.json", json.dumps({"version": "1.1", "data": train}))
    put(folder / "dev-v1.1.json", json.dumps({"version": "1.1", "data": train[1:]}))


def multi30k(folder):
    names = {"training": "train", "validation": "val", "mmt16_task1_test": "test"}
    for at, (part, name) in enumerate(names.items()):
        for language in ("en", "de"):
            text = "".join(f"{part} {language} {row}\n" for row in range(at + 1))
            put(folder / part / f"{name}.{language}", text)


def words(folder):
    """Sentences of a word a line: CoNLL-2000 and UDPOS."""
    for part, count in (("train", 2), ("test", 1)):
        text = "".join(f"We{at} PRP B-NP\nsee VBP B-VP\n. . O\n\n" for at in range(count))
        put(folder / f"{part}.txt", text)
    for part, count in (("train", 2), ("dev", 1), ("test", 1)):
        text = "".join(f"We{at}\tPRON\tPRP\nsee\tVERB\tVBP\n\n" for at in range(count))
        put(folder / f"en-ud-tag.v2.{part}.txt", text)


def places(folder):
    put(folder / "categories_places365.txt", "/a/airfield 0\n/b/beach/far 1\n")
    put(folder / "places365_train_standard.txt", "/a/airfield/1.jpg 0\n/b/beach/far/2.jpg 1\n")
    put(folder / "places365_train_challenge.txt", "/a/airfield/3.jpg 0\n")
    put(folder / "places365_val.txt", "val_1.jpg 1\nval_2.jpg 0\n")
    for size in ("256", "large"):
        for at, name in enumerate(("a/airfield/1.jpg", "b/beach/far/2.jpg")):
            put(folder / f"data_{size}_standard" / name, png(at))
        put(folder / f"data_{size}_challenge" / "a/airfield/3.jpg", png(3))
        for at in (1, 2):
            put(folder / f"val_{size}" / f"val_{at}.jpg", png(10 + at))


def food(folder):
    for name, keys in {"train": ["pie/1", "cake/2", "pie/3"], "test": ["pie/4", "cake/5"]}.items():
        put(folder / "meta" / f"{name}.txt", "\n".join(keys) + "\n")
        for key in keys:
            put(folder / "images" / f"{key}.jpg", png(int(key[-1])))
    put(folder / "meta" / "classes.txt", "cake\npie\n")


def sun(folder):
    names = ["/a/abbey", "/a/hall/indoor", "/b/bay"]
    put(folder / "ClassName.txt", "".join(name + "\n" for name in names))
    for at, name in enumerate(names):
        for place in range(2 - at % 2):
            put(folder / name[1:] / f"sun_{place}.jpg", png(3 * at + place))


def caltech(folder):
    for at, name in enumerate(("001.ak47", "002.flag")):
        for place in range(2 - at):
            put(folder / name / f"00{at + 1}_000{place + 1}.jpg", png(2 * at + place))


def omniglot(folder):
    for part, alphabets in (("images_background", ("Arc", "Ben")), ("images_evaluation", ("Car",))):
        for at, alphabet in enumerate(alphabets):
            for character in ("character01", "character02"):
                put(folder / part / alphabet / character / "01.png", png(at))


def lfw(folder):
    for at, name in enumerate(("Ann_A", "Bob_B")):
        for place in (1, 2):
            for kind in ("lfw", "lfw_funneled", "lfw-deepfunneled"):
                put(folder / kind / name / f"{name}_000{place}.jpg", png(2 * at + place))
    put(folder / "lfw-names.txt", "Ann_A\t2\nBob_B\t2\n")
    for name in ("peopleDevTrain.txt", "peopleDevTest.txt"):
        put(folder / name, "2\nAnn_A\t2\nBob_B\t1\n")
    for name in ("pairsDevTrain.txt", "pairsDevTest.txt"):
        put(folder / name, "1\nAnn_A\t1\t2\nAnn_A\t1\tBob_B\t2\n")
    put(folder / "people.txt", "2\n1\nAnn_A\t2\n1\nBob_B\t1\n")
    put(folder / "pairs.txt", "1\t1\nAnn_A\t1\t2\nAnn_A\t2\tBob_B\t1\n")


def rendered(folder):
    for at, part in enumerate(("train", "test", "valid")):
        for label in ("negative", "positive"):
            for place in range(2):
                put(folder / part / label / f"{place}.png", png(4 * at + 2 * (label == "positive") + place))


def _element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def _matrix(name, array, packed):
    """A variable of a MAT file of level 5: bytes in Fortran's order."""
    flags, shape = struct.pack("<II", 9, 0), struct.pack(f"<{array.ndim}i", *array.shape)
    parts = _element(6, flags) + _element(5, shape)
    parts += struct.pack("<HH", 1, len(name)) + name.encode().ljust(4, b"\0")
    parts += _element(2, array.tobytes("F"))
    whole = _element(14, parts)
    return struct.pack("<II", 15, len(zlib.compress(whole))) + zlib.compress(whole) if packed else whole


def svhn(folder):
    for at, (part, count) in enumerate((("train", 3), ("test", 2), ("extra", 2))):
        pixels = np.random.RandomState(at).randint(0, 256, (32, 32, 3, count)).astype(np.uint8)
        labels = np.array([[10], [3], [1]], np.uint8)[:count]
        head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
        put(
            folder / f"{part}_32x32.mat", head + _matrix("X", pixels, at != 1) + _matrix("y", labels, at != 1)
        )


def wav(seed):
    """The bytes of a sound."""
    samples = np.random.RandomState(seed).randint(-(2**15), 2**15, 6).astype("<i2").tobytes()
    head = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    content = b"WAVEfmt " + head + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(content)) + content


def sounds(folder):
    for at, name in enumerate(("0_0_1_0_1_1_0_1", "1_1_1_0_1_1_0_1")):
        put(folder / "yesno" / f"{name}.wav", wav(at))
    for at, word in enumerate(("bed", "cat")):
        for place in range(3):
            put(folder / "words" / word / f"{'ab'[place % 2]}{place}_nohash_{place}.wav", wav(at + 2 * place))
    put(folder / "words" / "validation_list.txt", "bed/b1_nohash_1.wav\n")
    put(folder / "words" / "testing_list.txt", "cat/a0_nohash_0.wav\n")
    put(folder / "words" / "_background_noise_" / "noise.wav", wav(9))
    put(folder / "read" / "metadata.csv", "LJ001|Of 2 men|Of two men\nLJ002|And,|And,\n")
    for at in (1, 2):
        put(folder / "read" / "wavs" / f"LJ00{at}.wav", wav(at))


def cityscapes(folder):
    for part, cities in (("train", ("aachen", "bochum")), ("val", ("ulm",)), ("test", ("bonn",))):
        for at, city in enumerate(cities):
            for shot in range(2):
                stem = f"{city}_00000{shot}_000019"
                put(folder / "leftImg8bit" / part / city / f"{stem}_leftImg8bit.png", png(at + shot))
                place = folder / "gtFine" / part / city
                for number, kind in enumerate(("color", "instanceIds", "labelIds")):
                    put(place / f"{stem}_gtFine_{kind}.png", png(5 + number + shot))
                put(place / f"{stem}_gtFine_polygons.json", json.dumps({"objects": [shot, city]}))


def kitti(folder):
    for at in range(2):
        put(folder / "data_object_image_2" / "training" / "image_2" / f"{at:06}.png", png(at))
        put(folder / "data_object_image_2" / "testing" / "image_2" / f"{at:06}.png", png(at + 2))
    labels = folder / "data_object_label_2" / "training" / "label_2"
    car = "Car 0.25 2 -1.5 10 20 30.5 40 1.5 1.6 3.7 -2 1.5 9 0.5"
    kinds = ("Truck", "Van", "Tram", "Pedestrian", "Person_sitting", "Cyclist", "Misc", "DontCare")
    put(labels / "000000.txt", car + "\n")
    put(labels / "000001.txt", "\n".join(car.replace("Car", kind) for kind in kinds) + "\n")


def faces(folder):
    split = folder / "wider_face_split"
    for part, count in (("train", 2), ("val", 1)):
        lines = []
        for at in range(count):
            put(folder / f"WIDER_{part}" / "images" / "0--Parade" / f"{at}.jpg", png(at))
            lines += [f"0--Parade/{at}.jpg", str(at + 1)]
            lines += [f"{at} {face} 10 20 1 0 1 2 {at} {face} " for face in range(at + 1)]
        put(split / f"wider_face_{part}_bbx_gt.txt", "\n".join(lines) + "\n")
    put(folder / "WIDER_test" / "images" / "0--Parade" / "7.jpg", png(7))
    put(split / "wider_face_test_filelist.txt", "0--Parade/7.jpg\n")


LAYOUTS = (
    *(cityscapes, kitti, faces),
    *(table, lines, imdb, sst2, squad, multi30k, words),
    *(places, food, sun, caltech, omniglot, lfw, rendered, svhn),
    sounds,
)
