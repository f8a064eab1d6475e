"""Operations that change colours where they are."""

from mindspore._lazy import numpy
from mindspore.dataset import _checks
from mindspore.dataset._checks import PipelineError
from mindspore.dataset.vision._base import (
    FLOAT_MAX,
    ImageOperation,
    check_mean_and_std,
    factor,
    gray_of,
    only_bytes,
    pil,
    rounded,
)
from mindspore.dataset.vision._enums import ConvertMode


class _Enhance(ImageOperation):
    """A blend with something duller; pictures are Pillow's."""

    _enhancer = None

    def _picture(self, image):
        return getattr(pil().ImageEnhance, self._enhancer)(image).enhance(self._factor)


def blended(image, other, factor):
    """image * factor + other * (1 - factor), rounded where OpenCV does."""
    return rounded(image.astype(float) * factor + numpy.asarray(other, float) * (1 - factor), image)


class AdjustBrightness(_Enhance):
    """Every value times `brightness_factor`."""

    _enhancer = "Brightness"

    def __init__(self, brightness_factor):
        self._factor = factor("brightness_factor", brightness_factor)

    def _array(self, image):
        return rounded(only_bytes(image, "AdjustBrightness", (1, 3)) * numpy.float32(self._factor), image)


class AdjustContrast(_Enhance):
    """Away from the mean brightness, or towards it."""

    _enhancer = "Contrast"

    def __init__(self, contrast_factor):
        self._factor = factor("contrast_factor", contrast_factor)

    def _array(self, image):
        only_bytes(image, "AdjustContrast", (3,))
        mean = gray_of(image).astype(float).mean()
        mean = int(mean + 0.5) if image.dtype == numpy.uint8 else mean
        return blended(image, mean, self._factor)


class AdjustSaturation(_Enhance):
    """Away from gray, or towards it."""

    _enhancer = "Color"

    def __init__(self, saturation_factor):
        self._factor = factor("saturation_factor", saturation_factor)

    def _array(self, image):
        gray = gray_of(only_bytes(image, "AdjustSaturation", (3,)))[..., None]
        return blended(image, gray, self._factor)


class AdjustHue(ImageOperation):
    """Colours turned by a part of the circle, -0.5 to 0.5."""

    def __init__(self, hue_factor):
        self._factor = _checks.number("hue_factor", hue_factor, -0.5, 0.5)

    def _array(self, image):
        only_bytes(image, "AdjustHue", (3,))
        if image.dtype != numpy.uint8:  # MindSpore gives numbers without meaning for float32
            raise _checks.PipelineError(
                f"AdjustHue: the image is {image.dtype}: hues are of uint8 alone, so let it come before what "
                "makes other numbers of the image (ToTensor, Rescale, Normalize)"
            )
        hue, saturation, value = hsv_bytes(image)
        hue = (hue + int(self._factor * 255)) % 256
        return bytes_of_hsv(hue, saturation, value)

    def _picture(self, image):
        mode = image.mode
        if mode in ("L", "1", "I", "F"):
            return image
        hue, saturation, value = image.convert("HSV").split()
        turned = (numpy.asarray(hue).astype(numpy.int16) + int(self._factor * 255)).astype(numpy.uint8)
        images = pil().Image
        return images.merge("HSV", (images.fromarray(turned, "L"), saturation, value)).convert(mode)


def hsv_bytes(image):
    """Hue (of 256 parts), saturation and value of red, green and blue bytes, by OpenCV's whole numbers."""
    rgb = image.astype(numpy.int64)
    value = rgb.max(-1)
    span = value - rgb.min(-1)
    saturation = (span * _parts(255, numpy.maximum(value, 1)) + (1 << 11)) >> 12
    red, green, blue = (rgb[..., at] for at in range(3))
    sixths = numpy.where(
        value == red,
        green - blue,
        numpy.where(value == green, 2 * span + blue - red, 4 * span + red - green),
    )
    hue = (sixths * _parts(256 / 6, numpy.maximum(span, 1)) + (1 << 11)) >> 12
    return numpy.where(span == 0, 0, hue) % 256, saturation, value


def _parts(whole, by):
    return numpy.rint(whole * 4096 / by).astype(numpy.int64)


def bytes_of_hsv(hue, saturation, value):
    """Red, green and blue bytes of hue (of 255 parts), saturation and value."""
    hue, saturation = hue * 6 / 255.0, saturation / 255.0
    whole = numpy.floor(hue)
    sector, part = whole.astype(int) % 6, hue - whole
    low = value * (1 - saturation)
    down = value * (1 - saturation * part)
    up = value * (1 - saturation * (1 - part))
    choices = [(value, up, low), (down, value, low), (low, value, up), (low, down, value), (up, low, value)]
    choices.append((value, low, down))
    made = numpy.stack(
        [numpy.choose(sector, [choice[channel] for choice in choices]) for channel in range(3)], -1
    )
    return numpy.clip(numpy.rint(made), 0, 255).astype(numpy.uint8)


