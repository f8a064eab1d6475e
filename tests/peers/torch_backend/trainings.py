"""Trainings and calls of PyTorch's libraries on two ranks, over the backend that the command line names.

    trainings.py muster|gloo CASE

Rank 0 prints a line `result JSON`, which is the same for both backends.
"""

import json
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

STEPS = 8
SPARSE_DTYPES = (torch.float32, torch.float64, torch.int64)


def network(width: int = 32) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 8))


def batches(seed: int):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        yield torch.randn(4, 16, generator=generator), torch.randn(4, 8, generator=generator)


def losses(net, optimizer, seed: int) -> list[float]:
    found = []
    for x, y in batches(seed):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def case_ddp(rank):
    net = nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=0.001)  # several buckets at once
    return losses(net, sgd(net), rank)


def case_ddp_hook(rank):
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

    net = nn.parallel.DistributedDataParallel(network())
    net.register_comm_hook(None, bf16_compress_hook)
    return losses(net, sgd(net), rank)


def case_ddp_hook_of_gathered_gradients(_):
    """A hook of one's own reads what the future of an all_gather holds."""

    def average(_, bucket):
        gathered = [torch.empty_like(bucket.buffer()) for _ in range(dist.get_world_size())]
        future = dist.all_gather(gathered, bucket.buffer(), async_op=True).get_future()
        return future.then(lambda ended: sum(ended.value()) / dist.get_world_size())

    net = nn.parallel.DistributedDataParallel(network())
    net.register_comm_hook(None, average)
    return losses(net, sgd(net), dist.get_rank())


def case_futures_of_lists(rank):
    def shapes(held):
        return [shapes(one) for one in held] if isinstance(held, list) else list(held.shape)

    part, world = torch.ones(3), dist.get_world_size()
    parts = [torch.zeros(3) for _ in range(world)]
    at_root = parts if rank == 0 else None
    works = [
        dist.all_gather(parts, part, async_op=True),
        dist.gather(part, at_root, async_op=True),
        dist.scatter(part, at_root, async_op=True),
        dist.all_to_all(parts, [torch.ones(3)] * world, async_op=True),
    ]
    lists = [[torch.zeros(3), torch.zeros(2)] for _ in range(world)]
    coalesced = dist.all_gather_coalesced(lists, [part, torch.ones(2)], async_op=True)
    futures = [shapes(work.get_future().wait()) for work in works]
    for work in works:
        work.wait()  # of Gloo: it ends a future before the call
    return [
        *futures,
        *[shapes(list(work.result())) for work in works],
        shapes(coalesced.wait()),
    ]


def case_ddp_powersgd(rank):
    """Its callbacks make calls, and wait for them."""
    from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

    net = nn.parallel.DistributedDataParallel(network())
    net.register_comm_hook(
        PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2), powerSGD_hook
    )
    return losses(net, sgd(net), rank)


def case_ddp_accumulation(rank):
    net = nn.parallel.DistributedDataParallel(network())
    optimizer, found = sgd(net), []
    for step, (x, y) in enumerate(batches(rank)):
        last = step % 2 == 1
        with net.no_sync() if not last else torch.enable_grad():
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
        found.append(loss.item())
    return found


def case_join(rank):
    """Ranks with different numbers of batches."""
    found = []
    for initial in (True, False):  # the second means over who is still there, which a reducer waits for
        net = nn.parallel.DistributedDataParallel(network())
        optimizer = sgd(net)
        with net.join(divide_by_initial_world_size=initial):
            for _ in range(2 + rank):
                for x, y in batches(rank):
                    optimizer.zero_grad()
                    loss = nn.functional.mse_loss(net(x), y)
                    loss.backward()
                    optimizer.step()
                    found.append(loss.item())
    return found


def case_fsdp(rank):
    from torch.distributed.fsdp import fully_shard

    net = network()
    for layer in (net[0], net[2], net):
        fully_shard(layer, mesh=init_device_mesh("cpu", (2,)))
    return losses(net, sgd(net), rank)


def case_zero(rank):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    net = nn.parallel.DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=0.01)
    found = losses(net, optimizer, rank)
    optimizer.consolidate_state_dict(to=0)
    if rank == 0:
        found.append(sum(s["exp_avg"].sum().item() for s in optimizer.state_dict()["state"].values()))
    return found


def case_tensor_parallel(_):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    net = network()
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    net = parallelize_module(net, init_device_mesh("cpu", (2,)), plan)
    return losses(net, torch.optim.SGD(net.parameters(), lr=0.1), 0)


