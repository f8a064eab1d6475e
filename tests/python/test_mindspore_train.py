"""Model, callbacks, metrics and checkpoints by MindSpore's names."""

import re
import subprocess
import sys

import pytest
from digits import write_digits
from job import clean_environment

NETWORK = """
import mindspore as ms
import mindspore.dataset as ds
import mindspore.nn as nn
from mindspore import set_seed, train
from mindspore.train import Model
from mindspore.train.callback import LossMonitor, TimeMonitor
from mindspore.train.metrics import Accuracy


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(28 * 28, 10)

    def construct(self, x):
        return self.fc(self.flatten(x))


def create_dataset(folder):
    dataset = ds.MnistDataset(folder)
    dataset = dataset.map(ds.vision.Rescale(1 / 255.0, 0), "image")
    return dataset.map(ds.transforms.TypeCast(ms.int32), "label").batch(20, drop_remainder=True)


set_seed(1)
ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
net = Net()
opt = nn.Momentum(filter(lambda x: x.requires_grad, net.get_parameters()), 0.1, 0.9)
"""

# What mindspore 2.7.0 wrote: "b" float32 [1, -2], "s" float32 0.5, "m" bool [True, False], "l" int64 [[7]].
FROM_MINDSPORE = bytes.fromhex(
    "0a1a0a0162121508021207466c6f617433321a080000803f000000c0"
    "0a140a0173120f1207466c6f617433321a040000003f"
    "0a110a016d120c08021204426f6f6c1a020100"
    "0a1a0a016c1215080108011205496e7436341a080700000000000000"
)


