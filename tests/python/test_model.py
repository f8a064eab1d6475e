"""Model and its callbacks in one process."""

import gc
import signal
import threading
import time
import weakref

import numpy
import pytest
from digits import write_digits

import muster
from muster import dataset as ds
from muster import nn, train

ROWS = 80


class Network(muster.Cell):
    traces = 0

    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(28 * 28, 10)

    def construct(self, x):
        Network.traces += 1
        return self.fc(self.flatten(x))


@pytest.fixture(name="digits", scope="module")
def digits_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, ROWS)
    return str(folder)


def batches(folder, batch=20, rows=ROWS):
    dataset = ds.MnistDataset(folder, num_samples=rows)
    dataset = dataset.map(ds.vision.Rescale(1 / 255.0, 0), "image")
    return dataset.map(ds.transforms.TypeCast(muster.int32), "label").batch(batch)


def made_model(metrics=None, rate=0.1, network=None):
    muster.set_seed(1)
    Network.traces = 0
    net = network or Network()
    return train.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), rate, 0.9), metrics)


def losses_in(text):
    return [float(line.split("loss is ")[1]) for line in text.splitlines() if "loss is" in line]


def test_training_prints_each_step_and_learns(digits, capsys):
    made_model().train(5, batches(digits), callbacks=[train.LossMonitor(), train.TimeMonitor()])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines[:4]] == [f"epoch: 1 step: {i}" for i in (1, 2, 3, 4)]
    assert lines[4].startswith("Train epoch time: ") and ", per step time: " in lines[4]
    losses = losses_in("\n".join(lines))
    assert len(losses) == 20 and losses[-1] < 0.5 * losses[0]


def test_two_trainings_with_one_seed_give_the_same_bits(digits):
    def trained():
        model = made_model()
        model.train(2, batches(digits, batch=32))
        return model.predict_network.fc.weight.asnumpy().tobytes()

    assert trained() == trained()


def test_construct_runs_once_for_each_batch_size(digits):
    made_model().train(3, batches(digits, batch=32))
    assert Network.traces == 2


@pytest.mark.parametrize(("sink_size", "steps"), [(-1, [1, 2, 3, 4, 5, 6, 7, 8]), (3, [3, 6])])
def test_callbacks_run_every_step_in_sink_mode_unless_a_sink_size_groups_them(digits, sink_size, steps):
    class Steps(train.Callback):
        seen = ()

        def step_end(self, run_context):
            self.seen += (run_context.original_args().cur_step_num,)

    callback = Steps()
    made_model().train(2, batches(digits), callback, dataset_sink_mode=True, sink_size=sink_size)
    assert list(callback.seen) == steps


def test_callbacks_see_where_the_training_is(digits):
    seen = []

    class Watcher(train.Callback):
        def on_train_begin(self, run_context):
            run_context.original_args().started = "yes"

        def on_train_step_end(self, run_context):
            args = run_context.original_args()
            seen.append((args.cur_epoch_num, args.cur_step_num, args.batch_num, args.epoch_num))
            assert args.started == "yes" and args.get("missing") is None
            assert args.net_outputs.shape == () and args.network is net
            assert args.optimizer is optimizer and args.train_dataset is dataset
            assert args.parallel_mode == "stand_alone" and args.list_callback == [self]
            assert "fc.weight" in [p.name for p in args.train_network.get_parameters()]
            if args.cur_step_num == 3:
                run_context.request_stop()

    muster.set_seed(1)
    net = Network()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    dataset = batches(digits, batch=40)
    train.Model(net, nn.CrossEntropyLoss(), optimizer).train(3, dataset, [Watcher()])
    assert seen == [(1, 1, 2, 3), (1, 2, 2, 3), (2, 3, 2, 3)]


def test_an_exception_in_a_callback_comes_out_as_itself(digits):
    class OddError(Exception):
        pass

    class Raising(train.Callback):
        def epoch_end(self, run_context):
            raise OddError("here")

    with pytest.raises(OddError, match="here"):
        made_model().train(1, batches(digits), Raising())


def test_an_exception_in_construct_comes_out_as_itself(digits):
    class Broken(Network):
        def construct(self, x):
            raise KeyError("no such layer")

    with pytest.raises(KeyError, match="no such layer"):
        made_model(network=Broken()).train(1, batches(digits))


