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
accum f bisndtlT nn.Adagrad nn.ProximalAdagrad
accumulate i bfsndtlT ops.IndexPut
activation n bifd nn.Conv2dBnAct nn.Dense nn.DenseBnAct
activation sn bifdtlT nn.MultiClassDiceLoss
add_cast_fp32 b ifsndtlT nn.WithEvalCell
adjoint b ifsndtlT ops.MatrixInverse ops.MatrixSolve ops.MatrixTriangularSolve
adjoint_dt b ifsndtlT nn.SparseTensorDenseMatmul ops.SparseTensorDenseMatmul
adjoint_st b ifsndtlT nn.SparseTensorDenseMatmul ops.SparseTensorDenseMatmul
affine b ifsndtlT nn.BatchNorm1d nn.BatchNorm2d nn.BatchNorm3d nn.GroupNorm nn.SyncBatchNorm
after_fake b ifsndtlT nn.Conv2dBnAct nn.DenseBnAct
align s bifndtlT ops.MatrixDiagPartV3 ops.MatrixDiagV3 ops.MatrixSetDiagV3
align_corners b ifsndtlT ops.AffineGrid ops.ResizeArea
alpha f bisndtlT nn.ASGD nn.LRN ops.HammingWindow ops.LRN
approximate b ifsndtlT nn.GELU
atol bifn sdtlT ops.IsClose
axis binT fsdtl ops.TensorScatterElements
axis bint fsdlT nn.Norm nn.Softmax ops.Softmax ops.Squeeze
axis bintlT fsd ops.ReduceStd
axis bitl fsndT ops.L2Normalize
axis i bfsndtlT ops.IndexAdd ops.InplaceIndexAdd ops.Median ops.Pack ops.ScatterAddWithAxis ops.Sort
  ops.Stack ops.Unpack ops.Unstack
axis int bfsdlT nn.Moments
axis intl bfsdT nn.ClipByNorm
axis itl bfsndT nn.ReduceLogSumExp ops.LpNorm
b_box nl bifsd nn.OcclusionSensitivity
base i bfsndtlT ops.LogSpace
batch_dim i bfsndtlT ops.ReverseSequence
beta bifT sndtl nn.Fbeta
beta bifn sdtlT nn.SmoothL1Loss ops.SmoothL1Loss
beta f bisndtlT nn.LRN ops.HammingWindow ops.LRN
beta1 f bisndtlT ops.ApplyAdamWithAmsgrad
beta1 ifn bsdtlT nn.AdaFactor
beta2 f bisndtlT ops.ApplyAdamWithAmsgrad
beta_init bifsT ndtl nn.BatchNorm1d nn.BatchNorm2d nn.BatchNorm3d nn.GroupNorm nn.LayerNorm nn.SyncBatchNorm
bias b ifsndtlT nn.Linear
bias f bisndtlT nn.LRN ops.LRN
bias_init bifnT dtl nn.BiDense nn.Dense nn.Linear
bias_init bifsnT dtl nn.DenseBnAct
bins i bfsndtlT ops.Histogram
blank i bfsndtlT ops.CTCLossV2
block_shape itl bfsndT ops.BatchToSpaceND ops.SpaceToBatchND
calculation_method b ifsndtlT nn.ConfusionMatrixMetric
ceil_mode b ifsndtlT nn.AvgPool3d ops.AvgPool3D ops.MaxPoolWithArgmaxV2
ceil_mode bind fstl nn.AvgPool1d nn.AvgPool2d
ceil_mode n ifsd ops.MaxPool3D
centered b ifsndtlT nn.RMSProp
central_fraction f bisndtlT nn.CentralCrop
channel i bfsndtlT nn.PReLU
class_num in bfsdtlT nn.ROC
clip_threshold f bisndtlT nn.AdaFactor
coefficient f bisndtlT nn.LARS
compression b ifsndtlT nn.AdaFactor
coordinate_transformation_mode sn bifdtlT ops.ResizeLinear1D
count i bfsndtlT ops.RandomChoiceWithMask
count_include_pad b ifsndtlT nn.AvgPool3d ops.AvgPool3D
count_include_pad bifstlT nd nn.AvgPool1d nn.AvgPool2d
crop bn ifsdtlT nn.HausdorffDistance
crops tl bifsnd ops.BatchToSpace
ctc_merge_repeated b ifsndtlT ops.CTCLoss
d_model i bsndtl nn.TransformerDecoderLayer nn.TransformerEncoderLayer
dampening bif sndtlT nn.SGD
data_format sn bifdtlT ops.AvgPool ops.BatchNorm ops.BiasAdd
decay f bisndtlT nn.RMSProp
decay_rate f bisndtlT nn.ExponentialDecayLR nn.InverseDecayLR nn.NaturalExpDecayLR
decay_steps i bfsndtlT nn.CosineDecayLR nn.ExponentialDecayLR nn.InverseDecayLR nn.NaturalExpDecayLR
  nn.PolynomialDecayLR
