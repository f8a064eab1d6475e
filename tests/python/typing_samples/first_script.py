"""What people write on their first day, with types: it is checked, not run."""

from typing import assert_type

import numpy

import muster
from muster import dataset as ds
from muster import nn, ops, train


class Network(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 2, weight_init="normal")
        self.relu = nn.ReLU()
        self.scale = muster.Parameter(muster.Tensor(numpy.ones(2, numpy.float32)), name="scale")

    def construct(self, x: muster.Tensor) -> muster.Tensor:
        x = self.relu(self.fc(x)) * self.scale
        return ops.softmax(x)


class Counter(train.Callback):
    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def on_train_step_end(self, run_context: train.CallbackContext) -> None:
        self.steps += 1


def rows(count: int) -> ds.Dataset:
    data = numpy.zeros((count, 4), numpy.float32)
    label = numpy.zeros(count, numpy.int32)
    dataset: ds.Dataset = ds.NumpySlicesDataset((data, label), column_names=["data", "label"])
    return dataset.map(ds.transforms.TypeCast(muster.int32), "label").batch(8)


def by_hand(net: Network, dataset: ds.Dataset) -> float:
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.1)
    reducer = nn.DistributedGradReducer(optimizer.parameters)

    def forward(data: muster.Tensor, label: muster.Tensor) -> muster.Tensor:
        loss: muster.Tensor = loss_fn(net(data), label)
        return loss

    grad_fn = muster.value_and_grad(forward, None, net.trainable_params())
    last = 0.0
    steps = muster.recoverable(net, optimizer, dataset, epochs=2)
    for epoch, step, (data, label) in steps:
        assert_type(epoch, int)
        assert_type(step, int)
        assert_type(data, muster.Tensor)
        loss, grads = grad_fn(data, label)
        if not steps.is_aborted:
            last = float(loss.item())
        optimizer(reducer(grads))
    return last


def items(dataset: ds.Dataset) -> int:
    seen = 0
    for data, label in dataset:
        assert_type(data, muster.Tensor)
        seen += len(label)
    for row in dataset.create_dict_iterator(num_epochs=1):
        assert_type(row["data"], muster.Tensor)
    for columns in dataset.create_tuple_iterator(output_numpy=True):
        seen += columns[0].shape[0]
    return seen


def by_model(net: Network, dataset: ds.Dataset) -> dict[str, float]:
    model = muster.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1), {"accuracy"})
    model.train(2, dataset, callbacks=[train.LossMonitor(), Counter()])
    muster.save_checkpoint(net, "net.ckpt")
    muster.load_param_into_net(net, muster.load_checkpoint("net.ckpt"))
    for cell in nn.CellList(nn.ReLU(), nn.Tanh()):
        assert_type(cell, nn.Cell)
    return model.eval(dataset)


def main() -> None:
    try:
        muster.init()
    except (muster.PeerLostError, muster.JobAbortedError) as error:
        raise SystemExit(str(error)) from error
    except (muster.RefusedError, muster.CorruptDataError) as error:
        raise SystemExit(f"refused: {error}") from error
    assert_type(muster.dtype("float32"), muster.DType)
    print(by_hand(Network(), rows(64)), items(rows(64)), by_model(Network(), rows(64)))
