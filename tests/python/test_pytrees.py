"""What traced code takes and gives beside tensors: classes of lists and dicts, dataclasses, objects; and
what code puts into them. Answers are those of eager mode."""

import contextlib
import dataclasses
import enum
import functools
from collections import Counter, OrderedDict, defaultdict, namedtuple
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from muster.dataset import NumpySlicesDataset

import muster
from muster import Tensor, nn, train

Pair = namedtuple("Pair", "first second")


class Output(OrderedDict):
    """A dict whose keys are attributes, as libraries' outputs are."""

    def __getattr__(self, name):
        with contextlib.suppress(KeyError):
            return self[name]
        raise AttributeError(name)


class Stack(list):
    def top(self):
        return self[-1]


@dataclasses.dataclass
class Batch:
    data: object
    label: object = None
    scale: int = 2


@dataclasses.dataclass(frozen=True)
class Frozen:
    data: object


class Slotted:
    __slots__ = ("data", "unset")

    def __init__(self, data):
        self.data = data


class Cache:
    def __init__(self, data=None):
        self.data = data
        self.steps = 0

    def update(self, data):
        self.data = data if self.data is None else self.data + data
        self.steps += 1
        return self.data


class Marker:
    pass


class Mode(enum.Enum):
    ADD = 1
    MULTIPLY = 2


class Net(nn.Cell):
    def __init__(self, code):
        super().__init__()
        self.code = code

    def construct(self, *args, **kwargs):
        return self.code(*args, **kwargs)


def tensor(start=1.0):
    return Tensor(np.arange(start, start + 3, dtype=np.float32))


@pytest.fixture(autouse=True)
def _graph_mode():
    yield
    muster.set_context(mode="graph")


def plain(result):
    """A result in terms of lists and their classes, to compare."""
    if isinstance(result, Tensor):
        return ("tensor", result.numpy().tolist())
    if isinstance(result, dict):
        items = [(key, plain(value)) for key, value in result.items()]
        return (type(result).__name__, items, plain(getattr(result, "default_factory", None)))
    if isinstance(result, (tuple, list)):
        return (type(result).__name__, [plain(part) for part in result])
    if isinstance(result, Slotted):
        return ("Slotted", plain(result.data), hasattr(result, "unset"))
    if hasattr(result, "__dict__") and not isinstance(result, (type, enum.Enum)):
        return (type(result).__name__, plain(vars(result)))
    return result


def in_both_modes(code, make_arguments):
    """Results of three calls, and what their arguments are afterwards."""
    answers = []
    for mode in ("eager", "graph"):
        muster.set_context(mode=mode)
        net = Net(code)
        calls = []
        for start in (1.0, 2.0, 3.0):
            arguments = make_arguments(tensor(start))
            calls.append((plain(net(*arguments)), plain(arguments)))
        answers.append(calls)
    return answers


