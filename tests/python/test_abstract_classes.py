"""Classes of a script with abc.ABC among their bases."""

import abc
import copy

import numpy
import pytest

import muster
from muster import nn, train


class _Head(nn.Cell, abc.ABC):
    """A base of a script, whose classes say what a head is."""

    def __init__(self, size):
        super().__init__()
        self.fc = nn.Dense(2, size)

    @abc.abstractmethod
    def activated(self, x): ...

    def construct(self, x):
        return self.activated(self.fc(x))


class _Positive(_Head):
    def activated(self, x):
        return muster.ops.relu(x)


def test_a_cell_may_have_an_abstract_base():
    net = _Positive(3)
    assert net(muster.Tensor(numpy.ones((1, 2), numpy.float32))).shape == (1, 3)
    assert isinstance(net, _Head)
    assert not isinstance(nn.Dense(1, 1), _Head)
    assert [each.name for each in copy.deepcopy(net).get_parameters()] == ["fc.weight", "fc.bias"]
    assert (issubclass(_Positive, nn.Cell), issubclass(nn.Dense, _Head)) == (True, False)


@pytest.mark.parametrize("base", [nn.Cell, train.Callback, train.Metric, nn.LossBase])
def test_an_object_of_an_abstract_class_is_refused(base):
    class Kind(base, abc.ABC):
        @abc.abstractmethod
        def look(self): ...

        @abc.abstractmethod
        def ask(self): ...

    with pytest.raises(TypeError, match="abstract class Kind with abstract methods ask, look"):
        Kind()


class _Noting(type(nn.Cell)):
    """Notes with which arguments each object was made."""

    def __init__(cls, name, bases, attributes):
        made = cls.__init__

        def noting(self, *args):
            made(self, *args)
            self.given = args

        cls.__init__ = noting
        super().__init__(name, bases, attributes)


def test_a_class_of_cells_may_have_a_metaclass_of_the_scripts_own():
    widths = []

    class Net(nn.Cell, metaclass=_Noting):
        def __new__(cls, *args):
            made = super().__new__(cls)
            widths.append(args)
            return made

        def __init__(self, width):
            super().__init__()
            self.fc = nn.Dense(2, width)

        def construct(self, x):
            return self.fc(x)

    class Wide(Net):
        pass

    assert type(Wide) is _Noting
    net, wide = Net(3), Wide(4)
    assert (net.given, wide.given) == ((3,), (4,))
    assert wide(muster.Tensor(numpy.ones((1, 2), numpy.float32))).shape == (1, 4)
    assert [each.name for each in copy.deepcopy(wide).get_parameters()] == ["fc.weight", "fc.bias"]
    with pytest.raises(TypeError, match=r"Late is made without _Noting.*say metaclass=_Noting"):

        class Late(Net):
            pass

    class Later(Net, metaclass=_Noting):
        pass

    assert Later(5).given == (5,)
    assert widths == [(3,), (4,), (), (5,)]  # one of them is the copy


class _Grows(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Dense(2, width)


class _Counts(nn.Cell):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def count(self):
        self.calls += 1


def test_a_class_may_derive_from_two_cells():
    class Net(_Grows, _Counts):
        def __init__(self):
            _Grows.__init__(self, 3)
            _Counts.__init__(self)

        def construct(self, x):
            self.count()
            return self.fc(x)

    net = Net()
    assert net(muster.Tensor(numpy.ones((1, 2), numpy.float32))).shape == (1, 3)
    assert (net.calls, len(net.trainable_params())) == (1, 2)
    assert isinstance(net, _Grows) and isinstance(net, _Counts)

    class Stack(nn.SequentialCell, _Counts):
        def __init__(self):
            nn.SequentialCell.__init__(self, nn.Dense(2, 3))
            self.calls = 0

    stack = Stack()
    assert stack(muster.Tensor(numpy.ones((1, 2), numpy.float32))).shape == (1, 3)
    stack.count()
    assert (stack.calls, len(stack)) == (1, 1)


def test_a_class_of_a_cell_and_something_else_of_the_library_is_refused():
    with pytest.raises(TypeError, match="multiple"):

        class Net(_Counts, train.Callback):
            pass


def test_a_second_call_of_super_init_changes_nothing():
    class Net(_Grows):
        def __init__(self):
            super().__init__(3)
            nn.Cell.__init__(self)

    assert [each.name for each in Net().trainable_params()] == ["fc.weight", "fc.bias"]

    class Notes(train.Callback):
        def __init__(self):
            super().__init__()
            super().__init__()

    Notes()


def test_a_metaclass_that_would_act_later_is_refused():
    class Counting(type(nn.Cell)):
        def __call__(cls, *args):
            return super().__call__(*args)

    with pytest.raises(
        TypeError, match=r"Counting, the metaclass of .*Net, defines __call__, which would be ignored"
    ):

        class Net(nn.Cell, metaclass=Counting):
            pass
