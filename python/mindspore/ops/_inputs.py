"""Inputs of ops that MindSpore refuses by a TypeError because they are no tensors.

Each line of `_TABLE` is a letter for each input and the names that have it so: `t` takes tensors, `n` tensors
and numbers, `-` is not checked. Lines that begin with spaces go on. Names with capitals are primitives;
`mint.` and `F.` (mint.nn.functional) are functions of those modules, which have those of `ops` as well.
"""

import functools

from muster import Tensor, _signatures

_SEQUENCES = (list, tuple, str, dict, type(None))
_REFUSED = {"t": (*_SEQUENCES, int, float), "n": _SEQUENCES, "-": ()}
_WANTED = {"t": "a Tensor", "n": "a Tensor or a number"}
_TABLE = """
t ACos Abs Acosh ArgMaxWithValue ArgMinWithValue Argmax Argmin Asin Asinh Assign AssignAdd AssignSub Atan
  Atanh Bernoulli BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1
  BesselK1e BesselY0 BesselY1 Betainc CeLU Ceil CheckNumerics CholeskyInverse Conj Cos Cosh CumProd CumSum
  DType DataFormatDimMap Diag DiagPart Digamma Dropout DynamicShape Elu Eps Erf Erfc Erfinv Exp Expm1 F.gelu
  F.glu F.hardshrink F.hardswish F.normalize F.relu F.sigmoid F.silu F.softmax F.tanh FastGeLU FastGelu
  Flatten Floor GLU GeLU Gelu Geqrf HShrink HSigmoid HSwish Histogram Identity Inv Invert IsFinite IsInf
  IsNan L2Loss L2Normalize Lgamma Log Log1p LogMatrixDeterminant LogNormalReverse LogSoftmax LogicalNot
  Logit MatrixDeterminant MatrixInverse MaxPool3DWithArgmax MaxPoolWithArgmax Median Mish NanToNum Neg
  NonZero NuclearNorm OnesLike Pdist Qr RandomShuffle Rank ReLU ReLU6 Real Reciprocal ReduceAll ReduceAny
  ReduceMax ReduceMean ReduceMin ReduceProd ReduceStd ReduceSum Rint Round Rsqrt SeLU Shape Sigmoid Sign Sin
  Sinc Sinh Size SoftShrink Softmax SoftmaxCrossEntropyWithLogits Softplus Softsign Sort Split Sqrt Square
  Squeeze Svd Tan Tanh TensorShape Trace Tril Triu Trunc UniqueConsecutive Unpack Unstack ZerosLike abs
  absolute acos acosh all amax amin aminmax any arccos arccosh arcsin arcsinh arctan arctanh argsort
  argwhere asin asinh assign assign_add assign_sub atan atanh bernoulli bessel_i0 bessel_i0e bessel_i1
  bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 bincount
  bitwise_left_shift bitwise_right_shift ceil celu cholesky_inverse clip conj cos cosh count_nonzero cummax
  cummin cumprod cumsum deg2rad dense_to_sparse_coo dense_to_sparse_csr det diag diag_embed diagflat
  diagonal diff dropout dropout1d dtype dyn_shape elu eps erf erfc erfinv exp expm1 fast_gelu fftshift
  flatten fliplr flipud floor frac full_like gelu geqrf glu gumbel_softmax hardshrink hardsigmoid hardswish
  histc i0 ifftshift inv inverse invert is_complex is_nonzero isfinite isinf isnan isneginf isposinf isreal
  lgamma log log10 log1p log2 log_matrix_determinant log_softmax logdet logical_not logit logsigmoid
  logsumexp matrix_determinant max_pool2d mean median mint.all mint.amax mint.amin mint.any mint.cummax
  mint.cumprod mint.diff mint.empty_like mint.fix mint.flip mint.max mint.mean mint.min mint.nansum
  mint.nonzero mint.norm mint.prod mint.repeat_interleave mint.round mint.softmax mint.sum mish msort
  nan_to_num nanmean nanmedian nansum neg negative nonzero numel ones_like pdist pinv positive prod qr
  rad2deg rand_like randn_like rank ravel real reciprocal reduce_max reduce_mean reduce_min reduce_sum relu
  relu6 round rrelu rsqrt select_ext_view selu sgn shape shape_ shuffle sigmoid sign signbit silu sin sinc
  sinh size slogdet soft_shrink softmax softmin softplus softshrink softsign sort sqrt square squeeze std
  std_mean sum svd tan tanh tanhshrink tensor_exp tensor_expm1 trace transpose_ext_view trapz tril triu
  trunc unbind unique_consecutive unstack var var_mean
nn Add Atan2 BitwiseAnd BitwiseOr BitwiseXor Div DivNoNan Equal FloorDiv FloorMod Fmax Greater GreaterEqual
  Hypot Less LessEqual LogicalAnd LogicalOr LogicalXor Maximum Minimum Mod Mul MulNoNan NotEqual Pow RealDiv
  SquaredDifference Sub TensorAdd TruncateDiv TruncateMod Xdivy add approximate_equal arctan2 atan2
  bitwise_and bitwise_or bitwise_xor div divide eq equal float_power float_power_ext floor_div floor_divide
  floor_mod floordiv floormod fmax fmod ge greater greater_equal gt hypot lcm ldexp le less less_equal
  logical_and logical_or logical_xor lt maximum minimum mint.add mint.sub mul multiply ne not_equal pow pows
  remainder scalar_ge scalar_gt scalar_le scalar_lt sub subtract tensor_add tensor_div tensor_floordiv
  tensor_ge tensor_gt tensor_le tensor_lt tensor_mod tensor_mul tensor_pow tensor_sub true_divide
  truncate_div truncate_mod xdivy xlogy
tt BCEWithLogitsLoss BatchMatMul BinaryCrossEntropy Cdist CholeskySolve Dense EqualCount
  F.binary_cross_entropy F.binary_cross_entropy_with_logits F.linear F.smooth_l1_loss Gcd Heaviside Igamma
  Igammac IsClose KLDivLoss LinSpace LowerBound Lstsq MatMul MatrixSolve MatrixTriangularSolve NextAfter
  NoRepeatNGram ROIAlign ResizeArea SearchSorted SigmoidCrossEntropyWithLogits SmoothL1Loss
  SparseSoftmaxCrossEntropyWithLogits SparseToDense SquareSumAll UpperBound Xlogy Zeta batch_dot
  binary_cross_entropy binary_cross_entropy_with_logits bmm bmm_ext cdist cholesky_solve dense dist dot gcd
  heaviside huber_loss igamma igammac isclose kl_div kron l1_loss logaddexp logaddexp2 lstsq lu_unpack
  matmul matrix_solve mint.allclose mint.cdist mm mse_loss nextafter orgqr outer searchsorted slice_scatter
  smooth_l1_loss vecdot
-t Conv2DBackpropInput Conv2DTranspose Cross F.conv1d F.conv2d F.embedding F.kl_div F.l1_loss F.mse_loss
  F.prelu F.soft_margin_loss FillV2 GridSampler2D GridSampler3D MaskedSelect NLLLoss PReLU RmsNorm
  SoftMarginLoss cross embedding expand_as masked_select mint.dot mint.take mint.triangular_solve
  mse_loss_ext multilabel_soft_margin_loss prelu rms_norm soft_margin_loss take view_as
n Cast cast isnan_ext mint.isnan scalar_usub
ttt Coalesce LuSolve lu_solve
-ntt CTCLossV2 ctc_loss
nnn Range range
tn ApproximateEqual copysign
tttt CTCLoss SparseTensorDenseAdd
--t cosine_embedding_loss
-n scalar_pow
tt-t SparseTensorDenseMatmul
ttttt NonMaxSuppressionWithOverlaps
"""