decrease s bifndtlT nn.ConfusionMatrixMetric
delta bifnT sdtl nn.Range
depth_radius i bfsndtlT nn.LRN ops.LRN
descending b ifsndtlT ops.Sort
diagonal binT fsdtl ops.Triu
diagonal i bfsndtlT ops.Tril
dilation i bfsndlT nn.Conv3d nn.Conv3dTranspose ops.Conv3D ops.Conv3DTranspose
dilation i bfsndtlT nn.Conv1d nn.Conv1dTranspose
dilation it bfsndlT nn.Conv2d nn.Conv2dBnAct nn.Conv2dTranspose ops.Conv2D ops.Conv2DBackpropInput
  ops.Conv2DTranspose ops.MaxPoolWithArgmaxV2
dilation itl bfsndT ops.Col2Im
dim in bfsdtlT ops.Quantile
dim ntl bifsd ops.NuclearNorm
dim_feedforward i bfsndtlT nn.TransformerDecoderLayer nn.TransformerEncoderLayer
dims bintl fsdT ops.Roll
dims intl bfsdT ops.CountNonZero
directed bn ifsdtlT nn.HausdorffDistance
distance_metric s bifndtlT nn.HausdorffDistance nn.MeanSurfaceDistance nn.RootMeanSquareDistance
divisor_override i bfsndtlT ops.AvgPool3D
divisor_override in bfsdtl nn.AvgPool2d nn.AvgPool3d
dropout in bsdtlT nn.TransformerDecoderLayer nn.TransformerEncoderLayer
dtype n bifsd nn.LayerNormExt nn.Linear nn.MultiheadAttention nn.PReLUExt ops.RandpermV2 ops.SearchSorted
dtype s bifndtlT ops.ConfusionMatrix
embed_dim i bsndtl nn.MultiheadAttention
embedding_size i bfsndtlT nn.Embedding nn.EmbeddingLookup
embedding_table bifs ndtl nn.Embedding
end_learning_rate f bisndtlT nn.PolynomialDecayLR
eps f bisndtlT nn.AdaMax nn.Adam nn.AdamOffload nn.AdamWeightDecay nn.GaussianNLLLoss nn.GroupNorm nn.Lamb
  ops.TripletMarginLoss
eps tl bifsnd nn.AdaFactor
epsilon f bisndtlT nn.Adadelta nn.LARS nn.RMSProp ops.ApplyAdagradV2 ops.ApplyAdamWithAmsgrad ops.LARSUpdate
  ops.LpNorm ops.SparseApplyAdadelta ops.SparseApplyAdagradV2
epsilon if bsndtlT ops.L2Normalize
eval_type s bifndtlT nn.Accuracy nn.Precision nn.Recall
exclusive b ifsndtlT ops.CumulativeLogsumexp
extrapolation_value f bisndtlT ops.CropAndResize
fast b ifsndtlT ops.MatrixSolveLs
fast bifT sndtl ops.Lstsq
filter_sigma f bisndtlT nn.SSIM
filter_size i bfsndtlT nn.SSIM
flags ind bfstl nn.Cell
full b ifsndtlT nn.GaussianNLLLoss
gamma f bisndtlT nn.FocalLoss
gamma_init bifsT ndtl nn.BatchNorm1d nn.BatchNorm2d nn.BatchNorm3d nn.GroupNorm nn.LayerNorm
  nn.SyncBatchNorm
get_all b ifsndtlT nn.ForwardValueAndGrad ops.GradOperation
get_by_list b ifsndtlT ops.GradOperation
global_median b ifsndtlT ops.Median
gradient_scale f bisndtlT ops.ApplyMomentum
group i bfsndtl nn.Conv3d nn.Conv3dTranspose
group i bfsndtlT nn.Conv1d nn.Conv1dTranspose nn.Conv2d nn.Conv2dBnAct nn.Conv2dTranspose ops.Conv2D
  ops.Conv2DBackpropInput ops.Conv2DTranspose ops.Conv3D ops.Conv3DTranspose
group s bifndtlT nn.DistributedGradReducer ops.AllGather ops.AllReduce ops.CollectiveScatter
  ops.ReduceScatter
groups bi fsndtlT nn.ChannelShuffle
has_bias b ifsndtl nn.MultiheadAttention
has_bias b ifsndtlT nn.BiDense nn.Conv1d nn.Conv1dTranspose nn.Conv2d nn.Conv2dBnAct nn.Conv2dTranspose
  nn.Conv3d nn.Conv3dTranspose nn.Dense nn.DenseBnAct nn.GRUCell nn.LSTMCell nn.RNNCell
