"""Functions of mindspore.ops, operators and methods of Tensor: what MindSpore gives, values and gradients.

python functions.py           with a Python that has mindspore 2.7.0 and numpy 1.26.4: writes functions.json
python functions.py --check   with Muster's mindspore on PYTHONPATH: prints what differs, graph mode
python functions.py --eager   the same in eager mode
"""

import json
import operator
import sys
from pathlib import Path

import mindspore as ms
import numpy
from mindspore import Tensor, ops
from mindspore.ops import operations as P  # noqa: N812 - as everybody calls it

PLACE = Path(__file__).with_name("functions.json")
RANDOM = numpy.random.RandomState(1)


def real(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


def positive(*shape):
    return numpy.abs(real(*shape)) + numpy.float32(0.3)


X, COLUMN, ROW, POSITIVE = real(2, 3, 4), real(3, 1), real(4), positive(2, 3, 4)
OTHER = real(2, 3, 4)
WHOLE = RANDOM.randint(-9, 9, (2, 3, 4)).astype(numpy.int32)
SMALL = RANDOM.randint(1, 5, (3, 4)).astype(numpy.int32)
SPECIAL = numpy.array([1, numpy.nan, numpy.inf, -numpy.inf], numpy.float32)
TIED = numpy.array([[1, 2, 2, 0], [3, 3, -1, 3], [0, 1, 2, 2]], numpy.float32)
AT_BOUNDS = numpy.array([-1, 0, 0.5, 2, 3, 6, 7], numpy.float32)

# Functions of one tensor, whose gradients are compared too.
ONE = [
    "abs",
    "neg",
    "sign",
    "square",
    "exp",
    "expm1",
    "erf",
    "sin",
    "cos",
    "tan",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sigmoid",
    "tanh",
    "relu",
    "relu6",
    "silu",
    "gelu",
    "softplus",
    "elu",
    "leaky_relu",
    "hardswish",
    "hardsigmoid",
    "hardtanh",
    "mish",
    "logsigmoid",
    "softsign",
    "softmax",
    "log_softmax",
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
]
OF_POSITIVE = ["sqrt", "rsqrt", "log", "log1p", "log2", "log10", "reciprocal"]
TWO = ["add", "sub", "mul", "div", "true_divide", "maximum", "minimum", "floor_div", "floor_mod", "fmod"]
COMPARE = [
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
]
SYMBOLS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]
REDUCE = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"]


def smooth_cases():
    """(name, function, inputs) whose gradients are compared too."""
    for name in ONE:
        yield name, getattr(ops, name), [X]
    for name in OF_POSITIVE:
        yield name, getattr(ops, name), [POSITIVE]
    for name in TWO:
        yield name, getattr(ops, name), [X, COLUMN]
    yield "pow", ops.pow, [POSITIVE, ROW]
    yield "pow of a number", lambda x: ops.pow(x, 2), [X]
    yield "maximum of equals", ops.maximum, [TIED, numpy.float32([2])]
    yield "amax of equals", lambda x: ops.amax(x, 1), [TIED]
    yield "relu6 at its bounds", ops.relu6, [AT_BOUNDS]
    yield "clip at its bounds", lambda x: ops.clip(x, -1.0, 2.0), [AT_BOUNDS]
    yield "clamp by a tensor", lambda x, low: ops.clamp(x, low, None), [X, COLUMN]
    yield "select", lambda x, y: ops.select(x > 0, x, y), [X, OTHER]
    yield "where", lambda x: ops.where(x > 0, x, 0.5), [X]
    yield "gelu by tanh", lambda x: ops.gelu(x, approximate="tanh"), [X]
    yield "softplus of beta", lambda x: ops.softplus(x, 2, 3), [X * 3]
    yield "celu", lambda x: ops.celu(x, 0.5), [X]
    yield "prelu", ops.prelu, [X, real(3)]
    yield "GeLU", lambda x: P.GeLU()(x), [X]
    yield "LayerNorm", lambda x, g, b: P.LayerNorm(1, 1, 1e-5)(x, g, b)[0], [X, real(3, 4), real(3, 4)]
    yield "std", lambda x: ops.std(x, 1, 1), [X]
    yield "var", lambda x: ops.var(x, (0, 1), 0, True), [X]
    yield "logsumexp", lambda x: ops.logsumexp(x, 1), [X]
    yield "addn", lambda x, y: ops.addn([x, y, x]), [X, OTHER]
    yield "a number first", lambda x: 2.5 - 2.0 / x + 2.0**x, [POSITIVE]
    yield "Tensor.sum", lambda x: x.sum(axis=1, keepdims=True), [X]
    yield "Tensor.mean", lambda x: x.mean(1), [X]
    yield "Tensor.max", lambda x: x.max(axis=2), [X]
    for axis in (0, 1, -1, (0, 2)):
        for name in REDUCE:
            yield f"{name} {axis}", lambda x, n=name, a=axis: getattr(P, n)(keep_dims=True)(x, a), [X]
    for axis in (0, 1, 2):
        yield f"softmax {axis}", lambda x, a=axis: ops.softmax(x, a), [X]
        yield f"log_softmax {axis}", lambda x, a=axis: ops.log_softmax(x, a), [X]
        yield f"prod {axis}", lambda x, a=axis: ops.prod(x, a), [X]
        yield f"max {axis}", lambda x, a=axis: ops.max(x, a)[0], [X]


