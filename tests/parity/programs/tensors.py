"""Programs of tensors: operators, functions, indexing, and tensors and cells as objects."""

# Programs are read best with one in a row.
# ruff: noqa: E501, SIM905
# fmt: off

import itertools
import random

from tables import some, table

FLOATS = ("float32", "float16", "bfloat16", "float64")
WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *WHOLE, *FLOATS)
COMMON = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


# ---- Operators -------------------------------------------------------------------------------------------

ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
BITS = ("&", "|", "^")


def operators():
    for one, other in itertools.product(COMMON, COMMON):
        for sign in some(one + other, (*ARITHMETIC, *COMPARISONS, *BITS), 9):
            left = "P" if sign in ("//", "%", "**", "/") else "T"
            yield f"{left}('{one}', 2, 3) {sign} P('{other}', 2, 3)"
    for one, other in some("rare", itertools.product(DTYPES, ("uint16", "uint32", "uint64")), 30):
        for sign in ("+", "*", "==", "&"):
            yield f"T('{one}', 2, 3) {sign} P('{other}', 3)"
    for dtype in COMMON:
        for sign, scalar in itertools.product((*ARITHMETIC, "==", "<", ">=", "&", "|", "^"), ("2", "2.5", "True", "-1")):
            if random.Random(dtype + sign + scalar).random() < 0.55:
                yield f"P('{dtype}', 2, 3) {sign} {scalar}"
            if random.Random(scalar + dtype + sign).random() < 0.45:
                yield f"{scalar} {sign} P('{dtype}', 2, 3)"
        for sign in ("-", "~", "+", "abs", "not ", "bool", "float", "int", "len"):
            yield f"{sign}(T('{dtype}', 1))"
            yield f"{sign}(T('{dtype}', 2, 2))"
        for sign in ("+=", "-=", "*=", "/=", "//=", "%=", "**=", "&=", "|=", "^="):
            yield f"x = T('{dtype}', 2, 3)\nx {sign} P('{dtype}', 3)\nx"
        yield f"x = T('{dtype}', 2, 3)\ny = x\ny += 1\n(x, y)"
        yield f"T('{dtype}', 2, 3) @ T('{dtype}', 3, 2)"
        yield f"T('{dtype}', 2, 3) + A('{'float32' if dtype == 'bfloat16' else dtype}', 2, 3)"
        yield f"A('{'float32' if dtype == 'bfloat16' else dtype}', 3) * T('{dtype}', 2, 3)"
    shapes = ("2, 3", "3", "1, 3", "2, 1", "1", "4, 2, 3", "0, 3", "4, 1, 1")
    for one, other in itertools.product(shapes, shapes):
        yield f"T('float32', {one}) + U('float32', {other})"
        yield f"T('int32', {one}) > U('float32', {other})"
    for value in ("[1, 2, 3]", "(1., 2., 3.)", "[1]", "None", "'a'", "np.float32(2)", "np.int64(2)", "np.array(2)", "Tensor(2)", "Tensor(2.5)"):
        for sign in ("+", "*", "/", "==", "!=", "<", "-"):
            yield f"T('float32', 2, 3) {sign} {value}"
            yield f"{value} {sign} T('float32', 2, 3)"
            yield f"T('int32', 2, 3) {sign} {value}"
    for dividend, divisor in itertools.product(("7", "-7", "7.5", "-7.5"), ("2", "-2", "2.5", "-2.5")):
        for sign in ("//", "%", "/"):
            yield f"Tensor([{dividend}]) {sign} Tensor([{divisor}])"
            yield f"Tensor([{dividend}]) {sign} {divisor}"
    for shapes in (("3", "3"), ("2, 3", "3"), ("3", "3, 2"), ("2, 2, 3", "3, 2"), ("2, 2, 3", "2, 3, 2"), ("2, 3", "2, 3, 1"), ("5, 1, 2, 3", "4, 3, 2")):
        yield f"T('float32', {shapes[0]}) @ U('float32', {shapes[1]})"
        yield f"ops.matmul(T('float32', {shapes[0]}), U('float32', {shapes[1]}))"
        yield f"G(ops.matmul, T('float32', {shapes[0]}), U('float32', {shapes[1]}))"


# ---- Functions of one tensor -----------------------------------------------------------------------------