GIVEN = {
    "a namedtuple": (lambda pair: pair.first * pair.second, lambda x: (Pair(x, x),)),
    "a class of dict": (lambda output: output.loss * 2, lambda x: (Output(loss=x),)),
    "a class of list": (lambda stack: stack.top() + stack[0], lambda x: (Stack([x, x]),)),
    "a defaultdict": (lambda d: d["x"] + len(d["new"]), lambda x: (defaultdict(list, x=x),)),
    "a dataclass": (lambda batch: batch.data * batch.scale, lambda x: (Batch(x),)),
    "a frozen dataclass": (lambda batch: batch.data * 2, lambda x: (Frozen(x),)),
    "a class with slots": (lambda batch: batch.data * 2, lambda x: (Slotted(x),)),
    "an object": (lambda cache: cache.data * 2, lambda x: (Cache(x),)),
    "a namespace": (lambda space: space.x * space.n, lambda x: (SimpleNamespace(x=x, n=3),)),
    "nested ones": (lambda b: b.data["p"].first.data * 2, lambda x: (Batch({"p": Pair(Cache(x), 1)}),)),
    "an Enum": (lambda mode, x: x + x if mode is Mode.ADD else x * x, lambda x: (Mode.MULTIPLY, x)),
    "a slice": (lambda part, x: x[part], lambda x: (slice(0, 2), x)),
    "a range": (lambda indices, x: sum(x[i] for i in indices), lambda x: (range(2), x)),
    "bytes": (lambda text, x: x * len(text), lambda x: (b"ab", x)),
    "an ellipsis": (lambda part, x: x[part] * 2, lambda x: (..., x)),
    "a set": (lambda names, x: x * len(names), lambda x: ({"a", "b"}, x)),
    "a frozenset": (lambda names, x: x * len(names), lambda x: (frozenset({1, 2}), x)),
    "a complex number": (lambda number, x: x * number.real, lambda x: (2 + 1j, x)),
    "a path": (lambda path, x: x * len(path.parts), lambda x: (Path("/a/b"), x)),
    "a dtype of numpy": (lambda dtype, x: x * dtype.itemsize, lambda x: (np.dtype("int16"), x)),
    "a partial": (lambda code, x: code(x), lambda x: (functools.partial(lambda n, x: x * n, 3), x)),
}


@pytest.mark.parametrize("name", GIVEN)
def test_traced_code_takes(name):
    eager, graph = in_both_modes(*GIVEN[name])
    assert graph == eager


RETURNED = {
    "a namedtuple": lambda x: Pair(x, x * 2),
    "a class of dict": lambda x: Output(loss=x, logits=x * 2),
    "a class of list": lambda x: Stack([x, 1]),
    "a defaultdict": lambda x: defaultdict(list, x=x * 2),
    "a Counter": lambda x: Counter(a=2),
    "a dataclass": lambda x: Batch(x, x * 2, 5),
    "a frozen dataclass": lambda x: Frozen(x),
    "a class with slots": lambda x: Slotted(x * 2),
    "an object": lambda x: Cache(x * 3),
    "a namespace": lambda x: SimpleNamespace(x=x),
    "an Enum": lambda x: (x, Mode.ADD),
    "nested ones": lambda x: {"out": Batch([Pair(x, None)], Output(y=x))},
}


@pytest.mark.parametrize("name", RETURNED)
def test_traced_code_returns(name):
    eager, graph = in_both_modes(RETURNED[name], lambda x: (x,))
    assert graph == eager


def put_key(d, x):
    d["y"] = x * 2
    return x


def put_in_two(d, x):
    d["first"] = d["second"] = [x]
    return x


def pop_key(d):
    label = d.pop("label")
    return d["x"] + label


def append(items, x):
    items.append(x * 2)
    items.append(5)
    return x


def put_first(items, x):
    items[0] = x * 2
    return x


def shorten(items):
    return items.pop() + items.pop()


def reverse(items):
    items.reverse()
    return items[0]


def set_attribute(cache, x):
    cache.data = x * 2
    cache.name = "set"
    return x


def delete_attribute(cache, x):
    del cache.data
    return x


def set_slot(slotted, x):
    slotted.unset = x
    return x


def change_deep(batch, x):
    batch.data["list"][0].append(x)
    return x


def move(d):
    d["to"] = d.pop("from")
    return d["to"]["x"]


