"""mindspore.amp: mixed precision, in bfloat16, and loss scales."""

import collections

import muster.amp
from muster.amp import get_black_list, get_white_list

from mindspore import _device, _names, _optimizers
from mindspore.nn._loss_scale import (
    DynamicLossScaleManager,
    DynamicLossScaler,
    FixedLossScaleManager,
    LossScaleManager,
    LossScaler,
    StaticLossScaler,
    TrainOneStepWithLossScaleCell,
    all_finite,
)
from mindspore.nn._loss_scale import (
    _grad_scale_map as _grad_scale_map,
)
from mindspore.nn._loss_scale import (
    _grad_unscale_map as _grad_unscale_map,
)
from mindspore.nn._members import half


def auto_mixed_precision(network, amp_level="O0", dtype="float16"):
    """muster.amp.auto_mixed_precision, which computes in bfloat16 also where `dtype` is float16."""
    if amp_level == "O0":
        return muster.amp.auto_mixed_precision(network, amp_level)
    made = muster.amp.auto_mixed_precision(network, amp_level, half(dtype))
    made._amp_level = amp_level
    return made


def custom_mixed_precision(network, *, white_list=None, black_list=None, dtype="float16"):
    """muster.amp.custom_mixed_precision, which computes in bfloat16 also where `dtype` is float16."""
    return muster.amp.custom_mixed_precision(
        network, white_list=white_list, black_list=black_list, dtype=half(dtype)
    )


def _cells_of(listed):
    """The classes of cells in a list, in which MindSpore names ops, too: those follow the cells around."""
    return [each for each in listed if isinstance(each, type) and issubclass(each, muster.Cell)]


def _auto_white_list(network, white_list, dtype):
    """custom_mixed_precision, as MindSpore's own levels and libraries call it."""
    return custom_mixed_precision(network, white_list=_cells_of(white_list), dtype=dtype)


def _auto_black_list(network, black_list, dtype):
    """custom_mixed_precision, as MindSpore's own levels and libraries call it."""
    return custom_mixed_precision(network, black_list=_cells_of(black_list), dtype=dtype)


def note_batch_norms(call, level, keep_batchnorm_fp32):
    """Says once that batch norms keep to float32 where a script asked for less."""
    if keep_batchnorm_fp32 not in (None, True, False):
        raise TypeError(f"{call}: keep_batchnorm_fp32 is True or False, not {keep_batchnorm_fp32!r}")
    if keep_batchnorm_fp32 is False and level == "O2":
        _device.note_once(
            f"note: {call}(keep_batchnorm_fp32=False): batch norms compute in float32 all the same"
        )


def build_train_network(
    network,
    optimizer,
    loss_fn=None,
    level="O0",
    boost_level="O0",
    *,
    keep_batchnorm_fp32=True,
    loss_scale_manager=None,
    cast_model_type=None,
):
    """A training step of `network` in mixed precision; batch norms compute in float32 at every level.

    With a loss scale manager gradients are of the loss times its scale; steps that overflow update nothing.
    """
    _names.refuse(
        "mindspore.amp.build_train_network",
        boost_level=(boost_level, "O0"),
        cast_model_type=(cast_model_type, None),
    )
    note_batch_norms("mindspore.amp.build_train_network", level, keep_batchnorm_fp32)
    optimizer = _optimizers.of_steps(optimizer)
    if loss_scale_manager is None:
        return muster.amp.build_train_network(network, optimizer, loss_fn, level)
    network = auto_mixed_precision(network, level)
    if loss_fn is not None:
        network = muster.nn.WithLossCell(network, loss_fn, level != "O0")
    return scaled_step(network, optimizer, loss_scale_manager)


def scaled_step(network, optimizer, manager):
    """The training step of `network`, which gives a loss, with the scale of a manager."""
    update = manager.get_update_cell()
    if update is None:
        step = muster.nn.TrainOneStepCell(network, optimizer, float(manager.get_loss_scale()))
    else:
        step = TrainOneStepWithLossScaleCell(network, optimizer, update)
    return step.set_train()


__all__ = [
    "DynamicLossScaleManager",
    "DynamicLossScaler",
    "FixedLossScaleManager",
    "LossScaleManager",
    "LossScaler",
    "StaticLossScaler",
    "all_finite",
    "auto_mixed_precision",
    "build_train_network",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
]
_missing = _names.missing(__name__)
_AUTO = {
    "AMP_BLACK_LIST": "nn.BatchNorm1d nn.BatchNorm2d nn.BatchNorm3d nn.LayerNorm",
    "AMP_WHITE_LIST": """
        nn.Conv1d nn.Conv2d nn.Conv3d nn.Conv1dTranspose nn.Conv2dTranspose nn.Conv3dTranspose nn.Dense
        nn.LSTMCell nn.RNNCell nn.GRUCell Conv2D Conv3D Conv2DTranspose Conv3DTranspose
        Conv2DBackpropInput MatMul BatchMatMul PReLU ReLU Ger
    """,
    "AMP_AUTO_WHITE_LIST": """
        Conv2D Conv3D Conv2DTranspose Conv3DTranspose MatMul BatchMatMul PReLU
    """,
    "AMP_AUTO_BLACK_LIST": """
        Pow ACos Asin Cosh Erfinv Exp Expm1 Log Log1p Reciprocal Rsqrt Sinh Tan Softplus LayerNorm BatchNorm
        KLDivLoss SmoothL1Loss MultilabelMarginLoss SoftMarginLoss TripletMarginLoss MultiMarginLoss
        BCEWithLogitsLoss Pdist Cdist Renorm ReduceProd Softmax LogSoftmax LogSoftmaxExt CumProd CumSum
        NLLLoss
    """,
}
AMP_PRIM_ARG_TABLE = collections.defaultdict(list)  # inputs of ops that alone are cast: of none


def __getattr__(name: str):
    if name not in _AUTO:
        return _missing(name)
    from mindspore import nn  # with the first use: imports stay fast
    from mindspore.ops import operations

    found = [(nn if each.startswith("nn.") else operations, each) for each in _AUTO[name].split()]
    globals()[name] = [getattr(holder, each.removeprefix("nn.")) for holder, each in found]
    return globals()[name]
