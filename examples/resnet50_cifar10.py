"""ResNet-50 learns CIFAR-10 on all workers of a cluster, through Model.train.

    muster data synthetic-cifar10 cifar-10-batches-bin     # pictures to try it with, or the real files
    muster run -n 2 examples/resnet50_cifar10.py

or, without the launcher, once for each process with MS_ROLE=MS_SCHED or MS_WORKER, MS_WORKER_NUM,
MS_SCHED_HOST and MS_SCHED_PORT set; without any of these variables it trains alone.
Others: DATA_PATH (default: cifar-10-batches-bin), IMAGE_SIZE (224), EPOCHS (10), BATCH (32, of each worker).
"""

import os

import muster
from muster import dataset as ds
from muster import nn, ops, train

EPOCHS = int(os.environ.get("EPOCHS", "10"))
BATCH = int(os.environ.get("BATCH", "32"))
IMAGE_SIZE = int(os.environ.get("IMAGE_SIZE", "224"))
SEED = 1
STAGES = ((256, 3, 1), (512, 4, 2), (1024, 6, 2), (2048, 3, 2))  # channels, blocks, stride of the first


def conv(in_channels: int, out_channels: int, kernel_size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(
        in_channels, out_channels, kernel_size, stride, pad_mode="same", weight_init="he_uniform"
    )


class Bottleneck(muster.Cell):
    """Three convolutions beside a shortcut. He et al., CVPR 2016."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        channels = out_channels // 4
        self.branch = nn.SequentialCell(
            conv(in_channels, channels, 1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            conv(channels, channels, 3, stride),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            conv(channels, out_channels, 1),
            nn.BatchNorm2d(out_channels, gamma_init="zeros"),  # the block begins as its shortcut
        )
        self.projects = stride != 1 or in_channels != out_channels
        if self.projects:
            self.shortcut = nn.SequentialCell(
                conv(in_channels, out_channels, 1, stride), nn.BatchNorm2d(out_channels)
            )

    def construct(self, x: muster.Tensor) -> muster.Tensor:
        return ops.relu(self.branch(x) + (self.shortcut(x) if self.projects else x))


def resnet50(num_classes: int) -> nn.SequentialCell:
    cells: list[muster.Cell] = [
        conv(3, 64, 7, 2),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, pad_mode="same"),
    ]
    channels = 64
    for out_channels, blocks, stride in STAGES:
        for block in range(blocks):
            cells.append(Bottleneck(channels, out_channels, stride if block == 0 else 1))
            channels = out_channels
    return nn.SequentialCell(*cells, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(channels, num_classes))


def pictures(folder: str, rank: int, workers: int) -> ds.Dataset:
    image = [
        ds.vision.RandomCrop((32, 32), (4, 4, 4, 4)),
        ds.vision.RandomHorizontalFlip(),
        ds.vision.Resize((IMAGE_SIZE, IMAGE_SIZE)),
        ds.vision.Rescale(1.0 / 255.0, 0.0),
        ds.vision.Normalize((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
        ds.vision.HWC2CHW(),
    ]
    dataset: ds.Dataset = ds.Cifar10Dataset(folder, usage="train", num_shards=workers, shard_id=rank)
    dataset = dataset.map(image, "image").map(ds.transforms.TypeCast(muster.int32), "label")
    return dataset.batch(BATCH, drop_remainder=True)


def main() -> None:
    muster.init()  # the scheduler's process ends in here, when the job has ended
    muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    muster.set_seed(SEED)
    rank, workers = muster.get_rank(), muster.get_group_size()
    dataset = pictures(os.environ.get("DATA_PATH", "cifar-10-batches-bin"), rank, workers)
    net = resnet50(num_classes=10)
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.01, momentum=0.9)
    model = muster.Model(net, nn.CrossEntropyLoss(), optimizer)
    model.train(EPOCHS, dataset, callbacks=[train.LossMonitor(), train.TimeMonitor(), train.ProgressBar()])


if __name__ == "__main__":
    main()
