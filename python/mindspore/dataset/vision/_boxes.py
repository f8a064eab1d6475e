"""Operations on images with boxes (x, y, width, height, ...)."""

from mindspore._lazy import numpy
from mindspore.dataset import _calls, _checks, _random
from mindspore.dataset._checks import PipelineError
from mindspore.dataset.vision import _geometry
from mindspore.dataset.vision._base import fill_of, size_of
from mindspore.dataset.vision._enums import Border, Inter, border
from mindspore.dataset.vision._geometry import padding_of
from mindspore.dataset.vision._random_ops import RandomCrop, RandomResize, _scale_and_ratio, part_of


def _boxes_of(boxes, image):
    if not isinstance(boxes, numpy.ndarray) or boxes.ndim != 2 or boxes.shape[1] < 4:
        raise PipelineError(
            "BoundingBox: the boxes must be of the shape (N, 4) or wider: (x, y, width, height, ...)"
        )
    high, wide = image.shape[:2]
    x, y, width, height = (boxes[:, at].astype(float) for at in range(4))
    if numpy.any(x < 0) or numpy.any(y < 0) or numpy.any(x + width > wide) or numpy.any(y + height > high):
        raise PipelineError(
            f"BoundingBox: bounding boxes of image is out of bounds: they must lie in it ({high}, {wide})"
        )
    return boxes


class _WithBoxes(_calls.Recorded):
    """Takes an image and boxes (x, y, width, height, ...), and gives both."""

    def __call__(self, image, boxes):
        return self._both(image, _boxes_of(boxes, image))


class RandomHorizontalFlipWithBBox(_WithBoxes):
    """Mirrored with its boxes, with a probability."""

    def __init__(self, prob=0.5):
        self._prob = _checks.probability("prob", prob)

    def _both(self, image, boxes):
        if _random.generator().random() >= self._prob:
            return image, boxes
        made = boxes.copy()
        made[:, 0] = image.shape[1] - boxes[:, 0] - boxes[:, 2]
        return _geometry.HorizontalFlip()(image), made


class RandomVerticalFlipWithBBox(_WithBoxes):
    """Upside down with its boxes, with a probability."""

    def __init__(self, prob=0.5):
        self._prob = _checks.probability("prob", prob)

    def _both(self, image, boxes):
        if _random.generator().random() >= self._prob:
            return image, boxes
        made = boxes.copy()
        made[:, 1] = image.shape[0] - boxes[:, 1] - boxes[:, 3]
        return _geometry.VerticalFlip()(image), made


def _scaled_boxes(boxes, before, after):
    made = boxes.copy()
    across, along = after[1] / before[1], after[0] / before[0]
    for at, factor in ((0, across), (1, along), (2, across), (3, along)):
        made[:, at] = boxes[:, at] * factor
    return made


class ResizeWithBBox(_WithBoxes):
    """Resized with its boxes."""

    def __init__(self, size, interpolation=Inter.BILINEAR):
        self._resize = _geometry.Resize(size, interpolation)

    def _both(self, image, boxes):
        made = self._resize(image)
        return made, _scaled_boxes(boxes, image.shape, made.shape)


class RandomResizeWithBBox(_WithBoxes):
    """Resized by a random interpolation, with its boxes."""

    def __init__(self, size):
        self._resize = RandomResize(size)

    def _both(self, image, boxes):
        made = self._resize(image)
        return made, _scaled_boxes(boxes, image.shape, made.shape)


def _cropped_boxes(boxes, top, left, height, width):
    """The boxes that a part shows, as it shows them."""
    made = boxes.astype(float)
    x, y = numpy.maximum(made[:, 0], left), numpy.maximum(made[:, 1], top)
    right = numpy.minimum(made[:, 0] + made[:, 2], left + width)
    down = numpy.minimum(made[:, 1] + made[:, 3], top + height)
    kept = (right > x) & (down > y)
    made[:, 0], made[:, 1], made[:, 2], made[:, 3] = x - left, y - top, right - x, down - y
    if not kept.any():
        return numpy.zeros((1, boxes.shape[1]), boxes.dtype)
    return made[kept].astype(boxes.dtype)


class RandomCropWithBBox(_WithBoxes):
    """A random part, with the boxes in it."""

    def __init__(self, size, padding=None, pad_if_needed=False, fill_value=0, padding_mode=Border.CONSTANT):
        RandomCrop(size, padding, pad_if_needed, fill_value, padding_mode)
        self._size, self._padding = size_of(size), None if padding is None else padding_of(padding)
        self._if_needed, self._fill = pad_if_needed, fill_of(fill_value)
        self._mode = border("padding_mode", padding_mode)

    def _both(self, image, boxes):
        left, top, right, bottom = self._padding or (0, 0, 0, 0)
        if self._if_needed:
            spare = [max(0, want - have) for want, have in zip(self._size, image.shape[:2], strict=True)]
            top, bottom, left, right = top + spare[0], bottom + spare[0], left + spare[1], right + spare[1]
        image = _geometry.bordered(image, (left, top, right, bottom), self._fill, self._mode)
        boxes = boxes.copy()
        boxes[:, 0] += left
        boxes[:, 1] += top
        height, width = self._size
        if height > image.shape[0] or width > image.shape[1]:
            raise PipelineError(
                f"RandomCropWithBBox: Crop size {self._size} is larger than the image {image.shape[:2]}"
            )
        random = _random.generator()
        down = int(random.integers(image.shape[0] - height + 1))
        along = int(random.integers(image.shape[1] - width + 1))
        part = numpy.ascontiguousarray(image[down : down + height, along : along + width])
        return part, _cropped_boxes(boxes, down, along, height, width)


class RandomResizedCropWithBBox(_WithBoxes):
    """A random part resized, with the boxes in it."""

    def __init__(
        self,
        size,
        scale=(0.08, 1.0),
        ratio=(3.0 / 4.0, 4.0 / 3.0),
        interpolation=Inter.BILINEAR,
        max_attempts=10,
    ):
        _scale_and_ratio(scale, ratio, max_attempts)
        self._resize = _geometry.Resize(size_of(size), interpolation)
        self._arguments = (scale, ratio, max_attempts)

    def _both(self, image, boxes):
        top, left, height, width = part_of(image.shape[:2], *self._arguments)
        part = numpy.ascontiguousarray(image[top : top + height, left : left + width])
        made = self._resize(part)
        return made, _scaled_boxes(
            _cropped_boxes(boxes, top, left, height, width), (height, width), made.shape
        )


class BoundingBoxAugment(_WithBoxes):
    """An operation on a random part (`ratio`) of the boxes."""

    def __init__(self, transform, ratio=0.3):
        if not callable(transform):
            raise TypeError(f"Argument transform with value {transform} is not callable")
        self._transform, self._ratio = transform, _checks.number("ratio", ratio, 0, 1)

    def _both(self, image, boxes):
        image = image.copy()
        count = int(len(boxes) * self._ratio)
        for at in _random.generator().permutation(len(boxes))[:count]:
            x, y, width, height = (int(each) for each in boxes[at, :4])
            part = numpy.ascontiguousarray(image[y : y + height, x : x + width])
            made = self._transform(part)
            if made.shape != part.shape:
                made = _geometry.Resize((height, width))(made)
            image[y : y + height, x : x + width] = made
        return image, boxes