has_bn b ifsndtlT nn.Conv2dBnAct nn.DenseBnAct
hidden_size i bfsndtlT nn.GRUCell nn.LSTMCell nn.RNNCell
hyperpara f bisndtlT ops.LARSUpdate
ignore_index i bfsndtlT nn.CrossEntropyLoss nn.NLLLoss
ignore_indiex in bfsdtlT nn.MultiClassDiceLoss
ignore_label in bfsdtlT nn.Perplexity
ignore_longer_outputs_than_inputs b ifsndtlT ops.CTCLoss
ignore_nan b ifsndtlT ops.Median
ignore_nan bn ifsdtlT ops.Quantile
in1_channels i bfsndtlT nn.BiDense
in2_channels i bfsndtlT nn.BiDense
in_channel i bfsndtlT ops.Conv3DTranspose
in_channels i bfsndtl nn.Conv1d nn.Conv2d nn.Conv2dBnAct nn.Conv3d nn.Conv3dTranspose
in_channels i bfsndtlT nn.Conv1dTranspose nn.Conv2dTranspose nn.Dense nn.DenseBnAct
in_features i bfsndtlT nn.Linear
indexing sn bifdtlT ops.Meshgrid
init bifnT d nn.PReLUExt
initial_accum f bisndtlT nn.FTRL
input_size i bfsndtlT nn.GRUCell nn.LSTMCell nn.RNNCell
interleave_num bi fsndtlT nn.MicroBatchInterleaved
interpolation_mode sn bifdtlT ops.GridSampler2D ops.GridSampler3D
iou_threshold f bisndtlT ops.NMSWithMask
is_grad b ifsndtlT ops.SparseSoftmaxCrossEntropyWithLogits
is_stair b ifsndtlT nn.ExponentialDecayLR nn.InverseDecayLR nn.NaturalExpDecayLR
k bi fsndtlT nn.TopKCategoricalAccuracy
k i bfsndtlT ops.InTopK
k1 f bisndtlT nn.SSIM
k2 f bisndtlT nn.SSIM
keep_dims b ifsndtlT nn.Norm nn.ReduceLogSumExp ops.EuclideanNorm ops.LpNorm ops.Median
keep_dims bn ifsdtlT nn.Moments ops.Quantile
keep_prob f bisndtlT nn.Dropout ops.Dropout2D ops.Dropout3D
keepdim b ifsndtlT ops.NuclearNorm
kernel_size i bfsndlT nn.Conv3d nn.Conv3dTranspose nn.MaxPool1d nn.MaxPool3d ops.AvgPool3D ops.Conv3D
  ops.Conv3DTranspose ops.MaxPool3D
kernel_size i bfsndtlT nn.Conv1d nn.Conv1dTranspose
kernel_size it bfsndlT nn.AvgPool1d nn.AvgPool2d nn.AvgPool3d nn.Conv2d nn.Conv2dBnAct nn.Conv2dTranspose
  nn.MaxPool2d ops.Conv2D ops.Conv2DBackpropInput ops.Conv2DTranspose ops.MaxPool ops.MaxPoolWithArgmax
  ops.MaxPoolWithArgmaxV2
kernel_size itl bfsndT ops.Col2Im
ksizes ntl bifsd ops.ExtractImagePatches
l1 f bisndtlT nn.FTRL nn.ProximalAdagrad
l2 f bisndtlT nn.FTRL nn.ProximalAdagrad
l2_regularizer i bfsndtl ops.Lstsq
label_smoothing f bisndtlT nn.CrossEntropyLoss
lambd bifn sdtlT nn.HShrink nn.SoftShrink ops.HShrink ops.SoftShrink
lambd f bisndtlT nn.ASGD
learning_rate bifdtlT n nn.ASGD nn.AdaMax nn.Adadelta nn.Adagrad nn.Adam nn.AdamOffload nn.AdamWeightDecay
  nn.Lamb nn.Optimizer nn.ProximalAdagrad nn.RMSProp nn.Rprop nn.SGD
learning_rate f bisndtlT nn.ExponentialDecayLR nn.InverseDecayLR nn.NaturalExpDecayLR nn.PolynomialDecayLR
  nn.WarmUpLR
learning_rate f bn nn.FTRL
left b ifsndtlT ops.Ormqr
limit bifnT sdtl nn.Range
loss_scale bif sndtlT nn.AdaFactor nn.AdaMax nn.Adadelta nn.Adagrad nn.Adam nn.AdamOffload nn.FTRL
  nn.Optimizer nn.ProximalAdagrad nn.RMSProp nn.SGD
lower b ifsndtlT ops.MatrixTriangularSolve
lower i bsndtlT nn.RReLU
lr f bisndtlT ops.SparseApplyAdagrad ops.SparseApplyAdagradV2
margin f bisndtlT nn.CosineEmbeddingLoss nn.MultiMarginLoss nn.TripletMarginWithDistanceLoss
  ops.MultiMarginLoss
