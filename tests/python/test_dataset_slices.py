"""Columns of which each worker reads a slice (MindSpore: dataset_strategy); Model joins them as loops do."""

import re

import pytest
from job import output_alone, outputs_of_workers
from parallel_jobs import ends_of_a_script

SETUP = """
import numpy as np
import mindspore as ms
from mindspore import Layout, nn, ops, train
from mindspore import dataset as ds
from mindspore.communication import get_group_size, get_rank, init
from mindspore.parallel.auto_parallel import AutoParallel

ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(3)
rank, workers = get_rank(), get_group_size()
WHOLE = workers == 1

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten, self.fc = nn.Flatten(), nn.Dense(4 * 8, 3)

    def construct(self, x):
        return self.fc(self.flatten(x))

def batches():
    numbers = np.random.RandomState(0)
    for _ in range(6):
        x = numbers.randn(4, 4, 8).astype(np.float32)
        y = numbers.randint(0, 3, 4).astype(np.int32)
        yield mine(x), y

class Losses(train.Callback):
    def on_train_step_end(self, run):
        print("loss", repr(float(run.original_args().net_outputs.asnumpy())))

def model_of(net):
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    return train.Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"loss", "accuracy"})
"""
TRAINING = """
net = Net()
model = model_of(net)
data = ds.GeneratorDataset(batches, ["x", "y"], shuffle=False)
model.fit(2, data, data, callbacks=[Losses()], dataset_sink_mode=SINKS)
for name, value in sorted(model.eval(data).items()):
    print("loss", repr(float(value)), name)
print("loss", repr(float(np.abs(net.fc.weight.asnumpy()).sum())))
"""
ALONE = "mine = lambda x: x\n"
COLUMNS = """
mine = lambda x: x[:, :, 8 // workers * rank :][:, :, : 8 // workers]
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy=((1, 1, workers), (1,)))
"""
BLOCKS = """
row, column = divmod(rank, 2)
mine = lambda x: x[:, 2 * row :][:, :2, 4 * column :][:, :, :4]
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy=((1, 2, 2), (1,)))
"""
# The first axis of the devices cuts the last dimension.
LAYOUTS = """
column, row = divmod(rank, 2)
mine = lambda x: x[:, 2 * row :][:, :2, 4 * column :][:, :, :4]
layout = Layout((2, 2), ("outer", "inner"))
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel",
                             dataset_strategy=(layout("None", "inner", "outer"), layout("None")))
"""


def losses(text):
    found = [float(loss) for loss in re.findall(r"loss (\S+)", text)]
    assert len(found) == 15, text
    return found


@pytest.mark.parametrize(("strategy", "workers"), [(COLUMNS, 2), (COLUMNS, 4), (BLOCKS, 4), (LAYOUTS, 4)])
@pytest.mark.parametrize("sinks", [False, True])
def test_a_model_joins_the_slices_that_its_workers_read(strategy, workers, sinks):
    training = TRAINING.replace("SINKS", str(sinks))
    whole = losses(output_alone(SETUP + ALONE + training))
    for text in outputs_of_workers(SETUP + strategy + training, workers):
        assert losses(text) == pytest.approx(whole, rel=1e-6)


WRAPPED = """
class Rows:
    def __init__(self, source):
        self.source = source

    def __len__(self):
        return 6

    def __iter__(self):
        return iter([tuple(row) for row in self.source.create_tuple_iterator(num_epochs=1)])

class Given(Rows):
    def __iter__(self):
        for row in self.source.create_dict_iterator(num_epochs=1):
            yield row["x"], row["y"]

class Loop(train.Callback):
    def on_train_epoch_end(self, run):
        assert all(row[0].shape == (4, 4, 8) for row in data.create_tuple_iterator(num_epochs=1))

data = ds.GeneratorDataset(batches, ["x", "y"], shuffle=False)
net = Net()
model = model_of(net)
model.train(1, KIND(data), [Losses(), Loop()])
model.train(1, lambda: (tuple(row) for row in data.create_tuple_iterator(num_epochs=1)), [Losses()])
for name, value in sorted(model.eval(KIND(data)).items()):
    print("loss", repr(float(value)), name)
print("loss", repr(float(np.abs(net.fc.weight.asnumpy()).sum())))
"""


@pytest.mark.parametrize("kind", ["Given", "Rows"])
def test_objects_of_a_script_that_read_datasets_are_joined_once(kind):
    code = WRAPPED.replace("KIND", kind)
    whole = losses(output_alone(SETUP + ALONE + code))
    for text in outputs_of_workers(SETUP + COLUMNS + code, 2):
        assert losses(text) == pytest.approx(whole, rel=1e-6)


DIVIDED = """
import muster
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten, self.fc = nn.Flatten(), nn.Dense(4 * 8, 3)
        self.product = ops.MatMul(transpose_b=True).shard(((1, 2), (1, 2)))

    def construct(self, x):
        return self.product(self.flatten(x), self.fc.weight) + self.fc.bias
"""


