"""Sources of data sets that were added last: small files in their authors' layout, and the rows of them."""

import struct
import wave

import mindspore.dataset as ds
import numpy
import pytest
from PIL import Image


def folder(path):
    path.mkdir(parents=True, exist_ok=True)
    return path


def sound(path, samples, rate=16000):
    folder(path.parent)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))


def picture(path, value, size=(4, 3)):
    folder(path.parent)
    Image.new("RGB", size, (value, value, value)).save(path)


def rows(dataset):
    return list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))


def texts(row):
    return [str(each) for each in row]


def test_cmu_arctic_reads_a_speaker(tmp_path):
    place = tmp_path / "cmu_us_aew_arctic"
    folder(place / "etc").joinpath("txt.done.data").write_text(
        '( arctic_a0001 "Dog." )\n( arctic_a0002 "Cat." )\n'
    )
    sound(place / "wav" / "arctic_a0001.wav", [0, 32767])
    sound(place / "wav" / "arctic_a0002.wav", [16384])
    made = ds.CMUArcticDataset(str(tmp_path), shuffle=False)
    assert made.get_col_names() == ["waveform", "sample_rate", "transcript", "utterance_id"]
    first, second = rows(made)
    assert numpy.allclose(first[0], [[0, 1]])
    assert (first[1].dtype, int(first[1])) == (numpy.uint32, 16000)
    assert texts(first[2:]) == ["Dog.", "a0001"]
    assert texts(second[2:]) == ["Cat.", "a0002"]
    with pytest.raises(ValueError, match="Input name is not within the valid set of"):
        ds.CMUArcticDataset(str(tmp_path), name="nobody")
    with pytest.raises(TypeError, match="Argument name with value"):
        ds.CMUArcticDataset(str(tmp_path), name=["aew"])


def test_libri_tts_reads_books(tmp_path):
    place = folder(tmp_path / "dev-clean" / "2506" / "11267")
    place.joinpath("2506_11267.trans.tsv").write_text(
        "2506_11267_000001_000000\tgood morning\tGood morning\n"
    )
    sound(place / "2506_11267_000001_000000.wav", [100, 200], 24000)
    ((waveform, rate, *rest),) = rows(ds.LibriTTSDataset(str(tmp_path), usage="dev-clean"))
    assert waveform.shape == (1, 2)
    assert int(rate) == 24000
    assert texts(rest) == ["good morning", "Good morning", "2506", "11267", "2506_11267_000001_000000"]
    with pytest.raises(ValueError, match="usage"):
        ds.LibriTTSDataset(str(tmp_path), usage="other")


def test_gtzan_reads_pieces_of_music(tmp_path):
    sound(tmp_path / "blues" / "blues.00000.wav", [1, 2, 3], 22050)
    sound(tmp_path / "rock" / "rock.00001.wav", [4], 22050)
    made = rows(ds.GTZANDataset(str(tmp_path), usage="all", shuffle=False))
    assert [(row[0].shape, int(row[1]), str(row[2])) for row in made] == [
        ((1, 3), 22050, "blues"),
        ((1, 1), 22050, "rock"),
    ]


def test_tedlium_reads_parts_of_talks(tmp_path):
    place = tmp_path / "train"
    folder(place / "stm").joinpath("talk.stm").write_text(
        "talk 1 anna 0.0 0.0002 <o,f0,female> hello there.\n"
    )
    head = "NIST_1A\n   1024\nsample_rate -i 16000\nend_head\n".ljust(1024)
    folder(place / "sph").joinpath("talk.sph").write_bytes(
        head.encode() + struct.pack(">6h", 1, 2, 3, 4, 5, 6)
    )
    ((waveform, rate, *rest),) = rows(ds.TedliumDataset(str(tmp_path), "release1", usage="train"))
    assert (waveform.shape, waveform.dtype) == ((1, 3), numpy.float32)
    assert (int(rate), rate.dtype) == (16000, numpy.int32)
    assert texts(rest) == ["hello there.", "talk", "anna", "<o,f0,female>"]
    with pytest.raises(ValueError, match="release is not within the valid set of"):
        ds.TedliumDataset(str(tmp_path), "release9")


