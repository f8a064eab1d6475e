"""Operations of datasets that are made from rows: names, arguments, errors, what they say of themselves."""

import numpy
import pytest
from muster.dataset import transforms, vision

from muster import _core

MODULES = {"vision": (vision, _core._vision), "transforms": (transforms, _core._transforms)}
NAMES = [(module, name) for module, (_, classes) in MODULES.items() for name in sorted(classes)]
IMAGE = numpy.random.default_rng(1).integers(0, 256, (32, 24, 3), numpy.uint8)


def test_arguments_come_by_place_or_by_name():
    by_place = vision.Pad((1, 2), 7, vision.Border.CONSTANT)(IMAGE)
    by_name = vision.Pad(padding_mode=vision.Border.CONSTANT, fill_value=7, padding=[1, 2, 1, 2])(IMAGE)
    assert by_place.tolist() == by_name.tolist()
    assert vision.RandomCrop(8, None)(IMAGE).shape == (8, 8, 3)
    assert vision.ToTensor(None)(IMAGE).dtype == numpy.float32
    assert repr(vision.CenterCrop(4)) == "CenterCrop"


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (
            lambda: vision.CenterCrop(),
            TypeError,
            r"called.*CenterCrop\(size\)",
        ),
        (lambda: vision.CenterCrop(1, 2), TypeError, "CenterCrop: 2 arguments were given"),
        (lambda: vision.CenterCrop(side=1), TypeError, r"CenterCrop.*argument.*side=1"),
        (lambda: vision.CenterCrop("a"), TypeError, r"size must be int \| .*, not str \('a'\)"),
        (lambda: vision.CenterCrop((1, 2, 3)), ValueError, r"size.*height"),
        (lambda: vision.Resize(4, "area"), TypeError, r"Resize.*interpolation"),
        (lambda: vision.Decode(to_pil=True), ValueError, "no PIL image"),
        (lambda: vision.Normalize(1.0, [1.0]), TypeError, "Normalize: mean must be"),
    ],
)
def test_errors_name_the_operation_the_argument_and_what_is_allowed(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_may_be_subclassed():
    class Thumbnail(vision.Resize):
        def __init__(self):
            super().__init__((8, 6))

    assert Thumbnail()(IMAGE).shape == (8, 6, 3)
