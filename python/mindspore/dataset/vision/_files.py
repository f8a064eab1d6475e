"""Files of images, and images as arrays, pictures of PIL and tensors."""

import os

import muster.dataset.vision as ours

from mindspore._lazy import numpy
from mindspore.dataset import _calls, _checks, _types
from mindspore.dataset._checks import PipelineError
from mindspore.dataset.vision._base import ImageOperation, is_picture, pil
from mindspore.dataset.vision._enums import ImageReadMode


class Decode(_calls.Recorded, ours.Decode):
    """The bytes of a file as an image; with `to_pil` as a picture of PIL."""

    def __init__(self, to_pil=False):
        _checks.of_type("to_pil", to_pil, bool)
        super().__init__()
        self._to_pil = to_pil

    @property
    def _gives_objects(self):
        return self._to_pil

    _gives_pictures = _gives_objects

    def __call__(self, image):
        if self._to_pil:
            import io

            data = image if isinstance(image, bytes) else numpy.asarray(image).tobytes()
            try:
                return pil().Image.open(io.BytesIO(data)).convert("RGB")
            except OSError as error:
                raise ValueError(f"Decode: {error}") from None
        if not isinstance(image, numpy.ndarray) or image.dtype.kind not in "uiSb":
            raise TypeError(f"Input should be an encoded image in 1-D NumPy format, got {type(image)}.")
        if image.ndim != 1:
            raise TypeError(
                f"The number of array dimensions of the encoded image should be 1, but got {image.ndim}."
            )
        if image.dtype.kind == "S":  # a column of bytes: one value with the whole file
            return super().__call__(numpy.frombuffer(image.tobytes(), numpy.uint8))
        return super().__call__(image.astype(numpy.uint8, copy=False))


class ToPIL(ImageOperation):
    """An array as a picture of PIL."""

    _gives_objects = True

    def _apply(self, image):
        if is_picture(image):
            return image
        if not isinstance(image, numpy.ndarray):
            raise TypeError(f"Input should be NumPy or PIL image, got {type(image)}.")
        squeezed = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
        return pil().Image.fromarray(squeezed)


class ToNumpy(ImageOperation):
    """A picture of PIL as an array."""

    def _apply(self, image):
        return numpy.array(image)


class ToType(ImageOperation):
    """Another dtype."""

    def __init__(self, data_type):
        self._dtype = _types.numpy_dtype(data_type)

    def _apply(self, image):
        if not isinstance(image, numpy.ndarray) and not is_picture(image):
            raise TypeError(f"Input should be NumPy image, got {type(image)}.")
        return numpy.asarray(image).astype(self._dtype)


# ---- Files -------------------------------------------------------------------------------------------------


def _path(filename):
    _checks.of_type("filename", filename, str)
    path = os.path.realpath(filename)
    if not os.path.isfile(path):
        raise PipelineError(f"Invalid file path, {filename} does not exist or is no file.")
    return path


def read_file(filename):
    """The bytes of a file as an array."""
    return numpy.fromfile(_path(filename), numpy.uint8)


def write_file(filename, data):
    """Writes an array of bytes as a file."""
    _checks.of_type("filename", filename, str)
    data = _data_of(data)
    if data.dtype != numpy.uint8 or data.ndim != 1:
        raise PipelineError(
            f"write_file: the data must be uint8 of one axis, not {data.dtype} of {data.ndim}"
        )
    data.tofile(filename)


def _data_of(image):
    if hasattr(image, "asnumpy"):
        return image.asnumpy()
    if not isinstance(image, numpy.ndarray):
        raise TypeError(
            f"Input image is not of type numpy.ndarray or mindspore.Tensor, but got: {type(image)}."
        )
    return image


def read_image(filename, mode=ImageReadMode.UNCHANGED):
    """A file (JPEG, PNG) as an array (H, W, C)."""
    if not isinstance(mode, ImageReadMode):
        raise TypeError(f"Input mode is not of type ImageReadMode, but got: {type(mode)}.")
    path = _path(filename)
    if mode == ImageReadMode.COLOR:
        return ours.Decode()(numpy.fromfile(path, numpy.uint8))
    image = pil().Image.open(path)
    if mode == ImageReadMode.GRAYSCALE:
        image = image.convert("L")
    made = numpy.array(image)
    return made[..., None] if made.ndim == 2 else made


def _encoded(image, kind, **settings):
    import io

    image = _data_of(image)
    if image.dtype != numpy.uint8:
        raise PipelineError(f"The type of the image data should be UINT8, but got {image.dtype}.")
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
        raise PipelineError(
            f"The image has the shape {image.shape}: it must be (H, W) or (H, W, C) of 1 or 3 channels"
        )
    squeezed = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    held = io.BytesIO()
    pil().Image.fromarray(squeezed).save(held, kind, **settings)
    return numpy.frombuffer(held.getvalue(), numpy.uint8)


def encode_jpeg(image, quality=75):
    """The bytes of a JPEG file."""
    _checks.whole("quality", quality, 1, 100)
    return _encoded(image, "JPEG", quality=quality)


def encode_png(image, compression_level=6):
    """The bytes of a PNG file."""
    _checks.whole("compression_level", compression_level, 0, 9)
    return _encoded(image, "PNG", compress_level=compression_level)


def write_jpeg(filename, image, quality=75):
    """Writes an image as a JPEG file."""
    _checks.of_type("filename", filename, str)
    write_file(filename, encode_jpeg(image, quality))


def write_png(filename, image, compression_level=6):
    """Writes an image as a PNG file."""
    _checks.of_type("filename", filename, str)
    write_file(filename, encode_png(image, compression_level))


def get_image_size(image):
    """[height, width]."""
    if is_picture(image):
        return list(image.size[::-1])
    if not isinstance(image, numpy.ndarray):
        raise TypeError(
            f"Input image is not of type numpy.ndarray or PIL.Image.Image, but got {type(image)}."
        )
    if image.ndim < 2:
        raise PipelineError(f"the image must have two axes or more, and has the shape {image.shape}")
    return list(image.shape[-3:-1] if image.ndim > 2 else image.shape)


def get_image_num_channels(image):
    """How many channels."""
    if is_picture(image):
        return len(image.getbands())
    if not isinstance(image, numpy.ndarray):
        raise TypeError(
            f"Input image is not of type numpy.ndarray or PIL.Image.Image, but got {type(image)}."
        )
    if image.ndim < 2:
        raise PipelineError(f"the image must have two axes or more, and has the shape {image.shape}")
    return 1 if image.ndim == 2 else image.shape[-1]


def not_random(function):
    """Marks a function that draws nothing."""
    function.random = False
    return function
