"""Drawn parallel trainings: what workers share, how, and of which network, beside the same in one process.

drawn_parallel.py --seeds 1000 [--first 0]      (./dev parallel)
"""

import argparse
import math
import pathlib
import random
import re
import sys

from job import Job, run_alone

SETUP = """
import numpy as np
import muster
from muster import Tensor, nn, ops, parallel, train
from muster.dataset import GeneratorDataset

muster.init()
muster.set_seed(7)
rank, workers = muster.get_rank(), muster.get_group_size()

def rows(shape, own):
    numbers = np.random.RandomState(0)
    data = [(numbers.randn(*shape).astype(np.float32), np.int32(numbers.randint(4))) for _ in range(16)]
    shards = dict(num_shards=workers, shard_id=rank) if own else {}
    return GeneratorDataset(data, ["x", "y"], shuffle=False, **shards).batch(8 // workers if own else 8)

class Losses(train.Callback):
    def on_train_step_end(self, run):
        print("loss", repr(float(np.asarray(run.net_outputs.asnumpy()))))

def cut(x, layout):
    return x if layout is None else parallel.shard(x, layout)
"""

NETS = {
    "mlp": (
        (16,),
        """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Dense(16, 32), nn.Dense(32, 8), nn.Dense(8, 4)
        self.norm, self.dropout = nn.LayerNorm((32,)), nn.Dropout(p=DROPS)

    def construct(self, x):
        x = cut(self.norm(ops.gelu(self.first(cut(x, SAMPLES)))), HIDDEN)
        return self.head(ops.tanh(self.second(self.dropout(x))))
""",
    ),
    "images": (
        (4, 6, 6),
        """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 3), nn.Conv2d(8, 4, 3, has_bias=True)
        self.norm, self.pool = nn.BatchNorm2d(8), nn.MaxPool2d(2, 2)
        self.dropout, self.flatten, self.head = nn.Dropout(p=DROPS), nn.Flatten(), nn.Dense(36, 4)

    def construct(self, x):
        x = cut(ops.relu(self.norm(self.first(cut(x, SAMPLES)))), HIDDEN)
        return self.head(self.flatten(self.dropout(self.pool(self.second(x)))))
""",
    ),
    "attention": (
        (4, 16),
        """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        # The gradient of a bias of keys is nothing but rounding, which Adam would make large.
        self.first = nn.Dense(16, 48, has_bias=False)
        self.second, self.head = nn.Dense(16, 8), nn.Dense(32, 4)
        self.norm, self.dropout = nn.LayerNorm((16,)), nn.Dropout(p=DROPS)

    def construct(self, x):
        x = self.norm(cut(x, SAMPLES))
        heads = ops.transpose(ops.reshape(self.first(x), (8, 4, 3, 4, 4)), (2, 0, 3, 1, 4))
        q, k, v = (ops.reshape(part, (8, 4, 4, 4)) for part in ops.split(heads, 1, 0))
        x = ops.softmax(ops.matmul(cut(q, HIDDEN), ops.transpose(k, (0, 1, 3, 2))), -1)
        x = ops.reshape(ops.transpose(ops.matmul(x, v), (0, 2, 1, 3)), (8, 4, 16))
        return self.head(ops.reshape(self.second(self.dropout(x)), (8, 32)))
""",
    ),
    "recurrent": (
        (6, 16),
        """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Dense(16, 32), nn.Dense(32, 32), nn.Dense(32, 4)
        self.dropout = nn.Dropout(p=DROPS)

    def construct(self, x):
        x = cut(x, SAMPLES)
        state = ops.tanh(self.first(x[:, 0]))
        for step in range(1, 6):
            state = cut(ops.tanh(self.first(x[:, step]) + self.second(state)), HIDDEN)
        return self.head(self.dropout(state))
""",
    ),
}

TRAIN = """
zero = parallel.Zero(LEVEL, threshold_bytes=64)
if MESH:
    parallel.mesh(**MESH)
if PLAN:
    parallel.plan(*PLAN, zero)
else:
    muster.set_auto_parallel_context(zero=zero, **MODE)
net = Net()
for name, rank in PLACES.items():
    getattr(net, name).place("MS_WORKER", rank)
for name, layout in WEIGHTS.items():
    parallel.shard(getattr(net, name).weight, layout)
optimizer = OPTIMIZER
model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
model.train(2, rows(SHAPE, OWN), Losses(), micro_batches=PARTS)
print("held", parallel.held_bytes(net), parallel.held_bytes(optimizer))
for name, value in model.gather_parameters().items():
    print("sum", name, repr(float(np.abs(value.asnumpy().astype(np.float64)).sum())))
"""
OPTIMIZERS = (
    "nn.Adam(net.trainable_params(), 0.01)",
    "nn.AdamWeightDecay(net.trainable_params(), 0.01, weight_decay=0.1)",
    "nn.Momentum(net.trainable_params(), 0.05, 0.9, weight_decay=0.01)",
    "nn.SGD(net.trainable_params(), 0.05, momentum=0.9)",
)
MESHES = ({"data": 2}, {"model": 2}, {"data": 2, "model": 2}, {"data": 4}, {"a": 2, "b": 1, "c": 2})


def layout_of(draw, mesh, rank, dims):
    """Axes drawn for some of the dimensions, or None."""
    cuts = [[] for _ in range(rank)]
    for axis in mesh:
        place = draw.choice([None, None, *dims])
        if place is not None:
            cuts[place].append(axis)
    return tuple(tuple(each) or None for each in cuts) if any(cuts) else None


