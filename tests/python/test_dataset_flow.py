"""What is done to rows: shuffle, zip, concat, filter, columns; and rows made in Python."""

import random
import re
import threading

import numpy
import pytest
from muster.dataset import GeneratorDataset, NumpySlicesDataset, config, zip

import muster


def numbers(count, name="number"):
    return NumpySlicesDataset(numpy.arange(count), [name], shuffle=False)


def values(dataset, column=0):
    return [item[column].item() for item in dataset]


def test_shuffle_draws_from_a_buffer():
    muster.set_seed(3)
    shuffled = numbers(50).shuffle(8)
    first, second = values(shuffled), values(shuffled)
    assert sorted(first) == list(range(50)) and first != second and first != sorted(first)
    with pytest.raises(ValueError, match="buffer size is 1"):
        numbers(3).shuffle(1)


def test_zip_concat_project_rename():
    zipped = zip((numbers(3), numbers(5, "other").skip(1)))
    assert [(a.item(), b.item()) for a, b in zipped] == [(0, 1), (1, 2), (2, 3)]
    assert zipped.project("other").get_col_names() == ["other"]
    assert zipped.rename("other", "next").get_col_names() == ["number", "next"]
    assert values(numbers(2) + numbers(2)) == [0, 1, 0, 1]
    assert values(numbers(2).concat([numbers(1), numbers(1)])) == [0, 1, 0, 0]
    assert len(numbers(9).zip(numbers(4, "other"))) == 4


def drawn(row):
    return row + numpy.random.rand()


def test_a_job_that_recovers_is_told_of_functions_of_rows_that_draw_in_its_process(monkeypatch, capfd):
    told = "'drawn' of map() draws from random or numpy.random"
    rows = NumpySlicesDataset(numpy.zeros((9, 1)), ["a"], shuffle=False)
    assert len(values(rows.map(drawn, "a"))) == 9
    assert told not in capfd.readouterr().err
    monkeypatch.setenv("MS_ENABLE_RECOVERY", "1")
    assert len(set(values(rows.map(drawn, "a")))) == 9
    assert capfd.readouterr().err.count(told) == 1
    assert values(rows.map([lambda row: row + 1], "a")) == [1.0] * 9
    assert "map()" not in capfd.readouterr().err


made, rows_made, kept = numpy.random.default_rng(1), 0, {}


def drawn_by_its_own(row):
    return row + made.random()


def counted(row):
    global rows_made
    rows_made += 1
    return row + rows_made


counts = [0]


def counted_in_a_list(row):
    counts[0] += 1
    return row + counts[0]


noting = []


def noted(row):
    noting.append(1)
    return row


class Shifting:
    def __init__(self):
        self.draws = random.Random(2)

    def __call__(self, row):
        return row + self.draws.random()


def keeping(row):
    return row + kept.setdefault(float(row[0]), len(kept))


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (drawn_by_its_own, ["made"]),
        (counted, ["rows_made"]),
        (counted_in_a_list, ["counts"]),
        (noted, []),
        (Shifting(), ["Shifting.draws"]),
        (keeping, []),
    ],
)
def test_a_job_that_recovers_is_told_of_what_functions_of_rows_change(monkeypatch, capfd, function, names):
    rows = NumpySlicesDataset(numpy.arange(9.0).reshape(9, 1), ["a"], shuffle=False)
    told = re.compile(r"which makes rows of the data, changes '(.*)' with them")
    assert len(values(rows.map(function, "a"))) == 9
    assert told.findall(capfd.readouterr().err) == []
    monkeypatch.setenv("MS_ENABLE_RECOVERY", "1")
    assert len(values(rows.map(function, "a"))) == 9
    assert told.findall(capfd.readouterr().err) == names


class Noisy:
    def __len__(self):
        return 9

    def __getitem__(self, number):
        return float(number + numpy.random.rand())


def noisy():
    for number in range(9):
        yield float(number + numpy.random.rand())


class Counting:
    def __init__(self):
        self.passes = 0

    def __len__(self):
        return 1

    def __iter__(self):
        self.passes += 1
        yield float(self.passes)


@pytest.mark.parametrize(("source", "name"), [(Noisy(), "Noisy"), (noisy, "noisy")])
def test_a_job_that_recovers_is_told_of_sources_that_draw_in_its_process(monkeypatch, capfd, source, name):
    told = f"source '{name}' draws from random or numpy.random"
    assert len(values(GeneratorDataset(source, ["a"], shuffle=False))) == 9
    assert told not in capfd.readouterr().err
    monkeypatch.setenv("MS_ENABLE_RECOVERY", "1")
    assert len(set(values(GeneratorDataset(source, ["a"], shuffle=False)))) == 9
    assert capfd.readouterr().err.count(told) == 1
    assert values(GeneratorDataset(lambda: iter([1.0, 2.0]), ["a"])) == [1, 2]
    assert capfd.readouterr().err == ""