def test_a_built_in_callback_can_be_subclassed(digits, capsys):
    class Louder(train.LossMonitor):
        def step_end(self, run_context):
            super().step_end(run_context)
            print("that was step", run_context.cur_step_num)

    made_model().train(1, batches(digits, batch=40), Louder())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("epoch: 1 step: 1, loss is ") and lines[1] == "that was step 1"


def test_the_loss_monitor_ends_a_training_whose_loss_is_no_number(digits):
    with pytest.raises(ValueError, match=r"In epoch: 1 step: \d, loss is (nan|inf)"):
        made_model(rate=1e38).train(3, batches(digits), train.LossMonitor(100))


def test_fit_evaluates_and_callbacks_find_the_results(digits, capsys):
    model = made_model(metrics={"accuracy", "loss"})
    stop = train.EarlyStopping("accuracy", patience=2)
    model.fit(30, batches(digits), batches(digits), callbacks=[train.LossMonitor(0), stop])
    assert model.eval(batches(digits))["accuracy"] > 0.9
    found = {}
    model.fit(
        1,
        batches(digits),
        batches(digits),
        callbacks=train.LambdaCallback(on_train_epoch_end=lambda run: found.update(run.eval_results)),
    )
    assert sorted(found) == ["accuracy", "eval_loss", "loss"]
    assert found["loss"] == found["eval_loss"]


def test_evaluation_takes_metrics_by_name_as_objects_and_from_python(digits):
    class Rows(train.Metric):
        def clear(self):
            self.rows = 0

        def update(self, prediction, label):
            assert prediction.shape == (len(label), 10)
            self.rows += len(label)

        def eval(self):
            return self.rows

    model = made_model(metrics={"Accuracy": train.Accuracy(), "rows": Rows()})
    results = model.eval(batches(digits, batch=32))
    assert list(results) == ["Accuracy", "rows"]
    assert results["rows"] == ROWS and 0 <= results["Accuracy"] <= 1
    with pytest.raises(ValueError, match="there are: accuracy"):
        made_model(metrics={"acuracy"})


def test_rows_of_a_generator_are_counted_before_the_training(digits):
    def rows():
        for label in range(6):
            yield numpy.full((28, 28, 1), label / 10, numpy.float32), numpy.int32(label)

    steps = []
    dataset = ds.GeneratorDataset(rows, ["image", "label"], shuffle=False).batch(2)
    made_model().train(
        2,
        dataset,
        train.LambdaCallback(on_train_step_end=lambda run: steps.append((run.batch_num, run.cur_step_num))),
    )
    assert steps == [(3, step) for step in (1, 2, 3, 4, 5, 6)]


def test_predict_gives_what_the_network_gives(digits):
    class Two(Network):
        def construct(self, x):
            return {"logits": super().construct(x), "training": 1 if self.training else 0}

    model = train.Model(Two())
    answer = model.predict(muster.Tensor(numpy.zeros((4, 28, 28, 1), numpy.float32)))
    assert answer["logits"].shape == (4, 10) and answer["training"] == 0


def test_learning_rates_can_be_scheduled(digits):
    rates = []
    made_model().train(
        1,
        batches(digits, batch=40),
        [
            train.LearningRateScheduler(lambda rate, step: rate * 0.5),
            train.LambdaCallback(
                on_train_step_end=lambda run: rates.append(run.optimizer.learning_rate.asnumpy().item())
            ),
        ],
    )
    assert rates == pytest.approx([0.05, 0.025])


def test_checkpoints_are_named_by_epoch_and_step_and_load(digits, tmp_path):
    config = train.CheckpointConfig(save_checkpoint_steps=3, keep_checkpoint_max=2)
    saver = train.ModelCheckpoint("net", str(tmp_path), config)
    model = made_model()
    model.train(2, batches(digits), saver)
    assert sorted(path.name for path in tmp_path.glob("*.ckpt")) == ["net-2_2.ckpt", "net-2_4.ckpt"]
    values = muster.load_checkpoint(saver.latest_ckpt_file_name)
    assert {"fc.weight", "fc.bias", "moments.fc.weight", "learning_rate"} <= set(values)
    fresh = Network()
    missing, left = muster.load_param_into_net(fresh, values)
    assert missing == [] and "moments.fc.weight" in left
    trained = model.predict_network.fc.weight.asnumpy()
    numpy.testing.assert_array_equal(fresh.fc.weight.asnumpy(), trained)
    made_model().train(1, batches(digits), train.ModelCheckpoint("net", str(tmp_path)))
    assert (tmp_path / "net_1-1_4.ckpt").exists()


