"""Cells: trees of C++ objects that Python subclasses."""

import gc
import weakref

import numpy
import pytest

import muster
from muster import nn


class Net(nn.Cell):
    def __init__(self, width=4):
        super().__init__()
        self.fc = nn.Dense(3, width, weight_init="ones", bias_init="zeros")
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(self.fc(x))


def ones(*shape):
    return muster.Tensor(numpy.ones(shape, numpy.float32))


def names_of(cell):
    return [parameter.name for parameter in cell.get_parameters()]


@pytest.mark.parametrize("kind", [nn.SequentialCell, nn.CellList])
def test_a_part_of_a_list_of_cells_changes_no_name(kind):
    class Backbone(nn.Cell):
        def __init__(self):
            super().__init__()
            self.features = kind([nn.Dense(2, 3), nn.ReLU(), nn.Dense(3, 4)])

    net = Backbone()
    names = [f"features.{place}.{kind}" for place in (0, 2) for kind in ("weight", "bias")]
    part = net.features[1:]
    assert names_of(net) == names
    assert names_of(part) == names[2:]
    part.append(nn.Dense(4, 5))
    assert len(part) == 3
    assert part[1] is net.features[2]
    assert names_of(net) == names


def test_a_part_that_another_cell_keeps_is_named_there():
    net = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU(), nn.Dense(3, 4))
    other = nn.Cell()
    other.tail = net[1:]
    assert names_of(other) == ["tail.2.weight", "tail.2.bias"]
    assert other.tail(ones(1, 3)).shape == (1, 4)
    assert len(net[::-1]) == 3
    assert len(net[5:]) == 0


