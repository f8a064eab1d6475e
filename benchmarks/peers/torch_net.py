"""The net of tests/seeds/000/net.py under PyTorch's DistributedDataParallel and Gloo, with its timestamps.

DATA_PATH=<folder of train-*-ubyte> BENCH_BEGIN=<seconds> torchrun --nproc_per_node N torch_net.py

The same rows for each rank, the same batch, rate, initial distribution and number of epochs. Rank 0 prints
the loss lines of the script; each rank prints one line of JSON: see ../timed_net.py.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

EPOCHS, BATCH = 10, 32

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
folder = Path(os.environ["DATA_PATH"])
images = np.fromfile(folder / "train-images-idx3-ubyte", np.uint8)[16:].reshape(-1, 1, 28, 28)
labels = np.fromfile(folder / "train-labels-idx1-ubyte", np.uint8)[8:].astype(np.int64)
images, labels = torch.from_numpy(images), torch.from_numpy(labels)

torch.manual_seed(1)
dense = nn.Linear(784, 10)
nn.init.normal_(dense.weight, std=0.01)
nn.init.zeros_(dense.bias)
net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Flatten(), dense, nn.ReLU()))
optimizer = torch.optim.SGD(net.parameters(), 1e-2)
loss_fn = nn.CrossEntropyLoss()


def batches(epoch):
    """Shuffled alike everywhere, then dealt round to the ranks."""
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    mine = order[torch.arange(rank, rank + size * -(-len(order) // size), size) % len(order)]
    for rows in mine.split(BATCH):
        yield ((images[rows].float() / 255) - 0.1307) / 0.3081, labels[rows]


first_step = after_epoch = None
steps = 0
for epoch in range(EPOCHS):
    for i, (data, label) in enumerate(batches(epoch)):
        optimizer.zero_grad()
        loss = loss_fn(net(data), label)
        loss.backward()
        optimizer.step()
        if first_step is None:
            first_step = time.time()
        if epoch > 0:
            steps += 1
        if i % 10 == 0 and rank == 0:
            print(f"epoch: {epoch}, step: {i}, loss is {loss.item()}", flush=True)
    if epoch == 0:
        after_epoch = time.perf_counter()
step = (time.perf_counter() - after_epoch) / steps
report = {
    "rank": rank,
    "first_step_seconds": first_step - float(os.environ["BENCH_BEGIN"]),
    "step_seconds": step,
    "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}
sys.stdout.write("\n" + json.dumps(report) + "\n")  # in one piece: all ranks share the stream
