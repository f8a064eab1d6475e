"""Operations that draw what they do; each row has random numbers of its own."""

import math

import muster.dataset.vision as ours

from mindspore._lazy import numpy
from mindspore.dataset import _calls, _checks, _random
from mindspore.dataset.vision import _color, _geometry, _warp
from mindspore.dataset.vision._base import (
    FLOAT_MAX,
    ImageOperation,
    LibraryOperation,
    fill_of,
    is_picture,
    only_bytes,
    pil,
    rounded,
    size_of,
)
from mindspore.dataset.vision._enums import Border, Inter, border, inter, native_border, native_inter
from mindspore.dataset.vision._geometry import padding_of


def _uniform(low, high):
    return float(_random.generator().uniform(low, high)) if low < high else float(low)


class _Drawn(ImageOperation):
    """Draws an operation for each image."""

    def _apply(self, image):
        operation = self._draw(image)
        return image if operation is None else operation(image)


class _Maybe(_Drawn):
    """Does it with a probability."""

    def __init__(self, prob=0.5):
        self._prob = _checks.probability("prob", prob)

    def _apply(self, image):
        return super()._apply(numpy.asarray(image) if is_picture(image) else image)

    def _draw(self, image):
        return self._operation() if _random.generator().random() < self._prob else None


class RandomInvert(_Maybe):
    """Inverts with a probability."""

    def _operation(self):
        return _color.Invert()


class RandomEqualize(_Maybe):
    """Equalizes with a probability."""

    def _operation(self):
        return _color.Equalize()


class RandomAutoContrast(_Maybe):
    """Stretches contrast with a probability."""

    def __init__(self, cutoff=0.0, ignore=None, prob=0.5):
        self._made = _color.AutoContrast(cutoff, ignore)
        super().__init__(prob)

    def _operation(self):
        return self._made


class RandomAdjustSharpness(_Maybe):
    """Sharpens by `degree` with a probability."""

    def __init__(self, degree, prob=0.5):
        self._made = _color.AdjustSharpness(_checks.number("degree", degree, 0))
        super().__init__(prob)

    def _operation(self):
        return self._made


class RandomGrayscale(_Drawn):
    """A picture of PIL in gray with a probability."""

    def __init__(self, prob=0.1):
        self._prob = _checks.probability("prob", prob)

    def _apply(self, image):
        if not is_picture(image):
            raise TypeError(f"Input should be PIL image, got {type(image)}.")
        if _random.generator().random() >= self._prob:
            return image
        return _color.grayscale(image, 1 if image.mode == "L" else 3)


def _factors(name, value, low=0.0, high=math.inf, middle=1.0):
    """(least, most) of a number about `middle`, or of two."""
    _checks.of_type(name, value, int, float, list, tuple)
    if _checks.is_number(value):
        if value < 0:
            raise ValueError(f"The input value of {name} cannot be negative.")
        given = [max(low, middle - value), middle + value]
    else:
        given = list(value)
        if len(given) != 2:
            raise TypeError(f"If {name} is a sequence, the length must be 2.")
    for each in given:
        _checks.number(name, each, low, min(high, FLOAT_MAX))
    if given[0] > given[1]:
        raise ValueError(f"{name} value should be in (min,max) format. Got {tuple(given)}.")
    return tuple(float(each) for each in given)


class RandomColorAdjust(ImageOperation):
    """Brightness, contrast, saturation and hue, each by a random factor."""

    def __init__(self, brightness=(1, 1), contrast=(1, 1), saturation=(1, 1), hue=(0, 0)):
        self._ranges = [
            (_color.AdjustBrightness, _factors("brightness", brightness)),
            (_color.AdjustContrast, _factors("contrast", contrast)),
            (_color.AdjustSaturation, _factors("saturation", saturation)),
            (_color.AdjustHue, _factors("hue", hue, -0.5, 0.5, 0.0)),
        ]

    def _apply(self, image):
        for at in _random.generator().permutation(len(self._ranges)):
            operation, (low, high) = self._ranges[at]
            neutral = 0 if operation is _color.AdjustHue else 1
            # Of a picture the hue is always turned, by 0 too: MindSpore's pixels pass through HSV.
            if low != neutral or high != neutral or is_picture(image):
                image = operation(_uniform(low, high))(image)
            elif not is_picture(image):
                only_bytes(image, "RandomColorAdjust", (3,))
        return image


