"""The further functions and classes of mindspore.ops: what MindSpore gives, values and gradients.

python further_ops.py           with a Python that has mindspore 2.7.0, numpy 1.26.4: writes further_ops.json
                                and prints what MindSpore itself cannot compute
python further_ops.py --check   with Muster's mindspore on PYTHONPATH: prints what differs, graph mode
python further_ops.py --eager   the same in eager mode, and what is for eager mode alone
"""

import json
import math
import sys
from pathlib import Path

import mindspore as ms
import numpy
from further_ops_cases import EAGER, SMOOTH, VALUES
from mindspore import Parameter, Tensor, ops
from mindspore.ops import operations as P  # noqa: N812 - as everybody calls it

PLACE = Path(__file__).with_name("further_ops.json")


def after(step, *given):
    """The variable and its states after a step that writes them; the last one given is the gradient."""
    states = [Parameter(each, name=f"state{at}") for at, each in enumerate(given[:-1])]
    step(*states, given[-1])
    return [Tensor(each.asnumpy()) for each in states]


NAMES = {
    "after": after,
    "math": math,
    "ms": ms,
    "numpy": numpy,
    "ops": ops,
    "P": P,
    "Tensor": Tensor,
    "Parameter": Parameter,
}


def function_of(text):
    return eval(f"lambda x=None, y=None, z=None, w=None: {text}", NAMES)


def flat(results):
    results = results if isinstance(results, (tuple, list)) else (results,)
    return [each.asnumpy() if isinstance(each, Tensor) else numpy.array(each) for each in results]


def gradients(function, tensors, like):
    weights = Tensor(numpy.linspace(0.5, 2, like.size).reshape(like.shape).astype(like.dtype))

    def weighed(*x):
        made = function(*x)
        return ((made[0] if isinstance(made, (tuple, list)) else made) * weights).sum()

    positions = tuple(at for at, each in enumerate(tensors) if each.dtype == ms.float32)
    made = ms.value_and_grad(weighed, positions)(*tensors)[1]
    return [each.asnumpy() for each in (made if isinstance(made, tuple) else (made,))]


def figures(compiled):
    """{name: array} of everything, and what failed."""
    found, failed = {}, []
    tables = (
        ((SMOOTH, True), (VALUES, False)) if compiled else ((SMOOTH, True), (VALUES, False), (EAGER, False))
    )
    for table, with_gradient in tables:
        for text, inputs in table:
            try:
                function = function_of(text)
                tensors = [Tensor(given) for given in inputs]
                called = ms.jit(function) if compiled else function
                made = flat(called(*tensors))
                found.update((f"{text} {at}", each) for at, each in enumerate(made))
                if with_gradient:
                    for at, each in enumerate(gradients(function, tensors, made[0])):
                        found[f"{text}, gradient {at}"] = each
            except Exception as error:
                failed.append(f"{text}: {type(error).__name__}: {str(error).strip().splitlines()[:1]}")
    return found, failed


def write():
    found, failed = figures(compiled=False)
    rows = [
        json.dumps(
            [name, str(array.dtype), list(array.shape), [float(f"{x:.9g}") for x in array.ravel().tolist()]]
        )
        for name, array in found.items()
    ]
    PLACE.write_text("[\n" + ",\n".join(rows) + "\n]\n")
    print("\n".join(failed))


def difference(name, found, dtype, shape, values):
    """What is wrong with `found`, or nothing."""
    if str(found.dtype) != dtype or list(found.shape) != shape:
        return f"{name}: {found.dtype} {found.shape}, not {dtype} {shape}"
    a, b = found.astype(float).ravel(), numpy.array(values, float)
    if not numpy.array_equal(numpy.isfinite(a), numpy.isfinite(b)):
        return f"{name}: {a}, not {b}"
    at = numpy.isfinite(b)
    limit = (1e-4 if "gradient" in name else 2e-5) * numpy.abs(b[at]).max(initial=1e-9)
    worst = numpy.abs(a[at] - b[at]).max(initial=0.0)
    return "" if worst <= limit else f"{name}: off by {worst}, at most {limit} is allowed"


def check(compiled):
    found, failed = figures(compiled)
    for_eager = tuple(text for text, _ in EAGER)
    known = [
        each for each in json.loads(PLACE.read_text()) if not (compiled and each[0].startswith(for_eager))
    ]
    problems = failed + [difference(name, found[name], *rest) for name, *rest in known if name in found]
    problems += [f"{name}: is not computed" for name, *_ in known if name not in found]
    print("\n".join(problem for problem in problems if problem) or f"{len(known)} agree")


if __name__ == "__main__":
    ms.set_context(mode=ms.PYNATIVE_MODE)
    if len(sys.argv) == 1:
        write()
    else:
        check("--check" in sys.argv)
