"""mindspore.dataset.vision: operations on images."""

from mindspore import _names

# Each name loads with its first use: names by the module that has them.
_HOLDERS = {
    "_boxes": """
        BoundingBoxAugment RandomCropWithBBox RandomHorizontalFlipWithBBox RandomResizeWithBBox
        RandomResizedCropWithBBox RandomVerticalFlipWithBBox ResizeWithBBox""",
    "_augment": """
        AutoAugment CutMixBatch MixUp MixUpBatch RandAugment RandomSelectSubpolicy
        TrivialAugmentWide UniformAugment""",
    "_color": """
        AdjustBrightness AdjustContrast AdjustGamma AdjustHue AdjustSaturation AdjustSharpness
        AutoContrast ConvertColor Equalize Grayscale HsvToRgb Invert LinearTransformation
        NormalizePad Posterize RgbToHsv Solarize""",
    "_enums": """
        AutoAugmentPolicy Border ConvertMode ImageBatchFormat ImageReadMode Inter SliceMode""",
    "_files": """
        Decode ToNumpy ToPIL ToType encode_jpeg encode_png
        get_image_num_channels get_image_size read_file read_image write_file write_jpeg write_png""",
    "_geometry": """
        Affine CenterCrop Crop CutOut Erase FiveCrop GaussianBlur HorizontalFlip Pad PadToSize
        Perspective Resize ResizedCrop Rotate SlicePatches TenCrop VerticalFlip""",
    "_scaling": "HWC2CHW Normalize Rescale",
    "_to_tensor": "ToTensor",
    "_random_ops": """
        RandomAdjustSharpness RandomAffine RandomAutoContrast RandomColor
        RandomColorAdjust RandomCrop RandomCropDecodeResize RandomEqualize
        RandomErasing RandomGrayscale RandomHorizontalFlip RandomInvert
        RandomLighting RandomPerspective RandomPosterize RandomResize 
        RandomResizedCrop RandomRotation RandomSharpness RandomSolarize
        RandomVerticalFlip """,
}
_LATER = {name: holder for holder, names in _HOLDERS.items() for name in names.split()}
_LATER["not_random"] = "_files"

__all__ = sorted(_LATER)
__getattr__ = _names.later(
    __name__, _LATER, ("c_transforms", "py_transforms", "py_transforms_util", "transforms", "utils")
)