CHANGED = {
    "a new key": (put_key, lambda x: ({}, x)),
    "one list at two keys": (put_in_two, lambda x: ({}, x)),
    "a key that is gone": (pop_key, lambda x: ({"x": x, "label": x},)),
    "a key of an OrderedDict that is gone": (pop_key, lambda x: (OrderedDict(label=x, x=x),)),
    "what is appended": (append, lambda x: ([], x)),
    "what is appended behind a tensor": (append, lambda x: ([x], x)),
    "another first item": (put_first, lambda x: ([x, 1], x)),
    "fewer items": (shorten, lambda x: ([x, x, x],)),
    "items in another order": (reverse, lambda x: ([x, x * 2, 3],)),
    "an attribute": (set_attribute, lambda x: (Cache(), x)),
    "an attribute beside a tensor": (set_attribute, lambda x: (Cache(x), x)),
    "an attribute that is gone": (delete_attribute, lambda x: (Cache(x), x)),
    "a slot": (set_slot, lambda x: (Slotted(x), x)),
    "what a method does": (lambda cache, x: cache.update(x), lambda x: (Cache(), x)),
    "a list in a dict of a dataclass": (change_deep, lambda x: (Batch({"list": [[x]]}), x)),
    "a dict that moves": (move, lambda x: ({"from": {"x": x}},)),
}


@pytest.mark.parametrize("name", CHANGED)
def test_arguments_change_as_the_code_changes_them(name):
    eager, graph = in_both_modes(*CHANGED[name])
    assert graph == eager


def test_an_argument_that_holds_itself_is_taken():
    def code(node):
        return node.child.parent.data * 2

    def family(x):
        node, child = SimpleNamespace(data=x), SimpleNamespace()
        node.child, child.parent = child, node
        return node

    net = Net(code)
    for start in (1.0, 2.0):
        assert net(family(tensor(start))).numpy().tolist() == (tensor(start).numpy() * 2).tolist()


def test_objects_are_inputs_so_that_other_tensors_need_no_other_plan():
    scaled = muster.jit(lambda batch: batch.data * batch.scale)
    for start in range(4):
        scaled(Batch(tensor(start)))
    assert len(scaled.traces) == 1
    scaled(Batch(tensor(), scale=3))
    batch = "Batch(.data=T.label=NoneType None;.scale=int {};)".format
    assert scaled.traces[1]["reason"] == f"argument 0 is {batch(3)}, was {batch(2)}"


def test_what_the_code_returns_of_its_arguments_is_the_callers_own():
    def code(cache, items, x):
        cache.update(x)
        items.append(x)
        return cache, [items]

    net = Net(code)
    for _ in range(2):
        cache, items = Cache(), []
        returned, (list_returned,) = net(cache, items, tensor())
        assert returned is cache
        assert list_returned is items


@pytest.mark.parametrize("kind", [object, Marker])
def test_markers_are_known_again(kind):
    marker = kind()
    net = Net(lambda seen, x: x * 2 if seen is marker else x)
    assert net(marker, tensor()).numpy().tolist() == [2, 4, 6]
    assert net(kind(), tensor()).numpy().tolist() == [1, 2, 3]


def test_a_trace_that_fails_leaves_its_arguments_as_they_were():
    def code(items, cache, x):
        items.append(x)
        cache.data = x
        raise RuntimeError("on purpose")

    items, cache = [1], Cache()
    with pytest.raises(RuntimeError, match="purpose"):
        Net(code)(items, cache, tensor())
    assert (items, cache.data) == ([1], None)


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_gradients_have_the_class_of_their_argument(mode):
    muster.set_context(mode=mode)
    gradient = muster.value_and_grad(lambda batch: (batch.data * batch.data).sum(), 0)
    _, grad = gradient(Batch(tensor(), scale=7))
    assert isinstance(grad, Batch)
    assert (grad.data.numpy().tolist(), grad.scale) == ([2, 4, 6], 7)


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_what_a_loss_function_puts_into_its_arguments_has_no_part_in_the_gradient(mode):
    def loss(x, notes, counts):
        notes["twice"] = x * 2
        counts.append(muster.ops.argmax(x))
        return (x * x).sum()

    muster.set_context(mode=mode)
    notes, counts = {}, []
    gradient = muster.value_and_grad(loss, 0)
    for _ in range(2):
        _, grad = gradient(tensor(), notes, counts)
    assert grad.numpy().tolist() == [2, 4, 6]
    assert notes["twice"].numpy().tolist() == [2, 4, 6]
    assert [int(count) for count in counts] == [2, 2]


