"""Mixtures of operations, and of the images of a batch."""

from mindspore._lazy import numpy
from mindspore.dataset import _calls, _checks, _random
from mindspore.dataset._checks import PipelineError
from mindspore.dataset.vision import _color, _geometry
from mindspore.dataset.vision._base import FLOAT_MAX, ImageOperation, fill_of, is_picture
from mindspore.dataset.vision._enums import AutoAugmentPolicy, ImageBatchFormat, Inter, inter


class UniformAugment(ImageOperation):
    """`num_ops` of the operations, each with probability 1/2."""

    def __init__(self, transforms, num_ops=2):
        _checks.of_type("transforms", transforms, list)
        _checks.whole("num_ops", num_ops, 1)
        if num_ops > len(transforms):
            raise ValueError("num_ops is greater than transforms list size.")
        for each in transforms:
            if not callable(each):
                raise TypeError(
                    f"Type of Transforms[{transforms.index(each)}] must be callable, not {type(each)}."
                )
        self._transforms, self._count = list(transforms), num_ops

    def _apply(self, image):
        random = _random.generator()
        for at in random.permutation(len(self._transforms))[: self._count]:
            if random.random() < 0.5:
                image = self._transforms[at](image)
        return image


class RandomSelectSubpolicy(ImageOperation):
    """One of several lists of (operation, probability)."""

    def __init__(self, policy):
        _checks.of_type("policy", policy, list)
        if not policy:
            raise ValueError("policy can not be empty.")
        for at, sub in enumerate(policy):
            _checks.of_type(f"policy[{at}]", sub, list)
            if not sub:
                raise ValueError(f"policy[{at}] can not be empty.")
            for step in sub:
                if not isinstance(step, tuple):
                    raise ValueError(f"policy[{at}]: each must be a tuple, not {type(step)}.")
                if len(step) != 2:
                    raise ValueError(f"policy[{at}]: each must be a 2-tuple (operation, probability).")
                if not callable(step[0]):
                    raise TypeError(f"policy[{at}]: Op of (op, prob) must be callable.")
                _checks.probability(f"prob of policy[{at}]", step[1])
        self._policy = policy

    def _apply(self, image):
        random = _random.generator()
        for operation, probability in self._policy[int(random.integers(len(self._policy)))]:
            if random.random() < probability:
                image = operation(image)
        return image


class _Spaces(ImageOperation):
    """Operations by name and strength, as the papers on augmentation have them."""

    def __init__(self, interpolation, fill_value):
        self._inter = inter("interpolation", interpolation)
        self._fill = fill_of(fill_value)

    def _do(self, image, name, strength):
        size = image.size[::-1] if is_picture(image) else image.shape[:2]
        tools = {"resample": self._inter, "fill_value": self._fill}

        def affine(degrees=0, moved=(0, 0), shear=(0, 0)):
            share = [float(numpy.clip(each / of, -1, 1)) for each, of in zip(moved, size[::-1], strict=True)]
            return _geometry.Affine(degrees, share, 1.0, shear, **tools)

        made = {
            "Identity": lambda: None,
            "ShearX": lambda: affine(shear=(float(numpy.degrees(strength)), 0)),
            "ShearY": lambda: affine(shear=(0, float(numpy.degrees(strength)))),
            "TranslateX": lambda: affine(moved=(strength, 0)),
            "TranslateY": lambda: affine(moved=(0, strength)),
            "Rotate": lambda: _geometry.Rotate(strength, **tools),
            "Brightness": lambda: _color.AdjustBrightness(max(0.0, 1 + strength)),
            "Color": lambda: _color.AdjustSaturation(max(0.0, 1 + strength)),
            "Contrast": lambda: _color.AdjustContrast(max(0.0, 1 + strength)),
            "Sharpness": lambda: _color.AdjustSharpness(max(0.0, 1 + strength)),
            "Posterize": lambda: _color.Posterize(int(strength)),
            "Solarize": lambda: _color.Solarize(float(numpy.clip(strength, 0, 255))),
            "AutoContrast": _color.AutoContrast,
            "Equalize": _color.Equalize,
            "Invert": _color.Invert,
        }[name]()
        return image if made is None else made(image)


