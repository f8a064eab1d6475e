"""The peer of bench_all_reduce: the same calls, the same check, the same report, through PyTorch and Gloo.

torchrun --nproc_per_node 4 torch_all_reduce.py 1024 1048576 102228128
"""

import json
import statistics
import sys
import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


def calls_of(size_bytes):
    # Gloo takes a hundred times as long for small sizes: fewer calls than the others make say as much.
    return 200 if size_bytes <= 64 << 10 else max(8, min(100, (200 << 20) // size_bytes))


for size_bytes in map(int, sys.argv[1:]):
    pattern = torch.arange(size_bytes // 4) * 7
    values = ((pattern + rank * 13) % 1000).float()
    dist.all_reduce(values)
    if not torch.equal(values, sum(((pattern + r * 13) % 1000).float() for r in range(size))):
        sys.exit(f"torch_all_reduce: wrong answer for {size_bytes} bytes")

    values.zero_()  # Gloo works in place: zeros stay zeros, however often they are summed
    for _ in range(3):
        dist.all_reduce(values)
    dist.barrier()
    times_us = []
    before = time.perf_counter()
    for _ in range(calls_of(size_bytes)):
        dist.all_reduce(values)
        now = time.perf_counter()
        times_us.append((now - before) * 1e6)
        before = now
    if rank == 0:
        report = {"program": "gloo", "ranks": size, "bytes": size_bytes, "min_us": min(times_us)}
        report |= {"median_us": statistics.median(times_us), "mean_us": statistics.mean(times_us)}
        print(json.dumps(report), flush=True)
