"""save_checkpoint of what is divided: wholes by a call of all workers, or the pieces of each with their
layout in the file, which every layout and one process load again."""

import re

import pytest
from job import Job, output_alone, outputs_of_workers, run_alone

SETUP = """
import hashlib, os
import numpy as np
import mindspore as ms
import muster
from mindspore import Parameter, Tensor, nn, ops, train
from mindspore import dataset as ds
from mindspore.communication import get_group_size, get_rank, init

ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(3)
rank, workers, folder = get_rank(), get_group_size(), os.environ.get("FOLDER", "FOLDER_OF_ONE")
if workers > 1:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    ms.set_auto_parallel_context(**SETTINGS)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = Parameter(Tensor(np.zeros((8, 16)), ms.float32), name="first")
        self.second = Parameter(Tensor(np.zeros((16, 4)), ms.float32), name="second")
        self.scale = Parameter(Tensor(np.zeros(4), ms.float32), name="scale")
        self.product1, self.product2 = ops.MatMul(), ops.MatMul()
        strategies = STRATEGIES
        if workers > 1 and strategies:
            self.product1.shard(strategies[0])
            self.product2.shard(strategies[1])

    def construct(self, x):
        return self.product2(ops.tanh(self.product1(x, self.first)), self.second) * self.scale

def values():
    numbers = np.random.RandomState(7)
    return {name: numbers.randn(*shape).astype(np.float32)
            for name, shape in (("first", (8, 16)), ("second", (16, 4)), ("scale", (4,)))}

x = Tensor(np.random.RandomState(1).randn(4, 8).astype(np.float32))
y = Tensor(np.random.RandomState(2).randint(0, 4, 4).astype(np.int32))

def hash_of(values):
    digest = hashlib.sha256()
    for name in sorted(values):
        digest.update(name.encode() + values[name].asnumpy().tobytes())
    return digest.hexdigest()

net = Net()
optimizer = nn.Adam(net.trainable_params(), 0.01)
model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
def data():
    for _ in range(3):
        yield x.asnumpy(), y.asnumpy()
rows = ds.GeneratorDataset(data, ["x", "y"], shuffle=False)
"""
SAVING = """
for parameter in net.get_parameters():
    parameter.set_data(Tensor(values()[parameter.name]))
model.train(1, rows)
for each in (f"pieces/rank_{rank}", f"all/rank_{rank}", "whole"):
    os.makedirs(f"{folder}/{each}", exist_ok=True)
for ending in ("ckpt", "safetensors"):
    ms.save_checkpoint(net, f"{folder}/pieces/rank_{rank}/net.{ending}", integrated_save=False, format=ending)
    ms.save_checkpoint(model.train_network, f"{folder}/all/rank_{rank}/net.{ending}", integrated_save=False,
                       format=ending)
    ms.save_checkpoint(net, f"{folder}/whole/net_{rank}.{ending}", format=ending)
whole = model.gather_parameters()
print("hash", hash_of(whole))
print("held", {name: value.shape for name, value in
               ms.load_checkpoint(f"{folder}/pieces/rank_{rank}/net.ckpt").items()})
for ending in ("ckpt", "safetensors"):
    print("whole", hash_of(ms.load_checkpoint(f"{folder}/whole/net_{rank}.{ending}")))
"""
LOADING = """
net.set_train(False)
for compiles in (False, True):
    if compiles:
        model.infer_train_layout(rows) if workers > 1 else net.compile(x)
    for ending in ("ckpt", "safetensors"):
        for source in (rank, 3):
            for parameter in net.get_parameters():
                parameter.set_data(Tensor(np.zeros(parameter.shape, np.float32)))
            read = ms.load_checkpoint(f"{folder}/pieces/rank_{source}/net.{ending}", format=ending)
            assert ms.load_param_into_net(net, read)[0] == []
            print("hash", hash_of(train.Model(net).gather_parameters()))
"""
COLUMNS = "(((1, 1), (1, 4)), ((1, 4), (4, 1)))"
SQUARE = "(((2, 1), (1, 2)), ((2, 2), (2, 1)))"
LAYOUTS = {
    "columns": (COLUMNS, "{}"),
    "square": (SQUARE, "{}"),
    "zero": (
        "None",
        "{'enable_parallel_optimizer': True, 'parallel_optimizer_config': "
        "{'parallel_optimizer_threshold': 0, 'optimizer_level': 'level3'}, "
        "'dataset_strategy': 'data_parallel'}",
    ),
    "square, zero": (
        SQUARE,
        "{'enable_parallel_optimizer': True, 'parallel_optimizer_config': "
        "{'parallel_optimizer_threshold': 0}}",
    ),
    "stages": ("None", "{'pipeline_stages': 2}"),
}