ONE = (
    "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh bernoulli_ ceil cos cosh "
    "deg2rad diag digamma erf erfc erfinv exp exp2 expm1 floor frac gelu hardshrink hardsigmoid hardswish hardtanh i0 "
    "inv isfinite isinf isnan isneginf isposinf isreal leaky_relu lgamma log log10 log1p log2 log_softmax_ logical_not logit "
    "logsigmoid mish nan_to_num neg negative nonzero positive rad2deg ravel_ real reciprocal relu relu6 round rsqrt selu "
    "sigmoid sign signbit silu sin sinc sinh softplus softshrink softsign sqrt square t tan tanh tanhshrink trunc "
    "argwhere count_nonzero elu celu flatten fliplr flipud is_floating_point is_complex is_nonzero numel rank shape size dtype "
    "ones_like zeros_like rand_like_ unique matrix_diag_ std var mean sum prod all any max min argmax argmin median norm "
    "bessel_i0 bessel_j0 bessel_k0 bessel_i1 bessel_k1e erfcinv_ polar_ threshold_ tril triu trace cumsum_ diagonal inverse_ "
    "squeeze msort sort argsort bitwise_not square fix mul_ invert is_tensor logdet_ slogdet_ vander_ column_stack_ bincount "
    "atleast_1d atleast_2d atleast_3d swish_ softmax_ hardtanh ge_ rrelu_ svd_ dot_ gamma_ scalar_to_tensor_ "
    "nonzero exp tan glu logsumexp_ log_softmax softmax softmin_ cummax_ "
).split()
ONE = tuple(dict.fromkeys(name for name in ONE if not name.endswith("_")))
FORMS = ("ops.{}({})", "mint.{}({})", "mnp.{}({})", "mint.nn.functional.{}({})")


def elementwise():
    for name in ONE:
        for dtype in some(name, COMMON, 6):
            yield f"ops.{name}(T('{dtype}', 2, 2))"
        yield f"ops.{name}(T('float32', 2, 2, 4))"
        for dtype in some(name + "m", COMMON, 3):
            yield f"T('{dtype}', 2, 2).{name}()"
        for form in FORMS[1:]:
            for dtype in some(form + name, ("float32", "int32", "bool", "float16", "int64", "uint8", "bfloat16"), 2):
                yield form.format(name, f"T('{dtype}', 2, 2)")
        yield f"ops.{name}(P('float32', 3))"
        yield f"ops.{name}(Tensor(2.0))"
        yield f"ops.{name}(Tensor([1.5, np.nan, np.inf, -np.inf, 0.0, -0.5, 2.5]).astype(ms.float32))"
    for name in PRIMITIVES_OF_ONE:
        for dtype in some(name, COMMON, 4):
            yield f"ops.{name}()(P('{dtype}', 2, 3))"


PRIMITIVES_OF_ONE = (
    "Abs ACos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Erfc Exp Expm1 Floor Inv IsFinite IsInf IsNan Log Log1p LogicalNot Neg "
    "OnesLike ZerosLike Reciprocal ReLU ReLU6 Rint Round Rsqrt Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square Tan Tanh Trunc HSwish "
    "HSigmoid Elu GeLU FastGeLU Mish SeLU Softmax LogSoftmax Rank Shape DType Size Flatten Squeeze Identity TensorShape DynamicShape "
    "Invert L2Loss BesselI0e BesselI1e NonZero Unique L2Normalize ReduceSum ReduceMean ReduceMax Argmax Argmin ArgMaxWithValue"
).split()

GRADIENTS_OF_ONE = (
    "abs acos_ asin_ asinh atan ceil cos cosh erf erfc exp expm1 floor gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log log10 "
    "log1p log2 logsigmoid mish neg reciprocal relu relu6 round rsqrt selu sigmoid sign silu sin sinc sinh softplus softshrink softsign "
    "sqrt square tan tanh tanhshrink trunc elu celu flatten sum mean prod max min amax amin std var norm softmax log_softmax tril triu squeeze "
    "trace t diagonal logsumexp_ cumsum_ frac exp2 deg2rad lgamma digamma atanh_ i0 erfinv_ fliplr flipud logit_ median glu_ sort"
).split()