def test_strategies_of_operators_divide_what_slices_are_joined_to():
    training = TRAINING.replace("SINKS", "False").replace("net.fc.weight.asnumpy()", "GATHERED")
    training = training.replace("GATHERED", 'model.gather_parameters()["fc.weight"].asnumpy()')
    whole = losses(output_alone(SETUP + ALONE + training))
    held = 'print("held", muster.parallel.held_bytes(net))\n'
    for text in outputs_of_workers(SETUP + COLUMNS + DIVIDED + training + held, 2):
        assert losses(text) == pytest.approx(whole, rel=1e-5)
        assert int(re.search(r"held (\d+)", text)[1]) == 4 * (3 * 16 + 3)


ROWS = """
layout = Layout((2, 2), ("dp", "mp"))
half = rank // 2
mine = lambda x: x[2 * half :][:2, :, 4 * (rank % 2) :][:, :, :4]
def batches():
    numbers = np.random.RandomState(0)
    for _ in range(6):
        x, y = numbers.randn(4, 4, 8).astype(np.float32), numbers.randint(0, 3, 4).astype(np.int32)
        yield mine(x), y[2 * half :][:2]
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel",
                             dataset_strategy=(layout("dp", "None", "mp"), layout("dp")))
net = Net()
model_of(net).train(2, ds.GeneratorDataset(batches, ["x", "y"], shuffle=False))
print("sum", repr(float(np.abs(net.fc.weight.asnumpy()).sum())))
"""
ROWS_ALONE = """
net = Net()
model_of(net).train(2, ds.GeneratorDataset(batches, ["x", "y"], shuffle=False))
print("sum", repr(float(np.abs(net.fc.weight.asnumpy()).sum())))
"""


def test_workers_with_rows_of_their_own_join_the_slices_of_these_rows():
    wanted = float(re.search(r"sum (\S+)", output_alone(SETUP + ALONE + ROWS_ALONE))[1])
    for text in outputs_of_workers(SETUP + ROWS, 4):
        assert float(re.search(r"sum (\S+)", text)[1]) == pytest.approx(wanted, rel=1e-5)


ERRORS = """
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
def told(name, strategy, piece, prepare=lambda net: None):
    global mine
    mine = piece
    net = Net()
    prepare(net)
    try:
        ms.set_auto_parallel_context(dataset_strategy=strategy)
        model_of(net).train(1, ds.GeneratorDataset(batches, ["x", "y"], shuffle=False))
    except Exception as error:
        print(name, type(error).__name__, error)

told("dimensions:", ((1, 2), (1,)), lambda x: x)
told("parts:", ((1, 1, 3), (1,)), lambda x: x)
told("rows:", ((1, 1, 1), (4,)), lambda x: x)
told("shapes:", ((1, 1, 2), (1,)), lambda x: x[:, :, : 2 + 2 * rank])
try:
    ms.set_auto_parallel_context(dataset_strategy=(Layout((2,), ("mp",), [2, 3])("None", "None", "mp"),))
except ValueError as error:
    print("ranks:", error)
"""


def test_slices_that_do_not_fit_are_an_error_that_says_which():
    for text in outputs_of_workers(SETUP + ERRORS, 2):
        assert re.search(r"dimensions: ValueError .*shape \(4, 4, 8\) has 3 dimensions.*\(1, 2\)", text)
        assert re.search(r"parts: ValueError .*0 is cut by \(1, 1, 3\) into 3 .* 2 workers.*1, 2, or", text)
        assert re.search(r"rows: ValueError .*column 1 is cut by \(4,\) into 4 slices", text)
        assert re.search(r"shapes: ValueError .*reads a slice of shape \(4, 4, [24]\), and this", text)
        assert re.search(r"ranks: .*rank_list is an order of the workers from 0 on, not \[2, 3\]", text)


STAGES = """
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=2,
                             dataset_strategy=((1, 1, 2), (1,)))
mine = lambda x: x[:, :, 4 * rank :][:, :, :4]
net = Net()
net.flatten.pipeline_stage, net.fc.pipeline_stage = 0, 1
try:
    model_of(net).train(1, ds.GeneratorDataset(batches, ["x", "y"], shuffle=False))
except ValueError as error:
    print("stages:", error)
"""


def test_slices_do_not_go_with_stages():
    for text in outputs_of_workers(SETUP + STAGES, 2):
        assert re.search(r"stages: .*does not go with stages.*full_batch", text)


KILLED = """
import os, pathlib, signal
class Dies(train.Callback):
    def on_train_step_end(self, run):
        flag = pathlib.Path("died")
        if rank == DIES and run.original_args().cur_step_num == 9 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    def state_dict(self):
        return {}
    def load_state_dict(self, state):
        pass
"""
END = """
net = Net()
model = model_of(net)
model.train(3, ds.GeneratorDataset(batches, ["x", "y"], shuffle=False), [Dies()])
for name, value in model.gather_parameters().items():
    print("value", name, value.asnumpy().tobytes().hex())
"""


def test_a_killed_worker_comes_back_to_its_slices(tmp_path):
    ends = {}
    for dies in (None, 0, 1):
        folder = tmp_path / str(dies)
        folder.mkdir()
        script = SETUP + COLUMNS + KILLED.replace("DIES", str(dies)) + END
        ends[dies] = ends_of_a_script(folder, script, 2, dies)
    assert len(ends[None]) == 4
    assert ends[0] == ends[1] == ends[None]