class AdjustGamma(ImageOperation):
    """255 * gain * (value / 255) ** gamma."""

    def __init__(self, gamma, gain=1):
        self._gamma = factor("gamma", gamma)
        self._gain = factor("gain", gain, -FLOAT_MAX)

    def _array(self, image):
        if image.dtype == numpy.uint8:
            table = numpy.arange(256) / 255.0
            table = numpy.clip((256 - 1e-3) * self._gain * table**self._gamma, 0, 255)
            return table.astype(numpy.uint8)[image]
        return numpy.clip(self._gain * image.astype(float) ** self._gamma, 0, 1).astype(image.dtype)

    def _picture(self, image):
        table = [int((256 - 1e-3) * self._gain * (each / 255.0) ** self._gamma) for each in range(256)]
        mode = image.mode
        image = image.convert("RGB")
        return image.point(table * len(image.split())).convert(mode)


class AdjustSharpness(_Enhance):
    """Away from a smoothed image, or towards it; the edge stays as it is."""

    _enhancer = "Sharpness"

    def __init__(self, sharpness_factor):
        self._factor = factor("sharpness_factor", sharpness_factor)

    def _picture(self, image):
        return self._array(numpy.asarray(image))

    def _array(self, image):
        return sharpened(image, self._factor)


def sharpened(image, factor):
    """As AdjustSharpness."""
    if min(image.shape[:2]) < 3:
        return image.copy()
    wide = image.astype(numpy.float64)
    total = sum(
        wide[1 + down : image.shape[0] - 1 + down, 1 + right : image.shape[1] - 1 + right]
        for down in (-1, 0, 1)
        for right in (-1, 0, 1)
    )
    smooth = image.copy()
    smooth[1:-1, 1:-1] = rounded((total + 4 * wide[1:-1, 1:-1]) / 13, image)
    return blended(image, smooth, factor)


class Invert(ImageOperation):
    """255 less each value."""

    def _array(self, image):
        return (255 - only_bytes(image, "Invert")).astype(image.dtype)

    def _picture(self, image):
        return pil().ImageOps.invert(image)


class Posterize(ImageOperation):
    """The highest `bits` of each value."""

    def __init__(self, bits):
        self._bits = _checks.whole("bits", bits, 0, 8)

    def _array(self, image):
        if image.dtype != numpy.uint8:
            raise PipelineError(f"Posterize: the image must be uint8, not {image.dtype}")
        return image & numpy.uint8(256 - (1 << (8 - self._bits)))


class Solarize(ImageOperation):
    """Values from the first to the second of `threshold` are inverted (a number: up to 255)."""

    def __init__(self, threshold):
        _checks.of_type("threshold", threshold, int, float, list, tuple)
        given = [threshold, 255] if _checks.is_number(threshold) else list(threshold)
        if len(given) != 2:
            raise TypeError("threshold must be a single number or sequence of two numbers.")
        for each in given:
            _checks.number("threshold", each, 0, 255)
        if given[0] > given[1]:
            raise ValueError("threshold must be in order of (min, max).")
        self._low, self._high = given

    def _array(self, image):
        high = self._high if self._high > self._low else 255
        return numpy.where((image >= self._low) & (image <= high), 255 - image, image).astype(image.dtype)


def _by_channel(image, change):
    if image.ndim == 2:
        return change(image)
    return numpy.stack([change(image[..., at]) for at in range(image.shape[2])], -1)


class AutoContrast(ImageOperation):
    """Each channel stretched to 0..255, without its `cutoff` percent of darkest and lightest pixels."""

    def __init__(self, cutoff=0.0, ignore=None):
        _checks.of_type("cutoff", cutoff, int, float)
        if not 0 <= cutoff < 50:
            raise ValueError("Input cutoff is not within the required interval of [0, 50).")
        if ignore is not None:
            _checks.of_type("ignore", ignore, int, list, tuple)
            ignore = [ignore] if _checks.is_whole(ignore) else list(ignore)
            for each in ignore:
                _checks.of_type("item", each, int)
                if not 0 <= each <= 255:
                    raise ValueError("Input ignore is not within the required interval of [0, 255].")
        self._cutoff, self._ignore = float(cutoff), ignore

    def _array(self, image):
        if image.dtype != numpy.uint8:
            raise PipelineError(f"AutoContrast: the image must be uint8, not {image.dtype}")
        return _by_channel(image, self._stretched)

    def _stretched(self, channel):
        histogram = numpy.bincount(channel.ravel(), minlength=256)
        for each in self._ignore or ():
            histogram[each] = 0
        if self._cutoff:
            cut = int(histogram.sum() * self._cutoff / 100)
            for order in (range(256), range(255, -1, -1)):
                left = cut
                for at in order:
                    taken = min(left, histogram[at])
                    histogram[at] -= taken
                    left -= taken
        there = numpy.nonzero(histogram)[0]
        if len(there) == 0 or there[0] >= there[-1]:
            return channel
        scale = numpy.float32(255.0 / (there[-1] - there[0]))
        table = numpy.arange(256).astype(numpy.float32) * scale - numpy.float32(there[0]) * scale
        return numpy.clip(table.astype(int), 0, 255).astype(numpy.uint8)[channel]

    def _picture(self, image):
        return pil().ImageOps.autocontrast(image, self._cutoff, self._ignore)