def case_dtensor(_):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (2,))
    whole = torch.arange(30.0).reshape(5, 6)  # 5 rows on two ranks: shards of different sizes
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    columns = rows.redistribute(mesh, [Shard(1)])
    product = torch.matmul(rows, columns.redistribute(mesh, [Replicate()]).t())
    return [columns.full_tensor().tolist(), product.full_tensor().tolist(), rows.sum().full_tensor().item()]


def case_pipeline(rank):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    stage = nn.Sequential(*(network()[:2] if rank == 0 else network()[2:]))
    schedule = Schedule1F1B(
        PipelineStage(stage, rank, 2, torch.device("cpu")), n_microbatches=4, loss_fn=nn.functional.mse_loss
    )
    optimizer, found = torch.optim.SGD(stage.parameters(), lr=0.1), []
    for x, y in batches(0):
        optimizer.zero_grad()
        parts: list = []
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=y, losses=parts)
        optimizer.step()
        shared = torch.tensor([float(sum(part.item() for part in parts))])
        dist.broadcast(shared, 1)
        found.append(shared.item())
    return found


def case_checkpoint(rank):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
    from torch.distributed.fsdp import fully_shard

    folder = [tempfile.mkdtemp()] if rank == 0 else [None]
    dist.broadcast_object_list(folder)
    net = network()
    fully_shard(net)
    found = losses(net, sgd(net), rank)
    dcp.save(get_model_state_dict(net), checkpoint_id=folder[0])
    torch.manual_seed(7)
    other = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
    fully_shard(other)
    state = get_model_state_dict(other)
    dcp.load(state, checkpoint_id=folder[0])
    set_model_state_dict(other, state)
    return found + losses(other, sgd(other), rank)


def case_objects(rank):
    everybody: list = [None, None]
    dist.all_gather_object(everybody, {"rank": rank, "text": "x" * (rank + 1)})
    told = [{"from": 0}, "two"] if rank == 0 else [None, None]
    dist.broadcast_object_list(told)
    given: list = [None]
    dist.scatter_object_list(given, ["for 0", "for 1"] if rank == 0 else None)
    gathered: list = [None, None]
    dist.gather_object(given[0], gathered if rank == 0 else None)
    sent = [("a", rank)] if rank == 1 else [None]
    if rank == 1:
        dist.send_object_list(sent, 0)
    else:
        dist.recv_object_list(sent, 1)
    return [everybody, told, given, gathered, sent]


def case_messages(rank):
    other = 1 - rank
    got = [torch.zeros(3), torch.zeros(300_000)]
    sent = [torch.full((3,), rank + 1.0), torch.full((300_000,), rank + 5.0)]
    batch = [dist.P2POp(dist.isend, tensor, other) for tensor in sent]
    batch += [dist.P2POp(dist.irecv, tensor, other) for tensor in got]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    first, second = torch.zeros(1), torch.zeros(1)
    if rank == 1:
        works = [dist.isend(torch.tensor([7.0]), 0, tag=7), dist.isend(torch.tensor([8.0]), 0, tag=8)]
        for work in works:
            work.wait()
        dist.send(torch.tensor([9.0]), 0, tag=9)
        return None
    dist.recv(second, 1, tag=8)  # in another order than they were sent
    dist.recv(first, 1, tag=7)
    late = torch.zeros(1)
    source = dist.recv(late, tag=9)
    return [got[0].tolist(), got[1].mean().item(), first.item(), second.item(), late.item(), source]


def case_any_source(rank):
    """Two receives from any rank at once, then one from a rank that an earlier one had asked, too."""
    if rank == 1:
        for value in (1.0, 2.0, 3.0):
            dist.send(torch.full((2,), value), 0)
        return None
    got = [torch.zeros(2) for _ in range(3)]
    works = [dist.irecv(tensor) for tensor in got[:2]]
    for work in works:
        work.wait()
    dist.recv(got[2], 1)
    return [[tensor.tolist() for tensor in got], [work.source_rank() for work in works]]


def case_any_source_of_several(rank):
    """Receives from any of three ranks or more; later messages with the same tag have other sizes."""
    ranks = dist.get_world_size()
    if rank > 0:
        dist.send(torch.full((1,), float(rank)), 0)
    else:
        first = [(dist.recv(tensor := torch.zeros(1)), tensor.item()) for _ in range(ranks - 1)]
    dist.barrier()
    if rank == ranks - 1:
        dist.send(torch.arange(3.0), 0)
        dist.send(torch.arange(2.0), 0)
    if rank > 0:
        return None
    named, other = torch.zeros(3), torch.zeros(2)
    dist.recv(named, ranks - 1)
    source = dist.recv(other)
    return [sorted(first), named.tolist(), source, other.tolist()]


