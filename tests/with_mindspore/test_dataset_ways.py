"""Datasets in the ways of scripts that test them: errors by type, callbacks, settings, generators."""

import copy
import functools
import itertools
import json
import re
import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.dataset import transforms
from mindspore.dataset.callback import DSCallback, WaitedDSCallback
from mindspore.dataset.engine import iterators
from mindspore.train import Callback, Model


def _rows(data):
    return [[np.asarray(each).tolist() for each in row] for row in data.create_tuple_iterator(None, 1, True)]


def _counted(begin, end, column="x"):
    def rows():
        for number in range(begin, end):
            yield (np.array([number]),)

    return ds.GeneratorDataset(rows, [column])


def test_a_generator_gives_its_rows_in_each_pass():
    made = []

    def rows():
        for number in range(3):
            made.append(number)
            yield (np.array([number]), np.array([[number, 7]]))

    data = ds.GeneratorDataset(rows(), ["a", "b"])
    once = [[[0], [[0, 7]]], [[1], [[1, 7]]], [[2], [[2, 7]]]]
    assert _rows(data) == once
    assert _rows(data) == once
    assert _rows(ds.GeneratorDataset(iter([1, 2]), ["a"]).repeat(1)) == [[1], [2]]
    assert (
        _rows(ds.GeneratorDataset(zip([1, 2], [3, 4], strict=True), ["a", "b"]).repeat(2))
        == [
            [1, 3],
            [2, 4],
        ]
        * 2
    )
    assert made == [0, 1, 2]  # it was gone through once


@pytest.mark.parametrize(
    "further", [lambda data: data, lambda data: data.batch(2), lambda data: data.take(4)]
)
def test_concat_refuses_rows_of_another_kind(further):
    floats = _counted(3, 6).map(transforms.TypeCast(ms.float32), ["x"])
    with pytest.raises(RuntimeError, match=r"'x' is int64 of rank 1.*float32 of rank 1"):
        _rows(further(_counted(0, 3) + floats))
    with pytest.raises(RuntimeError, match=r"'x' is int64 of rank 1.*of rank 2"):
        _rows(further(_counted(0, 3) + _counted(3, 6).batch(3)))
    text = ds.GeneratorDataset([("a",)], ["x"])
    with pytest.raises(RuntimeError, match="<U1"):
        _rows(further(_counted(0, 3) + text))


def test_use_sampler_of_concat_takes_the_place_of_the_one_before():
    data = (_counted(0, 3) + _counted(3, 10)).concat(_counted(10, 20))
    for shard in range(5):
        data.use_sampler(ds.DistributedSampler(5, shard, shuffle=False))
        assert _rows(data) == [[[number]] for number in range(shard, 20, 5)]
        assert data.get_dataset_size() == 4
    data.use_sampler(ds.RandomSampler())
    assert sorted(_rows(data)) == [[[number]] for number in range(20)]


@pytest.mark.parametrize(
    "call,error",
    [
        (lambda data: data.batch(2, python_multiprocessing=3), TypeError),
        (lambda data: data.batch(2, max_rowsize="a"), TypeError),
        (lambda data: data.batch(lambda a, b: 2), ValueError),
        (lambda data: data.batch(2, per_batch_map=3, input_columns=["x"]), TypeError),
        (lambda data: data.map(lambda x: x, offload=3), TypeError),
        (lambda data: _rows(data.map(lambda x: None)), RuntimeError),
        (lambda data: _rows(data.map(lambda x: object())), RuntimeError),
        (lambda data: data.bucket_batch_by_length("x", [1], [1, 1]), TypeError),
        (lambda data: _rows(data.bucket_batch_by_length(["x"], [1], [1, 1], lambda x: "s")), RuntimeError),
        (lambda data: _rows(data.bucket_batch_by_length(["x"], [1], [1, 1], lambda x: 1.5)), RuntimeError),
    ],
)
def test_errors_have_types(call, error):
    with pytest.raises(error):
        call(_counted(0, 3))


def test_a_method_may_tell_the_size_of_a_batch():
    class Sizes:
        def next(self, info):
            return info.get_batch_num() + 1

        def __call__(self, info):
            return 3

    assert [len(row[0]) for row in _rows(_counted(0, 6).batch(Sizes().next))] == [1, 2, 3]
    assert [len(row[0]) for row in _rows(_counted(0, 6).batch(Sizes()))] == [3, 3]


def test_output_shapes_of_rows_with_other_dimensions_is_an_error():
    rows = [np.array([[1], [2]]), np.array([1, 2])]
    with pytest.raises(RuntimeError, match="2 and 1"):
        ds.GeneratorDataset(rows, ["x"], shuffle=False).output_shapes(estimate=True)


