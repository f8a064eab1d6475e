"""Summaries by MindSpore's names: SummaryRecord, SummaryCollector and the four ops, as event files."""

import io

import event_files
import mindspore
import numpy
import pytest
from mindspore import nn, ops, train
from mindspore.train import SummaryCollector, SummaryRecord
from PIL import Image

ROWS = numpy.arange(48, dtype=numpy.float32).reshape(24, 2) / 48


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2, 1)
        self.scalar, self.tensor = ops.ScalarSummary(), ops.TensorSummary()
        self.histogram, self.image = ops.HistogramSummary(), ops.ImageSummary()

    def construct(self, x):
        y = self.dense(x)
        self.scalar("mean", y.mean())
        self.tensor("out", y)
        self.histogram("spread", y)
        self.image("picture", ops.reshape(x, (1, 1, 4, 2)))
        return y


def data(epochs_of=4):
    return mindspore.dataset.NumpySlicesDataset((ROWS, ROWS[:, :1]), ["x", "y"], shuffle=False).batch(
        epochs_of
    )


def made_model():
    net = Net()
    return train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))


def steps_of(folder):
    steps = {}
    for tag, step, _ in event_files.values(folder):
        steps.setdefault(tag, []).append(step)
    return steps


def test_a_record_writes_what_was_added_at_its_step(tmp_path):
    picture = numpy.random.default_rng(1).integers(0, 256, (1, 3, 4, 5)).astype(numpy.uint8)
    with SummaryRecord(str(tmp_path)) as record:
        record.add_value("scalar", "loss", mindspore.Tensor(0.5))
        record.add_value("scalar", "loss", mindspore.Tensor(0.25))  # the newest counts
        record.add_value("image", "digit", mindspore.Tensor(picture))
        assert record.record(3) is True
        record.add_value("tensor", "table", mindspore.Tensor([1.0, 2.0]))
        record.add_value("histogram", "weights", mindspore.Tensor([1.0, 2.0]))
        record.record(4, plugin_filter=lambda plugin: plugin == "histogram")
        record.record(5)
    assert record.record(6) is False
    assert event_files.scalars(tmp_path) == {"loss": [(3, 0.25)]}
    assert steps_of(tmp_path) == {"loss": [3], "digit": [3], "weights": [4]}
    (image,) = [
        event_files.fields(value[4][0]) for tag, _, value in event_files.values(tmp_path) if tag == "digit"
    ]
    pixels = numpy.asarray(Image.open(io.BytesIO(image[4][0])))
    assert (pixels == picture[0].transpose(1, 2, 0)).all()


def test_ops_in_a_loop_by_hand_are_recorded_in_train_mode(tmp_path):
    net = Net()
    with SummaryRecord(str(tmp_path)) as record:
        for step in (1, 2):
            net(mindspore.Tensor(ROWS[:4]))
            record.record(step)
        record.set_mode("eval")
        net(mindspore.Tensor(ROWS[:4]))
        record.record(3)
    steps = steps_of(tmp_path)
    assert steps == {tag: [1, 2] for tag in ("mean", "out", "spread", "picture")}
    expected = (
        net(mindspore.Tensor(ROWS[:4])).asnumpy().mean()
    )  # in numpy's order, which no processor has to share
    assert event_files.scalars(tmp_path)["mean"] == [
        (step, pytest.approx(expected, rel=1e-6)) for step in (1, 2)
    ]


def test_ops_without_a_record_keep_nothing():
    from mindspore import _summaries

    Net()(mindspore.Tensor(ROWS[:4]))
    assert _summaries.take() == []


def test_the_collector_records_the_first_and_every_tenth_step(tmp_path):
    collector = SummaryCollector(str(tmp_path), collect_freq=5, collect_tensor_freq=10)
    losses = []

    class Losses(train.Callback):
        def on_train_step_end(self, run_context):
            losses.append(float(run_context.original_args().net_outputs.asnumpy()))

    made_model().train(2, data(), callbacks=[collector, Losses()], dataset_sink_mode=False)
    steps = steps_of(tmp_path)
    assert steps["loss/auto"] == [1, 5, 10]
    assert steps["out"] == [1, 10]
    assert steps["mean"] == steps["spread"] == steps["dense.weight/auto"] == [1, 5, 10]
    found = event_files.scalars(tmp_path)["loss/auto"]
    assert found == [(step, numpy.float32(losses[step - 1])) for step in (1, 5, 10)]