def gradients():
    for name in GRADIENTS_OF_ONE:
        if name.endswith("_"):
            continue
        for dtype in ("float32", *some(name, ("float16", "float64", "bfloat16"), 1)):
            yield f"G(ops.{name}, T('{dtype}', 3, 4))"
            yield f"G(ops.{name}, P('{dtype}', 4, 4))"
        yield f"G(lambda x: x.{name}(), P('float32', 2, 2))"
        yield f"G(mint.{name}, P('float32', 2, 2))"
    for name in TWO_FLOAT:
        for shapes in (("2, 3", "2, 3"), ("2, 3", "3"), ("1", "2, 3")):
            yield f"G(ops.{name}, P('float32', {shapes[0]}), T('float32', {shapes[1]}))"
        yield f"G(ops.{name}, P('float16', 2, 3), T('float32', 2, 3))"
        yield f"G(mint.{name}, P('float32', 2, 3), P('float32', 3))"
    for sign in ("+", "-", "*", "/", "**", "%", "//"):
        for dtype in ("float32", "float16"):
            yield f"G(lambda x, y: x {sign} y, P('{dtype}', 2, 3), P('float32', 3))"
            yield f"G(lambda x: x {sign} 3, P('{dtype}', 2, 3))"
            yield f"G(lambda x: 2 {sign} x, P('{dtype}', 2, 3))"
    yield from table("gradients")
    for index in ("0", "-1", "1:", "::2", "..., 0", "None", "[0, 2]", ":, [1, 0]", "Tensor([0, 1])", "x > 0", "0, 1"):
        yield f"G(lambda x: x[{index}], T('float32', 3, 4))"
        yield f"def f(x):\n    x = x * 1\n    x[{index}] = 2.0\n    return x\nG(f, T('float32', 3, 4))"
        yield f"def f(x, y):\n    x = x * 1\n    x[{index}] = y\n    return x\nG(f, T('float32', 3, 4), Tensor([2.0]))"


# ---- Functions of two tensors ----------------------------------------------------------------------------

TWO_FLOAT = "add sub mul div maximum minimum pow atan2 xlogy hypot floor_div floor_mod fmod remainder true_divide logaddexp logaddexp2 lerp_".split()
TWO_FLOAT = [name for name in TWO_FLOAT if not name.endswith("_")]
TWO = (
    *TWO_FLOAT,
    *"subtract multiply divide floor_divide truncate_div truncate_mod mod equal not_equal less less_equal greater greater_equal eq ne lt le gt ge "
    "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm heaviside copysign "
    "nextafter ldexp squared_difference float_power fmax fmin isclose inner outer kron dot_ vdot_ equal_ cdist_ bmm_ mm tensor_dot_ "
    "less_equal allclose_ arctan2 matmul cross_ nanmax_ prelu_ not_equal approximate_equal dist power true_divide array_equal_ "
    "div_no_nan_ xdivy_ assign_ maximum".split(),
)
TWO = tuple(dict.fromkeys(name for name in TWO if not name.endswith("_")))
PRIMITIVES_OF_TWO = (
    "Add Sub Mul Div RealDiv FloorDiv Mod FloorMod Pow Maximum Minimum Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr "
    "LogicalXor BitwiseAnd BitwiseOr BitwiseXor Atan2 SquaredDifference Xdivy Xlogy DivNoNan TruncateDiv TruncateMod ApproximateEqual MatMul MulNoNan "
    "AssignAdd_"
).split()


def pairs():
    for name in TWO:
        for one, other in some(name, itertools.product(COMMON, COMMON), 8):
            yield f"ops.{name}(P('{one}', 3, 3), P('{other}', 3, 3))"
        for form in ("mint.{}({})", "mnp.{}({})"):
            for one, other in some(form + name, itertools.product(("float32", "int32", "bool", "int64", "float16"), repeat=2), 3):
                yield form.format(name, f"P('{one}', 3, 3), P('{other}', 3)")
        for other in some(name, COMMON, 2):
            yield f"P('float32', 3, 3).{name}(P('{other}', 3, 3))"
            yield f"P('int32', 3, 3).{name}(P('{other}', 3, 3))"
        for scalar in ("2", "1.5", "True"):
            yield f"ops.{name}(P('float32', 3, 3), {scalar})"
            yield f"ops.{name}(P('int32', 3, 3), {scalar})"
        yield f"ops.{name}(2, P('float32', 3, 3))"
        yield f"ops.{name}(T('float32', 2, 3), P('float32', 1, 3))"
    for name in PRIMITIVES_OF_TWO:
        for one, other in (("float32", "float32"), ("int32", "int32"), ("float32", "int32"), ("float16", "float32"), ("bool", "bool"), ("int64", "uint8")):
            yield f"ops.{name}()(P('{one}', 2, 2), P('{other}', 2, 2))"
        yield f"ops.{name}()(P('float32', 2, 2), 2.0)"