class Equalize(ImageOperation):
    """Each channel so that all values are about as frequent."""

    def _array(self, image):
        if image.dtype != numpy.uint8:
            raise PipelineError(f"Equalize: the image must be uint8, not {image.dtype}")
        return _by_channel(image, self._equal)

    @staticmethod
    def _equal(channel):
        histogram = numpy.bincount(channel.ravel(), minlength=256)
        first = int(numpy.nonzero(histogram)[0][0])
        if histogram[first] == channel.size:
            return channel
        histogram[first] = 0
        scale = numpy.float32(255.0 / histogram.sum())
        table = numpy.rint(numpy.cumsum(histogram).astype(numpy.float32) * scale)
        return numpy.clip(table, 0, 255).astype(numpy.uint8)[channel]

    def _picture(self, image):
        return pil().ImageOps.equalize(image)


class Grayscale(ImageOperation):
    """Gray, in one or three channels."""

    def __init__(self, num_output_channels=1):
        _checks.of_type("num_output_channels", num_output_channels, int)
        if num_output_channels not in (1, 3):
            raise ValueError(
                f"Number of channels of the output grayscale image should be either 1 or 3, but got "
                f"{num_output_channels}."
            )
        self._channels = num_output_channels

    def _apply(self, image):
        if not hasattr(image, "convert"):
            raise TypeError(f"Input should be PIL image, got {type(image)}.")
        return grayscale(image, self._channels)


def grayscale(image, channels):
    """A picture of PIL in gray."""
    gray = image.convert("L")
    return gray if channels == 1 else gray.convert("RGB")


class ConvertColor(ImageOperation):
    """Another order or number of channels."""

    def __init__(self, convert_mode):
        if not isinstance(convert_mode, ConvertMode):
            raise TypeError(
                f"Argument convert_mode with value {convert_mode} is not of type [<enum 'ConvertMode'>], "
                f"but got {type(convert_mode)}."
            )
        self._mode = convert_mode

    def _array(self, image):
        mode, name = self._mode, self._mode.name
        wanted = 1 if "GRAY2" in name else 4 if name.split("_")[1].startswith(("BGRA2", "RGBA2")) else 3
        have = 1 if image.ndim == 2 else image.shape[2]
        if have == 1 and wanted == 3 and image.ndim == 3:  # gray as all three, as OpenCV takes it
            image, have = numpy.repeat(image, 3, 2), 3
        if have != wanted:
            raise PipelineError(
                f"ConvertColor: {name} takes {wanted} channels, and the image has the shape {image.shape}"
            )
        if wanted == 1:
            image = image.reshape(*image.shape[:2], 1)
            made = numpy.repeat(image, 3, 2)
            return made if mode == ConvertMode.COLOR_GRAY2BGR else _opaque(made)
        swapped = numpy.concatenate([image[..., 2::-1], image[..., 3:]], -1)
        made = {
            ConvertMode.COLOR_BGR2BGRA: lambda: _opaque(image),
            ConvertMode.COLOR_BGRA2BGR: lambda: image[..., :3],
            ConvertMode.COLOR_BGR2RGBA: lambda: _opaque(swapped),
            ConvertMode.COLOR_RGBA2BGR: lambda: swapped[..., :3],
            ConvertMode.COLOR_BGR2RGB: lambda: swapped,
            ConvertMode.COLOR_BGRA2RGBA: lambda: swapped,
            ConvertMode.COLOR_BGR2GRAY: lambda: gray_of(swapped),
            ConvertMode.COLOR_BGRA2GRAY: lambda: gray_of(swapped),
            ConvertMode.COLOR_RGB2GRAY: lambda: gray_of(image),
            ConvertMode.COLOR_RGBA2GRAY: lambda: gray_of(image),
        }[mode]()
        return numpy.ascontiguousarray(made)