def script(layout, code, folder=""):
    strategies, settings = LAYOUTS[layout]
    made = SETUP + code
    for word, text in (
        ("STRATEGIES", strategies),
        ("SETTINGS", settings),
        ("FOLDER_OF_ONE", str(folder)),
    ):
        made = made.replace(word, text)
    return made


def hashes(text, count):
    found = re.findall(r"hash (\S+)", text)
    assert len(found) == count, text
    return set(found)


@pytest.fixture(name="saved", scope="module", params=["columns", "square", "zero", "square, zero"])
def saved_fixture(request, tmp_path_factory):
    """A folder with what four workers of a layout have saved, and the hash of the wholes."""
    folder = tmp_path_factory.mktemp("saved")
    texts = outputs_of_workers(script(request.param, SAVING), 4, FOLDER=str(folder))
    (wanted,) = set().union(*(hashes(text, 1) for text in texts))
    for text in texts:
        assert re.findall(r"whole (\S+)", text) == [wanted, wanted], text
        assert "'first': (8, 16)" not in text
    return request.param, folder, wanted


def test_pieces_are_loaded_by_one_process(saved):
    _, folder, wanted = saved
    assert hashes(output_alone(script("columns", LOADING, folder)), 8) == {wanted}
    joined = 'print("hash", hash_of(ms.load_segmented_checkpoints(f"{folder}/whole")))\n'
    assert hashes(output_alone(script("columns", joined, folder)), 1) == {wanted}


@pytest.mark.parametrize("layout", ["columns", "square", "zero"])
def test_pieces_are_loaded_by_every_layout(saved, layout):
    _, folder, wanted = saved
    for text in outputs_of_workers(script(layout, LOADING), 4, FOLDER=str(folder)):
        assert hashes(text, len(re.findall("hash", text))) == {wanted}


GOING_ON = """
source, target = f"{folder}/all", f"{folder}/other"
if workers == 1:
    ms.transform_checkpoints(source, target, "made_")
    ms.unified_safetensors(source, None, f"{folder}/unified")
    ms.load_distributed_checkpoint(net, [f"{source}/rank_{each}/net.ckpt" for each in range(4)])
    print("hash", hash_of({p.name: p for p in net.get_parameters()}))
    for path in (f"{target}/rank_0/made_0.ckpt", f"{folder}/unified/part0.safetensors"):
        read = ms.load_checkpoint(path)
        assert {"moment1.first", "moments.first"} & set(read) or len(read) > 6, sorted(read)
        ms.load_param_into_net(net, read)
        print("hash", hash_of({p.name: p for p in net.get_parameters()}))
"""


def test_the_names_for_other_layouts_join_pieces(saved):
    _, folder, wanted = saved
    assert hashes(output_alone(script("columns", GOING_ON, folder)), 3) == {wanted}


