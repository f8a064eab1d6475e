"""Operations on images and other values: what MindSpore 2.7.0 refuses, and colours as it fills them."""

import sys

import numpy as np
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

from mindspore.dataset import transforms, vision

IMAGE = (np.arange(11 * 9 * 3) % 251).reshape(11, 9, 3).astype(np.uint8)


@pytest.mark.parametrize(
    ("make", "kind", "word"),
    [
        (lambda: vision.CenterCrop((5,)), TypeError, r"list/tuple \(h, w\) of length 2"),
        (lambda: vision.Resize("7"), TypeError, "Size should be a single integer"),
        (lambda: vision.RandomCrop(1 << 25), ValueError, r"Input is not .* \[1, 16777216\]"),
        (lambda: vision.PadToSize((1, 2, 3)), ValueError, "sequence of length 2"),
        (lambda: vision.PadToSize(20, (1,)), ValueError, "offset must be empty or a sequence of length 2"),
        (lambda: vision.Pad((1,)), ValueError, "2 or 4"),
        (lambda: vision.RandomRotation(9, fill_value=[1, 2, 3]), TypeError, "3-tuple"),
        (lambda: vision.Rotate(9, center="x"), ValueError, "2-tuple"),
        (lambda: vision.Rotate(1e9), ValueError, "16777216"),
        (lambda: vision.Affine(200, (0, 0), 1.0, 0), ValueError, r"degrees .* \[-180, 180\]"),
        (lambda: vision.AdjustGamma(1e9), ValueError, r"Input is not .* \[0, 16777216\]"),
        (lambda: vision.AdjustContrast(1e9), ValueError, "16777216"),
        (lambda: vision.RandomColor(["x", 1]), TypeError, r"degrees\[0\]"),
        (lambda: vision.CutOut(3)(IMAGE[..., 0]), RuntimeError, "shape is invalid"),
        (lambda: vision.MixUp(3, 1.0)(np.stack([IMAGE] * 2), np.eye(2)), ValueError, "batch"),
        (lambda: vision.RgbToHsv(True)(IMAGE[..., 0]), TypeError, "img shape should be"),
        (lambda: vision.ToType((0.5, 1.5)), TypeError, "dtype"),
        (lambda: transforms.TypeCast((-1, 2)), TypeError, "dtype"),
        (lambda: transforms.Concatenate(np.array([1.0, 2.0])), TypeError, "Argument axis"),
        (lambda: transforms.Unique()(np.array([4, 4])), RuntimeError, "at least 2-D"),
        (lambda: transforms.Unique()(np.array([["a"], ["b"]])), RuntimeError, "numeric"),
        (lambda: transforms.OneHot(3)(np.array("b")), RuntimeError, "int type"),
        (lambda: transforms.OneHot(3)(np.array(1.0)), RuntimeError, "int type"),
        (
            lambda: transforms.Mask(transforms.Relational.EQ, "b")(np.array([1, 2])),
            RuntimeError,
            "datatype does not match",
        ),
    ],
)
def test_operations_refuse_what_mindspore_refuses(make, kind, word):
    with pytest.raises(kind, match=word):
        make()


def test_rotate_fills_its_corners_with_the_colour_the_other_way_round():
    colour = {"fill_value": (7, 8, 9)}
    for operation in (vision.Rotate(45, **colour), vision.RandomRotation((45, 45), **colour)):
        assert operation(IMAGE)[0, 0].tolist() == [9, 8, 7]
    assert vision.Affine(45, (0, 0), 1.0, 0, **colour)(IMAGE)[0, 0].tolist() == [7, 8, 9]


def test_a_random_affine_turns_by_more_than_half_a_circle():
    turned = vision.RandomAffine((359.5, 360.5))(IMAGE)
    assert np.mean(turned == IMAGE) > 0.8


def test_hue_and_saturation_are_float64():
    for operation in (vision.RgbToHsv(True), vision.HsvToRgb(True)):
        assert operation((IMAGE / 255).astype(np.float32)).dtype == np.float64