def test_attributes_that_are_cells_and_parameters_register_themselves():
    class Scaled(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale = muster.Parameter(2.0)
            self.net = Net()

        def construct(self, x):
            return self.net(x) * self.scale

    cell = Scaled()
    assert [name for name, _ in cell.parameters_and_names()] == ["scale", "net.fc.weight", "net.fc.bias"]
    assert [parameter.name for parameter in cell.trainable_params()] == [
        "scale",
        "net.fc.weight",
        "net.fc.bias",
    ]
    assert list(cell.name_cells()) == ["net"]
    assert cell(ones(2, 3)).tolist() == [[6.0] * 4] * 2


def test_children_and_parameters_are_one_object_wherever_they_are_seen():
    net = Net()
    assert net.fc is net.cells()[0]
    assert net.fc.weight is net.trainable_params()[0]
    assert net.fc.weight is net.parameters_dict()["fc.weight"]


def test_a_child_that_is_replaced_or_deleted_is_no_child_any_more():
    net = Net()
    net.fc = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")
    assert net(ones(1, 3)).shape == (1, 2)
    net.fc = 1
    assert net.trainable_params() == []
    del net.relu
    assert net.cells() == []
    with pytest.raises(AttributeError, match=r"'Net'.*attribute.*'relu'"):
        net.relu  # noqa: B018


def test_an_attribute_may_be_none_and_takes_the_place_of_a_child():
    class Optional(nn.Cell):
        def __init__(self):
            super().__init__()
            self.activation = None
            self.fc = nn.Dense(3, 2)

        def construct(self, x):
            return self.fc(x) if self.activation is None else self.activation(self.fc(x))

    cell = Optional()
    assert cell(ones(1, 3)).shape == (1, 2)
    cell.activation = nn.ReLU()
    assert list(cell.name_cells()) == ["fc", "activation"]
    cell.activation = None
    assert list(cell.name_cells()) == ["fc"]


def test_attributes_set_before_the_base_class_is_made_are_refused():
    class Hasty(nn.Cell):
        def __init__(self):
            self.fc = nn.Dense(1, 1)
            super().__init__()

    with pytest.raises(AttributeError, match=r"Hasty\.__init__.*call.*super\(\)\.__init__\(\)"):
        Hasty()


def test_a_built_in_cell_computes_with_the_parameter_that_it_is_given():
    dense = nn.Dense(3, 2)
    assert dense(ones(1, 3)).shape == (1, 2)
    dense.weight = muster.Parameter(numpy.zeros((2, 3), numpy.float32))
    with pytest.raises(AttributeError, match="needs it"):
        dense.weight = None
    with pytest.raises(AttributeError, match="needs it"):
        del dense.weight
    assert (dense(ones(1, 3)) - dense.bias).tolist() == [[0.0, 0.0]]
    dense.weight.set_data(numpy.full((2, 3), 2, numpy.float32))
    dense.bias.set_data(numpy.zeros(2))
    assert dense(ones(1, 3)).tolist() == [[6.0, 6.0]]


def test_values_of_another_shape_are_refused_with_both_shapes():
    with pytest.raises(ValueError, match=r"\(2, 2\).*\(2, 3\)|\(2, 3\).*\(2, 2\)"):
        nn.Dense(3, 2).weight.set_data(numpy.zeros((2, 2), numpy.float32))


def test_construct_runs_once_for_each_signature():
    traced = []

    class Noted(nn.Cell):
        def construct(self, x, times=1):
            traced.append((x.shape, times))
            return x * times

    cell = Noted()
    for _ in range(3):
        assert cell(ones(2)).tolist() == [1.0, 1.0]
        assert cell(ones(2), times=3).tolist() == [3.0, 3.0]
        assert cell(ones(1), 2).tolist() == [2.0]
    assert traced == [((2,), 1), ((2,), 3), ((1,), 2)]


def test_an_attribute_write_makes_the_next_call_trace_anew():
    class Scaled(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale = 2

        def construct(self, x):
            return x * self.scale

    cell = Scaled()
    assert cell(ones(1)).tolist() == [2.0]
    cell.scale = 5
    assert cell(ones(1)).tolist() == [5.0]


def test_an_attribute_write_deep_in_the_tree_reaches_the_plans_of_the_root():
    class Inner(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale = 2

        def construct(self, x):
            return x * self.scale

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            return self.inner(x)

    outer = Outer()
    assert outer(ones(1)).tolist() == [2.0]
    outer.inner.scale = 3
    assert outer(ones(1)).tolist() == [3.0]


def test_training_and_evaluating_are_different_traces():
    class Mode(nn.Cell):
        def construct(self, x):
            return x * 2 if self.training else x

    cell = Mode()
    assert cell.set_train()(ones(1)).tolist() == [2.0]
    assert cell.set_train(False)(ones(1)).tolist() == [1.0]


def test_a_captured_tensor_is_read_at_every_call():
    class Adds(nn.Cell):
        def __init__(self):
            super().__init__()
            self.offset = muster.Parameter(numpy.zeros(1, numpy.float32), requires_grad=False)

        def construct(self, x):
            return x + self.offset

    cell = Adds()
    assert cell(ones(1)).tolist() == [1.0]
    cell.offset.set_data([4.0])
    assert cell(ones(1)).tolist() == [5.0]
    assert cell.trainable_params() == []


def test_a_python_cell_in_a_built_in_container_is_called_there():
    net = nn.SequentialCell(nn.Flatten(), Net(), nn.SequentialCell([nn.Tanh()]))
    assert len(net) == 3
    assert net(ones(2, 1, 3)).shape == (2, 4)
    assert [name for name, _ in net.parameters_and_names()] == ["1.fc.weight", "1.fc.bias"]


def test_a_subclass_of_a_built_in_cell_may_extend_its_construct():
    class Doubled(nn.Dense):
        def construct(self, x):
            return super().construct(x) * 2

    cell = Doubled(3, 1, weight_init="ones", bias_init="zeros")
    assert cell(ones(1, 3)).tolist() == [[6.0]]
    assert nn.SequentialCell(cell)(ones(1, 3)).tolist() == [[6.0]]


def test_results_keep_their_form():
    class Forms(nn.Cell):
        def construct(self, x, options):
            return {"sum": x.sum(), "parts": [x, (x * 2, None)], "name": options["name"]}

    result = Forms()(ones(2), {"name": "a", "list": [1, 2]})
    assert result["name"] == "a" and result["sum"].item() == 2.0
    assert result["parts"][1][0].tolist() == [2.0, 2.0] and result["parts"][1][1] is None


def test_an_exception_in_construct_comes_out_as_itself():
    class Broken(nn.Cell):
        def construct(self, x):
            raise KeyError("mine")

    for cell in (Broken(), nn.SequentialCell(Broken())):
        with pytest.raises(KeyError, match="mine"):
            cell(ones(1))


def test_branching_on_a_traced_tensor_names_the_line_and_the_way_out():
    class Branches(nn.Cell):
        def construct(self, x):
            if x.sum():
                return x
            return x * 2

    with pytest.raises(Exception, match=r"test_cells.py:\d+: .*trac") as raised:
        Branches()(ones(1))
    assert type(raised.value).__name__ in ("ValueError", "RuntimeError")


@pytest.mark.parametrize("read", [float, int, lambda x: x.asnumpy(), lambda x: x.tolist(), numpy.asarray])
def test_reading_a_traced_tensor_is_an_error(read):
    class Reads(nn.Cell):
        def construct(self, x):
            read(x)
            return x

    with pytest.raises(Exception, match="trac"):
        Reads()(ones(1))


def test_a_traced_tensor_prints_its_type():
    shown = []

    class Prints(nn.Cell):
        def construct(self, x):
            shown.append(str(x))
            return x

    Prints()(ones(2, 3))
    assert shown == ["Tensor(being traced, shape=(2, 3), dtype=float32)"]


def test_arguments_that_are_no_part_of_a_signature_are_refused():
    class Takes(nn.Cell):
        def construct(self, x, thing):
            return x

    with pytest.raises(TypeError, match="list_iterator"):
        Takes()(ones(1), iter([1]))


def test_shapes_that_do_not_fit_are_an_error_that_names_the_op():
    with pytest.raises(ValueError, match=r"\(2, 5\)"):
        Net()(ones(2, 5))


def test_a_cell_without_construct_says_so():
    class Empty(nn.Cell):
        pass

    with pytest.raises(ValueError, match="defines no construct"):
        Empty()(ones(1))


def test_cells_go_when_nobody_holds_them():
    net = Net()
    net(ones(1, 3))
    child = weakref.ref(net.fc)
    net = weakref.ref(net)
    gc.collect()
    assert net() is None
    assert child() is None


def test_cells_print_their_tree():
    assert repr(Net()) == "Net(\n  (fc): Dense(3, 4)\n  (relu): ReLU()\n)"
    assert repr(nn.Dense(1, 1).weight) == (
        "Parameter(name='weight', shape=(1, 1), dtype=float32, requires_grad=True)"
    )


def test_initial_values_depend_on_seed_and_name_only():
    def weights(seed):
        muster.set_seed(seed)
        net = nn.SequentialCell(nn.Dense(8, 8, "normal"), nn.Dense(8, 8, "normal"))
        return [parameter.asnumpy().copy() for parameter in net.trainable_params()]

    first, again, other = weights(1), weights(1), weights(2)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert (first[0] != other[0]).any()
    assert (first[0] != first[2]).any()


@pytest.mark.parametrize(
    "init", ["xavier_uniform", muster.initializers.constant(0.5), 0.25, numpy.ones((2, 3))]
)
def test_every_form_of_initializer_fills_the_weight(init):
    weight = nn.Dense(3, 2, weight_init=init).weight.asnumpy()
    assert weight.shape == (2, 3) and (weight != 0).all()


def test_an_unknown_initializer_lists_the_choices():
    with pytest.raises(NotImplementedError, match="xavier_uniform"):
        nn.Dense(3, 2, weight_init="xavir")


def test_a_cell_cannot_contain_itself():
    net = Net()
    with pytest.raises(ValueError, match="which it contains"):
        net.again = net
    outer = nn.SequentialCell(nn.SequentialCell(net))
    with pytest.raises(ValueError, match="which it contains"):
        net.outer = outer
    with pytest.raises(ValueError, match="which it contains"):
        outer[0].append(outer)


def test_initializer_says_what_a_parameter_begins_with():
    weight = muster.Parameter(nn.initializer("ones", [2, 2]), name="w")
    assert weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert nn.initializer("ones", [2], muster.int32).dtype is muster.int32


@pytest.mark.parametrize(
    ("name", "here"),
    [("eval", "set_train(False)"), ("parameters", "trainable_params()"), ("cuda", "compute on CPUs")],
)
def test_what_pytorch_calls_otherwise_is_answered_with_what_says_the_same(name, here):
    with pytest.raises(AttributeError) as raised:
        getattr(Net(), name)
    assert str(raised.value).startswith(f"'Net' has no attribute '{name}': ")
    assert here in str(raised.value)
    assert not hasattr(Net(), name)


def test_an_optimizer_that_is_asked_for_a_step_says_how_it_is_called():
    optimizer = nn.SGD(Net().trainable_params(), 0.1)
    for name in ("step", "zero_grad"):
        with pytest.raises(AttributeError, match=r"muster.value_and_grad\(...\)"):
            getattr(optimizer, name)