CONTINUED = """
trained = train.Model(net, nn.CrossEntropyLoss(), optimizer)
for parameter in net.get_parameters():
    parameter.set_data(Tensor(values()[parameter.name]))
trained.train(1, rows)
if INTERRUPTED:
    ms.save_checkpoint(trained.train_network, f"{folder}/rank_{rank}.ckpt", integrated_save=False)
    for parameter in trained.train_network.get_parameters():
        if parameter.dtype == ms.float32:
            parameter.set_data(Tensor(np.zeros(parameter.shape, np.float32)))
    read = ms.load_checkpoint(f"{folder}/rank_{rank}.ckpt")
    assert ms.load_param_into_net(trained.train_network, read)[0] == []
trained.train(1, rows)
print("hash", hash_of(trained.gather_parameters()))
"""


@pytest.mark.parametrize("layout", ["square", "zero", "square, zero"])
def test_a_training_goes_on_from_its_pieces_and_those_of_its_optimizer(tmp_path, layout):
    ends = []
    for interrupted in ("False", "True"):
        code = script(layout, CONTINUED.replace("INTERRUPTED", interrupted))
        ends.append([hashes(text, 1) for text in outputs_of_workers(code, 4, FOLDER=str(tmp_path))])
    assert ends[0] == ends[1]


MISSING = """
def told(name, call):
    try:
        call()
        print(name, "no error")
    except Exception as error:
        print(name, type(error).__name__, error)

told("gone:", lambda: ms.load_checkpoint(f"{folder}/pieces/rank_1/net.ckpt", net))
os.rename(f"{folder}/pieces/rank_1/net.ckpt", f"{folder}/pieces/mine.ckpt")
told("unnamed:", lambda: ms.load_checkpoint(f"{folder}/pieces/mine.ckpt", net))
told("one:", lambda: ms.load_distributed_checkpoint(net, [f"{folder}/pieces/rank_0/net.ckpt"]))
"""


def test_pieces_whose_others_are_missing_are_an_error_that_says_which(tmp_path):
    outputs_of_workers(script("columns", SAVING), 4, FOLDER=str(tmp_path))
    (tmp_path / "pieces/rank_2/net.ckpt").unlink()
    text = output_alone(script("columns", MISSING, tmp_path))
    assert re.search(
        r"gone: ValueError .*rank_1/net.ckpt' has the pieces of worker 1 of 4 .*"
        r"rank_2/net.ckpt' is missing.*load_distributed_checkpoint",
        text,
    ), text
    assert re.search(r"unnamed: ValueError .*no number in its name", text), text
    assert re.search(r"one: ValueError .*of its 128 elements the files have 32.*all ranks", text), text


SEVERAL = """
def save(name):
    os.makedirs(f"{folder}/{name}", exist_ok=True)
    ms.save_checkpoint(net, f"{folder}/{name}/rank_{rank}.ckpt", integrated_save=False)

model.train(1, rows)
save("mixed")
save("first")
model.train(1, rows)
save("second")
if rank in (0, 3):
    save("mixed")
"""
LOADED = """
def told(name, call):
    try:
        call()
        print(name, "no error")
    except Exception as error:
        print(name, type(error).__name__, error)

def load_and_train(name):
    ms.load_param_into_net(net, ms.load_checkpoint(f"{folder}/{name}/rank_{rank}.ckpt"))
    model.train(1, rows)

for name in ("first", "second", "mixed"):
    told(f"{name} joined:", lambda: muster.load_checkpoint(f"{folder}/{name}"))
    told(f"{name} listed:", lambda: ms.load_distributed_checkpoint(
        net, [f"{folder}/{name}/rank_{each}.ckpt" for each in range(4)]))
    if workers > 1:
        model.infer_train_layout(rows)
    told(f"{name} loaded:", lambda: load_and_train(name))
"""
FIRST = r"step 3 of training (\w{16}) in '\S*mixed/rank_1.ckpt', '\S*mixed/rank_2.ckpt'"
SECOND = r"step 6 of training (\w{16}) in '\S*mixed/rank_0.ckpt', '\S*mixed/rank_3.ckpt'"