def _strengths(bins, size, is_wide=False):
    """By operation: its strengths in `bins` steps, and whether the sign is drawn."""
    far, shear, turn, color = (32.0, 0.99, 135.0, 0.99) if is_wide else (None, 0.3, 30.0, 0.9)
    line = numpy.linspace
    whole = numpy.arange(bins) / ((bins - 1) / (6 if is_wide else 4))
    return {
        "Identity": (line(0, 0, bins), False),
        "ShearX": (line(0, shear, bins), True),
        "ShearY": (line(0, shear, bins), True),
        "TranslateX": (line(0, far or 150 / 331 * size[1], bins), True),
        "TranslateY": (line(0, far or 150 / 331 * size[0], bins), True),
        "Rotate": (line(0, turn, bins), True),
        "Brightness": (line(0, color, bins), True),
        "Color": (line(0, color, bins), True),
        "Contrast": (line(0, color, bins), True),
        "Sharpness": (line(0, color, bins), True),
        "Posterize": (8 - numpy.rint(whole), False),
        "Solarize": (line(255, 0, bins), False),
        "AutoContrast": (line(0, 0, bins), False),
        "Equalize": (line(0, 0, bins), False),
    }


def _size_of_image(image):
    return image.size[::-1] if is_picture(image) else image.shape[:2]


class RandAugment(_Spaces):
    """`num_ops` random operations of strength `magnitude` of `num_magnitude_bins`."""

    def __init__(
        self, num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation=Inter.NEAREST, fill_value=0
    ):
        self._count = _checks.whole("num_ops", num_ops, 0, 16777216)
        self._bins = _checks.whole("num_magnitude_bins", num_magnitude_bins, 2, 16777216)
        self._magnitude = _checks.whole("magnitude", magnitude, 0, 16777216)
        if magnitude >= num_magnitude_bins:
            raise ValueError(
                f"Input magnitude is not within the required interval of [0, {num_magnitude_bins})."
            )
        super().__init__(interpolation, fill_value)

    def _apply(self, image):
        random = _random.generator()
        strengths = _strengths(self._bins, _size_of_image(image))
        for _ in range(self._count):
            name = list(strengths)[int(random.integers(len(strengths)))]
            values, is_signed = strengths[name]
            strength = float(values[self._magnitude])
            image = self._do(image, name, -strength if is_signed and random.random() < 0.5 else strength)
        return image


class TrivialAugmentWide(_Spaces):
    """One random operation of random strength."""

    def __init__(self, num_magnitude_bins=31, interpolation=Inter.NEAREST, fill_value=0):
        self._bins = _checks.whole("num_magnitude_bins", num_magnitude_bins, 2, 16777216)
        super().__init__(interpolation, fill_value)

    def _apply(self, image):
        random = _random.generator()
        strengths = _strengths(self._bins, _size_of_image(image), is_wide=True)
        name = list(strengths)[int(random.integers(len(strengths)))]
        values, is_signed = strengths[name]
        strength = float(values[int(random.integers(self._bins))])
        return self._do(image, name, -strength if is_signed and random.random() < 0.5 else strength)


