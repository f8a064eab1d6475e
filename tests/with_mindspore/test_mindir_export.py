"""Networks exported as MindIR files and read again; tests/peers/test_mindir.py has MindSpore read them."""

import os
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

sys.path.insert(0, str(Path(__file__).parents[1] / "parity"))
from mindir_cases import all_cases, flat

CASES = all_cases()
# What cannot be exported, and a part of what is said of it.
REFUSED = {
    "if": "this tensor",
    "while": "this tensor",
    "counting": "changes a parameter",
    "x[x > 0]": "a graph cannot know",
    "ops.nonzero(x > 0)": "depends on the elements",
}


# What MindSpore does not read: the loss with labels to ignore.
FOREIGN = {
    "CrossEntropyLoss": ["softmax_cross_entropy"],
    "ops.cross_entropy(x[0], Tensor([0, 1, 2], ms.int32))": ["softmax_cross_entropy"],
}


def agree(given, wanted):
    assert len(given) == len(wanted)
    for ours, theirs in zip(given, wanted, strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, 2e-6, 2e-6)


def primitives_of(path):
    return {each.op_type for each in ms.load_mindir(str(path)).primitives}


@pytest.mark.parametrize("name", [name for name in CASES if name not in REFUSED])
def test_a_file_gives_what_the_network_gives(name, tmp_path):
    net, inputs = CASES[name]
    net.set_train(False)
    tensors = [ms.Tensor(each) for each in inputs]
    ms.export(net, *tensors, file_name=str(tmp_path / "net"), file_format="MINDIR")
    assert os.listdir(tmp_path) == ["net.mindir"]
    loaded = nn.GraphCell(ms.load(str(tmp_path / "net.mindir")))
    agree(flat(loaded(*tensors)), flat(net(*tensors)))
    assert {each.name for each in loaded.get_parameters()} <= {each.name for each in net.get_parameters()}
    own = [each for each in primitives_of(tmp_path / "net.mindir") if each.startswith("muster.")]
    assert own == [f"muster.{row}" for row in FOREIGN.get(name, [])]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_exported_says_why(name, tmp_path):
    net, inputs = CASES[name]
    with pytest.raises(Exception, match=REFUSED[name]):
        ms.export(net, *map(ms.Tensor, inputs), file_name=str(tmp_path / "net"), file_format="MINDIR")
    assert os.listdir(tmp_path) == []


X = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))


def exported(net, *inputs, folder, **settings):
    ms.export(net, *inputs, file_name=str(folder / "net.mindir"), file_format="MINDIR", **settings)
    return nn.GraphCell(ms.load(str(folder / "net.mindir")))