def test_the_collector_collects_what_is_specified(tmp_path):
    wanted = {"collect_metric": False, "histogram_regular": "^dense.b.*"}
    collector = SummaryCollector(str(tmp_path), 3, collect_specified_data=wanted, keep_default_action=False)
    made_model().train(1, data(), callbacks=[collector])
    assert set(steps_of(tmp_path)) == {"dense.bias/auto", "mean", "out", "spread", "picture"}


def test_a_full_file_grows_no_more(tmp_path, capfd):
    with SummaryRecord(str(tmp_path), max_file_size=1) as record:
        for step in (1, 2):
            record.add_value("scalar", "loss", mindspore.Tensor(0.5))
            record.record(step)
    assert steps_of(tmp_path) == {"loss": [1]}
    assert "has reached max_file_size=1" in capfd.readouterr().err


def test_tensors_are_exported_as_numpy_files(tmp_path):
    with SummaryRecord(str(tmp_path), export_options={"tensor_format": "npy"}) as record:
        record.add_value("tensor", "a/b", mindspore.Tensor([1.0, 2.0]))
        record.record(7)
    (file,) = tmp_path.glob("export_*/tensor/a_b_7.npy")
    assert numpy.load(file).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda r: r.add_value("video", "a", mindspore.Tensor(1.0)), ValueError, "no plugin 'video'"),
        (lambda r: r.add_value("scalar", "", mindspore.Tensor(1.0)), ValueError, "name is a text"),
        (lambda r: r.add_value("scalar", "a", 1.0), TypeError, "value is a Tensor, not float"),
        (lambda r: r.add_value("scalar", "a", mindspore.Tensor([1.0, 2.0])), ValueError, "has one element"),
        (lambda r: r.add_value("image", "a", mindspore.Tensor([1.0])), ValueError, "is \\(batch, 1 or 3"),
        (lambda r: r.record("1"), TypeError, "step is an int"),
        (lambda r: r.set_mode("test"), ValueError, "'train' or 'eval'"),
    ],
)
def test_mistakes_are_named(tmp_path, call, error, told):
    with SummaryRecord(str(tmp_path)) as record, pytest.raises(error, match=told):
        call(record)


def test_mistakes_of_ops_are_named():
    with pytest.raises(TypeError, match="name is a text"):
        ops.ScalarSummary()(1, mindspore.Tensor(1.0))
    with pytest.raises(ValueError, match="at most one axis"):
        ops.ScalarSummary()("a", mindspore.Tensor([[1.0]]))
    with pytest.raises(ValueError, match="batch, 1 or 3, height, width"):
        ops.ImageSummary()("a", mindspore.Tensor([1.0]))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"summary_dir": None}, "summary_dir is a path, not NoneType"),
        ({"keep_default_action": 3}, "keep_default_action is a bool, not int"),
        ({"collect_freq": True}, "collect_freq is an int, not bool"),
        ({"collect_specified_data": {"collect_metric": 5}}, "collect_metric is a bool, not int"),
        ({"collect_specified_data": {"histogram_regular": 5}}, "histogram_regular is a text, not int"),
        ({"collect_specified_data": {"histogram_regular": "("}}, r"histogram_regular is '\(', which is no"),
        ({"max_file_size": "1GB"}, "SummaryCollector: max_file_size is an int, not str"),
        ({"export_options": {"tensor_format": "csv"}}, "SummaryCollector: export_options is"),
        ({"custom_lineage_data": [1]}, "SummaryCollector: custom_lineage_data is a dict, not list"),
    ],
    ids=str,
)
def test_a_collector_names_settings_that_it_cannot_take_before_the_training(tmp_path, settings, told):
    with pytest.raises((TypeError, ValueError), match=told):
        SummaryCollector(**{"summary_dir": str(tmp_path), **settings})


@pytest.mark.parametrize("size", [-1, 0, True])
def test_a_record_wants_room_for_a_byte(tmp_path, size):
    with pytest.raises((TypeError, ValueError), match="max_file_size is"):
        SummaryRecord(str(tmp_path), max_file_size=size)
