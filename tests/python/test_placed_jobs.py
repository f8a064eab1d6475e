"""Networks that are placed over several workers: the bits of one process, data from one reader, errors."""

import re
import time

import pytest
from digits import write_digits
from job import Job

SETUP = """
import hashlib
import numpy as np
import muster
from muster import nn, train
from muster.dataset import GeneratorDataset, MnistDataset, transforms, vision

muster.init()
muster.set_seed(5)
rank, workers = muster.get_rank(), muster.get_group_size()

class Net(nn.Cell):
    def __init__(self, places):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5, pad_mode="valid")
        self.fc1 = nn.Dense(4 * 12 * 12, 16)
        self.fc2 = nn.Dense(16, 10)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        for cell, place in zip((self.conv1, self.fc1, self.fc2), places):
            cell.place("MS_WORKER", place)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        return self.fc2(self.relu(self.fc1(self.flatten(x))))

def digits(**shards):
    dataset = MnistDataset(FOLDER, **shards)
    dataset = dataset.map([vision.Rescale(1 / 255.0, 0), vision.HWC2CHW()], "image")
    return dataset.map(transforms.TypeCast(muster.int32), "label").shuffle(100).batch(16, drop_remainder=True)

def model_of(net):
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    return train.Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy": train.Accuracy()})

class Losses(train.Callback):
    def on_train_step_end(self, run):
        print("loss", float(run.net_outputs.asnumpy()).hex())

def show_weights(model):
    weights = model.gather_parameters()
    print("weights", hashlib.sha256(b"".join(w.asnumpy().tobytes() for w in weights.values())).hexdigest())
"""

TRAINING = """
net = Net(PLACES)
model = model_of(net)
model.train(2, digits(), Losses())
print("accuracy", model.eval(digits()))
show_weights(model)
print("materialized", [p.name for p in net.get_parameters()])
"""


@pytest.fixture(name="digits", scope="module")
def digits_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, 160)
    return str(folder)


def outputs(code, workers, folder="", **variables):
    text = (SETUP + code).replace("FOLDER", repr(folder))
    with Job(text, workers, OMP_NUM_THREADS="1", **variables) as job:
        codes = [process.wait(120) for process in job.everybody()]
        found = [worker.output() for worker in job.workers]
    assert codes == [0] * (workers + 1), "\n\n".join(found)
    return found


def failures(code, workers, folder=""):
    """What each worker of a job says that must fail."""
    with Job((SETUP + code).replace("FOLDER", repr(folder)), workers) as job:
        assert all(worker.wait() != 0 for worker in job.workers)
        return [worker.output() for worker in job.workers]


def lines(text, word):
    return re.findall(rf"^{word} (.*)$", text, re.MULTILINE)


@pytest.fixture(name="alone", scope="module")
def alone_fixture(digits):
    [text] = outputs(TRAINING.replace("PLACES", "()"), 1, digits)
    return text


@pytest.mark.parametrize(
    ("places", "workers"), [((0, 1, 0), 2), ((1, 0, 1), 2), ((2, 0, 1), 3), ((3, 3, 1), 4)]
)
def test_losses_metrics_and_parameters_are_those_of_one_process(digits, alone, places, workers):
    for text in outputs(TRAINING.replace("PLACES", str(places)), workers, digits):
        assert len(lines(text, "loss")) == 20
        for word in ("loss", "accuracy", "weights"):
            assert lines(text, word) == lines(alone, word)


def test_place_changes_nothing_in_a_cluster_of_one(digits, alone):
    [text] = outputs(TRAINING.replace("PLACES", "(3, 4, 0)"), 1, digits)
    assert lines(text, "loss") == lines(alone, "loss")


PAIRED = """
import os
drawn = np.random.default_rng(int.from_bytes(os.urandom(8), "little"))  # deliberately another on each worker
calls = 0
def rows():
    global calls
    for _ in range(64):
        calls += 1
        label = int(drawn.integers(10))
        yield np.full((1, 4, 4), label, np.float32), np.int32(label)

class Same(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.ReLU().place("MS_WORKER", 1)
        self.factor = muster.Parameter(np.ones((), np.float32), name="factor")
    def construct(self, image):
        return self.first(image) * self.factor

class Apart(nn.LossBase):
    def __init__(self):
        super().__init__()
        self.place("MS_WORKER", 2)
    def construct(self, image, label):
        label = muster.ops.cast(label, muster.float32)
        return muster.ops.reduce_sum(muster.ops.abs(image[:, 0, 0, 0] - label))

net = Same()
model = train.Model(net, Apart(), nn.SGD(net.trainable_params(), 0.0))
model.train(2, GeneratorDataset(rows, ["image", "label"], shuffle=False).batch(8), Losses())
print("calls", calls)
"""


