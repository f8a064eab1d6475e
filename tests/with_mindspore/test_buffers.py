"""Buffers of cells: their names, what is refused, and what is left of them."""

import pytest
from mindspore import Tensor, nn


class Net(nn.Cell):
    """A cell with two buffers, in which another stands."""

    def __init__(self, inner=None):
        super().__init__()
        self.register_buffer("kept", Tensor([1.0, 2.0]))
        self.register_buffer("passing", Tensor([3.0]), persistent=False)
        if inner is not None:
            self.inner = inner

    def construct(self, x):
        return x + self.kept


def names(cell):
    return [name for name, _ in cell.named_buffers()]


def test_buffers_are_listed_by_their_places_and_kept_where_they_are_persistent():
    net = Net(Net())
    assert names(net) == ["kept", "passing", "inner.kept", "inner.passing"]
    assert list(net.state_dict()) == ["kept", "inner.kept"]
    assert net.get_buffer("inner.kept").asnumpy().tolist() == [1, 2]
    assert net(Tensor([1.0, 1.0])).asnumpy().tolist() == [2, 3]


@pytest.mark.parametrize(
    "name, tensor, error",
    [
        (1, Tensor([1.0]), TypeError),
        ("a.b", Tensor([1.0]), KeyError),
        ("", Tensor([1.0]), KeyError),
        ("construct", Tensor([1.0]), KeyError),
        ("new", 1, TypeError),
    ],
)
def test_what_is_no_buffer_is_refused(name, tensor, error):
    with pytest.raises(error):
        Net().register_buffer(name, tensor)


@pytest.mark.parametrize("path", ["nothing", "nothing.kept", "construct"])
def test_a_path_without_a_buffer_is_an_attribute_error(path):
    with pytest.raises(AttributeError):
        Net().get_buffer(path)


def test_a_buffer_that_is_registered_again_deleted_or_none_is_what_it_became():
    net = Net()
    net.register_buffer("kept", Tensor([7.0]))
    assert net.get_buffer("kept").asnumpy().tolist() == [7]
    net.register_buffer("later", None)
    assert names(net) == ["kept", "passing"]
    del net.passing
    assert names(net) == ["kept"]
    net.kept = None
    assert names(net) == []
