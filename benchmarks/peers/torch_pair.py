"""Workers under PyTorch's DistributedDataParallel and Gloo, with a thread each: alone, apart and together.

torchrun --nproc_per_node 2 torch_pair.py resnet50|lenet BATCH STEPS [channels_last]: one line of JSON, as
`bench_engine --compare` prints it.
"""

import json
import sys

import torch
import torch.distributed as dist
from torch_engine import Training


def slowest(seconds):
    taken = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(taken, dist.ReduceOp.MAX)
    return taken.item()


name, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
apart = Training(name, batch, sys.argv[4:])
together = Training(name, batch, sys.argv[4:], torch.nn.parallel.DistributedDataParallel)
for _ in range(2):
    apart.step()
    together.step()
taken = {"alone_seconds": [], "apart_seconds": [], "seconds": []}
for _ in range(steps):
    for turn in range(size):
        dist.barrier()
        taken["alone_seconds"].append(slowest(apart.step() if turn == rank else 0.0))
    dist.barrier()
    taken["apart_seconds"].append(slowest(apart.step()))
    dist.barrier()
    taken["seconds"].append(slowest(together.step()))
right = apart.is_right() and together.is_right()
if rank == 0:
    print(json.dumps({**taken, "right": right}), flush=True)
dist.destroy_process_group()
