"""nn.TensorArray, as MindSpore 2.7.0 has it."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn


def test_places_that_were_not_written_are_zeros():
    array = nn.TensorArray(ms.float32, (2,))
    array.write(0, Tensor([1.0, 2.0]))
    array.write(2, Tensor([3.0, 4.0]))
    assert int(array.size()) == 3
    assert array.stack().asnumpy().tolist() == [[1, 2], [0, 0], [3, 4]]
    assert array.read(1).asnumpy().tolist() == [0, 0]
    array.clear()
    assert array.stack().shape == (0, 2)


def test_an_array_of_a_fixed_size_does_not_grow():
    array = nn.TensorArray(ms.int32, (), dynamic_size=False, size=3)
    array.write(1, Tensor(5, ms.int32))
    with pytest.raises(RuntimeError, match="has 3 places: there is no 4"):
        array.write(4, Tensor(5, ms.int32))
    assert array.stack().asnumpy().tolist() == [0, 5, 0]
    array.clear()
    assert array.stack().asnumpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize(("dtype", "number"), [(ms.int64, 2), (ms.float32, 1.5), (ms.bool_, True)])
def test_a_number_is_written_as_the_tensor_that_it_makes(dtype, number):
    array = nn.TensorArray(dtype, ())
    array.write(0, number)
    assert array.read(0).asnumpy() == number
    with pytest.raises(RuntimeError, match="holds Float16 of shape"):
        nn.TensorArray(ms.float16, ()).write(0, number)


@pytest.mark.parametrize("value", [Tensor([1, 2], ms.int32), Tensor([1.0, 2.0, 3.0])])
def test_a_tensor_of_another_kind_is_refused(value):
    with pytest.raises(RuntimeError, match="holds Float32 of shape"):
        nn.TensorArray(ms.float32, (2,)).write(0, value)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_cell_writes_with_each_call_and_gradients_flow(mode):
    class Steps(nn.Cell):
        def __init__(self):
            super().__init__()
            self.states = nn.TensorArray(ms.float32, ())

        def construct(self, x):
            self.states.clear()
            self.states.write(0, Tensor(1.0))
            for place in range(1, 4):
                self.states.write(place, self.states.read(place - 1) * x)
            return self.states.stack()

    ms.set_context(mode=mode)
    steps = Steps()
    assert steps(Tensor(2.0)).asnumpy().tolist() == [1, 2, 4, 8]
    assert steps(Tensor(3.0)).asnumpy().tolist() == [1, 3, 9, 27]
    gradient = ms.grad(lambda x: steps(x).sum())(Tensor(2.0))
    np.testing.assert_allclose(gradient.asnumpy(), 1 + 2 * 2 + 3 * 4)
    ms.set_context(mode=ms.GRAPH_MODE)


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (TypeError, (3, (2,))),
        (TypeError, (ms.float32, 2)),
        (TypeError, (ms.float32, (2,), 1)),
        (TypeError, (ms.float32, (2,), True, 1.5)),
        (ValueError, (ms.float32, (2,), True, -1)),
    ],
)
def test_arguments_of_other_types_are_refused(error, arguments):
    with pytest.raises(error):
        nn.TensorArray(*arguments)


def test_a_random_dataset_has_the_columns_of_its_schema():
    schema = ms.dataset.Schema()
    schema.add_column("image", ms.uint8, [2, 3])
    schema.add_column("weight", ms.float32, [])
    made = ms.dataset.RandomDataset(total_rows=5, schema=schema, shuffle=False)
    rows = list(made.create_tuple_iterator(output_numpy=True, num_epochs=1))
    assert [len(rows), made.get_dataset_size()] == [5, 5]
    assert [(each.dtype.name, each.shape) for each in rows[0]] == [("uint8", (2, 3)), ("float32", ())]
    again = list(made.create_tuple_iterator(output_numpy=True, num_epochs=1))
    assert all((a == b).all() for a, b in zip(rows[3], again[3], strict=True))
    with pytest.raises(ValueError, match="total_rows says how many"):
        ms.dataset.RandomDataset(schema=schema)
