"""Groups of some workers and messages between two, in jobs of two to four: values, gradients, errors."""

import json
import re

import numpy as np
import pytest
from job import Job

BEGIN = """
import json
import numpy as np
import muster
import mindspore as ms
from mindspore import Tensor, nn, ops
from mindspore.communication import *
from mindspore.communication import comm_func
from mindspore.mint import distributed as dist

init()
rank, size = get_rank(), get_group_size()

def tell(name, made):
    if isinstance(made, Tensor):
        made = made.asnumpy()
    print("TOLD", json.dumps([name, np.asarray(made).astype(float).tolist()]), flush=True)

def tensor(rows=4):
    return Tensor(np.arange(rows * 2).reshape(rows, 2) + 10.0 * rank, ms.float32)

def refused(call):
    try:
        call()
        print("REFUSED nothing")
    except Exception as error:
        print("REFUSED", type(error).__name__ + ":", error, flush=True)
"""


def outputs(script, workers, ends_well=True, **variables):
    """By rank, what the workers printed."""
    with Job(BEGIN + script, workers=workers, **variables) as job:
        ends = [worker.wait() for worker in job.workers]
        texts = [worker.output() for worker in job.workers]
    assert (ends == [0] * workers) == ends_well, texts
    return texts


def told(text):
    """What a worker told: {name: values}."""
    lines = [json.loads(line[5:]) for line in text.splitlines() if line.startswith("TOLD ")]
    return {name: np.array(made) for name, made in lines}


def told_by_all(script, workers):
    """By rank, what the workers told."""
    return [told(text) for text in outputs(script, workers)]


def tensor_of(rank, rows=4):
    return np.arange(rows * 2.0).reshape(rows, 2) + 10 * rank


def expect(told, expected, rank):
    for name, values in expected.items():
        np.testing.assert_array_equal(told[name], values, err_msg=f"{name}, rank {rank}")


# ---- Groups ------------------------------------------------------------------------------------------------


IN_GROUPS = """
halves = [[0, 2], [1, 3]] if size == 4 else [[0, 2], [1]]
half = next(each for each in halves if rank in each)
create_group("half", half)
create_group("pair", [0, 1]) if rank < 2 else None
own = {
    "rank": get_rank("half"),
    "size": get_group_size("half"),
    "local": get_local_rank("half"),
    "locals": get_local_rank_size("half"),
    "ranks": get_process_group_ranks("half"),
    "world of last": get_world_rank_from_group_rank("half", len(half) - 1),
    "group of own": get_group_rank_from_world_rank(rank, "half"),
}
for name, made in own.items():
    tell(name, made)
"""


@pytest.mark.parametrize("workers", [3, 4])
def test_a_group_numbers_its_workers_in_the_order_of_their_ranks(workers):
    for rank, made in enumerate(told_by_all(IN_GROUPS, workers)):
        half = [each for each in range(workers) if each % 2 == rank % 2]
        place = half.index(rank)
        expected = {
            "rank": place,
            "size": len(half),
            "local": place,
            "locals": len(half),
            "ranks": half,
            "world of last": half[-1],
            "group of own": place,
        }
        expect(made, expected, rank)


CALLS = """
members = get_process_group_ranks("half")
CALLS = {
    "sum": lambda x: ops.AllReduce("sum", "half")(x),
    "product": lambda x: ops.AllReduce("prod", "half")(x),
    "gather": lambda x: ops.AllGather("half")(x),
    "broadcast": lambda x: ops.Broadcast(len(members) - 1, "half")((x,))[0],
    "reduce_scatter": lambda x: ops.ReduceScatter("sum", "half")(x),
    "all_to_all": lambda x: ops.AlltoAll(len(members), 0, 0, "half")(x),
    "reduce": lambda x: ops.Reduce(0, "max", "half")(x),
    "collective_gather": lambda x: comm_func.gather_into_tensor(x, members[0], "half"),
    "collective_scatter": lambda x: comm_func.scatter_tensor(x, members[0], "half"),
}
"""