def test_a_cell_of_another_precision_changes_its_arguments_too():
    class Inner(nn.Cell):
        def construct(self, x, notes):
            notes["dtype"] = str(x.dtype)
            notes["x"] = x
            return x * 2

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner().to_float(muster.bfloat16)

        def construct(self, x):
            notes = {}
            y = self.inner(x, notes)
            return y, notes["x"], notes["dtype"]

    _, seen, dtype = Outer()(tensor())
    assert "bfloat16" in dtype
    assert seen.numpy().astype(np.float32).tolist() == [1, 2, 3]


REFUSED = {
    "an iterator": lambda x: iter([x]),
    "a generator": lambda x: (x for _ in range(2)),
    "values of a dict": lambda x: {"x": x}.values(),
    "a function around a tensor": lambda x: lambda: x,
}


@pytest.mark.parametrize("name", REFUSED)
def test_traced_code_cannot_return(name):
    with pytest.raises(TypeError, match="traced code returns"):
        Net(REFUSED[name])(tensor())


def test_an_iterator_is_refused_as_an_argument_and_named():
    with pytest.raises(TypeError, match="list_iterator"):
        Net(lambda items: sum(items))(iter([tensor()]))


def test_a_bprop_gets_its_arguments_with_their_classes():
    seen = []

    class Own(nn.Cell):
        def construct(self, pair):
            return pair.first * 2

        def bprop(self, pair, out, dout):
            seen.append(type(pair).__name__)
            return (Pair(dout * 5, dout),)

    gradient = muster.value_and_grad(lambda x: Own()(Pair(x, x)).sum(), 0)
    _, grad = gradient(tensor())
    assert grad.numpy().tolist() == [6, 6, 6]
    assert set(seen) == {"Pair"}


def test_a_step_that_returns_gradients_names_them():
    net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1), return_grad=True)
    loss, gradients = step(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 2), np.float32)))
    assert loss.shape == ()
    assert {name: grad.shape for name, grad in gradients.items()} == {"weight": (2, 3), "bias": (2,)}


class Scored(nn.Cell):
    """A network that returns its scores in a structure."""

    def __init__(self, wrap):
        super().__init__()
        self.fc = nn.Dense(3, 2)
        self.wrap = wrap

    def construct(self, x):
        return self.wrap(self.fc(x))


class FirstOf(nn.Cell):
    """The loss of a structure and a label; that it is given nothing else is seen by `more`."""

    def __init__(self, first):
        super().__init__()
        self.first = first

    def construct(self, outputs, label, more=None):
        assert more is None
        return ((self.first(outputs) - label) ** 2).mean()


STRUCTURES = {
    "a tuple": (lambda y: (y, y), lambda out: out[0]),
    "a namedtuple": (lambda y: Pair(y, y), lambda out: out.first),
    "a dict": (lambda y: {"y": y, "z": y}, lambda out: out["y"]),
    "a dataclass": (lambda y: Batch(y, y), lambda out: out.data),
    "a tensor": (lambda y: y, lambda out: out),
}


@pytest.mark.parametrize("mode", ["graph", "eager"])
@pytest.mark.parametrize("amp_level", ["O0", "O2"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_a_loss_gets_what_the_network_returned_as_one_argument(name, amp_level, mode):
    muster.set_context(mode=mode)
    muster.set_seed(1)
    wrap, first = STRUCTURES[name]
    net = Scored(wrap)
    columns = {"x": np.ones((4, 3), np.float32), "y": np.ones((4, 2), np.float32)}
    rows = NumpySlicesDataset(columns, shuffle=False).batch(2)
    sgd = nn.SGD(net.trainable_params(), 0.1)
    model = train.Model(net, FirstOf(first), sgd, metrics={"loss"}, amp_level=amp_level)
    before = model.eval(rows)["loss"]
    model.train(2, rows)
    assert model.eval(rows)["loss"] < before / 2
