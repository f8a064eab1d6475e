"""LeNet, divided by hand over five workers, learns handwritten digits.

    muster run -n 5 examples/placed_lenet.py

or, without the launcher, once for each process with MS_ROLE=MS_SCHED or MS_WORKER, MS_WORKER_NUM=5,
MS_SCHED_HOST and MS_SCHED_PORT set; without any of these variables it trains alone.
DATA_PATH is the folder of the training digits (default: MNIST_Data/train); digits to test with are looked for
in the folder `test` beside it.

    muster explain --svg lenet.svg examples/placed_lenet.py

shows, without training, what each of the five would hold and what would travel between them.
"""

import os
from pathlib import Path

import muster
from muster import dataset as ds
from muster import nn, train

EPOCHS = int(os.environ.get("EPOCHS", "4"))
SEED = 1


class LeNet(muster.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1 = nn.Dense(16 * 4 * 4, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        # Each layer's parameters, gradients and optimizer state live on its worker alone. What is not placed,
        # as relu and pool, is assigned to the workers that minimise communication.
        for worker, cell in enumerate((self.conv1, self.conv2, self.fc1, self.fc2, self.fc3)):
            cell.place("MS_WORKER", worker)

    def construct(self, x: muster.Tensor) -> muster.Tensor:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        x = self.fc3(self.relu(self.fc2(x)))
        return x


def digits(folder: Path) -> ds.Dataset:
    """The same on all workers: one of them reads it, and the others learn from it what they need."""
    dataset: ds.Dataset = ds.MnistDataset(str(folder))
    dataset = dataset.map([ds.vision.Rescale(1.0 / 255.0, 0), ds.vision.HWC2CHW()], "image")
    dataset = dataset.map(ds.transforms.TypeCast(muster.int32), "label")
    return dataset.shuffle(10_000).batch(32, drop_remainder=True)


def main() -> None:
    muster.init()  # the scheduler's process ends in here, when the job has ended
    muster.set_seed(SEED)
    folder = Path(os.environ.get("DATA_PATH", "MNIST_Data/train"))

    net = LeNet()
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    metrics = {"accuracy": train.Accuracy()}
    model = train.Model(net, nn.CrossEntropyLoss(), optimizer, metrics)
    shows = muster.get_rank() == 0  # every worker knows the loss and the metrics: one is enough to tell them
    model.train(EPOCHS, digits(folder), train.LossMonitor(20) if shows else None)

    accuracy = model.eval(digits(folder.parent / "test"))["accuracy"]
    if shows:
        print(f"test accuracy: {accuracy:.3f}")


if __name__ == "__main__":
    main()
