"""Results of compiled functions that are iterators, and primitives that get inputs by name."""

import inspect
import sys

import numpy as np
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Tensor, dataset, mint, nn, ops


def test_iterators_are_sequences():
    given = {"a": 1, "b": 2}

    @ms.jit
    def views():
        return given.keys(), given.values(), given.items(), (x * x for x in range(4)), range(2)

    assert views() == (("a", "b"), (1, 2), [("a", 1), ("b", 2)], [0, 1, 4, 9], (0, 1))


def test_primitives_take_inputs_by_name():
    x = Tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    assert ops.ReduceSum(True)(x, axis=2).shape == (2, 3, 1)
    assert ops.Reshape()(input=x, shape=(6, 4)).shape == (6, 4)
    assert ops.Add()(Tensor([1]), other=Tensor([2])).asnumpy().tolist() == [3]
    for wrong, text in (
        (lambda: ops.ReduceSum()(x, axes=1), "ReduceSum has no input 'axes'"),
        (lambda: ops.ReduceSum()(x, x=x), "'x' is given twice"),
        (lambda: ops.Reshape()(shape=(2,)), "'input' is missing"),
    ):
        with pytest.raises(TypeError, match=text):
            wrong()


_scale = Tensor([2.0, 3.0])
_count = 5


def test_a_compiled_function_may_assign_a_global_name_that_it_reads_first():
    @ms.jit
    def scaled(x, times=2):
        for _ in range(times):
            _scale = _scale * x  # noqa: F823
        _count += 1  # noqa: F823
        return _scale, _count

    class Net(ms.nn.Cell):
        @ms.jit
        def construct(self, x):
            _scale += x  # noqa: F823
            return _scale

    for _ in range(2):
        result, count = scaled(Tensor([1.0, 2.0]))
        assert result.asnumpy().tolist() == [2, 12]
        assert count == 6
        assert Net()(Tensor([1.0, 1.0])).asnumpy().tolist() == [3, 4]
    assert _scale.asnumpy().tolist() == [2, 3]
    assert scaled(Tensor([1.0, 2.0]), times=1)[0].asnumpy().tolist() == [2, 6]


def test_a_name_that_is_nowhere_is_an_error():
    @ms.jit
    def lost(x):
        nowhere = nowhere + x  # noqa: F821
        return nowhere

    with pytest.raises(UnboundLocalError, match="nowhere"):
        lost(Tensor([1.0]))


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_the_loss_of_a_with_loss_cell_may_be_a_function(mode):
    def loss(output, label):
        return ((output - label) ** 2).mean()

    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    net = nn.Dense(1, 1, weight_init="ones", bias_init="zeros")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.SGD(net.trainable_params(), 0.1))
    assert step(ms.Tensor([[2.0]]), ms.Tensor([[1.0]])).asnumpy() == 1
    assert abs(net.weight.asnumpy().item() - 0.6) < 1e-6
    with pytest.raises(TypeError):
        nn.WithLossCell(net, 3)
    ms.set_context(mode=before)


def test_the_loss_of_a_with_eval_cell_may_be_a_function():
    net = nn.Dense(1, 1, weight_init="ones", bias_init="zeros")
    cell = nn.WithEvalCell(net, lambda output, label: (output - label).sum())
    loss, output, label = cell(ms.Tensor([[2.0]]), ms.Tensor([[0.5]]))
    assert (loss.asnumpy(), output.asnumpy().item(), label.asnumpy().item()) == (1.5, 2.0, 0.5)
    with pytest.raises(TypeError):
        nn.WithEvalCell(net, 3)


def test_a_cell_knows_the_level_of_mixed_precision_that_it_was_given():
    net = nn.SequentialCell(nn.Dense(2, 2))
    assert net._amp_level == ""
    assert ms.amp.auto_mixed_precision(net, "O2")._amp_level == "O2"
    net[0]._amp_level = "O3"  # as mindocr sets it
    assert net[0]._amp_level == "O3"


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_layers_compute_in_the_dtype_of_their_input_whatever_to_float_says(kind):
    layer = kind(3, 4)
    x = ms.Tensor(np.full((2, 1, 3), 0.1, np.float32))
    wanted = layer(x)[0].asnumpy()
    output, states = layer.to_float(ms.float16)(x)
    last = states[0] if kind is nn.LSTM else states
    assert (output.dtype, last.dtype) == (ms.float32, ms.float32)
    np.testing.assert_array_equal(output.asnumpy(), wanted)
    assert layer(x.astype(ms.float16))[0].dtype == ms.float16
    with pytest.raises(ValueError, match="to_float: float16, float32 or bfloat16, not "):
        layer.to_float(ms.int32)


@pytest.mark.parametrize(
    ("option", "error", "words"),
    [
        ({"capture_mode": "asts"}, ValueError, "capture_mode.*'ast', 'bytecode', 'trace'.*'asts'"),
        ({"jit_level": "O9"}, ValueError, "jit_level"),
        ({"backend": "gpu"}, ValueError, "backend"),
        ({"dynamic": 7}, ValueError, "dynamic"),
        ({"fullgraph": "yes"}, TypeError, "fullgraph"),
    ],
)
def test_an_option_of_jit_with_a_value_that_it_has_not_is_an_error(option, error, words):
    with pytest.raises(error, match=words):
        ms.jit(lambda x: x, **option)
    with pytest.raises(error, match=words):
        ms.jit(**option)


def test_jit_takes_the_options_of_mindspore():
    @ms.jit(capture_mode="ast", jit_level="O1", dynamic=1, fullgraph=True, backend="ms_backend")
    def doubled(x):
        return x * 2

    assert doubled(Tensor([2.0])).tolist() == [4]


def test_a_mutable_dict_may_have_numbers_for_keys():
    @ms.jit
    def summed(given):
        return given[0] + given[1]

    assert summed(ms.mutable({0: Tensor([1.0]), 1: Tensor([2.0])})).tolist() == [3]


def test_set_train_takes_what_is_true_or_false():
    net = nn.SequentialCell(nn.ReLU())
    assert net.set_train(1).training is True
    assert net.set_train(0)[0].training is False


def test_a_primitive_says_what_it_is_made_with():
    assert str(inspect.signature(ops.CumSum)) == "(exclusive=False, reverse=False)"
    assert str(inspect.signature(ops.Cdist)) == "(p=2.0)"
    assert list(inspect.signature(ops.InplaceAdd).parameters) == ["indices"]
    assert str(inspect.signature(ops.Expm1)) == "()"

    class Own(ops.Cdist):
        def __init__(self, scale):
            super().__init__(2.0)

    assert list(inspect.signature(Own).parameters) == ["scale"]


def test_a_source_and_an_operation_of_datasets_say_what_they_take():
    assert list(inspect.signature(dataset.Cifar10Dataset).parameters)[:3] == [
        "dataset_dir",
        "usage",
        "num_samples",
    ]
    assert list(inspect.signature(dataset.vision.RandomInvert).parameters) == ["prob"]


def test_cells_of_mint_take_their_inputs_by_name():
    x = Tensor([-1.0, 2.0])
    assert mint.nn.ReLU6()(input=x).asnumpy().tolist() == [0, 2]
    assert float(mint.nn.MSELoss()(input=x, target=x + 1)) == 1
    with pytest.raises(TypeError):
        mint.nn.MSELoss()(x, x, neither=x)