margin if bsndtlT nn.HingeEmbeddingLoss
margin il bfsndtT nn.OcclusionSensitivity
max f bisndtlT ops.Histogram
max_length i bfsndtlT ops.Randperm
max_lr f bisndtlT nn.CosineDecayLR
max_norm fn bisdtlT nn.EmbeddingLookup
max_val bifT sndtl nn.Hardtanh
max_val if bsndtlT nn.PSNR nn.SSIM
mean f bisndtlT ops.LogNormalReverse
merge_repeated b ifsndtlT ops.CTCGreedyDecoder
method s bifndtlT ops.CropAndResize
metric_name s bifndtlT nn.ConfusionMatrixMetric
micro_size bi fsndtlT nn.GradAccumulationCell nn.PipelineCell
min_val i sndtl nn.Hardtanh
mode i bfsndtlT ops.Conv2D ops.Conv2DBackpropInput ops.Conv2DTranspose ops.Conv3D ops.Conv3DTranspose
mode s dl ops.IOU
momentum bif sndtlT nn.SGD
momentum bifT sndtl nn.BatchNorm1d nn.BatchNorm2d nn.BatchNorm3d nn.SyncBatchNorm
momentum f bisndtlT nn.RMSProp
moving_mean_init bifsT ndtl nn.BatchNorm1d nn.BatchNorm2d nn.BatchNorm3d nn.SyncBatchNorm
moving_var_init bifsT ndtl nn.BatchNorm1d nn.BatchNorm2d nn.BatchNorm3d nn.SyncBatchNorm
n_batch i bfsndtlT nn.OcclusionSensitivity
n_gram i bfsndtlT nn.BleuScore
nan bifn sdtlT ops.NanToNum
nbins i bfsndtlT ops.HistogramFixedWidth
neginf bifn sdtlT ops.NanToNum
nesterov b ifsndtlT ops.SGD
ngram_size i bfsndtlT ops.NoRepeatNGram
nhead bifT sndtl nn.TransformerDecoderLayer nn.TransformerEncoderLayer
nonlinearity s bifndtlT nn.RNNCell
norm_region s bifndtlT nn.LRN ops.LRN
normalize b ifsndtlT ops.EditDistance
normalized_shape itl bfsndT nn.LayerNormExt
normalized_shape tl bifsnd nn.LayerNorm
num in bfsdtlT ops.Unstack
num_channels i bfsndtlT nn.GroupNorm
num_classes i bfsndtl nn.SampledSoftmaxLoss
num_classes i bfsndtlT nn.ConfusionMatrix ops.ConfusionMatrix
num_features i bfsndtlT nn.BatchNorm1d nn.BatchNorm2d nn.BatchNorm3d nn.SyncBatchNorm
num_groups i bfsndtlT nn.GroupNorm
num_heads bifT sndtl nn.MultiheadAttention
num_parameters iT bfsndtl nn.PReLUExt
num_sampled i bfsndtl nn.SampledSoftmaxLoss
num_sampled i bfsndtlT ops.LogUniformCandidateSampler ops.UniformCandidateSampler
num_true i bfsndtl nn.SampledSoftmaxLoss
num_true i bfsndtlT ops.LogUniformCandidateSampler ops.UniformCandidateSampler
numsamples i bfsndtlT ops.MultinomialWithReplacement
offset binT fsdtl ops.RandpermV2
op s bifndtlT ops.AllReduce ops.ReduceScatter
out_channel i bfsndtlT ops.Conv2D ops.Conv2DBackpropInput ops.Conv2DTranspose ops.Conv3D ops.Conv3DTranspose
out_channels i bfsndtl nn.Conv1d nn.Conv2d nn.Conv2dBnAct nn.Conv3d nn.Conv3dTranspose
out_channels i bfsndtlT nn.BiDense nn.Conv1dTranspose nn.Conv2dTranspose nn.Dense nn.DenseBnAct
out_features i bfsndtlT nn.Linear
output_padding i bfsndlT nn.Conv3dTranspose ops.Conv3DTranspose
output_padding it bfsndlT nn.Conv2dTranspose
output_size bifntlT sd nn.AdaptiveMaxPool3d
output_size i bfsndtlT nn.AdaptiveAvgPool1d nn.AdaptiveMaxPool1d
output_size it bfsndlT nn.AdaptiveAvgPool2d nn.AdaptiveAvgPool3d ops.AdaptiveAvgPool2D ops.AdaptiveAvgPool3D
output_type n bifsd ops.Argmax ops.Argmin
p f bisndtlT nn.Dropout1d nn.Dropout2d nn.Dropout3d ops.Pdist
p i bfsndtlT nn.MultiMarginLoss ops.LpNorm ops.MultiMarginLoss ops.TripletMarginLoss
p in bsdtlT nn.Dropout
pad i bfsndT ops.AvgPool3D
pad i bfsndlT ops.Conv2D ops.Conv2DBackpropInput ops.Conv2DTranspose ops.Conv3D ops.Conv3DTranspose
pad i bfsndtlT ops.Randperm
pad_dim_size i bfsndtlT ops.Padding
pad_list i bfsndlT ops.MaxPool3D
pad_list indtl bfs ops.Conv2DBackpropInput ops.Conv2DTranspose
pad_mode s bifndtlT nn.AvgPool1d nn.AvgPool2d nn.AvgPool3d nn.Conv2d nn.Conv2dBnAct nn.Conv3d
  nn.Conv3dTranspose nn.MaxPool1d nn.MaxPool2d nn.MaxPool3d ops.AvgPool3D ops.Conv2D ops.Conv2DBackpropInput
  ops.Conv2DTranspose ops.Conv3D ops.Conv3DTranspose ops.MaxPool ops.MaxPool3D ops.MaxPoolWithArgmax