@pytest.mark.parametrize(
    ("compute", "own"),
    [
        (lambda x: ops.pad(x, (1, 1), value=2.0), ["pad"]),
        (lambda x: ops.pad(x, (-1, 1)), []),
        (lambda x: ops.leaky_relu(x - 3, 1.1), ["leaky_relu"]),
        (lambda x: ops.leaky_relu(x - 3, 0.1), []),
        (lambda x: x[:, ::-1], []),
        (lambda x: x[::-1, ::-1], []),
        (lambda x: x[:, ::-2], ["slice"]),
        (lambda x: x[1:, :2:2], []),
        (lambda x: x.astype(ms.int32) / 2, []),
        (lambda x: x.astype(ms.int32) // 4, []),
        (lambda x: ops.sum(x, dim=(0, 1)), []),
        (lambda x: ops.relu(x).sum() + 0 * x, []),
        (lambda x: ops.topk(x, 2, largest=False), ["topk"]),
        (lambda x: x.sort(0, True), []),
        (lambda x: ops.cumsum(x, 1), []),
        (lambda x: ops.clamp(x, max=2.5), []),
        (lambda x: ops.gelu(x, approximate="none"), []),
        (lambda x: ops.split(x, [1, 2], 1), []),
        (lambda x: (x > 2) & (x < 5) | (x == 0), []),
        (lambda x: ops.where(x > 2, x, 1.1), []),
        (lambda x: x.sum() * 1.1e-9 + 1e30, []),
    ],
)
def test_neighbours_of_what_has_a_counterpart(compute, own, tmp_path):
    agree(flat(exported(compute, X, folder=tmp_path)(X)), flat(compute(X)))
    found = primitives_of(tmp_path / "net.mindir")
    assert sorted(each for each in found if each.startswith("muster.")) == [f"muster.{each}" for each in own]


def test_a_network_in_training_is_exported_out_of_it_and_stays_in_it(tmp_path):
    net = nn.SequentialCell(nn.Dense(3, 4), nn.BatchNorm1d(4), nn.Dropout(p=0.5))
    net.set_train(True)
    net[2].set_train(False)
    loaded = exported(net, X, folder=tmp_path)
    assert [net.training, net[1].training, net[2].training] == [True, True, False]
    net.set_train(False)
    agree(flat(loaded(X)), flat(net(X)))


def test_numbers_are_constants_of_the_file_and_functions_have_files(tmp_path):
    def scaled(x, factor, y):
        return x * factor + y

    loaded = exported(scaled, X, 3, X, folder=tmp_path)
    agree(flat(loaded(X, X)), flat(X * 4))
    names = [each.name.split(":")[-1] for each in ms.load_mindir(str(tmp_path / "net.mindir")).graph.input]
    assert names == ["x", "y"]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_both_modes_write_the_same_file(mode, tmp_path):
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        net, inputs = CASES["lenet"]
        exported(net, *map(ms.Tensor, inputs), folder=tmp_path)
    finally:
        ms.set_context(mode=before)
    wanted = "Load Conv2D ReLU MaxPool Reshape MatMul BiasAdd"
    assert primitives_of(tmp_path / "net.mindir") == set(wanted.split())


def test_a_loaded_graph_is_exported_again(tmp_path):
    net, inputs = CASES["transformer block"]
    tensors = list(map(ms.Tensor, inputs))
    once = exported(net, *tensors, folder=tmp_path)
    again = exported(once, *tensors, folder=tmp_path)
    agree(flat(again(*tensors)), flat(net(*tensors)))
    assert {each.name for each in again.get_parameters()} == {each.name for each in net.get_parameters()}


def test_weights_that_are_set_are_those_of_the_next_file(tmp_path):
    net = nn.Dense(3, 1, weight_init="zeros", bias_init="zeros")
    exported(net, X, folder=tmp_path)
    net.weight.set_data(ms.Tensor(np.ones((1, 3), np.float32)))
    assert exported(net, X, folder=tmp_path)(X).asnumpy().tolist() == [[3], [12]]


@pytest.mark.parametrize("dtype", [ms.bfloat16, ms.float64, ms.int8, ms.int32, ms.int64, ms.uint8, ms.bool_])
def test_parameters_and_constants_of_any_dtype_come_back(dtype, tmp_path):
    kept = ms.Tensor(np.array([[0, 1, 1]])).astype(dtype)

    class Holder(nn.Cell):
        def __init__(self):
            super().__init__()
            self.kept = ms.Parameter(kept, name="kept", requires_grad=False)

        def construct(self, x):
            return ops.concat((self.kept, kept, x))

    x = ms.Tensor(np.array([[1, 0, 1]])).astype(dtype)
    given, wanted = exported(Holder(), x, folder=tmp_path)(x), Holder()(x)
    assert given.dtype == wanted.dtype == dtype
    assert given.astype(ms.float32).asnumpy().tolist() == wanted.astype(ms.float32).asnumpy().tolist()


def test_an_input_and_one_value_twice_come_out(tmp_path):
    def same(x):
        y = x + 1
        return x, y, (y, y), ms.Tensor([5])

    agree(flat(exported(same, X, folder=tmp_path)(X)), flat(same(X)))


def test_the_message_can_be_changed_before_it_is_written(tmp_path):
    def rename(model):
        model.producer_name = "someone"
        model.user_info["version"] = "11.0"

    exported(nn.ReLU(), X, folder=tmp_path, custom_func=rename)
    model = ms.load_mindir(str(tmp_path / "net.mindir"))
    assert model.producer_name == "someone" and model.user_info == {"version": "11.0"}


def test_a_file_of_ops_of_muster_is_read_by_another_cell_and_said_so(tmp_path, capfd):
    x = ms.Tensor(np.ones((1, 1, 5, 5), np.float32))
    loaded = exported(nn.MaxPool2d(2, 2, pad_mode="pad", padding=1, ceil_mode=True), x, folder=tmp_path)
    agree(flat(loaded(x)), flat(nn.MaxPool2d(2, 2, pad_mode="pad", padding=1, ceil_mode=True)(x)))
    own = sorted(each for each in primitives_of(tmp_path / "net.mindir") if each.startswith("muster."))
    assert own == ["muster.max_pool2d"]
    assert "net.mindir has ops that only Muster reads, not MindSpore: max_pool2d" in capfd.readouterr().err


def test_a_row_of_another_version_is_named(tmp_path):
    x = ms.Tensor(np.ones((1, 1, 5, 5), np.float32))
    exported(nn.MaxPool2d(2, 2, pad_mode="pad", padding=1, ceil_mode=True), x, folder=tmp_path)
    model = ms.load_mindir(str(tmp_path / "net.mindir"))
    for each in model.primitives:
        each.op_type = each.op_type.replace("max_pool2d", "max_pool9d")
    ms.save_mindir(model, str(tmp_path / "other"))
    with pytest.raises(NotImplementedError, match=r"muster\.max_pool9d \(of another version\)"):
        ms.load(str(tmp_path / "other.mindir"))


@pytest.mark.parametrize(
    ("net", "inputs", "settings", "error", "words"),
    [
        (nn.ReLU(), [X], {"file_format": "AIR"}, ValueError, "AIR files are for Ascend"),
        (nn.ReLU(), [X], {"file_format": "mindir"}, ValueError, "'MINDIR' or 'ONNX', not 'mindir'"),
        (nn.ReLU(), [X], {"enc_key": bytes(16)}, NotImplementedError, "enc_key"),
        (nn.ReLU(), [X], {"incremental": True}, NotImplementedError, "incremental"),
        (nn.ReLU(), [X], {"custom_func": 3}, TypeError, "custom_func is a function"),
        (nn.ReLU(), [np.ones(3)], {}, TypeError, "input 0 is a Tensor or a number, not ndarray"),
        (3, [X], {}, TypeError, "net is a Cell or a function, not int"),
        (lambda x: {"a": x}, [X], {}, TypeError, "gives a dict"),
        (lambda x: None, [X], {}, TypeError, "gives None"),
        (nn.ReLU(), [], {}, ValueError, "takes one tensor, 0 were given"),
    ],
)
def test_what_export_does_not_take(net, inputs, settings, error, words, tmp_path):
    with pytest.raises(error, match=words):
        ms.export(net, *inputs, **{"file_name": str(tmp_path / "a"), "file_format": "MINDIR", **settings})
    assert os.listdir(tmp_path) == []


# ---- Inputs of unknown sizes ---------------------------------------------------------------------------


def unknown(*shape, dtype=ms.float32):
    return ms.Tensor(shape=list(shape), dtype=dtype)


@pytest.mark.parametrize(
    ("name", "open_axes"),
    [
        ("lenet", (0,)),
        ("resnet", (0,)),
        ("resnet", (0, 2, 3)),
        ("textcnn", (0,)),
        ("transformer block", (0,)),
        ("mlp", (0,)),
        ("multihead attention", (1,)),
        ("Pad", (0,)),
        ("x[:, 1:, 0]", (0,)),
        ("ops.cat((x, x), 1)", (0, 1)),
    ],
)
def test_a_file_takes_any_size_where_it_was_left_open(name, open_axes, tmp_path):
    net, inputs = CASES[name]
    net.set_train(False)

    def shape_of(array, size):
        is_mask = array.dtype == np.bool_
        return [size if at in open_axes and not is_mask else old for at, old in enumerate(array.shape)]

    def of(array, size):
        return ms.Tensor(np.resize(array, shape_of(array, size)))

    kinds = {"float32": ms.float32, "int32": ms.int32, "bool": ms.bool_}
    given = [
        unknown(*shape_of(each, None), dtype=kinds[str(each.dtype)])
        if each.dtype != np.bool_
        else ms.Tensor(each)
        for each in inputs
    ]
    loaded = exported(net, *given, folder=tmp_path)
    for size in (9, 12):
        tensors = [of(each, size) for each in inputs]
        agree(flat(loaded(*tensors)), flat(net(*tensors)))


def test_sizes_that_are_open_are_minus_one_in_the_file(tmp_path):
    exported(nn.Dense(3, 4), unknown(None, 3), folder=tmp_path)
    graph = ms.load_mindir(str(tmp_path / "net.mindir")).graph
    assert graph.input[0].tensor[0].dims == [-1, 3] and graph.output[0].tensor[0].dims == [-1, 4]
    with pytest.raises(RuntimeError, match=r"input 'x0' of .* has the shape \(-1, 3\)"):
        ms.convert_model(str(tmp_path / "net.mindir"), str(tmp_path / "net"), "ONNX")


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (lambda x: x.sum(0) / x.shape[0], "Div has an argument that follows the size"),
        (lambda x: x + ops.zeros_like(x), "Add has an argument that follows the size"),
        (lambda x: (x[:, None] * x).reshape(x.shape[0], x.shape[0], 3, 1), "Reshape has an argument"),
        (lambda x: x[: x.shape[0] // 2], "StridedSlice has an argument"),
        (lambda x: x[: min(x.shape[0], 8)], "computes something else"),
        (lambda x: ops.one_hot((x > 0).int(), x.shape[0], 1.0, 0.0), "OneHot has an argument"),
        (lambda x: ops.tile(x, (x.shape[0], 1)), "has an argument"),
        (lambda x: x if x.shape[0] == 2 else x + 1, "computes something else"),
        (lambda x: x * 2 if x.shape[0] == 2 else x + 1, "computes something else"),
        (lambda x: x if x.shape[0] == 2 else x[None], "computes something else"),
        (lambda x: x + ms.Tensor(np.ones(x.shape[0], np.float32))[:, None], "follows the size"),
    ],
)
def test_what_follows_a_size_and_cannot_be_written_says_so(compute, words, tmp_path):
    with pytest.raises(NotImplementedError, match=words):
        exported(compute, unknown(None, 3), folder=tmp_path)


def test_borders_that_follow_the_size_of_a_picture_say_so(tmp_path):
    with pytest.raises(NotImplementedError, match="Conv2D has a setting that follows the size"):
        exported(nn.Conv2d(1, 1, 3, 2, pad_mode="same"), unknown(1, 1, None, None), folder=tmp_path)