# (operation, probability, strength of 0 to 9), two by two, as the paper on AutoAugment lists them.
_POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
        Posterize .4 8 Rotate .6 9|Solarize .6 5 AutoContrast .6 -|Equalize .8 - Equalize .6 -
        Posterize .6 7 Posterize .6 6|Equalize .4 - Solarize .2 4|Equalize .4 - Rotate .8 8
        Solarize .6 3 Equalize .6 -|Posterize .8 5 Equalize 1 -|Rotate .2 3 Solarize .6 8
        Equalize .6 - Posterize .4 6|Rotate .8 8 Color .4 0|Rotate .4 9 Equalize .6 -
        Equalize 0 - Equalize .8 -|Invert .6 - Equalize 1 -|Color .6 4 Contrast 1 8
        Rotate .8 8 Color 1 2|Color .8 8 Solarize .8 7|Sharpness .4 7 Invert .6 -
        ShearX .6 5 Equalize 1 -|Color .4 0 Equalize .6 -|Equalize .4 - Solarize .2 4
        Solarize .6 5 AutoContrast .6 -|Invert .6 - Equalize 1 -|Color .6 4 Contrast 1 8
        Equalize .8 - Equalize .6 -""",
    AutoAugmentPolicy.CIFAR10: """
        Invert .1 - Contrast .2 6|Rotate .7 2 TranslateX .3 9|Sharpness .8 1 Sharpness .9 3
        ShearY .5 8 TranslateY .7 9|AutoContrast .5 - Equalize .9 -|ShearY .2 7 Posterize .3 7
        Color .4 3 Brightness .6 7|Sharpness .3 9 Brightness .7 9|Equalize .6 - Equalize .5 -
        Contrast .6 7 Sharpness .6 5|Color .7 7 TranslateX .5 8|Equalize .3 - AutoContrast .4 -
        TranslateY .4 3 Sharpness .2 6|Brightness .9 6 Color .2 8|Solarize .5 2 Invert 0 -
        Equalize .2 - AutoContrast .6 -|Equalize .2 - Equalize .6 -|Color .9 9 Equalize .6 -
        AutoContrast .8 - Solarize .2 8|Brightness .1 3 Color .7 0|Solarize .4 5 AutoContrast .9 -
        TranslateY .9 9 TranslateY .7 9|AutoContrast .9 - Solarize .8 3|Equalize .8 - Invert .1 -
        TranslateY .7 9 AutoContrast .9 -""",
    AutoAugmentPolicy.SVHN: """
        ShearX .9 4 Invert .2 -|ShearY .9 8 Invert .7 -|Equalize .6 - Solarize .6 6
        Invert .9 - Equalize .6 -|Equalize .6 - Rotate .9 3|ShearX .9 4 AutoContrast .8 -
        ShearY .9 8 Invert .4 -|ShearY .9 5 Solarize .2 6|Invert .9 - AutoContrast .8 -
        Equalize .6 - Rotate .9 3|ShearX .9 4 Solarize .3 3|ShearY .8 8 Invert .7 -
        Equalize .9 - TranslateY .6 6|Invert .9 - Equalize .6 -|Contrast .3 3 Rotate .8 4
        Invert .8 - TranslateY 0 2|ShearY .7 6 Solarize .4 8|Invert .6 - Rotate .8 4
        ShearY .3 7 TranslateX .9 3|ShearX .1 6 Invert .6 -|Solarize .7 2 TranslateY .6 7
        ShearY .8 4 Invert .8 -|ShearX .7 9 TranslateY .8 3|ShearY .8 5 AutoContrast .7 -
        ShearX .7 2 Invert .1 -""",
}


def _policy(text):
    for pair in text.replace("\n", "|").split("|"):
        words = pair.split()
        if words:
            yield [(words[at], float(words[at + 1]), words[at + 2]) for at in (0, 3)]


class AutoAugment(_Spaces):
    """One of the policies that were found for ImageNet, CIFAR-10 or SVHN."""

    def __init__(self, policy=AutoAugmentPolicy.IMAGENET, interpolation=Inter.NEAREST, fill_value=0):
        if not isinstance(policy, AutoAugmentPolicy):
            raise TypeError(
                f"Argument policy with value {policy} is not of type [<enum 'AutoAugmentPolicy'>], but got "
                f"{type(policy)}."
            )
        self._steps = list(_policy(_POLICIES[policy]))
        super().__init__(interpolation, fill_value)

    def _apply(self, image):
        random = _random.generator()
        strengths = _strengths(10, _size_of_image(image))
        for name, probability, strength in self._steps[int(random.integers(len(self._steps)))]:
            if random.random() >= probability:
                continue
            values, is_signed = strengths.get(name, (numpy.zeros(10), False))
            value = 0.0 if strength == "-" else float(values[int(strength)])
            image = self._do(image, name, -value if is_signed and random.random() < 0.5 else value)
        return image


# ---- Batches -----------------------------------------------------------------------------------------------


def _check_batch(images, labels, name):
    if not isinstance(images, numpy.ndarray) or images.ndim != 4:
        raise PipelineError(f"{name}: the images must be a batch of rank 4: put batch() before it")
    if labels.ndim not in (2, 3) or labels.dtype.kind not in "iuf":
        raise PipelineError(f"{name}: the labels must be one-hot and batched, (N, C), not {labels.shape}")


def _mixed(labels, order, share):
    return (share * labels + (1 - share) * labels[order]).astype(numpy.float32)


class MixUpBatch(_calls.Recorded):
    """Each image of a batch blended with another, and their one-hot labels alike."""

    def __init__(self, alpha=1.0):
        self._alpha = _checks.number("alpha", alpha, above=0, high=FLOAT_MAX)

    def __call__(self, images, labels):
        _check_batch(images, labels, "MixUpBatch")
        random = _random.generator()
        share = float(random.beta(self._alpha, self._alpha))
        order = random.permutation(len(images))
        made = share * images.astype(numpy.float32) + (1 - share) * images[order]
        return made.astype(images.dtype), _mixed(labels, order, share)


class CutMixBatch(_calls.Recorded):
    """A rectangle of each image of a batch from another one, and their one-hot labels in proportion."""

    def __init__(self, image_batch_format, alpha=1.0, prob=1.0):
        if not isinstance(image_batch_format, ImageBatchFormat):
            raise TypeError(
                f"Argument image_batch_format with value {image_batch_format} is not of type "
                f"[<enum 'ImageBatchFormat'>], but got {type(image_batch_format)}."
            )
        self._format, self._alpha = (
            image_batch_format,
            _checks.number("alpha", alpha, above=0, high=FLOAT_MAX),
        )
        self._prob = _checks.probability("prob", prob)

    def __call__(self, images, labels):
        _check_batch(images, labels, "CutMixBatch")
        random = _random.generator()
        order = random.permutation(len(images))
        made, mixed = images.copy(), labels.astype(numpy.float32)
        seen = made if self._format == ImageBatchFormat.NHWC else numpy.moveaxis(made, 1, -1)
        others = images if self._format == ImageBatchFormat.NHWC else numpy.moveaxis(images, 1, -1)
        height, width = seen.shape[1:3]
        if seen.shape[3] not in (1, 3):
            raise PipelineError(
                f"CutMixBatch: {self._format.name} images of the shape {images.shape} have not 1 or 3 "
                "channels"
            )
        for at in range(len(images)):
            if random.random() >= self._prob:
                continue
            side = numpy.sqrt(1 - random.beta(self._alpha, self._alpha))
            high, wide = int(height * side), int(width * side)
            y, x = int(random.integers(height)), int(random.integers(width))
            top, bottom = max(0, y - high // 2), min(height, y + high // 2)
            left, right = max(0, x - wide // 2), min(width, x + wide // 2)
            seen[at, top:bottom, left:right] = others[order[at], top:bottom, left:right]
            share = 1 - (bottom - top) * (right - left) / (height * width)
            mixed[at] = share * labels[at] + (1 - share) * labels[order[at]]
        return made, mixed


class MixUp(_calls.Recorded):
    """MixUp of a batch as per_batch_map: with itself, or with the batch before."""

    def __init__(self, batch_size, alpha, is_single=True):
        self._batch = _checks.whole("batch_size", batch_size, 1)
        self._alpha = _checks.number("alpha", alpha, above=0, high=FLOAT_MAX)
        self._single = _checks.of_type("is_single", is_single, bool)
        self._before = None

    def __call__(self, images, labels):
        images, labels = numpy.asarray(images), numpy.asarray(labels)
        if len(images) != self._batch:
            raise ValueError(f"MixUp: a batch of {len(images)} images, and batch_size is {self._batch}")
        random = _random.generator()
        if self._single or self._before is None:
            order = random.permutation(len(images))
            others = images[order], labels[order]
        else:
            others = self._before
        self._before = images, labels
        share = float(random.beta(self._alpha, self._alpha))
        return share * images + (1 - share) * others[0], share * labels + (1 - share) * others[1]
