"""Functions and methods that make, move, join and pick elements, beside numpy's."""

import random

import numpy
import pytest

import muster
from muster import ops


def seed_of_this_run():
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    return seed


def numbers(*shape, dtype=numpy.float32):
    return numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def equal(tensor, array):
    found = tensor.asnumpy()
    return found.shape == array.shape and found.dtype == array.dtype and (found == array).all()


def test_making():
    assert equal(ops.zeros((2, 3)), numpy.zeros((2, 3), numpy.float32))
    assert equal(ops.ones(2, muster.int32), numpy.ones(2, numpy.int32))
    assert equal(ops.full((2,), 1.5), numpy.full(2, 1.5, numpy.float32))
    assert equal(ops.full([2], 3), numpy.full(2, 3, numpy.int64))
    assert equal(ops.full((1,), muster.Tensor(2.0), dtype=muster.int32), numpy.full(1, 2, numpy.int32))
    assert equal(ops.zeros_like(numbers(2, 2)), numpy.zeros((2, 2), numpy.float32))
    assert equal(ops.ones_like(muster.Tensor([1, 2]), dtype="bool"), numpy.ones(2, bool))
    assert equal(ops.full_like(muster.Tensor([1, 2]), 7), numpy.full(2, 7, numpy.int64))


@pytest.mark.parametrize("arguments", [(4,), (1, 6), (0, 2, 0.5), (5, 0, -2), (0,), (3, 1)])
def test_arange_is_numpys(arguments):
    expected = numpy.arange(*arguments)
    expected = expected.astype(numpy.float32) if expected.dtype == numpy.float64 else expected
    assert equal(ops.arange(*arguments), expected)


def test_shapes():
    x = muster.Tensor(numbers(1, 2, 1, 3))
    assert ops.shape(x) == (1, 2, 1, 3)
    assert ops.squeeze(x).shape == x.squeeze().shape == (2, 3)
    assert ops.squeeze(x, 0).shape == x.squeeze((0,)).shape == (2, 1, 3)
    assert ops.expand_dims(x, -1).shape == x.unsqueeze(-1).shape == (1, 2, 1, 3, 1)
    assert ops.reshape(x, (-1, 2)).shape == x.reshape(-1, 2).shape == x.view((3, 2)).shape == (3, 2)
    assert ops.flatten(x).shape == (1, 6)
    assert x.flatten().shape == x.ravel().shape == (6,)
    assert ops.flatten(x, start_dim=1, end_dim=2).shape == (1, 2, 3)
    assert ops.broadcast_to(muster.Tensor([1, 2]), (3, -1)).shape == (3, 2)
    with pytest.raises(ValueError, match="axis 1 of"):
        ops.squeeze(x, 1)
    with pytest.raises(ValueError, match="does not divide"):
        x.reshape(4, -1)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool"])
def test_moving_elements_of_any_dtype(dtype):
    make = random.Random(seed_of_this_run())
    for _ in range(20):
        array = numbers(*[make.randint(1, 20) for _ in range(3)], dtype=dtype)
        x = muster.Tensor(array)
        perm = make.sample(range(3), 3)
        assert equal(ops.transpose(x, perm), array.transpose(perm))
        assert equal(x.permute(*perm), array.transpose(perm))
        assert equal(ops.flip(x, perm[:2]), numpy.flip(array, perm[:2]))
        assert equal(ops.swapaxes(x, perm[0], -1), array.swapaxes(perm[0], -1))
        repeats = [make.randint(0, 3) for _ in range(make.randint(1, 4))]
        assert equal(ops.tile(x, repeats), numpy.tile(array, repeats))
    assert equal(x.T, array.T)


@pytest.mark.parametrize(
    ("mode", "numpys"),
    [
        ("constant", "constant"),
        ("reflect", "reflect"),
        ("symmetric", "symmetric"),
        ("replicate", "edge"),
        ("circular", "wrap"),
    ],
)
def test_padding_is_numpys(mode, numpys):
    array = numbers(2, 4, 5)
    found = ops.pad(muster.Tensor(array), (1, 2, 3, 0), mode)
    assert equal(found, numpy.pad(array, ((0, 0), (3, 0), (1, 2)), numpys))


def test_padding_says_what_it_cannot_do():
    x = muster.Tensor(numbers(3))
    assert ops.pad(x, (-1, 1), value=9).tolist() == [1, 2, 9]
    with pytest.raises(ValueError, match="'reflect'"):
        ops.pad(x, (1, 1), "mirror")
    with pytest.raises(ValueError, match="constant"):
        ops.pad(x, (1, 1), "reflect", 1)
    with pytest.raises(ValueError, match="own elements"):
        ops.pad(x, (3, 0), "reflect")