class RandomColor(_Drawn):
    """Towards gray or away from it."""

    def __init__(self, degrees=(0.1, 1.9)):
        self._low, self._high = _degrees_of(degrees)

    def _draw(self, image):
        return _color.AdjustSaturation(_uniform(self._low, self._high))


class RandomSharpness(_Drawn):
    """Smoother or sharper."""

    def __init__(self, degrees=(0.1, 1.9)):
        self._low, self._high = _degrees_of(degrees)

    def _apply(self, image):
        factor = _uniform(self._low, self._high)
        if is_picture(image):
            return pil().ImageEnhance.Sharpness(image).enhance(factor)
        return _color.AdjustSharpness(factor)(image)


def _degrees_of(degrees):
    _checks.of_type("degrees", degrees, list, tuple)
    if len(degrees) != 2:
        raise ValueError("degrees must be a sequence with length 2.")
    for at, each in enumerate(degrees):
        _checks.of_type(f"degrees[{at}]", each, int, float)
        _checks.number("degrees", each, 0)
    if degrees[0] > degrees[1]:
        raise ValueError("degrees should be in (min,max) format. Got (max,min).")
    return degrees


class RandomPosterize(_Drawn):
    """The highest bits of each value, a random number of them."""

    def __init__(self, bits=(8, 8)):
        _checks.of_type("bits", bits, int, list, tuple)
        given = [bits, bits] if _checks.is_whole(bits) else list(bits)
        if len(given) != 2:
            raise TypeError("Size of bits should be a single integer or a list/tuple (min, max) of length 2.")
        for each in given:
            _checks.whole("bits", each, 1, 8)
        if given[0] > given[1]:
            raise ValueError("bits should be in (min,max) format. Got (max,min).")
        self._low, self._high = given

    def _draw(self, image):
        return _color.Posterize(int(_random.generator().integers(self._low, self._high + 1)))


class RandomSolarize(_Drawn):
    """Values of a random range inverted."""

    def __init__(self, threshold=(0, 255)):
        _checks.of_type("threshold", threshold, tuple)
        if len(threshold) != 2:
            raise ValueError("threshold must be a sequence of two numbers.")
        for each in threshold:
            _checks.whole("threshold", each, 0, 255)
        if threshold[0] > threshold[1]:
            raise ValueError("threshold should be in (min,max) format. Got (max,min).")
        self._low, self._high = threshold

    def _draw(self, image):
        if self._low == self._high:
            return _color.Solarize((self._low, self._high))
        low, high = sorted(int(each) for each in _random.generator().integers(self._low, self._high + 1, 2))
        return _color.Solarize((low, high))


class RandomLighting(ImageOperation):
    """The noise of AlexNet: along the main axes of the colours of ImageNet."""

    _AXES = numpy.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
    _SIZES = numpy.array([55.46, 4.794, 1.148])

    def __init__(self, alpha=0.05):
        self._alpha = _checks.number("alpha", alpha, 0, FLOAT_MAX)

    def _array(self, image):
        only_bytes(image, "RandomLighting", (3,))
        drawn = _random.generator().normal(0, self._alpha, 3) if self._alpha else numpy.zeros(3)
        return rounded(image + self._AXES @ (drawn * self._SIZES), image)


# ---- Places ------------------------------------------------------------------------------------------------


class _MaybeFlip(LibraryOperation):
    def __init__(self, prob=0.5):
        self._prob = _checks.probability("prob", prob)
        super().__init__(prob)

    def _picture(self, image):
        if _random.generator().random() >= self._prob:
            return image
        return getattr(pil().ImageOps, self._flip)(image)


class RandomHorizontalFlip(_MaybeFlip, ours.RandomHorizontalFlip):
    """Mirrored with a probability."""

    _flip = "mirror"


class RandomVerticalFlip(_MaybeFlip, ours.RandomVerticalFlip):
    """Upside down with a probability."""

    _flip = "flip"


