"""Kinds of scripts that MindSpore's documents show of parallel training: slices of a dataset, stages whose
results all workers want, strategy files, checkpoints for another layout, hints for accelerators."""

import json
import os
import re

import pytest
from job import Job, output_alone, outputs_of_workers

SETUP = """
import os
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops, train
from mindspore import dataset as ds
from mindspore.common.initializer import initializer
from mindspore.communication import get_group_size, get_rank, init
from mindspore.parallel.auto_parallel import AutoParallel

ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(3)
WORKERS = get_group_size()
"""
ROWS = """
def rows(whole=True):
    numbers = np.random.RandomState(0)
    for _ in range(6):
        x = numbers.randn(4, 2, 8).astype(np.float32)
        y = numbers.randint(0, 3, 4).astype(np.int32)
        width = 8 if whole else 8 // WORKERS
        yield x[:, :, width * get_rank() * (not whole):][:, :, :width], y
"""
LOOP = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten, self.fc = nn.Flatten(), nn.Dense(16, 3)

    def construct(self, x):
        return self.fc(self.flatten(x))

net, loss_fn = Net(), nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 0.1)
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
data = ds.GeneratorDataset(lambda: rows(WHOLE), ["x", "y"], shuffle=False)
STRATEGY
for x, y in data:
    assert x.shape == (4, 2, 8), x.shape
    loss, gradients = grad_fn(x, y)
    optimizer(gradients)
    print("loss", repr(float(loss.asnumpy())))
"""
BY_CONTEXT = """
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.SEMI_AUTO_PARALLEL)
ms.set_auto_parallel_context(dataset_strategy=((1, 1, 2), (1,)))
"""
BY_NETWORK = """
grad_fn = AutoParallel(grad_fn, parallel_mode="semi_auto")
grad_fn.dataset_strategy(config=((1, 1, 2), (1,)))
"""


def of_workers(code, workers, **environment):
    """What each worker wrote; all of the job ended well."""
    return outputs_of_workers(SETUP + code, workers, **environment)


def alone(code):
    return output_alone(SETUP + code)


def sum_of(text):
    return float(re.search(r"sum (\S+)", text)[1])


def check_sums(code, workers):
    """Each worker has the sum of one process."""
    wanted = sum_of(alone(code))
    for text in of_workers(code, workers):
        assert sum_of(text) == pytest.approx(wanted, rel=1e-5)


def losses(text):
    found = [float(loss) for loss in re.findall(r"loss (\S+)", text)]
    assert found
    return found


@pytest.mark.parametrize("strategy", [BY_CONTEXT, BY_NETWORK], ids=["context", "network"])
def test_slices_of_a_dataset_are_joined_to_the_batch_of_one_process(strategy):
    whole = losses(alone(ROWS + LOOP.replace("WHOLE", "True").replace("STRATEGY", "")))
    code = ROWS + LOOP.replace("WHOLE", "False").replace("STRATEGY", strategy)
    for text in of_workers(code, 2):
        assert losses(text) == pytest.approx(whole, rel=1e-6)


CORNERS = """
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy=((1, 2, 2), (4,)))
whole = np.arange(2 * 4 * 6, dtype=np.float32).reshape(2, 4, 6)
row, column = divmod(get_rank(), 2)

def one():
    yield whole[:, 2 * row :][:, :2, 3 * column :][:, :, :3], np.int32([get_rank()])

for x, y in ds.GeneratorDataset(one, ["x", "y"]).create_tuple_iterator(output_numpy=True):
    assert np.array_equal(x, whole), x
    assert y.tolist() == [get_rank()]
ms.set_auto_parallel_context(dataset_strategy=((2, 1, 2), (4,)))

def pairs():
    yield whole[:, :, 3 * column :][row : row + 1, :, :3], np.int32([get_rank()])

for x, y in ds.GeneratorDataset(pairs, ["x", "y"]).create_tuple_iterator(output_numpy=True):
    assert np.array_equal(x, whole[row : row + 1]), x