def in_group(rank, members):
    """What CALLS give on this worker of a group."""
    x = [tensor_of(each) for each in members]
    place, rows = members.index(rank), 4 // len(members)
    part = slice(place * rows, (place + 1) * rows)
    return {
        "sum": sum(x),
        "product": np.prod(x, 0),
        "gather": np.concatenate(x),
        "broadcast": x[-1],
        "reduce_scatter": sum(x)[part],
        "all_to_all": np.concatenate([each[part] for each in x]),
        "reduce": np.max(x, 0) if place == 0 else np.zeros(1),
        "collective_gather": np.concatenate(x) if place == 0 else np.zeros(1),
        "collective_scatter": x[0][part],
    }


@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
@pytest.mark.parametrize("workers", [3, 4])
def test_each_group_has_calls_of_its_own_and_all_workers_theirs_in_between(workers, mode):
    script = (
        IN_GROUPS
        + CALLS
        + f"""
ms.set_context(mode=ms.{mode})

class Net(nn.Cell):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def construct(self, x):
        return self.call(x)

for name, call in CALLS.items():
    tell(name, Net(call)(tensor()))
    tell("all after " + name, Net(ops.AllReduce())(tensor()))
if rank < 2:
    tell("pair", ops.AllReduce("sum", "pair")(tensor()))
x = tensor()
net = Net(CALLS["sum"])
tell("gradient", ms.grad(lambda x: ((rank + 1) * net(x)).sum())(x))
"""
    )
    for rank, made in enumerate(told_by_all(script, workers)):
        members = [each for each in range(workers) if each % 2 == rank % 2]
        expected = in_group(rank, members)
        expect(made, expected, rank)
        of_all = sum(tensor_of(each) for each in range(workers))
        expect(made, {f"all after {name}": of_all for name in expected}, rank)
        expect(made, {"gradient": sum(each + 1.0 for each in members) * np.ones((4, 2))}, rank)
        if rank < 2:
            expect(made, {"pair": tensor_of(0) + tensor_of(1)}, rank)


def test_groups_of_muster_are_values_that_ops_take():
    script = """
from muster import ops
left = muster.new_group([2, 0])
print(left, left.rank, left.size)
again = muster.new_group([2, 0])
if left.rank is not None:
    tell("sum", ops.all_reduce(tensor(), group=left))
    tell("gather", ops.all_gather(tensor(1), group=again))
    tell("rank", left.rank)
    left.close()
    refused(lambda: ops.all_reduce(tensor(), group=left))
else:
    refused(lambda: ops.all_reduce(tensor(), group=left))
refused(lambda: muster.new_group([0, 3]))
refused(lambda: ops.all_reduce(tensor(), group=7))
"""
    texts = outputs(script, 3)
    assert "REFUSED ValueError: worker 1 is not in group '2,0#1' (workers 2, 0)" in texts[1]
    for rank in (0, 2):
        assert f"REFUSED ValueError: worker {rank} has made no group '2,0#1'" in texts[rank]
        made = told(texts[rank])
        expect(made, {"sum": tensor_of(0) + tensor_of(2), "rank": {2: 0, 0: 1}[rank]}, rank)
        expect(made, {"gather": np.concatenate([tensor_of(2, 1), tensor_of(0, 1)])}, rank)
    for text in texts:
        assert "REFUSED ValueError: new_group: different ranks from 0 to 2 are needed, not [0, 3]" in text
        assert "REFUSED TypeError: a group is made by muster.new_group; this is int" in text