class RandomCrop(LibraryOperation, ours.RandomCrop):
    """A part of `size` from a random place."""

    def __init__(self, size, padding=None, pad_if_needed=False, fill_value=0, padding_mode=Border.CONSTANT):
        self._size = size_of(size)
        self._padding = None if padding is None else padding_of(padding)
        self._if_needed = _checks.of_type("pad_if_needed", pad_if_needed, bool)
        self._fill, self._mode = fill_of(fill_value), border("padding_mode", padding_mode)
        native = None if self._padding is None else list(self._padding)
        super().__init__(list(self._size), native, pad_if_needed, list(self._fill), native_border(self._mode))

    def _picture(self, image):
        pad = _geometry.Pad
        if self._padding is not None:
            image = pad(self._padding, self._fill, self._mode)(image)
        height, width = self._size
        if self._if_needed and image.size[0] < width:
            image = pad((width - image.size[0], 0), self._fill, self._mode)(image)
        if self._if_needed and image.size[1] < height:
            image = pad((0, height - image.size[1]), self._fill, self._mode)(image)
        if width > image.size[0] or height > image.size[1]:
            raise ValueError(f"Crop size {self._size} is larger than input image size {image.size[::-1]}.")
        random = _random.generator()
        left = int(random.integers(image.size[0] - width + 1))
        top = int(random.integers(image.size[1] - height + 1))
        return image.crop((left, top, left + width, top + height))


def _scale_and_ratio(scale, ratio, max_attempts):
    for name, values in (("scale", scale), ("ratio", ratio)):
        _checks.of_type(name, values, list, tuple)
        if len(values) != 2:
            raise TypeError(f"{name} should be a list/tuple of length 2.")
        for each in values:
            _checks.number(name, each, 0)
        if values[0] > values[1]:
            raise ValueError(f"{name} should be in (min,max) format. Got (max,min).")
        if values[1] <= 0:
            raise ValueError(f"{name}: its maximum must be above 0")
    if ratio[0] <= 0:
        raise ValueError("ratio[0] must be above 0")
    _checks.whole("max_attempts", max_attempts, 1)


class RandomResizedCrop(LibraryOperation, ours.RandomResizedCrop):
    """A part of random area and shape, resized."""

    def __init__(
        self,
        size,
        scale=(0.08, 1.0),
        ratio=(3.0 / 4.0, 4.0 / 3.0),
        interpolation=Inter.BILINEAR,
        max_attempts=10,
    ):
        self._size, self._inter = size_of(size), inter("interpolation", interpolation)
        _scale_and_ratio(scale, ratio, max_attempts)
        self._scale, self._ratio, self._attempts = scale, ratio, max_attempts
        native = native_inter(self._inter) if self._inter in (0, 2, 3, 4) else ours.Inter.CUBIC
        super().__init__(list(self._size), list(scale), list(ratio), native, max_attempts)

    def _checked(self, image):
        if self._inter not in (0, 2, 3, 4):
            native_inter(self._inter)
        return super()._checked(image)

    def _picture(self, image):
        top, left, height, width = part_of(image.size[::-1], self._scale, self._ratio, self._attempts)
        made = image.crop((left, top, left + width, top + height))
        return made.resize(self._size[::-1], _warp.picture_mode(self._inter))


def part_of(size, scale, ratio, attempts):
    """(top, left, height, width) of a random part of an image of `size`."""
    high, wide = size
    random = _random.generator()
    for _ in range(attempts):
        area = high * wide * _uniform(*scale)
        shape = math.exp(_uniform(math.log(ratio[0]), math.log(ratio[1])))
        width, height = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < width <= wide and 0 < height <= high:
            top, left = int(random.integers(high - height + 1)), int(random.integers(wide - width + 1))
            return top, left, height, width
    shape = wide / high
    if shape < ratio[0]:
        width, height = wide, round(wide / ratio[0])
    elif shape > ratio[1]:
        width, height = round(high * ratio[1]), high
    else:
        width, height = wide, high
    return (high - height) // 2, (wide - width) // 2, height, width


