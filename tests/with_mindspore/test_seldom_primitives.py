"""Ops for deformed convolutions, volumes, replay buffers, boxes and caches; numbers are MindSpore 2.7.0's."""

import mindspore as ms
import numpy
import pytest
from mindspore import Parameter, Tensor, ops
from mindspore.ops import operations as P  # noqa: N812 - as scripts name it
from mindspore.ops.operations import _embedding_cache_ops as caches
from mindspore.ops.operations import array_ops, image_ops, nn_ops, sparse_ops
from mindspore.ops.operations._inner_ops import ConvertToDynamic


def whole(*values):
    return Tensor(list(values), ms.int32)


def test_taps_move_by_their_offsets_and_are_weighed():
    x = Tensor([[[[2.0, 4.0], [6.0, 8.0]]]], ms.float32)
    offsets = Tensor(numpy.array([0.5, 0.5, 2.0]).reshape(1, 3, 1, 1), ms.float32)
    op = nn_ops.DeformableOffsets((1, 1, 2, 2), (0, 0, 0, 0), (1, 1))
    assert op(x, offsets).asnumpy().ravel().tolist() == [10.0]  # twice the mean of the four


def test_a_deformed_convolution_without_offsets_is_a_convolution():
    draw = numpy.random.default_rng(1)
    x = Tensor(draw.standard_normal((2, 4, 5, 6)).astype(numpy.float32))
    weight = Tensor(draw.standard_normal((3, 4, 3, 2)).astype(numpy.float32))
    offsets = numpy.zeros((2, 3, 2, 6, 5, 5), numpy.float32)
    offsets[:, 2] = 1
    made = ops.deformable_conv2d(
        x,
        weight,
        Tensor(offsets.reshape(2, 36, 5, 5)),
        (3, 2),
        (1, 1, 1, 1),
        (1, 1, 0, 0),
        None,
        deformable_groups=2,
    )
    padded = Tensor(numpy.pad(x.asnumpy(), ((0, 0), (0, 0), (1, 1), (0, 0))))
    assert numpy.allclose(made.asnumpy(), ops.conv2d(padded, weight).asnumpy(), atol=1e-5)


def test_offsets_of_another_count_are_refused():
    op = nn_ops.DeformableOffsets((1, 1, 1, 1), (0, 0, 0, 0), (1, 1))
    with pytest.raises(ValueError, match="channels"):
        op(Tensor(numpy.ones((1, 1, 2, 2), numpy.float32)), Tensor(numpy.ones((1, 2, 2, 2), numpy.float32)))


def test_volumes_grow_to_a_size_or_by_factors():
    x = Tensor(numpy.arange(4).reshape(1, 1, 1, 2, 2).astype(numpy.float32))
    near = P.UpsampleNearest3D()(x, [1, 2, 4], None)
    assert near.asnumpy().ravel().tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    between = P.UpsampleTrilinear3D(True)(x, None, [1.0, 1.0, 1.5])
    assert between.asnumpy().ravel().tolist() == [0, 0.5, 1, 2, 2.5, 3]
    with pytest.raises(ValueError, match="either"):
        P.UpsampleNearest3D()(x, None, None)


def test_a_replay_buffer_replaces_its_oldest_row():
    data = [Tensor(numpy.zeros((3, 2), numpy.float32)), Tensor(numpy.zeros((3, 1), numpy.int32))]
    count, head = (Parameter(Tensor(0, ms.int32), name=name) for name in ("count", "head"))
    settings = (3, [(2,), (1,)], [ms.float32, ms.int32])
    for number in range(5):
        P.BufferAppend(*settings)(
            data, [Tensor([number, number + 0.5], ms.float32), whole(number)], count, head
        )
    assert data[1].asnumpy().ravel().tolist() == [3, 4, 2]
    assert (int(count), int(head)) == (3, 2)
    row = P.BufferGetItem(*settings)(data, count, head, 1)
    assert [each.asnumpy().tolist() for each in row] == [[3.0, 3.5], [3]]
    with pytest.raises(RuntimeError, match="no row"):
        P.BufferGetItem(*settings)(data, count, head, 3)
    drawn = P.BufferSample(3, 2, *settings[1:], unique=True)(data, count, head)
    assert len(set(drawn[1].asnumpy().ravel().tolist())) == 2


def test_adafactor_takes_a_step():
    def parameter(values, name):
        return Parameter(Tensor(numpy.asarray(values, numpy.float32)), name=name)

    param = parameter(numpy.arange(12).reshape(2, 3, 2) / 6 + 0.3, "param")
    states = [
        parameter(numpy.zeros(shape), f"s{at}")
        for at, shape in enumerate([(2, 3, 2), (2, 3), (2, 2), (2, 3, 2)])
    ]
    gradient = Tensor((numpy.arange(12).reshape(2, 3, 2) - 5).astype(numpy.float32))
    P.FusedAdaFactor()((1e-30, 1e-3), 1.0, 0.9, 0.8, 1e-2, 0.03, gradient, param, *states)
    wanted = [0.33019, 0.49861, 0.6655, 0.82837, 1.00532, 1.13333]
    assert numpy.allclose(param.asnumpy().ravel()[:6], wanted, atol=1e-5)
    assert numpy.allclose(states[1].asnumpy().ravel(), [4.1, 1.3, 0.1, 0.5, 2.5, 6.1])


