"""Runs small programs by MindSpore's names, and says what each gives in a few words of JSON.

python answers.py FILE FIRST    answers the programs of FILE (a JSON list) from number FIRST, a line for each
"""

import contextlib
import io
import itertools
import json
import os
import random
import re
import sys
import tempfile
import zlib
from pathlib import Path

import numpy

VALUES_MAX = 20  # of larger arrays eight values and three sums are kept
MISSING = "is not provided by Muster"


def _array(dtype, shape, salt):
    drawn = numpy.random.RandomState(zlib.crc32(repr((dtype, shape, salt)).encode()))
    if dtype == "bool":
        return drawn.randint(0, 2, shape).astype(bool)
    if dtype.startswith("uint"):
        return drawn.randint(0, 11, shape).astype(dtype)
    if dtype.startswith("int"):
        return drawn.randint(-5, 6, shape).astype(dtype)
    kind = "float32" if dtype == "bfloat16" else dtype
    return (drawn.standard_normal(shape) * 2).round(2).astype(kind)


class _Lazy:
    """A package that is imported when a program uses it: what is missing fails there and not before."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, member):
        __import__(self._name)
        return getattr(sys.modules[self._name], member)


def namespace():
    """The names that programs use."""
    import mindspore as ms
    from mindspore import Parameter, Tensor, nn, ops

    def tensor_of(array, dtype):
        tensor = Tensor(numpy.array(array))
        return tensor.astype(ms.bfloat16) if dtype == "bfloat16" else tensor

    def T(dtype, *shape):  # noqa: N802
        return tensor_of(_array(dtype, shape, 0), dtype)

    def U(dtype, *shape):  # noqa: N802
        return tensor_of(_array(dtype, shape, 1), dtype)

    def A(dtype, *shape):  # noqa: N802
        return numpy.array(_array(dtype, shape, 2))

    def P(dtype, *shape):  # noqa: N802
        """Positive, at least a half."""
        array = numpy.abs(_array(dtype, shape, 3)) + (0.5 if "float" in dtype else 1)
        return tensor_of(array.astype("float32" if dtype == "bfloat16" else dtype), dtype)

    def G(function, *inputs):  # noqa: N802
        """The gradients of the sum of its squares, so that none is one everywhere."""

        def loss(*inputs):
            out = function(*inputs)
            out = out[0] if isinstance(out, (tuple, list)) else out
            return (out * out).sum()

        positions = tuple(range(len(inputs)))
        return ms.grad(loss, positions if len(inputs) > 1 else 0)(*inputs)

    def filled(cell):
        """Its parameters get small values that depend on their place alone."""
        for place, parameter in enumerate(cell.get_parameters()):
            count = int(numpy.prod(parameter.shape))
            values = (numpy.arange(count) * 7 + place * 3) % 11 / 20 - 0.2
            if "variance" in parameter.name:
                values = numpy.abs(values) + 0.5
            parameter.set_data(Tensor(values.reshape(parameter.shape).astype(numpy.float32)))
        return cell

    def rows(dataset, count=50):
        """The rows of one pass, `count` at most."""
        passed = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
        return [tuple(row) for row in itertools.islice(passed, count)]

    def statements(sources):
        """What each gives, or prints; they stand in a file, as the compiler of graphs needs them."""
        names = {"__name__": "__main__"}
        path = Path(f"statements_{zlib.crc32(repr(sources).encode())}.py").resolve()
        path.write_text("".join(sources))
        out, line = [], 0
        for source in sources:
            out.append(_given("\n" * line + source, str(path), names))
            line += source.count("\n")
        return out

    class Net(nn.Cell):
        """Parameters of its own, a cell, a sequence and a list."""

        def __init__(self):
            super().__init__()
            self.a = nn.Dense(2, 3, weight_init="ones", bias_init="zeros")
            self.b = nn.SequentialCell(
                nn.Dense(3, 3, weight_init="ones", bias_init="zeros"),
                nn.ReLU(),
                nn.Dense(3, 1, weight_init="ones", bias_init="zeros"),
            )
            self.c = nn.CellList([nn.Dense(1, 1, weight_init="ones", bias_init="zeros")])
            self.p = Parameter(Tensor([1.0]), name="own")

        def construct(self, x):
            return self.c[0](self.b(self.a(x))) + self.p

    # The compiler of MindSpore asks functions for their module.
    names = {
        "__name__": "__main__",
        "Net": Net,
        "ms": ms,
        "nn": nn,
        "ops": ops,
        "Tensor": Tensor,
        "Parameter": Parameter,
        "np": numpy,
    }
    names |= {
        short: _Lazy(name)
        for short, name in {
            "mint": "mindspore.mint",
            "mnp": "mindspore.numpy",
            "ds": "mindspore.dataset",
            "vision": "mindspore.dataset.vision",
            "audio": "mindspore.dataset.audio",
            "transforms": "mindspore.dataset.transforms",
            "text": "mindspore.dataset.text",
            "init": "mindspore.common.initializer",
            "train": "mindspore.train",
            "optim": "mindspore.experimental.optim",
            "linalg": "mindspore.scipy.linalg",
            "optimize": "mindspore.scipy.optimize",
            "Op": "mindspore.ops.operations",
        }.items()
    }
    return names | {
        "T": T,
        "U": U,
        "A": A,
        "P": P,
        "G": G,
        "filled": filled,
        "statements": statements,
        "rows": rows,
    }


def _given(source, file, names):
    """The value of an expression, else what was printed: its numbers apart, since they are rounded."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            code = compile(source, file, "eval")
        except SyntaxError:
            exec(compile(source, file, "exec"), names)
            value = None
        else:
            value = eval(code, names)
    if value is not None:
        return value
    text = " ".join(printed.getvalue().split())
    numbers = re.findall(NUMBER, text)
    return (
        re.sub(NUMBER, "#", text).replace(" ", ""),
        numpy.array([float(each) for each in numbers], numpy.float32),
    )


