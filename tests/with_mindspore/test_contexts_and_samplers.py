"""A RunContext that is made by hand, and samplers that take the place of others."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
import mindspore.dataset as ds
import numpy
from mindspore import nn
from mindspore.train import Callback, Model, RunContext


def values(dataset):
    return [int(row[0]) for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def sources():
    numbers = ds.GeneratorDataset(list(range(10)), "column1", shuffle=False)
    return [numbers, ds.NumpySlicesDataset(list(range(10)), shuffle=False)]


@pytest.mark.parametrize("which", [0, 1])
def test_use_sampler_replaces_the_last_sampler_and_keeps_those_below(which):
    dataset = sources()[which]
    dataset.use_sampler(ds.SubsetSampler([8, 6, 4, 2]))
    assert values(dataset) == [8, 6, 4, 2]
    dataset.add_sampler(ds.SequentialSampler(1, 2))
    assert values(dataset) == [6, 4]
    dataset.use_sampler(ds.SequentialSampler(0, 1))
    assert values(dataset) == [8]


@pytest.mark.parametrize("wrong", [None, [1, 2]])
def test_use_sampler_takes_samplers_only(wrong):
    with pytest.raises(TypeError, match="Input sampler"):
        sources()[0].use_sampler(wrong)


def test_a_run_context_gives_its_arguments_and_can_be_stopped():
    arguments = {"epoch_num": 3}
    context = RunContext(arguments)
    assert context.original_args() is arguments and not context.get_stop_requested()
    context.request_stop()
    assert context.get_stop_requested()
    with pytest.raises(TypeError, match="original_args"):
        RunContext([])


def test_what_a_model_hands_to_callbacks_is_a_run_context():
    seen = []

    class Looks(Callback):
        def on_train_step_end(self, run_context):
            seen.append(isinstance(run_context, RunContext))

    rows = ds.NumpySlicesDataset((numpy.ones((2, 3), numpy.float32), numpy.ones((2, 1), numpy.float32)))
    net = nn.Dense(3, 1)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    model.train(1, rows.batch(1), callbacks=[Looks()], dataset_sink_mode=False)
    assert seen == [True, True]
    assert not isinstance({}, RunContext)


def test_a_source_of_rows_in_order_takes_no_sampler():
    dataset = ds.GeneratorDataset(lambda: iter([(1,), (2,)]), ["x"])
    for take in (dataset.use_sampler, dataset.add_sampler):
        with pytest.raises(RuntimeError, match="takes no sampler"):
            take(ds.SequentialSampler())


def test_columns_of_whole_numbers_take_what_numpy_writes(tmp_path):
    path = tmp_path / "rows.csv"
    numpy.savetxt(path, numpy.array([[1, 2.5], [30, 4.5]]), delimiter=",", header="u,v", comments="")
    rows = ds.CSVDataset(str(path), column_defaults=[0, 0.0], shuffle=False).create_dict_iterator(
        output_numpy=True
    )
    assert [(row["u"].tolist(), row["v"].tolist()) for row in rows] == [(1, 2.5), (30, 4.5)]
    for wrong in ("1.5", "a", "1e30", "nan"):
        path.write_text(f"u,v\n{wrong},1\n", encoding="utf-8")
        with pytest.raises(RuntimeError, match="type cast error"):
            list(ds.CSVDataset(str(path), column_defaults=[0, 0.0], shuffle=False).create_tuple_iterator())


@pytest.mark.parametrize(
    ("name", "value"),
    [("enable_ge", False), ("max_device_memory", 1024.0), ("ascend_config", {}), ("op_timeout", 900)],
)
def test_settings_that_nobody_made_are_those_of_mindspore(name, value):
    assert ms.get_context(name) == value


@pytest.mark.parametrize(
    "setting, error",
    [
        ({"device_id": -1}, ValueError),
        ({"device_id": "a"}, TypeError),
        ({"max_call_depth": 0}, ValueError),
        ({"max_call_depth": True}, TypeError),
        ({"deterministic": "X"}, ValueError),
        ({"deterministic": True}, TypeError),
        ({"pynative_synchronize": 3}, TypeError),
        ({"save_graphs_path": 3}, TypeError),
        ({"memory_optimize_level": "O9"}, ValueError),
        ({"jit_syntax_level": 7}, ValueError),
        ({"runtime_num_threads": -1}, ValueError),
    ],
    ids=str,
)
def test_a_setting_that_changes_nothing_is_one_that_there_is(setting, error):
    name, value = next(iter(setting.items()))
    with pytest.raises(error, match=rf"set_context: {name} is .*{value!r}"):
        ms.set_context(**setting)


def test_settings_that_change_nothing_are_kept():
    given = {
        "deterministic": "ON",
        "max_call_depth": 5000,
        "pynative_synchronize": True,
        "jit_syntax_level": 2,
    }
    ms.set_context(**given)
    assert {name: ms.get_context(name) for name in given} == given


class _Turning(ds.Sampler):
    """All rows of a pass are one, the next one after each reset()."""

    def __init__(self, num_samples):
        super().__init__(num_samples)
        self.row = 0

    def __iter__(self):
        return iter([self.row] * self.num_samples)

    def reset(self):
        self.row = (self.row + 1) % self.dataset_size


@pytest.mark.parametrize("make", [ds.NumpySlicesDataset, ds.GeneratorDataset])
def test_a_sampler_is_reset_before_each_pass_of_an_iterator_but_the_first(make):
    data = make([7, 8, 9], ["a"], sampler=_Turning(2))
    for _ in range(2):
        passes = data.create_tuple_iterator(num_epochs=4, output_numpy=True)
        assert [[row[0].item() for row in passes] for _ in range(4)] == [[7, 7], [8, 8], [9, 9], [7, 7]]
    assert (len(data), data.output_shapes()) == (2, [[]])
    repeated = data.repeat(3).create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert [row[0].item() for row in repeated] == [7, 7, 8, 8, 9, 9]