@pytest.mark.parametrize("layout", ["columns", "zero"])
def test_pieces_of_several_steps_are_an_error_that_names_steps_and_files(tmp_path, layout):
    outputs_of_workers(script(layout, SEVERAL), 4, FOLDER=str(tmp_path))
    alone = output_alone(script(layout, LOADED, tmp_path))
    texts = outputs_of_workers(script(layout, LOADED), 4, FOLDER=str(tmp_path))
    for text in (alone, *texts):
        for way in ("joined", "listed", "loaded"):
            assert f"first {way}: no error" in text and f"second {way}: no error" in text, text
    for text in (alone, *texts):
        ways = ("joined", "listed", "loaded") if text is alone else ("joined", "listed")
        for way in ways:
            found = re.search(rf"mixed {way}: ValueError .* several saves: {FIRST}; {SECOND}\.", text)
            assert found and found[1] == found[2], text
    for text in texts:
        assert re.search(
            r"mixed loaded: \w+ .*rank 0 has loaded step 6 .*rank_0.ckpt', and rank 1 step 3", text
        )


def test_pieces_of_two_trainings_are_an_error(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        outputs_of_workers(script("columns", SEVERAL), 4, FOLDER=str(tmp_path / name))
    (tmp_path / "one/first/rank_2.ckpt").replace(tmp_path / "other/first/rank_2.ckpt")
    joined = 'muster.load_checkpoint(f"{folder}/other/first")\n'
    status, text, _ = run_alone(script("columns", joined, tmp_path))
    assert status != 0
    (one, other) = re.findall(r"step 3 of training (\w{16}) in", text)
    assert one != other


BY_HAND = """
loss_fn = nn.CrossEntropyLoss()
both = ms.value_and_grad(lambda: loss_fn(net(x), y), None, optimizer.parameters)
optimizer(both()[1])
ms.load_param_into_net(net, ms.load_checkpoint(f"{folder}/{NAME}/rank_{rank}.ckpt"))
for _ in range(20):
    optimizer(both()[1])
"""


@pytest.mark.parametrize("name", ["first", "mixed"])
def test_a_loop_by_hand_is_told_of_pieces_of_several_steps(tmp_path, name):
    outputs_of_workers(script("columns", SEVERAL), 4, FOLDER=str(tmp_path))
    code = script("columns", BY_HAND.replace("NAME", repr(name)))
    with Job(code, 4, FOLDER=str(tmp_path)) as job:
        texts = [worker.output() for worker in job.workers]
        assert {process.wait() for process in job.everybody()} == {0}, texts
        texts.append(job.scheduler.output())
    assert any("'first' is not the same" in text for text in texts) == (name == "mixed"), texts


STAGES = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(8, 6), nn.Dense(6, 4)
        self.first.pipeline_stage, self.second.pipeline_stage = 0, 1

    def construct(self, x):
        return self.second(self.first(x))

net = Net()
model = train.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01))
for each in ("whole", "part"):
    os.makedirs(f"{folder}/{each}", exist_ok=True)
model.train(1, rows)
ms.save_checkpoint(net, f"{folder}/whole/rank_{rank}.ckpt")
ms.save_checkpoint(net, f"{folder}/part/rank_{rank}.ckpt", integrated_save=False)
own = net.second if rank == 1 else net.first
ms.save_checkpoint(own, f"{folder}/own_{rank}.ckpt")
print("whole", hash_of(ms.load_checkpoint(f"{folder}/whole/rank_{rank}.ckpt")))
print("part", sorted(ms.load_checkpoint(f"{folder}/part/rank_{rank}.ckpt")))
print("own", sorted(ms.load_checkpoint(f"{folder}/own_{rank}.ckpt")))
print("hash", hash_of(model.gather_parameters()))
if rank == 0:
    try:
        ms.save_checkpoint(net.second, f"{folder}/no.ckpt")
    except ValueError as error:
        print("told", error)