def test_image_and_label_of_an_unseeded_generator_stay_paired():
    texts = outputs(PAIRED, 3)
    for text in texts:
        assert {float.fromhex(loss) for loss in lines(text, "loss")} == {0.0}
        assert len(lines(text, "loss")) == 16
    calls = [int(*lines(text, "calls")) for text in texts]
    assert calls[0] == calls[2] == 0
    assert calls[1] >= 128


MADE_FIRST = """        self.last = nn.Tanh().place("MS_WORKER", 0)  # and used last
        self.nothing = nn.Identity().place("MS_WORKER", 2)
"""
UNLIKELY = PAIRED.replace("        self.first =", MADE_FIRST + "        self.first =").replace(
    "self.first(image) * self.factor",
    "self.first(self.nothing(image)) * self.factor + 0 * self.last(self.factor)",
)


def test_the_worker_that_uses_the_image_reads_alone_whatever_was_placed_before():
    texts = outputs(UNLIKELY, 3)
    calls = [int(*lines(text, "calls")) for text in texts]
    assert calls[0] == calls[2] == 0
    assert calls[1] >= 128
    for text in texts:
        assert {float.fromhex(loss) for loss in lines(text, "loss")} == {0.0}


def test_a_rank_that_no_worker_has_is_refused_where_it_is_placed():
    for text in failures("Net((0, 1, 7))", 2):
        assert re.search(
            r"ValueError: Dense 'fc2' \(<string>:\d+\): place: there is no worker 7 in this job of 2: "
            "choose a rank from 0 to 1",
            text,
        )


def test_a_placed_cell_that_is_never_called_is_named_before_the_first_step(digits):
    code = """
net = Net((0, 1, 1))
net.spare = nn.Dense(3, 3)
net.spare.place("MS_WORKER", 1)
model_of(net).train(1, digits(), Losses())
"""
    for text in failures(code, 2, digits):
        assert re.search(
            r"Dense 'spare' \(<string>:\d+\) is placed on worker 1, but the network never calls it", text
        )
        assert lines(text, "loss") == []


def test_pynative_mode_says_that_place_needs_graph_mode():
    for text in failures("muster.set_context(mode='eager')\nNet((0, 1, 1))", 2):
        assert "PYNATIVE_MODE" in text
    later = """
net = Net((0, 1, 1))
muster.set_context(mode="eager")
net(muster.Tensor(np.zeros((1, 1, 28, 28), np.float32)))
"""
    for text in failures(later, 2):
        assert re.search(r"Conv2d 'conv1' \(<string>:\d+\): place: in PYNATIVE_MODE", text)


def test_workers_that_place_otherwise_are_told_before_the_first_step(digits):
    code = "net = Net((0, 1, rank)); model_of(net).train(1, digits(), Losses())"
    for text in failures(code, 2, digits):
        assert re.search(
            r"rank 0 has placed Dense 'fc2' on worker 0 .* where rank 1 has placed Dense 'fc2' on worker 1",
            text,
        )
        assert lines(text, "loss") == []


STEP = """
net = Net((1, 0, 2))
optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
criterion = nn.CrossEntropyLoss()
step = muster.value_and_grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)
"""
LOOP = (
    STEP
    + """
for epoch in range(2):
    for image, label in digits().create_tuple_iterator():
        loss, gradients = step(image, label)
        optimizer(gradients)
        print("loss", float(loss.asnumpy()).hex())
"""
)


def test_a_loop_by_hand_has_the_losses_of_one_process(digits):
    [alone] = outputs(LOOP, 1, digits)
    for text in outputs(LOOP, 3, digits):
        assert lines(text, "loss") == lines(alone, "loss")


