"""Kinds of arguments that MindSpore's constructors refuse by a TypeError, and the place that refuses them.

Each line of `_TABLE` is an argument, the kinds that pass, those that are refused, and the classes
that have it so; lines that begin with spaces go on. tests/parity/argument_types.py makes it of what
MindSpore 2.7.0 does.
"""

import functools
import types

import muster

_KINDS = {
    "b": (bool, "True or False"),
    "i": (int, "a whole number"),
    "f": (float, "a float"),
    "s": (str, "a string"),
    "n": (type(None), "None"),
    "d": (dict, "a dict"),
    "t": (tuple, "a tuple"),
    "l": (list, "a list"),
    "T": (muster.Tensor, "a Tensor"),
}
_TABLE = """
accum f bisndtlT nn.ProximalAdagrad
activation n bifd nn.Conv2dBnAct nn.Dense nn.DenseBnAct nn.MultiClassDiceLoss
adjoint_dt b ifsndtlT nn.SparseTensorDenseMatmul
adjoint_st b ifsndtlT nn.SparseTensorDenseMatmul
affine b ifsndtlT nn.BatchNorm3d nn.GroupNorm nn.SyncBatchNorm
after_fake b ifsndtlT nn.Conv2dBnAct nn.DenseBnAct
alpha f bisndtlT nn.ASGD nn.LRN ops.LRN
atol bifn sdtlT ops.IsClose
axis bint fsdlT nn.Norm ops.Softmax ops.Squeeze
axis bitl fsndT ops.L2Normalize
axis i bfsndtlT ops.Sort ops.Stack ops.Unstack
axis int bfsdlT nn.Moments
axis intl bfsdT nn.ClipByNorm
axis itl bfsndT nn.ReduceLogSumExp ops.LpNorm
b_box nl bifsd nn.OcclusionSensitivity
batch_dim i bfsndtlT ops.ReverseSequence
beta bifT sndtl nn.Fbeta
beta bifn sdtlT ops.SmoothL1Loss
beta f bisndtlT nn.LRN ops.LRN
beta1 ifn bsdtlT nn.AdaFactor
beta_init bifT ndtl nn.BatchNorm3d nn.GroupNorm nn.SyncBatchNorm
bias b ifsndtlT nn.Linear
bias f bisndtlT nn.LRN ops.LRN
bias_init bifnT dtl nn.BiDense nn.Dense nn.DenseBnAct nn.Linear
block_shape itl bfsndT ops.BatchToSpaceND ops.SpaceToBatchND
calculation_method b ifsndtlT nn.ConfusionMatrixMetric
ceil_mode b ifsndtlT nn.AvgPool3d ops.AvgPool3D
ceil_mode bind fstl nn.AvgPool1d
ceil_mode n ifsd ops.MaxPool3D
central_fraction f bisndtlT nn.CentralCrop
channel i bfsndtlT nn.PReLU
class_num in bfsdtlT nn.ROC
clip_threshold f bisndtlT nn.AdaFactor
compression b ifsndtlT nn.AdaFactor
count_include_pad b ifsndtlT nn.AvgPool3d ops.AvgPool3D
count_include_pad bifstlT nd nn.AvgPool1d
crop bn ifsdtlT nn.HausdorffDistance
ctc_merge_repeated b ifsndtlT ops.CTCLoss
d_model i bsndtl nn.TransformerDecoderLayer nn.TransformerEncoderLayer
data_format n bifd ops.AvgPool ops.BatchNorm
decay_rate f bisndtlT nn.ExponentialDecayLR nn.InverseDecayLR nn.NaturalExpDecayLR
decay_steps i bfsndtlT nn.CosineDecayLR nn.ExponentialDecayLR nn.InverseDecayLR nn.NaturalExpDecayLR
  nn.PolynomialDecayLR
delta bifnT sdtl nn.Range
depth_radius i bfsndtlT nn.LRN ops.LRN
descending b ifsndtlT ops.Sort
dilation i bfsndlT nn.Conv3d nn.Conv3dTranspose ops.Conv3D
dilation i bfsndtlT nn.Conv1d nn.Conv1dTranspose
dilation it bfsndlT nn.Conv2dBnAct nn.Conv2dTranspose ops.Conv2D ops.Conv2DTranspose
dim_feedforward i bfsndtlT nn.TransformerDecoderLayer nn.TransformerEncoderLayer
directed bn ifsdtlT nn.HausdorffDistance
divisor_override i bfsndtlT ops.AvgPool3D
divisor_override in bfsdtl nn.AvgPool3d
dropout in bsdtlT nn.TransformerDecoderLayer nn.TransformerEncoderLayer
dtype n bifsd nn.LayerNormExt nn.Linear nn.MultiheadAttention nn.PReLUExt
embed_dim i bsndtl nn.MultiheadAttention
embedding_size i bfsndtlT nn.EmbeddingLookup
end_learning_rate f bisndtlT nn.PolynomialDecayLR
eps f bisndtlT nn.AdaMax nn.AdamOffload nn.GaussianNLLLoss nn.GroupNorm
eps tl bifsnd nn.AdaFactor
epsilon f bisndtlT nn.Adadelta ops.LpNorm
epsilon if bsndtlT ops.L2Normalize
extrapolation_value f bisndtlT ops.CropAndResize
filter_sigma f bisndtlT nn.SSIM
filter_size i bfsndtlT nn.SSIM
full b ifsndtlT nn.GaussianNLLLoss
gamma f bisndtlT nn.FocalLoss
gamma_init bifT ndtl nn.BatchNorm3d nn.GroupNorm nn.SyncBatchNorm
get_all b ifsndtlT nn.ForwardValueAndGrad ops.GradOperation
get_by_list b ifsndtlT ops.GradOperation
gradient_scale f bisndtlT ops.ApplyMomentum
group i bfsndtl nn.Conv3d nn.Conv3dTranspose
group i bfsndtlT nn.Conv1d nn.Conv1dTranspose nn.Conv2dBnAct nn.Conv2dTranspose ops.Conv2D
  ops.Conv2DTranspose ops.Conv3D
group s bifndtlT nn.DistributedGradReducer
groups bi fsndtlT nn.ChannelShuffle
has_bias b ifsndtl nn.MultiheadAttention
has_bias b ifsndtlT nn.BiDense nn.Conv1d nn.Conv1dTranspose nn.Conv2dBnAct nn.Conv2dTranspose
  nn.Conv3d nn.Conv3dTranspose nn.Dense nn.DenseBnAct nn.GRUCell nn.LSTMCell nn.RNNCell
has_bn b ifsndtlT nn.Conv2dBnAct nn.DenseBnAct
hidden_size i bfsndtlT nn.GRUCell nn.LSTMCell nn.RNNCell
ignore_indiex in bfsdtlT nn.MultiClassDiceLoss
ignore_label in bfsdtlT nn.Perplexity
ignore_longer_outputs_than_inputs b ifsndtlT ops.CTCLoss
in1_channels i bfsndtlT nn.BiDense
in2_channels i bfsndtlT nn.BiDense
in_channels i bfsndtl nn.Conv1d nn.Conv2dBnAct nn.Conv3d nn.Conv3dTranspose
in_channels i bfsndtlT nn.Conv1dTranspose nn.Conv2dTranspose nn.Dense nn.DenseBnAct
in_features i bfsndtlT nn.Linear
indexing n bifd ops.Meshgrid
init bifnT d nn.PReLUExt
input_size i bfsndtlT nn.GRUCell nn.LSTMCell nn.RNNCell
interleave_num bi fsndtlT nn.MicroBatchInterleaved
iou_threshold f bisndtlT ops.NMSWithMask
is_stair b ifsndtlT nn.ExponentialDecayLR nn.InverseDecayLR nn.NaturalExpDecayLR
k bi fsndtlT nn.TopKCategoricalAccuracy
k1 f bisndtlT nn.SSIM
k2 f bisndtlT nn.SSIM
keep_dims b ifsndtlT nn.Norm nn.ReduceLogSumExp ops.LpNorm
keep_dims bn ifsdtlT nn.Moments
keep_prob f bisndtlT nn.Dropout ops.Dropout2D ops.Dropout3D
kernel_size i bfsndlT nn.Conv3d nn.Conv3dTranspose nn.MaxPool1d nn.MaxPool3d ops.AvgPool3D
  ops.Conv3D ops.MaxPool3D
kernel_size i bfsndtlT nn.Conv1d nn.Conv1dTranspose
kernel_size it bfsndlT nn.AvgPool1d nn.AvgPool3d nn.Conv2dBnAct nn.Conv2dTranspose nn.MaxPool2d
  ops.Conv2D ops.Conv2DTranspose ops.MaxPool ops.MaxPoolWithArgmax
ksizes ntl bifsd ops.ExtractImagePatches
l1 f bisndtlT nn.ProximalAdagrad
l2 f bisndtlT nn.ProximalAdagrad
lambd bifn sdtlT nn.HShrink nn.SoftShrink ops.HShrink ops.SoftShrink
lambd f bisndtlT nn.ASGD
learning_rate bifdtlT n nn.ASGD nn.AdaMax nn.Adadelta nn.AdamOffload nn.ProximalAdagrad nn.Rprop
learning_rate f bisndtlT nn.ExponentialDecayLR nn.InverseDecayLR nn.NaturalExpDecayLR
  nn.PolynomialDecayLR nn.WarmUpLR
limit bifnT sdtl nn.Range
loss_scale bif sndtlT nn.AdaFactor nn.AdaMax nn.Adadelta nn.AdamOffload nn.ProximalAdagrad
lower i bsndtlT nn.RReLU
margin f bisndtlT nn.CosineEmbeddingLoss nn.MultiMarginLoss nn.TripletMarginWithDistanceLoss
margin if bsndtlT nn.HingeEmbeddingLoss
margin il bfsndtT nn.OcclusionSensitivity
max_lr f bisndtlT nn.CosineDecayLR
max_norm fn bisdtlT nn.EmbeddingLookup
max_val bifT sndtl nn.Hardtanh
max_val if bsndtlT nn.PSNR nn.SSIM
metric_name s bifndtlT nn.ConfusionMatrixMetric
micro_size bi fsndtlT nn.GradAccumulationCell nn.PipelineCell
min_val i sndtl nn.Hardtanh
mode i bfsndtlT ops.Conv2D ops.Conv2DTranspose ops.Conv3D
momentum bifT sndtl nn.BatchNorm3d nn.SyncBatchNorm
moving_mean_init bifT ndtl nn.BatchNorm3d nn.SyncBatchNorm
moving_var_init bifT ndtl nn.BatchNorm3d nn.SyncBatchNorm
n_batch i bfsndtlT nn.OcclusionSensitivity
n_gram i bfsndtlT nn.BleuScore
nesterov b ifsndtlT ops.SGD
nhead bifT sndtl nn.TransformerDecoderLayer nn.TransformerEncoderLayer
normalized_shape itl bfsndT nn.LayerNormExt
num in bfsdtlT ops.Unstack
num_channels i bfsndtlT nn.GroupNorm
num_classes i bfsndtl nn.SampledSoftmaxLoss
num_classes i bfsndtlT nn.ConfusionMatrix
num_features i bfsndtlT nn.BatchNorm3d nn.SyncBatchNorm
num_groups i bfsndtlT nn.GroupNorm
num_heads bifT sndtl nn.MultiheadAttention
num_parameters iT bfsndtl nn.PReLUExt
num_sampled i bfsndtl nn.SampledSoftmaxLoss
num_sampled i bfsndtlT ops.UniformCandidateSampler
num_true i bfsndtl nn.SampledSoftmaxLoss
num_true i bfsndtlT ops.UniformCandidateSampler
out_channel i bfsndtlT ops.Conv2D ops.Conv2DTranspose ops.Conv3D
out_channels i bfsndtl nn.Conv1d nn.Conv2dBnAct nn.Conv3d nn.Conv3dTranspose
out_channels i bfsndtlT nn.BiDense nn.Conv1dTranspose nn.Conv2dTranspose nn.Dense nn.DenseBnAct
out_features i bfsndtlT nn.Linear
output_padding i bfsndlT nn.Conv3dTranspose
output_padding it bfsndlT nn.Conv2dTranspose
output_size bifntlT sd nn.AdaptiveMaxPool3d
output_size i bfsndtlT nn.AdaptiveAvgPool1d nn.AdaptiveMaxPool1d
output_size it bfsndlT nn.AdaptiveAvgPool3d ops.AdaptiveAvgPool2D
output_type n bifsd ops.Argmax ops.Argmin
p f bisndtlT nn.Dropout1d nn.Dropout2d nn.Dropout3d
p i bfsndtlT nn.MultiMarginLoss ops.LpNorm
p in bsdtlT nn.Dropout
pad i bfsndT ops.AvgPool3D
pad i bfsndlT ops.Conv2D ops.Conv2DTranspose ops.Conv3D
pad_list i bfsndlT ops.MaxPool3D
pad_list indtl bfs ops.Conv2DTranspose
pad_mode n bifd ops.AvgPool
pad_val f bisndtlT nn.OcclusionSensitivity
padding bit fsndlT nn.ConstantPad1d nn.ConstantPad2d nn.ConstantPad3d nn.ReflectionPad1d
  nn.ReflectionPad2d nn.ReflectionPad3d nn.ReplicationPad1d nn.ReplicationPad2d nn.ReplicationPad3d
  nn.ZeroPad2d
padding i bfsnd nn.AvgPool1d
padding i bfsndT nn.AvgPool3d nn.MaxPool3d
padding i bfsndlT nn.Conv2dBnAct nn.Conv2dTranspose nn.Conv3d nn.Conv3dTranspose
padding i bfsndtlT nn.Conv1d nn.Conv1dTranspose
padding n bifd nn.Unfold ops.ExtractImagePatches
paddings t bifsnd nn.Pad ops.Pad
paddings tl bifsnd ops.SpaceToBatchND
param_init bif ndtl nn.EmbeddingLookup
parameters d bifn nn.DistributedGradReducer
percentile fn bisdtlT nn.HausdorffDistance
pooled_height i bfsndtlT ops.ROIAlign
pooled_width i bfsndtlT ops.ROIAlign
pos_label in bfsdtlT nn.ROC
power f bisndtlT nn.PolynomialDecayLR
preprocess_collapse_repeated b ifsndtlT ops.CTCLoss
range_max i bfsndtlT ops.UniformCandidateSampler
rates ntl bifsd ops.ExtractImagePatches
reduction n bifd ops.BinaryCrossEntropy ops.NLLLoss ops.SmoothL1Loss
relative_step b fstl nn.AdaFactor
remove_accidental_hits b ifsndtlT nn.SampledSoftmaxLoss ops.UniformCandidateSampler
reshape_with_axis in bfsdtlT nn.TimeDistributed
rho f bisndtlT nn.Adadelta
roi_end_mode i bfsndtlT ops.ROIAlign
rtol bifn sdtlT ops.IsClose
sample_num i bfsndtlT ops.ROIAlign
sampled_values n bifsd nn.SampledSoftmaxLoss
scale if bsndtlT nn.L1Regularizer
scale_factor bifntlT sd nn.DynamicLossScaleUpdateCell
scale_parameter b ifsndtlT nn.AdaFactor
scale_sense T bifsnd nn.TrainOneStepWithLossScaleCell
scale_window bifntlT sd nn.DynamicLossScaleUpdateCell
seed i bfsndtl nn.SampledSoftmaxLoss
seed i bfsndtlT ops.Multinomial ops.StandardNormal ops.TruncatedNormal ops.UniformCandidateSampler
  ops.UniformInt ops.UniformReal
seed2 i bfsndtlT ops.Multinomial ops.StandardNormal ops.TruncatedNormal ops.UniformInt
  ops.UniformReal
sens_param b ifsndtlT nn.ForwardValueAndGrad ops.GradOperation
seq_dim i bfsndtlT ops.ReverseSequence
shape ntlT bifsd ops.BroadcastTo
size i bfsndtlT nn.TensorArray
skip_channel b ifsndtlT nn.ConfusionMatrixMetric
smooth b ifsndtlT nn.BleuScore
smooth f bisndtlT nn.Dice nn.DiceLoss
sorted b ifsndtlT ops.TopK
sparse b ifsndtlT nn.EmbeddingLookup
spatial_scale f bisndtlT ops.ROIAlign
start bifT sndtl nn.Range
step_sizes t bifsnd nn.Rprop
stride i bfsndlT nn.Conv3d nn.Conv3dTranspose nn.MaxPool1d nn.MaxPool3d ops.Conv3D
stride i bfsndtlT nn.Conv1d nn.Conv1dTranspose
stride it bfsndlT nn.AvgPool1d nn.AvgPool3d nn.Conv2dBnAct nn.Conv2dTranspose nn.MaxPool2d
  ops.Conv2D ops.Conv2DTranspose
strides i bfsndlT ops.AvgPool3D ops.MaxPool3D
strides it bfsndlT ops.MaxPool ops.MaxPoolWithArgmax
strides ntl bifsd ops.ExtractImagePatches
swap b ifsndtlT nn.TripletMarginWithDistanceLoss
symmetric b ifsndtlT nn.MeanSurfaceDistance nn.RootMeanSquareDistance
t0 f bisndtlT nn.ASGD
threshold f bisndtlT nn.ConfusionMatrix
time_axis i bfsndtlT nn.TimeDistributed
tolerance f bisndtlT ops.ApproximateEqual
transpose_x1 b ifsndtlT nn.MatMul
transpose_x2 b ifsndtlT nn.MatMul
unique b ifsndtlT ops.UniformCandidateSampler
update_decay_steps b ifsndtlT nn.PolynomialDecayLR
update_slots b ifsndtlT ops.ApplyAdagrad
upper if bsndtlT nn.RReLU
use_locking b ifsndtlT nn.AdamOffload nn.ProximalAdagrad ops.ApplyCenteredRMSProp ops.ApplyFtrl
  ops.ApplyMomentum ops.ApplyRMSProp ops.ScatterAdd ops.ScatterUpdate
use_nesterov b ifsndtlT nn.AdamOffload ops.ApplyMomentum
value bif sndtlT nn.ConstantPad1d nn.ConstantPad2d nn.ConstantPad3d
vocab_cache_size i bfsndtlT nn.EmbeddingLookup
vocab_size i bfsndtlT nn.EmbeddingLookup
w f bisndt nn.PReLU
warmup_steps i bfsndtlT nn.WarmUpLR
weight nT bifsd nn.FocalLoss
weight_decay bif sndtlT nn.ASGD nn.AdaMax nn.Adadelta nn.AdamOffload nn.ProximalAdagrad nn.Rprop
weight_init bifn dtl nn.BiDense nn.Conv1d nn.Conv1dTranspose nn.Conv2dBnAct nn.Conv2dTranspose
  nn.Conv3d nn.Conv3dTranspose nn.Dense nn.DenseBnAct nn.Linear
weights n bifsd nn.MultiClassDiceLoss
zero_diagonal b ifsndtlT nn.CosineSimilarity
"""