def other_cases():
    """Whole numbers, truth values and indices: values only."""
    for name in COMPARE:
        yield name, getattr(ops, name), [WHOLE, SMALL]
    for name in ("isnan", "isinf", "isfinite"):
        yield name, getattr(ops, name), [SPECIAL]
    for symbol in SYMBOLS:
        yield f"whole {symbol.__name__}", symbol, [WHOLE, SMALL]
        yield f"whole {symbol.__name__} 3", lambda x, s=symbol: s(x, 3), [WHOLE]
        yield f"mixed {symbol.__name__}", symbol, [SMALL, POSITIVE]
    yield "selu", ops.selu, [X]  # the gradient that MindSpore gives is not that of its values
    yield "div trunc", lambda x: ops.div(x, 0.3, rounding_mode="trunc"), [X]
    yield "div floor", lambda x: ops.div(x, 0.3, rounding_mode="floor"), [X]
    yield "all", lambda x: ops.all(x > -1), [X]
    yield "any", lambda x: ops.any(x > 1, 1, True), [X]
    yield (
        "logical",
        lambda x, y: ops.logical_xor(ops.logical_and(x > 0, y > 0), ops.logical_not(x > 1)),
        [X, OTHER],
    )
    yield "Tensor.argmax", lambda x: x.argmax(), [X]
    for axis in (0, 1, 2):
        yield f"argmax {axis}", lambda x, a=axis: ops.argmax(x, a), [X]
        yield f"argmin {axis}", lambda x, a=axis: ops.argmin(x, a), [X]
        yield f"index of max {axis}", lambda x, a=axis: ops.max(x, a, True)[1], [X]
        yield f"ArgMaxWithValue {axis}", lambda x, a=axis: P.ArgMaxWithValue(a)(x)[0], [X]


def gradients(function, tensors, like):
    weights = Tensor(numpy.linspace(0.5, 2, like.size).reshape(like.shape).astype(numpy.float32))
    grad_fn = ms.value_and_grad(lambda *x: (function(*x) * weights).sum(), tuple(range(len(tensors))))
    made = grad_fn(*tensors)[1]
    return made if isinstance(made, tuple) else (made,)


def figures():
    """{name: array} of everything."""
    found = {}
    for name, function, inputs in smooth_cases():
        tensors = [Tensor(given) for given in inputs]
        found[name] = function(*tensors).asnumpy()
        for place, gradient in enumerate(gradients(function, tensors, found[name])):
            found[f"{name}, gradient {place}"] = gradient.asnumpy()
    for name, function, inputs in other_cases():
        found[name] = function(*[Tensor(given) for given in inputs]).asnumpy()
    return found


def write():
    rows = [
        json.dumps(
            [name, str(array.dtype), list(array.shape), [float(f"{x:.9g}") for x in array.ravel().tolist()]]
        )
        for name, array in figures().items()
    ]
    PLACE.write_text("[\n" + ",\n".join(rows) + "\n]\n")


def difference(name, found, dtype, shape, values):
    """What is wrong with `found`, or nothing."""
    if str(found.dtype) != dtype or list(found.shape) != shape:
        return f"{name}: {found.dtype} {found.shape}, not {dtype} {shape}"
    a, b = found.astype(float).ravel(), numpy.array(values)
    limit = (1e-4 if "gradient" in name else 1e-5) * numpy.abs(b).max(initial=1e-9)
    worst = numpy.abs(a - b).max(initial=0.0)
    return "" if worst <= limit else f"{name}: off by {worst}, at most {limit} is allowed"


def check():
    found = figures()
    known = json.loads(PLACE.read_text())
    problems = [difference(name, found[name], *rest) for name, *rest in known if name in found]
    problems += [f"{name}: is not computed" for name, *_ in known if name not in found]
    print("\n".join(problem for problem in problems if problem) or f"{len(known)} agree")


if __name__ == "__main__":
    if "--eager" in sys.argv or len(sys.argv) == 1:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    if len(sys.argv) == 1:
        write()
    else:
        check()