class _Noted(DSCallback):
    def __init__(self, step_size=1):
        super().__init__(step_size)
        self.calls = []

    def _note(self, what, context):
        self.calls.append((what, context.cur_epoch_num, context.cur_step_num_in_epoch, context.cur_step_num))

    def ds_epoch_begin(self, context):
        self._note("begin", context)

    def ds_epoch_end(self, context):
        self._note("end", context)

    def ds_step_begin(self, context):
        self._note("step", context)


@pytest.mark.parametrize("repeats", [[3], [1, 3], [3, 1]])
def test_an_epoch_of_callbacks_has_all_repetitions(repeats):
    callback = _Noted(4)
    data = ds.NumpySlicesDataset([1, 2], shuffle=False).map(lambda x: x, callbacks=callback)
    for count in repeats:
        data = data.repeat(count)
    iterator = data.create_tuple_iterator(num_epochs=2)
    for _ in range(2):
        assert len(list(iterator)) == 6
    assert callback.calls == [
        ("begin", 1, 0, 0),
        ("step", 1, 1, 1),
        ("step", 1, 5, 5),
        ("end", 1, 6, 6),
        ("begin", 2, 0, 6),
        ("step", 2, 1, 7),
        ("step", 2, 5, 11),
        ("end", 2, 6, 12),
    ]


def test_a_callback_without_methods_is_an_error():
    class Empty(DSCallback):
        pass

    with pytest.raises(AttributeError, match="Empty defines none of ds_begin"):
        _rows(_counted(0, 3).map(lambda x: x, callbacks=Empty()))


class _Waited(WaitedDSCallback):
    def __init__(self, events, step_size):
        super().__init__(step_size)
        self.events = events

    def sync_epoch_begin(self, train_run_context, ds_run_context):
        self.events.append(("data epoch", train_run_context.cur_epoch_num, ds_run_context.cur_step_num))

    def sync_step_begin(self, train_run_context, ds_run_context):
        self.events.append(("data", train_run_context.cur_step_num, ds_run_context.cur_step_num))


class _Trained(Callback):
    def __init__(self, events):
        self.events = events

    def step_end(self, run_context):
        self.events.append(("step", run_context.original_args().cur_step_num))


class _First(nn.Cell):
    def construct(self, x, y):
        return x


def _train(batch, step_size):
    events = []
    waited = _Waited(events, step_size)
    columns = ([1, 2, 3, 4], [1, 2, 3, 4])
    data = ds.NumpySlicesDataset(columns, ["a", "b"], shuffle=False).map(lambda x: x, callbacks=waited)
    Model(_First()).train(2, data.batch(batch), callbacks=[_Trained(events), waited], dataset_sink_mode=False)
    return events


def test_waited_callbacks_come_behind_the_step_of_the_training():
    assert _train(2, 2) == [
        ("step", 1),
        ("data", 1, 3),
        ("step", 2),
        ("data epoch", 1, 4),
        ("data", 2, 5),
        ("step", 3),
        ("data", 3, 7),
        ("step", 4),
    ]
    assert [event for event in _train(1, 1) if event[0] == "data"] == [
        ("data", n, n + 1) for n in range(1, 8)
    ]


@pytest.fixture
def _short_wait():
    ds.config.set_callback_timeout(1)
    yield
    ds.config.set_callback_timeout(60)


def test_a_waited_callback_that_cannot_come_is_an_error(_short_wait):
    with pytest.raises(RuntimeError, match=r"row 3 .*step_size is 2"):
        _train(3, 2)


def test_a_waited_callback_without_a_training_has_a_deadline(_short_wait):
    waited = _Waited([], 1)
    with pytest.raises(RuntimeError, match="waited 1 s"):
        _rows(_counted(0, 3).map(lambda x: x, callbacks=waited))
    waited.end({})
    assert len(_rows(_counted(0, 3).map(lambda x: x, callbacks=waited))) == 3


def _fails_on(*numbers):
    def function(x):
        if int(x[0]) in numbers:
            raise ValueError("bad")
        return x

    return function