def _by_class() -> dict:
    found: dict = {}
    for line in _TABLE.strip().replace("\n  ", " ").splitlines():
        argument, passing, refused, *classes = line.split()
        for name in classes:
            found.setdefault(name, {})[argument] = (passing, refused)
    return found


_OF_CLASSES = _by_class()


def _kind(value):
    return next((letter for letter, (kind, _) in _KINDS.items() if isinstance(value, kind)), None)


def check(name: str, given: dict) -> None:
    """Raises TypeError for an argument of a kind that the class ("ops.Softmax") does not take."""
    kinds = _OF_CLASSES.get(name)
    for argument, value in given.items() if kinds else ():
        passing, refused = kinds.get(argument, ("", ""))
        if (_kind(value) or " ") in refused:
            kinds_named = passing.replace("b", "") if "i" in passing else passing
            wanted = " or ".join(_KINDS[kind][1] for kind in kinds_named)
            raise TypeError(f"{name.partition('.')[2]}: {argument} is {wanted}, not {value!r}")


def _positional(init) -> tuple:
    """The names of a function's arguments, without `self`."""
    while hasattr(init, "__wrapped__"):
        init = init.__wrapped__
    return init.__code__.co_varnames[1 : init.__code__.co_argcount]


def watch(name: str, made):
    """The class of this name, whose __init__ checks its arguments from now on, whoever calls it.

    The library's own classes of C++ cannot be watched.
    """
    init = getattr(made, "__init__", None)
    if name not in _OF_CLASSES or not isinstance(init, types.FunctionType) or "_watched" in vars(made):
        return made
    names = _positional(init)

    @functools.wraps(init)
    def checked(self, *args, **kwargs):
        check(name, {**dict(zip(names, args, strict=False)), **kwargs})
        init(self, *args, **kwargs)

    made.__init__ = checked
    made._watched = True
    return made
