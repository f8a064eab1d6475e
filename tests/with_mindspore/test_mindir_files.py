"""MindIR files that MindSpore exported, and what it computes of them (tests/parity/mindir.py)."""

import base64
import copy
import json
import lzma
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn

RECORDED = json.loads(
    lzma.decompress((Path(__file__).parents[1] / "parity/mindir.json.xz").read_bytes()).decode()
)


def unpacked(array):
    dtype, shape, content = array
    return np.frombuffer(base64.b64decode(content), dtype).reshape(shape)


def flat(value):
    if isinstance(value, tuple | list):
        return [each for part in value for each in flat(part)]
    return [value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)]


@pytest.fixture
def written(tmp_path):
    def write(name):
        path = tmp_path / "net.mindir"
        path.write_bytes(base64.b64decode(RECORDED[name]["file"]))
        return str(path)

    return write


def tensors(name):
    return [ms.Tensor(unpacked(each)) for each in RECORDED[name]["inputs"]]


def agree(given, wanted):
    assert len(given) == len(wanted)
    for ours, theirs in zip(given, wanted, strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, 1e-5, 1e-5)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("name", RECORDED)
def test_a_file_of_mindspores_gives_its_outputs(name, mode, written):
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        net = nn.GraphCell(ms.load(written(name)))
        agree(flat(net(*tensors(name))), [unpacked(each) for each in RECORDED[name]["outputs"]])
    finally:
        ms.set_context(mode=before)


def test_parameters_have_their_names_and_can_be_trained(written):
    net = nn.GraphCell(ms.load(written("lenet")))
    wanted = [
        "conv1.weight",
        "conv2.weight",
        "conv2.bias",
        *(f"fc{i}.{w}" for i in (1, 2) for w in ("weight", "bias")),
    ]
    assert [each.name for each in net.trainable_params()] == wanted
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    target = ms.Tensor(np.zeros((1, 10), np.float32))
    losses = [float(step(*tensors("lenet"), target).asnumpy()) for _ in range(5)]
    assert losses[-1] < losses[0]


def test_within_a_cell_parameters_have_its_name_before_their_own(written):
    class Wrapped(nn.Cell):
        def __init__(self):
            super().__init__()
            self.graph = nn.GraphCell(ms.load(written("nested")))

        def construct(self, x):
            return self.graph(x)[0]

    net = Wrapped()
    assert [each.name for each in net.trainable_params()] == ["graph.d.weight", "graph.d.bias"]
    assert net(*tensors("nested")).shape == (3, 3)


def test_a_copy_has_parameters_of_its_own(written):
    net = nn.GraphCell(ms.load(written("nested")))
    other = copy.deepcopy(net)
    before = flat(net(*tensors("nested")))
    agree(flat(other(*tensors("nested"))), before)
    other.trainable_params()[0].set_data(ms.Tensor(np.zeros((3, 4), np.float32)))
    agree(flat(net(*tensors("nested"))), before)
    assert (flat(other(*tensors("nested")))[0] == other.trainable_params()[1].asnumpy()).all()


def test_values_for_parameters_are_set_and_others_passed_over(written):
    ones = ms.Tensor(np.ones(3, np.float32))
    net = nn.GraphCell(ms.load(written("nested")), {"d.bias": ones, "else": ones})
    assert net.parameters_dict()["d.bias"].asnumpy().tolist() == [1, 1, 1]
    assert "else" not in net.parameters_dict()
    plain = nn.GraphCell(ms.load(written("nested")))
    bias = plain.parameters_dict()["d.bias"].asnumpy()
    (first, _), (second, _) = net(*tensors("nested")), plain(*tensors("nested"))
    np.testing.assert_allclose(first.asnumpy() - 1, second.asnumpy() - bias, 1e-5, 1e-6)


def test_a_checkpoint_of_a_loaded_graph_fits_the_cell_that_was_exported(written, tmp_path):
    net = nn.GraphCell(ms.load(written("nested")))
    ms.save_checkpoint(net, str(tmp_path / "net.ckpt"))
    assert sorted(ms.load_checkpoint(str(tmp_path / "net.ckpt"))) == ["d.bias", "d.weight"]


def test_a_model_predicts_with_a_loaded_graph(written):
    predicted = ms.Model(nn.GraphCell(ms.load(written("lenet")))).predict(*tensors("lenet"))
    agree([predicted.asnumpy()], [unpacked(each) for each in RECORDED["lenet"]["outputs"]])


def test_a_parameter_that_the_graph_counts_up_counts_on(written):
    net = nn.GraphCell(ms.load(written("counting")))
    x = tensors("counting")[0]
    for count in (1, 2, 3):
        np.testing.assert_allclose(net(x).asnumpy(), count * x.asnumpy(), 1e-6)
    assert float(net.parameters_dict()["n"].asnumpy()) == 3


def test_a_loop_of_many_turns_does_not_nest(written):
    net = nn.GraphCell(ms.load(written("while")))
    x, _ = tensors("while")
    assert np.isinf(net(x, ms.Tensor(3000, ms.int32)).asnumpy()).all()


def test_a_graph_becomes_an_onnx_file(written, tmp_path):
    ms.convert_model(written("lenet"), str(tmp_path / "net"), "ONNX")
    assert (tmp_path / "net.onnx").stat().st_size > 1000