def test_who_is_outside_of_a_group_cannot_make_or_call_it():
    script = """
if rank == 1:
    refused(lambda: create_group("pair", [0, 2]))
    refused(lambda: ops.AllReduce("sum", "pair"))
    tell("name", [dist.new_group([0, 2]) == ""])
else:
    create_group("pair", [0, 2])
    create_group("pair", [2, 0])
    refused(lambda: create_group("pair", [0, 1, 2]))
    tell("sum", ops.AllReduce("sum", "pair")(tensor()))
    destroy_group("pair")
    refused(lambda: ops.AllReduce("sum", "pair"))
    tell("name", [dist.new_group([2, 0]) != ""])
"""
    texts = outputs(script, 3)
    assert "REFUSED RefusedError: worker 1 is none of group 'pair' (workers 0, 2)" in texts[1]
    assert "REFUSED ValueError: this worker has made no group 'pair'" in texts[1]
    assert "REFUSED ValueError: create_group: 'pair' is a group of [0, 2], not of all workers" in texts[0]
    assert "REFUSED ValueError: this worker has made no group 'pair'" in texts[0]
    assert all('["name", [1.0]]' in text for text in texts)


def test_members_that_disagree_hear_what_both_have():
    script = """
if rank < 2:
    create_group("pair", [[0, 1], [0, 1, 2]][rank])
    refused(lambda: ops.AllReduce("sum", "pair")(tensor()))
"""
    texts = outputs(script, 4)
    assert "group 'pair' has the ranks 0, 1 on rank 0, and 0, 1, 2 on rank 1" in texts[0], texts[0]
    assert "group 'pair' has the ranks 0, 1, 2 on rank 1, and 0, 1 on rank 0" in texts[1], texts[1]


def test_calls_that_differ_name_the_group():
    script = """
group = muster.new_group([1, 2], "right")
if rank > 0:
    muster.ops.all_reduce(Tensor(np.ones(1 + rank, np.float32)), group=group)
"""
    texts = outputs(script, 3, ends_well=False)
    assert "group 'right' (workers 1, 2): rank 0 called all_reduce" in texts[1], texts[1]
    assert "(2 x float32, sum), but rank 1 called" in texts[1], texts[1]


def test_the_death_of_a_member_names_it_and_the_group():
    script = """
import os, signal
group = muster.new_group([0, 2], "left")
if rank == 2:
    muster.ops.all_reduce(tensor(), group=group)
    os.kill(os.getpid(), signal.SIGKILL)
if rank == 0:
    muster.ops.all_reduce(tensor(), group=group)
    muster.ops.all_reduce(tensor(), group=group)
"""
    texts = outputs(script, 3, ends_well=False)
    assert re.search(r"group 'left' \(workers 0, 2\): .*worker 2", texts[0]), texts[0]


def test_a_job_whose_processes_may_come_back_has_no_groups_of_some(tmp_path):
    script = """
refused(lambda: create_group("pair", [0, 1]))
create_group("everybody", [0, 1, 2])
tell("sum", ops.AllReduce("sum", "everybody")(tensor()))
"""
    texts = outputs(script, 3, MS_ENABLE_RECOVERY="1", MS_RECOVERY_PATH=str(tmp_path))
    said = "REFUSED NotImplementedError: group 'pair' (workers 0, 1): groups of some workers are not provided"
    assert said in texts[0], texts[0]


# ---- Messages ----------------------------------------------------------------------------------------------


def test_messages_have_tags_and_go_through_graphs_and_functions():
    script = """
group = "pair"
create_group(group, [0, 1]) if rank < 2 else None

class Exchange(nn.Cell):
    def __init__(self):
        super().__init__()
        self.send = ops.Send(sr_tag=3, dest_rank=1, group=group)
        self.receive = ops.Receive(sr_tag=3, src_rank=0, shape=[4, 2], dtype=ms.float32, group=group)

    def construct(self, x):
        return self.send(x) if rank == 0 else self.receive()

if rank < 2:
    tell("cell", Exchange()(tensor()))
if rank == 0:
    comm_func.send(tensor(), 2, tag=1)
    comm_func.send(2 * tensor(), 2, tag=2)
if rank == 2:
    tell("second", comm_func.recv(tensor(), 0, tag=2))
    tell("first", comm_func.recv(tensor(), 0, tag=1))
"""
    made = told_by_all(script, 3)
    for rank in (0, 1):
        expect(made[rank], {"cell": tensor_of(0)}, rank)
    expect(made[2], {"first": tensor_of(0), "second": 2 * tensor_of(0)}, 2)


