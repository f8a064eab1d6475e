"""Operations that move pixels: flips, crops, borders, sizes, turns."""

import muster.dataset.vision as ours

from mindspore._lazy import numpy
from mindspore.dataset import _calls, _checks
from mindspore.dataset._checks import PipelineError
from mindspore.dataset.vision import _warp
from mindspore.dataset.vision._base import (
    FLOAT_MAX,
    ImageOperation,
    LibraryOperation,
    factor,
    fill_of,
    image_array,
    is_picture,
    only_bytes,
    pil,
    rounded,
    size_of,
)
from mindspore.dataset.vision._enums import (
    Border,
    Inter,
    SliceMode,
    border,
    inter,
    native_border,
    native_inter,
)


class HorizontalFlip(ImageOperation):
    """Left to right."""

    def _array(self, image):
        return numpy.ascontiguousarray(image[:, ::-1])


class VerticalFlip(ImageOperation):
    """Upside down."""

    def _array(self, image):
        return numpy.ascontiguousarray(image[::-1])


class Crop(ImageOperation):
    """The part of `size` whose upper left corner is (y, x)."""

    def __init__(self, coordinates, size):
        _checks.of_type("coordinates", coordinates, list, tuple)
        if len(coordinates) != 2:
            raise TypeError("coordinates should be a list/tuple (y, x) of length 2.")
        for each in coordinates:
            _checks.of_type("coordinates", each, int)
            if not 0 <= each <= _checks.INT32_MAX:
                raise ValueError("Input coordinates is not within the required interval of [0, 2147483647].")
        self._top, self._left = coordinates
        self._size = size_of(size)

    def _array(self, image):
        height, width = self._size
        if self._top + height > image.shape[0] or self._left + width > image.shape[1]:
            raise PipelineError(
                f"Crop: Crop height dimension: {self._top + height} or width {self._left + width} is "
                f"greater than the "
                f"image {image.shape[:2]}"
            )
        return numpy.ascontiguousarray(image[self._top : self._top + height, self._left : self._left + width])


def _resized(image, size, interpolation):
    """An array at (height, width), by the library's own Resize."""
    return ours.Resize(size, native_inter(interpolation))(numpy.ascontiguousarray(image))


class Resize(LibraryOperation, ours.Resize):
    """An image at another size; `size` is (height, width), or a number for the shorter side."""

    def __init__(self, size, interpolation=Inter.LINEAR):
        size_of(size)
        self._inter = inter("interpolation", interpolation)
        self._size = size
        native = native_inter(self._inter) if self._inter in (0, 2, 3, 4) else ours.Inter.CUBIC
        super().__init__(size, native)

    def _in_library(self, image):
        if self._inter != Inter.PILCUBIC:
            return super()._in_library(image)
        only_bytes(image, "Resize", (3,))
        return _warp.cubic_of_pillow(image, self._to(*image.shape[:2]))

    def _checked(self, image):
        if self._inter not in (0, 2, 3, 4, Inter.PILCUBIC):
            native_inter(self._inter)
        return super()._checked(image)

    def _to(self, height, width):
        """The new (height, width)."""
        if not _checks.is_whole(self._size):
            return size_of(self._size)
        side = self._size
        return (int(side * height / width), side) if width <= height else (side, int(side * width / height))

    def _picture(self, image):
        width, height = image.size
        return image.resize(self._to(height, width)[::-1], _warp.picture_mode(self._inter))


class CenterCrop(LibraryOperation, ours.CenterCrop):
    """The middle of the image; black around it where the image is smaller."""

    def __init__(self, size):
        self._size = size_of(size)
        super().__init__(size)

    def _picture(self, image):
        height, width = self._size
        left, top = round((image.size[0] - width) / 2.0), round((image.size[1] - height) / 2.0)
        return image.crop((left, top, left + width, top + height))


