"""What walks over a cell give: MindSpore's iterators, which are lists here, too."""

import inspect
import sys
from collections.abc import Iterator

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Tensor, nn


def _network():
    return nn.SequentialCell(nn.Dense(2, 2, "ones", "ones"), nn.ReLU(), nn.Dense(2, 1, has_bias=False))


WALKS = {
    "get_parameters": ["0.weight", "0.bias", "2.weight"],
    "parameters_and_names": ["0.weight", "0.bias", "2.weight"],
    "cells_and_names": ["", "0", "1", "2"],
}


def _name(found):
    return found[0] if isinstance(found, tuple) else found.name


@pytest.mark.parametrize("walk", WALKS)
def test_next_takes_one_and_a_loop_takes_the_rest(walk):
    found = getattr(_network(), walk)()
    assert isinstance(found, Iterator)
    assert _name(next(found)) == WALKS[walk][0]
    assert [_name(each) for each in found] == WALKS[walk][1:]
    with pytest.raises(StopIteration):
        next(found)


@pytest.mark.parametrize("walk", WALKS)
def test_what_nobody_took_one_from_is_a_list(walk):
    found = getattr(_network(), walk)()
    for _ in range(2):
        assert [_name(each) for each in found] == WALKS[walk]
    assert len(found) == len(WALKS[walk]) and _name(found[1]) == WALKS[walk][1]


def test_a_walk_over_cells_leaves_out_those_of_a_set():
    network = _network()
    seen = {network[0]}
    assert [name for name, _ in network.cells_and_names(seen, "net")] == ["net", "net.1", "net.2"]
    assert len(seen) == 4
    assert [name for name, _ in network.cells_and_names(None, "net")][:2] == ["net", "net.0"]
    assert list(inspect.signature(network.cells_and_names).parameters) == ["cells", "name_prefix"]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_construct_may_walk_over_the_parameters(mode):
    class Sum(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(2, 2, "ones", "ones")

        def construct(self, x):
            parameters = self.dense.get_parameters()
            total = next(parameters).sum()
            for parameter in parameters:
                total = total + parameter.sum() * 10
            return x + total

    ms.set_context(mode=mode)
    assert Sum()(Tensor([1.0])).asnumpy().tolist() == [25]