"""


def test_slices_lie_in_the_order_of_the_workers():
    of_workers(CORNERS, 4)


STAGES = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(6, 8), nn.Dense(8, 3)
        self.first.pipeline_stage, self.second.pipeline_stage = 0, 1

    def construct(self, x):
        return self.second(self.first(x))

x = Tensor(np.random.RandomState(0).randn(4, 6).astype(np.float32))
"""
BROADCAST = """
ms.set_auto_parallel_context(
    parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=2,
    pipeline_result_broadcast=True,
)
net = Net()
net.set_train(False)
net.compile(x)
ms.sync_pipeline_shared_parameters(net)
"""
BROADCAST_BY_NETWORK = """
net = AutoParallel(Net(), parallel_mode="semi_auto")
net.dataset_strategy("full_batch")
net.pipeline(stages=2, output_broadcast=True)
"""
SHOW = 'print("sum", repr(float(net(x).asnumpy().sum())))'


@pytest.mark.parametrize("settings", [BROADCAST, BROADCAST_BY_NETWORK], ids=["context", "network"])
def test_results_of_the_last_stage_are_on_all_workers_where_a_script_asks_for_that(settings):
    wanted = re.findall("sum .*", alone(STAGES + "net = Net()\n" + SHOW))
    for text in of_workers(STAGES + settings + SHOW, 2):
        assert re.findall("sum .*", text) == wanted


STEP = """
net, loss_fn = Net(), nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 0.1)
y = Tensor(np.int32([0, 1, 2, 0]))
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)

@ms.jit
def train_step(x, y):
    loss, gradients = grad_fn(x, y)
    optimizer(gradients)
    return loss, gradients

step = AutoParallel(train_step, parallel_mode="semi_auto")
step.pipeline(stages=min(2, WORKERS))
for _ in range(3):
    loss, _ = step(x, y)
    print("loss", repr(float(loss.asnumpy())))
"""


def test_the_loss_of_a_step_over_stages_is_on_all_workers():
    whole = losses(
        alone(STAGES.replace("self.second.pipeline_stage = 0, 1", "self.second.name = 0, 'b'") + STEP)
    )
    for text in of_workers(STAGES + STEP, 2):
        assert losses(text) == pytest.approx(whole, rel=1e-6)


TRAINING = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w1 = ms.Parameter(initializer("normal", [8, 4], ms.float32), name="w1")
        self.w2 = ms.Parameter(initializer("normal", [4, 2], ms.float32), name="w2")
        self.matmul1, self.relu, self.matmul2 = ops.MatMul(), ops.ReLU(), ops.MatMul()

    def construct(self, x):
        return self.matmul2(self.relu(self.matmul1(x, self.w1)), self.w2)