# ---- Reductions ------------------------------------------------------------------------------------------

REDUCTIONS = "sum mean prod max min amax amin argmax argmin all any std var logsumexp median cumsum cumprod cummax cummin nansum norm count_nonzero softmax log_softmax sort argsort flip nanmedian std_mean var_mean logcumsumexp unique_consecutive".split()


def reductions():
    for name in REDUCTIONS:
        for form in ("ops.{}(X, {})", "X.{}({})", "mint.{}(X, {})", "mnp.{}(X, {})"):
            for dtype, axis in some(name + form, itertools.product(COMMON, ("0", "1", "-1", "(0, 1)", "None", "2")), 7):
                yield form.replace("X", f"T('{dtype}', 2, 3, 2)").format(name, axis)
        for dtype, axis, keep in some(name, itertools.product(("float32", "int32", "float16"), ("0", "-1", "(0, 2)", "()"), ("True", "False")), 5):
            yield f"ops.{name}(T('{dtype}', 2, 3, 2), {axis}, {keep})"
            yield f"ops.{name}(T('{dtype}', 2, 3, 2), axis={axis}, keepdims={keep})"
            yield f"ops.{name}(T('{dtype}', 2, 3, 2), dim={axis}, keepdim={keep})"
            yield f"T('{dtype}', 2, 3, 2).{name}(axis={axis}, keepdims={keep})"
            yield f"T('{dtype}', 2, 3, 2).{name}(dim={axis}, keepdim={keep})"
            yield f"mint.{name}(T('{dtype}', 2, 3, 2), dim={axis}, keepdim={keep})"
        yield f"ops.{name}(T('float32', 0, 3))"
        yield f"ops.{name}(T('float32', 5))"
    for name in ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceAll", "ReduceAny"):
        for dtype, axis, keep in some(name, itertools.product(COMMON, ("0", "(1, 2)", "()", "-1"), ("True", "False")), 14):
            yield f"ops.{name}({keep})(T('{dtype}', 2, 3, 2), {axis})"
    for name in ("Argmax", "Argmin", "ArgMaxWithValue", "ArgMinWithValue", "CumSum", "CumProd", "Softmax", "LogSoftmax"):
        for dtype, axis in itertools.product(("float32", "int32", "float16", "float64"), ("0", "-1")):
            yield f"ops.{name}({axis})(T('{dtype}', 3, 4))"
        yield f"ops.{name}()(T('float32', 3, 4), 1)"
    for name in ("sum", "mean", "prod", "cumsum", "cumprod"):
        for dtype, target in some(name, itertools.product(COMMON, ("float32", "int32", "float16", "int64")), 12):
            yield f"T('{dtype}', 2, 3).{name}(1, dtype=ms.{target})"
            yield f"mint.{name}(T('{dtype}', 2, 3), 1, dtype=ms.{target})"
            yield f"ops.{name}(T('{dtype}', 2, 3), 1, dtype=ms.{target})"


# ---- Shapes, gathering, scattering -----------------------------------------------------------------------

SHAPES = table("shapes")


def shapes():
    for text in SHAPES:
        for dtype in ("float32", *some(text, COMMON, 3)):
            yield f"X = T('{dtype}', 2, 3, 4)\n{text}"
    for package in ("mint", "mnp"):
        for text in SHAPES:
            if text.startswith("ops.") and text[4].islower():
                yield f"X = T('float32', 2, 3, 4)\n{text.replace('ops.', package + '.', 1)}"
    for text in SHAPES:
        if text.startswith("ops.") and "Tensor(" not in text and "shape" not in text:
            yield f"X = T('float32', 2, 3, 4)\nG(lambda X: {text}, X)"
    for text in some("graphs", SHAPES, 120):
        if "Parameter" not in text:
            yield f"@ms.jit\ndef f(X):\n    return {text}\nf(T('float32', 2, 3, 4))"


INDEXES = table("indexes")