def _by_name() -> dict:
    lines = (line.split() for line in _TABLE.strip().replace("\n  ", " ").splitlines())
    return {name: kinds for kinds, *names in lines for name in names}


_KINDS = _by_name()


def of(name: str) -> str:
    """The letters of a name, "" where nothing is checked."""
    return _KINDS.get(name, "")


def check(name: str, kinds: str, inputs) -> None:
    """Raises TypeError for an input of a kind that the op does not take."""
    for kind, value in zip(kinds, inputs):  # noqa: B905 - `strict` costs as much as the rest
        if type(value) is not Tensor and isinstance(value, _REFUSED[kind]):
            at = next(at for at, each in enumerate(inputs) if each is value and kinds[at] == kind)
            raise TypeError(f"{name}: input {at} is {_WANTED[kind]}, not {value!r}")


def watch(module: str, name: str, function):
    """The function, which checks its inputs if the table has its name."""
    short = {"mindspore.ops": "", "mindspore.mint": "mint."}.get(module, "F.") + name
    kinds = of(short)
    if not kinds or isinstance(function, type):
        return function
    described = _signatures.python_function(function) if type(function).__name__ == "nb_func" else function

    @functools.wraps(described)
    def checked(*args, **kwargs):
        check(name, kinds, _with_named(described, args, kwargs) if kwargs else args)
        return function(*args, **kwargs)

    checked.__module__ = module
    return checked


@functools.cache
def _names(function) -> tuple:
    import inspect  # seldom asked for, and slow to load

    return tuple(inspect.signature(function).parameters)


def _with_named(function, args, named) -> list:
    """The inputs in their order, up to the first that is not given."""
    inputs = list(args)
    for name in _names(function)[len(args) :]:
        if name not in named:
            break
        inputs.append(named[name])
    return inputs
