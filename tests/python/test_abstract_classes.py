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
