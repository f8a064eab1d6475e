"""Jobs whose workers share a training: for the tests of Zero and of meshes."""

import re
import subprocess

from job import clean_environment, outputs_of_workers
from places import BUILD, SEARCH_PATH

SETUP = """
import hashlib
import numpy as np
import muster
from muster import Tensor, nn, ops, parallel, train
from muster.dataset import GeneratorDataset

muster.init()
muster.set_seed(7)
rank, workers = muster.get_rank(), muster.get_group_size()

def rows(batch=8, count=32, sharded=True, features=12):
    numbers = np.random.RandomState(0)
    data = [(numbers.randn(features).astype(np.float32), np.int32(numbers.randint(4))) for _ in range(count)]
    shards = dict(num_shards=workers, shard_id=rank) if sharded else {}
    dataset = GeneratorDataset(data, ["x", "y"], shuffle=False, **shards)
    return dataset.batch(batch // workers if sharded else batch)

class Losses(train.Callback):
    def on_train_step_end(self, run):
        print("loss", repr(float(np.asarray(run.net_outputs.asnumpy()))))

def show(cells):
    for cell in cells:
        for name, value in gathered(cell).items():
            print("value", name, hashlib.sha256(value.asnumpy().tobytes()).hexdigest())

def gathered(cell):
    return train.Model(cell).gather_parameters()
"""

ZERO = """
muster.set_auto_parallel_context(
    parallel_mode="data_parallel", gradients_mean=True, zero=parallel.Zero(LEVEL, threshold_bytes=64)
)
net = nn.SequentialCell(nn.Dense(12, 16), nn.ReLU(), nn.Dense(16, 10), nn.Tanh(), nn.Dense(10, 4))
optimizer = OPTIMIZER
model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
model.train(2, rows(), Losses())
print("held", parallel.held_bytes(net), parallel.held_bytes(optimizer))
show([net, optimizer])
"""

OPTIMIZERS = {
    "Adam": "nn.Adam(net.trainable_params(), 0.01)",
    "Momentum": "nn.Momentum(net.trainable_params(), 0.05, 0.9, weight_decay=0.01)",
    "SGD": "nn.SGD(net.trainable_params(), 0.05, momentum=0.9)",
}


def outputs(code, workers, **variables):
    return outputs_of_workers(SETUP + code, workers, **variables)


def losses(text):
    return [float(loss) for loss in re.findall(r"loss (\S+)", text)]


def values(text):
    return re.findall(r"value (\S+) (\w+)", text)


def held(text):
    return tuple(map(int, re.search(r"held (\d+) (\d+)", text).groups()))


# DIES: None, a rank, or "scheduler".
KILLED = """
import os, pathlib, signal

def scheduler():
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getppid() and b"MS_ROLE=MS_SCHED" in (folder / "environ").read_bytes():
                return int(folder.name)
        except OSError:  # it has ended, or is another user's
            pass

class Dies(train.Callback):
    def on_train_step_end(self, run):
        flag = pathlib.Path("died")
        victim = 0 if DIES == "scheduler" else DIES
        if rank == victim and run.cur_step_num == 5 and not flag.exists():
            flag.touch()
            os.kill(scheduler() if DIES == "scheduler" else os.getpid(), signal.SIGKILL)
    def state_dict(self):
        return {}
    def load_state_dict(self, state):
        pass
"""


def ends_of_a_script(folder, script, workers, dies):
    (folder / "train.py").write_text(script)
    environment = {
        **clean_environment(),
        "PATH": SEARCH_PATH,
        "MS_ENABLE_RECOVERY": "1",
        "MS_RECOVERY_PATH": str(folder / "points"),
    }
    command = [BUILD / "apps/muster/muster", "run", "-n", str(workers), "--max-restarts", "2", "train.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "died").exists() == (dies is not None)
    assert ("starting it again" in done.stderr) == (dies is not None), done.stderr
    return sorted(re.findall(r"(value .*)", done.stdout))


BY_HAND = """
import os, pathlib, signal
REDUCER
loss_fn = nn.CrossEntropyLoss()
both = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
for epoch, step, (x, y) in muster.recoverable(net, optimizer, rows(sharded=SHARDED), 3, save_steps=2):
    optimizer(reducer(both(x, y)[1]))
    flag = pathlib.Path("died")
    if rank == DIES and (epoch, step) == (1, 1) and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
show([net])
"""


def ends_by_hand(folder, dies, workers, setup, sharded, reducer):
    folder.mkdir()
    loop = BY_HAND.replace("SHARDED", str(sharded)).replace("DIES", str(dies)).replace("REDUCER", reducer)
    return ends_of_a_script(folder, SETUP + setup + loop, workers, dies)