def test_div2k_pairs_large_and_small_pictures(tmp_path):
    picture(tmp_path / "DIV2K_train_HR" / "0001.png", 10, (8, 6))
    picture(tmp_path / "DIV2K_train_LR_bicubic" / "X2" / "0001x2.png", 20, (4, 3))
    picture(tmp_path / "DIV2K_train_LR_wild" / "0001x4w.png", 30, (2, 1))
    ((large, small),) = rows(ds.DIV2KDataset(str(tmp_path), "train", "bicubic", 2, decode=True))
    assert (large.shape, small.shape, int(small[0, 0, 0])) == ((6, 8, 3), (3, 4, 3), 20)
    ((_, wild),) = rows(ds.DIV2KDataset(str(tmp_path), "train", "wild", 4, decode=True))
    assert int(wild[0, 0, 0]) == 30
    with pytest.raises(ValueError, match=r"Input scale is not within the valid set of \[2, 3, 4, 8\]"):
        ds.DIV2KDataset(str(tmp_path), scale=16)


def test_flickr_reads_the_sentences_of_a_picture(tmp_path):
    picture(tmp_path / "img1.jpg", 50)
    listed = tmp_path / "annotations.token"
    listed.write_text("img1.jpg#0\tA dog .\nimg1.jpg#1\tA cat .\n")
    made = ds.FlickrDataset(str(tmp_path), str(listed), decode=True)
    assert made.get_col_names() == ["image", "annotation"]
    ((image, annotation),) = rows(made)
    assert image.shape == (3, 4, 3)
    assert annotation.tolist() == ["A dog .", "A cat ."]


def test_sbu_reads_the_pictures_that_are_there(tmp_path):
    start = "http://static.flickr.com/"
    (tmp_path / "SBU_captioned_photo_dataset_urls.txt").write_text(f"{start}1/a.jpg\n{start}2/b.jpg\n")
    (tmp_path / "SBU_captioned_photo_dataset_captions.txt").write_text("a boat  \na bird\n")
    picture(tmp_path / "sbu_images" / "m_1_a.jpg", 1)
    picture(tmp_path / "sbu_images" / "1_a.jpg", 1)
    made = ds.SBUDataset(str(tmp_path), decode=True)
    assert made.get_col_names() == ["image", "caption"]
    ((image, caption),) = rows(made)
    assert (image.shape, str(caption)) == ((3, 4, 3), "a boat")


def test_lsun_reads_kinds_of_scenes(tmp_path):
    for name in ("bedroom_train", "classroom_train", "bedroom_val", "test"):
        picture(tmp_path / name / "1.jpg", 5)
    counts = {
        usage: len(rows(ds.LSUNDataset(str(tmp_path), usage=usage)))
        for usage in ("train", "valid", "test", "all")
    }
    assert counts == {"train": 2, "valid": 1, "test": 1, "all": 3}
    ((image, label),) = rows(ds.LSUNDataset(str(tmp_path), "train", ["classroom"], decode=True))
    assert (image.shape, label.dtype, int(label)) == ((3, 4, 3), numpy.uint32, 0)


def test_photo_tour_reads_patches(tmp_path):
    place = folder(tmp_path / "liberty")
    sheet = (
        numpy.arange(256).repeat(64 * 64).reshape(16, 16, 64, 64).transpose(0, 2, 1, 3).reshape(1024, 1024)
    )
    Image.fromarray(sheet.astype(numpy.uint8)).save(place / "patches0000.bmp")
    (place / "info.txt").write_text("7 0\n7 0\n9 0\n")
    (place / "m50_100000_100000_0.txt").write_text("3 1 0 18 1 0 0\n255 1 0 0 2 0 0\n")
    first, second = rows(ds.PhotoTourDataset(str(tmp_path), "liberty", "test", shuffle=False))
    assert first[0].shape == (64, 64, 1)
    assert [int(each.max()) for each in first] == [3, 18, 1]
    assert [int(each.max()) for each in second] == [255, 0, 0]
    assert len(rows(ds.PhotoTourDataset(str(tmp_path), "liberty", "train"))) == 3