def test_what_another_worker_has_is_not_read_but_named(digits):
    code = (
        LOOP
        + """
for name, value in (("gradient", gradients[0]), ("parameter", net.conv1.weight)):
    try:
        value.asnumpy()
        print(name, "here")
    except ValueError as error:
        print(name, error)
"""
    )
    texts = outputs(code, 3, digits)
    assert lines(texts[1], "gradient") == lines(texts[1], "parameter") == ["here"]
    for text in (texts[0], texts[2]):
        assert re.match(r"the gradient of 'conv1.weight' is on worker 1", *lines(text, "gradient"))
        assert re.match(r"parameter 'conv1.weight' is on worker 1 \(Conv2d", *lines(text, "parameter"))


def test_a_loss_is_read_while_the_others_stand_still(digits, tmp_path):
    code = (
        STEP
        + f"""
import os, pathlib, signal
folder = pathlib.Path({str(tmp_path)!r})
(folder / str(rank)).write_text(str(os.getpid()))
losses = [step(image, label)[0] for image, label in digits().create_tuple_iterator()]
muster.ops.all_reduce(muster.Tensor(np.ones(1, np.float32)), "sum").asnumpy()  # all have come here
others = [int((folder / str(other)).read_text()) for other in (1, 2)] if rank == 0 else []
for other in others:
    os.kill(other, signal.SIGSTOP)
for loss in losses:
    print("loss", float(loss.asnumpy()).hex())
for other in others:
    os.kill(other, signal.SIGCONT)
"""
    )
    texts = outputs(code, 3, digits)
    assert len(lines(texts[0], "loss")) == 10
    assert lines(texts[0], "loss") == lines(texts[1], "loss") == lines(texts[2], "loss")


LARGE = """
class Large(nn.Cell):
    def __init__(self):
        super().__init__()
        self.small = nn.Dense(10, 10_000).place("MS_WORKER", 0)
        self.large = nn.Dense(10_000, 10_000, "ones", has_bias=False).place("MS_WORKER", 1)  # 400 MB
        self.last = nn.Dense(10_000, 10).place("MS_WORKER", 2)

    def construct(self, x):
        return self.last(self.large(self.small(x)))

def rows():
    for _ in range(2):
        yield np.ones(10, np.float32), np.int32(1)

net = Large()
model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.01))
model.train(1, GeneratorDataset(rows, ["x", "label"], shuffle=False).batch(1), Losses())
status = open("/proc/self/status").read()
print("peak_mb", int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


def test_only_its_worker_has_the_memory_of_a_layer_of_400_mb():
    peaks = [int(*lines(text, "peak_mb")) for text in outputs(LARGE, 3)]
    assert peaks[1] > 400
    assert max(peaks[0], peaks[2]) < 300


def test_a_worker_that_dies_is_named_with_the_edge_on_which_others_waited(digits):
    code = """
import os, signal
net = Net((0, 1, 2))
die = train.LambdaCallback(
    on_train_step_end=lambda run: run.cur_step_num == 3 and rank == 1 and os.kill(os.getpid(), signal.SIGKILL)
)
model_of(net).train(50, digits(), die)
"""
    with Job((SETUP + code).replace("FOLDER", repr(digits)), 3) as job:
        job.workers[1].wait()
        begin = time.monotonic()
        assert all(job.workers[rank].wait() not in (0, None) for rank in (0, 2))
        assert time.monotonic() - begin < 2
        texts = [job.workers[rank].output() for rank in (0, 2)]
    for text in texts:
        assert "worker 1" in text
        # Who waited for the other survivor was told by that one.
        assert re.search(r"while (waiting for|sending) .* (from|to) worker [012]: .*worker 1", text), text


REPLICATED = """
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
net = Net(PLACES)
copies, copy = muster.get_replica_count(), muster.get_replica_rank()
print("copy", copy, "of", copies)
model = model_of(net)
dataset = MnistDataset(FOLDER, num_shards=copies, shard_id=copy)
dataset = dataset.map([vision.Rescale(1 / 255.0, 0), vision.HWC2CHW()], "image")
dataset = dataset.map(transforms.TypeCast(muster.int32), "label").batch(8, drop_remainder=True)
model.train(2, dataset, Losses())
show_weights(model)
"""


def test_copies_of_a_divided_network_train_as_copies_of_a_whole_one(digits):
    whole = outputs(REPLICATED.replace("PLACES", "()"), 2, digits)
    divided = outputs(REPLICATED.replace("PLACES", "(0, 1, 0)"), 4, digits)
    assert [lines(text, "copy") for text in divided] == [["0 of 2"], ["0 of 2"], ["1 of 2"], ["1 of 2"]]
    for rank, text in enumerate(divided):
        assert len(lines(text, "loss")) == 20
        assert lines(text, "loss") == lines(whole[rank // 2], "loss")
        assert lines(text, "weights") == lines(whole[0], "weights")


def test_a_world_that_is_no_multiple_of_the_placed_ranks_is_refused(digits):
    code = REPLICATED.replace("PLACES", "(0, 1, 1)")
    for text in failures(code, 3, digits):
        assert "placed on 2 ranks" in text
        assert all(part in text for part in ("3 workers", "multiple of 2"))


@pytest.mark.parametrize("mode", ["data_parallel", "stand_alone"])
def test_a_shard_for_each_worker_is_refused_where_workers_share_a_copy(digits, mode):
    code = f"""
