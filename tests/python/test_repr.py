"""What objects show of themselves: cells their arguments, everything its name, and nothing an address."""

import itertools

import numpy
import pytest

import muster
from muster import dataset as ds
from muster import initializers, nn, train


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (lambda: nn.Dense(4, 2), "Dense(4, 2)"),
        (lambda: nn.Dense(4, 2, has_bias=False), "Dense(4, 2, has_bias=False)"),
        (lambda: nn.Conv2d(3, 16, 3), "Conv2d(3, 16, kernel_size=3, stride=1, pad_mode='same')"),
        (
            lambda: nn.Conv2d(4, 8, (3, 5), 2, pad_mode="pad", padding=1, group=2, has_bias=True),
            "Conv2d(4, 8, kernel_size=(3, 5), stride=2, pad_mode='pad', padding=1, group=2, has_bias=True)",
        ),
        (lambda: nn.MaxPool2d(2, 2), "MaxPool2d(kernel_size=2, stride=2, pad_mode='valid')"),
        (lambda: nn.AdaptiveAvgPool2d((1, None)), "AdaptiveAvgPool2d(output_size=(1, None))"),
        (lambda: nn.BatchNorm2d(8), "BatchNorm2d(8, eps=1e-05, momentum=0.9)"),
        (lambda: nn.LayerNorm((8,)), "LayerNorm((8,), epsilon=1e-07)"),
        (lambda: nn.Dropout(p=0.5), "Dropout(p=0.5)"),
        (lambda: nn.Embedding(100, 8), "Embedding(100, 8)"),
        (lambda: nn.LeakyReLU(0.1), "LeakyReLU(alpha=0.1)"),
        (lambda: nn.Softmax(), "Softmax(axis=-1)"),
        (lambda: nn.ReLU(), "ReLU()"),
        (lambda: nn.MSELoss("sum"), "MSELoss(reduction='sum')"),
        (
            lambda: nn.Momentum(nn.Dense(2, 2).trainable_params(), 0.1, 0.9),
            "Momentum(learning_rate=0.1, 2 parameters)",
        ),
    ],
)
def test_a_cell_shows_what_it_was_made_with(cell, text):
    assert repr(cell()) == text


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
        self.fc = nn.Dense(8 * 4 * 4, 10, activation="relu")

    def construct(self, x):
        return self.fc(self.body(x))


def test_a_network_is_a_tree_of_its_cells():
    assert str(Network()) == (
        "Network(\n"
        "  (body): SequentialCell(\n"
        "    (0): Conv2d(3, 8, kernel_size=3, stride=1, pad_mode='same')\n"
        "    (1): BatchNorm2d(8, eps=1e-05, momentum=0.9)\n"
        "    (2): ReLU()\n"
        "    (3): Flatten()\n"
        "  )\n"
        "  (fc): Dense(\n"
        "    128, 10\n"
        "    (activation): ReLU()\n"
        "  )\n"
        ")"
    )


def rows():
    return ds.NumpySlicesDataset(numpy.zeros((6, 3), numpy.float32), column_names=["data"], shuffle=False)


def test_no_public_class_shows_an_address():
    modules = (muster, nn, train, initializers, ds, ds.vision, ds.transforms)
    public = itertools.chain.from_iterable((getattr(one, name) for name in one.__all__) for one in modules)
    classes = [one for one in public if isinstance(one, type) and not issubclass(one, BaseException)]
    assert len(classes) > 100
    assert [one.__name__ for one in classes if one.__repr__ is object.__repr__] == []
    net = Network()
    x = muster.Tensor(numpy.zeros((2, 3, 4, 4), numpy.float32))
    shown = [net, muster.Model(net), rows(), rows().batch(2), train.Accuracy(), train.LossMonitor()]
    shown += [initializers.normal(0.1), ds.RandomSampler(), ds.vision.Rescale(1.0, 0.0), net.fc.weight, x]
    shown += [muster.value_and_grad(net), muster.jit(net.construct), train.CheckpointConfig()]
    assert [text for text in map(repr, shown) if " at 0x" in text or not text] == []


def test_a_dataset_shows_its_columns_and_batches():
    assert repr(rows().batch(2).repeat(3)).endswith("(columns=['data'], batch_size=2, repeat=3)")


def test_summary_counts_every_parameter_once_and_runs_nothing():
    net = Network()
    net.set_train(True)
    net.tied = net.fc
    x = muster.Tensor(numpy.ones((2, 3, 4, 4), numpy.float32))
    before = [one.asnumpy().copy() for one in net.get_parameters()]
    told = muster.summary(net, x)
    for old, new in zip(before, net.get_parameters(), strict=True):
        numpy.testing.assert_array_equal(old, new.asnumpy())
    by_path = {row.path: row for row in told.rows}
    assert (by_path["body.0"].output, by_path["body.0"].parameters) == ("(2, 8, 4, 4)", 3 * 8 * 9)
    assert (by_path["body"].output, by_path[""].output) == ("(2, 128)", "(2, 10)")
    assert told.parameters == sum(one.size for one in net.get_parameters())
    assert told.trainable_parameters == sum(one.size for one in net.trainable_params())
    assert told.bytes == 4 * told.parameters
    assert f"{told.parameters:,}" in str(told)
    assert net(x).shape == (2, 10)


def test_a_placed_network_shows_which_worker_has_what():
    net = Network()
    net.body.place("MS_WORKER", 1)
    net.body[1].place("MS_WORKER", 0)
    told = muster.summary(net)
    ranks = {row.path: row.rank for row in told.rows}
    assert (ranks[""], ranks["body"], ranks["body.0"], ranks["body.1"], ranks["fc"]) == (None, 1, 1, 0, None)
    lines = str(told).splitlines()
    assert lines[0].split()[-1] == "rank"
    assert [line.split()[-1] for line in lines if line.startswith("body.")] == ["1", "0", "1", "1"]
    assert "(1): BatchNorm2d(8, eps=1e-05, momentum=0.9) on worker 0\n" in str(net)
    assert "  ) on worker 1\n" in str(net)
    assert "rank" not in str(muster.summary(Network()))


def test_summary_of_no_inputs_has_no_outputs_and_of_no_network_is_an_error():
    assert {row.output for row in muster.summary(Network()).rows} == {""}
    with pytest.raises(TypeError, match="network"):
        muster.summary(lambda x: x)


def test_summary_shows_what_goes_wrong_in_the_network():
    with pytest.raises(ValueError, match="does not fit"):
        muster.summary(Network(), muster.Tensor(numpy.ones((2, 4, 4, 4), numpy.float32)))
    assert "watched" not in repr(muster.Cell.__call__)