@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
def test_the_gradient_of_a_message_goes_back_to_its_sender(mode):
    script = f"""
ms.set_context(mode=ms.{mode})
if rank == 0:
    tell("gradient", ms.grad(lambda x: (3 * ops.Send(0, 1)(x)).sum())(tensor()))
else:
    net = lambda x: (ops.Receive(0, 0, (4, 2), ms.float32)(x) * tensor()).sum()
    tell("gradient", ms.grad(net)(Tensor([0.0])))
"""
    made = told_by_all(script, 2)
    expect(made[0], {"gradient": 3 + tensor_of(1)}, 0)
    expect(made[1], {"gradient": [0]}, 1)


def test_messages_under_way_meet_each_other():
    script = """
after, before = (rank + 1) % size, (rank - 1) % size
big = Tensor(np.full(1 << 20, rank, np.float32))
got, second = comm_func.irecv(big, before)
first = comm_func.isend(big, after)
first.wait()
second.wait()
tell("big", [got.asnumpy().min(), got.asnumpy().max()])
P2POp = comm_func.P2POp
made = comm_func.batch_isend_irecv(
    [P2POp("isend", tensor(), after), P2POp(comm_func.irecv, (4, 2), before, recv_dtype=ms.float32)]
)
tell("batch", made[1])
tell("nothing", made[0])
"""
    for rank, made in enumerate(told_by_all(script, 3)):
        before = (rank - 1) % 3
        expect(made, {"big": [before, before], "batch": tensor_of(before), "nothing": 0}, rank)


def test_what_is_wrong_with_a_message_is_said():
    script = """
refused(lambda: comm_func.send(tensor(), rank))
refused(lambda: comm_func.send(tensor(), 5))
refused(lambda: ops.Send(-1, 1 - rank)(tensor()))
refused(lambda: comm_func.P2POp("send", tensor(), 0))
if rank == 0:
    comm_func.send(tensor(4), 1)
else:
    refused(lambda: comm_func.recv(tensor(3), 0))
"""
    texts = outputs(script, 2)
    for rank, text in enumerate(texts):
        assert f"worker {rank} cannot exchange messages with rank {rank} of 2 workers" in text, text
        assert "a rank is 0 to 1, not 5" in text, text
        assert "a tag is 0 or more, not -1" in text, text
        assert "REFUSED ValueError: Expected ``op``" in text, text
    assert "rank 0 sent 32 bytes with tag 0 to rank 1, which expected 24" in texts[1], texts[1]


# ---- mint.distributed --------------------------------------------------------------------------------------