def test_a_job_that_recovers_is_told_of_sources_that_count_their_passes(monkeypatch, capfd):
    monkeypatch.setenv("MS_ENABLE_RECOVERY", "1")
    told = "change 'Counting.passes', and no recovery point holds that"
    rows = GeneratorDataset(Counting(), ["a"])
    assert rows.get_dataset_size() == 1
    passes = [(values(rows), capfd.readouterr().err.count(told)) for _ in "abc"]
    assert passes == [([1], 0), ([2], 1), ([3], 0)]


def test_filter_keeps_what_the_predicate_says():
    even = numbers(9).filter(lambda number: number % 2 == 0, "number")
    assert values(even) == [0, 2, 4, 6, 8]
    assert even.get_dataset_size() == 5  # counted by a pass
    assert len(even.batch(2)) == 3


def test_map_may_name_other_columns():
    mapped = numbers(3).map(lambda n: (n, n * n), "number", ["number", "square"])
    assert [(a.item(), b.item()) for a, b in mapped] == [(0, 0), (1, 1), (2, 4)]


def test_sizes_that_were_set_upstream():
    dataset = numbers(9).batch(4).repeat(2)
    assert (dataset.get_batch_size(), dataset.get_repeat_count(), dataset.get_dataset_size()) == (4, 2, 6)


def test_slices_of_a_tuple_and_of_a_dict():
    rows = NumpySlicesDataset(([1, 2], [3.0, 4.0]), ["a", "b"], shuffle=False)
    assert [(a.item(), b.item()) for a, b in rows] == [(1, 3.0), (2, 4.0)]
    assert NumpySlicesDataset({"x": [1, 2, 3]}).get_col_names() == ["x"]
    with pytest.raises(ValueError, match="has 2 rows"):
        NumpySlicesDataset(([1, 2], [3]), ["a", "b"])


class Squares:
    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index >= 6:
            raise IndexError
        return numpy.array([index, index * index]), index % 2


def test_a_generator_with_random_access():
    rows = GeneratorDataset(Squares(), ["pair", "odd"], shuffle=False)
    assert len(rows) == 6
    assert [pair.asnumpy().tolist() for pair, _ in rows][2:4] == [[2, 4], [3, 9]]
    shards = [GeneratorDataset(Squares(), ["pair", "odd"], num_shards=2, shard_id=i) for i in range(2)]
    assert [len(shard) for shard in shards] == [3, 3]
    assert [batch.shape for batch, _ in rows.batch(4)] == [(4, 2), (2, 2)]
    assert values(GeneratorDataset(Squares(), ["pair", "odd"], sampler=[5, 0]), 1) == [1, 0]


def test_a_generator_function_is_called_for_each_pass():
    threads = set()

    def rows():
        threads.add(threading.get_ident())
        for number in range(4):
            yield (numpy.float32(number),)

    dataset = GeneratorDataset(rows, ["number"])
    assert values(dataset) == values(dataset) == [0, 1, 2, 3]
    assert values(dataset.repeat(2).take(6)) == [0, 1, 2, 3, 0, 1]
    assert threading.get_ident() not in threads
    assert dataset.get_dataset_size() == 4
    with pytest.raises(ValueError, match="cannot be shuffled"):
        GeneratorDataset(rows, ["number"], shuffle=True)


def test_exceptions_of_a_generator_come_out_of_the_loop():
    def rows():
        yield (1,)
        raise KeyError("the second row")

    with pytest.raises(KeyError, match="the second row"):
        list(GeneratorDataset(rows, ["number"]))
    with pytest.raises(ValueError, match="1 values for 2 columns"):
        list(GeneratorDataset([(1,)], ["a", "b"]))
    with pytest.raises(TypeError, match="this is int"):
        GeneratorDataset(3, ["a"])


def test_column_types_of_a_generator():
    rows = GeneratorDataset([(1, 2)], ["a", "b"], [muster.float32, None])
    assert next(iter(rows))[0].dtype is muster.float32


def test_the_settings_of_the_process():
    before = config.get_prefetch_size(), config.get_num_parallel_workers()
    try:
        config.set_seed(77)
        config.set_prefetch_size(3)
        config.set_num_parallel_workers(2)
        assert (config.get_seed(), config.get_prefetch_size(), config.get_num_parallel_workers()) == (
            77,
            3,
            2,
        )
        shuffled = numbers(20).shuffle(20)
        first = values(shuffled)
        muster.set_seed(1)
        assert values(numbers(20).shuffle(20)) == first  # the data's own seed counts
        with pytest.raises(ValueError, match="prefetch size is 0"):
            config.set_prefetch_size(0)
    finally:
        config.set_seed(None)
        config.set_prefetch_size(before[0])
        config.set_num_parallel_workers(before[1])
