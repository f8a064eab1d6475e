"""What callbacks of Model do from epoch to epoch, on figures that are known beforehand."""

import numpy
import pytest

import muster
from muster import dataset as ds
from muster import nn, train

ROWS = numpy.arange(24, dtype=numpy.float32).reshape(12, 2) / 24


def data():
    return ds.NumpySlicesDataset((ROWS, ROWS[:, :1]), ["x", "y"]).batch(4)


class Given(train.Metric):
    """Gives one number of a list after each evaluation."""

    def __init__(self, values):
        super().__init__()
        self.values = iter(values)

    def clear(self):
        pass

    def update(self, *inputs):
        pass

    def eval(self):
        return next(self.values)


def made_model(values, rate=0.1):
    muster.set_seed(1)
    net = nn.Dense(2, 1)
    return train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), rate), {"score": Given(values)})


def epochs_of(values, **options):
    ends = []
    count = train.LambdaCallback(on_train_epoch_end=lambda run: ends.append(run.cur_epoch_num))
    stop = train.EarlyStopping("score", **options)
    made_model(values).fit(8, data(), data(), callbacks=[count, stop])
    return ends[-1]


@pytest.mark.parametrize(
    ("options", "last"),
    [
        ({"mode": "min", "patience": 2}, 4),
        ({"mode": "max", "patience": 2}, 5),
        ({"mode": "max", "patience": 2, "min_delta": 0.25}, 3),
        ({"mode": "min", "patience": 3, "baseline": 2.0}, 3),
    ],
)
def test_early_stopping_counts_epochs_without_improvement(options, last):
    assert epochs_of([4.0, 3.5, 4.1, 3.9, 4.0, 4.0, 4.0, 4.0], **options) == last


def test_a_plateau_cools_down_before_it_counts_again():
    rates = []

    def rate_of(run):
        rates.append(run.optimizer.learning_rate.item())

    note = train.LambdaCallback(on_train_epoch_end=rate_of)
    reduce = train.ReduceLROnPlateau("score", factor=0.5, patience=1, mode="min", cooldown=2, min_lr=0.03)
    made_model([1.0] * 8).fit(8, data(), data(), callbacks=[reduce, note])
    assert rates == pytest.approx([0.1, 0.05, 0.05, 0.03, 0.03, 0.03, 0.03, 0.03])


def test_the_training_goes_on_behind_an_evaluation_as_if_there_were_none():
    seen = []

    class Watcher(train.Callback):
        def on_train_epoch_end(self, run_context):
            args = run_context.original_args()
            seen.append((args.cur_step_num, args.batch_num, args.net_outputs.shape))

    made_model([1.0, 1.0]).fit(2, data(), data().take(1), callbacks=[Watcher()])
    assert seen == [(3, 3, ()), (6, 3, ())]


def test_a_monitor_prints_in_every_training(capsys):
    monitor = train.LossMonitor(3)
    for _ in range(2):
        made_model([]).train(1, data(), monitor)
    assert capsys.readouterr().out.count("epoch: 1 step: 3, loss is") == 2


def test_the_time_of_a_step_is_that_of_the_steps_that_were_told(capsys):
    made_model([]).train(1, data(), train.TimeMonitor(30))
    words = capsys.readouterr().out.split()
    assert float(words[8]) == pytest.approx(float(words[3]) / 30, abs=1e-3)


def losses_from(epoch):
    losses = []
    note = train.LambdaCallback(on_train_step_end=lambda run: losses.append(run.net_outputs.item()))
    made_model([], rate=0.0).train(3, data(), note, initial_epoch=epoch)
    return losses


def test_a_resumed_training_of_another_process_shuffles_as_an_unbroken_one():
    assert losses_from(1) == losses_from(0)[3:]


def test_what_a_callback_may_read_is_listed_as_of_a_dict():
    seen = {}

    class Look(train.Callback):
        def on_train_step_end(self, run_context):
            args = run_context.original_args()
            args.mark = 7
            seen.update(args.items())
            assert set(args) == set(args.keys()) == set(seen)

    made_model([]).train(1, data(), callbacks=Look())
    assert seen["cur_step_num"] == 3 and seen["mark"] == 7
    assert isinstance(seen["network"], nn.Dense)
    assert "request_stop" not in seen and not any(name.startswith("__") for name in seen)


class Seen(train.Callback):
    """The metrics that an evaluation's callbacks find."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_eval_epoch_end(self, run_context):
        self.found.append(run_context.original_args().metrics)

    def on_eval_end(self, run_context):
        self.found.append(run_context.original_args()["metrics"])


@pytest.mark.parametrize("call", ["eval", "fit"])
def test_callbacks_find_the_metrics_of_an_evaluation_at_its_end(call):
    seen = Seen()
    model = made_model([0.25])
    if call == "eval":
        assert model.eval(data(), callbacks=[seen]) == {"score": 0.25}
    else:
        model.fit(1, data(), data(), callbacks=[seen])
    assert [values["score"] for values in seen.found] == [0.25, 0.25]


@pytest.mark.parametrize(("when", "after"), [(2, [2, 4]), ([1, 4, 9], [1, 4]), ([], [])])
def test_fit_evaluates_every_few_epochs_or_after_those_of_a_list(when, after):
    found = []
    note = train.LambdaCallback(on_eval_end=lambda run: found.append(run.cur_epoch_num))
    made_model([0.5] * 5).fit(5, data(), data(), when, callbacks=[note])
    assert found == after


def test_epochs_of_evaluations_count_from_one():
    with pytest.raises(ValueError, match="valid_frequency"):
        made_model([0.5]).fit(2, data(), data(), [0, 1])


def test_a_loop_by_hand_may_call_callbacks_with_a_context_of_its_own():
    class Notes(train.Callback):
        def __init__(self):
            super().__init__()
            self.notes = []

        def step_end(self, run_context):
            self.notes.append(run_context)

    notes = Notes()
    notes.on_train_begin("context")  # defines nothing there
    notes.on_train_step_end("context")
    notes.on_eval_step_end("another")
    assert notes.notes == ["context", "another"]
    with pytest.raises(TypeError, match=r"LossMonitor.step_end takes the run context of a Model's training"):
        train.LossMonitor().step_end("context")


class Evaluating(train.Callback):
    """Evaluates and predicts within a training, in which one cell is frozen."""

    def __init__(self, net, evaluations):
        super().__init__()
        self.net, self.evaluations, self.seen = net, evaluations, []

    def on_train_begin(self, run_context):
        self.net[2].set_train(False)

    def on_train_step_begin(self, run_context):
        self.seen.append((self.net.training, self.net[1].training, self.net[2].training))

    def on_train_step_end(self, run_context):
        self.evaluations.get(run_context.cur_step_num, int)()


def test_what_a_callback_evaluates_leaves_the_training_in_its_mode():
    net = nn.SequentialCell(nn.Dense(2, 4), nn.Dropout(p=0.5), nn.Dropout(p=0.5), nn.Dense(4, 1))
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    model = train.Model(net, nn.MSELoss(), optimizer, {"mse"})
    other = train.Model(net, nn.MSELoss(), metrics={"mse"})
    evaluations = {
        1: lambda: model.eval(data()),
        2: lambda: model.predict(muster.Tensor(ROWS)),
        3: lambda: other.eval(data()),
    }
    evaluating = Evaluating(net, evaluations)
    model.train(2, data(), callbacks=evaluating)
    assert evaluating.seen == [(True, True, False)] * 6
    model.eval(data())
    assert not net.training, "an evaluation by itself leaves its own mode"