def indexing():
    for index in INDEXES:
        for dtype in ("float32", *some(index, ("int32", "bool", "float16", "int64", "uint8"), 1)):
            yield f"X = T('{dtype}', 2, 3, 4)\nX[{index}]"
            yield f"X = T('{dtype}', 2, 3, 4)\nX[{index}] = 1\nX"
        yield f"X = T('float32', 2, 3, 4)\nX[{index}] = 2.5\nX"
        yield f"X = T('int32', 2, 3, 4)\nX[{index}] = 2.7\nX"
        yield f"X = T('float32', 2, 3, 4)\nX[{index}] = Tensor([7.0])\nX"
        yield f"X = T('float32', 2, 3, 4)\nX[{index}] += 3\nX"
        yield f"X = T('float32', 2, 3, 4)\ny = X\ny[{index}] = 0\n(X, y)"
        yield f"X = T('float32', 2, 3, 4)\nX[{index}] = X[{index}] * 2\nX"
        yield f"X = T('float32', 2, 3, 4)\nX[{index}] = [5.0]\nX"
        yield f"P1 = Parameter(T('float32', 2, 3, 4), name='p')\nX = P1\nP1[{index}] = 1\nP1"
        if index.strip() not in ("[],", "range(2)"):
            yield f"@ms.jit\ndef f(X):\n    return X[{index}]\nf(T('float32', 2, 3, 4))"
            yield f"@ms.jit\ndef f(X):\n    X = X * 1\n    X[{index}] = 3\n    return X\nf(T('float32', 2, 3, 4))"
    yield from table("iteration")


# ---- Tensors, parameters, cells as objects ---------------------------------------------------------------


def creation():
    for dtype in DTYPES:
        for text in ("Tensor([1, 0, 2], ms.{})", "ops.zeros((2, 2), ms.{})", "ops.ones(3, ms.{})", "ops.full((2,), 1, dtype=ms.{})", "ops.arange(1, 5, 2, dtype=ms.{})", "ops.eye(2, 3, ms.{})", "Tensor(np.array([1, 2]), dtype=ms.{})", "Tensor(3, ms.{})", "Tensor([-1, 300, 2.7]).astype(ms.{})", "Tensor([-1, 300, 7], ms.int64).astype(ms.{})", "ops.cast(Tensor([0.5, -0.5, 3e5]), ms.{})", "str(ms.{})", "repr(ms.{})", "ms.dtype_to_nptype(ms.{})", "Tensor([1.5, 2.5], ms.float32).to(ms.{})", "ops.linspace(0, 4, 3).astype(ms.{})", "ms.dtype.{}", "mint.zeros(2, dtype=ms.{})", "mint.ones((2, 1), dtype=ms.{})", "mint.full((2,), 2, dtype=ms.{})", "mint.arange(3, dtype=ms.{})", "mnp.zeros((2,), ms.{})", "mnp.ones(2, dtype=ms.{})", "mnp.full((2, 2), 3, ms.{})", "mnp.arange(3, dtype=ms.{})", "mnp.eye(2, dtype=ms.{})", "mnp.array([1, 2], ms.{})", "Parameter(Tensor([1, 2], ms.{}), name='p')", "ops.zeros_like(T('float32', 2), dtype=ms.{})", "ops.ones_like(T('float32', 2), dtype=ms.{})", "ops.full_like(T('float32', 2), 3, dtype=ms.{})", "Tensor([3, 1, 2], ms.{}).max()", "Tensor([3, 1, 2], ms.{}).sum()", "ms.{} == ms.float32", "hash(ms.{}) == hash(ms.{})"):
            yield text.replace("{}", dtype)
        numpy_type = "float32" if dtype == "bfloat16" else dtype
        yield f"Tensor(np.array([1, 2], np.{numpy_type}))" if dtype != "bool" else "Tensor(np.array([True]))"
        yield f"Tensor(np.{numpy_type}(1))" if dtype != "bool" else "Tensor(np.bool_(True))"
        yield f"Tensor(A('{numpy_type}', 2, 2)).asnumpy()"
        yield f"ms.from_numpy(A('{numpy_type}', 2, 2))"
        yield f"Tensor.from_numpy(A('{numpy_type}', 2, 2))"
        yield f"ms.pytype_to_dtype(np.{numpy_type})" if dtype != "bool" else "ms.pytype_to_dtype(bool)"
    for value in table("values"):
        for form in ("Tensor({})", "ms.tensor({})", "Parameter({}, name='p')", "Tensor({}, ms.float32)", "Tensor({}, dtype=ms.int32)", "mnp.array({})", "mnp.asarray({})", "mint.tensor({})", "Tensor({}).shape", "Tensor({}).asnumpy()", "ops.scalar_to_tensor({})", "str(Tensor({}))", "repr(Tensor({}))"):
            yield form.format(value)
    yield from table("creation")