pad_mode sn bifdtlT ops.AvgPool
pad_val f bisndtlT nn.OcclusionSensitivity
padding bit fsndlT nn.ConstantPad1d nn.ConstantPad2d nn.ConstantPad3d nn.ReflectionPad1d nn.ReflectionPad2d
  nn.ReflectionPad3d nn.ReplicationPad1d nn.ReplicationPad2d nn.ReplicationPad3d nn.ZeroPad2d
padding i bfsnd nn.AvgPool1d nn.AvgPool2d
padding i bfsndT nn.AvgPool3d nn.MaxPool3d
padding i bfsndlT nn.Conv2d nn.Conv2dBnAct nn.Conv2dTranspose nn.Conv3d nn.Conv3dTranspose
padding i bfsndtlT nn.Conv1d nn.Conv1dTranspose
padding itl bfsndT ops.Col2Im
padding sn bifdtlT nn.Unfold ops.ExtractImagePatches
padding_idx in bfsdtlT nn.Embedding
padding_mode sn bifdtlT ops.GridSampler2D ops.GridSampler3D
paddings t bifsnd nn.Pad ops.Pad
paddings tl bifsnd ops.SpaceToBatchND
paddings_contiguous b ifsndtlT ops.PadV3
pads it bfsndlT ops.MaxPoolWithArgmaxV2
param_init bifs ndtl nn.EmbeddingLookup
parameters d bifn nn.DistributedGradReducer
percentile fn bisdtlT nn.HausdorffDistance
periodic b ifsndtlT ops.BartlettWindow ops.BlackmanWindow ops.HammingWindow
pooled_height i bfsndtlT ops.ROIAlign
pooled_width i bfsndtlT ops.ROIAlign
pos_label in bfsdtlT nn.ROC
posinf bifn sdtlT ops.NanToNum
power f bisndtlT nn.PolynomialDecayLR
preprocess_collapse_repeated b ifsndtlT ops.CTCLoss
range_max i bfsndtlT ops.UniformCandidateSampler
rates ntl bifsd ops.ExtractImagePatches
reduction s bifndtlT nn.CosineSimilarity ops.CTCLossV2
reduction sn bifdtlT ops.BCEWithLogitsLoss ops.BinaryCrossEntropy ops.NLLLoss ops.SmoothL1Loss
  ops.SoftMarginLoss ops.TensorScatterElements
relative_step b fstl nn.AdaFactor
remove_accidental_hits b ifsndtlT nn.SampledSoftmaxLoss ops.UniformCandidateSampler
replacement b ifsndtlT ops.MultinomialWithReplacement
reshape_with_axis in bfsdtlT nn.TimeDistributed
reverse b ifsndtlT ops.CumulativeLogsumexp ops.NthElement
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
seed binT fsdtl ops.RandpermV2
seed i bfsndtl nn.SampledSoftmaxLoss
seed i bfsndtlT ops.Bernoulli ops.Gamma ops.LogUniformCandidateSampler ops.Multinomial
  ops.ParameterizedTruncatedNormal ops.Poisson ops.RandomChoiceWithMask ops.RandomGamma ops.RandomPoisson
  ops.RandomShuffle ops.StandardLaplace ops.StandardNormal ops.TruncatedNormal ops.UniformCandidateSampler
  ops.UniformInt ops.UniformReal
seed2 i bfsndtlT ops.Gamma ops.Multinomial ops.ParameterizedTruncatedNormal ops.Poisson
  ops.RandomChoiceWithMask ops.RandomGamma ops.RandomPoisson ops.RandomShuffle ops.StandardLaplace
  ops.StandardNormal ops.TruncatedNormal ops.UniformInt ops.UniformReal
sens_param b ifsndtlT nn.ForwardValueAndGrad ops.GradOperation
seq_dim i bfsndtlT ops.ReverseSequence
shape ntlT bifsd ops.BroadcastTo
shifts bintl fsdT ops.Roll
similarity s bifndtlT nn.CosineSimilarity
size i bfsndtlT nn.TensorArray
skip_channel b ifsndtlT nn.ConfusionMatrixMetric
smooth b ifsndtlT nn.BleuScore
smooth f bisndtlT nn.Dice nn.DiceLoss
sorted b ifsndtlT ops.TopK
sparse b ifsndtlT nn.EmbeddingLookup nn.SoftmaxCrossEntropyWithLogits
spatial_scale f bisndtlT ops.ROIAlign
start bifT sndtl nn.Range
std f bisndtlT ops.LogNormalReverse
step_sizes t bifsnd nn.Rprop
steps i bfsndtlT ops.LogSpace
stride i bfsndlT nn.Conv3d nn.Conv3dTranspose nn.MaxPool1d nn.MaxPool3d ops.Conv3D ops.Conv3DTranspose
stride i bfsndtlT nn.Conv1d nn.Conv1dTranspose
stride it bfsndlT nn.AvgPool1d nn.AvgPool2d nn.AvgPool3d nn.Conv2d nn.Conv2dBnAct nn.Conv2dTranspose
  nn.MaxPool2d ops.Conv2D ops.Conv2DBackpropInput ops.Conv2DTranspose