def test_the_best_boxes_of_all_classes_come_first():
    boxes = [[0.1, 0.1, 0.5, 0.5], [0.12, 0.1, 0.52, 0.5], [0.6, 0.6, 0.9, 1.2], [0.0, 0.0, 0.3, 0.3]]
    scores = [[0.9, 0.2], [0.8, 0.7], [0.3, 0.6], [0.5, 0.1]]
    made = image_ops.CombinedNonMaxSuppression()(
        Tensor(numpy.array(boxes, numpy.float32).reshape(1, 4, 1, 4)),
        Tensor(numpy.array([scores], numpy.float32)),
        *(Tensor(number, ms.int32) for number in (2, 5)),
        *(Tensor(number, ms.float32) for number in (0.5, 0.15)),
    )
    assert numpy.allclose(made[1].asnumpy(), [[0.9, 0.7, 0.6, 0.5, 0]])
    assert made[2].asnumpy().tolist() == [[0, 1, 1, 0, 0]]
    assert made[0].asnumpy()[0, 2, 3] == 1  # clipped
    assert made[3].asnumpy().tolist() == [4]


def test_parts_of_a_concatenation_know_where_they_begin():
    made = array_ops.ConcatOffsetV1()(Tensor(1, ms.int32), (whole(1, 2, 3), whole(1, 5, 3), whole(1, 4, 3)))
    assert [each.asnumpy().tolist() for each in made] == [[0, 0, 0], [0, 2, 0], [0, 7, 0]]


def test_caches_are_updated_filtered_and_shifted():
    table = Parameter(Tensor(numpy.arange(8).reshape(4, 2).astype(numpy.float32)), name="table")
    caches.UpdateCache()(
        table, Tensor([[-1, 3, 1]], ms.int32), Tensor(numpy.full((3, 2), 9, numpy.float32)), 9999
    )
    assert table.asnumpy().ravel().tolist() == [0, 1, 9, 9, 4, 5, 9, 9]
    kept, places = caches.SubAndFilter()(whole(1, 3, 5, 8, 2, 16), 10, 5)
    assert (kept.asnumpy().tolist(), places.asnumpy().tolist()) == ([0, 3], [2, 3])
    mapped = caches.MapUniform()(whole(*range(8)), 4, 2)
    assert mapped.asnumpy().tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    shifted = caches.PadAndShift()(whole(9, 13, -1, -1, -1), whole(0, 3, 5), 1)
    assert shifted.asnumpy().tolist() == [-1, -1, -1, 9, 13]


def test_a_shape_that_may_change_is_known_here():
    x = Tensor([1.0, 2.0])
    assert ConvertToDynamic(is_dynamic_rank=True).add_prim_attr("primitive_target", "CPU")(x) is x
    assert not ops.functional.is_sequence_value_unknown(x.shape)


def test_tables_of_ops_are_read_from_yaml(tmp_path):
    from mindspore.ops_generate.common.gen_utils import safe_load_yaml
    from mindspore.ops_generate.gen_utils import safe_load_yaml as older

    assert older is safe_load_yaml
    pytest.importorskip("yaml")
    (tmp_path / "ops.yaml").write_text("abs:\n  args: 1\n")
    assert safe_load_yaml(str(tmp_path / "ops.yaml")) == {"abs": {"args": 1}}


@pytest.mark.parametrize("dtype", [ms.float16, ms.float32])
def test_colours_are_adjusted_in_halves_too(dtype):
    image = Tensor([[[[0.5, 0.25, 0.0], [0.5, 0.75, 1.0]]]], dtype)
    given = {
        "AdjustContrastv2": (2.0, [0.5, 0, -0.5, 0.5, 1, 1.5]),
        "AdjustHue": (0.5, [0, 0.25, 0.5, 1, 0.75, 0.5]),
        "AdjustSaturation": (0.5, [0.5, 0.375, 0.25, 0.75, 0.875, 1]),
    }
    for name, (number, numbers) in given.items():
        made = getattr(image_ops, name)()(image, Tensor(number, ms.float32))
        assert made.dtype == dtype
        assert numpy.allclose(made.asnumpy().ravel(), numbers, atol=2e-3)


def test_ragged_rows_have_indices():
    rows, parts = Tensor([0, 2, 3]), Tensor([0, 2, 3, 5])
    indices, values, shape = sparse_ops.RaggedTensorToSparse(ms.int64)((rows, parts), Tensor([1, 2, 3, 4, 5]))
    assert indices.asnumpy().tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 1]]
    assert values.asnumpy().tolist() == [1, 2, 3, 4, 5]
    assert shape.asnumpy().tolist() == [2, 2, 2]
    indices, _, shape = sparse_ops.RaggedTensorToSparse(ms.int64)((Tensor([0, 0, 1]),), Tensor([[7, 8]]))
    assert indices.asnumpy().tolist() == [[1, 0, 0], [1, 0, 1]]
    assert shape.asnumpy().tolist() == [2, 1, 2]