def test_iwslt_reads_sentences_and_their_translations(tmp_path):
    def files(start, place, sets):
        for language in ("de", "en"):
            tags = f"<url>http</url>\n<talkid>1</talkid>\n{language} one\n {language} two \n"
            folder(place).joinpath(f"train.tags.de-en.{language}").write_text(tags)
            for name in sets:
                sentence = f'<doc docid="1"><seg id="1"> {language} {name} </seg></doc>'
                xml = f"<mteval><srcset>{sentence}</srcset></mteval>"
                (place / f"{start}.{name}.de-en.{language}.xml").write_text(xml)

    files("IWSLT16.TED", tmp_path / "16" / "texts" / "de" / "en" / "de-en", ("tst2013", "tst2014"))
    inner = tmp_path / "17" / "texts" / "DeEnItNlRo" / "DeEnItNlRo" / "DeEnItNlRo-DeEnItNlRo"
    files("IWSLT17.TED", inner, ("dev2010", "tst2010"))
    made = ds.IWSLT2016Dataset(str(tmp_path / "16"), usage="train", language_pair=["de", "en"], shuffle=False)
    assert made.get_col_names() == ["text", "translation"]
    assert [texts(row) for row in rows(made)] == [["de one", "en one"], ["de two", "en two"]]
    valid = ds.IWSLT2016Dataset(str(tmp_path / "16"), usage="valid", language_pair=["de", "en"])
    assert [texts(row) for row in rows(valid)] == [["de tst2013", "en tst2013"]]
    test = ds.IWSLT2017Dataset(str(tmp_path / "17"), usage="test", language_pair=["de", "en"])
    assert [texts(row) for row in rows(test)] == [["de tst2010", "en tst2010"]]
    with pytest.raises(ValueError, match="language_pair"):
        ds.IWSLT2016Dataset(str(tmp_path / "16"), language_pair=["de", "xx"])


_KINDS = {"uint8": (9, 2), "uint16": (11, 4), "float64": (6, 9)}  # of an array, and of its numbers


def element(kind, content):
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def matrix(path, **arrays):
    """A MAT file of level 5."""
    content = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    for name, array in arrays.items():
        kind, numbers = _KINDS[str(array.dtype)]
        content += element(
            14,
            element(6, struct.pack("<II", kind, 0))
            + element(5, struct.pack("<2i", *array.shape))
            + element(1, name.encode())
            + element(numbers, array.tobytes("F")),
        )
    folder(path.parent)
    path.write_bytes(content)


def test_flowers_have_labels_from_0_on(tmp_path):
    matrix(tmp_path / "imagelabels.mat", labels=numpy.array([[7, 102, 1]], numpy.uint8))
    parts = {
        name: numpy.array([[at]], numpy.uint16) for at, name in enumerate(("trnid", "tstid", "valid"), 1)
    }
    matrix(tmp_path / "setid.mat", **parts)
    for number in (1, 2, 3):
        picture(tmp_path / "jpg" / f"image_{number:05}.jpg", number)
        picture(tmp_path / "segmim" / f"segmim_{number:05}.jpg", 9)
    made = rows(ds.Flowers102Dataset(str(tmp_path), usage="all", decode=True, shuffle=False))
    assert [(row[0].shape, int(row[1])) for row in made] == [((3, 4, 3), 6), ((3, 4, 3), 101), ((3, 4, 3), 0)]
    ((_, segmentation, label),) = rows(
        ds.Flowers102Dataset(str(tmp_path), "Segmentation", "test", decode=True)
    )
    assert (segmentation.shape, int(label), label.dtype) == ((3, 4, 3), 101, numpy.uint32)


def test_caltech101_reads_outlines(tmp_path):
    picture(tmp_path / "101_ObjectCategories" / "Faces" / "image_0001.jpg", 1)
    picture(tmp_path / "101_ObjectCategories" / "BACKGROUND_Google" / "image_0001.jpg", 1)
    outline = numpy.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    matrix(tmp_path / "Annotations" / "Faces_2" / "annotation_0001.mat", obj_contour=outline)
    ((image, category, found),) = rows(ds.Caltech101Dataset(str(tmp_path), "all", decode=True))
    assert (image.shape, int(category), found.tolist()) == ((3, 4, 3), 0, outline.tolist())
    ((_, category),) = rows(ds.Caltech101Dataset(str(tmp_path)))
    assert category.dtype == numpy.int64
