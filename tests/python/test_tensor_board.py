"""Event files of TensorBoard: what the callback and the writer put there, and what its own reader finds."""

import io
import struct
import subprocess
import sys

import event_files
import numpy
import pytest
from job import clean_environment
from PIL import Image

import muster
from muster import dataset as ds
from muster import nn, train

ROWS = numpy.arange(24, dtype=numpy.float32).reshape(12, 2) / 24


def data():
    return ds.NumpySlicesDataset((ROWS, ROWS[:, :1]), ["x", "y"]).batch(4)


def made_net():
    muster.set_seed(1)
    return nn.SequentialCell(nn.Dense(2, 3), nn.ReLU(), nn.Dense(3, 1))


def made_model(rate=0.5, net=None):
    net = net or made_net()
    return train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), rate), {"mae"})


def reader_of(folder):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    reader = event_accumulator.EventAccumulator(
        str(folder), size_guidance=dict.fromkeys(("scalars", "images", "histograms", "tensors"), 0)
    )
    return reader.Reload()


def test_every_step_has_its_loss_and_rate(tmp_path):
    losses = []
    seen = train.LambdaCallback(on_train_step_end=lambda run: losses.append(float(run.net_outputs.asnumpy())))
    rates = [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625]
    made_model(rates).train(2, data(), [train.TensorBoard(tmp_path), seen])
    found = event_files.scalars(tmp_path)
    assert found["loss"] == [(step + 1, loss) for step, loss in enumerate(losses)]
    assert found["learning_rate"] == [(step + 1, rate) for step, rate in enumerate(rates)]
    assert [step for step, _ in found["step_seconds"]] == [1, 2, 3, 4, 5, 6]
    assert all(0 < seconds < 60 for _, seconds in found["step_seconds"])


def test_an_evaluation_of_fit_has_its_metrics_at_the_last_step(tmp_path):
    results = []
    seen = train.LambdaCallback(on_train_epoch_end=lambda run: results.append(dict(run.eval_results)))
    made_model().fit(2, data(), data(), callbacks=[train.TensorBoard(tmp_path, every=2), seen])
    found = event_files.scalars(tmp_path)
    assert [step for step, _ in found["loss"]] == [2, 4, 6]
    for name in ("mae", "eval_loss"):
        expected = [(step, numpy.float32(result[name])) for step, result in zip((3, 6), results, strict=True)]
        assert found[f"eval/{name}"] == expected


def test_two_trainings_of_one_callback_are_two_files(tmp_path):
    callback = train.TensorBoard(tmp_path)
    model = made_model()
    model.train(1, data(), [callback])
    model.train(1, data(), [callback])
    assert [step for step, _ in event_files.scalars(tmp_path)["loss"]] == [1, 2, 3, 1, 2, 3]
    assert len(event_files.files(tmp_path)) == 2


def test_histograms_count_every_number_of_a_parameter(tmp_path):
    model = made_model()
    model.train(1, data(), train.TensorBoard(tmp_path, histograms=3))
    weight = model.train_network.parameters_dict()["0.weight"].asnumpy().astype(numpy.float64)
    ((_, step, value),) = [each for each in event_files.values(tmp_path) if each[0] == "0/weight"]
    histogram = event_files.fields(value[5][0])
    numbers = [struct.unpack("<d", histogram[field][0])[0] for field in (1, 2, 3, 4, 5)]
    expected = [weight.min(), weight.max(), weight.size, weight.sum(), (weight**2).sum()]
    assert step == 3
    numpy.testing.assert_allclose(numbers, expected, rtol=1e-12)
    limits = numpy.frombuffer(histogram[6][0], "<f8")
    counts = numpy.frombuffer(histogram[7][0], "<f8")
    expected, edges = numpy.histogram(weight, bins=30)
    numpy.testing.assert_allclose(limits, edges[1:], rtol=1e-12)
    assert counts.sum() == weight.size
    assert numpy.abs(counts - expected).sum() <= 2  # one on an edge may be rounded to either side


def test_the_graph_has_the_cells_as_boxes_and_no_loose_ends(tmp_path):
    made_model().train(1, data(), train.TensorBoard(tmp_path))
    (file,) = event_files.files(tmp_path)
    events = [event_files.fields(record) for record in event_files.records(file.read_bytes())]
    (graph,) = [event[4][0] for event in events if 4 in event]
    nodes = [event_files.fields(node) for node in event_files.fields(graph)[1]]
    names = [node[1][0].decode() for node in nodes]
    assert len(names) == len(set(names))
    assert "SequentialCell/0/weight" in names
    assert any(name.startswith("SequentialCell/1/relu") for name in names)
    assert {each.decode() for node in nodes for each in node.get(3, [])} <= set(names)


