"""Collective ops under MindSpore's names in jobs of two and three: values, gradients, dtypes, errors."""

import json

import numpy as np
import pytest
from job import Job

BEGIN = """
import json
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops
from mindspore.communication import comm_func, create_group, get_group_size, get_rank, init

init()
rank, size = get_rank(), get_group_size()

def tell(name, made):
    print("TOLD", json.dumps([name, made.asnumpy().astype(float).tolist(), str(made.dtype)]), flush=True)

def tensor(dtype=ms.float32):
    return Tensor(np.arange(size * 2).reshape(size, 2) + rank, ms.float32).astype(dtype)
"""


def told_by_all(script, workers):
    """By rank, what the workers told: {name: (values, dtype)}. All of them have ended well."""
    with Job(BEGIN + script, workers=workers) as job:
        ends = [worker.wait() for worker in job.workers]
        outputs = [worker.output() for worker in job.workers]
    assert ends == [0] * workers, outputs
    lines = [[line[5:] for line in text.splitlines() if line.startswith("TOLD ")] for text in outputs]
    return [{name: (np.array(made), dtype) for name, made, dtype in map(json.loads, each)} for each in lines]


CALLS = """
CALLS = {
    "sum": lambda x: ops.AllReduce()(x),
    "gather": lambda x: ops.AllGather()(x),
    "broadcast": lambda x: ops.Broadcast(1)((x,))[0],
    "reduce_scatter": lambda x: ops.ReduceScatter()(x),
    "all_to_all": lambda x: ops.AlltoAll(size, 0, 1)(x),
    "reduce": lambda x: ops.Reduce(1)(x),
    "collective_gather": lambda x: ops.CollectiveGather(0)(x),
    "collective_scatter": lambda x: ops.CollectiveScatter(1)(x),
}
"""


def inputs(workers):
    """What `tensor()` gives on each worker."""
    return [np.arange(workers * 2.0).reshape(workers, 2) + rank for rank in range(workers)]


def values(rank, workers):
    """What CALLS give on this worker."""
    x = inputs(workers)
    row = slice(rank, rank + 1)
    return {
        "sum": sum(x),
        "gather": np.concatenate(x),
        "broadcast": x[1],
        "reduce_scatter": sum(x)[row],
        "all_to_all": np.concatenate([each[row] for each in x], 1),
        "reduce": sum(x) if rank == 1 else np.zeros(1),
        "collective_gather": np.concatenate(x) if rank == 0 else np.zeros(1),
        "collective_scatter": x[1][row],
    }


def gradients(rank, workers):
    """Those of the sum over the workers of (rank + 1) times the elements that CALLS give there."""
    ones = np.ones((workers, 2))
    everywhere = sum(range(1, workers + 1))
    by_row = np.repeat(np.arange(1.0, workers + 1)[:, None], 2, 1)
    only = float(rank == 1)
    return {
        "sum": everywhere * ones,
        "gather": everywhere * ones,
        "broadcast": only * everywhere * ones,
        "reduce_scatter": by_row,
        "all_to_all": by_row,
        "reduce": 2 * ones,
        "collective_gather": ones,
        "collective_scatter": only * by_row,
    }


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
def test_collective_ops_in_cells_give_their_values_and_gradients(workers, mode):
    script = (
        CALLS
        + f"""
ms.set_context(mode=ms.{mode})

class Net(nn.Cell):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def construct(self, x):
        return self.call(x)

for name, call in CALLS.items():
    net = Net(call)
    tell(name, net(tensor()))
    tell("gradient of " + name, ms.grad(lambda x: ((rank + 1) * net(x)).sum())(tensor()))
"""
    )
    for rank, told in enumerate(told_by_all(script, workers)):
        for name, expected in values(rank, workers).items():
            np.testing.assert_array_equal(told[name][0], expected, err_msg=f"{name}, rank {rank}")
        for name, expected in gradients(rank, workers).items():
            made = told["gradient of " + name][0]
            np.testing.assert_array_equal(made, expected, err_msg=f"gradient of {name}, rank {rank}")


DTYPES = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
]