muster.set_auto_parallel_context(parallel_mode="{mode}")
net = Net((0, 1, 1))
model_of(net).train(1, digits(num_shards=workers, shard_id=rank), Losses())
"""
    for text in failures(code, 2, digits):
        assert "num_shards=get_replica_count()" in text and "here 1" in text
        assert lines(text, "loss") == []


SAVED = """
net = Net(PLACES)
model = model_of(net)
saver = train.ModelCheckpoint(f"net{rank}", FOLDER, train.CheckpointConfig(save_checkpoint_steps=20))
model.train(2, digits(), saver)
again = Net(PLACES)
muster.load_param_into_net(again, muster.load_checkpoint(saver.latest_ckpt_file_name))
print("accuracy", model_of(again).eval(digits()) == model.eval(digits()))
show_weights(model)
show_weights(model_of(again))
"""


def test_a_checkpoint_of_a_divided_network_is_whole(digits):
    for text in outputs(SAVED.replace("PLACES", "(1, 0, 1)"), 2, digits):
        assert lines(text, "accuracy") == ["True"]
        assert len(set(lines(text, "weights"))) == 1


def test_saving_on_one_worker_alone_is_refused(digits):
    code = """
net = Net((0, 1, 1))
saver = [train.ModelCheckpoint("net", FOLDER)] if rank == 0 else []
model_of(net).train(1, digits(), saver)
"""
    for text in failures(code, 2, digits):
        assert all(part in text for part in ("rank 0", "1 ModelCheckpoint", "callbacks", "rank 1", "has 0"))


PIECES = """
class Residual(nn.Cell):
    def __init__(self, places):
        super().__init__()
        self.flatten = nn.Flatten()
        self.first = nn.Dense(784, 12)
        self.shared = nn.Dense(12, 12)  # used by both of the next, on two workers
        self.left = nn.SequentialCell(self.shared, nn.ReLU())
        self.right = nn.SequentialCell(self.shared, nn.Tanh(), nn.Dense(12, 12))
        self.last = nn.Dense(12, 10)
        for cell, place in zip((self.first, self.left, self.right, self.last), places):
            cell.place("MS_WORKER", place)

    def construct(self, x):
        x = self.first(self.flatten(x))
        return self.last(x + self.right(self.left(x)))

def uneven(rows):
    dataset = MnistDataset(FOLDER).map(vision.Rescale(1 / 255.0, 0), "image")
    return dataset.map(transforms.TypeCast(muster.int32), "label").batch(rows)