"""


def test_workers_of_stages_save_the_whole_together_or_what_each_has(tmp_path):
    texts = outputs_of_workers(script("stages", STAGES, tmp_path), 2, FOLDER=str(tmp_path))
    (wanted,) = set().union(*(hashes(text, 1) for text in texts))
    for text in texts:
        assert re.findall(r"whole (\S+)", text) == [wanted]
        (number,) = re.findall(r"part \['(\w+).bias', '\w+.weight'\]", text)
        assert f"own ['{number}.bias', '{number}.weight']" in text
        assert ("told" in text and "worker 1" in text) == (number == "first")
    joined = 'print("hash", hash_of(muster.load_checkpoint(f"{folder}/part")))\n'
    assert hashes(output_alone(script("columns", joined, tmp_path)), 1) == {wanted}


HALF_CUT = """
class Product(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(np.zeros((8, 6)), ms.float32), name="weight")
        self.product = ops.MatMul()
        if workers > 1:
            self.product.shard(((1, 1), (1, 2)))

    def construct(self, x):
        return self.product(x, self.weight)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = Product(), nn.Dense(6, 4)
        self.first.pipeline_stage, self.second.pipeline_stage = 0, 1

    def construct(self, x):
        return self.second(self.first(x))

net = Net()
net.first.weight.set_data(Tensor(np.random.RandomState(5).randn(8, 6).astype(np.float32)))
if workers > 1:
    model = train.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01))
    model.train(1, rows)
    ms.save_checkpoint(net, f"{folder}/rank_{rank}.ckpt", integrated_save=False)
    print("hash", hash_of(model.gather_parameters()))
else:
    for each in range(4):
        ms.load_param_into_net(net, ms.load_checkpoint(f"{folder}/rank_{each}.ckpt"))
    print("hash", hash_of(train.Model(net).gather_parameters()))
"""


def test_pieces_of_a_stage_are_loaded_beside_a_stage_of_which_nothing_is_cut(tmp_path):
    texts = outputs_of_workers(script("stages", HALF_CUT), 4, FOLDER=str(tmp_path))
    (wanted,) = set().union(*(hashes(text, 1) for text in texts))
    assert hashes(output_alone(script("columns", HALF_CUT, tmp_path)), 1) == {wanted}


BY_RANK = """
strategy = f"{folder}/source.json"
if workers > 1:
    muster.ops.all_reduce(Tensor([1.0])).asnumpy()
    os.makedirs(f"{folder}/rank_{rank}", exist_ok=True)
    AutoParallel(Net()).save_param_strategy_file(strategy)
    model = train.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01))
    model.train(1, rows)
    ms.save_checkpoint(net, f"{folder}/rank_{rank}/net.ckpt", integrated_save=False)
    print("hash", hash_of(model.gather_parameters()))
else:
    files = {each: f"{folder}/rank_{each}/net.ckpt" for each in ms.rank_list_for_transform(0, strategy)}
    ms.transform_checkpoint_by_rank(0, files, f"{folder}/made.ckpt", strategy)
    read = ms.load_checkpoint(f"{folder}/made.ckpt")
    assert ms.load_param_into_net(net, read)[0] == []
    print("hash", hash_of(train.Model(net).gather_parameters()))
"""


@pytest.mark.parametrize("layout", ["columns", "stages"])
def test_the_workers_whose_files_make_up_a_checkpoint_are_named(tmp_path, layout):
    code = "from mindspore.parallel.auto_parallel import AutoParallel\n" + BY_RANK
    code = code if layout == "columns" else STAGES.partition("\nnet = Net()")[0] + "\nnet = Net()\n" + code
    texts = outputs_of_workers(script(layout, code), 4, FOLDER=str(tmp_path))
    (wanted,) = set().union(*(hashes(text, 1) for text in texts))
    assert hashes(output_alone(script(layout, code, tmp_path)), 1) == {wanted}
