"""GeneratorDataset over iterators of Python's own, which nothing begins anew."""

import csv
import itertools

import mindspore.dataset as ds
import numpy as np
import pytest


def _rows(data):
    return [[np.asarray(each).tolist() for each in row] for row in data.create_tuple_iterator(None, 1, True)]


WORDS = ["one", "two", "three"]
SOURCES = {
    "iter": lambda: iter(WORDS),
    "map": lambda: map(str.lower, ["One", "TWO", "three"]),
    "filter": lambda: filter(None, WORDS),
    "reversed": lambda: reversed(WORDS[::-1]),
    "chain": lambda: itertools.chain(WORDS[:1], WORDS[1:]),
    "values": lambda: iter(dict.fromkeys(WORDS).keys()),
    "generator": lambda: (each for each in WORDS),
}


@pytest.mark.parametrize("source", SOURCES)
def test_text_of_an_iterator_has_its_first_row_in_each_pass(source):
    data = ds.GeneratorDataset(SOURCES[source](), ["word"])
    assert data.get_dataset_size() == 3
    assert data.output_shapes() == [[]]
    for _ in range(2):
        assert _rows(data) == [["one"], ["two"], ["three"]]
    assert _rows(data.batch(2)) == [[["one", "two"]], [["three"]]]


def test_numbers_that_become_text_are_all_there():
    data = ds.GeneratorDataset(iter([1, 2, 3]), ["x"]).map(lambda x: f"n{int(x)}", "x")
    assert _rows(data) == [["n1"], ["n2"], ["n3"]]
    assert _rows(ds.GeneratorDataset(enumerate(WORDS), ["x", "y"])) == [[0, "one"], [1, "two"], [2, "three"]]


def test_lines_and_fields_of_an_open_file_are_all_there(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("one,1\ntwo,2\n")
    with open(path, encoding="utf-8") as file:
        assert _rows(ds.GeneratorDataset(file, ["line"])) == [["one,1\n"], ["two,2\n"]]
    with open(path, encoding="utf-8") as file:
        rows = map(tuple, csv.reader(file))
        assert _rows(ds.GeneratorDataset(rows, ["word", "number"])) == [["one", "1"], ["two", "2"]]


def test_an_endless_iterator_is_read_as_it_comes():
    rows = ds.GeneratorDataset(itertools.count(), ["x"]).take(3)
    assert _rows(rows) == [[0], [1], [2]]
