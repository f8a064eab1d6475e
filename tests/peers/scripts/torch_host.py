"""One process of a host: arguments say where the others meet, and it starts a trainer for each card."""

import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch_fit import fit


def train(local: int, args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    rank = args.rank * args.cards + local
    world_size = args.world_size * args.cards
    dist.init_process_group("gloo", init_method=args.init_method, rank=rank, world_size=world_size)
    fit(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--init_method", required=True)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--world_size", type=int, default=1)
    parser.add_argument("--cards", type=int, default=1)
    args = parser.parse_args()
    if args.cards == 1:
        train(0, args)
    else:
        mp.spawn(train, args=(args,), nprocs=args.cards)
