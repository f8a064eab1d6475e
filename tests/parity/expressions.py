"""Expressions of MindSpore's names: what MindSpore gives, values and gradients, one line of text each.

python expressions.py [NAME]        with a Python that has mindspore 2.7.0 and numpy 1.26.4: writes *.json
python expressions.py --check NAME  with Muster's mindspore on PYTHONPATH: prints what differs, graph mode
python expressions.py --eager NAME  the same in eager mode

expressions/NAME.txt holds expressions of the tensors below, and behind `#` marks: `eager` where elements
decide the shape, or something else than a tensor is returned, so that it is no graph; `no gradient` where
there is none of use; `own gradient` where MindSpore's is not that of its values, or it has none: differences
tell; `is EXPRESSION` where MindSpore does not run it on a CPU, or not for these inputs: what numpy (N) gives,
as its reference says it.
"""

import contextlib
import json
import math
import re
import sys
from pathlib import Path

import mindspore as ms
import numpy
from mindspore import Tensor

FOLDER = Path(__file__).with_name("expressions")
RANDOM = numpy.random.RandomState(7)


def real(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


# x, y: any; p: positive; u: within (-1, 1); m, n: matrices; s: square; v, w: vectors; t: ties; o: ascending;
# q: what is no number; i, j: whole numbers, j positive; k, l: indices, int64; b: truth values; d: doubles.
INPUTS = {
    "x": real(2, 3, 2),
    "y": real(2, 3, 2),
    "p": numpy.abs(real(2, 3, 2)) + numpy.float32(0.3),
    "u": RANDOM.uniform(-0.9, 0.9, (2, 3, 2)).astype(numpy.float32),
    "m": real(3, 2),
    "n": real(2, 3),
    "s": real(3, 3),
    "v": real(3),
    "w": real(3),
    "t": numpy.array([[2, 1, 2], [0, 0, -1]], numpy.float32),
    "q": numpy.array([1.5, math.nan, math.inf, -math.inf, 0, -2], numpy.float32),
    "o": numpy.array([-1, 0.5, 0.75, 2], numpy.float32),
    "d": RANDOM.standard_normal((3, 2)),
    "i": RANDOM.randint(-9, 9, (2, 3, 2)).astype(numpy.int32),
    "j": RANDOM.randint(1, 5, (3, 2)).astype(numpy.int32),
    "k": numpy.array([2, 0, 1], numpy.int64),
    "l": numpy.array([3, 1, 3, 2], numpy.int64),
    "b": numpy.array([[True, False, True], [False, False, True]]),
}


def expressions(name):
    """(expression, its marks) of a file."""
    for line in (FOLDER / f"{name}.txt").read_text().splitlines():
        text, _, marks = line.partition(" # ")
        if text.strip() and not line.startswith("#"):
            yield text.strip(), marks


def trained(name, *, groups=False, steps=4, **settings):
    """What parameters are after steps of an optimizer of mindspore.experimental.optim."""
    from mindspore.experimental import optim

    given = [ms.Parameter(Tensor(INPUTS[each]), name=each) for each in ("m", "v")]
    params = [{"params": [given[0]], "lr": 0.3}, {"params": [given[1]]}] if groups else given
    optimizer = getattr(optim, name)(params, **settings)
    for step in range(steps):
        optimizer(tuple(Tensor(INPUTS[each] * (1 - step) + 0.1) for each in ("m", "w")))
    return tuple(each + 0 for each in given)


def rates(make, numbers=8):
    """The learning rates that a scheduler sets, from 0.5 on; `numbers` may be those that it takes."""
    from mindspore.experimental import optim

    optimizer = optim.SGD([ms.Parameter(Tensor(INPUTS["v"]), name="v")], lr=0.5)
    scheduler = make(optim.lr_scheduler, optimizer)
    found = []
    for step in range(numbers) if isinstance(numbers, int) else numbers:
        found.append(float(optimizer.param_groups[0]["lr"].asnumpy()))
        scheduler.step(*([] if isinstance(numbers, int) else [Tensor(step, ms.float32)]))
    return Tensor(found, ms.float32)


def names():
    found = {"ms": ms, "Tensor": Tensor, "math": math, "trained": trained, "rates": rates}
    for name in ("numpy", "mint", "ops", "nn"):
        with contextlib.suppress(ImportError):
            exec(f"from mindspore import {name}", found)
    found["np"] = found.pop("numpy", None)
    return found


NAMES = names()
STEP = 2e-3
ORACLE = r"\bis (.*)$"


def function_of(text):
    """(names of the inputs, a function of them)."""
    used = [name for name in INPUTS if re.search(rf"(?<![\w.'\"]){name}\b(?!\s*=[^=])", text)]
    return used, eval(f"lambda {', '.join(used)}: {text}", NAMES)


def flat(value):
    """Tensors in a list, whatever they stand in; numbers, strings and dtypes as they are."""
    if isinstance(value, tuple | list):
        return [each for part in value for each in flat(part)]
    return [value]


def told(value):
    """What is recorded of a result."""
    if not isinstance(value, Tensor):
        return ["object", [], str(value).lower()]
    array = value.asnumpy()
    if array.dtype.kind == "f":
        numbers = [float(f"{x:.7g}") for x in array.astype(float).ravel().tolist()]
    else:
        numbers = array.astype(int).ravel().tolist()
    return [str(value.dtype).lower(), list(array.shape), numbers]


def gradients(function, tensors, differentiable, like):
    weights = Tensor(numpy.linspace(0.5, 2, max(like.size, 1)).reshape(like.shape).astype(like.dtype))

    def weighed(*given):
        return (flat(function(*given))[0] * weights).sum()

    made = ms.value_and_grad(weighed, tuple(differentiable))(*tensors)[1]
    return flat(made)


def places_of_floats(used):
    return [at for at, name in enumerate(used) if INPUTS[name].dtype.kind == "f"]


def results(text, marks, wrap=lambda function: function):
    """(what the expression gives, its gradients or None)."""
    used, function = function_of(text)
    tensors = [Tensor(INPUTS[name]) for name in used]
    made = flat(wrap(function)(*tensors))
    first = made[0].asnumpy() if made and isinstance(made[0], Tensor) else None
    differentiable = places_of_floats(used)
    if first is None or first.dtype.kind != "f" or not differentiable or "no gradient" in marks:
        return made, None
    return made, lambda: gradients(wrap(function), tensors, differentiable, first)


def differences(function, tensors, differentiable):
    """Gradients by differences of both sides, with the weights of gradients()."""
    arrays = [tensor.asnumpy().astype(numpy.float64) for tensor in tensors]

    def weighed(at, array):
        given = [
            Tensor(array.astype(tensor.asnumpy().dtype)) if at == place else tensor
            for place, tensor in enumerate(tensors)
        ]
        found = flat(function(*given))[0].asnumpy().astype(float)
        return (found * numpy.linspace(0.5, 2, max(found.size, 1)).reshape(found.shape)).sum()

    slopes = []
    for at in differentiable:
        slope = numpy.zeros(arrays[at].shape)
        for place in numpy.ndindex(slope.shape):
            moved = [arrays[at].copy() for _ in range(2)]
            moved[0][place] -= STEP
            moved[1][place] += STEP
            slope[place] = (weighed(at, moved[1]) - weighed(at, moved[0])) / (2 * STEP)
        slopes.append([str(tensors[at].dtype).lower(), list(slope.shape), slope.ravel().tolist()])
    return slopes


def write(only):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    for place in sorted(FOLDER.glob(f"{only}.txt")):
        rows = []
        for text, marks in expressions(place.stem):
            if re.search(ORACLE, marks):
                continue
            try:
                made, slopes = results(text, marks)
            except Exception as error:
                print(f"{text}: {str(error).strip().splitlines()[0][:150]}")
                continue
            try:
                own = slopes is None or "own gradient" in marks
                slopes = None if own else [told(each) for each in slopes()]
            except Exception as error:
                print(f"gradient of {text}: {str(error).strip().splitlines()[0][:150]}")
                slopes = None
            rows.append(json.dumps([text, [told(each) for each in made], slopes]))
        place.with_suffix(".json").write_text("[\n" + ",\n".join(rows) + "\n]\n")


def difference(found, known, slack):
    """What is wrong with `found`, or nothing."""
    dtype, shape, values = known
    kind, size, numbers = told(found)
    if (kind, size) != (dtype, shape):
        return f"{kind} {size}, not {dtype} {shape}"
    if kind == "object" or not values:
        return "" if numbers == values else f"{numbers}, not {values}"
    a, b = numpy.array(numbers, float), numpy.array(values, float)
    with numpy.errstate(invalid="ignore"):
        limit = slack * max(numpy.abs(b[numpy.isfinite(b)]).max(initial=0.0), 1e-2)
        same = (a == b) | (numpy.isnan(a) & numpy.isnan(b)) | (numpy.abs(a - b) <= limit)
    return "" if same.all() else f"{a[~same][:4].tolist()}, not {b[~same][:4].tolist()}"


def problems_of(text, marks, known, slopes, wrap):
    made, gradient = results(text, marks, wrap)
    if len(made) != len(known):
        return [f"{len(made)} results, not {len(known)}"]
    found = [difference(each, right, 1e-5) for each, right in zip(made, known, strict=True)]
    slack = 1e-4
    if "own gradient" in marks and gradient:
        used, function = function_of(text)
        tensors = [Tensor(INPUTS[each]) for each in used]
        slopes, slack = differences(function, tensors, places_of_floats(used)), 5e-3
    if slopes is not None:
        pairs = zip(gradient(), slopes, strict=True)
        found += [f"gradient: {wrong}" for each, right in pairs if (wrong := difference(each, right, slack))]
    return [each for each in found if each]


def told_by_numpy(text):
    found = eval(text, {"N": numpy, "math": math, **INPUTS})
    return [told(Tensor(numpy.asarray(each))) for each in (found if isinstance(found, tuple) else (found,))]


def check(name, eager):
    ms.set_context(mode=ms.PYNATIVE_MODE if eager else ms.GRAPH_MODE)
    known = {text: rest for text, *rest in json.loads((FOLDER / f"{name}.json").read_text())}
    agreeing = 0
    for text, marks in expressions(name):
        if oracle := re.search(ORACLE, marks):
            known[text] = told_by_numpy(oracle[1]), None
            marks = marks[: oracle.start()] + ("" if "gradient" in marks else "own gradient")
        if text not in known:
            print(f"{text}: is not recorded")
            continue
        if "eager" in marks and not eager:
            continue
        try:
            wrong = problems_of(text, marks, *known[text], (lambda function: function) if eager else ms.jit)
        except Exception as error:
            wrong = [f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"]
        print("".join(f"{text}: {each}\n" for each in wrong), end="")
        agreeing += not wrong
    print(f"{agreeing} agree")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        write(sys.argv[1] if len(sys.argv) > 1 else "*")
    else:
        check(sys.argv[2], sys.argv[1] == "--eager")