def padding_of(padding):
    """(left, top, right, bottom) of a number, two or four."""
    _checks.of_type("padding", padding, int, list, tuple)
    given = [padding] if _checks.is_whole(padding) else list(padding)
    if not _checks.is_whole(padding) and len(given) not in (2, 4):
        raise ValueError("The size of the padding list or tuple should be 2 or 4.")
    for each in given:
        _checks.of_type("padding", each, int)
        if not 0 <= each <= _checks.INT32_MAX:
            raise ValueError("Input padding_value is not within the required interval of [0, 2147483647].")
    if len(given) == 1:
        return tuple(given * 4)
    return (given[0], given[1], given[0], given[1]) if len(given) == 2 else tuple(given)


_PAD_MODES = {Border.EDGE: "edge", Border.REFLECT: "reflect", Border.SYMMETRIC: "symmetric"}


def bordered(image, padding, fill, mode):
    """An array with a border: padding is (left, top, right, bottom)."""
    left, top, right, bottom = padding
    around = [(top, bottom), (left, right)] + [(0, 0)] * (image.ndim - 2)
    if mode != Border.CONSTANT:
        return numpy.pad(image, around, _PAD_MODES[mode])
    made = numpy.pad(image, around)
    by_channel = image.ndim == 3 and image.shape[2] <= len(fill)
    colour = numpy.array(fill[: image.shape[2]] if by_channel else fill[0], image.dtype)
    made[:top], made[made.shape[0] - bottom :] = colour, colour
    made[:, :left], made[:, made.shape[1] - right :] = colour, colour
    return made


class Pad(LibraryOperation, ours.Pad):
    """A border around the image."""

    def __init__(self, padding, fill_value=0, padding_mode=Border.CONSTANT):
        self._padding, self._fill = padding_of(padding), fill_of(fill_value)
        self._mode = border("padding_mode", padding_mode)
        super().__init__(list(self._padding), list(self._fill), native_border(self._mode))

    def _picture(self, image):
        if self._mode == Border.CONSTANT:
            fill = self._fill if len(image.getbands()) == 3 else self._fill[0]
            return pil().ImageOps.expand(image, border=self._padding, fill=fill)
        return pil().Image.fromarray(self(numpy.asarray(image)))


def _room(size):
    """(height, width) that an image is filled up to."""
    _checks.of_type("size", size, int, list, tuple)
    given = [size, size] if _checks.is_whole(size) else list(size)
    if len(given) != 2:
        raise ValueError("The size must be a sequence of length 2.")
    return tuple(_checks.whole("size", each, 1) for each in given)


