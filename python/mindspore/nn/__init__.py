"""mindspore.nn: cells, losses, optimizers."""

import muster
from mindspore import _kinds, _names
from mindspore.nn import _activations as _activations
from mindspore.nn import _input_names as _input_names
from mindspore.nn import _members as _members
from mindspore.nn._activations import (  # noqa: F401 - listed from globals() below
    CELU,
    Hardtanh,
    HSigmoid,
    HSwish,
    LogSigmoid,
    Mish,
    PReLU,
    SeLU,
    Softsign,
)
from muster.nn import *  # noqa: F403 - what it lists, and the optimizers of the rows with it

get_activation = _activations.get_activation  # knows more than that of muster.nn
from mindspore.nn._reducer import DistributedGradReducer  # noqa: E402, F401 - in the place of muster.nn's
from mindspore.nn._schedules import *  # noqa: E402, F403 - in the place of muster.nn's


class Dense(muster.nn.Dense):
    """muster.nn.Dense, whose parameters have `dtype`."""

    def __init__(
        self,
        in_channels,
        out_channels,
        weight_init=None,
        bias_init=None,
        has_bias=True,
        activation=None,
        dtype=muster.float32,
    ):
        if isinstance(in_channels, bool) or isinstance(out_channels, bool):
            raise TypeError("Dense: in_channels and out_channels are whole numbers, not bool")
        super().__init__(
            in_channels, out_channels, weight_init, bias_init, has_bias, _activations.activated(activation)
        )
        _members.in_dtype(self, dtype)


BatchNorm1d = _members.of_any_dtype(muster.nn.BatchNorm1d)
BatchNorm2d = _members.of_any_dtype(muster.nn.BatchNorm2d)
Conv2d = _members.of_any_dtype(muster.nn.Conv2d)
LayerNorm = _members.of_any_dtype(muster.nn.LayerNorm)


class Embedding(muster.nn.Embedding):
    """muster.nn.Embedding; `dtype` is noted, the table has that of a tensor given for it, or float32."""

    def __init__(
        self,
        vocab_size,
        embedding_size,
        use_one_hot=False,
        embedding_table="normal",
        dtype=muster.float32,
        padding_idx=None,
        **of_servers,
    ):
        super().__init__(
            vocab_size, embedding_size, use_one_hot, embedding_table, None, padding_idx, **of_servers
        )
        _members.in_dtype(self, None)
        self.dtype = muster.dtype(dtype)


class Dropout(muster.nn.Dropout):
    """muster.nn.Dropout, of every floating dtype: `dtype` changes nothing."""

    def __init__(self, keep_prob=0.5, p=None, dtype=muster.float32):
        super().__init__(keep_prob, p)


