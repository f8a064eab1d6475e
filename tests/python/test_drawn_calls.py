"""Drawn collective calls on drawn groups, waited for at once, later or in another order: each worker knows
what every other one gave, and compares.
"""

import random

import pytest
from job import outputs_of_workers

SCRIPT = """
import os, random
import numpy as np
import mindspore as ms
from mindspore import Tensor
from mindspore.mint import distributed as dist

SEED, ROUNDS = int(os.environ["DRAWN_SEED"]), 12
dist.init_process_group()
me, workers = dist.get_rank(), dist.get_world_size()
JOIN = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int32", "int64")

def given(rank, shape, part=0):
    # Small whole numbers: the product of five workers' fits every dtype.
    return np.random.default_rng([call_number, rank, part]).integers(0, 3, shape).astype(dtype)

def tensor(values):
    return Tensor(np.ascontiguousarray(values))

def zeros(shape):
    return Tensor(np.zeros(shape, dtype))

def joined(shape, part=0):
    return JOIN[op].reduce([given(rank, shape, part) for rank in ranks]).astype(dtype)

# Each call: its handle, tensors, and what they should hold behind it.
def all_reduce():
    x = tensor(given(me, shape))
    return dist.all_reduce(x, op, group, later), [x], [joined(shape)]

def reduce():
    x = tensor(given(me, shape))
    handle = dist.reduce(x, root, op, group, later)
    return handle, [x], [joined(shape) if me == root else given(me, shape)]

def broadcast():
    x = tensor(given(me, shape))
    return dist.broadcast(x, root, group, later), [x], [given(root, shape)]

def all_gather():
    outputs = [zeros((size,)) for size in sizes]
    handle = dist.all_gather(outputs, tensor(given(me, (sizes[own],))), group, later)
    return handle, outputs, [given(rank, (size,)) for rank, size in zip(ranks, sizes)]

def reduce_scatter():
    inputs = [tensor(given(me, (size,), part)) for part, size in enumerate(sizes)]
    output = zeros((sizes[own],))
    return dist.reduce_scatter(output, inputs, op, group, later), [output], [joined((sizes[own],), own)]

def scatter():
    inputs = [tensor(given(root, shape, part)) for part in range(len(ranks))] if me == root else None
    output = zeros(shape)
    return dist.scatter(output, inputs, root, group, later), [output], [given(root, shape, own)]

def gather():
    outputs = [zeros(shape) for _ in ranks] if me == root else []
    handle = dist.gather(tensor(given(me, shape)), outputs or None, root, group, later)
    return handle, outputs, [given(rank, shape) for rank in ranks][: len(outputs)]

def all_to_all():
    inputs = [tensor(given(me, (sent[own][other],), other)) for other in range(len(ranks))]
    outputs = [zeros((sent[other][own],)) for other in range(len(ranks))]
    handle = dist.all_to_all(outputs, inputs, group, later)
    return handle, outputs, [given(rank, (sent[i][own],), own) for i, rank in enumerate(ranks)]

def barrier():
    return dist.barrier(group, later), [], []

def message():
    if me == source and len(ranks) > 1:
        return dist.isend(tensor(given(me, shape)), target, group, tag), [], []
    if me == target and len(ranks) > 1:
        x = zeros(shape)
        return dist.irecv(x, source, group, tag), [x], [given(source, shape)]
    return None, [], []

CALLS = [all_reduce, reduce, broadcast, all_gather, reduce_scatter, scatter, gather, all_to_all]
CALLS += [barrier, message]

def check(what, tensors, wanted):
    for found, right in zip(tensors, wanted, strict=True):
        assert np.array_equal(found.asnumpy(), right), (SEED, what, found.asnumpy(), right)

for round in range(ROUNDS):
    draw = random.Random(SEED * 1000 + round)
    groups = [(None, list(range(workers)))]
    for _ in range(draw.randint(0, 3)):
        ranks = sorted(draw.sample(range(workers), draw.randint(1, workers)))
        if ranks not in [each[1] for each in groups]:
            groups.append((dist.new_group(ranks), ranks))
    under_way = []
    for number in range(draw.randint(5, 30)):
        call_number = (SEED * 1000 + round) * 1000 + number
        call, (group, ranks) = draw.choice(CALLS), draw.choice(groups)
        dtype, op, later = draw.choice(DTYPES), draw.choice(list(JOIN)), draw.random() < 0.6
        count = draw.choice((1, 2, 7, 64, 1000, 70000))
        shape, root, tag = (draw.randint(1, 3), count), draw.choice(ranks), draw.randint(0, 2)
        sizes = [count * draw.randint(1, 3) for _ in ranks]
        sent = [[1 + count * draw.randint(0, 2) for _ in ranks] for _ in ranks]
        source, target = draw.sample(ranks, 2) if len(ranks) > 1 else (ranks[0], ranks[0])
        waits = draw.random() < 0.3
        if me not in ranks:
            continue
        own = ranks.index(me)
        what = f"round {round}, call {number}: {call.__name__} of {ranks}, {dtype}, {op}, async_op={later}"
        handle, tensors, wanted = call()
        if handle is not None and not waits:
            under_way.append((handle, what, tensors, wanted))
            continue
        if handle is not None:
            handle.wait()
        check(what, tensors, wanted)
    random.Random(f"{SEED} {round} {me}").shuffle(under_way)
    for handle, what, tensors, wanted in under_way:
        handle.wait()
        check(what, tensors, wanted)
    for group, ranks in groups[1:]:
        if draw.random() < 0.7 and me in ranks:  # drawn by all, so that all go or stay
            dist.destroy_process_group(group)
print("all right")
"""


@pytest.mark.parametrize(("workers", "transport"), [(2, "auto"), (3, "tcp"), (4, "auto")])
def test_drawn_calls_give_every_worker_what_the_others_gave(workers, transport):
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    texts = outputs_of_workers(SCRIPT, workers, DRAWN_SEED=str(seed), MUSTER_TRANSPORT=transport)
    assert all("all right" in text for text in texts), texts
