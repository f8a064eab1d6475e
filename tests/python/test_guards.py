"""What traced code reads beside its arguments: a plan serves only while it is what it was."""

import collections
import functools
import gc
import random
import types
import weakref

import numpy
import pytest

import muster
from muster import nn

SCALE = 1.0
TABLE = [1.0]
NAMED = {"scale": 1.0}
FACTOR = muster.Tensor(numpy.ones(2, numpy.float32))
x = muster.Tensor(numpy.ones(2, numpy.float32))


def value(result):
    return float(result.asnumpy()[0])


def with_attribute(read, held):
    """A cell that multiplies by what `read` finds in it, where `held` is its attribute."""

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.held = held

        def construct(self, x):
            return x * read(self)

    return Net()


class Plain:
    scale = 1.0

    def __call__(self):
        return self.scale


class Slots:
    __slots__ = ("scale",)


class Config:
    def __init__(self):
        self.scale = 1.0
        self.inner = None

    @property
    def doubled(self):
        return self.scale * 2 - 1 if self.scale == 1 else self.scale

    def by_name(self):
        return getattr(self, "scale")  # noqa: B009


def slots():
    made = Slots()
    made.scale = 1.0
    return made


def nested():
    made = Config()
    made.inner = Config()
    made.inner.table = [{"scale": 1.0}]
    return made