NET = "net = Net()\n"


def objects():
    for text in table("members"):
        yield NET + text
    for change, shown in itertools.product(
        table("changes"),
        ("[p.name for p in net.get_parameters()]", "net(P('float32', 2, 2))", "[p.name for p in net.trainable_params()]", "[n for n, _ in net.cells_and_names()]"),
    ):
        yield f"{NET}{change}\n{shown}"
    attributes = {
        "nn.Dense(3, 4)": "in_channels out_channels has_bias weight.shape bias.shape activation activation_flag",
        "nn.Dense(3, 4, has_bias=False, activation='relu')": "has_bias bias activation_flag",
        "nn.Conv2d(3, 8, 3)": "in_channels out_channels kernel_size stride pad_mode padding dilation group has_bias weight.shape bias weight_init bias_init data_format",
        "nn.Conv2d(4, 8, (3, 5), (2, 1), pad_mode='pad', padding=1, group=2, has_bias=True, dilation=2)": "kernel_size stride padding dilation group bias.shape weight.shape",
        "nn.BatchNorm2d(4)": "num_features eps momentum gamma.name beta.name moving_mean.name moving_variance.name use_batch_statistics training",
        "nn.LayerNorm((4,))": "normalized_shape begin_norm_axis begin_params_axis epsilon gamma.shape beta.name",
        "nn.Embedding(5, 3)": "vocab_size embedding_size use_one_hot embedding_table.shape padding_idx dtype",
        "nn.Dropout(p=0.3)": "p keep_prob training",
        "nn.MaxPool2d(2, 2)": "kernel_size stride pad_mode format",
        "nn.AvgPool2d(3, 1, 'same')": "kernel_size stride pad_mode",
        "nn.ReLU()": "training cls_name",
        "nn.LeakyReLU(0.1)": "alpha",
        "nn.Softmax(1)": "softmax axis",
        "nn.PReLU(2)": "w.shape",
        "nn.GroupNorm(2, 4)": "num_groups num_channels eps gamma.shape",
        "nn.LSTM(3, 4)": "input_size hidden_size num_layers",
        "nn.CrossEntropyLoss(label_smoothing=0.1)": "reduction label_smoothing ignore_index weight",
        "nn.MSELoss()": "reduction average reduce",
        "nn.L1Loss('sum')": "reduction",
        "nn.Flatten()": "start_dim end_dim",
        "nn.SequentialCell(nn.ReLU())": "training",
        "nn.Conv1d(3, 4, 3)": "kernel_size weight.shape",
        "nn.Conv2dTranspose(3, 4, 3)": "kernel_size weight.shape stride group",
        "nn.AdaptiveAvgPool2d(1)": "output_size",
        "nn.Momentum([Parameter(Tensor([1.0]), name='w')], 0.1, 0.9)": "momentum learning_rate global_step weight_decay loss_scale parameters is_group dynamic_lr use_nesterov get_lr() group_lr",
        "nn.Adam([Parameter(Tensor([1.0]), name='w')])": "beta1 beta2 eps learning_rate moment1 moment2 beta1_power parameters param_length unique",
        "nn.SGD([Parameter(Tensor([1.0]), name='w')])": "learning_rate nesterov accum momentum",
    }
    for cell, names in attributes.items():
        for name in names.split():
            yield f"cell = {cell}\ncell.{name}"
        yield f"str({cell})"
        yield f"[p.name for p in {cell}.get_parameters()]"
    yield from table("objects")


def arguments():
    """Settings and arguments that docstring examples of MindSpore give."""
    yield from table("arguments")


def primitives():
    yield from table("primitives")


COO = "ms.COOTensor(Tensor([[0, 1], [1, 2]], ms.int64), Tensor([1.5, -0.5], ms.float32), (3, 4))"
CSR = "ms.CSRTensor(Tensor([0, 1, 1, 3], ms.int32), Tensor([2, 0, 3], ms.int32), Tensor([1.5, 0.5, -2.0], ms.float32), (3, 4))"
OF_VALUES = "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor inv isfinite isinf isnan log log1p neg relu relu6 round sigmoid sin sinh softsign sqrt square tan tanh"


def seldom():
    """Names that few scripts use."""
    for name in OF_VALUES.split():
        yield f"ops.coo_{name}({COO}).values"
        yield f"ops.csr_{name}({CSR}).values"
    yield from table("seldom")