def test_a_network_is_drawn_without_a_word_about_its_training(tmp_path, capfd):
    plain, drawn = made_net(), made_net()
    made_model(net=plain).train(2, data())
    made_model(net=drawn).train(2, data(), train.TensorBoard(tmp_path))
    for one, other in zip(plain.trainable_params(), drawn.trainable_params(), strict=True):
        assert (one.asnumpy() == other.asnumpy()).all()
    assert "warning" not in capfd.readouterr().err


def test_the_writer_refuses_what_is_no_picture_and_what_is_closed(tmp_path):
    with train.SummaryWriter(tmp_path) as writer:
        with pytest.raises(ValueError, match=r"image 'a': its shape is \(2, 3\), and dataformats 'CHW'"):
            writer.add_image("a", numpy.zeros((2, 3)))
        with pytest.raises(ValueError, match="a picture has 1, 3 or 4 channels, not 2"):
            writer.add_image("a", numpy.zeros((2, 3, 3)))
        with pytest.raises(TypeError, match="hparams: lr is a list"):
            writer.add_hparams({"lr": [1]})
    with pytest.raises(ValueError, match="is closed"):
        writer.add_scalar("a", 1)


def test_numbers_of_one_drawing_are_runs_below(tmp_path):
    with train.SummaryWriter(tmp_path) as writer:
        for step in (1, 2):
            writer.add_scalars("a/loss", {"train": step, "test": numpy.float32(2 * step)}, numpy.int64(step))
    for name, values in (("a_loss_train", [1, 2]), ("a_loss_test", [2, 4])):
        assert [each.value for each in reader_of(tmp_path / name).Scalars("a/loss")] == values


def test_settings_of_numpy_and_tensors_are_kept_and_none_is_left_out(tmp_path):
    with train.SummaryWriter(tmp_path, max_queue=1) as writer:
        settings = {"on": numpy.bool_(True), "lr": muster.Tensor(0.5), "n": numpy.array(3), "seed": None}
        writer.add_hparams(settings, {"score": 1})
    plugin_data_pb2 = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")
    content = reader_of(tmp_path).summary_metadata["_hparams_/session_start_info"].plugin_data.content
    kept = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
    assert (kept["on"].bool_value, kept["lr"].number_value, kept["n"].number_value) == (True, 0.5, 3)
    assert set(kept) == {"on", "lr", "n"}


def test_a_writer_without_a_folder_makes_one_as_pytorchs_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with train.SummaryWriter(comment="_wide", max_queue=10, flush_secs=30, filename_suffix=".x") as writer:
        writer.add_scalar("a", 1, None)
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("_wide") and reader_of(folder).Scalars("a")[0].step == 0
    with pytest.raises(
        ValueError, match="purge_step is 3: no step of a file is taken back here; goes_on=True"
    ):
        train.SummaryWriter(tmp_path, purge_step=3)


UNCLOSED = """
import os
from muster import train
writer = train.SummaryWriter("kept")
writer.add_scalar("a", 1, 1)
dropped = train.SummaryWriter("dropped")
dropped.add_scalar("a", 2, 1)
del dropped
if os.fork() == 0:
    raise SystemExit
os.wait()
"""


def test_what_nobody_closes_is_written_once_when_it_ends(tmp_path):
    subprocess.run([sys.executable, "-c", UNCLOSED], cwd=tmp_path, env=clean_environment(), check=True)
    for name, value in (("kept", 1), ("dropped", 2)):
        assert [each.value for each in reader_of(tmp_path / name).Scalars("a")] == [value]


def test_what_comes_seldom_is_written_when_its_time_has_come(tmp_path):
    writer = train.SummaryWriter(tmp_path, flush_secs=0)
    writer.add_scalar("a", 1, 1)
    assert [each.value for each in reader_of(tmp_path).Scalars("a")] == [1]
    writer.close()


def test_a_writer_takes_pytorchs_arguments_in_their_places(tmp_path):
    picture = numpy.zeros((4, 4, 3), numpy.uint8)
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("a", 1, 2, None, True, True)
        writer.add_image("i", picture, 2, None, "HWC")
        writer.add_histogram("h", ROWS, 2, "auto", None, 10)
        writer.add_text("t", "text", 2, None)
        with pytest.raises(
            ValueError, match=r"scalar 'b': one number is needed, not an array of shape \(2,\)"
        ):
            writer.add_scalar("b", numpy.ones(2))
        with pytest.raises(TypeError, match="text 'b': a text is needed, not int"):
            writer.add_text("b", 5)
    reader = reader_of(tmp_path)
    assert [each.step for each in (*reader.Scalars("a"), *reader.Images("i"), *reader.Histograms("h"))] == [
        2
    ] * 3