CHANGES = {
    "an element of a list": ([1.0], lambda net: net.held[0], lambda held: held.__setitem__(0, 2.0)),
    "the end of a list": ([1.0], lambda net: net.held[-1], lambda held: held.append(2.0)),
    "a list in a tuple": (([1.0],), lambda net: net.held[0][0], lambda held: held[0].__setitem__(0, 2.0)),
    "a deque": (
        collections.deque([1.0]),
        lambda net: net.held[0],
        lambda held: held.__setitem__(0, 2.0),
    ),
    "a set": ({1.0}, lambda net: max(net.held), lambda held: held.add(2.0)),
    "a dict": ({"scale": 1.0}, lambda net: net.held["scale"], lambda held: held.update(scale=2.0)),
    "the order of a dict": (
        {"a": 1.0, "b": 2.0},
        lambda net: next(iter(net.held.values())),
        lambda held: held.update(a=held.pop("a")),
    ),
    "an object": (Config(), lambda net: net.held.scale, lambda held: setattr(held, "scale", 2.0)),
    "a namespace": (
        types.SimpleNamespace(scale=1.0),
        lambda net: net.held.scale,
        lambda held: setattr(held, "scale", 2.0),
    ),
    "what hides a value of the class": (
        Plain(),
        lambda net: net.held.scale,
        lambda held: setattr(held, "scale", 2.0),
    ),
    "a slot": (slots(), lambda net: net.held.scale, lambda held: setattr(held, "scale", 2.0)),
    "what a property reads": (
        Config(),
        lambda net: net.held.doubled,
        lambda held: setattr(held, "scale", 2.0),
    ),
    "what getattr names": (
        Config(),
        lambda net: net.held.by_name(),
        lambda held: setattr(held, "scale", 2.0),
    ),
    "what a call reads": (Plain(), lambda net: net.held(), lambda held: setattr(held, "scale", 2.0)),
    "an object in an object in a list": (
        nested(),
        lambda net: net.held.inner.table[0]["scale"],
        lambda held: held.inner.table[0].update(scale=2.0),
    ),
    "an array": (
        numpy.ones(2, numpy.float32),
        lambda net: muster.Tensor(net.held),
        lambda held: held.fill(2.0),
    ),
    "a part of an array": (
        numpy.ones((4, 4), numpy.float32)[::2, ::2],
        lambda net: float(net.held[0, 1]),
        lambda held: held.fill(2.0),
    ),
    "a tensor that is written to": (
        muster.Tensor(numpy.ones(2, numpy.float32)),
        lambda net: net.held,
        lambda held: held.__setitem__(0, 2.0),
    ),
    "a scalar of numpy": (
        [numpy.float32(1)],
        lambda net: float(net.held[0]),
        lambda held: held.__setitem__(0, numpy.float32(2)),
    ),
    "what a partial holds": (
        functools.partial(lambda table: table[0], [1.0]),
        lambda net: net.held(),
        lambda held: held.args[0].__setitem__(0, 2.0),
    ),
    "another tensor": (
        [muster.Tensor(numpy.ones(2, numpy.float32))],
        lambda net: net.held[0],
        lambda held: held.__setitem__(0, muster.Tensor(numpy.full(2, 2, numpy.float32))),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_cell_sees_a_change_of_what_its_attribute_holds(change):
    held, read, do = CHANGES[change]
    net = with_attribute(read, held)
    assert (value(net(x)), value(net(x))) == (1.0, 1.0)
    do(held)
    assert value(net(x)) == 2.0


@pytest.fixture
def _globals():
    before = SCALE, TABLE[:], dict(NAMED), FACTOR
    yield
    globals().update(SCALE=before[0], FACTOR=before[3])
    TABLE[:] = before[1]
    NAMED.update(before[2])


def read_scale(x):
    return x * SCALE


def set_scale():
    globals()["SCALE"] = 2.0


def set_factor():
    globals()["FACTOR"] = muster.Tensor(numpy.full(2, 2, numpy.float32))


@pytest.mark.usefixtures("_globals")
@pytest.mark.parametrize(
    ("function", "change", "reason"),
    [
        (lambda x: x * SCALE, set_scale, "'SCALE' in <lambda> is 2.0, was 1.0"),
        (lambda x: read_scale(x), set_scale, "'SCALE' in <lambda> is 2.0, was 1.0"),
        (lambda x: x * sum(s * SCALE for s in (1.0,)), set_scale, "'SCALE' in <lambda> is 2.0, was 1.0"),
        (lambda x: x * TABLE[0], lambda: TABLE.__setitem__(0, 2.0), "'TABLE[0]' in <lambda> is 2.0, was 1.0"),
        (lambda x: x * TABLE[-1], lambda: TABLE.append(2.0), "'TABLE' in <lambda> was changed"),
        (
            lambda x: x * NAMED["scale"],
            lambda: NAMED.update(scale=2.0),
            "'NAMED['scale']' in <lambda> is 2.0, was 1.0",
        ),
        (lambda x: x * FACTOR, set_factor, "'FACTOR' in <lambda> was changed"),
    ],
)
def test_a_function_sees_a_change_of_a_variable_of_its_module_and_says_why(function, change, reason):
    traced = muster.jit(function)
    assert (value(traced(x)), value(traced(x))) == (1.0, 1.0)
    change()
    assert (value(traced(x)), value(traced(x))) == (2.0, 2.0)
    reasons = [trace["reason"].replace(function.__qualname__, "<lambda>") for trace in traced.traces]
    assert reasons == ["first call", reason]


def test_a_loss_whose_weight_is_annealed_by_the_loop_around_it_uses_the_new_weight():
    beta = 0.0
    net = nn.Dense(2, 1)

    def forward(x):
        return (net(x) * beta).sum()

    step = muster.value_and_grad(forward, None, [net.weight])
    gradients = []
    for epoch in range(3):
        beta = float(epoch)
        gradients.append(float(step(muster.Tensor(numpy.ones((1, 2), numpy.float32)))[1][0].asnumpy()[0, 0]))
    assert gradients == [0.0, 1.0, 2.0]
    assert (
        step.traces[-1]["reason"].endswith("forward is 2.0, was 1.0")
        and "'beta'" in step.traces[-1]["reason"]
    )


def test_another_network_under_the_same_name_is_used():
    nets = [with_attribute(lambda net: 1.0, None), with_attribute(lambda net: 2.0, None)]
    net = nets[0]
    function = muster.jit(lambda x: net(x))
    assert value(function(x)) == 1.0
    net = nets[1]
    assert value(function(x)) == 2.0


def test_a_function_of_a_module_that_reads_further_names_is_seen_into():
    helpers = types.ModuleType("helpers_of_a_script")
    exec(
        """
class Scales:
    first = 1.0
    def shared(self, x): return x.mean() / x.sum() * x.max()

def scaled(x): return x.reshape(-1).flatten() * Scales.first + Scales().shared(x).abs() * 0
""",
        vars(helpers),
    )
    function = muster.jit(lambda x: helpers.scaled(x))
    assert value(function(x)) == 1.0
    helpers.Scales.first = 2.0
    assert value(function(x)) == 2.0


def test_a_value_of_a_class_that_is_set_reaches_its_cells():
    class Net(nn.Cell):
        scale = 1.0

        def construct(self, x):
            return x * self.scale

    outer = nn.SequentialCell(Net())
    assert value(outer(x)) == 1.0
    Net.scale = 2.0
    assert value(outer(x)) == 2.0


def test_an_object_in_a_list_is_seen_though_a_later_cell_is_the_one_that_names_its_attribute():
    held = [Config()]

    class Inner(nn.Cell):
        def construct(self, x):
            return x * scale_of(held[0])

    def scale_of(config):
        return config.scale

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.held = held
            self.inner = nn.SequentialCell(Inner())

        def construct(self, x):
            return self.inner(x) * len(self.held)

    net = Net()
    assert value(net(x)) == 1.0
    held[0].scale = 2.0
    assert value(net(x)) == 2.0


def test_a_cell_whose_method_is_called_and_not_itself_is_looked_into():
    class Inner(nn.Cell):
        def __init__(self):
            super().__init__()
            self.table = [1.0]

        def scale(self):
            return self.table[0]

    inner = Inner()
    net = with_attribute(lambda net: net.held.scale(), inner)
    assert value(net(x)) == 1.0
    inner.table[0] = 2.0
    assert value(net(x)) == 2.0


def test_a_bound_method_sees_its_object():
    class Trainer:
        def __init__(self):
            self.beta = 1.0

        def forward(self, x):
            return x * self.beta

    trainer = Trainer()
    function = muster.jit(trainer.forward)
    assert value(function(x)) == 1.0
    trainer.beta = 2.0
    assert value(function(x)) == 2.0


def test_a_model_sees_what_a_callback_changes():
    table = [0.0]
    net = with_attribute(lambda net: net.held[0], table)
    net.weight = muster.Parameter(muster.Tensor(numpy.ones(2, numpy.float32)), name="weight")
    type(net).construct = lambda self, x: (self.weight * x * self.held[0]).sum()

    class Anneal(muster.train.Callback):
        def on_train_step_end(self, run_context):
            table[0] += 1.0

    rows = muster.dataset.NumpySlicesDataset({"x": numpy.ones((3, 2), numpy.float32)}, shuffle=False).batch(1)
    model = muster.train.Model(net, optimizer=nn.SGD(net.trainable_params(), 1.0))
    model.train(1, rows, callbacks=[Anneal()])
    assert net.weight.asnumpy().tolist() == [1.0 - 0 - 1 - 2] * 2


class Deep(nn.Cell):
    def __init__(self):
        super().__init__()
        self.sizes = [1, 2]
        self.config = Config()
        self.cells = [nn.Dense(2, 2)]
        self.seen = {}

    def construct(self, x):
        self.seen[x.shape] = True
        return self.cells[0](x) * self.sizes[0] * self.config.scale * TABLE[0]


def test_what_stays_the_same_is_traced_once():
    net = Deep()
    function = muster.jit(lambda x: net(x) * SCALE)
    for step in range(4):
        net.config.inner = step  # not read
        net.config.scale = float("1")  # another object, equal
        net.sizes = [1, 2]
        function(muster.Tensor(numpy.ones((1, 2), numpy.float32)))
    reasons = [trace["reason"] for trace in function.traces]
    assert reasons[0] == "first call" and all("attribute 'sizes' was set" in reason for reason in reasons[1:])


def test_a_list_that_holds_itself_and_a_great_one_are_looked_at_by_their_size():
    held = [1.0]
    held.append(held)
    great = [0.0] * 10_000
    net = with_attribute(lambda net: net.held[0] + len(great) - 10_000, held)
    assert value(net(x)) == 1.0
    great.append(0.0)
    assert value(net(x)) == 2.0


def test_a_long_chain_of_objects_is_looked_at_as_far_as_its_first_ones():
    first = last = Config()
    for _ in range(20_000):
        last.inner = Config()
        last = last.inner
    net = with_attribute(lambda net: net.held.scale if net.held.inner.inner else 0.0, first)
    assert value(net(x)) == 1.0
    first.scale = 2.0
    assert value(net(x)) == 2.0


def test_an_attribute_of_a_function_is_read_anew():
    def forward(x):
        return x * forward.scale

    forward.scale = 1.0
    function = muster.jit(forward)
    assert value(function(x)) == 1.0
    forward.scale = 2.0
    assert value(function(x)) == 2.0


def test_nothing_is_kept_alive_by_what_was_looked_at():
    held = Config()
    net = with_attribute(lambda net: net.held.scale, held)
    held.owner = net
    net(x)
    gone = weakref.ref(held)
    del net, held
    gc.collect()
    assert gone() is None


@pytest.fixture
def told(capfd):
    return lambda: [line for line in capfd.readouterr().err.splitlines() if "while it is traced" in line]


def test_what_code_counts_while_it_is_traced_is_told_once(told):
    class CountsCalls(nn.Cell):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.notes = []

        def construct(self, x):
            self.calls += 1
            return x * self.calls

    net = CountsCalls()
    for _ in range(3):
        net(x)
    net(muster.Tensor(numpy.ones(3, numpy.float32)))
    lines = told()
    assert (
        len(lines) == 1
        and "CountsCalls changes 'calls'" in lines[0]
        and "set_context(mode='eager')" in lines[0]
    )


@pytest.mark.parametrize("module", [random, numpy.random])
def test_random_numbers_that_are_drawn_while_code_is_traced_are_told(told, module):
    draw = module.random
    function = muster.jit(lambda x: x * (module.random() if draw else 0))
    function(x)
    function(x)
    lines = told()
    assert len(lines) == 1 and f"from '{module.__name__}'" in lines[0]


def test_a_counter_behind_a_memo_is_told_and_what_is_filled_in_is_not(told):
    held = Config()
    held.table, held.calls = {}, 0

    class Net(nn.Cell):
        def construct(self, x):
            held.table[len(held.table)] = 1.0
            held.inner = held.inner or 1.0
            held.calls += 1
            return x * held.inner * held.calls

    Net()(x)
    (line,) = told()
    assert "Net changes 'held.calls' while it is traced" in line


def test_code_that_draws_nothing_and_keeps_a_memo_is_told_nothing(told):
    memo = {}
    function = muster.jit(lambda x: x * memo.setdefault(x.shape, 1.0 if random is None else 2.0))
    function(x)
    function(x)
    assert told() == [] and len(function.traces) == 1