stride itl bfsndT ops.Col2Im
strides i bfsndlT ops.AvgPool3D ops.MaxPool3D
strides int bfsdlT ops.MaxPoolWithArgmaxV2
strides it bfsndlT ops.MaxPool ops.MaxPoolWithArgmax
strides ntl bifsd ops.ExtractImagePatches
summarize i bfsndtlT ops.Assert
swap b ifsndtlT nn.TripletMarginWithDistanceLoss ops.TripletMarginLoss
symmetric b ifsndtlT nn.MeanSurfaceDistance nn.RootMeanSquareDistance
t0 f bisndtlT nn.ASGD
threshold f bisndtlT nn.ConfusionMatrix
time_axis i bfsndtlT nn.TimeDistributed
tolerance f bisndtlT ops.ApproximateEqual
transpose b ifsndtlT ops.Ormqr
transpose_x1 b ifsndtlT nn.MatMul
transpose_x2 b ifsndtlT nn.MatMul
unique b ifsndtlT ops.LogUniformCandidateSampler ops.UniformCandidateSampler
unpack_data b ifsndtlT ops.LuUnpack
unpack_pivots b ifsndtlT ops.LuUnpack
update_decay_steps b ifsndtlT nn.PolynomialDecayLR
update_slots b ifsndtlT nn.Adagrad ops.ApplyAdagrad ops.ApplyAdagradV2 ops.SparseApplyAdagrad
  ops.SparseApplyAdagradV2
upper b ifsndtlT ops.CholeskySolve
upper if bsndtlT nn.RReLU
use_amsgrad b ifsndtlT nn.Adam
use_clip b ifsndtlT nn.LARS ops.LARSUpdate
use_locking b ifsndtlT nn.Adam nn.AdamOffload nn.FTRL nn.ProximalAdagrad nn.RMSProp ops.Adam
  ops.AdamNoUpdateParam ops.ApplyAdagradDA ops.ApplyAdamWithAmsgrad ops.ApplyAdamWithAmsgradV2
  ops.ApplyCenteredRMSProp ops.ApplyFtrl ops.ApplyKerasMomentum ops.ApplyMomentum ops.ApplyProximalAdagrad
  ops.ApplyRMSProp ops.FusedSparseAdam ops.FusedSparseLazyAdam ops.FusedSparseProximalAdagrad ops.ScatterAdd
  ops.ScatterDiv ops.ScatterMax ops.ScatterMin ops.ScatterMul ops.ScatterNdAdd ops.ScatterNdDiv
  ops.ScatterNdMax ops.ScatterNdMin ops.ScatterNdMul ops.ScatterNdSub ops.ScatterNdUpdate ops.ScatterSub
  ops.ScatterUpdate ops.SparseApplyAdadelta ops.SparseApplyAdagrad ops.SparseApplyAdagradV2
  ops.SparseApplyProximalAdagrad
use_nesterov b ifsndtlT nn.Adam nn.AdamOffload ops.Adam ops.AdamNoUpdateParam ops.ApplyKerasMomentum
  ops.ApplyMomentum ops.FusedSparseAdam ops.FusedSparseLazyAdam
use_one_hot b ifsndtlT nn.Embedding
value bif sndtlT nn.ConstantPad1d nn.ConstantPad2d nn.ConstantPad3d
vocab_cache_size i bfsndtlT nn.EmbeddingLookup
vocab_size i bfsndtlT nn.Embedding nn.EmbeddingLookup
w f bisndt nn.PReLU
warmup_steps i bfsndtlT nn.WarmUpLR
weight nT bifsd nn.CrossEntropyLoss nn.FocalLoss nn.NLLLoss
weight_decay bif sndtlT nn.ASGD nn.AdaMax nn.Adadelta nn.Adagrad nn.Adam nn.AdamOffload nn.AdamWeightDecay
  nn.FTRL nn.Lamb nn.Optimizer nn.ProximalAdagrad nn.RMSProp nn.Rprop nn.SGD
weight_init bifn dtl nn.BiDense nn.Conv1d nn.Conv1dTranspose nn.Conv2d nn.Conv2dTranspose nn.Conv3d
  nn.Conv3dTranspose nn.Dense nn.Linear
weight_init bifsn dtl nn.Conv2dBnAct nn.DenseBnAct
weights n bifsd nn.MultiClassDiceLoss
zero_diagonal b ifsndtlT nn.CosineSimilarity
zero_infinity b ifsndtlT ops.CTCLossV2
"""
# Arguments whose whole numbers have a least value (1 or 0), and those that take some strings alone.
_RANGES = """
align LEFT_LEFT|LEFT_RIGHT|RIGHT_LEFT|RIGHT_RIGHT ops.MatrixDiagPartV3 ops.MatrixDiagV3 ops.MatrixSetDiagV3
base natural ops.LogSpace
beta positive nn.Fbeta
beta1 natural nn.AdaFactor
bins positive ops.Histogram
block_shape positive ops.BatchToSpaceND ops.SpaceToBatchND
channel positive nn.PReLU
count positive ops.RandomChoiceWithMask
d_model positive nn.TransformerDecoderLayer nn.TransformerEncoderLayer
decay_steps positive nn.CosineDecayLR nn.ExponentialDecayLR nn.InverseDecayLR nn.NaturalExpDecayLR
  nn.PolynomialDecayLR
