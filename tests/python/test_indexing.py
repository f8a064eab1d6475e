"""tensor[...] means what numpy means, outside of traced code and in a graph, and gradients come back."""

import random

import numpy
import pytest

import muster


def seed_of_this_run():
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    return seed


def numbers(shape):
    return numpy.arange(numpy.prod(shape, dtype=int), dtype=numpy.float32).reshape(shape)


def random_slice(make, size):
    def end():
        return make.choice([None, make.randint(-size - 2, size + 2)])

    return slice(end(), end(), make.choice([None, 1, 2, -1, -2, 3]))


def random_integers(make, size, shape):
    return numpy.array([make.randrange(-size, size) for _ in range(int(numpy.prod(shape)))]).reshape(shape)


def random_index(make, shape):
    """Entries for some of the axes, in every mixture that numpy knows but masks."""
    entries, together = [], make.choice([(), (2,), (2, 1), (3,)])
    for size in shape:
        kind = make.choice(["number", "slice", "slice", "tensor", "new", "stop", "rest"])
        if kind == "stop":
            break
        if kind == "rest":
            entries.append(Ellipsis)
            break
        if kind == "new":
            entries.append(None)
        if kind == "number":
            entries.append(make.randrange(-size, size))
        elif kind == "tensor":
            entries.append(random_integers(make, size, make.choice([together, (1,)])))
        else:
            entries.append(random_slice(make, size))
    return tuple(entries)


def as_tensors(index):
    return tuple(muster.Tensor(entry) if isinstance(entry, numpy.ndarray) else entry for entry in index)


def test_every_index_gives_what_numpy_gives_with_gradient():
    make = random.Random(seed_of_this_run())
    for _ in range(150):
        array = numbers([make.randint(1, 4) for _ in range(make.randint(1, 4))])
        index = random_index(make, array.shape)
        expected = array[index]
        found = muster.Tensor(array)[as_tensors(index)]
        assert found.shape == expected.shape, (array.shape, index)
        assert (found.asnumpy() == expected).all(), (array.shape, index)


def test_every_index_works_in_a_graph_and_gradients_go_where_elements_came_from():
    make = random.Random(seed_of_this_run())
    for _ in range(40):
        array = numbers([make.randint(1, 4) for _ in range(make.randint(1, 3))])
        index = random_index(make, array.shape)
        expected = array[index]
        weight = numbers(expected.shape) + 1

        def loss(x, index=index, weight=weight):
            part = x[as_tensors(index)]
            return (part * muster.Tensor(weight)).sum(), part

        (_, part), gradient = muster.value_and_grad(loss, 0, has_aux=True)(muster.Tensor(array))
        assert (part.asnumpy() == expected).all(), (array.shape, index)
        spread = numpy.zeros_like(array)
        numpy.add.at(spread, index, weight)
        assert (gradient.asnumpy() == spread).all(), (array.shape, index)


def test_a_tensor_of_integers_may_be_an_argument_of_the_graph():
    rows = muster.jit(lambda x, ids: x[ids])
    x = numbers((4, 2))
    for ids in ([0, 3], [-1, 1]):
        assert rows(muster.Tensor(x), muster.Tensor(ids)).tolist() == x[ids].tolist()


@pytest.mark.parametrize("kind", [numpy.array, muster.Tensor, list])
def test_a_mask_picks_the_elements_where_it_is_true(kind):
    x = numbers((3, 2))
    mask = kind([True, False, True])
    assert muster.Tensor(x)[mask].tolist() == x[[True, False, True]].tolist()
    assert muster.Tensor(x)[muster.Tensor(x > 2)].tolist() == x[x > 2].tolist()
    assert muster.Tensor(x)[mask, 1].tolist() == [1, 5]


def test_a_mask_of_the_graph_is_an_error_that_shows_the_way_out():
    def positive(x):
        return x[muster.ops.equal(x, x)]

    with pytest.raises(IndexError, match=r"use ops\.select"):
        muster.jit(positive)(muster.Tensor([1.0, 2.0]))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (3, r"index 3.*range.*axis 0.*\(3, 2\).*has 3"),
        ((0, -3), r"-3.*range.*axis 1.*\(3, 2\).*has 2"),
        ([0, 4], r"index 4 .* is out of range for axis 0, which has 3"),
        ((0, 0, 0), r"3 indices.*tensor.*2 axes"),
        ((slice(None), slice(None, None, 0)), r"slice.*axis 1.*is 0"),
        ("x", "not by str"),
        (1.5, "not by float"),
        (False, "False picks nothing"),
        (numpy.array([0.5]), r"integers.*float64"),
        (numpy.array([True]), r"mask.*\(1,\).*axis 0.*\(3, 2\).*has 3"),
    ],
)
def test_errors_name_the_axis_the_index_and_the_size(index, message):
    with pytest.raises(IndexError, match=message):
        muster.Tensor(numbers((3, 2)))[index]


def test_numpys_numbers_index_and_an_empty_list_picks_nothing():
    x = muster.Tensor(numbers((3, 2)))
    assert x[numpy.int64(1)].tolist() == [2, 3]
    assert x[numpy.array(1)].tolist() == [2, 3]
    assert x[muster.Tensor(1)].tolist() == [2, 3]
    assert x[[]].shape == (0, 2)