def run(folder, code):
    done = subprocess.run(
        [sys.executable, "-c", NETWORK + code],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(name="folder")
def folder_fixture(tmp_path):
    write_digits(tmp_path / "train", 100)
    return tmp_path


def test_a_model_passes_on_what_it_is_given(folder):
    lines = run(
        folder,
        """
class Three(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = net

    def construct(self, image, label):
        return label, self.net(image), ms.ops.cast(label, ms.float32).mean() * 0 + 7

model = Model(net, nn.CrossEntropyLoss(), opt, {"loss", "accuracy"}, Three(), [2, 1, 0])
print(model.eval(create_dataset("train"))["loss"])
evaluated = []
note = train.LambdaCallback(on_train_epoch_end=lambda run: evaluated.append(len(run.eval_results) > 0))
model.fit(4, create_dataset("train"), create_dataset("train"), 2, note)
print(evaluated)
""",
    )
    assert lines == ["7.0", "[False, True, False, True]"]


def test_a_script_trains_and_evaluates_as_its_author_means_it(folder):
    lines = run(
        folder,
        """
model = Model(net, nn.CrossEntropyLoss(), opt, metrics={"Accuracy": Accuracy()})
model.train(6, create_dataset("train"), callbacks=[LossMonitor(), TimeMonitor()], dataset_sink_mode=False)
print("Accuracy is:", model.eval(create_dataset("train"), dataset_sink_mode=False))
""",
    )
    assert lines[0].startswith("epoch: 1 step: 1, loss is 2.")
    assert lines[5].startswith("Train epoch time: ")
    assert lines[-1].startswith("Accuracy is: {'Accuracy': ") and float(lines[-1][26:-1]) > 0.8


def test_a_time_monitor_says_the_time_of_data_where_asked(folder):
    lines = run(
        folder,
        """
model = Model(net, nn.CrossEntropyLoss(), opt, metrics={"accuracy"})
monitor = TimeMonitor(data_time=True)
model.fit(1, create_dataset("train"), create_dataset("train"), callbacks=monitor)
try:
    TimeMonitor(data_time=1)
except TypeError as error:
    print(error)
""",
    )
    assert re.search(r"^Train epoch time: .* ms, per step time: .* \(data time: \d+\.\d{3} ms\)$", lines[1])
    assert re.search(r"^Eval epoch time: [^(]*$", lines[0])
    assert lines[-1] == "TimeMonitor: data_time is True or False, not 1"


def test_a_training_that_leaves_no_epoch_is_an_error(folder):
    lines = run(
        folder,
        """
model = Model(net, nn.CrossEntropyLoss(), opt, metrics={"accuracy"})
for epoch in (3, 2, 0):
    try:
        model.train(epoch, create_dataset("train"), initial_epoch=3 if epoch else 0)
    except ValueError as error:
        print(error)
    try:
        model.fit(epoch, create_dataset("train"), create_dataset("train"), initial_epoch=3 if epoch else 0)
    except ValueError as error:
        print(error)
""",
    )
    assert len(lines) == 6
    left = "which leaves no epoch: epoch counts those before, too"
    assert lines[0] == f"Model.train: epoch is 3 and initial_epoch 3, {left}"
    assert lines[1] == f"Model.fit: epoch is 3 and initial_epoch 3, {left}"
    assert lines[4] == f"Model.train: epoch is 0 and initial_epoch 0, {left}"


def test_checkpoints_are_saved_each_few_steps_for_each_worker(folder):
    lines = run(
        folder,
        """
config = train.CheckpointConfig(save_checkpoint_steps=3, keep_checkpoint_max=5)
saver = train.ModelCheckpoint(prefix="train", directory="./ckpt_of_rank/" + str(0), config=config)
model = ms.Model(net, loss_fn=nn.CrossEntropyLoss(), optimizer=opt)
model.train(2, create_dataset("train"), callbacks=[saver])
values = ms.load_checkpoint("ckpt_of_rank/0/train-2_1.ckpt")
print(sorted(values))
print(ms.load_param_into_net(Net(), values))
ms.save_checkpoint(net, "copy", append_dict={"epoch": 2})
print(ms.load_checkpoint("copy.ckpt")["epoch"].asnumpy())
""",
    )
    names = sorted(path.name for path in (folder / "ckpt_of_rank/0").glob("*.ckpt"))
    assert names == ["train-1_3.ckpt", "train-2_1.ckpt", "train-2_4.ckpt", "train-2_5.ckpt"]
    assert "'fc.weight'" in lines[0] and "'moments.fc.bias'" in lines[0]
    assert lines[1].startswith("([], [")
    assert lines[2] == "2"


def test_a_file_that_mindspore_wrote_is_read(folder):
    (folder / "theirs.ckpt").write_bytes(FROM_MINDSPORE)
    lines = run(
        folder,
        """
for name, value in ms.load_checkpoint("theirs.ckpt").items():
    print(name, value.dtype, value.shape, value.asnumpy().tolist())
""",
    )
    assert lines == [
        "b Float32 (2,) [1.0, -2.0]",
        "s Float32 () 0.5",
        "m Bool (2,) [True, False]",
        "l Int64 (1, 1) [[7]]",
    ]


def test_own_callbacks_and_metrics_see_what_they_know(folder):
    lines = run(
        folder,
        """
class Mine(train.Callback):
    def on_train_step_end(self, run_context):
        cb_params = run_context.original_args()
        if cb_params.cur_step_num == 2:
            print(cb_params.cur_epoch_num, cb_params.batch_num, cb_params.optimizer is opt)
            run_context.request_stop()


class Rows(train.Metric):
    def clear(self):
        self.rows = 0

    @train.rearrange_inputs
    def update(self, *inputs):
        self.rows += self._convert_data(inputs[0]).shape[0]

    def eval(self):
        return self.rows


model = train.Model(net, nn.CrossEntropyLoss(), opt, metrics={"rows": Rows(), "acc": nn.Accuracy()})
model.train(3, create_dataset("train"), callbacks=Mine(), dataset_sink_mode=True)
print(model.eval(create_dataset("train"))["rows"])
""",
    )
    assert lines == ["1 5 True", "100"]


def test_what_is_not_provided_says_so(folder):
    run(
        folder,
        """
import contextlib


@contextlib.contextmanager
def refused(words):
    try:
        yield
    except (NotImplementedError, AttributeError, ImportError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)


with refused("boost_level"):
    Model(net, boost_level="O1")
with refused("enc_key"):
    train.CheckpointConfig(enc_key=b"0123456789abcdef")
with refused("mindspore.train.TrainFaultTolerance"):
    train.TrainFaultTolerance()
""",
    )


def test_a_training_is_kept_backed_up_and_ended_by_a_signal(folder):
    lines = run(
        folder,
        """
import os
import signal


class Signalled(train.Callback):
    def on_train_step_begin(self, run_context):
        if run_context.original_args().cur_step_num == 7:
            os.kill(os.getpid(), signal.SIGTERM)


history = train.History()
collector = train.SummaryCollector("./summary")
model = train.Model(net, nn.CrossEntropyLoss(), opt)
model.train(2, create_dataset("train"), callbacks=[history, collector, train.BackupAndRestore("./backup")])
print(history.epoch, len(history.history["net_output"]), os.path.exists("backup/backup.ckpt"))
leave = train.OnRequestExit(file_name="left", save_mindir=False)
model.train(3, create_dataset("train"), callbacks=[leave, Signalled(), history])
print(history.epoch, sorted(ms.load_checkpoint("rank_0/left_train.ckpt")) != [])
""",
    )
    assert lines == ["{'epoch': [1, 2]} 2 False", "{'epoch': [1, 2]} True"]


def test_checkpoints_count_epochs_and_steps_and_take_numbers_by_name(folder):
    lines = run(
        folder,
        """
def saved(prefix, **settings):
    config = train.CheckpointConfig(save_checkpoint_steps=5, **settings)
    saver = train.ModelCheckpoint(prefix=prefix, directory=".", config=config)
    model = ms.Model(net, loss_fn=nn.CrossEntropyLoss(), optimizer=opt)
    model.train(2, create_dataset("train"), callbacks=[saver])
    return ms.load_checkpoint(saver.latest_ckpt_file_name)


found = saved("a", append_info=["epoch_num", "step_num", {"lr": 0.5}])
numbers = [found[name].asnumpy().tolist() for name in ("epoch_num", "step_num", "lr")]
print(numbers, "moments.fc.bias" in found)
print(list(saved("b", append_info=[{"epoch_num": 3}], saved_network=net))[-2:])
for wrong in ("lr", ["lr"], [{}, {}], [{1: 2}], [{"tag": "a text"}], [3]):
    try:
        train.CheckpointConfig(append_info=wrong)
    except (TypeError, ValueError) as error:
        print(error)
""",
    )
    assert lines[0] == "[2, 10, 0.5] True"
    assert lines[1] == "['fc.bias', 'epoch_num']"
    assert len(lines) == 8 and all("CheckpointConfig: append_info" in line for line in lines[2:])


def test_metrics_take_what_an_evaluation_gives(folder):
    lines = run(
        folder,
        """
class Pair(nn.Cell):
    def construct(self, image, label):
        return net(image), label


class Rows(train.Metric):
    def clear(self):
        self.shapes = []

    def update(self, *inputs):
        self.shapes.append([tuple(each.shape) for each in inputs])

    def eval(self):
        return self.shapes[0]


model = ms.Model(net, eval_network=Pair(), metrics={"acc": train.Accuracy(), "rows": Rows()})
found = model.eval(create_dataset("train"), dataset_sink_mode=False)
print(found["rows"], 0 <= found["acc"] <= 1)
loss = train.Loss()
loss.update(ms.Tensor([1.0, 3.0]))
loss.update(ms.Tensor(4.0))
print(loss.eval())
for wrong in (ms.Tensor([[1.0, 2.0]]), ms.Tensor([], ms.float32)):
    try:
        loss.update(wrong)
    except ValueError as error:
        print(error)
model = ms.Model(net, nn.CrossEntropyLoss(reduction="none"), metrics={"loss"})
print(model.eval(create_dataset("train"))["loss"] > 0)
""",
    )
    assert lines[0].endswith(",)] True") and lines[1] == "3.0"
    assert all("Loss.update" in line for line in lines[2:4])
    assert lines[4] == "True"