def test_joining_and_cutting():
    a, b = numbers(2, 3), numbers(2, 3) + 10
    tensors = [muster.Tensor(a), muster.Tensor(b)]
    assert equal(ops.concat(tensors, -1), numpy.concatenate([a, b], -1))
    assert equal(ops.stack(tensors, 1), numpy.stack([a, b], 1))
    assert [part.shape for part in ops.split(tensors[0], 2, 1)] == [(2, 2), (2, 1)]
    assert [part.tolist() for part in ops.split(tensors[0], [1, 1])] == [[[0, 1, 2]], [[3, 4, 5]]]
    assert [part.tolist() for part in ops.unstack(tensors[0], 1)] == [[0, 3], [1, 4], [2, 5]]
    with pytest.raises(ValueError, match=r"differ.*axis 0"):
        ops.concat([tensors[0], muster.Tensor(numbers(1, 1))])
    with pytest.raises(TypeError, match=r"tuple.*tensors"):
        ops.concat(tensors[0])


def test_picking():
    x = numbers(3, 4)
    assert equal(ops.gather(muster.Tensor(x), muster.Tensor([2, 0]), 1), x[:, [2, 0]])
    assert equal(ops.embedding(muster.Tensor([[0, 2]]), muster.Tensor(x)), x[[[0, 2]]])
    with pytest.raises(ValueError, match=r"index 3 .* is out of range for axis 0, which has 3"):
        ops.gather(muster.Tensor(x), muster.Tensor([3]), 0)
    assert equal(ops.one_hot(muster.Tensor([1, 0]), 2), numpy.array([[0, 1], [1, 0]]))
    hot = ops.one_hot(muster.Tensor([1]), 2, muster.Tensor(0.75), muster.Tensor(0.25))
    assert hot.dtype is muster.float32 and hot.tolist() == [[0.25, 0.75]]
    assert ops.one_hot(muster.Tensor([1]), 2, 1.0, 0).dtype is muster.float32


def test_topk_is_the_end_of_sorting():
    make = random.Random(seed_of_this_run())
    for _ in range(20):
        array = numpy.array([[make.randint(0, 5) for _ in range(7)] for _ in range(3)])
        k = make.randint(0, 7)
        values, indices = ops.topk(muster.Tensor(array), k)
        order = numpy.argsort(-array, axis=1, kind="stable")[:, :k]
        assert (indices.asnumpy() == order).all()
        assert equal(values, numpy.take_along_axis(array, order, 1))
    values, indices = muster.Tensor([[3.0], [1.0], [2.0]]).topk(1, 0, False)
    assert (values.tolist(), indices.tolist()) == ([[1.0]], [[1]])


def test_sums_and_products():
    x = numbers(2, 3)
    assert equal(ops.cumsum(muster.Tensor(x), 1), x.cumsum(1))
    assert ops.cumsum(muster.Tensor([1, 2, 3]), 0, exclusive=True, reverse=True).tolist() == [5, 3, 0]
    a, b = numbers(2, 1, 3, 4), numbers(5, 4, 2)
    assert equal(ops.matmul(muster.Tensor(a), muster.Tensor(b)), a @ b)
    assert equal(muster.Tensor(a) @ muster.Tensor(b[0]), a @ b[0])
    assert equal(ops.batch_matmul(muster.Tensor(a), muster.Tensor(b.swapaxes(1, 2)), transpose_b=True), a @ b)
    assert equal(muster.Tensor(x[0]) @ muster.Tensor(x[0]), x[0] @ x[0])


def test_gradients_come_back_through_functions_and_methods():
    def loss(x):
        rows = ops.concat([x.T, x.flip(0).swapaxes(0, 1)], 1)
        return (ops.pad(rows, (1, 0), "replicate") * muster.Tensor(numbers(3, 5))).sum()

    _, gradient = muster.value_and_grad(loss)(muster.Tensor(numbers(2, 3)))
    # Column j of the padded rows is x's row (0, 0, 1, 1, 0)[j].
    weights = numbers(3, 5)
    expected = numpy.stack([weights[:, [0, 1, 4]].sum(1), weights[:, [2, 3]].sum(1)])
    assert equal(gradient, expected.astype(numpy.float32))