@pytest.mark.parametrize(
    "mode,bad,expected",
    [
        ("SKIP", [2], [0, 1, 3]),
        ("SKIP", [0, 1, 2, 3], []),
        ("REPLACE", [2], [0, 1, 3, 0]),
        ("REPLACE", [0, 1, 2, 3], []),
        ("REPLACE", [0, 1, 2], [3, 3, 3, 3]),
        ("REPLACE", [], [0, 1, 2, 3]),
    ],
)
def test_rows_that_fail_are_left_out_or_replaced(mode, bad, expected):
    ds.config.set_error_samples_mode(ds.config.ErrorSamplesMode[mode])
    try:
        data = _counted(0, 4).map(_fails_on(*bad), ["x"])
        assert list(itertools.chain(*itertools.chain(*_rows(data)))) == expected
        assert [len(row[0]) for row in _rows(data.batch(4))] == ([len(expected)] if expected else [])
    finally:
        ds.config.set_error_samples_mode(ds.config.ErrorSamplesMode.RETURN)
    with pytest.raises(RuntimeError):
        _rows(_counted(0, 4).map(_fails_on(1), ["x"]))


@pytest.mark.parametrize(
    "name,value,error",
    [
        ("seed", -1, ValueError),
        ("seed", 2**32, ValueError),
        ("seed", True, TypeError),
        ("seed", 1.5, TypeError),
        ("prefetch_size", 0, ValueError),
        ("num_parallel_workers", 0, ValueError),
        ("num_parallel_workers", 100000, RuntimeError),
        ("dynamic_shape", 1, TypeError),
        ("callback_timeout", 0, ValueError),
        ("monitor_sampling_interval", -1, ValueError),
        ("autotune_interval", -1, ValueError),
        ("multiprocessing_start_method", "x", ValueError),
        ("error_samples_mode", 1, TypeError),
        ("multiprocessing_timeout_interval", 0, ValueError),
        ("iterator_mode", "x", TypeError),
    ],
)
def test_settings_are_checked(name, value, error):
    before = getattr(ds.config, f"get_{name}")()
    with pytest.raises(error):
        getattr(ds.config, f"set_{name}")(value)
    assert getattr(ds.config, f"get_{name}")() == before


def test_settings_from_a_file(tmp_path):
    before = ds.config.get_seed(), ds.config.get_prefetch_size()
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"seed": 77, "opConnectorSize": 5, "callbackTimeout": 9, "cacheHost": "x"}))
    try:
        ds.config.load(str(path))
        assert (ds.config.get_seed(), ds.config.get_prefetch_size()) == (77, 5)
        assert ds.config.get_callback_timeout() == 9
    finally:
        ds.config.set_seed(before[0])
        ds.config.set_prefetch_size(before[1])
        ds.config.set_callback_timeout(60)
    for text in ("[1]", "{"):
        path.write_text(text)
        with pytest.raises(RuntimeError, match=r"settings\.json"):
            ds.config.load(str(path))
    with pytest.raises(RuntimeError, match="nowhere"):
        ds.config.load("nowhere")
    with pytest.raises(TypeError):
        ds.config.load(3)


def test_iterators_that_live_are_known():
    iterators._cleanup()
    assert iterators.ITERATORS_LIST == []
    iterator = _counted(0, 3).create_tuple_iterator()
    next(iterator)
    assert [each() for each in iterators.ITERATORS_LIST] == [iterator]
    iterators._cleanup()
    with pytest.raises(RuntimeError, match="released"):
        next(iterator)
    other = _counted(0, 3).create_tuple_iterator()
    assert len(iterators.ITERATORS_LIST) == 1
    del other
    assert iterators.ITERATORS_LIST == []