class RandomCropDecodeResize(RandomResizedCrop):
    """Decode, then RandomResizedCrop."""

    _decode = ours.Decode()

    def __call__(self, image):
        if not isinstance(image, numpy.ndarray):
            raise TypeError(f"Input should be an encoded image in 1-D NumPy format, got {type(image)}.")
        if image.ndim != 1 or image.dtype != numpy.uint8:
            raise TypeError(
                f"Input should be an encoded image of uint8 with one axis, got {image.dtype} {image.shape}."
            )
        return super().__call__(self._decode(image))

    @property
    def _parts(self):
        """What Dataset.map runs in the library: two operations."""
        from mindspore.dataset.vision import _files

        crop = RandomResizedCrop(self._size, self._scale, self._ratio, self._inter, self._attempts)
        return [_files.Decode(), crop]


class RandomResize(_Drawn):
    """To `size`, by a random interpolation."""

    def __init__(self, size):
        size_of(size)
        self._size = size

    def _draw(self, image):
        choices = (Inter.NEAREST, Inter.LINEAR, Inter.CUBIC, Inter.AREA)
        return _geometry.Resize(self._size, choices[int(_random.generator().integers(len(choices)))])


class RandomRotation(_Drawn):
    """Turned by a random angle."""

    def __init__(self, degrees, resample=Inter.NEAREST, expand=False, center=None, fill_value=0):
        self._low, self._high = _angles(degrees)
        self._others = (resample, expand, center, fill_value)
        _geometry.Rotate(0, *self._others)

    def _apply(self, image):
        degrees = _uniform(self._low, self._high)
        if not is_picture(image):
            return _geometry.Rotate(degrees, *self._others)(image)
        resample, expand, center, fill = self._others
        fill = fill_of(fill) if len(image.getbands()) == 3 else fill_of(fill)[0]
        return image.rotate(degrees, _warp.picture_mode(resample), expand, center, fillcolor=fill)


def _angles(degrees):
    _checks.of_type("degrees", degrees, int, float, list, tuple)
    if _checks.is_number(degrees):
        if degrees < 0:
            raise ValueError("If degrees is a single number, it cannot be negative.")
        return -float(degrees), float(degrees)
    if len(degrees) != 2:
        raise TypeError("If degrees is a sequence, the length must be 2.")
    low, high = (_checks.number("degrees", each) for each in degrees)
    if low > high:
        raise ValueError("degrees should be in (min,max) format. Got (max,min).")
    return low, high


class RandomAffine(_Drawn):
    """Turned, moved, scaled and sheared at random."""

    def __init__(self, degrees, translate=None, scale=None, shear=None, resample=Inter.NEAREST, fill_value=0):
        self._degrees = _angles(degrees)
        if translate is not None:
            _checks.of_type("translate", translate, list, tuple)
            if len(translate) not in (2, 4):
                raise TypeError("translate should be a list or tuple of length 2 or 4.")
            for each in translate:
                _checks.number("translate", each, -1, 1)
        moves = list(translate or (0, 0))
        self._moves = [*moves, 0, 0] if len(moves) == 2 else moves
        if scale is not None:
            _checks.of_type("scale", scale, list, tuple)
            if len(scale) != 2:
                raise TypeError("scale should be a list or tuple of length 2.")
            for each in scale:
                _checks.number("scale", each, 0)
            if scale[0] > scale[1]:
                raise ValueError("scale should be in (min,max) format. Got (max,min).")
            if scale[1] <= 0:
                raise ValueError("Input scale[1] must be greater than 0.")
        self._scale = scale or (1.0, 1.0)
        if shear is not None:
            _checks.of_type("shear", shear, int, float, list, tuple)
            if _checks.is_number(shear):
                if shear < 0:
                    raise ValueError("If shear is a single number, it must be positive.")
                shear = (-shear, shear, 0.0, 0.0)
            elif len(shear) not in (2, 4):
                raise TypeError("shear must be of length 2 or 4.")
            shear = (*shear, 0.0, 0.0) if len(shear) == 2 else shear
            if shear[0] > shear[1] or shear[2] > shear[3]:
                raise ValueError("shear should be in (min,max) format. Got (max,min).")
        self._shear = shear or (0.0, 0.0, 0.0, 0.0)
        self._others = (inter("resample", resample), fill_of(fill_value))

    def _apply(self, image):
        drawn = self._draw(image)
        return drawn._of_picture(image) if is_picture(image) else drawn(image)

    def _draw(self, image):
        return _geometry.Affine(
            math.remainder(_uniform(*self._degrees), 360),
            (_uniform(*sorted(self._moves[:2])), _uniform(*sorted(self._moves[2:]))),
            max(_uniform(*self._scale), 1e-6),
            [math.remainder(_uniform(*self._shear[at : at + 2]), 360) for at in (0, 2)],
            *self._others,
        )