ms.set_auto_parallel_context(
    parallel_mode="semi_auto_parallel", full_batch=True,
    strategy_ckpt_config={"save_file": os.environ["FOLDER"] + "/made/strategy.ckpt"},
)
net = Net()
net.matmul1.shard(CUTS)
numbers = np.random.RandomState(0)
data = [(numbers.randn(8).astype(np.float32), numbers.randn(2).astype(np.float32)) for _ in range(8)]
data = ds.GeneratorDataset(data, ["x", "y"], shuffle=False).batch(4)
model = train.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
"""
SAVING = """
folder = f"{os.environ['FOLDER']}/rank_{get_rank()}"
config = train.CheckpointConfig(save_checkpoint_steps=2, integrated_save=False)
model.train(2, data, [train.ModelCheckpoint("net", folder, config)])
print("sum", repr(float(np.abs(model.predict(Tensor(np.ones((4, 8), np.float32))).asnumpy()).sum())))
"""
GOING_ON = """
layouts = model.infer_train_layout(data)
assert layouts["w1"][2] == [8, 2] and layouts["w2"][2] == [4, 2], layouts
assert layouts["moments.w1"][2] == [8, 2], layouts
source, target = os.environ["FOLDER"], os.environ["FOLDER"] + "/other"
strategy = source + "/made/strategy.ckpt"
ms.transform_checkpoints(source, target, "checkpoint_", strategy, strategy)
values = ms.load_checkpoint(f"{target}/rank_{get_rank()}/checkpoint_{get_rank()}.ckpt")
assert ms.load_param_into_net(net, values)[0] == []
x = Tensor(np.ones((4, 8), np.float32))
assert model.infer_predict_layout(x)["w1"][2] == [8, 2]
print("sum", repr(float(np.abs(model.predict(x).asnumpy()).sum())))
"""


def test_checkpoints_go_on_under_another_layout_by_strategy_files(tmp_path):
    saving = TRAINING.replace("CUTS", "((1, 2), (2, 1))") + SAVING
    saved = of_workers(saving, 2, FOLDER=str(tmp_path))
    assert list((tmp_path / "made").iterdir()) == [tmp_path / "made/strategy.ckpt"]
    for file in tmp_path.glob("rank_*/net-2_2.ckpt"):
        os.utime(file, (0, 0))  # the last one, whatever a copy made of its time
    going_on = TRAINING.replace("CUTS", "((1, 1), (1, 2))") + GOING_ON
    for before, text in zip(saved, of_workers(going_on, 2, FOLDER=str(tmp_path)), strict=True):
        sums = [sum_of(each) for each in (before, text)]
        assert sums[0] == pytest.approx(sums[1], rel=1e-6)


UNIFIED = """
folder = f"{os.environ['FOLDER']}/rank_{get_rank()}"
os.mkdir(folder)
model.train(2, data)
ms.save_checkpoint(model.gather_parameters(), f"{folder}/net.safetensors", format="safetensors")
x = Tensor(np.ones((4, 8), np.float32))
print("sum", repr(float(np.abs(model.predict(x).asnumpy()).sum())))
ops.AllReduce()(Tensor(np.ones(1, np.float32))).asnumpy()  # both have saved
whole = f"{os.environ['FOLDER']}/whole_{get_rank()}"
ms.unified_safetensors(os.environ["FOLDER"], os.environ["FOLDER"] + "/made/strategy.ckpt", whole)
other = Net()
ms.load_distributed_checkpoint(other, unified_safetensors_dir=whole)
print("sum", repr(float(np.abs(other(x).asnumpy()).sum())))
"""


def test_files_of_workers_are_joined_to_one_of_whole_parameters(tmp_path):
    script = TRAINING.replace("CUTS", "((1, 2), (2, 1))") + UNIFIED
    for text in of_workers(script, 2, FOLDER=str(tmp_path)):
        trained, loaded = re.findall(r"sum (\S+)", text)
        assert float(trained) == pytest.approx(float(loaded), rel=1e-6)
    names = json.loads((tmp_path / "whole_0/param_name_map.json").read_text())
    assert names["w1"] == names["w2"] == "part0.safetensors"


BEFORE = """
import os
import mindspore as ms
from mindspore.communication import init

path = os.environ["FOLDER"] + "/" + os.environ.get("MS_NODE_ID", "scheduler")
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", strategy_ckpt_config={"save_file": path})
init()
assert os.path.exists(path)
assert ms.rank_list_for_transform(1, None, path) == [0]
"""


def test_a_strategy_file_is_there_when_the_job_has_formed(tmp_path):
    with Job(BEFORE, 2, FOLDER=str(tmp_path)) as job:
        assert [worker.wait(60) for worker in job.workers] == [0, 0], job.workers[0].output()


TENSOR_PARALLEL = """
from mindspore.parallel import Layout

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w1 = ms.Parameter(initializer("normal", [8, 16], ms.float32))
        self.w2 = ms.Parameter(initializer("normal", [16, 8], ms.float32))
        self.matmul1, self.relu, self.matmul2 = ops.MatMul(), ops.ReLU(), ops.MatMul()

    def construct(self, x):
        return self.matmul2(self.relu(self.matmul1(x, self.w1)), self.w2)

ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", full_batch=True)
net = Net()
if WORKERS > 1:
    layout = Layout((2, 2), ("x", "y"))
    net.matmul1.add_prim_attr("enable_nd_tp", True)
    net.matmul1.shard(in_strategy=(layout("None", ("x", "y")), layout("x", "y")))
    net.relu.shard(in_strategy=(layout("None", ("y", "x")),))
    net.matmul2.add_prim_attr("enable_nd_tp", True)
    net.matmul2.shard(in_strategy=(layout("None", ("y", "x")), layout("y", "x")))