NUMBER = r"(?<![A-Za-z_0-9])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![A-Za-z_0-9])"


def number(value):
    return f"{float(value):.6g}"


def _numbers(array):
    array = numpy.asarray(array)
    if array.dtype.kind in "US":
        return " ".join(map(str, array.ravel().tolist()[:VALUES_MAX]))
    if array.dtype.kind not in "biufc":
        array = array.astype(numpy.float64)
    if array.dtype.kind == "c":
        return _numbers(numpy.stack([array.real, array.imag], -1))
    flat = array.ravel().astype(numpy.float64)
    if flat.size <= VALUES_MAX:
        return " ".join(map(number, flat))
    chosen = flat[numpy.linspace(0, flat.size - 1, 8).astype(int)]
    sums = [flat.mean(), numpy.abs(flat).mean(), (flat * numpy.cos(numpy.arange(flat.size))).mean()]
    return "~ " + " ".join(map(number, [*chosen, *sums]))


def described(value):
    """A value as JSON: its kind, type, shape and numbers."""
    import mindspore as ms

    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return ["i", str(value)]
    if isinstance(value, float):
        return ["f", number(value)]
    if isinstance(value, numpy.ndarray):
        return [
            "n",
            str(value.dtype) if value.dtype.kind not in "US" else "str",
            list(value.shape),
            _numbers(value),
        ]
    if isinstance(value, numpy.generic):
        return ["g", str(value.dtype), _numbers(value)]
    if isinstance(value, ms.Tensor):
        array = value.astype(ms.float32).asnumpy() if value.dtype == ms.bfloat16 else value.asnumpy()
        return ["t", str(value.dtype).lower(), list(value.shape), _numbers(array)]
    if isinstance(value, (tuple, list)):
        return ["(" if isinstance(value, tuple) else "[", *[described(each) for each in value]]
    if isinstance(value, dict):
        return ["{", *[[str(key), described(each)] for key, each in value.items()]]
    if isinstance(value, (set, frozenset)):
        return ["set", *sorted(map(str, value))]
    if isinstance(value, type):
        return ["class", value.__name__]
    kind = type(value).__name__
    return (
        ["dtype", str(value).lower()] if kind in ("DType", "dtype") or str(value) in _DTYPES else ["of", kind]
    )