decrease mean|none|sum nn.ConfusionMatrixMetric
degree positive nn.DistributedGradReducer
depth_radius natural nn.LRN ops.LRN
dilation positive nn.Conv1d nn.Conv1dTranspose nn.Conv2dBnAct nn.Conv2dTranspose nn.Conv3d ops.Col2Im
  ops.Conv2D ops.Conv2DBackpropInput ops.Conv2DTranspose ops.Conv3D ops.MaxPoolWithArgmaxV2
dim_feedforward positive nn.TransformerDecoderLayer nn.TransformerEncoderLayer
divisor_override natural ops.AvgPool3D
divisor_override positive nn.AvgPool3d
dst_format NCHW|NHWC ops.DataFormatDimMap ops.DataFormatVecPermute
embed_dim positive nn.MultiheadAttention
embedding_size positive nn.EmbeddingLookup
filter_size positive nn.SSIM
group positive nn.Conv1d nn.Conv1dTranspose nn.Conv2dBnAct nn.Conv2dTranspose ops.Conv2D
  ops.Conv2DBackpropInput ops.Conv2DTranspose ops.Conv3D ops.Conv3DTranspose
groups positive nn.ChannelShuffle
hidden_size positive nn.GRUCell nn.LSTMCell nn.RNNCell
in1_channels positive nn.BiDense
in2_channels positive nn.BiDense
in_channel positive ops.Conv3DTranspose
in_channels positive nn.Conv1d nn.Conv1dTranspose nn.Conv2dBnAct nn.Conv2dTranspose nn.Conv3d
  nn.Conv3dTranspose nn.Dense nn.DenseBnAct
in_features positive nn.Linear
input_size positive nn.GRUCell nn.LSTMCell nn.RNNCell
interleave_num positive nn.MicroBatchInterleaved
k positive nn.TopKCategoricalAccuracy
kdim positive nn.MultiheadAttention
kernel_size positive nn.AvgPool1d nn.AvgPool3d nn.Conv1d nn.Conv1dTranspose nn.Conv2dBnAct
  nn.Conv2dTranspose nn.Conv3d nn.Conv3dTranspose nn.MaxPool1d nn.MaxPool2d nn.MaxPool3d ops.AvgPool3D
  ops.Col2Im ops.Conv2D ops.Conv2DBackpropInput ops.Conv2DTranspose ops.Conv3D ops.Conv3DTranspose
  ops.MaxPool ops.MaxPool3D ops.MaxPoolWithArgmax ops.MaxPoolWithArgmaxV2
learning_rate natural nn.ASGD nn.AdaMax nn.Adadelta nn.AdamOffload nn.ProximalAdagrad nn.Rprop
loss_scale positive nn.AdaFactor nn.AdaMax nn.Adadelta nn.AdamOffload nn.ProximalAdagrad
max_length positive ops.Randperm
method bilinear|bilinear_v2|nearest ops.CropAndResize
micro_size positive nn.GradAccumulationCell nn.PipelineCell
mode CONSTANT|REFLECT|SYMMETRIC nn.Pad
mode REFLECT|SYMMETRIC ops.MirrorPad
mode circular|constant|edge|reflect ops.PadV3
n_gram positive nn.BleuScore
nbins positive ops.HistogramFixedWidth
ngram_size positive ops.NoRepeatNGram
normalized_shape natural nn.LayerNormExt
num_channels positive nn.GroupNorm
num_classes natural nn.ConfusionMatrix
num_classes positive nn.SampledSoftmaxLoss
num_features positive nn.BatchNorm3d nn.SyncBatchNorm
num_groups positive nn.GroupNorm
num_parameters natural nn.PReLUExt
num_sampled positive nn.SampledSoftmaxLoss ops.LogUniformCandidateSampler ops.UniformCandidateSampler
num_true positive nn.SampledSoftmaxLoss ops.LogUniformCandidateSampler ops.UniformCandidateSampler
numsamples natural ops.MultinomialWithReplacement
out_channel positive ops.Conv2D ops.Conv2DBackpropInput ops.Conv2DTranspose ops.Conv3D ops.Conv3DTranspose
out_channels positive nn.BiDense nn.Conv1d nn.Conv1dTranspose nn.Conv2dBnAct nn.Conv2dTranspose nn.Conv3d
  nn.Conv3dTranspose nn.Dense nn.DenseBnAct
out_features positive nn.Linear
output_size natural nn.AdaptiveAvgPool3d ops.AdaptiveAvgPool2D ops.AdaptiveAvgPool3D
output_size positive nn.AdaptiveAvgPool1d nn.AdaptiveMaxPool1d
p natural ops.LpNorm
p positive nn.MultiMarginLoss ops.MultiMarginLoss
pad_dim_size positive ops.Padding
pad_mode pad|PAD|same|SAME|valid|VALID nn.AvgPool1d nn.AvgPool3d nn.Conv3d nn.Conv3dTranspose nn.MaxPool1d
  nn.MaxPool2d nn.MaxPool3d ops.AvgPool3D ops.Conv2DBackpropInput ops.Conv2DTranspose ops.Conv3D
  ops.Conv3DTranspose ops.MaxPool3D