print("sum", float(np.abs(net(Tensor(np.ones((4, 8), np.float32))).asnumpy()).sum()))
"""


def test_weights_are_cut_along_two_axes_with_the_numbers_of_one_process():
    check_sums(TENSOR_PARALLEL, 4)


HINTS = """
ms.set_context(save_graphs=2, memory_offload="ON", enable_graph_kernel=True)
assert ms.get_context("save_graphs") == 2
ms.set_offload_context({"offload_path": "./here/"})
assert ms.get_offload_context()["offload_path"] == "./here/"
automatic = {"mode": "auto", "config": None}
ms.set_auto_parallel_context(comm_fusion={"allreduce": automatic, "allgather": automatic})

class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense, self.relu = nn.Dense(4, 4), ops.ReLU()
        self.relu.set_device("CPU").set_stage(0).add_prim_attr("fusion", 1)
        assert self.relu.primitive_target == "CPU" and self.relu.fusion == 1
        self.relu.del_prim_attr("fusion")
        assert not hasattr(self.relu, "fusion")

    def construct(self, x):
        return self.relu(self.dense(x))

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.block, self.head = Block(), nn.Dense(4, 2)
        plan = {"self.block.dense.weight": (1, 1)}
        self.sharded = self.block.shard(in_strategy=((1, 1),), parameter_plan=plan)
        self.block.set_comm_fusion(0)
        self.head.set_comm_fusion(3)

    def construct(self, x):
        return self.head(self.sharded(x))

net = Net()
print("fusion", [(each.name, each.comm_fusion) for each in net.trainable_params()])
size = ms.Symbol(divisor=4, max=32)
net.set_inputs(Tensor(shape=[size, 4], dtype=ms.float32))
print("shapes", *(net(Tensor(np.ones((batch, 4), np.float32))).shape for batch in (4, 8)), size)
for wrong in (
    lambda: net.set_comm_fusion(-1),
    lambda: ms.Symbol(min=0),
    lambda: ms.Symbol(divisor=2, remainder=2),
    lambda: net.block.relu.set_device("TPU"),
    lambda: net.block.relu.set_device(3),
    lambda: ms.set_context(save_graphs=7),
):
    try:
        wrong()
    except (TypeError, ValueError) as error:
        print("told", type(error).__name__)
"""


def test_hints_for_compilers_and_accelerators_change_nothing():
    text = alone(HINTS)
    assert "('block.dense.weight', 0), ('block.dense.bias', 0), ('head.weight', 3), ('head.bias', 3)" in text
    assert "shapes (4, 2) (8, 2) {'max': 32, 'divisor': 4}" in text
    assert re.findall("told (.*)", text) == ["ValueError"] * 4 + ["TypeError", "ValueError"]
    assert "set_context(save_graphs=2) has no effect: `muster explain SCRIPT`" in text


SERVERS = """
import numpy as np
import mindspore as ms
from mindspore import Tensor, context, nn
from mindspore.communication import get_rank

context.set_context(mode=context.GRAPH_MODE, enable_sparse=True)
context.set_ps_context(enable_ps=True)

def losses(on_servers):
    context.set_ps_context(enable_ps=on_servers)
    ms.set_seed(5)
    net = nn.SequentialCell(nn.EmbeddingLookup(16, 4), nn.Flatten(), nn.Dense(12, 10))
    if on_servers:
        net[0].embedding_table.set_param_ps()
    optimizer = nn.SGD(net.trainable_params(), 0.1)  # Adam's rows that no batch has stay, on servers
    optimizer.sparse_opt.add_prim_attr("primitive_target", "CPU")
    optimizer.target = "CPU"
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer).set_train()
    numbers = np.random.RandomState(0)
    batches = [(numbers.randint(0, 15, (8, 3)), numbers.randint(0, 9, 8)) for _ in range(4)]
    return [float(step(Tensor(x.astype(np.int32)), Tensor(y.astype(np.int32)))) for x, y in batches]

