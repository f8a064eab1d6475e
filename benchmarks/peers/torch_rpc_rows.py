"""The peer of bench_servers: a table of embeddings in another process, by PyTorch's RPC and SparseAdam.

torch_rpc_rows.py ROWS WIDTH BATCH ROUNDS prints the medians of a pull and of a push, in seconds, as JSON.
"""

import json
import multiprocessing
import os
import statistics
import sys
import time

import torch
from torch.distributed import rpc

ROWS, WIDTH, BATCH, ROUNDS = map(int, sys.argv[1:])
RATE = 0.01


class Table:
    """Lives in the server."""

    def __init__(self):
        self.rows = torch.nn.Parameter(torch.randn(ROWS, WIDTH) * 0.01)
        self.optimizer = torch.optim.SparseAdam([self.rows], lr=RATE)

    def pull(self, ids):
        return self.rows.detach()[ids]

    def push(self, ids, gradients):
        self.rows.grad = torch.sparse_coo_tensor(ids[None], gradients, (ROWS, WIDTH))
        self.optimizer.step()
        self.rows.grad = None


def pull(table, ids):
    return table.local_value().pull(ids)


def push(table, ids, gradients):
    table.local_value().push(ids, gradients)


def serve(name, rank):
    torch.set_num_threads(1)
    rpc.init_rpc(name, rank=rank, world_size=2)
    if rank == 1:
        measure()
    rpc.shutdown()


def check(table):
    ids = torch.tensor([ROWS - 1, 3])
    before = rpc.rpc_sync("server", pull, (table, ids))
    rpc.rpc_sync("server", push, (table, ids, torch.full((2, WIDTH), 0.25)))
    after = rpc.rpc_sync("server", pull, (table, ids))
    # Adam's first step is the rate, whatever the gradient's size.
    if not torch.allclose(before - after, torch.tensor(RATE), rtol=1e-3):
        sys.exit("torch_rpc_rows: wrong rows behind a push")


def measure():
    table = rpc.remote("server", Table)
    check(table)
    generator = torch.Generator().manual_seed(5)
    gradients = torch.full((BATCH, WIDTH), 0.25)
    pulls, pushes = [], []
    for _ in range(ROUNDS):
        ids = torch.randint(ROWS, (BATCH,), generator=generator)
        begin = time.perf_counter()
        rpc.rpc_sync("server", pull, (table, ids))
        pulled = time.perf_counter()
        rpc.rpc_sync("server", push, (table, ids, gradients))
        pulls.append(pulled - begin)
        pushes.append(time.perf_counter() - pulled)
    print(json.dumps({"pull": statistics.median(pulls), "push": statistics.median(pushes)}))


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    server = multiprocessing.get_context("spawn").Process(target=serve, args=("server", 0))
    server.start()
    serve("worker", 1)
    server.join()
    sys.exit(server.exitcode)