def case_sparse(rank):
    """Some entries at equal places, none at all, several values an entry, and the gradient of a table."""
    at = torch.tensor([[rank, rank + 1, 0, 0], [0, rank, 1, 1]])
    sums = [torch.sparse_coo_tensor(at, torch.arange(1, 5, dtype=dtype), (6, 6)) for dtype in SPARSE_DTYPES]
    empty = torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0, 2), (4, 2))
    sums.append(empty if rank else torch.sparse_coo_tensor([[3]], [[1.0, 2.0]], (4, 2)))
    for tensor in sums[1:]:
        dist.all_reduce(tensor)
    with torch.device("meta"):  # what scripts make there, and calls do not
        dist.all_reduce(sums[0], async_op=True).wait()
    torch.manual_seed(0)
    table = nn.EmbeddingBag(10, 4, sparse=True, mode="sum")
    net = nn.parallel.DistributedDataParallel(nn.Sequential(table, nn.Linear(4, 2)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        draw = torch.Generator().manual_seed(2 * step + rank)
        optimizer.zero_grad()
        net(torch.randint(0, 10, (4, 3), generator=draw)).square().mean().backward()
        optimizer.step()
    found = [tensor.to_dense().tolist() for tensor in sums]
    return found + [round(parameter.sum().item(), 5) for parameter in net.parameters()]


def case_complex(rank):
    """Sums and means of complex numbers, which are those of their two parts."""
    found = []
    numbers = torch.arange(1.0, 5.0) + 1j * (rank + 1)
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        part, other = torch.zeros(2, dtype=torch.complex64), torch.zeros(4, dtype=torch.complex64)
        dist.reduce_scatter_tensor(part, numbers.conj(), op)
        dist.reduce_scatter(other, [numbers, 2 * numbers], op)
        dist.reduce(whole := numbers.clone(), 0, op)
        found += [torch.view_as_real(one).tolist() for one in (part, other, whole)]
    return found


def muster_sparse_mean(rank):
    """What Gloo refuses: means of sparse tensors, and sums of 16 bits, which are added in 32."""
    mean = torch.sparse_coo_tensor([[rank, 3]], [3.0, 4.0], (4,))
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    summand = torch.tensor([256.0 if rank == 0 else 1.0], dtype=torch.bfloat16)
    small = torch.sparse_coo_tensor([[0]], summand, (1,))
    dist.all_reduce(small)
    return [mean.to_dense().tolist(), small.to_dense().tolist()]


def muster_uneven(rank):
    """What Gloo refuses: lists of tensors of different sizes."""
    gathered = [torch.zeros(1), torch.zeros(2)]
    dist.all_gather(gathered, torch.full((rank + 1,), rank + 1.0))
    part = torch.zeros(rank + 1)
    dist.reduce_scatter(part, [torch.ones(1), torch.ones(2) * 2])
    dist.broadcast(part if rank == 1 else (part := torch.zeros(2)), 1)
    return [[tensor.tolist() for tensor in gathered], part.tolist()]


def case_compiled(rank):
    import torch.distributed._functional_collectives as functional

    group = dist.group.WORLD

    def step(x):
        summed = functional.all_reduce(x * 2, "sum", group)
        gathered = functional.all_gather_tensor(x + 1, 0, group)
        part = functional.reduce_scatter_tensor(gathered * 3, "avg", 0, group)
        mixed = functional.all_to_all_single(gathered, [2, 2], [2, 2], group)
        return summed + part, mixed

    compiled = torch.compile(step, fullgraph=True, backend=os.environ.get("COMPILER", "inductor"))
    summed, mixed = compiled(torch.arange(4.0).reshape(2, 2) + rank)
    return [summed.tolist(), mixed.tolist()]


def case_calls(rank):
    """Each call once, with tensors whose elements do not lie in order among them."""
    found = []

    def note(*tensors):
        found.append([tensor.float().tolist() for tensor in tensors])

    names = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64")
    for dtype in [getattr(torch, name) for name in names]:
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MAX, dist.ReduceOp.MIN):
            tensor = torch.arange(1, 6).to(dtype) + rank
            dist.all_reduce(tensor, op)
            note(tensor)
    for op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        tensor = torch.tensor([12, 10]) + rank
        dist.all_reduce(tensor, op)
        note(tensor)
    turned = torch.arange(6.0).reshape(2, 3).t() * (rank + 1)
    dist.all_reduce(turned)
    note(turned)
    work = dist.all_reduce(turned, async_op=True)
    work.wait()
    note(turned)
    found.append([work.is_completed(), work.is_success()])
    one = torch.ones(1).expand(4)
    dist.all_reduce(one)
    note(one)
    columns = [torch.zeros(2, 2).t(), torch.zeros(4, 2)[::2]]
    dist.all_gather(columns, torch.arange(4.0).reshape(2, 2).t() + rank)
    note(*columns)
    tensor = torch.arange(4.0)[::2] + rank
    dist.broadcast(tensor, 1)
    note(tensor)
    tensor = torch.full((3,), rank + 1.0)
    dist.reduce(tensor, 1)
    dist.broadcast(tensor, 1)
    note(tensor)
    out = torch.zeros(2, 2)
    dist.reduce_scatter_tensor(out, torch.arange(8.0).reshape(4, 2) * (rank + 1))
    note(out)
    dist.reduce_scatter(out, [torch.ones(2, 2), torch.ones(2, 2) * 2])
    note(out)
    out = torch.zeros(4)
    dist.all_gather_into_tensor(out, torch.tensor([1.0, 2.0]) * (rank + 1))
    note(out)
    out = torch.zeros(3)
    splits = ([1, 2], [1, 2]) if rank == 0 else ([2, 1], [2, 1])
    dist.all_to_all_single(out, torch.arange(3.0) + 10 * rank, *splits)
    note(out)
    parts = [torch.zeros(2), torch.zeros(2)]
    dist.gather(torch.tensor([1.0, 2.0]) + rank, parts if rank == 0 else None)
    note(*parts)
    dist.scatter(out[:2], [torch.ones(2), torch.ones(2) * 2] if rank == 0 else None)
    note(out)
    with dist._coalescing_manager():
        tensors = [torch.full((2,), float(index + rank)) for index in range(3)]
        for tensor in tensors:
            dist.all_reduce(tensor)
    note(*tensors)
    tensor = torch.ones(2, dtype=torch.complex64) * (1 + 2j)
    dist.all_reduce(tensor)
    note(torch.view_as_real(tensor))
    group = dist.new_group([1])
    if rank == 1:
        dist.all_reduce(tensor, group=group)
    work = dist.all_reduce(torch.ones(1), async_op=True)
    value = work.get_future().then(lambda future: future.value()[0] + 1).wait()
    found.append([value.item(), work.is_completed(), work.is_success()])
    dist.barrier()
    return found


def case_refusals(rank):
    """The class of each error, of arguments that are wrong on all ranks."""
    zeros, whole = torch.zeros, torch.zeros(2, dtype=torch.int64)
    wrong = {
        "number of outputs": lambda: dist.all_gather([zeros(1)], zeros(1)),
        "size of the output": lambda: dist.all_gather_into_tensor(zeros(3), zeros(2)),
        "dtype of the output": lambda: dist.all_gather_into_tensor(whole, zeros(1)),
        "number of inputs": lambda: dist.reduce_scatter(zeros(3), [zeros(3)]),
        "rows": lambda: dist.all_to_all_single(zeros(3), zeros(3)),
        "splits": lambda: dist.all_to_all_single(zeros(2), zeros(2), [5, 5], [1, 1]),
        "root": lambda: dist.broadcast(zeros(1), 5),
        "negative root": lambda: dist.broadcast(zeros(1), -1),
        "bits of floats": lambda: dist.all_reduce(zeros(1), dist.ReduceOp.BAND),
        "mean of truths": lambda: dist.all_reduce(zeros(1, dtype=torch.bool), dist.ReduceOp.AVG),
        "to itself": lambda: dist.send(zeros(1), rank),
    }
    found = {}
    for what, call in wrong.items():
        try:
            call()
        except Exception as error:
            found[what] = type(error).__name__
    dist.all_reduce(zeros(1))  # the group lives on
    return found


def case_monitored_barrier(rank):
    dist.monitored_barrier()
    return rank


def main(backend: str, case: str) -> None:
    torch.set_num_threads(1)
    if backend == "muster":
        import muster.torch  # noqa: F401 - older PyTorchs do not look for the entry point
    dist.init_process_group(backend)
    if os.environ.get("MUSTER_TORCH_COMPILED") == "1":
        assert backend == "gloo" or dist.group.WORLD._get_backend(torch.device("cpu")).is_compiled
    run = globals().get(f"case_{case}") or globals()[f"muster_{case}"]
    result = run(dist.get_rank())
    dist.barrier()
    if dist.get_rank() == 0:
        print("result " + json.dumps(result), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
