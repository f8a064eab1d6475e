"""Cells within cells: parts of lists, children by name, dicts of cells."""

import sys
from collections import OrderedDict

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Tensor, nn


def names_of(cell):
    return [parameter.name for parameter in cell.get_parameters()]


def test_a_part_of_a_sequential_cell_leaves_the_names_of_parameters_as_they_are():
    whole = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU(), nn.Dense(3, 4))
    tail, turned = whole[1:], whole[::-1]
    assert list(tail.name_cells()) == ["1", "2"]
    assert list(turned.name_cells()) == ["2", "1", "0"]
    assert names_of(tail) == ["2.weight", "2.bias"]
    assert names_of(turned) == ["2.weight", "2.bias", "0.weight", "0.bias"]
    assert names_of(whole) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert tail(Tensor([[1.0, 2.0, 3.0]])).shape == (1, 4)
    assert len(whole[5:]) == 0


def test_a_part_of_a_sequential_cell_keeps_the_keys_of_its_cells():
    whole = nn.SequentialCell(OrderedDict(first=nn.Dense(2, 3), act=nn.Tanh(), last=nn.Dense(3, 1)))
    assert list(whole[::2].name_cells()) == ["first", "last"]
    assert names_of(whole[2:]) == ["last.weight", "last.bias"]


def test_the_same_cell_at_two_places_can_be_in_a_part():
    twice = nn.Dense(2, 2)
    whole = nn.SequentialCell(twice, nn.ReLU(), twice)
    assert len(whole[1:]) == 2
    assert whole[1:](Tensor([[1.0, -1.0]])).shape == (1, 2)


def test_a_text_is_no_place_in_a_list_of_cells():
    for cells in (nn.CellList([nn.ReLU()]), nn.SequentialCell(nn.ReLU())):
        with pytest.raises(TypeError, match="number or a slice"):
            cells["0"]


def test_a_child_that_is_none_leaves_a_place():
    cell = nn.Cell()
    cell.insert_child_to_cell("block", None)
    assert cell.block is None
    assert not cell.name_cells()
    cell.insert_child_to_cell("block", nn.Dense(1, 1))
    cell.insert_child_to_cell("block", nn.ReLU())
    assert names_of(cell) == []
    assert list(cell.name_cells()) == ["block"]


def test_a_child_needs_a_name_of_its_own():
    cell = nn.Cell()
    cell.width = 3
    cell.insert_param_to_cell("scale", ms.Parameter(Tensor([1.0]), name="scale"))
    for name in ("", "a.b", "width", "scale"):
        with pytest.raises(KeyError, match="insert_child_to_cell"):
            cell.insert_child_to_cell(name, nn.ReLU())
    with pytest.raises(TypeError):
        cell.insert_child_to_cell(3, nn.ReLU())
    with pytest.raises(TypeError):
        cell.insert_child_to_cell("act", Tensor([1.0]))


def test_a_dict_of_cells_refuses_names_as_a_dict_does():
    cells = nn.CellDict({"act": nn.ReLU()})
    for name in ("", "a.b", "keys"):
        with pytest.raises(KeyError, match="cannot name a cell"):
            cells[name] = nn.ReLU()
    with pytest.raises(TypeError, match="cannot name a cell"):
        cells[3] = nn.ReLU()


class Stem(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(OrderedDict(first=nn.Dense(2, 3), act=nn.Tanh()))
        self.stem.append(nn.Dense(3, 1))

    def construct(self, x):
        return self.stem(x)


def test_a_cell_that_joins_a_sequential_cell_of_a_dict_is_named_below_it():
    assert names_of(Stem()) == ["stem.first.weight", "stem.first.bias", "stem.2.weight", "stem.2.bias"]


@pytest.mark.parametrize(
    "places, keys",
    [(0, ["act", "last"]), (-3, ["act", "last"]), (1, ["first", "last"]), (slice(2), ["last"])],
)
def test_cells_that_a_dict_named_keep_their_names_behind_one_that_is_deleted(places, keys):
    cells = nn.SequentialCell(OrderedDict(first=nn.Dense(2, 3), act=nn.Tanh(), last=nn.Dense(3, 1)))
    kept = [name for name in names_of(cells) if name.split(".")[0] in keys]
    del cells[places]
    assert list(cells.name_cells()) == keys
    assert names_of(cells) == kept


def test_what_joined_a_dict_of_cells_moves_up_behind_one_that_is_deleted():
    cells = nn.SequentialCell(OrderedDict(first=nn.Dense(2, 3), act=nn.Tanh()))
    cells.append(nn.Dense(3, 1))
    del cells[0]
    assert list(cells.name_cells()) == ["act", "1"]
    assert names_of(cells) == ["1.weight", "1.bias"]
