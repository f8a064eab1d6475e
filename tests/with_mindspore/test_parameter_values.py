"""Gradients of what a parameter or a tensor gives of itself, and what it was before it was written."""

import copy

import mindspore
import numpy
import pytest
from mindspore import Parameter, Tensor, nn, ops

MODES = pytest.mark.parametrize("mode", [mindspore.GRAPH_MODE, mindspore.PYNATIVE_MODE])


class Tied(nn.Cell):
    """Uses its table twice: as it is, and as what a member gives of it."""

    def __init__(self, member):
        super().__init__()
        self.member = member
        self.table = Parameter(Tensor([[1.0, 2.0], [3.0, 4.0]]), name="table")

    def construct(self, x):
        return ((x @ self.table) @ getattr(self.table, self.member)()).sum()


@MODES
@pytest.mark.parametrize("member", ["value", "copy", "clone"])
def test_gradients_flow_through_what_a_parameter_gives_of_itself(mode, member):
    mindspore.set_context(mode=mode)
    net = Tied(member)
    (gradient,) = mindspore.grad(net, None, net.trainable_params())(Tensor([[1.0, 1.0]]))
    assert gradient.asnumpy().tolist() == [[7.0, 11.0], [9.0, 13.0]]  # MindSpore 2.7.0's


@MODES
def test_gradients_flow_through_the_copy_of_a_tensor_that_changes_by_itself(mode):
    mindspore.set_context(mode=mode)

    def product(x):
        mine = (x * 1).copy()
        mine[0] = 5.0
        return (mine * x).sum()

    assert mindspore.grad(product)(Tensor([1.0, 2.0])).asnumpy().tolist() == [5.0, 4.0]


@MODES
@pytest.mark.parametrize(
    "copied",
    [Tensor.clone, Tensor.copy, Tensor, mindspore.tensor, copy.deepcopy],
    ids=lambda each: each.__name__,
)
def test_gradients_flow_through_the_copy_of_a_tensor(mode, copied):
    mindspore.set_context(mode=mode)

    def product(x):
        y = x * 2
        return (copied(y) * x).sum()

    assert mindspore.grad(product)(Tensor([1.0, 2.0])).asnumpy().tolist() == [4.0, 8.0]


class Scaled(nn.Cell):
    """Multiplies by what `read` gives of its table, which outlives the call."""

    def __init__(self, read):
        super().__init__()
        self.read = read
        self.table = Parameter(Tensor([1.0, 2.0]), name="table")

    def construct(self, x):
        return (self.read(self.table) * x).sum()


@MODES
@pytest.mark.parametrize(
    "read",
    [
        lambda table: Tensor(table.asnumpy()),
        lambda table: Tensor(table.tolist(), mindspore.float32),
        lambda table: Tensor(table),
        copy.deepcopy,
        lambda table: Tensor(float(table[0]) + numpy.arange(2.0), mindspore.float32),
    ],
    ids=["asnumpy", "tolist", "Tensor", "deepcopy", "float"],
)
def test_elements_that_python_reads_in_construct_are_those_of_now_and_constant(mode, read):
    mindspore.set_context(mode=mode)
    net = Scaled(read)
    x = Tensor([1.0, 1.0])
    assert float(net(x)) == 3.0
    net.table.set_data(Tensor([3.0, 4.0]))
    loss, (gradient,) = mindspore.value_and_grad(net, None, net.trainable_params())(x)
    assert (float(loss), gradient.asnumpy().tolist()) == (7.0, [0.0, 0.0])


class Counting(nn.Cell):
    """Uses a parameter, then writes to it."""

    def __init__(self, read, write):
        super().__init__()
        self.read = read
        self.write = write
        self.seen = Parameter(Tensor([1.0, 2.0]), name="seen", requires_grad=False)

    def construct(self, x):
        before = self.read(self.seen)
        y = before * x * x
        self.write(self.seen, x * 10)
        return y.sum()


@MODES
@pytest.mark.parametrize(
    "write", [ops.assign, ops.assign_add, Parameter.set_data], ids=["assign", "add", "set"]
)
@pytest.mark.parametrize(
    "read", [lambda p: p, lambda p: p.reshape(2), Parameter.copy], ids=["itself", "view", "copy"]
)
def test_gradients_use_what_a_parameter_was_when_it_was_read(mode, read, write):
    mindspore.set_context(mode=mode)
    loss, gradient = mindspore.value_and_grad(Counting(read, write))(Tensor([1.0, 1.0]))
    # MindSpore's in graph mode; its PYNATIVE_MODE mixes old and new elements.
    assert (float(loss), gradient.asnumpy().tolist()) == (3.0, [2.0, 4.0])