def test_whole_numbers_and_slices_share_the_elements():
    array = numbers((4, 3))
    tensor = muster.Tensor.from_numpy(array)
    rows = tensor[1:3]
    array[1, 0] = 50
    assert rows[0, 0].item() == 50


def test_iterating_gives_the_rows():
    assert [row.tolist() for row in muster.Tensor(numbers((2, 2)))] == [[0, 1], [2, 3]]
    total = muster.jit(lambda x: sum(row for row in x))
    assert total(muster.Tensor(numbers((2, 2)))).tolist() == [2, 4]


def test_a_parameter_can_be_indexed_in_a_graph_with_gradient():
    table = muster.Parameter(muster.Tensor(numbers((3, 2))), name="table")

    def loss(ids):
        return table[ids].sum()

    value, gradient = muster.value_and_grad(loss, None, table)(muster.Tensor([2, 2]))
    assert value.item() == 18
    assert gradient.tolist() == [[0, 0], [0, 0], [2, 2]]
    assert table[1].tolist() == [2, 3]


def test_gradients_come_back_in_eager_mode_too():
    muster.set_context(mode="eager")
    try:
        x = muster.Tensor(numbers((3, 2)))
        _, gradient = muster.value_and_grad(lambda x: (x[1] * x[::-1, 0][:2]).sum())(x)
    finally:
        muster.set_context(mode="graph")
    assert gradient.tolist() == [[0, 0], [4 + 3, 2], [2, 0]]


def test_a_tensor_takes_other_elements_and_what_was_taken_from_it_stays():
    x = muster.Tensor([[1, 2], [3, 4]])
    y, row, array = x, x[0], x.asnumpy()
    x[0, 1] = 5
    x[1][0] = 6
    x[1][0] += 1
    assert y.tolist() == [[1, 5], [7, 4]]
    assert row.tolist() == [1, 2] and array.tolist() == [[1, 2], [3, 4]]


def test_an_assignment_that_nothing_could_see_is_refused():
    x = muster.Tensor([[[1, 2]]])
    with pytest.raises(IndexError, match="would be lost"):
        x[0][0][1] = 3
    with pytest.raises(IndexError, match="would be lost"):
        muster.Tensor([1, 2])[0] = 3


def test_elements_are_set_as_numpy_sets_them():
    numbers = numpy.arange(24).reshape(2, 3, 4)
    for index in (
        0, -1, (1, 2), (slice(None), 1), (slice(None, None, 2), 0), (..., -1), (0, None, 1), None,
        (slice(None), [0, 2]), ([0, 1], [2, 0]), (slice(None), [0, 2], slice(1, 3)), numbers % 5 == 0,
        (0, numpy.array([True, False, True])), (slice(2, 0, -1), 1), slice(5, 7), [[0, 1], [1, 1]],
    ):  # fmt: skip
        expected, tensor = numbers.copy(), muster.Tensor(numbers)
        place = tuple(index) if isinstance(index, tuple) else index
        size = expected[place].shape
        for value in (7, numpy.arange(numpy.prod(size, dtype=int)).reshape(size) + 100):
            expected[place] = value
            tensor[place] = value if isinstance(value, int) else muster.Tensor(value)
            assert tensor.tolist() == expected.tolist(), index


def test_values_that_do_not_fit_are_refused():
    x = muster.Tensor([[1, 2], [3, 4]])
    for index, value in (((0,), [1, 2, 3]), (5, 1), ((slice(None), 2), 0)):
        with pytest.raises((IndexError, ValueError)):
            x[index] = muster.Tensor(value)
    assert x.tolist() == [[1, 2], [3, 4]]


def test_true_takes_all_in_a_new_axis_and_false_changes_nothing():
    x = muster.Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x[True].tolist() == [[[1.0, 2.0], [3.0, 4.0]]]
    x[False] = 7.0
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    x[True] = 5.0
    assert x.tolist() == [[5.0, 5.0], [5.0, 5.0]]


def test_a_parameter_that_only_its_cell_holds_takes_elements():
    net = muster.nn.Embedding(4, 2)
    net.embedding_table[1] = 7
    net.embedding_table[2, 0] += 1
    assert net.embedding_table.tolist()[1] == [7, 7]


@pytest.mark.parametrize(
    "index",
    [
        (0, (1, 2)),
        ((0, 1), 1),
        ((0, 1), (1, 2)),
        ((0, 1), slice(None), (2, 0)),
        (..., (2, 0)),
        ((True, False), 1),
    ],
)
def test_a_tuple_within_an_index_is_what_a_list_is(index):
    expected = numpy.arange(24).reshape(2, 3, 4)
    tensor = muster.Tensor(expected.copy())
    place = tuple(list(each) if isinstance(each, tuple) else each for each in index)
    assert tensor[index].tolist() == expected[place].tolist()
    tensor[index] = 100
    expected[place] = 100
    assert tensor.tolist() == expected.tolist()