def test_checkpoints_hold_a_network_of_choice_and_further_numbers_and_resume(digits, tmp_path):
    def saver(network, folder):
        info = {"epoch_num": 10, "step_num": 0, "rate": 0.5, "flag": True}
        config = train.CheckpointConfig(3, saved_network=network, append_info=info)
        return train.ModelCheckpoint("net", str(tmp_path / folder), config)

    model = made_model()
    model.train(2, batches(digits), saver(model.predict_network, "saved"))
    values = muster.load_checkpoint(str(tmp_path / "saved/net-2_2.ckpt"))
    assert list(values) == ["fc.weight", "fc.bias", "epoch_num", "step_num", "rate", "flag"]
    assert [values[name].asnumpy().item() for name in list(values)[2:]] == [12, 6, 0.5, True]
    resumed, unbroken = made_model(), made_model()
    resumed.train(3, batches(digits), saver(resumed.predict_network, "saved"), resume="last")
    unbroken.train(3, batches(digits), saver(unbroken.predict_network, "unbroken"))
    for one, other in ((resumed, unbroken), (model, unbroken)):
        weights = [each.predict_network.fc.weight.asnumpy() for each in (one, other)]
        assert numpy.array_equal(*weights) == (one is resumed)
    other = saver(Network(), "other")  # not of the training: a file of it, and a state that has all else
    made_model().train(2, batches(digits), other)
    again = made_model()
    again.train(3, batches(digits), other, resume="last")
    numpy.testing.assert_array_equal(
        again.predict_network.fc.weight.asnumpy(), unbroken.predict_network.fc.weight.asnumpy()
    )


def test_ctrl_c_ends_a_training_and_leaves_the_model_usable(digits):
    model = made_model()
    # The timer's thread needs the interpreter lock: a training without callbacks does not hold it.
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.train(1_000_000, batches(digits))
    timer.join()
    model.train(1, batches(digits))


class Endless(Network):
    """Counts to a number that it never reaches."""

    def construct(self, x):
        count = muster.ops.while_loop(
            lambda state: state < 1e30, lambda state: state * 1.0, muster.ops.ones(())
        )
        return super().construct(x) * count


def interrupt_soon():
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    return timer


def test_ctrl_c_ends_a_step_and_the_step_has_not_happened(digits):
    model = made_model(network=Endless())
    weight = model.predict_network.fc.weight
    before = weight.asnumpy().copy()
    timer = interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        model.train(1, batches(digits))
    timer.join()
    numpy.testing.assert_array_equal(weight.asnumpy(), before)


def test_ctrl_c_ends_a_call_of_a_loop_written_by_hand():
    net = Endless()
    timer = interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        net(muster.Tensor(numpy.zeros((2, 784), numpy.float32)))
    timer.join()


def test_nothing_of_a_model_outlives_it(digits):
    net = Network()
    model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1), {"accuracy"})
    callback = train.LossMonitor(0)
    model.train(1, batches(digits), callback)
    alive = weakref.ref(net)
    del net, model, callback
    gc.collect()
    assert alive() is None


def test_what_does_not_fit_is_an_error_before_the_first_step(digits):
    with pytest.raises(ValueError, match="has no items"):
        made_model().train(1, batches(digits, batch=100, rows=50).take(1).skip(1))
    with pytest.raises(TypeError, match=r"callbacks.*objects"):
        made_model().train(1, batches(digits), [3])
    with pytest.raises(TypeError, match=r"train_dataset.*int"):
        made_model().train(1, 3)
    with pytest.raises(TypeError, match="loss_fn is a Cell"):
        train.Model(Network(), loss_fn=3)
    with pytest.raises(ValueError, match=r"amp_level 'O2'.*training"):
        train.Model(Network(), amp_level="O2")


def test_the_time_of_a_step_is_told_in_milliseconds(digits, capsys):
    begin = time.monotonic()
    made_model().train(1, batches(digits), train.TimeMonitor())
    spent = 1e3 * (time.monotonic() - begin)
    words = capsys.readouterr().out.split()
    assert 0 < float(words[3]) <= spent and float(words[8]) == pytest.approx(float(words[3]) / 4, abs=0.01)