def test_a_batch_is_told_the_number_of_its_pass_among_those_of_its_iterator():
    told = []

    def changed(column, info):
        told.append((info.get_epoch_num(), info.get_batch_num()))
        return (column,)

    batches = ds.NumpySlicesDataset(np.arange(4), ["a"], shuffle=False).batch(2, per_batch_map=changed)
    for _ in range(2):  # two iterators, the second for two passes
        iterator = batches.create_tuple_iterator(num_epochs=2)
        for _ in range(1 + bool(told)):
            list(iterator)
    assert told == [(0, 0), (0, 1), (0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_batch_of_a_training_is_told_its_epoch():
    told = []

    def changed(column, label, info):
        told.append(info.get_epoch_num())
        return column, label

    rows = np.ones((2, 3), np.float32)
    batches = ds.NumpySlicesDataset((rows, rows[:, :1]), ["a", "b"], shuffle=False).batch(
        2, per_batch_map=changed, input_columns=["a", "b"]
    )
    net = nn.Dense(3, 1)
    Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(3, batches, dataset_sink_mode=False)
    assert [told[-3] + step for step in range(3)] == told[-3:]


class _Kept:
    """A source whose rows are its own arrays."""

    def __init__(self):
        self.rows = np.zeros((4, 3), np.float32)

    def __getitem__(self, at):
        return (self.rows[at],)

    def __len__(self):
        return len(self.rows)


def _raised(row):
    row += 1
    return row


@pytest.mark.parametrize(
    "changed",
    [
        lambda rows: rows.map(_raised, "a"),
        lambda rows: rows.batch(2).map(_raised, "a"),
        lambda rows: rows.batch(2, per_batch_map=lambda a, info: ([_raised(each) for each in a],)),
        lambda rows: rows.filter(lambda row: bool(_raised(row).sum() > 0)),
    ],
    ids=["map", "map of batches", "per_batch_map", "filter"],
)
def test_a_function_that_writes_to_its_rows_leaves_the_source_as_it_is(changed):
    source = _Kept()
    rows = changed(ds.GeneratorDataset(source, ["a"], shuffle=False))
    passes = [_rows(rows) for _ in range(2)]
    assert passes[0] == passes[1]
    assert source.rows.sum() == 0


@pytest.mark.parametrize("batched", [False, True])
def test_rows_as_arrays_may_be_written(batched):
    array = np.zeros((4, 3), np.float32)
    for source in (ds.NumpySlicesDataset(array, ["a"]), ds.GeneratorDataset(_Kept(), ["a"])):
        rows = source.batch(2) if batched else source
        for row in rows.create_dict_iterator(num_epochs=1, output_numpy=True):
            row["a"] += 1
            assert (row["a"] == 1).all()
    assert array.sum() == 0


def _drawn(row):
    return row + np.random.rand()


def test_a_job_that_recovers_is_told_of_functions_that_draw_in_its_own_process(monkeypatch, capfd):
    told = "'_drawn' of map() draws from random or numpy.random"
    rows = ds.NumpySlicesDataset(np.zeros((9, 1), np.float32), ["a"], shuffle=False)
    _rows(rows.map(_drawn, "a"))
    assert told not in capfd.readouterr().err
    monkeypatch.setenv("MS_ENABLE_RECOVERY", "1")
    _rows(rows.map(_drawn, "a"))
    assert capfd.readouterr().err.count(told) == 1
    _rows(rows.map(lambda row: row + 1, "a"))
    passes = [_rows(rows.map(_drawn, "a", num_parallel_workers=2, python_multiprocessing=True)) for _ in "ab"]
    assert told not in capfd.readouterr().err
    assert passes[0] == passes[1], "what is told to do instead"


def _chosen(row):
    return bool(np.random.rand() < 0.5)


def _mixed(rows, info):
    return [row * np.random.beta(0.4, 0.4) for row in rows]


def _mixed_by_batch(rows, info):
    draws = np.random.default_rng((info.get_epoch_num(), info.get_batch_num()))
    return [row + draws.random() for row in rows]


def test_a_job_that_recovers_is_told_of_functions_of_batches_and_of_filters_that_draw(monkeypatch, capfd):
    rows = ds.NumpySlicesDataset(np.ones((9, 1), np.float32), ["a"], shuffle=False)

    def told(*datasets):
        seen = [_rows(each) for each in datasets]
        return re.findall("'(.*)' of (.*) draws from random", capfd.readouterr().err), seen

    def mixed(function):
        return rows.batch(2, per_batch_map=function, input_columns=["a"])

    assert told(mixed(_mixed))[0] == []
    monkeypatch.setenv("MS_ENABLE_RECOVERY", "1")
    twice = mixed(_mixed)
    assert told(twice, twice)[0] == [("_mixed", "batch(per_batch_map=)")]
    names, passes = told(mixed(_mixed_by_batch), mixed(_mixed_by_batch))
    assert names == []
    assert passes[0] == passes[1], "what is told to do instead"
    assert told(rows.filter(_chosen))[0] == [("_chosen", "filter()")]
    assert told(mixed(_mixed_by_batch).map(_drawn, "a"))[0] == [("_drawn", "map()")]


class _Noisy:
    def __len__(self):
        return 9

    def __getitem__(self, number):
        return np.float32(number + np.random.rand())


def _noisy():
    for number in range(9):
        yield (np.float32(number + np.random.rand()),)


@pytest.mark.parametrize(("source", "name"), [(_Noisy(), "_Noisy"), (_noisy, "_noisy")])
def test_a_job_that_recovers_is_told_of_sources_that_draw_in_its_process(monkeypatch, capfd, source, name):
    told = f"source '{name}' draws from random or numpy.random"
    _rows(ds.GeneratorDataset(source, ["a"], shuffle=False))
    assert told not in capfd.readouterr().err
    monkeypatch.setenv("MS_ENABLE_RECOVERY", "1")
    _rows(ds.GeneratorDataset(source, ["a"], shuffle=False))
    assert capfd.readouterr().err.count(told) == 1
    _rows(ds.GeneratorDataset(_Kept(), ["a"], shuffle=False))
    assert "draws from" not in capfd.readouterr().err


_made = np.random.default_rng(1)


class _NoisyByItsOwn(_Noisy):
    def __init__(self):
        self.draws = np.random.default_rng(2)

    def __getitem__(self, number):
        return np.float32(number + self.draws.random())


def _noisy_by_its_own():
    for number in range(9):
        yield (np.float32(number + _made.random()),)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (_NoisyByItsOwn(), "'_NoisyByItsOwn', which makes rows of the data, changes '_NoisyByItsOwn.draws'"),
        (
            _noisy_by_its_own,
            "passes over a GeneratorDataset change '_made', and no recovery point holds that",
        ),
    ],
)
def test_a_job_that_recovers_is_told_of_sources_that_draw_by_their_own(monkeypatch, capfd, source, told):
    rows = ds.GeneratorDataset(source, ["a"], shuffle=False)
    passes = [_rows(rows) for _ in "ab"]
    assert passes[0] != passes[1]
    assert "no recovery point" not in capfd.readouterr().err
    monkeypatch.setenv("MS_ENABLE_RECOVERY", "1")
    rows = ds.GeneratorDataset(source, ["a"], shuffle=False)
    passes = [_rows(rows) for _ in "ab"]
    assert capfd.readouterr().err.count(told) == 1