def test_figures_are_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(2, 1), dpi=50, facecolor=(1, 0, 0))
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_figure("mine", figure, 4)
        writer.add_figure("several", [figure, figure], 4)
    assert not pyplot.fignum_exists(figure.number)
    (image,) = reader_of(tmp_path).Images("mine")
    pixels = numpy.asarray(Image.open(io.BytesIO(image.encoded_image_string)))
    assert pixels.shape == (50, 100, 4) and (pixels[0, 0] == [255, 0, 0, 255]).all()


def test_tensorboards_own_reader_finds_all_of_it(tmp_path):
    rng = numpy.random.default_rng(1)
    picture = rng.integers(0, 256, (5, 7, 3), numpy.uint8)
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("accuracy", muster.Tensor(0.75), 7)
        writer.add_histogram("weights", rng.normal(size=(30, 4)), 7)
        writer.add_image("digit", picture, 7, dataformats="HWC")
        writer.add_image("ramp", numpy.linspace(0, 1, 12, dtype=numpy.float32).reshape(1, 3, 4), 7)
        writer.add_text("notes", "a **bold** claim", 7)
        writer.add_tensor("table", muster.Tensor([[1, 2], [3, 4]], muster.int64), 7)
        writer.add_graph(nn.Dense(2, 3), muster.Tensor(ROWS))
        writer.add_hparams({"lr": 0.1, "bias": True, "name": "sgd"}, {"score": 0.5})
    reader = reader_of(tmp_path)
    (scalar,) = reader.Scalars("accuracy")
    assert (scalar.step, scalar.value) == (7, 0.75)
    (histogram,) = reader.Histograms("weights")
    assert histogram.histogram_value.num == 120
    for tag, expected in (("digit", picture), ("ramp", None)):
        (image,) = reader.Images(tag)
        pixels = numpy.asarray(Image.open(io.BytesIO(image.encoded_image_string)))
        if expected is None:
            expected = (numpy.linspace(0, 1, 12, dtype=numpy.float32).reshape(3, 4) * 255 + 0.5).astype(
                "uint8"
            )
        assert (pixels == expected).all()
    tensor_util = pytest.importorskip("tensorboard.util.tensor_util")
    (text,) = reader.Tensors("notes")
    assert tensor_util.make_ndarray(text.tensor_proto).tolist() == [b"a **bold** claim"]
    (table,) = reader.Tensors("table")
    assert tensor_util.make_ndarray(table.tensor_proto).tolist() == [[1, 2], [3, 4]]
    assert {node.op for node in reader.Graph().node} >= {"Input", "Parameter"}
    from tensorboard.plugins.hparams import plugin_data_pb2

    tags = reader.summary_metadata
    start = plugin_data_pb2.HParamsPluginData.FromString(
        tags["_hparams_/session_start_info"].plugin_data.content
    ).session_start_info
    assert start.hparams["lr"].number_value == 0.1
    assert start.hparams["bias"].bool_value is True
    assert start.hparams["name"].string_value == "sgd"
    experiment = plugin_data_pb2.HParamsPluginData.FromString(
        tags["_hparams_/experiment"].plugin_data.content
    ).experiment
    assert [info.name for info in experiment.hparam_infos] == ["bias", "lr", "name"]
    assert [info.name.tag for info in experiment.metric_infos] == ["score"]


def test_tensorboards_own_server_shows_the_migrated_values(tmp_path):
    """As its pages load them: old values become tensors of the plugins scalars, histograms and images."""
    multiplexer = pytest.importorskip("tensorboard.backend.event_processing.plugin_event_multiplexer")
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("accuracy", 0.75, 7)
        writer.add_histogram("weights", numpy.arange(10.0), 7)
        writer.add_image("digit", numpy.zeros((1, 3, 4), numpy.uint8), 7)
        writer.add_text("notes", "text", 7)
    loaded = multiplexer.EventMultiplexer().AddRun(str(tmp_path), "run").Reload()
    plugins = {
        tag: metadata.plugin_data.plugin_name for tag, metadata in loaded.AllSummaryMetadata()["run"].items()
    }
    assert plugins == {"accuracy": "scalars", "weights": "histograms", "digit": "images", "notes": "text"}
