"""What SummaryWriter adds for TensorBoard's plugins, as their own readers find it."""

import io
import wave

import event_files
import numpy
import pytest
from PIL import Image

import muster
from muster import train

FRAMES = numpy.random.default_rng(1).integers(0, 256, (2, 3, 3, 4, 5), numpy.uint8)  # 2 videos of 3 frames


def loaded(folder):
    """The values of a folder by tag, as TensorBoard's server loads them."""
    multiplexer = pytest.importorskip("tensorboard.backend.event_processing.plugin_event_multiplexer")
    return multiplexer.EventMultiplexer().AddRun(str(folder), "run").Reload()


def array_of(runs, tag):
    tensor_util = pytest.importorskip("tensorboard.util.tensor_util")
    (event,) = runs.Tensors("run", tag)
    return tensor_util.make_ndarray(event.tensor_proto)


def content_of(runs, tag):
    return runs.SummaryMetadata("run", tag).plugin_data.content


def test_additions_are_of_the_time_that_they_are_given(tmp_path):
    picture = numpy.zeros((1, 2, 2), numpy.uint8)
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("scalar", 1, 2, 5.5)
        writer.add_scalars("scalars", {"a": 1}, 2, 5.5)
        writer.add_histogram("histogram", [1.0], 2, walltime=5.5)
        writer.add_image("image", picture, 2, 5.5)
        writer.add_images("images", picture[None], 2, 5.5)
        writer.add_text("text", "text", 2, 5.5)
        writer.add_audio("sound", numpy.zeros(3), 2, 8000, 5.5)
    runs = loaded(tmp_path)
    tags = ["scalar", "histogram", "image", "images/0", "text", "sound"]
    assert [runs.Tensors("run", tag)[0].wall_time for tag in tags] == [5.5] * 6
    assert loaded(tmp_path / "scalars_a").Tensors("run", "scalars")[0].wall_time == 5.5


def test_a_curve_has_precision_and_recall_of_each_threshold(tmp_path):
    labels = numpy.array([0, 1, 1, 0, 1])
    predictions = numpy.array([0.1, 0.4, 1.0, 0.9, 0.0], numpy.float32)
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve("curve", muster.Tensor(labels), muster.Tensor(predictions), 3, num_thresholds=11)
        writer.add_pr_curve("weighted", labels, predictions, 3, 11, weights=[1, 1, 1, 2, 1])
    runs = loaded(tmp_path)
    plugin = pytest.importorskip("tensorboard.plugins.pr_curve.metadata")
    assert plugin.parse_plugin_metadata(content_of(runs, "curve")).num_thresholds == 11
    curve = array_of(runs, "curve")
    for at in (0, 4, 5, 9, 10):
        chosen = numpy.floor(predictions * 10) >= at
        true, false = (chosen & (labels == 1)).sum(), (chosen & (labels == 0)).sum()
        counts = [true, false, 2 - false, 3 - true, true / (true + false), true / 3]
        numpy.testing.assert_allclose(curve[:, at], counts, rtol=1e-6)
    assert array_of(runs, "weighted")[1].tolist() == [3] + [3] + [2] * 8 + [0]


def test_a_curve_of_counts_is_as_they_are(tmp_path):
    counts = numpy.arange(24, dtype=numpy.float32).reshape(6, 4)
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve_raw("curve", *counts, 1, 4)
    assert (array_of(loaded(tmp_path), "curve") == counts).all()


def test_a_mesh_has_its_parts(tmp_path):
    plugin = pytest.importorskip("tensorboard.plugins.mesh.metadata")
    vertices = numpy.random.default_rng(1).normal(size=(2, 4, 3)).astype(numpy.float32)
    faces, colors = numpy.array([[[0, 1, 2]]] * 2), numpy.full((2, 4, 3), 200)
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_mesh("shape", vertices, colors, faces, {"camera": {"cls": "PerspectiveCamera"}}, 1)
        writer.add_mesh("points", vertices, global_step=1)
    runs = loaded(tmp_path)
    for part, array in (("VERTEX", vertices), ("FACE", faces), ("COLOR", colors)):
        found = plugin.parse_plugin_metadata(content_of(runs, f"shape_{part}"))
        assert (array_of(runs, f"shape_{part}") == array).all()
        assert (found.name, list(found.shape), found.components) == ("shape", list(array.shape), 0b1110)
        assert found.json_config == '{"camera": {"cls": "PerspectiveCamera"}}'
    assert plugin.parse_plugin_metadata(content_of(runs, "points_VERTEX")).components == 0b10


