"""Built-in cells from Python: arguments, names, containers, training."""

import numpy
import pytest

import muster
from muster import initializers, nn


def tensor(*shape):
    count = int(numpy.prod(shape))
    return muster.Tensor(numpy.linspace(-1, 1, count).astype(numpy.float32).reshape(shape))


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: nn.Conv2d(3, 4, 3, group=2), ValueError, "2 does not divide 3 and 4"),
        (lambda: nn.Conv2d(3, 4, "3"), TypeError, r"Conv2d\(kernel_size\).*tuple"),
        (lambda: nn.Conv2d(3, 4, (3, 3, 3)), ValueError, "has 3 numbers, not 1 or 2"),
        (lambda: nn.Conv2d(3, 4, 3, pad_mode="full"), ValueError, r"'same', 'valid'.*'pad'.*'full'"),
        (lambda: nn.Conv2d(3, 4, 3, padding=1), ValueError, r"padding.*1 needs.*pad_mode 'pad'"),
        (lambda: nn.Conv2d(3, 4, 3, data_format="NHWC"), NotImplementedError, "NHWC"),
        (lambda: nn.Conv2d(3, 4, 3, weight_init=numpy.ones((4, 3))), ValueError, "weight_init has shape"),
        (lambda: nn.BatchNorm2d(0), ValueError, r"num_features.*least 1.*not 0"),
        (lambda: nn.MaxPool2d(2, dilation=2), NotImplementedError, "dilation"),
        (lambda: nn.MaxPool2d(2, return_indices=True), NotImplementedError, "return_indices"),
        (lambda: nn.Dropout(p=1.0), ValueError, r"p must be in \[0, 1\), not 1"),
        (lambda: nn.Dropout(0.0), ValueError, r"keep_prob.*0, 1\]"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), ValueError, r"padding_idx.*\[0, 3"),
        (lambda: nn.LayerNorm(()), ValueError, "one axis at least"),
        (lambda: nn.Dense(0, 1), ValueError, r"in_channels.*least 1.*not 0"),
        (lambda: nn.Dense(1, 1, activation="swish"), ValueError, r"activation.*'swish'.*'relu'"),
        (lambda: nn.MSELoss("average"), ValueError, r"'mean', 'sum'.*'none'.*'average'"),
        (lambda: nn.CellList([3]), TypeError, "holds cells, not int"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_when_the_cell_is_made(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_weights_may_begin_as_tensors_numbers_names_and_initializers():
    ones = numpy.ones((4, 3, 1, 1), numpy.float32)
    for init in (ones, muster.Tensor(ones), 1.0, "ones", "One", initializers.ones()):
        conv = nn.Conv2d(3, 4, 1, weight_init=init)
        assert conv.weight.asnumpy().tolist() == ones.tolist()
    assert nn.BatchNorm2d(2, gamma_init="zeros").gamma.tolist() == [0.0, 0.0]


def test_initializers_are_classes_that_say_what_they_cannot_fill():
    assert isinstance(initializers.he_normal(mode="fan_out", nonlinearity="relu"), nn.Initializer)
    with pytest.raises(ValueError, match=r"weight_init.*identity.*2 axes"):
        nn.Conv2d(3, 4, 1, weight_init=initializers.identity())
    with pytest.raises(ValueError, match=r"'fan_in'.*'fan_out'.*'fan'"):
        initializers.he_uniform(mode="fan")
    with pytest.raises(ValueError, match="nonlinearity is"):
        initializers.he_uniform(nonlinearity="swish")


def test_a_list_of_cells_is_used_as_a_list():
    cells = nn.CellList([nn.Dense(2, 2), nn.Dense(2, 3)])
    cells.append(nn.ReLU())
    cells.insert(0, nn.Identity())
    cells += [nn.Tanh()]
    assert [type(cell).__name__ for cell in cells] == ["Identity", "Dense", "Dense", "ReLU", "Tanh"]
    assert len(cells[1:3]) == 2 and cells[-1] is cells[4]
    del cells[0]
    cells[0] = nn.Flatten()
    assert list(cells.name_cells()) == ["0", "1", "2", "3"]
    with pytest.raises(IndexError, match="has 4 cells, none at 4"):
        cells[4]
    with pytest.raises(ValueError, match="computes nothing itself"):
        cells(tensor(1))


def test_cells_in_lists_have_the_path_of_the_list():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers = nn.CellList([nn.Dense(2, 2, has_bias=False)])
            self.layers.append(nn.Dense(2, 2, has_bias=False))
            self.settings = {"anything": [1, 2]}  # attributes are free

        def construct(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    net = Net()
    assert [parameter.name for parameter in net.get_parameters()] == ["layers.0.weight", "layers.1.weight"]
    assert [path for path, _ in net.cells_and_names()] == ["", "layers", "layers.0", "layers.1"]
    assert net(tensor(1, 2)).shape == (1, 2)
    assert net.set_grad() is net and net.cls_name == "Net"


def test_children_and_parameters_may_be_inserted_by_name():
    net = nn.Cell()
    net.insert_child_to_cell("fc", nn.Dense(1, 1))
    net.insert_param_to_cell("scale", muster.Parameter(1.0))
    assert net.fc.weight.name == "fc.weight" and net.scale.name == "scale"
    assert len(net.trainable_params()) == 3 and len(net.trainable_params(recurse=False)) == 1
    net.update_parameters_name("net.")
    assert net.fc.weight.name == "net.fc.weight"
    with pytest.raises(TypeError, match="takes a cell, not int"):
        net.insert_child_to_cell("x", 1)


def test_get_activation_knows_names():
    assert type(nn.get_activation("leakyrelu")) is nn.LeakyReLU
    assert nn.get_activation(None) is None


def test_a_training_step_is_a_cell():
    net = nn.SequentialCell(nn.Dense(3, 4, "normal", activation="tanh"), nn.Dense(4, 2))
    loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    step = nn.TrainOneStepCell(loss, nn.Momentum(net.trainable_params(), 0.5, 0.5))
    assert [parameter.name for parameter in step.weights] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    step.set_train()
    x, label = tensor(6, 3), muster.Tensor(numpy.array([0, 0, 0, 1, 1, 1], numpy.int32))
    losses = [step(x, label).item() for _ in range(20)]
    assert losses[-1] < 0.3 * losses[0]
    assert step.optimizer.global_step.tolist() == [20]
    with pytest.raises(ValueError, match=r"sens.*than 0"):
        nn.TrainOneStepCell(loss, step.optimizer, sens=0)


def test_dropout_drops_only_while_it_trains():
    x = muster.Tensor(numpy.ones((64, 64), numpy.float32))
    dropout = nn.Dropout(p=0.25)
    assert dropout(x).tolist() == x.tolist()
    dropout.set_train()
    y = dropout(x).asnumpy()
    assert set(numpy.unique(y)) == {numpy.float32(0), numpy.float32(1 / 0.75)}
    assert 0.2 < (y == 0).mean() < 0.3
    twice = nn.SequentialCell(nn.Dropout(p=0.5), nn.Dropout(p=0.5)).set_train()
    assert 0.7 < (twice(x).asnumpy() == 0).mean() < 0.8