NOTHING = {"MESH": {}, "PLAN": (), "SAMPLES": None, "HIDDEN": None, "WEIGHTS": {}, "PLACES": {}}


def drawn_plan(draw):
    """parallel.plan() instead of layouts."""
    plan = draw.choice(((2, 1), (1, 2), (2, 2), (4, 1)))
    return {
        **NOTHING,
        "net": draw.choice(list(NETS)),
        "OPTIMIZER": draw.choice(OPTIMIZERS),
        "LEVEL": draw.choice((0, 1, 3, 3)),
        "DROPS": draw.choice((0.0, 0.3)),
        "PLAN": plan,
        "MODE": {},
        "OWN": False,
        "PARTS": 1,
        "workers": math.prod(plan),
    }


def drawn(seed):
    """What to train and how: names and values for the templates."""
    draw = random.Random(f"plan {seed}")
    if draw.random() < 0.2:
        return drawn_plan(draw)
    draw = random.Random(seed)
    net = draw.choice(list(NETS))
    chosen = {"net": net, "OPTIMIZER": draw.choice(OPTIMIZERS), "LEVEL": draw.randrange(4)}
    chosen["DROPS"] = draw.choice((0.0, 0.3))
    if draw.random() < 0.3:
        workers = draw.choice((2, 4))
        mode = {"parallel_mode": "data_parallel", "gradients_mean": True}
        parts = draw.choice((1, 1, 2)) if chosen["DROPS"] == 0 and net == "mlp" else 1
        net_of_rows = {"attention": "mlp", "images": "mlp"}.get(net, net)  # whose numbers need no whole batch
        return {
            **chosen,
            **NOTHING,
            "net": net_of_rows,
            "MODE": mode,
            "OWN": True,
            "PARTS": parts,
            "workers": workers,
        }
    mesh = draw.choice(MESHES)
    rank, hidden = {
        "mlp": (2, (0, 1)),
        "images": (4, (0, 1)),
        "attention": (3, (0, 1, 2)),
        "recurrent": (3, (0, 1)),
    }[net]
    of_weight = {"images": 4}.get(net, 2)
    weights = {
        name: layout_of(draw, mesh, of_weight, (0, 1)) for name in ("first", "second") if draw.random() < 0.7
    }
    samples = layout_of(draw, mesh, rank, (0,))
    hidden_layout = layout_of(draw, mesh, {"attention": 4, "recurrent": 2}.get(net, rank), hidden)
    places = {}
    if draw.random() < 0.4:
        mesh = {**mesh, "stages": 2}
        placed = draw.sample(("first", "second", "head"), 3)
        places = {placed[0]: 0, placed[1]: 1, placed[2]: draw.randrange(2)}
    parts = draw.choice((1, 2)) if chosen["DROPS"] == 0 and net == "mlp" else 1
    return {
        **NOTHING,
        **chosen,
        "MESH": mesh,
        "PLACES": places,
        "MODE": {},
        "SAMPLES": samples,
        "HIDDEN": hidden_layout,
        "WEIGHTS": {name: layout for name, layout in weights.items() if layout is not None},
        "OWN": False,
        "PARTS": parts,
        "workers": math.prod(mesh.values()),
    }


def script(choice):
    """The training."""
    shape, net = NETS[choice["net"]]
    text = SETUP + net + TRAIN
    for name, value in {**choice, "SHAPE": shape}.items():
        text = (
            re.sub(rf"\b{name}\b", str(value) if name == "OPTIMIZER" else repr(value), text)
            if name.isupper()
            else text
        )
    return text


def alone(choice):
    """The same in one process."""
    return {**choice, **NOTHING, "LEVEL": 0, "MODE": {}, "PARTS": 1}


def numbers(text):
    """Losses and sums of parameters by name."""
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", text)]
    return losses, {name: float(value) for name, value in re.findall(r"sum (\S+) (\S+)", text)}


def difference(choice):
    """What is another than in one process, or nothing."""
    code, wanted, _ = run_alone(script(alone(choice)))
    if code != 0:
        return f"one process: {wanted}"
    losses, sums = numbers(wanted)
    with Job(script(choice), choice["workers"]) as job:
        codes = [process.wait(120) for process in job.everybody()]
        texts = [worker.output() for worker in job.workers]
    if any(codes):
        return f"ended with {codes}: {texts[0]}"
    for rank, text in enumerate(texts):
        its_losses, its_sums = numbers(text)
        for name, value in sums.items():
            if not math.isclose(its_sums.get(name, math.nan), value, rel_tol=1e-4):
                return f"rank {rank}: '{name}' is {its_sums.get(name)}, not {value}"
        pairs = () if choice["OWN"] else zip(its_losses, losses, strict=True)
        if any(not math.isclose(a, b, rel_tol=1e-4) for a, b in pairs):
            return f"rank {rank}: losses {its_losses}, not {losses}"
    return None


def main():
    """Draws `--seeds` trainings from `--first` on; the status is 1 where one was another."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    wrong = 0
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        found = difference(drawn(seed))
        if found is not None:
            wrong += 1
            print(f"seed {seed}: {drawn(seed)}\n{found}", flush=True)
    print(f"{chosen.seeds} trainings, {wrong} of them other than in one process")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    sys.exit(main())
