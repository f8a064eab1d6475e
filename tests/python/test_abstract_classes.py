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


def test_a_metaclass_that_would_act_later_is_refused():
    class Counting(type(nn.Cell)):
        def __call__(cls, *args):
            return super().__call__(*args)

    with pytest.raises(
        TypeError, match=r"Counting, the metaclass of .*Net, defines __call__, which would be ignored"
    ):

        class Net(nn.Cell, metaclass=Counting):
            pass