class RandomPerspective(_Drawn):
    """Seen from a random side, with a probability."""

    def __init__(self, distortion_scale=0.5, prob=0.5, interpolation=Inter.BICUBIC):
        self._distortion = _checks.number("distortion_scale", distortion_scale, 0, 1)
        self._prob = _checks.probability("prob", prob)
        self._inter = inter("interpolation", interpolation)

    def _draw(self, image):
        random = _random.generator()
        if random.random() >= self._prob:
            return None
        width, height = image.size if is_picture(image) else image.shape[1::-1]
        wide, high = (int(size // 2 * self._distortion) for size in (width, height))
        corners = [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)]
        moved = []
        for x, y in corners:
            right, down = int(random.integers(wide + 1)), int(random.integers(high + 1))
            moved.append((right if x == 0 else x - right, down if y == 0 else y - down))
        return _geometry.Perspective(corners, moved, self._inter)


class RandomErasing(_calls.Recorded, ours.RandomErasing):
    """A random rectangle of an array (C, H, W) in one value, or in noise, with a probability."""

    def __init__(
        self, prob=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False, max_attempts=10
    ):
        self._prob = _checks.probability("prob", prob)
        _scale_and_ratio(scale, ratio, max_attempts)
        if scale[1] > 1:
            raise ValueError("Input scale[1] is not within the required interval of [0, 1].")
        if isinstance(value, str):
            if value != "random":
                raise ValueError(
                    "The value for erasing should be either a single value, or a string 'random', or a "
                    "sequence of 3 elements for RGB respectively."
                )
        else:
            _checks.of_type("value", value, int, list, tuple)
            for each in [value] if _checks.is_number(value) else value:
                _checks.number("value", each, 0, 255)
            if not _checks.is_number(value) and len(value) != 3:
                raise ValueError(
                    "The value for erasing should be a single value, 'random', or a sequence of 3 elements"
                )
        self._scale, self._ratio, self._value, self._attempts = scale, ratio, value, max_attempts
        self._inplace = _checks.of_type("inplace", inplace, bool)
        self._is_noise = isinstance(value, str)
        native = 0 if self._is_noise else value
        super().__init__(self._prob, list(scale), list(ratio), native, inplace, max_attempts)

    @property
    def _parts(self):
        """What Dataset.map runs: the library's own draws no noise."""
        return [self._erased] if self._is_noise else None

    def __call__(self, image):
        if not isinstance(image, numpy.ndarray):
            raise TypeError(f"Input image should be NumPy image, got {type(image)}.")
        if image.ndim != 3:
            raise TypeError(f"img shape should be (C, H, W), but got {image.shape}.")
        return self._erased(image) if self._is_noise else super().__call__(image)

    def _erased(self, image):
        random = _random.generator()
        if random.random() >= self._prob:
            return image
        _, high, wide = image.shape
        made = image if self._inplace else image.copy()
        for _ in range(self._attempts):
            area = high * wide * _uniform(*self._scale)
            shape = math.exp(_uniform(math.log(self._ratio[0]), math.log(self._ratio[1])))
            height, width = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if not (0 < height < high and 0 < width < wide):
                continue
            top, left = int(random.integers(high - height + 1)), int(random.integers(wide - width + 1))
            part = made[:, top : top + height, left : left + width]
            part[:] = random.normal(0, 1, part.shape)
            break
        return made
