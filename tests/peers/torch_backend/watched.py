"""Two ranks of which rank 1 does not make the call that rank 0 is in: for muster status and torchfrtrace.

    watched.py FILE

Rank 1 goes on when FILE is there; both print what the call gave.
"""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def main(file: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("muster", timeout=timedelta(seconds=120))
    for size in (3, 5):
        dist.all_reduce(torch.ones(size))
    if dist.get_rank() == 1:
        while not os.path.exists(file):
            time.sleep(0.05)
    tensor = torch.ones(7)
    dist.all_reduce(tensor)
    print("sum", tensor.sum().item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