def test_a_file_is_read_changed_and_written(written, tmp_path):
    model = ms.load_mindir(written("lenet"))
    model.producer_name = "someone"
    model.user_info["version"] = "11.0"
    ms.save_mindir(model, str(tmp_path / "new"))
    again = ms.load_mindir(str(tmp_path / "new.mindir"))
    assert again.producer_name == "someone" and again.user_info == {"version": "11.0"}
    net = nn.GraphCell(ms.load(str(tmp_path / "new.mindir")))
    agree(flat(net(*tensors("lenet"))), [unpacked(each) for each in RECORDED["lenet"]["outputs"]])


# ---- What is wrong says so -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("give", "error", "words"),
    [
        (lambda folder: "absent.mindir", ValueError, "there is no file 'absent.mindir'"),
        (lambda folder: "net.ckpt", ValueError, "ends with .mindir; 'net.ckpt' does not"),
        (lambda folder: 3, ValueError, "file_name is a string, not int"),
    ],
)
def test_a_name_that_does_not_do(give, error, words, tmp_path):
    with pytest.raises(error, match=words):
        ms.load(give(tmp_path))


@pytest.mark.parametrize("content", [b"jjjjkkkk", b"", b"\x3a\xff", bytes(100)])
def test_bytes_that_are_no_graph(content, tmp_path):
    (tmp_path / "a.mindir").write_bytes(content)
    with pytest.raises(RuntimeError, match=r"a\.mindir"):
        ms.load(str(tmp_path / "a.mindir"))


def test_a_file_that_is_cut_anywhere_is_an_error(tmp_path):
    content = base64.b64decode(RECORDED["nested"]["file"])
    path = tmp_path / "a.mindir"
    for size in range(1, len(content), 37):
        path.write_bytes(content[:size])
        with pytest.raises((RuntimeError, NotImplementedError)):
            nn.GraphCell(ms.load(str(path)))(*tensors("nested"))


@pytest.mark.parametrize("content", [bytes(11), bytes(8), b""])
def test_elements_that_are_too_few_are_named(content, written, tmp_path):
    model = ms.load_mindir(written("nested"))
    next(each for each in model.graph.parameter if each.ref_key == "d.bias").raw_data = content
    ms.save_mindir(model, str(tmp_path / "few"))
    with pytest.raises(
        RuntimeError, match=rf"few.mindir has {len(content)} bytes for .*d\.bias, float32 \(3,\)"
    ):
        ms.load(str(tmp_path / "few.mindir"))


def test_an_op_that_is_not_there_is_named(written, tmp_path):
    model = ms.load_mindir(written("lenet"))
    for each in model.primitives:
        if each.op_type in ("ReLU", "Flatten"):
            each.op_type = "Strange" + each.op_type
    ms.save_mindir(model, str(tmp_path / "strange"))
    with pytest.raises(NotImplementedError, match="ops that Muster has not: StrangeFlatten, StrangeReLU"):
        ms.load(str(tmp_path / "strange.mindir"))


def test_elements_beside_the_file_are_read_and_must_be_below_its_folder(written, tmp_path):
    model = ms.load_mindir(written("nested"))
    (tmp_path / "net_variables").mkdir()
    content = bytes(64)
    for each in model.graph.parameter:
        each.external_data.location = "net_variables/data_0"
        each.external_data.offset = len(content)
        each.external_data.length = len(each.raw_data)
        content += bytes(each.raw_data)
        each.raw_data = b""
    (tmp_path / "net_variables/data_0").write_bytes(content)
    ms.save_mindir(model, str(tmp_path / "net_graph"))
    net = nn.GraphCell(ms.load(str(tmp_path / "net_graph.mindir")))
    agree(flat(net(*tensors("nested"))), [unpacked(each) for each in RECORDED["nested"]["outputs"]])
    model.graph.parameter[0].external_data.location = "../else"
    ms.save_mindir(model, str(tmp_path / "net_graph"))
    with pytest.raises(RuntimeError, match=r"names \.\./else, which is not below its folder"):
        ms.load(str(tmp_path / "net_graph.mindir"))


def test_what_a_graph_cell_does_not_take(written):
    graph = ms.load(written("nested"))
    one = ms.Tensor(np.ones(4, np.float32))
    for given, error, words in (
        ((nn.ReLU(),), TypeError, "graph is what mindspore.load gives, not ReLU"),
        ((graph, [1]), TypeError, "params_init is a dict, not list"),
        ((graph, {"d.bias": 1}), TypeError, "'d.bias': int"),
        ((graph, {"d.bias": one}), ValueError, r"d.bias is .*\(3,\), and params_init has .*\(4,\)"),
        ((graph, None, 5), NotImplementedError, "obf_random_seed"),
    ):
        with pytest.raises(error, match=words):
            nn.GraphCell(*given)
    net = nn.GraphCell(graph)
    with pytest.raises(RuntimeError, match=r"takes 1 inputs \(x\), not 2"):
        net(one, one)
    with pytest.raises(TypeError, match="input 0 is a Tensor, not str"):
        net("x")
    with pytest.raises(NotImplementedError, match="dec_key"):
        ms.load(written("nested"), dec_key=bytes(16))