_DTYPES = {f"{kind}{bits}" for kind in ("Float", "Int", "UInt") for bits in (8, 16, 32, 64)} | {
    "Bool",
    "BFloat16",
}


def _source(text, folder, place):
    """MindSpore's compiler reads the source of what it compiles, so that a program is a file."""
    if not any(word in text for word in ("jit", "mode=0", "jac", "jvp", "vjp", "vmap", "bprop")):
        return "<program>"
    path = Path(folder) / f"program_{place}.py"
    path.write_text(text + "\n")
    return str(path)


def answer(text, folder, place):
    """What the last line of a program gives; where it raises, ["E", the error's class, its words]."""
    import mindspore as ms

    ms.set_context(mode=ms.PYNATIVE_MODE)
    seed = int(os.environ.get("PROGRAMS_SEED", "1"))
    ms.set_seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)
    names = namespace()
    *body, last = text.split("\n")
    try:
        file = _source(text, folder, place)
        exec(compile("\n".join(body), file, "exec"), names)
        return described(eval(compile("\n" * len(body) + last, file, "eval"), names))
    except Exception as error:
        words = str(error).strip().split("\n")[0][:200]
        return ["E", type(error).__name__, words]


def _floats(text):
    return [float(each) for each in text.replace("~ ", "").split()]


# Of the largest number of an answer, by its type.
_NEAR = {"bfloat16": 2e-2, "float16": 3e-3, "float64": 2e-5, "float32": 2e-5}


def _numbers_agree(one, other, dtype):
    if one == other:
        return True
    try:
        a, b = numpy.array(_floats(one)), numpy.array(_floats(other))
    except ValueError:
        return False
    if a.shape != b.shape or (numpy.isnan(a) != numpy.isnan(b)).any():
        return False
    finite = numpy.isfinite(a)
    if (finite != numpy.isfinite(b)).any() or (
        a[~finite & ~numpy.isnan(a)] != b[~finite & ~numpy.isnan(a)]
    ).any():
        return False
    if not finite.any():
        return True
    near = next(
        (near for name, near in _NEAR.items() if name in dtype.lower()), 0 if "int" in dtype.lower() else 2e-5
    )
    near = max(near, 1e-5) if one.startswith("~") else near  # sums of many
    return bool(numpy.abs(a[finite] - b[finite]).max() <= near * max(numpy.abs(a[finite]).max(), 0.05))


def agree(one, other):
    """Whether two answers are the same but for rounding."""
    if one == other:
        return True
    if not (isinstance(one, list) and isinstance(other, list)) or len(one) != len(other) or not one:
        return False
    if one[0] != other[0]:
        return False
    if one[0] == "dtype":
        return one[1].lower() == other[1].lower()
    if one[0] in ("t", "n"):
        return (
            one[1].lower() == other[1].lower()
            and one[2] == other[2]
            and _numbers_agree(one[3], other[3], one[1])
        )
    if one[0] == "g":
        return one[1] == other[1] and _numbers_agree(one[2], other[2], one[1])
    if one[0] == "f":
        return _numbers_agree(one[1], other[1], "float32")
    if one[0] in ("(", "["):
        return all(map(agree, one[1:], other[1:]))
    if one[0] == "{":
        return all(a[0] == b[0] and agree(a[1], b[1]) for a, b in zip(one[1:], other[1:], strict=True))
    return False


def main():
    texts, first = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
    out = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for place, text in enumerate(texts[first:], first):
            print(json.dumps(answer(text, folder, place)), file=out, flush=True)


if __name__ == "__main__":
    main()