net = Residual(PLACES)
model = model_of(net)
model.fit(2, uneven(48), uneven(70), callbacks=Losses())
print("accuracy", model.eval(uneven(33)))
ones = muster.Tensor(np.ones((2, 28, 28, 1), np.float32))
print("predicted", model.predict(ones).asnumpy().tobytes().hex())
show_weights(model)
"""


def test_skips_shared_layers_and_changing_batches_keep_the_bits(digits):
    [alone] = outputs(PIECES.replace("PLACES", "()"), 1, digits)
    for text in outputs(PIECES.replace("PLACES", "(0, 2, 1, 0)"), 3, digits):
        for word in ("loss", "accuracy", "predicted", "weights"):
            assert lines(text, word) == lines(alone, word)


def test_micro_batches_change_no_more_than_rounding(digits):
    code = TRAINING.replace("Losses())", "Losses(), micro_batches=4)")
    [whole] = outputs(TRAINING.replace("PLACES", "()"), 1, digits)
    [alone] = outputs(code.replace("PLACES", "()"), 1, digits)
    placed = outputs(code.replace("PLACES", "(0, 1, 2)"), 3, digits)
    for text in placed:
        for word in ("loss", "accuracy", "weights"):
            assert lines(text, word) == lines(alone, word)
    numbers = [[float.fromhex(loss) for loss in lines(text, "loss")] for text in (alone, whole)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-4)


# Which branch is taken, and how often the loop runs, is decided by what another worker has computed.
DECIDING = """
class Deciding(Net):
    def __init__(self, places):
        super().__init__(places)
        self.bright, self.dark = nn.Tanh(), nn.ReLU()
        for cell, place in zip((self.bright, self.dark), places[1:2] * 2):  # both branches
            cell.place("MS_WORKER", place)

    def construct(self, x):
        scores = super().construct(x)
        is_bright = x.mean() > 0.05
        scores = muster.ops.cond(is_bright, lambda: self.bright(scores), lambda: self.dark(scores))
        rounds = 1 + is_bright.astype(muster.int32)
        counted = muster.ops.while_loop(lambda n: n < rounds, lambda n: n + 1, muster.Tensor(0))
        return scores * muster.ops.cast(counted, muster.float32)

net = Deciding(PLACES)
model = model_of(net)
model.train(1, digits(), Losses())
show_weights(model)
"""


def test_branches_and_loops_of_a_placed_network_keep_the_bits(digits):
    [alone] = outputs(DECIDING.replace("PLACES", "()"), 1, digits)
    assert len(lines(alone, "loss")) == 10
    for text in outputs(DECIDING.replace("PLACES", "(0, 1, 2)"), 3, digits):
        assert lines(text, "loss") == lines(alone, "loss")
        assert lines(text, "weights") == lines(alone, "weights")


# Zeros and ones, halves of them dropped twice: no sum rounds, so the parts of a batch have its bits.
DROPPED = """
class Sums(nn.Cell):
    def __init__(self, places):
        super().__init__()
        self.first, self.second = nn.Dropout(p=0.5), nn.Dropout(p=0.5)
        self.weight = muster.Parameter(np.ones((784,), np.float32), name="weight")
        self.flatten = nn.Flatten()
        for cell, place in zip((self.first, self.second), places):
            cell.place("MS_WORKER", place)

    def construct(self, image):
        bright = muster.ops.cast(self.flatten(image) > 100, muster.float32)
        rows = muster.ops.reduce_sum(self.second(self.first(bright) * self.weight), (1,))
        return muster.ops.reduce_mean(rows)

net = Sums(PLACES)
model = train.Model(net, optimizer=nn.SGD(net.trainable_params(), 0.25))
dataset = MnistDataset(FOLDER, shuffle=False).project(["image"]).batch(16)
model.train(1, dataset, Losses(), micro_batches=PARTS)
show_weights(model)
"""


def test_micro_batches_drop_what_the_whole_batch_drops(digits):
    [alone] = outputs(DROPPED.replace("PLACES", "()").replace("PARTS", "1"), 1, digits)
    assert len(set(lines(alone, "loss"))) > 1
    for text in outputs(DROPPED.replace("PLACES", "(0, 1)").replace("PARTS", "4"), 2, digits):
        assert lines(text, "loss") == lines(alone, "loss")
        assert lines(text, "weights") == lines(alone, "weights")


def test_a_batch_that_cannot_be_split_is_refused(digits):
    code = "net = Net((0, 1, 1)); model_of(net).train(1, digits(), Losses(), micro_batches=3)"
    for text in failures(code, 2, digits):
        assert all(part in text for part in ("16 samples", "split", "3 equal", "micro_batches"))


def test_one_worker_may_compute_by_itself_before_copies_train(digits):
    code = REPLICATED.replace("PLACES", "(0, 1, 0)").replace(
        "model = model_of(net)",
        "model = model_of(net)\nif rank == 2: print('by itself', (muster.Tensor([1.0]) + 2).tolist())",
    )
    texts = outputs(code, 4, digits)
    assert lines(texts[2], "by itself") == ["[3.0]"]
    assert lines(texts[0], "weights") == lines(texts[3], "weights")
