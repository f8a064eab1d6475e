"""Cells whose parameters have a dtype of their own, as MindSpore's `dtype=` gives them."""

import copy
import inspect
import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

IMAGE, SEQUENCE = (2, 2, 4, 4), (3, 1, 4)
CELLS = {
    "Dense": (lambda dtype: nn.Dense(4, 2, dtype=dtype), [(3, 4)]),
    "BiDense": (lambda dtype: nn.BiDense(2, 3, 4, dtype=dtype), [(2, 2), (2, 3)]),
    "Conv1d": (lambda dtype: nn.Conv1d(1, 3, 2, has_bias=True, dtype=dtype), [SEQUENCE]),
    "Conv2d": (lambda dtype: nn.Conv2d(2, 3, 2, has_bias=True, dtype=dtype), [IMAGE]),
    "Conv2dTranspose": (lambda dtype: nn.Conv2dTranspose(2, 3, 2, has_bias=True, dtype=dtype), [IMAGE]),
    "LayerNorm": (lambda dtype: nn.LayerNorm((4,), dtype=dtype), [(3, 4)]),
    "GroupNorm": (lambda dtype: nn.GroupNorm(1, 2, dtype=dtype), [IMAGE]),
    "InstanceNorm2d": (lambda dtype: nn.InstanceNorm2d(2, dtype=dtype), [IMAGE]),
    "RNN": (lambda dtype: nn.RNN(4, 3, dtype=dtype), [SEQUENCE]),
    "LSTM": (lambda dtype: nn.LSTM(4, 3, dtype=dtype), [SEQUENCE]),
    "GRUCell": (lambda dtype: nn.GRUCell(4, 3, dtype=dtype), [(1, 4), (1, 3)]),
    "MultiheadAttention": (lambda dtype: nn.MultiheadAttention(4, 2, dtype=dtype), [SEQUENCE] * 3),
    "Transformer": (lambda dtype: nn.Transformer(4, 2, 1, 1, 8, dropout=0.0, dtype=dtype), [SEQUENCE] * 2),
}


def _first(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", CELLS)
def test_parameters_results_and_gradients_have_the_dtype(name):
    make, shapes = CELLS[name]
    cell = make(ms.float16)
    inputs = [Tensor(np.full(shape, 0.5), ms.float16) for shape in shapes]
    assert {each.dtype for each in cell.get_parameters()} == {ms.float16}
    assert _first(cell(*inputs)).dtype == ms.float16
    step = ops.grad(lambda *given: _first(cell(*given)).sum(), None, cell.trainable_params())
    assert {gradient.dtype for gradient in step(*inputs)} == {ms.float16}


@pytest.mark.parametrize("name", CELLS)
def test_the_names_are_those_of_float32(name):
    make, _ = CELLS[name]
    plain, narrow = make(ms.float32), make(ms.float16)
    assert [each.name for each in narrow.get_parameters()] == [each.name for each in plain.get_parameters()]
    for one, other in zip(narrow.get_parameters(), plain.get_parameters(), strict=True):
        assert one.shape == other.shape and one.requires_grad == other.requires_grad


@pytest.mark.parametrize("make", [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm])
def test_a_batch_norm_computes_in_float64_and_refuses_16_bits(make):
    shape = {nn.BatchNorm1d: (3, 2), nn.BatchNorm3d: (3, 2, 1, 2, 2)}.get(make, (3, 2, 2, 2))
    cell = make(2, dtype=ms.float64).set_train()
    assert {each.dtype for each in cell.get_parameters()} == {ms.float64}
    assert cell(Tensor(np.random.rand(*shape))).dtype == ms.float64
    with pytest.raises(NotImplementedError, match=r"dtype=Float16.*Leave dtype out"):
        make(2, dtype=ms.float16)


def test_the_dtype_may_stand_at_its_place():
    assert nn.LayerNorm((2,), -1, -1, "ones", "zeros", 1e-5, ms.float16).gamma.dtype == ms.float16
    signature = inspect.signature(nn.Conv2d)
    assert list(signature.parameters)[-1] == "dtype"
    with pytest.raises(TypeError):
        nn.LayerNorm((2,), -1, -1, "ones", "zeros", 1e-5, ms.float16, dtype=ms.float16)


def test_initializers_fill_the_dtype():
    for cell in (nn.Dense(4, 50, dtype=ms.float16), nn.Conv2d(4, 50, 1, has_bias=True, dtype=ms.float16)):
        for parameter in cell.get_parameters():  # both uniform, up to 1 / sqrt(4)
            assert 0.4 < abs(parameter.asnumpy()).max() <= 0.5
    assert nn.Conv2d(1, 1, 1, weight_init="ones", dtype=ms.float16).weight.asnumpy().tolist() == [[[[1]]]]


def test_copies_and_checkpoints_keep_the_dtype(tmp_path):
    cell = nn.SequentialCell(nn.Conv2d(1, 1, 1, dtype=ms.float16), nn.LayerNorm((2,), dtype=ms.float16))
    again = copy.deepcopy(cell)
    file = str(tmp_path / "cell.ckpt")
    ms.save_checkpoint(cell, file)
    loaded = ms.load_checkpoint(file)
    for one, other in zip(cell.get_parameters(), again.get_parameters(), strict=True):
        assert other.dtype == loaded[one.name].dtype == ms.float16
        assert (one.asnumpy() == other.asnumpy()).all()
        assert (one.asnumpy() == loaded[one.name].asnumpy()).all()


def test_the_dtype_of_an_embedding_is_not_that_of_its_table():
    cell = nn.Embedding(3, 2, dtype=ms.float16)
    assert cell.dtype == ms.float16 and cell.embedding_table.dtype == ms.float32


@pytest.mark.parametrize("dtype", [ms.float16, ms.float64])
def test_a_tensor_that_fills_a_parameter_gives_it_its_dtype(dtype):
    def ones(*shape):
        return Tensor(np.ones(shape), dtype)

    dense = nn.Dense(2, 2, weight_init=ones(2, 2))
    assert dense.weight.dtype == dtype and dense.bias.dtype == ms.float32
    assert nn.Conv2d(1, 1, 1, weight_init=ones(1, 1, 1, 1)).weight.dtype == dtype
    assert nn.LayerNorm((2,), gamma_init=ones(2)).gamma.dtype == dtype
    table = nn.Embedding(3, 2, embedding_table=ones(3, 2))
    assert table.embedding_table.dtype == table(Tensor([1])).dtype == dtype
    assert nn.BatchNorm2d(2, gamma_init=ones(2)).gamma.dtype == ms.float32


def test_a_tensor_of_whole_numbers_fills_float32():
    assert nn.Dense(2, 1, weight_init=Tensor([[1, 2]])).weight.dtype == ms.float32