@MODES
@pytest.mark.parametrize("member", ["copy", "clone"])
def test_a_copy_keeps_what_a_parameter_was(mode, member):
    mindspore.set_context(mode=mode)

    class Moved(nn.Cell):
        def __init__(self):
            super().__init__()
            self.state = Parameter(Tensor([1.0, 2.0]), name="state")

        def construct(self, x):
            before = getattr(self.state, member)()
            ops.assign_add(self.state, x)
            return ((self.state - before) * x).sum()

    assert float(Moved()(Tensor([1.0, 1.0]))) == 2.0
    loss, _ = mindspore.value_and_grad(Moved())(Tensor([1.0, 1.0]))
    assert float(loss) == 2.0


@MODES
@pytest.mark.parametrize(
    ("written", "gradients"),
    [
        (lambda w, x: ops.assign(w, x * 2), [[5.0, 5.0], [0.0, 0.0]]),
        (lambda w, x: ops.assign_add(w, x), [[5.0, 5.0], [5.0, 5.0]]),
    ],
    ids=["assign", "assign_add"],
)
def test_the_result_of_a_write_counts_as_the_parameter(mode, written, gradients):
    mindspore.set_context(mode=mode)

    class Written(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor([1.0, 2.0]), name="w")

        def construct(self, x):
            return (written(self.w, x) * 5).sum()

    net = Written()
    of_x, (of_w,) = mindspore.grad(net, 0, net.trainable_params())(Tensor([1.0, 2.0]))
    assert [of_w.asnumpy().tolist(), of_x.asnumpy().tolist()] == gradients


@MODES
def test_gradients_flow_where_a_number_of_numpy_stands_before_a_tensor(mode):
    mindspore.set_context(mode=mode)

    def scaled(x):
        return (numpy.sqrt(4.0) * x - numpy.float64(1) / x).sum()

    gradient = mindspore.grad(scaled)(Tensor([1.0, 2.0]))
    assert (gradient.dtype, gradient.asnumpy().tolist()) == (mindspore.float32, [3.0, 2.25])


def test_a_hook_that_no_gradient_would_come_to_is_refused():
    net = nn.Dense(2, 1)
    with pytest.raises(NotImplementedError, match="change the gradients that value_and_grad gives"):
        net.weight.register_hook(lambda gradient: gradient * 2)


@MODES
@pytest.mark.parametrize(
    "add", [ops.assign_add, lambda p, x: ops.AssignAdd()(p, x)], ids=["function", "class"]
)
@pytest.mark.parametrize(
    ("shape", "value"),
    [([1], Tensor(2, mindspore.int32)), ([1], 2), ([], Tensor([2])), ([1, 1], Tensor([2]))],
)
def test_one_element_is_added_to_one_whatever_its_axes(mode, add, shape, value):
    mindspore.set_context(mode=mode)

    class Counted(nn.Cell):
        def __init__(self):
            super().__init__()
            self.steps = Parameter(ops.ones(shape, mindspore.int32), name="steps")

        def construct(self, x):
            add(self.steps, value)
            return x + self.steps

    net = Counted()
    assert net(Tensor([1.0])).asnumpy().ravel().tolist() == [4]
    assert net.steps.asnumpy().tolist() == numpy.full(shape, 3).tolist()
    with pytest.raises((ValueError, TypeError)):
        ops.assign_add(Parameter(Tensor([1.0, 2.0])), Tensor([1.0]))


@pytest.mark.parametrize("assign", [ops.assign, lambda p, x: ops.Assign()(p, x)], ids=["function", "class"])
def test_a_parameter_is_set_to_values_of_a_lesser_dtype_and_to_no_greater_one(assign):
    order = ["bool_", "int8", "int32", "int64", "float16", "float32", "float64"]
    for at, of_parameter in enumerate(order):
        for other, of_value in enumerate(order):
            parameter = Parameter(Tensor([0, 0], getattr(mindspore, of_parameter)))
            value = Tensor([1, 1], getattr(mindspore, of_value))
            if other <= at:
                assign(parameter, value)
                assert parameter.asnumpy().tolist() == [1, 1]
            else:
                with pytest.raises((TypeError, ValueError)):
                    assign(parameter, value)


def test_a_parameter_of_each_worker_alone_stays_so_in_its_copies():
    own = Parameter(Tensor([1.0]), name="own", layerwise_parallel=True)
    copies = (own, own.clone(), own.clone("ones"), copy.copy(own), copy.deepcopy(own))
    assert all(each.layerwise_parallel for each in copies)
    own.layerwise_parallel = False
    assert not own.layerwise_parallel and not Parameter(Tensor([1.0]), name="other").layerwise_parallel
