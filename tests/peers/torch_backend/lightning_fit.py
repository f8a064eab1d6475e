"""A training of Lightning over muster.torch.lightning.fit(): prints a digest of all that it has learned.

Options as NAME=VALUE: epochs, workers (of the loader), persistent (workers), generator (of the loader),
sampler (own: a permutation of each rank; weighted: with a generator), stream (rows without a length; of as
many the next is chosen), every (so many epochs a validation), accumulate, keep, save, version (to be taken
for). Who is to be killed where:
hurt=RANK:LIFE:EPOCH:BATCH:PLACE, several with a comma.
"""

import hashlib
import os
import random
import signal
import sys
import warnings

import lightning
import muster.torch.lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy
from torch import nn

OPTIONS = dict(word.split("=", 1) for word in sys.argv[1:])
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LIFE = int(os.environ.get("MUSTER_RESTART_COUNT") or 0)
BATCHES = 5  # of a rank and epoch


def hurt(epoch: int, batch: int, place: str) -> None:
    if f"{RANK}:{LIFE}:{epoch}:{batch}:{place}" in OPTIONS.get("hurt", "").split(","):
        print(f"rank {RANK} is hurt", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


class Noisy(torch.utils.data.TensorDataset):
    """Rows that are moved by all generators, as transforms of images are."""

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x + 0.01 * torch.randn(16) + 0.01 * random.random(), y


class Stream(torch.utils.data.IterableDataset):
    """Noisy rows whose number nobody knows."""

    def __init__(self, rows: Noisy) -> None:
        self._rows = rows

    def __iter__(self):
        waiting = []
        for index in range(RANK, len(self._rows), RANKS):
            waiting.append(self._rows[index])
            if len(waiting) == int(OPTIONS["stream"]):
                yield waiting.pop(random.randrange(len(waiting)))
        yield from waiting


def loader(count: int, shuffle: bool):
    generator = torch.Generator().manual_seed(count)
    x, y = torch.rand(count, 16, generator=generator), torch.randint(0, 4, (count,), generator=generator)
    own = torch.Generator().manual_seed(RANK)
    if "stream" in OPTIONS:
        return torch.utils.data.DataLoader(Stream(Noisy(x, y)), 4)
    weighted = torch.utils.data.WeightedRandomSampler(torch.rand(count), count, generator=own)
    sampler = weighted if OPTIONS.get("sampler") == "weighted" and shuffle else None
    return torch.utils.data.DataLoader(
        Noisy(x, y),
        4,
        shuffle=shuffle and sampler is None,
        sampler=sampler,
        num_workers=int(OPTIONS.get("workers", "0")),
        persistent_workers="persistent" in OPTIONS,
        generator=own if "generator" in OPTIONS else None,
    )


class Net(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.net = nn.Sequential(
            nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4)
        )
        torch.manual_seed(100 + RANK)
        random.seed(RANK)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        slower = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=0.1)
        rates = {"scheduler": slower, "monitor": "validated", "frequency": int(OPTIONS.get("every", "1"))}
        return {"optimizer": optimizer, "lr_scheduler": rates}

    def on_train_batch_start(self, _, index) -> None:
        hurt(self.current_epoch, index, "begin")

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        hurt(self.current_epoch, index, "forward")
        return loss

    def on_train_batch_end(self, outputs, _, index) -> None:
        print(
            f"rank {RANK} epoch {self.current_epoch} batch {index} loss {outputs['loss'].item():.9f}",
            flush=True,
        )
        hurt(self.current_epoch, index, "end")

    def validation_step(self, batch, index) -> None:
        x, y = batch
        hurt(self.current_epoch, index, "sanity" if self.trainer.sanity_checking else "validation")
        self.log("validated", nn.functional.cross_entropy(self.net(x), y), sync_dist=True)


def main() -> None:
    print(f"rank {RANK} is process {os.getpid()}", flush=True)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    lightning.__version__ = OPTIONS.get("version", lightning.__version__)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=int(os.environ["WORLD_SIZE"]),
        strategy=DDPStrategy(process_group_backend=OPTIONS.get("backend", "muster")),
        max_epochs=int(OPTIONS.get("epochs", "2")),
        use_distributed_sampler=OPTIONS.get("sampler") != "own",
        limit_train_batches=None if "stream" in OPTIONS else BATCHES,
        check_val_every_n_epoch=int(OPTIONS.get("every", "1")),
        accumulate_grad_batches=int(OPTIONS.get("accumulate", "1")),
        callbacks=[
            ModelCheckpoint(dirpath=OPTIONS["folder"], monitor="validated", every_n_epochs=1),
            EarlyStopping("validated", patience=3),
        ],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    net, ranks = Net(), int(os.environ["WORLD_SIZE"])
    muster.torch.lightning.fit(
        trainer,
        net,
        loader(4 * BATCHES * ranks, shuffle=True),
        loader(8 * ranks, shuffle=False),
        keep_every=int(OPTIONS.get("keep", "1")),
        save_every=int(OPTIONS.get("save", "100")),
    )
    [optimizer] = trainer.optimizers
    kept = [value for state in optimizer.state.values() for value in state.values()]
    summed = hashlib.sha256()
    for tensor in [*net.state_dict().values(), *kept, torch.rand(2), trainer.callback_metrics["validated"]]:
        summed.update(bytes(tensor.detach().flatten().contiguous().view(torch.uint8).tolist()))
    rate = optimizer.param_groups[0]["lr"]
    print(f"rank {RANK} end {summed.hexdigest()[:16]} rate {rate:.6f}", flush=True)


if __name__ == "__main__":
    main()