class _Counting:
    def __init__(self):
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        yield (np.float32(self.passes),)


def test_a_job_that_recovers_is_told_of_sources_that_count_their_passes(monkeypatch, capfd):
    monkeypatch.setenv("MS_ENABLE_RECOVERY", "1")
    told = "change '_Counting.passes', and no recovery point holds that"
    rows = ds.GeneratorDataset(_Counting(), ["a"])
    seen = [capfd.readouterr().err.count(told) for _ in range(3) if _rows(rows)]
    assert seen == [0, 1, 0]


def test_sources_that_draw_in_worker_processes_are_told_nothing_and_draw_the_same_again(monkeypatch, capfd):
    monkeypatch.setenv("MS_ENABLE_RECOVERY", "1")
    made = functools.partial(ds.GeneratorDataset, _Noisy(), ["a"], shuffle=False, num_parallel_workers=2)
    passes = [_rows(made()) for _ in "ab"]
    assert "draws from" not in capfd.readouterr().err
    assert passes[0] == passes[1]


def test_rows_of_a_generator_function_are_split():
    with pytest.raises(RuntimeError):
        _counted(0, 6).split([4, 3], randomize=False)
    first, second = _counted(0, 6).split([4, 2], randomize=False)
    assert [_rows(first), _rows(second)] == [[[[0]], [[1]], [[2]], [[3]]], [[[4]], [[5]]]]
    parts = [_rows(part) for part in _counted(0, 6).split([4, 2])]
    assert [len(part) for part in parts] == [4, 2]
    assert sorted(parts[0] + parts[1]) == [[[number]] for number in range(6)]


def test_a_generator_function_that_is_to_be_shuffled_gives_its_rows_in_order():
    def rows():
        for number in range(4):
            yield (np.array([number]),)

    assert _rows(ds.GeneratorDataset(rows, ["x"], shuffle=True)) == [[[0]], [[1]], [[2]], [[3]]]


def test_an_endless_dataset_is_true():
    assert _counted(0, 3).repeat(-1)
    assert _counted(0, 3)


@pytest.mark.parametrize(
    "steps",
    [
        lambda data: data.batch(4),
        lambda data: data.shuffle(10).batch(3, drop_remainder=True).repeat(2),
        lambda data: data.map(lambda x: np.array(str(x)), ["x"]),  # text, which Python keeps
    ],
)
def test_a_deep_copy_of_a_dataset_is_read_by_itself(steps):
    """As scripts do that evaluate with the rows of their training."""

    def rows(data):
        return [row[0].tolist() for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]

    numbers = np.arange(12, dtype=np.int32)
    ds.config.set_seed(7)
    make = lambda: steps(ds.NumpySlicesDataset({"x": numbers}, shuffle=False))  # noqa: E731
    fresh, data = make(), make()
    first = rows(data)
    copied = copy.deepcopy(data)
    assert rows(copied) == rows(fresh) == first
    assert rows(data) == rows(fresh)
    assert copied.get_dataset_size() == data.get_dataset_size()
