"""Callbacks of the library in loops that are written by hand: scripts make the run context themselves."""

import os

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Tensor, nn, train
from mindspore.train.callback import RunContext
from mindspore.train.callback._callback import CallbackManager, InternalCallbackParam


def _net():
    return nn.Dense(1, 2, Tensor(np.zeros((2, 1), np.float32)), "zeros")


def _context(**given):
    made = InternalCallbackParam()
    made.update({"cur_epoch_num": 1, "cur_step_num": 1, "batch_num": 4, "epoch_num": 3}, **given)
    return made, RunContext(made)


@pytest.mark.parametrize(
    ("losses", "cooldown", "rates"),
    [
        ([1.0, 1.1, 1.2], 0, [1, 1, 0.1]),
        ([1.0, 1.1, 0.9, 1.0, 1.1], 0, [1, 1, 1, 1, 0.1]),
        ([1.0, 1.1, 1.0, 1.0, 1.1, 1.2], 1, [1, 1, 0.1, 0.1, 0.01, 0.01]),
        ([1.0, 1.1, 1.0, 1.0, 1.1, 1.2], 2, [1, 1, 0.1, 0.1, 0.1, 0.01]),
    ],
)
def test_a_rate_is_reduced_where_the_loss_stands(losses, cooldown, rates):
    given, context = _context(optimizer=nn.Momentum(_net().trainable_params(), 1.0, 0.9))
    seen = []
    with CallbackManager([train.ReduceLROnPlateau(patience=2, cooldown=cooldown)]) as callbacks:
        for epoch, loss in enumerate(losses, 1):
            callbacks.on_train_epoch_begin(context)
            given.eval_results, given.cur_epoch_num = {"eval_loss": loss}, epoch
            callbacks.on_train_epoch_end(context)
            seen.append(float(given.optimizer.learning_rate.asnumpy()))
    np.testing.assert_allclose(seen, rates, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "values", "stopped", "best"),
    [("accuracy", [0.6, 0.5, 0.7, 0.5, 0.6], 2, 1), ("eval_loss", [1.0, 0.8, 1.2, 1.3, 1.4], 3, 2)],
)
def test_a_loop_is_ended_with_the_best_weights(name, values, stopped, best, capfd):
    net = _net()
    given, context = _context(train_network=net)
    callback = train.EarlyStopping(name, patience=1, restore_best_weights=True, verbose=True)
    callback.on_train_begin(context)
    for epoch, value in enumerate(values, 1):
        callback.on_train_epoch_begin(context)
        given.eval_results, given.cur_epoch_num = {name: value}, epoch
        net.weight.set_data(Tensor(np.full((2, 1), epoch, np.float32)))
        callback.on_train_epoch_end(context)
        if context.get_stop_requested():
            break
    callback.on_train_end(context)
    assert (given.cur_epoch_num, callback.stopped_epoch) == (stopped, stopped)
    assert float(net.weight.asnumpy()[0, 0]) == best
    assert f"Epoch {stopped}: early stopping" in capfd.readouterr().out


@pytest.mark.parametrize("last", [64, 60])
def test_checkpoints_of_a_loop_are_named_by_epoch_and_step(tmp_path, last):
    net = _net()
    given, context = _context(train_network=net, batch_num=32)
    config = train.CheckpointConfig(16, keep_checkpoint_max=2)
    for prefix in ("net", "net_1"):
        callback = train.ModelCheckpoint("net", str(tmp_path), config)
        callback.begin(context)
        for step in range(1, last + 1):
            given.cur_epoch_num, given.cur_step_num = (step - 1) // 32 + 1, step
            callback.step_end(context)
        callback.end(context)
        ends = {64: ["2_16", "2_32"], 60: ["2_16", "2_28"]}[last]
        files = [f"{prefix}-{each}.ckpt" for each in ends]
        kept = {each for each in os.listdir(tmp_path) if each.startswith(f"{prefix}-")}
        assert set(files) == kept
        assert callback.latest_ckpt_file_name == os.path.realpath(tmp_path / files[-1])
    assert sorted(train.load_checkpoint(callback.latest_ckpt_file_name)) == ["bias", "weight"]


