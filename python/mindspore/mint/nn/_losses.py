"""Losses as cells."""

from mindspore.mint.nn import functional as F  # noqa: N812
from mindspore.mint.nn._made import cell as _cell


def _made(name, function, words, **settings):
    return _cell(name, function, words, __name__, **settings)


MSELoss = _made("MSELoss", F.mse_loss, "(input - target)^2.", reduction="mean")
L1Loss = _made("L1Loss", F.l1_loss, "|input - target|.", reduction="mean")
SmoothL1Loss = _made(
    "SmoothL1Loss", F.smooth_l1_loss, "|input - target|, squared near 0.", reduction="mean", beta=1.0
)
SoftMarginLoss = _made("SoftMarginLoss", F.soft_margin_loss, "log(1 + e^(-target input)).", reduction="mean")
KLDivLoss = _made("KLDivLoss", F.kl_div, "target (log(target) - input).", reduction="mean", log_target=False)
BCELoss = _made(
    "BCELoss", F.binary_cross_entropy, "Cross entropy of probabilities.", weight=None, reduction="mean"
)
BCEWithLogitsLoss = _made(
    "BCEWithLogitsLoss",
    F.binary_cross_entropy_with_logits,
    "Cross entropy of the sigmoid of scores.",
    weight=None,
    reduction="mean",
    pos_weight=None,
)
NLLLoss = _made(
    "NLLLoss",
    F.nll_loss,
    "The negated logarithms of probabilities at class numbers.",
    weight=None,
    ignore_index=-100,
    reduction="mean",
)
CrossEntropyLoss = _made(
    "CrossEntropyLoss",
    F.cross_entropy,
    "Cross entropy of scores with class numbers, or with probabilities.",
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
)

__all__ = sorted(name for name in globals() if name[0].isupper() and name != "F")
