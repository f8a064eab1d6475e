"""Model in eager mode: the same trainings, evaluations and predictions, op by op."""

import numpy
import pytest
from digits import write_digits

import muster
from muster import dataset as ds
from muster import nn, train


@pytest.fixture(autouse=True)
def graph_mode_afterwards():
    yield
    muster.set_context(mode="graph")


@pytest.fixture(name="digits", scope="module")
def digits_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, 80)
    return str(folder)


def batches(folder, batch=20):
    dataset = ds.MnistDataset(folder).map(ds.vision.Rescale(1 / 255.0, 0), "image")
    dataset = dataset.map(ds.vision.HWC2CHW(), "image")
    return dataset.map(ds.transforms.TypeCast(muster.int32), "label").batch(batch)


class Pictures(muster.Cell):
    """Convolution, normalisation and dropout: what behaves differently in training."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(p=0.25)
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(4 * 14 * 14, 10)
        self.calls = 0

    def construct(self, x):
        self.calls += 1
        return self.fc(self.dropout(self.flatten(self.relu(self.norm(self.conv(x))))))


def made_model(mode, optimizer=nn.Momentum, **settings):
    muster.set_context(mode=mode)
    muster.set_seed(1)
    net = Pictures()
    made = optimizer(net.trainable_params(), **{"learning_rate": 0.05, **settings})
    return train.Model(net, nn.CrossEntropyLoss(), made, {"accuracy", "loss"})


class Losses(train.Callback):
    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_step_end(self, run_context):
        self.seen.append(float(run_context.original_args().net_outputs.asnumpy()))


def trained(mode, digits, epochs=2, **options):
    model = made_model(mode, momentum=0.9)
    losses = Losses()
    model.train(epochs, batches(digits), [losses], **options)
    return model, losses.seen


def test_a_training_takes_the_same_steps_as_in_graph_mode(digits):
    eager, eager_losses = trained("eager", digits)
    assert eager.predict_network.calls == 8  # once for each step
    graph, graph_losses = trained("graph", digits)
    assert eager_losses == pytest.approx(graph_losses, rel=1e-4)
    for ours, theirs in zip(
        eager.predict_network.get_parameters(), graph.predict_network.get_parameters(), strict=True
    ):
        numpy.testing.assert_allclose(
            ours.asnumpy(), theirs.asnumpy(), rtol=1e-3, atol=1e-5, err_msg=ours.name
        )


@pytest.mark.parametrize(
    ("optimizer", "settings"),
    [
        (nn.SGD, {}),
        (nn.Adam, {"learning_rate": nn.ExponentialDecayLR(0.01, 0.5, 2)}),
        (nn.RMSProp, {"learning_rate": [0.01, 0.005, 0.002, 0.001]}),
    ],
)
def test_every_kind_of_learning_rate_steps_as_in_graph_mode(digits, optimizer, settings):
    found = []
    for mode in ("eager", "graph"):
        losses = Losses()
        made_model(mode, optimizer, **settings).train(1, batches(digits), [losses])
        found.append(losses.seen)
    assert found[0] == pytest.approx(found[1], rel=1e-3)


def test_a_training_learns_and_an_evaluation_counts(digits):
    model, losses = trained("eager", digits, epochs=6)
    assert losses[-1] < 0.5 * losses[0]
    calls = model.predict_network.calls
    result = model.eval(batches(digits))
    assert result["accuracy"] > 0.8
    assert model.predict_network.calls == calls + 4


def test_evaluations_and_predictions_are_those_of_graph_mode(digits):
    model, _ = trained("eager", digits)
    image = next(iter(batches(digits)))[0]
    eager = model.eval(batches(digits)), model.predict(image).asnumpy()
    muster.set_context(mode="graph")
    graph = model.eval(batches(digits)), model.predict(image).asnumpy()
    assert eager[0] == pytest.approx(graph[0], rel=1e-5)
    numpy.testing.assert_allclose(eager[1], graph[1], rtol=1e-4, atol=1e-6)


def test_fit_evaluates_between_trainings(digits):
    model = made_model("eager", momentum=0.9)
    found = []
    model.fit(
        2,
        batches(digits),
        batches(digits),
        callbacks=train.LambdaCallback(on_train_epoch_end=lambda run: found.append(dict(run.eval_results))),
    )
    assert [sorted(results) for results in found] == [["accuracy", "eval_loss", "loss"]] * 2
    assert model.train_network.training


def test_sink_mode_groups_steps(digits):
    model, losses = trained("eager", digits, epochs=2, dataset_sink_mode=True, sink_size=3)
    assert len(losses) == 2 and model.predict_network.calls == 6


def test_construct_may_look_at_elements(digits):
    class Looking(Pictures):
        def construct(self, x):
            y = super().construct(x)
            self.greatest = y.asnumpy().max()
            return y

    muster.set_context(mode="eager")
    net = Looking()
    train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1)).train(1, batches(digits))
    assert numpy.isfinite(net.greatest)


def test_an_error_in_construct_comes_out_as_itself(digits):
    class Broken(Pictures):
        def construct(self, x):
            raise KeyError("no such layer")

    muster.set_context(mode="eager")
    net = Broken()
    model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
    with pytest.raises(KeyError, match="no such layer"):
        model.train(1, batches(digits))


def test_a_network_that_gives_its_loss_itself_is_trained(digits):
    muster.set_context(mode="eager")
    muster.set_seed(1)
    net = nn.WithLossCell(Pictures(), nn.CrossEntropyLoss())
    losses = Losses()
    train.Model(net, optimizer=nn.SGD(net.trainable_params(), 0.1)).train(4, batches(digits), [losses])
    assert losses.seen[-1] < losses.seen[0]


def test_a_mode_may_change_between_trainings(digits):
    model, first = trained("graph", digits)
    muster.set_context(mode="eager")
    losses = Losses()
    model.train(2, batches(digits), [losses])
    muster.set_context(mode="graph")
    model.train(2, batches(digits), [losses])
    assert losses.seen[-1] < first[0] and numpy.isfinite(losses.seen).all()