def test_a_loss_is_printed_and_one_that_is_no_number_ends_the_loop(capfd):
    monitor = train.LossMonitor(2)
    given, context = _context()
    for step in range(1, 5):
        given.cur_step_num, given.net_outputs = step, Tensor([1.0, step])
        for method in ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"):
            getattr(monitor, method)(context)
    assert capfd.readouterr().out == "epoch: 1 step: 2, loss is 1.5\nepoch: 1 step: 4, loss is 2.5\n"
    given.net_outputs = Tensor(float("nan"))
    with pytest.raises(ValueError, match="loss is nan, which is no number"):
        monitor.step_end(context)


def test_a_rate_follows_its_function():
    given, context = _context(optimizer=nn.SGD(_net().trainable_params(), 0.5))
    train.LearningRateScheduler(lambda rate, step: rate / (step + 1)).step_end(context)
    assert float(given.optimizer.learning_rate.asnumpy()) == 0.25


def test_what_no_list_names_is_better_where_it_is_greater():
    class Growing(train.Metric):
        seen = 0

        def clear(self):
            pass

        def update(self, *inputs):
            pass

        def eval(self):
            Growing.seen += 1
            return float(Growing.seen)

    rows = np.ones((4, 1), np.float32)
    data = ds.NumpySlicesDataset((rows, np.ones((4, 2), np.float32)), shuffle=False).batch(4)
    net = _net()
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), {"recall": Growing()})
    stopping = train.EarlyStopping("recall", patience=1)
    model.fit(4, data, data, callbacks=[stopping, train.ReduceLROnPlateau("recall", patience=1)])
    assert (Growing.seen, stopping.stopped_epoch) == (4, 0)
    assert float(model.train_network.optimizer.learning_rate.asnumpy()) == pytest.approx(0.1)


def _model():
    net = nn.Dense(1, 1, Tensor(np.zeros((1, 1), np.float32)), "zeros")
    rows = np.ones((8, 1), np.float32)
    data = ds.NumpySlicesDataset((rows, rows), shuffle=False).batch(2)
    return train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), {"mae"}), data


def test_a_script_ends_a_training_by_the_attribute_of_the_run_context():
    class Ends(train.Callback):
        steps = 0

        def step_end(self, run_context):
            Ends.steps += 1
            run_context._stop_requested = Ends.steps >= 3
            assert run_context._stop_requested == run_context.get_stop_requested() == (Ends.steps >= 3)

    model, data = _model()
    model.train(2, data, callbacks=Ends(), dataset_sink_mode=False)
    assert Ends.steps == 3


def test_an_end_that_was_asked_for_cannot_be_taken_back():
    class Wavers(train.Callback):
        def step_end(self, run_context):
            run_context.request_stop()
            run_context._stop_requested = False

    model, data = _model()
    with pytest.raises(NotImplementedError, match="cannot be taken back"):
        model.train(1, data, callbacks=Wavers(), dataset_sink_mode=False)


@pytest.mark.parametrize("name", ["eval_loss", "mae", "loss"])
def test_without_patience_the_first_epoch_is_the_last(name, capfd):
    model, data = _model()
    stopping = train.EarlyStopping(name, verbose=True)
    model.fit(3, data, data, callbacks=stopping)
    assert stopping.stopped_epoch == 1
    assert "Epoch 1: early stopping" in capfd.readouterr().out


def test_without_patience_epochs_that_are_not_evaluated_end_nothing():
    model, data = _model()
    stopping = train.EarlyStopping("mae")
    model.fit(4, data, data, valid_frequency=2, callbacks=stopping)
    assert stopping.stopped_epoch == 2