class PadToSize(ImageOperation):
    """A border that makes the image `size`, at `offset` (in the middle)."""

    def __init__(self, size, offset=None, fill_value=0, padding_mode=Border.CONSTANT):
        self._size = _room(size)
        _checks.of_type("offset", offset, int, list, tuple, optional=True)
        if offset is not None:
            given = offset
            offset = [offset] if _checks.is_whole(offset) else list(offset)
            if (len(offset) == 1 and not _checks.is_whole(given)) or len(offset) > 2:
                raise ValueError("The offset must be empty or a sequence of length 2.")
            for each in offset:
                _checks.whole("offset", each, 0)
            offset = offset * 2 if len(offset) == 1 else offset or None
        self._offset, self._fill = offset, fill_of(fill_value)
        self._mode = border("padding_mode", padding_mode)

    def _array(self, image):
        spare = [want - have for want, have in zip(self._size, image.shape[:2], strict=True)]
        top, left = self._offset or (spare[0] // 2, spare[1] // 2)
        if min(spare) < 0 or spare[0] < top or spare[1] < left:
            raise PipelineError(
                f"PadToSize: the image {image.shape[:2]} at ({top}, {left}) is larger than {self._size}"
            )
        return bordered(image, (left, top, spare[1] - left, spare[0] - top), self._fill, self._mode)


class Erase(ImageOperation):
    """One colour in a rectangle."""

    def __init__(self, top, left, height, width, value=0.0, inplace=False):
        self._top, self._left = _checks.whole("top", top, 0), _checks.whole("left", left, 0)
        self._height, self._width = _checks.whole("height", height, 1), _checks.whole("width", width, 1)
        _checks.of_type("value", value, int, float, list, tuple)
        for each in [value] if _checks.is_number(value) else value:
            _checks.number("value", each, 0, 255)
        self._value, self._inplace = value, _checks.of_type("inplace", inplace, bool)

    def _array(self, image):
        made = image if self._inplace else image.copy()
        value = numpy.asarray(self._value).astype(image.dtype)
        made[self._top : self._top + self._height, self._left : self._left + self._width] = value
        return made


class ResizedCrop(ImageOperation):
    """A rectangle of the image at another size."""

    def __init__(self, top, left, height, width, size, interpolation=Inter.BILINEAR):
        self._top, self._left = _checks.whole("top", top, 0), _checks.whole("left", left, 0)
        self._height, self._width = _checks.whole("height", height, 1), _checks.whole("width", width, 1)
        self._size, self._given = size_of(size), size
        self._inter = inter("interpolation", interpolation)

    def _array(self, image):
        if self._top + self._height > image.shape[0] or self._left + self._width > image.shape[1]:
            raise PipelineError(f"ResizedCrop: the rectangle is outside of the image {image.shape[:2]}")
        part = image[self._top : self._top + self._height, self._left : self._left + self._width]
        return _resized(part, self._size, self._inter)


class Rotate(ImageOperation):
    """Turned counter-clockwise by `degrees`."""

    def __init__(self, degrees, resample=Inter.NEAREST, expand=False, center=None, fill_value=0):
        self._degrees = factor("degrees", degrees, -FLOAT_MAX)
        self._inter = inter("resample", resample)
        self._expand = _checks.of_type("expand", expand, bool)
        if center is not None and (not isinstance(center, tuple) or len(center) != 2):
            raise ValueError("Value center needs to be a 2-tuple.")
        self._center, self._fill = center, fill_of(fill_value)

    def _array(self, image):
        # MindSpore 2.7.0 has the colour of the corners the other way round here, and in no other operation.
        fill = self._fill[::-1]
        return _warp.rotated(image, self._degrees, self._inter, self._expand, self._center, fill)


class Affine(ImageOperation):
    """Turned, moved, scaled and sheared about the middle."""

    def __init__(self, degrees, translate, scale, shear, resample=Inter.NEAREST, fill_value=0):
        self._degrees = _checks.number("degrees", degrees, -180, 180)
        _checks.of_type("translate", translate, list, tuple)
        if len(translate) != 2:
            raise TypeError("The length of translate should be 2.")
        self._translate = [_checks.number("translate", each, -1, 1) for each in translate]
        self._scale = _checks.number("scale", scale, above=0)
        _checks.of_type("shear", shear, int, float, list, tuple)
        given = [shear, 0.0] if _checks.is_number(shear) else list(shear)
        if len(given) != 2:
            raise TypeError("The length of shear should be 2.")
        self._shear = [_checks.number("shear", each, -180, 180) for each in given]
        self._inter, self._fill = inter("resample", resample), fill_of(fill_value)

    def _array(self, image):
        height, width = image.shape[:2]
        moved = (self._translate[0] * width, self._translate[1] * height)
        matrix = _warp.affine_matrix((height, width), self._degrees, moved, self._scale, self._shear)
        return _warp.affine(image, matrix, (height, width), self._inter, self._fill)

    def _of_picture(self, image):
        """What RandomAffine does with a picture of PIL: about a middle half a pixel further."""
        width, height = image.size
        moved = [float(numpy.rint(self._translate[at] * image.size[at])) for at in (0, 1)]
        matrix = _warp.picture_matrix(image.size, self._degrees, moved, self._scale, self._shear)
        fill = self._fill if len(image.getbands()) == 3 else self._fill[0]
        images = pil().Image
        how = _warp.picture_mode(self._inter)
        return image.transform((width, height), images.Transform.AFFINE, matrix, how, fillcolor=fill)


class Perspective(ImageOperation):
    """Four points (x, y) moved to four others."""

    def __init__(self, start_points, end_points, interpolation=Inter.BILINEAR):
        for name, points in (("start_points", start_points), ("end_points", end_points)):
            _checks.of_type(name, points, list, tuple)
            if len(points) != 4:
                raise TypeError(f"{name} should be a list or tuple of length 4.")
            for point in points:
                _checks.of_type(name, point, list, tuple)
                if len(point) != 2:
                    raise TypeError(f"each of {name} should be a list or tuple of length 2.")
        self._old, self._new = start_points, end_points
        self._inter = inter("interpolation", interpolation)

    def _array(self, image):
        return _warp.projective(image, _warp.matrix_of_points(self._old, self._new), self._inter)

    def _picture(self, image):
        back = _warp.matrix_of_points(self._new, self._old).reshape(-1)[:8]
        images = pil().Image
        return image.transform(
            image.size, images.Transform.PERSPECTIVE, back, _warp.picture_mode(self._inter)
        )


class GaussianBlur(ImageOperation):
    """Blurred by a bell curve of `kernel_size` (x, y) pixels."""

    def __init__(self, kernel_size, sigma=None):
        _checks.of_type("kernel_size", kernel_size, int, list, tuple)
        sizes = [kernel_size] * 2 if _checks.is_whole(kernel_size) else list(kernel_size)
        if len(sizes) != 2:
            raise TypeError("`kernel_size` should be a single integer or a list/tuple of length 2.")
        for each in sizes:
            _checks.whole("kernel_size", each, 1)
            if each % 2 == 0:
                raise ValueError(f"Argument kernel_size with value {each} is not an odd value.")
        _checks.of_type("sigma", sigma, int, float, list, tuple, optional=True)
        if sigma is None:
            sigma = [each * 0.15 + 0.35 for each in sizes]
        sigma = [sigma] * 2 if _checks.is_number(sigma) else list(sigma)
        if len(sigma) != 2:
            raise TypeError("`sigma` should be a single number or a list/tuple of length 2.")
        self._sizes, self._sigma = sizes, [factor("sigma", each) for each in sigma]

    def _array(self, image):
        wide = image.astype(numpy.float64)
        for axis, size, sigma in ((1, self._sizes[0], self._sigma[0]), (0, self._sizes[1], self._sigma[1])):
            wide = _blurred(wide, axis, size, sigma, image.dtype == numpy.uint8)
        return rounded(numpy.floor(wide + 0.5) if image.dtype == numpy.uint8 else wide, image)


def _blurred(values, axis, size, sigma, is_bytes):
    if size == 1:
        return values
    sigma = sigma if sigma > 0 else 0.3 * ((size - 1) * 0.5 - 1) + 0.8
    half = size // 2
    places = numpy.arange(size) - half
    weights = numpy.exp(-(places**2) / (2 * sigma * sigma))
    weights = weights / weights.sum()
    if is_bytes:  # OpenCV's weights are parts of 256
        weights = _whole_weights(weights) / 256
    around = [(half, half) if at == axis else (0, 0) for at in range(values.ndim)]
    padded = (
        numpy.pad(values, around, "reflect") if values.shape[axis] > 1 else numpy.pad(values, around, "edge")
    )
    length = values.shape[axis]
    return sum(weight * padded.take(range(at, at + length), axis) for at, weight in enumerate(weights))


def _whole_weights(weights):
    """In parts of 256, what rounding takes from one given to the next; the middle has the rest."""
    made, half, left = numpy.zeros(len(weights)), len(weights) // 2, 0.0
    for at in range(half):
        wanted = weights[at] * 256 + left
        made[at] = made[-1 - at] = numpy.rint(wanted)
        left = wanted - made[at]
    made[half] = 256 - made.sum()
    return made


class CutOut(ImageOperation):
    """`num_patches` black squares at random places."""

    def __init__(self, length, num_patches=1, is_hwc=True):
        self._length = _checks.whole("length", length, 1)
        self._patches = _checks.whole("num_patches", num_patches, 1)
        self._is_hwc = _checks.of_type("is_hwc", is_hwc, bool)

    def _array(self, image):
        from mindspore.dataset import _random

        random = _random.generator()
        if image.ndim != 3:
            raise PipelineError(f"CutOut: shape is invalid: {image.shape} has not three axes")
        made = image.copy()
        seen = made if self._is_hwc else numpy.moveaxis(made, 0, -1)
        height, width = seen.shape[:2]
        if self._length > height or self._length > width:
            raise PipelineError(
                f"CutOut: box size {self._length} is too large for the image {seen.shape[:2]}"
            )
        for _ in range(self._patches):
            top, left = (int(random.integers(size - self._length + 1)) for size in (height, width))
            seen[top : top + self._length, left : left + self._length] = 0
        return made


class SlicePatches(_calls.Recorded):
    """The image cut into num_height times num_width patches."""

    def __init__(self, num_height=1, num_width=1, slice_mode=SliceMode.PAD, fill_value=0):
        self._rows, self._columns = (
            _checks.whole("num_height", num_height, 1),
            _checks.whole("num_width", num_width, 1),
        )
        if not isinstance(slice_mode, SliceMode):
            raise TypeError(
                f"Argument slice_mode with value {slice_mode} is not of type [<enum 'SliceMode'>], but got "
                f"{type(slice_mode)}."
            )
        self._mode, self._fill = slice_mode, _checks.whole("fill_value", fill_value, 0, 255)

    def __call__(self, image):
        image = image_array(numpy.asarray(image) if is_picture(image) else image, "SlicePatches")
        sizes = []
        for size, parts in zip(image.shape[:2], (self._rows, self._columns), strict=True):
            if parts > size:
                raise PipelineError(
                    f"SlicePatches: the image {image.shape[:2]} is smaller than its patches are many"
                )
            sizes.append(-(-size // parts) if self._mode == SliceMode.PAD else size // parts)
        more = [
            each * parts - size
            for each, parts, size in zip(sizes, (self._rows, self._columns), image.shape, strict=False)
        ]
        if self._mode == SliceMode.PAD:
            image = bordered(image, (0, 0, more[1], more[0]), (self._fill,) * 3, Border.CONSTANT)
        high, wide = sizes
        patches = [
            numpy.ascontiguousarray(image[row * high : (row + 1) * high, column * wide : (column + 1) * wide])
            for row in range(self._rows)
            for column in range(self._columns)
        ]
        return tuple(patches) if len(patches) > 1 else patches[0]


class FiveCrop(ImageOperation):
    """The four corners and the middle of a picture of PIL."""

    def __init__(self, size):
        self._size = size_of(size)

    def _apply(self, image):
        if not is_picture(image):
            raise TypeError(f"Input should be PIL image, got {type(image)}.")
        return five_of(image, self._size)


def five_of(image, size):
    """As FiveCrop."""
    height, width = size
    wide, high = image.size
    if width > wide or height > high:
        raise ValueError(f"Crop size {size} is bigger than input size {(high, wide)}.")
    corners = [(0, 0), (wide - width, 0), (0, high - height), (wide - width, high - height)]
    corners.append((round((wide - width) / 2.0), round((high - height) / 2.0)))
    return tuple(image.crop((left, top, left + width, top + height)) for left, top in corners)


class TenCrop(ImageOperation):
    """FiveCrop of a picture of PIL and of it mirrored."""

    def __init__(self, size, use_vertical_flip=False):
        self._size = size_of(size)
        self._vertical = _checks.of_type("use_vertical_flip", use_vertical_flip, bool)

    def _apply(self, image):
        if not is_picture(image):
            raise TypeError(f"Input should be PIL image, got {type(image)}.")
        ops = pil().ImageOps
        other = ops.flip(image) if self._vertical else ops.mirror(image)
        return five_of(image, self._size) + five_of(other, self._size)