def test_a_layout_says_which_scalars_are_drawn_together(tmp_path):
    layout_pb2 = pytest.importorskip("tensorboard.plugins.custom_scalar.layout_pb2")
    charts = {"both": ["Multiline", ["a", "b"]], "between": ["Margin", ["m", "low", "high"]]}
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_custom_scalars({"losses": charts})
        with pytest.raises(ValueError, match=r"custom scalars 'x': \['Multiline', tags\] or"):
            writer.add_custom_scalars({"losses": {"x": ["Margin", ["a"]]}})
    runs = loaded(tmp_path)
    layout = layout_pb2.Layout.FromString(array_of(runs, "custom_scalars__config__").item())
    (category,) = layout.category
    assert [category.title, *(chart.title for chart in category.chart)] == ["losses", "both", "between"]
    assert list(category.chart[0].multiline.tag) == ["a", "b"]
    (series,) = category.chart[1].margin.series
    assert (series.value, series.lower, series.upper) == ("m", "low", "high")


def test_a_video_is_a_picture_that_moves(tmp_path):
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_video("video", FRAMES, 2, fps=8)
        writer.add_video("still", (FRAMES[:, :1] / 255).astype(numpy.float32), 2)
    videos = {tag: event_files.fields(value[4][0])[4][0] for tag, _, value in event_files.values(tmp_path)}
    moving = Image.open(io.BytesIO(videos["video"]))
    assert moving.n_frames == 3
    for at in range(3):
        moving.seek(at)
        assert moving.info["duration"] == 125
        side_by_side = numpy.concatenate([video[at].transpose(1, 2, 0) for video in FRAMES], axis=1)
        assert (numpy.asarray(moving.convert("RGB")) == side_by_side).all()
    still = numpy.asarray(Image.open(io.BytesIO(videos["still"])))
    assert (still[:, :5] == FRAMES[0, 0].transpose(1, 2, 0)).all()
    assert loaded(tmp_path).SummaryMetadata("run", "video").plugin_data.plugin_name == "images"


def test_boxes_are_drawn_on_a_picture_with_their_labels(tmp_path):
    grey, boxes = numpy.full((1, 40, 60), 128, numpy.uint8), numpy.array([[5, 8, 30, 36], [34, 4, 55, 20]])
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_image_with_boxes("boxes", grey, muster.Tensor(boxes.astype(numpy.float32)), 3)
        writer.add_image_with_boxes(
            "labelled", grey[0] / 255, boxes, 3, labels=["cat", "dog"], dataformats="HW"
        )
        writer.add_image_with_boxes("large", grey.repeat(3, 0), boxes, 3, rescale=2, labels="of one")
    encoded = {tag: event_files.fields(value[4][0])[4][0] for tag, _, value in event_files.values(tmp_path)}
    boxes, labelled, large = (
        numpy.asarray(Image.open(io.BytesIO(encoded[tag])).convert("RGB"))
        for tag in ("boxes", "labelled", "large")
    )
    red = [255, 0, 0]
    for x, y in ((5, 8), (30, 30), (20, 36), (55, 10), (40, 4)):
        assert boxes[y, x].tolist() == red
    assert boxes[20, 20].tolist() == [128] * 3 and boxes[30, 50].tolist() == [128] * 3
    assert (labelled < 100).all(-1).any() and not (boxes < 100).all(-1).any()  # letters are dark
    assert large.shape == (80, 120, 3) and not (large < 100).all(-1).any()


def test_a_histogram_is_as_the_script_has_counted_it(tmp_path):
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_histogram_raw("h", -1, 4.5, 6, 9.5, 30.25, [0, 2, 5], numpy.array([1, 2, 3]), 7, 5.5)
    (event,) = loaded(tmp_path).Tensors("run", "h")
    assert (event.step, event.wall_time) == (7, 5.5)
    rows = array_of(loaded(tmp_path), "h")  # left, right, count
    assert rows[:, 2].sum() == 6 and (rows[0, 0], rows[-1, 1]) == (-1, 4.5)