class MaxPool2d(muster.nn.MaxPool2d):
    """muster.nn.MaxPool2d; with pad_mode 'pad' windows may have gaps, and give the places of what they took.

    Args:
        kernel_size: Height and width of a window: a number, or both.
        stride: Between windows, likewise.
        pad_mode: 'valid', 'same' or 'pad'.
        padding: Around the images, with 'pad'.
        dilation: Between the elements of a window, with 'pad'.
        return_indices: With 'pad': whether the flat places of the elements come as a second result, int64.
        ceil_mode: With 'pad': whether the last window may lie partly outside.
        data_format: 'NCHW'.
    """

    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        dilation=1,
        return_indices=False,
        ceil_mode=False,
        data_format="NCHW",
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, 1, False, ceil_mode, data_format)
        self._dilated = dilation not in (1, (1,), (1, 1))
        if (self._dilated or return_indices) and pad_mode.lower() != "pad":
            raise ValueError(f"MaxPool2d: dilation and return_indices need pad_mode 'pad', not {pad_mode!r}")
        self.padding, self.dilation, self.ceil_mode = padding, dilation, ceil_mode
        self.return_indices = return_indices

    def construct(self, x):
        """The pooled images, with `return_indices` also the places of their elements."""
        if not self._dilated and not self.return_indices:
            return super().construct(x)
        from mindspore.ops import _windows

        settings = (self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
        return _windows.max_pool(x, 2, *settings, self.return_indices)


class _LossFunction(muster.Cell):
    """A loss that is a function."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def construct(self, *inputs):
        return self._function(*inputs)


def _loss_cell(loss_fn):
    is_function = callable(loss_fn) and not isinstance(loss_fn, muster.Cell)
    return _LossFunction(loss_fn) if is_function else loss_fn


class WithEvalCell(muster.train.WithEvalCell):
    """muster.train.WithEvalCell, also of a function."""

    def __init__(self, network, loss_fn, add_cast_fp32=False):
        super().__init__(network, _loss_cell(loss_fn), add_cast_fp32)


class WithLossCell(muster.nn.WithLossCell):
    """muster.nn.WithLossCell, also of a function; what the network gives reaches the loss as one argument, as
    a tuple too."""

    def __init__(self, backbone, loss_fn):
        super().__init__(backbone, _loss_cell(loss_fn))

    def construct(self, *inputs):
        """The loss of (data, label)."""
        return self._loss_fn(self._backbone(*inputs[:-1]), inputs[-1])


# Modules that are imported when one of their names is first used.
_LATER = {
    "_basic": (
        "CentralCrop",
        "ChannelShuffle",
        "ClipByNorm",
        "Dropout1d",
        "Dropout2d",
        "Dropout3d",
        "DropoutExt",
        "FastGelu",
        "GLU",
        "HShrink",
        "ImageGradients",
        "L1Regularizer",
        "LogSoftmaxExt",
        "MatMul",
        "MatrixDiag",
        "MatrixDiagPart",
        "Moments",
        "Norm",
        "OneHot",
        "PReLUExt",
        "PSNR",
        "PixelShuffle",
        "PixelUnshuffle",
        "RReLU",
        "Range",
        "ReduceLogSumExp",
        "Roll",
        "SSIM",
        "SoftShrink",
        "Softmax2d",
        "Softmin",
        "Tanhshrink",
        "Threshold",
        "Tril",
        "Triu",
        "Unflatten",
        "Upsample",
    ),
    "_convolutions": (
        "Conv1d",
        "Conv1dTranspose",
        "Conv2dTranspose",
        "Conv3d",
        "Conv3dTranspose",
    ),
    "_loss_scale": (
        "DynamicLossScaleUpdateCell",
        "FixedLossScaleUpdateCell",
        "TrainOneStepWithLossScaleCell",
    ),
    "_more_losses": (
        "CTCLoss",
        "CosineEmbeddingLoss",
        "DiceLoss",
        "FocalLoss",
        "GaussianNLLLoss",
        "HingeEmbeddingLoss",
        "HuberLoss",
        "KLDivLoss",
        "L1LossExt",
        "MAELoss",
        "MarginRankingLoss",
        "MultiClassDiceLoss",
        "MultiLabelSoftMarginLoss",
        "MultiMarginLoss",
        "MultilabelMarginLoss",
        "PoissonNLLLoss",
        "RMSELoss",
        "SoftMarginLoss",
        "TripletMarginLoss",
        "TripletMarginWithDistanceLoss",
    ),
    "_normalizations": (
        "BatchNorm3d",
        "GroupNorm",
        "InstanceNorm1d",
        "InstanceNorm2d",
        "InstanceNorm3d",
        "LRN",
        "LayerNormExt",
        "SyncBatchNorm",
    ),
    "_optimizers": (
        "ASGD",
        "AdaFactor",
        "AdaMax",
        "Adadelta",
        "AdamOffload",
        "LazyAdam",
        "ProximalAdagrad",
        "Rprop",
    ),
    "_padding": (
        "ConstantPad1d",
        "ConstantPad2d",
        "ConstantPad3d",
        "Pad",
        "ReflectionPad1d",
        "ReflectionPad2d",
        "ReflectionPad3d",
        "ReplicationPad1d",
        "ReplicationPad2d",
        "ReplicationPad3d",
        "Unfold",
        "ZeroPad2d",
    ),
    "_pooling": (
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool3d",
        "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d",
        "AdaptiveMaxPool3d",
        "AvgPool1d",
        "AvgPool1dExt",
        "AvgPool2dExt",
        "AvgPool3d",
        "AvgPool3dExt",
        "LPPool1d",
        "LPPool2d",
        "MaxPool1d",
        "MaxPool2dExt",
        "MaxPool3d",
        "MaxUnpool1d",
        "MaxUnpool2d",
        "MaxUnpool3d",
    ),
    "_rarer": (
        "DiGamma",
        "FractionalMaxPool2d",
        "FractionalMaxPool3d",
        "IGamma",
        "LBeta",
        "LGamma",
        "SampledSoftmaxLoss",
        "SparseTensorDenseMatmul",
        "SparseToDense",
    ),
    "_recurrent": (
        "GRU",
        "GRUCell",
        "LSTM",
        "LSTMCell",
        "RNN",
        "RNNCell",
    ),
    "_tensor_array": ("TensorArray",),
    "_transformer": (
        "MultiheadAttention",
        "Transformer",
        "TransformerDecoder",
        "TransformerDecoderLayer",
        "TransformerEncoder",
        "TransformerEncoderLayer",
    ),
    "_micro_batches": ("GradAccumulationCell", "MicroBatchInterleaved", "PipelineCell"),
    "_embeddings": ("EmbeddingLookup", "MultiFieldEmbeddingLookup"),
    "_wrappers": (
        "BiDense",
        "CellDict",
        "Conv2dBnAct",
        "DenseBnAct",
        "ForwardValueAndGrad",
        "Jvp",
        "Linear",
        "ParameterUpdate",
        "TimeDistributed",
        "VirtualDatasetCellTriple",
        "Vjp",
        "WithGradCell",
    ),
}
_INSIDE = {  # of older paths
    "_older": ("_BatchNorm", "_Conv", "_Loss", "_VirtualDatasetCell", "_activation", "opt_init_args_register")
}
_METRICS = """
    Accuracy BleuScore ConfusionMatrix ConfusionMatrixMetric CosineSimilarity Dice F1 Fbeta
    HausdorffDistance Loss MAE MSE MeanSurfaceDistance Metric OcclusionSensitivity Perplexity Precision ROC
    Recall RootMeanSquareDistance Top1CategoricalAccuracy Top5CategoricalAccuracy TopKCategoricalAccuracy
    auc get_metric_fn names rearrange_inputs
"""
_HOLDERS = {name: f"{__name__}.{module}" for module, names in (_LATER | _INSIDE).items() for name in names}
_HOLDERS |= dict.fromkeys(_METRICS.split(), "mindspore.train.metrics")
_STEPS = (
    "RNNCellBase",
    "_gru_cell",
    "_lstm_cell",
    "_rnn_relu_cell",
    "_rnn_tanh_cell",
)  # of one path, likewise
_HOLDERS |= dict.fromkeys(_STEPS, f"{__name__}._recurrent")
_HOLDERS["GraphCell"] = "mindspore.train._mindir._cells"
_HOLDERS["no_init_parameters"] = "mindspore.nn.utils"

for _name in ("MultiHeadAttention", "RMSNorm", *_HOLDERS):  # of muster.nn alone, or with other arguments here
    globals().pop(_name, None)
del Initializer, initializer  # noqa: F821 - MindSpore has them in mindspore.common.initializer
_input_names.attach(globals())
_ours = {name for name in globals() if not name.startswith("_")} - {"GlobalComm", "muster"}
for _name in _ours:
    _kinds.watch(f"nn.{_name}", globals()[_name])
__all__ = sorted(_ours | set(_HOLDERS) - {*_INSIDE["_older"], *_STEPS})
__getattr__ = _names.missing(__name__, later=("probability", "utils"), holders=_HOLDERS)