def test_mint_distributed_writes_into_tensors():
    script = """
dist.init_process_group()
group = dist.new_group([0, 2]) if rank != 1 else None
x = tensor()
handle = dist.all_reduce(x, async_op=True)
y = tensor()
other = dist.all_reduce(y, "max", async_op=True)
other.wait(), handle.wait()
tell("sum", x)
tell("max", y)
if group is not None:
    x = tensor()
    dist.all_reduce(x, group=group)
    tell("in group", x)
    tell("ranks", [dist.get_rank(group), dist.get_world_size(group), dist.get_global_rank(group, 1)])
x = tensor()
dist.broadcast(x, 2)
tell("broadcast", x)
x = tensor()
dist.reduce(x, 1)
tell("reduce", x)
out = ops.zeros((12, 2), ms.float32)
dist.all_gather_into_tensor(out, tensor())
tell("gather into", out)
rows = [1, 2, 3]
out = ops.zeros((6, 2), ms.float32)
dist.all_gather_into_tensor_uneven(out, tensor(rows[rank]), rows)
tell("gather uneven", out)
outs = [ops.zeros((each, 2), ms.float32) for each in rows]
dist.all_gather(outs, tensor(rows[rank]))
tell("gather list", ops.cat(outs))
out = ops.zeros((2, 2), ms.float32)
dist.reduce_scatter_tensor(out, tensor(6))
tell("reduce_scatter", out)
out = ops.zeros((rows[rank], 2), ms.float32)
dist.reduce_scatter_tensor_uneven(out, tensor(6), rows)
tell("scatter uneven", out)
dist.reduce_scatter(out, [tensor(each) for each in rows])
tell("scatter list", out)
out = ops.zeros((4, 2), ms.float32)
dist.scatter(out, [each * tensor() for each in (1, 2, 3)] if rank == 1 else [], 1)
tell("scatter", out)
outs = [ops.zeros((4, 2), ms.float32) for _ in range(3)] if rank == 2 else []
dist.gather(tensor(), outs, 2)
tell("gather", ops.cat(outs) if outs else 0)
outs = [ops.zeros((1, 2), ms.float32) for _ in range(3)]
dist.all_to_all(outs, [each * tensor(1) for each in range(3)])
tell("all_to_all", ops.cat(outs))
out = ops.zeros((3 * rows[rank], 2), ms.float32)
dist.all_to_all_single(out, tensor(6), [rows[rank]] * 3, rows)
tell("single", out)
dist.barrier()
if rank == 0:
    dist.send(tensor(), 1)
elif rank == 1:
    out = ops.zeros((4, 2), ms.float32)
    tell("zero", dist.recv(out, 0))
    tell("received", out)
after, before = (rank + 1) % 3, (rank + 2) % 3
out = ops.zeros((4, 2), ms.float32)
dist.batch_isend_irecv([dist.P2POp("isend", tensor(), after), dist.P2POp(dist.irecv, out, before)])[0].wait()
tell("ring", out)
"""
    rows, x = [1, 2, 3], [tensor_of(each) for each in range(3)]
    six = sum(tensor_of(each, 6) for each in range(3))
    for rank, made in enumerate(told_by_all(script, 3)):
        begin = sum(rows[:rank])
        part = slice(begin, begin + rows[rank])
        uneven = np.concatenate([tensor_of(each, rows[each]) for each in range(3)])
        expected = {
            "sum": sum(x),
            "max": x[2],
            "broadcast": x[2],
            "reduce": sum(x) if rank == 1 else x[rank],
            "gather into": np.concatenate(x),
            "gather uneven": uneven,
            "gather list": uneven,
            "reduce_scatter": six[2 * rank : 2 * rank + 2],
            "scatter uneven": six[part],
            "scatter list": sum(tensor_of(each, rows[rank]) for each in range(3)),
            "scatter": (rank + 1) * x[1],
            "gather": np.concatenate(x) if rank == 2 else 0,
            "all_to_all": np.concatenate([rank * tensor_of(each, 1) for each in range(3)]),
            "single": np.concatenate([tensor_of(each, 6)[part] for each in range(3)]),
            "ring": x[(rank + 2) % 3],
        }
        expect(made, expected, rank)
        if rank != 1:
            expect(made, {"in group": x[0] + x[2], "ranks": [rank // 2, 2, 2]}, rank)
        else:
            expect(made, {"zero": 0, "received": x[0]}, rank)


def test_objects_are_gathered_broadcast_and_scattered():
    script = """
things = [{"rank": rank}, ["a" * rank], None]
got = [None] * size
dist.all_gather_object(got, {"rank": rank, "text": "x" * 100 * rank})
print("SAID", got == [{"rank": each, "text": "x" * 100 * each} for each in range(size)])
got = [None] * size
dist.gather_object([rank], got if rank == 1 else None, 1)
print("SAID", got == ([[0], [1]] if rank == 1 else [None, None]))
mine = [("from", rank), {1, 2}] if rank == 0 else [None, None]
dist.broadcast_object_list(mine, 0)
print("SAID", mine == [("from", 0), {1, 2}])
mine = [None]
dist.scatter_object_list(mine, ["for 0", {"for": 1}] if rank == 1 else None, 1)
print("SAID", mine[0] == ("for 0", {"for": 1})[rank])
class Strange:
    pass
refused(lambda: dist.all_gather_object([None] * size, Strange()))
"""
    for text in outputs(script, 2):
        assert text.count("SAID True") == 4, text
        assert "REFUSED UnpicklingError: global '__main__.Strange' is forbidden" in text, text
