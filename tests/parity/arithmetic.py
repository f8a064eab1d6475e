"""Arithmetic by MindSpore's names: ops x dtypes x axes, and what MindSpore gives for each.

python arithmetic.py          with a Python that has mindspore 2.7.0 and numpy 1.26.4: writes *.json.xz
python arithmetic.py --check  with Muster's mindspore on PYTHONPATH: prints what differs

A program is an expression; D(dtype) makes a tensor of (2, 3), E(dtype) one of (3,), F(dtype) one with NaN and
infinity where the dtype has them, C(dtype) one with numbers that few dtypes hold. MindSpore's answer is kept
where it has one: a dtype, a shape and the elements.
"""

import itertools
import json
import lzma
import re
import sys
from pathlib import Path

import numpy

RECORD = Path(__file__).with_name("arithmetic.json.xz")


def words(text):
    return text.split()


WHOLE = words("int8 int16 int32 int64 uint8 uint16 uint32 uint64")
DTYPES = ["bool", *WHOLE, "float16", "float32", "float64", "bfloat16"]

OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "@"]
NUMBERS = ["2", "-1", "2.5", "True", "300", "[1, 2, 3]", "(1.5, 2.5, 3.5)"]
PAIRS = words("""
    add sub mul div floor_div floor_mod pow maximum minimum equal less greater_equal
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift
    bitwise_right_shift fmod remainder atan2 true_divide floor_divide subtract multiply""")
SINGLES = words("""
    neg abs sign square reciprocal sqrt rsqrt exp expm1 log log1p erf sin cos floor ceil round trunc
    isnan isinf isfinite logical_not relu sigmoid tanh invert zeros_like ones_like frac""")
FOLDS = words("sum prod mean reduce_max reduce_min all any argmax argmin max min amax amin")
METHODS = words("sum mean max min all any argmax argmin prod cumsum std var")
AXES = ["", ", 0", ", -1", ", (0, 1)"]


def programs():
    """Expressions, in no order that matters."""
    for operator, a, b in itertools.product(OPERATORS, DTYPES, DTYPES):
        yield f"D('{a}') {operator} E('{b}')"
    for operator, a, number in itertools.product(OPERATORS[:-1], DTYPES, NUMBERS):
        yield f"D('{a}') {operator} {number}"
        yield f"{number} {operator} D('{a}')"
    for name, a in itertools.product(PAIRS, DTYPES):
        yield f"ops.{name}(D('{a}'), E('{a}'))"
        yield f"ops.{name}(F('{a}'), F('{a}'))"
        yield f"ops.{name}(D('{a}'), 2)"
        yield f"ops.{name}(D('{a}'), -1.5)"
    for name, a in itertools.product(SINGLES, DTYPES):
        yield f"ops.{name}(D('{a}'))"
        yield f"ops.{name}(F('{a}'))"
    for name, a, axis in itertools.product(FOLDS, DTYPES, AXES):
        yield f"ops.{name}(D('{a}'){axis})"
        yield f"ops.{name}(F('{a}'){axis})"
    for name, a, axis in itertools.product(METHODS, DTYPES, AXES):
        yield f"D('{a}').{name}({axis[2:]})"
    for symbol, a in itertools.product(["-", "~", "+", "abs", "not "], DTYPES):
        yield f"{symbol}(D('{a}'))" if symbol != "not " else f"not D('{a}')[0, 0]"
    for a, b in itertools.product(DTYPES, DTYPES):
        yield f"D('{a}').astype(ms.{'bool_' if b == 'bool' else b})"
        yield f"C('{a}').astype(ms.{'bool_' if b == 'bool' else b})"
    for a in DTYPES:
        yield f"D('{a}').astype(float)"
        yield f"D('{a}').astype(int)"
        yield f"D('{a}').astype(bool)"
        yield f"D('{a}').float()"
        yield f"D('{a}').half()"
        yield f"D('{a}').int()"
        yield f"D('{a}').long()"
        yield f"D('{a}').bool()"
        yield f"ops.matmul(D('{a}'), D('{a}').T)"
        yield f"ops.cumsum(D('{a}'), 1)"
        yield f"ops.cumprod(D('{a}'), 1)"
        yield f"ops.topk(D('{a}'), 2)"
        yield f"ops.topk(D('{a}'), 3, sorted=False)"
        yield f"ops.topk(F('{a}'), 3)"
        yield f"ops.sort(F('{a}'))"
        yield f"ops.where(D('bool'), D('{a}'), E('{a}'))"
        yield f"ops.clamp(D('{a}'), 1, 3)"
        yield f"ops.gather(D('{a}'), Tensor([0, 5, 1]), 1)"
        yield f"ops.full((2,), 3, dtype=D('{a}').dtype)"
        yield f"ops.stack([D('{a}'), D('{a}')])"
        yield f"ops.concat([D('{a}'), D('float32')])"
        yield f"ops.one_hot(Tensor([0, 1]), 3, E('{a}')[0], E('{a}')[1])"
        yield f"ops.softmax(D('{a}'))"
        yield f"ops.norm(D('{a}'))"


_VALUES = {
    "D": [[-3, 0, 2], [5, -1, 4]],
    "E": [2, -1, 3],
    "F": [[1, numpy.nan, 3], [numpy.inf, -numpy.inf, numpy.nan]],
    "C": [-1, 300, -129.7, 40000, 70000.5, 0.4],
}