def test_collective_ops_keep_every_dtype():
    script = (
        CALLS
        + f"""
for dtype in {DTYPES}:
    for name, call in CALLS.items():
        tell(f"{{name}} of {{dtype}}", call(tensor(getattr(ms, dtype))))
tell("flags", ops.AllGather()(Tensor([rank == 1])))
"""
    )
    for rank, told in enumerate(told_by_all(script, 2)):
        for dtype in DTYPES:
            for name, expected in values(rank, 2).items():
                made, made_dtype = told[f"{name} of {dtype}"]
                np.testing.assert_array_equal(made, expected, err_msg=f"{name} of {dtype}, rank {rank}")
                assert made_dtype.lower() == dtype, name
        np.testing.assert_array_equal(told["flags"][0], [False, True])


def test_functions_of_comm_func_and_named_groups_of_all_workers():
    script = """
comm_func.barrier()
create_group("everybody", list(range(size)))
tell("sum", comm_func.all_reduce(tensor(), group="everybody")[0])
made, handle = comm_func.all_reduce(tensor(), "max", "hccl_world_group", async_op=True)
handle.wait()
tell("max", made)
tell("gather", comm_func.all_gather_into_tensor(tensor())[0])
tell("reduce_scatter", comm_func.reduce_scatter_tensor(tensor())[0])
tell("broadcast", comm_func.broadcast(tensor(), 1))
tell("reduce", comm_func.reduce(tensor(), 1))
tell("collective_gather", comm_func.gather_into_tensor(tensor()))
tell("collective_scatter", comm_func.scatter_tensor(tensor(), 1))
"""
    for rank, told in enumerate(told_by_all(script, 2)):
        expected = {**values(rank, 2), "max": inputs(2)[1]}
        del expected["all_to_all"]
        for name, each in expected.items():
            np.testing.assert_array_equal(told[name][0], each, err_msg=f"{name}, rank {rank}")


REFUSED = {
    "ops.Broadcast(5)((tensor(),))": "ValueError: Broadcast: root_rank is a rank from 0 to 1, not 5",
    "ops.Broadcast(0)(tensor())": "TypeError: Broadcast: a tuple of tensors is needed, not Tensor",
    "ops.AllReduce()(3)": "TypeError: AllReduce: a Tensor is needed, not int 3",
    "ops.AllGather()(Tensor(1.0))": "ValueError: AllGather: a tensor without axes cannot be joined",
    "ops.ReduceScatter()(ops.ones((3, 2)))": "ValueError: ReduceScatter: axis 0 has 3 elements, which 2 "
    "workers cannot share evenly",
    "ops.AlltoAll(3, 0, 1)(tensor())": "ValueError: AlltoAll: split_count is the number of workers, 2, not 3",
    "ops.AlltoAll(2, 7, 1)(tensor())": "ValueError: AlltoAll: split_dim is no axis of a tensor of shape",
    "ops.Reduce(-1)(tensor())": "ValueError: Reduce: dest_rank is a rank from 0 to 1, not -1",
    "ops.AllReduce('sum', 'half')": "ValueError: this worker has made no group 'half'",
    "create_group('ghosts', [0, 7])": "ValueError: group 'ghosts' (workers 0, 7): different ranks",
    "create_group('twice', [0, 1, 1])": "ValueError: group 'twice' (workers 0, 1, 1): different ranks",
    "create_group('no list', (0, 1))": "TypeError: create_group: the argument 'rank_ids' must be",
}


def test_what_is_wrong_is_said_before_anybody_waits_and_the_job_goes_on():
    script = f"""
for call in {list(REFUSED)}:
    try:
        eval(call)
        print("REFUSED", call, "was not")
    except Exception as error:
        print("REFUSED", call, type(error).__name__ + ":", error)
tell("sum", ops.AllReduce()(tensor()))
"""
    with Job(BEGIN + script, workers=2) as job:
        assert [worker.wait() for worker in job.workers] == [0, 0]
        for worker in job.workers:
            text = worker.output()
            for call, message in REFUSED.items():
                assert f"REFUSED {call} {message}" in text, text
            assert "TOLD" in text


def test_calls_that_differ_are_named_on_all_workers():
    script = "ops.AllReduce()(ops.ones((2 + rank,)))"
    with Job(BEGIN + script, workers=2) as job:
        assert all(worker.wait() != 0 for worker in job.workers)
        for worker in job.workers:
            text = worker.output()
            assert "rank 0 called all_reduce" in text, text
            assert "(2 x float32, sum), but rank 1 called" in text, text