def test_a_sound_is_heard(tmp_path):
    tone = numpy.sin(numpy.arange(800) / 10)[None]
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_audio("tone", tone, 1, sample_rate=8000)
    encoded = array_of(loaded(tmp_path), "tone")
    with wave.open(io.BytesIO(encoded.ravel()[0])) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getnframes()) == (8000, 1, 800)
        heard = numpy.frombuffer(sound.readframes(800), "<i2") / 32767
    numpy.testing.assert_allclose(heard, tone[0], atol=1e-4)


def test_the_projector_finds_embeddings_with_their_labels_and_pictures(tmp_path):
    text_format = pytest.importorskip("google.protobuf.text_format")
    config_pb2 = pytest.importorskip("tensorboard.plugins.projector.projector_config_pb2")
    rows = numpy.random.default_rng(1).normal(size=(5, 3)).astype(numpy.float32)
    pictures = numpy.random.default_rng(2).integers(0, 256, (5, 3, 4, 4), numpy.uint8)
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_embedding(rows, ["a\tb", "c", 3, 4.5, "ü"], pictures, 7, 'the "first"')
        writer.add_embedding(muster.Tensor(rows), [["x", 1]] * 5, metadata_header=["name", "number"])
        with pytest.raises(ValueError, match="add_embedding: metadata has 1 rows, and mat 5"):
            writer.add_embedding(rows, ["a"])
    text = (tmp_path / "projector_config.pbtxt").read_text()
    first, second = text_format.Parse(text, config_pb2.ProjectorConfig()).embeddings
    assert (first.tensor_name, second.tensor_name) == ('the "first":00007', "default:00000")
    numpy.testing.assert_array_equal(
        numpy.loadtxt(tmp_path / first.tensor_path, dtype=numpy.float32, delimiter="\t"), rows
    )
    assert (tmp_path / first.metadata_path).read_text().splitlines() == ["a b", "c", "3", "4.5", "ü"]
    assert (tmp_path / second.metadata_path).read_text().splitlines()[:2] == ["name\tnumber", "x\t1"]
    sprite = numpy.asarray(Image.open(tmp_path / first.sprite.image_path))
    assert list(first.sprite.single_image_dim) == [4, 4]
    assert sprite.shape == (12, 12, 3)
    assert (sprite[4:8, 4:8] == pictures[4].transpose(1, 2, 0)).all()
    assert not second.HasField("sprite")


def test_settings_may_be_of_a_run_below_and_have_a_step(tmp_path):
    with train.SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1}, {"score": 2}, run_name="trial", global_step=5)
    assert [event.step for event in loaded(tmp_path / "trial").Tensors("run", "score")] == [5]
    assert not event_files.scalars(tmp_path)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda w: w.add_video("v", FRAMES[0]),
            r"video 'v': \(count, frames, 1, 3 or 4 channels, height, width\)",
        ),
        (lambda w: w.add_video("v", FRAMES, fps=0), "video 'v': fps is 0: it is above 0"),
        (
            lambda w: w.add_audio("s", numpy.zeros((2, 9))),
            r"sound 's': one channel is needed, not the shape \(2, 9\)",
        ),
        (lambda w: w.add_pr_curve("c", [1], [0.5, 1]), "curve 'c': 1 labels and 2 predictions"),
        (lambda w: w.add_pr_curve("c", [1], [1.5]), "curve 'c': predictions are from 0 to 1"),
        (lambda w: w.add_pr_curve("c", [1], [float("nan")]), "curve 'c': predictions are from 0 to 1"),
        (
            lambda w: w.add_mesh("m", numpy.zeros((4, 3))),
            r"mesh 'm': its parts are \(batch, number, 3\), not \(4, 3\)",
        ),
        (
            lambda w: w.add_image_with_boxes("b", FRAMES[0, 0], [[1, 2, 3]]),
            r"boxes 'b': .* not the shape \(1, 3\)",
        ),
        (
            lambda w: w.add_histogram_raw("h", 0, 1, 1, 1, 1, [1, 2], [1]),
            "histogram 'h': 2 bucket_limits and 1 bucket_counts",
        ),
        (lambda w: w.add_embedding([1.0, 2.0]), r"add_embedding: mat is \(rows, numbers\), not \(2,\)"),
    ],
)
def test_mistakes_of_additions_are_named(tmp_path, call, told):
    with train.SummaryWriter(tmp_path) as writer, pytest.raises(ValueError, match=told):
        call(writer)