def namespace():
    import mindspore as ms
    from mindspore import Tensor, ops

    def maker(letter):
        def make(name):
            values = numpy.array(_VALUES[letter], numpy.float64)
            if name == "bool":
                return Tensor(numpy.nan_to_num(values) > 0)
            if name in WHOLE:
                values = numpy.nan_to_num(values, nan=7, posinf=100, neginf=-100)
                if name.startswith("u") and letter != "C":
                    values = abs(values)
                return Tensor(values.astype(numpy.int64).astype(name))
            if name == "bfloat16":
                return Tensor(values.astype(numpy.float32)).astype(ms.bfloat16)
            return Tensor(
                values.clip(-60000, 60000) if letter == "C" else values.astype(name), getattr(ms, name)
            )

        return make

    return {"ms": ms, "ops": ops, "Tensor": Tensor} | {letter: maker(letter) for letter in _VALUES}


def told(value, ms):
    """A result in JSON."""
    if isinstance(value, (tuple, list)):
        return [told(each, ms) for each in value]
    if not isinstance(value, ms.Tensor):
        return [type(value).__name__, str(value)]
    if value.dtype is ms.bfloat16 or value.dtype == ms.bfloat16:
        return ["bfloat16", *told(value.astype(ms.float32), ms)[1:]]
    array = value.asnumpy()
    shown = array.astype(numpy.float64) if array.dtype.kind == "f" else array
    numbers = [f"{x:.9g}" if shown.dtype.kind == "f" else str(int(x)) for x in shown.ravel().tolist()]
    return [str(array.dtype), list(array.shape), " ".join(numbers)]


def answers(texts):
    """(text, answer or None, error) of each."""
    names = namespace()
    ms = names["ms"]
    for text in texts:
        try:
            with numpy.errstate(all="ignore"):
                yield text, told(eval(text, names), ms), ""
        except Exception as error:
            yield text, None, f"{type(error).__name__}: {error}".replace("\n", " ")


def write():
    import mindspore as ms

    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    known = [(text, answer) for text, answer, _ in answers(dict.fromkeys(programs())) if answer is not None]
    RECORD.write_bytes(lzma.compress(json.dumps(known, separators=(",", ":")).encode(), preset=9))
    print(f"{len(known)} answers")


def recorded():
    return json.loads(lzma.decompress(RECORD.read_bytes()))


def agree(known, given):
    """The same dtypes and shapes; elements equal, floating ones within the rounding of their dtype."""
    if not (isinstance(known, list) and isinstance(given, list)) or len(known) != len(given):
        return known == given
    if not known or isinstance(known[0], list):
        return all(agree(a, b) for a, b in zip(known, given, strict=True))
    if known[:2] != given[:2] or len(known) == 2:
        return known == given
    slack = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 2e-6}.get(known[0], 0)
    a, b = (numpy.array(each[2].split(), numpy.float64) for each in (known, given))
    if slack == 0:
        return known[2] == given[2]
    with numpy.errstate(invalid="ignore"):
        return bool(
            ((a == b) | (numpy.isnan(a) & numpy.isnan(b)) | (abs(a - b) <= slack * abs(a) + 1e-7)).all()
        )


def pairs(known, given):
    """(MindSpore's element, ours) of those that differ; nothing where dtypes or shapes do."""
    if known[:2] != given[:2]:
        return []
    return [(a, b) for a, b in zip(known[2].split(), given[2].split(), strict=True) if a != b]


def is_zero(known, given):
    """Ours is 0 where MindSpore has the greatest or least number of the dtype, or a part of it."""
    return bool(pairs(known, given)) and all(b == "0" for _, b in pairs(known, given))


def sees_nan(known, given):
    """Ours is NaN, or the index of one."""
    return "nan" in json.dumps(given) or known[0] in ("int32", "int64")


def is_bool(known, given):
    return given[0] == "bool" and known[0] in ("bool", "uint8")


def always(known, given):
    return True


# (programs, how ours differ, why): docs/guide/mindspore.md tells more.
REASONS = [
    (r"//|%", is_zero, "whole numbers divided by 0 give 0"),
    (r"\*\* (E|-1)|ops.pow", is_zero, "0 to a negative power is 0"),
    (
        r"\*\* (300|-1)|300 \*\*",
        always,
        "powers of whole numbers wrap around; MindSpore's overflow elsewhere",
    ),
    (r"any\(", is_bool, "truth values; MindSpore folds the lowest byte of some along an axis"),
    (r"\.(std|var)\(", always, "of whole numbers MindSpore takes a mean without its fraction"),
    (r"(max|min|topk|sort|sign|relu)\(F\('float", sees_nan, "a NaN is not skipped"),
    (r"tanh", always, "MindSpore's is exact to 1e-4"),
]


def differences():
    """(text, MindSpore's answer, ours or the error) of each program that differs."""
    known = dict(recorded())
    for text, answer, error in answers(known):
        if answer is None or not agree(known[text], answer):
            yield text, known[text], answer if answer is not None else error


def check():
    """Prints each difference without a reason, and how many agree; names that are not there do not count."""
    used = dict.fromkeys(REASONS, 0)
    unexplained = missing = 0
    for text, wanted, given in differences():
        if isinstance(given, str) and "is not provided by Muster" in given:
            missing += 1
            continue
        answered = not isinstance(given, str)
        fitting = (
            each for each in REASONS if answered and re.search(each[0], text) and each[1](wanted, given)
        )
        reason = next(fitting, None)
        if reason is None:
            print(f"{text}: {json.dumps(wanted)} -> {json.dumps(given)}")
            unexplained += 1
        else:
            used[reason] += 1
    explained = sum(used.values())
    agreeing = len(recorded()) - explained - unexplained - missing
    unused = [reason[2] for reason, count in used.items() if count == 0]
    print(f"{agreeing} agree, {explained} differ for a reason, {missing} are not there yet, {unused}")


if __name__ == "__main__":
    check() if "--check" in sys.argv else write()
