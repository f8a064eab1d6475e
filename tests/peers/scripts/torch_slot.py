"""One process of many, as torchrun starts them: variables say where the others meet."""

import os

import torch
import torch.distributed as dist
from torch_fit import fit

torch.set_num_threads(1)
dist.init_process_group("gloo")
assert dist.get_rank() == int(os.environ["RANK"])
fit(dist.get_rank())
dist.destroy_process_group()