served, whole = losses(True), losses(False)
print("losses", served, whole)
assert np.allclose(served, whole, 1e-6, 1e-6)
"""


def test_scripts_with_parameter_servers_join_their_job_where_they_first_need_it():
    with Job(SERVERS, 1, MS_SERVER_NUM="1") as job:
        server = job.start("server 0", MS_ROLE="MS_PSERVER")
        codes = [process.wait(60) for process in (*job.everybody(), server)]
        assert codes == [0, 0, 0], job.workers[0].output()


OWN_DATA = """
class Mock:
    def __init__(self):
        self.at = 0

    def get_dataset_size(self):
        return 3

    def create_tuple_iterator(self, num_epochs=-1, do_copy=True):
        return self

    def __iter__(self):
        self.at = 0
        return self

    def __next__(self):
        if self.at == 3:
            raise StopIteration
        self.at += 1
        x = np.random.RandomState(self.at).randn(4, 6).astype(np.float32)
        return Tensor(x), Tensor(x[:, :2].copy())

class Losses(train.Callback):
    def on_train_step_end(self, run_context):
        print("loss", repr(float(run_context.original_args().net_outputs.asnumpy())))

def made():
    ms.set_seed(1)
    net = nn.Dense(6, 2)
    return net, nn.Momentum(net.trainable_params(), 0.1, 0.9), nn.MSELoss()

net, optimizer, loss_fn = made()
model = train.Model(net, loss_fn, optimizer)
model.build(epoch=2, train_dataset=Mock(), sink_mode=False)
model.train(2, Mock(), Losses())

net, optimizer, loss_fn = made()
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())

@ms.jit
def train_step(x, y):
    loss, gradients = grad_fn(x, y)
    optimizer(gradients)
    return loss

step = AutoParallel(train_step)
for _ in range(2):
    for x, y in Mock():
        step.compile(x, y)
        print("loss", repr(float(step(x, y).asnumpy())))
"""


def test_objects_that_are_their_own_iterators_feed_a_model_and_compiling_trains_nothing():
    found = losses(alone(OWN_DATA))
    assert len(found) == 12
    assert found[:6] == pytest.approx(found[6:], rel=1e-6)


STRATEGIES = """
from mindspore import shard

class OneHot(nn.Cell):
    def __init__(self, strategy):
        super().__init__()
        self.one_hot, self.transpose = ops.OneHot().shard(strategy), ops.Transpose()
        self.dense = nn.Dense(8, 4)
        self.whole = shard(self.dense, in_strategy=(None,), out_strategy=(None,))

    def construct(self, indices):
        made = self.one_hot(indices, 16, Tensor(1.0, ms.float32), Tensor(0.0, ms.float32))
        return self.whole(self.transpose(made, (1, 0)))

ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", full_batch=True)
net = OneHot(((1, WORKERS), (), ()) if WORKERS > 1 else None)
out = net(Tensor(np.arange(8, dtype=np.int32)))
print("sum", float(np.abs(out.asnumpy()).sum()))
ms.reset_auto_parallel_context()
"""


def test_one_hot_is_cut_by_its_result_and_none_leaves_a_tensor_as_it_is():
    check_sums(STRATEGIES, 2)


EAGER = """
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_auto_parallel_context(
    parallel_mode="auto_parallel", search_mode="sharding_propagation", enable_parallel_optimizer=True,
    dataset_strategy="full_batch",
)
net, loss_fn = nn.Dense(6, 2), nn.MSELoss()
optimizer = nn.Adam(net.trainable_params(), 0.1)
ones = Tensor(np.ones((4, 2), np.float32))
grad_fn = ms.value_and_grad(lambda x: loss_fn(net(x), ones), None, optimizer.parameters)
for _ in range(2):
    loss, gradients = grad_fn(Tensor(np.ones((4, 6), np.float32)))
    optimizer(gradients)
    print("loss", repr(float(loss.asnumpy())))
"""


def test_op_by_op_each_worker_keeps_the_whole_state_and_a_line_says_so():
    whole = losses(alone(EAGER))
    for text in of_workers(EAGER, 2):
        assert losses(text) == pytest.approx(whole, rel=1e-6)
        assert "parallel optimizer has no effect in PYNATIVE_MODE" in text