pad_mode pad|same|valid nn.Conv1d nn.Conv1dTranspose nn.Conv2dBnAct nn.Conv2dTranspose ops.Conv2D
pad_mode same|SAME|valid|VALID ops.MaxPool ops.MaxPoolWithArgmax
padding natural nn.ReflectionPad1d nn.ReflectionPad2d nn.ReflectionPad3d ops.Col2Im
pads natural ops.MaxPoolWithArgmaxV2
range_max positive ops.UniformCandidateSampler
reduction batchmean|mean|none|sum ops.KLDivLoss
reduction mean|none|sum nn.CosineEmbeddingLoss nn.CosineSimilarity nn.FocalLoss nn.GaussianNLLLoss
  nn.HingeEmbeddingLoss nn.HuberLoss nn.MarginRankingLoss nn.MultiLabelSoftMarginLoss nn.MultiMarginLoss
  nn.PoissonNLLLoss nn.SampledSoftmaxLoss nn.TripletMarginWithDistanceLoss ops.MultiMarginLoss
  ops.MultilabelMarginLoss ops.TripletMarginLoss
seed natural nn.SampledSoftmaxLoss ops.Gamma ops.LogUniformCandidateSampler ops.Multinomial ops.Poisson
  ops.RandomGamma ops.RandomShuffle ops.StandardLaplace ops.StandardNormal ops.UniformCandidateSampler
  ops.UniformInt ops.UniformReal
seed2 natural ops.Gamma ops.Multinomial ops.Poisson ops.RandomGamma ops.RandomShuffle ops.StandardLaplace
  ops.StandardNormal ops.UniformInt ops.UniformReal
size natural nn.TensorArray
src_format NCHW|NHWC ops.DataFormatDimMap ops.DataFormatVecPermute
steps natural ops.LogSpace
stride positive nn.AvgPool1d nn.AvgPool3d nn.Conv1d nn.Conv1dTranspose nn.Conv2dBnAct nn.Conv2dTranspose
  nn.Conv3d nn.Conv3dTranspose nn.MaxPool1d nn.MaxPool2d nn.MaxPool3d ops.Col2Im ops.Conv2D
  ops.Conv2DBackpropInput ops.Conv2DTranspose ops.Conv3D ops.Conv3DTranspose
strides positive ops.AvgPool3D ops.MaxPool ops.MaxPool3D ops.MaxPoolWithArgmax ops.MaxPoolWithArgmaxV2
vdim positive nn.MultiheadAttention
vocab_size positive nn.EmbeddingLookup
warmup_steps positive nn.WarmUpLR
weight_decay natural nn.ASGD nn.AdaMax nn.Adadelta nn.AdamOffload nn.ProximalAdagrad nn.Rprop
"""


def _lines(table: str):
    return (line.split() for line in table.strip().replace("\n  ", " ").splitlines())


def _by_class() -> dict:
    found: dict = {}
    for argument, passing, refused, *classes in _lines(_TABLE):
        for name in classes:
            found.setdefault(name, {})[argument] = (passing, refused)
    return found


def _ranges_by_class() -> dict:
    found: dict = {}
    for argument, allowed, *classes in _lines(_RANGES):
        for name in classes:
            found.setdefault(name, {})[argument] = allowed
    return found


_OF_CLASSES = _by_class()
_RANGES_OF_CLASSES = _ranges_by_class()
_LEAST = {"positive": 1, "natural": 0}


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
    ranges = _RANGES_OF_CLASSES.get(name)
    for argument, value in given.items() if ranges else ():
        _check_range(f"{name.partition('.')[2]}: {argument}", ranges.get(argument, ""), value)


def _check_range(what: str, allowed: str, value) -> None:
    if allowed in _LEAST and isinstance(value, int) and value < _LEAST[allowed]:
        raise ValueError(f"{what} is at least {_LEAST[allowed]}, not {value}")
    if "|" in allowed and isinstance(value, str) and value not in allowed.split("|"):
        raise ValueError(f"{what} is one of {', '.join(allowed.split('|'))}, not {value!r}")


def _positional(init) -> tuple:
    """The names of a function's arguments, without `self`."""
    while hasattr(init, "__wrapped__"):
        init = init.__wrapped__
    code = getattr(init, "__code__", None)  # None: the library's own, of C++
    return code.co_varnames[1 : code.co_argcount] if code else ()


def watch(name: str, made):
    """The class of this name, whose __init__ checks its arguments from now on, whoever calls it.

    The library's own classes of C++ cannot be watched.
    """
    init = getattr(made, "__init__", None)
    if (
        (name not in _OF_CLASSES and name not in _RANGES_OF_CLASSES)
        or not isinstance(init, types.FunctionType)
        or "_watched" in vars(made)
    ):
        return made
    names = _positional(init)

    @functools.wraps(init)
    def checked(self, *args, **kwargs):
        check(name, {**dict(zip(names, args, strict=False)), **kwargs})
        init(self, *args, **kwargs)

    made.__init__ = checked
    made._watched = True
    return made