def _opaque(image):
    full = 255 if image.dtype == numpy.uint8 else 1
    return numpy.concatenate([image, numpy.full_like(image[..., :1], full)], -1)


class _Hsv(ImageOperation):
    def __init__(self, is_hwc=False):
        self._is_hwc = _checks.of_type("is_hwc", is_hwc, bool)

    def _apply(self, image):
        if not isinstance(image, numpy.ndarray):
            raise TypeError(f"img should be NumPy image. Got {type(image)}.")
        if image.ndim not in (3, 4):
            raise TypeError(
                f"img shape should be (H, W, C)/(N, H, W, C)/(C, H, W)/(N, C, H, W). Got {image.shape}."
            )
        channels = image if self._is_hwc else numpy.moveaxis(image, -3, -1)
        if channels.shape[-1] != 3:
            raise TypeError(f"img should be 3 channels RGB img. Got {channels.shape[-1]} channels.")
        made = self._changed(channels).astype(float)
        return made if self._is_hwc else numpy.moveaxis(made, -1, -3)


class RgbToHsv(_Hsv):
    """Red, green and blue of 0 to 1 as hue, saturation and value."""

    @staticmethod
    def _changed(rgb):
        red, green, blue = (rgb[..., at] for at in range(3))
        value, low = rgb.max(-1), rgb.min(-1)
        span = value - low
        with numpy.errstate(all="ignore"):
            saturation = numpy.where(value == 0, 0, span / value)
            hue = numpy.where(
                value == red,
                (green - blue) / span % 6,
                numpy.where(value == green, 2 + (blue - red) / span, 4 + (red - green) / span),
            )
        hue = numpy.where(span == 0, 0, hue / 6 % 1)
        return numpy.stack([hue, saturation, value], -1)


class HsvToRgb(_Hsv):
    """Hue, saturation and value as red, green and blue of 0 to 1."""

    @staticmethod
    def _changed(hsv):
        hue, saturation, value = (hsv[..., at] for at in range(3))
        sector = (hue * 6).astype(int)
        part = hue * 6 - sector
        low, down = value * (1 - saturation), value * (1 - saturation * part)
        up = value * (1 - saturation * (1 - part))
        red = numpy.choose(sector % 6, [value, down, low, low, up, value])
        green = numpy.choose(sector % 6, [up, value, value, down, low, low])
        blue = numpy.choose(sector % 6, [low, low, up, value, value, down])
        return numpy.stack([red, green, blue], -1)


class NormalizePad(ImageOperation):
    """(value - mean) / std, and a channel of zeros more."""

    def __init__(self, mean, std, dtype="float32", is_hwc=True):
        check_mean_and_std(mean, std)
        if dtype not in ("float32", "float16"):
            raise ValueError("dtype can only be float32 or float16.")
        self._mean, self._std = numpy.array(mean, numpy.float32), numpy.array(std, numpy.float32)
        self._dtype, self._is_hwc = dtype, _checks.of_type("is_hwc", is_hwc, bool)

    def _array(self, image):
        image = image[..., None] if image.ndim == 2 else image
        channels = image if self._is_hwc else numpy.moveaxis(image, 0, -1)
        if channels.shape[-1] != len(self._mean) and len(self._mean) != 1:
            raise PipelineError(
                f"NormalizePad: the image has {channels.shape[-1]} channels, mean has {len(self._mean)}"
            )
        made = (channels.astype(numpy.float32) - self._mean) / self._std
        made = numpy.concatenate([made, numpy.zeros_like(made[..., :1])], -1).astype(self._dtype)
        return made if self._is_hwc else numpy.ascontiguousarray(numpy.moveaxis(made, -1, 0))


class LinearTransformation(ImageOperation):
    """(flattened image - mean_vector) times a square matrix."""

    def __init__(self, transformation_matrix, mean_vector):
        for name, value in (("transformation_matrix", transformation_matrix), ("mean_vector", mean_vector)):
            _checks.of_type(name, value, numpy.ndarray)
        if transformation_matrix.shape[0] != transformation_matrix.shape[1]:
            raise ValueError(
                f"transformation_matrix should be a square matrix, got {transformation_matrix.shape}."
            )
        if mean_vector.shape[0] != transformation_matrix.shape[0]:
            raise ValueError(
                "mean_vector length should match either one dimension of the square transformation_matrix"
            )
        self._matrix, self._mean = transformation_matrix, mean_vector

    def _apply(self, image):
        if not isinstance(image, numpy.ndarray):
            raise TypeError(f"Input should be NumPy image, got {type(image)}.")
        if image.size != self._matrix.shape[0]:
            raise ValueError(f"transformation_matrix shape not match with the image {image.shape}")
        return ((image.flatten() - self._mean) @ self._matrix).reshape(image.shape)
