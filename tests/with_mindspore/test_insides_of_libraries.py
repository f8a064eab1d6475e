"""Insides of MindSpore that a library with tensors, parameters and ops of its own is made of."""

import ctypes
import os
import subprocess
import sys

import mindspore
import numpy
import pytest
from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype


def _star(module):
    names = {}
    exec(f"from {module} import *", names)
    return names


def test_a_star_of_the_gradients_of_ops_takes_all_of_them():
    names = _star("mindspore.ops.operations._grad_ops")
    for each in ("SigmoidGrad", "MaxPoolGrad", "LSTMGrad", "StridedSliceGrad", "Primitive"):
        assert issubclass(names[each], ops.Primitive)


def test_a_star_of_inner_ops_takes_classes_and_no_function_named_like_one_of_pythons():
    names = _star("mindspore.ops.operations._inner_ops")
    assert {"Generator", "Cast", "SelectView", "Quant"} <= names.keys()
    assert not {"abs", "max", "slice", "range"} & names.keys()


def test_a_star_of_dtypes_leaves_pythons_int_float_and_bool():
    names = _star("mindspore.common.dtype")
    assert names["int32"] is mindspore.int32
    assert not {"int", "float", "bool"} & names.keys()


def test_each_op_of_mindspores_tables_can_be_made():
    names = _star("mindspore.ops.auto_generate.gen_ops_prim")
    assert names["Abs"]()(Tensor([-1.0])).asnumpy() == [1]
    with pytest.raises(NotImplementedError, match=r"InplaceCopy is not provided by Muster: .*; call the "):
        names["InplaceCopy"]().set_device("Ascend")(Tensor([1.0]), Tensor([2.0]))


def test_an_op_for_an_accelerator_says_so_where_it_is_called(capfd):
    op = ops.Sin().set_device("Ascend")
    assert capfd.readouterr().err == ""
    assert op(Tensor([0.0])).asnumpy() == [0]
    assert "Sin.set_device() asks for Ascend" in capfd.readouterr().err
    with pytest.raises(ValueError, match="TPU"):
        ops.Sin().set_device("TPU")


def _generator():
    from mindspore.ops.operations._inner_ops import Generator

    return Generator().set_device("CPU"), Tensor(0, mindspore.int64), Tensor(0, mindspore.int64)


def test_the_generator_op_keeps_its_seed_and_offset_in_two_tensors():
    op, seed, offset = _generator()
    _, _, state = op(4, (seed, offset, Tensor(5, mindspore.int64)))
    assert (int(seed), int(offset)) == (5, 0)
    assert state.dtype == mindspore.uint8 and state.asnumpy().tolist() == [5] + [0] * 15
    drawn = op(1, (seed, offset))[0]
    assert drawn.asnumpy().tolist() == [int(seed)]
    op(3, (seed, offset, state))
    assert op(5, (seed, offset))[0].asnumpy().tolist() == [5]
    assert op(0, (seed, offset)) == (seed, offset)


@pytest.mark.parametrize("given", [(9, ()), (3, ()), (3, (Tensor([1.0]),))])
def test_commands_that_the_generator_op_does_not_know_are_errors(given):
    op, seed, offset = _generator()
    with pytest.raises(ValueError, match="Generator: "):
        op(given[0], (seed, offset, *given[1]))


def test_loops_over_functions_give_what_mindspores_give():
    assert int(ops.ForiLoop()(0, 4, lambda at, value: value + at, Tensor(1))) == 7
    last, all_of_them = ops.Scan()(lambda total, x: (total + x, total), Tensor(0), [Tensor(1), Tensor(2)])
    assert int(last) == 3 and [int(each) for each in all_of_them] == [0, 1]
    assert int(ops.Scan()(lambda total, x: (total + 1, x), Tensor(0), None, 3)[0]) == 3
    with pytest.raises(ValueError, match="length is 3, and xs has 1"):
        ops.Scan()(lambda total, x: (total, x), Tensor(0), [Tensor(1)], 3)


def test_ops_of_views_give_the_elements_of_them():
    x = Tensor(numpy.arange(6, dtype=numpy.float32).reshape(2, 3))
    assert ops.operations.SelectView()(x, -1, 1).asnumpy().tolist() == [2, 5]
    assert ops.TransposeExtView()(x, 0, 1).asnumpy().tolist() == x.asnumpy().T.tolist()
    made = ops.LogSoftmaxExt()(x, 0).asnumpy()
    numpy.testing.assert_allclose(numpy.exp(made).sum(0), [1, 1, 1], rtol=1e-6)


def test_what_is_written_at_data_ptr_changes_that_tensor_alone():
    x = Tensor([1.0, 2.0])
    same, more, view = Tensor(x), x + 0, x.asnumpy()
    new = numpy.array([7, 8], numpy.float32)
    ctypes.memmove(x.data_ptr(), new.ctypes.data, new.nbytes)
    assert x.asnumpy().tolist() == [7, 8] and (x * 2).asnumpy().tolist() == [14, 16]
    assert same.asnumpy().tolist() == more.asnumpy().tolist() == view.tolist() == [1, 2]
    with pytest.raises(NotImplementedError, match="cast the tensor to float32"):
        x.astype(mindspore.bfloat16).data_ptr()


def test_what_a_library_sets_on_type_every_dtype_has():
    from mindspore._c_expression import typing

    typing.Type.is_wide_in_test = property(lambda self: self is mindspore.float64)
    assert mindspore.float64.is_wide_in_test and not mindspore.int8.is_wide_in_test
    assert isinstance(mindspore.bfloat16, typing.BFloat) and not isinstance(mindspore.float16, typing.BFloat)
    assert all(isinstance(each, typing.Number) for each in (mindspore.bool_, mindspore.int8))


def test_members_of_mindspores_c_class_stand_beside_the_public_ones():
    x = Tensor([[1.0, 2.0]])
    assert (x._shape, x._dtype, x._size, x._nbytes, x._itemsize) == ((1, 2), mindspore.float32, 2, 8, 4)
    assert x._tolist() == [[1, 2]] and Tensor(3.0)._item() == 3 and x._data_ptr() > 0
    assert x.param_info is None


def test_the_context_says_that_there_is_only_a_cpu():
    from mindspore._c_expression import MSContext, _empty_instance, _ms_memory_recycle, disable_multi_thread
    from mindspore.ops.auto_generate.gen_ops_prim import Empty

    context = MSContext.get_instance()
    assert context is MSContext.get_instance() and context.get_ascend_soc_version() == ""
    assert context.is_pkg_support_device("CPU") and not context.is_pkg_support_device("Ascend")
    assert disable_multi_thread() is None and _ms_memory_recycle() is None
    for made in (
        _empty_instance((2, 3), dtype=mindspore.int8, device="CPU"),
        Empty()((2, 3), mindspore.int8),
    ):
        assert made.shape == (2, 3) and made.dtype == mindspore.int8
    devices = mindspore.device_context
    assert devices.cpu.is_available() and devices.cpu.device_count() == 1
    for each in (devices.gpu, devices.ascend):
        assert not each.is_available()
        with pytest.raises(RuntimeError, match="not exist"):
            each.device_count()


def test_settings_of_devices_that_there_are_not_are_taken_and_noted_once(capfd):
    from mindspore.device_context.ascend import op_debug, op_precision, op_tuning
    from mindspore.device_context.gpu import op_precision as of_gpu

    for _ in range(2):
        op_precision.precision_mode("force_fp32")
        op_tuning.aclnn_cache(True, cache_queue_length=10)
        op_debug.execute_timeout(100)
        of_gpu.matmul_allow_tf32(True)
    told = capfd.readouterr().err
    settings = ("op_precision.precision_mode", "op_tuning.aclnn_cache", "execute_timeout", "allow_tf32")
    assert [told.count(f"{name} has no effect") for name in settings] == [1] * 4
    assert mindspore.device_context.ascend.matmul_allow_hf32(False) is None


def test_the_executor_says_and_sets_whether_gradients_are_noted():
    from mindspore.common.api import _pynative_executor as executor

    seen = []
    mindspore.grad(lambda x: seen.append(executor.requires_grad()) or (x * x).sum())(Tensor([1.0]))
    assert seen[0] is True and executor.requires_grad() is False
    executor.set_enable_grad(False)
    try:
        assert not executor.enable_grad()
    finally:
        executor.set_enable_grad(True)
    assert executor.enable_grad()
    with pytest.raises(TypeError, match="True or False"):
        executor.set_enable_grad(1)


def test_strategies_of_mixed_precision_that_change_nothing_are_taken_and_others_refused():
    from mindspore._c_expression.amp import (
        AmpLevel,
        get_curr_amp_strategy,
        pop_amp_strategy,
        push_amp_strategy,
    )
    from mindspore.train.amp import AMP_AUTO_BLACK_LIST, AMP_AUTO_WHITE_LIST, AMP_PRIM_ARG_TABLE

    assert ops.MatMul in AMP_AUTO_WHITE_LIST and ops.Exp in AMP_AUTO_BLACK_LIST
    assert AMP_PRIM_ARG_TABLE[ops.MatMul] == []
    push_amp_strategy(AmpLevel.AmpO0, mindspore.float16, [], [])
    assert get_curr_amp_strategy().amp_dtype == mindspore.float16
    pop_amp_strategy()
    assert get_curr_amp_strategy() is None
    with pytest.raises(NotImplementedError, match="auto_mixed_precision"):
        push_amp_strategy(AmpLevel.AmpAuto, mindspore.float16, [], [])


def test_tables_of_checkpoints_name_the_types_of_elements():
    from mindspore.train.serialization import tensor_to_ms_type, tensor_to_np_type

    assert tensor_to_ms_type["Int8"] is mindspore.int8 and tensor_to_ms_type["str"] is mstype.string
    assert tensor_to_np_type("Float16") is numpy.float16 and tensor_to_np_type("Bool") is numpy.bool_
    assert tensor_to_np_type("nothing") is None


class _Weight(Tensor):
    """A parameter of a library's own."""

    def __init__(self, data):
        from mindspore._c_expression import ParamInfo

        super().__init__(data)
        self.param_info = ParamInfo()
        self.param_info.name = "w"


def test_tensors_with_a_param_info_are_weights_of_value_and_grad():
    weight, other = _Weight(Tensor([2.0, 3.0])), mindspore.Parameter(Tensor([5.0, 7.0]), name="other")

    def loss(x):
        return (weight * weight * other * x).sum()

    value, (of_weight, of_other) = mindspore.value_and_grad(loss, None, (weight, other))(Tensor([1.0, 1.0]))
    assert float(value) == 83
    assert of_weight.asnumpy().tolist() == [20, 42] and of_other.asnumpy().tolist() == [4, 9]
    of_x, (again,) = mindspore.grad(loss, 0, (weight,))(Tensor([1.0, 1.0]))
    assert of_x.asnumpy().tolist() == [20, 63] and again.asnumpy().tolist() == [20, 42]
    assert weight.asnumpy().tolist() == [2, 3]
    weight.assign_value(Tensor([1.0, 1.0]))
    assert mindspore.grad(loss, None, (weight,))(Tensor([1.0, 1.0]))[0].asnumpy().tolist() == [10, 14]


class _OfDtype(type(Tensor)):
    """isinstance() asks a dtype."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype == cls.element

    def __str__(cls):
        return f"tensors of {cls.element}"


def test_isinstance_asks_the_metaclass_of_a_class_of_tensors():
    class Whole(Tensor, metaclass=_OfDtype):
        element = mindspore.int32

    assert isinstance(Tensor(1, mindspore.int32), Whole) and not isinstance(Tensor(1.0), Whole)
    assert str(Whole) == "tensors of Int32"


def test_a_class_of_tensors_that_makes_none_is_told_the_line_to_add():
    class Without(Tensor):
        def __init__(self):
            pass

    with pytest.raises(
        TypeError, match=r"Without.__init__ does not call super\(\).__init__\(\): .* of Tensor"
    ):
        Without()


def test_the_lists_of_cells_of_mixed_precision_are_there_and_taken():
    from mindspore.train.amp import AMP_BLACK_LIST, AMP_WHITE_LIST, _auto_black_list, _auto_white_list

    assert nn.LayerNorm in AMP_BLACK_LIST and {nn.Dense, ops.MatMul} <= set(AMP_WHITE_LIST)
    x = mindspore.Tensor([[1.0 + 2**-12]])
    for change, listed in ((_auto_black_list, AMP_BLACK_LIST), (_auto_white_list, AMP_WHITE_LIST)):
        net = change(nn.SequentialCell(nn.Dense(1, 1, "ones", has_bias=False)), listed, mindspore.float16)
        assert net(x).item() == 1.0  # in 16 bits


def test_parts_of_attention_are_what_their_names_say():
    from mindspore.ops.function import nn_func

    q = ops.arange(6).reshape(1, 2, 3).astype(mindspore.float32)
    w, b = ops.arange(27).reshape(9, 3).astype(mindspore.float32), ops.ones(9)
    packed = nn_func._in_projection_packed(q, q, q, w, b, True, True)
    apart = nn_func._in_projection(q, q, q, w[:3], w[3:6], w[6:], b[:3], b[3:6], b[6:])
    crossed = nn_func._in_projection_packed(q, q, q, w, b, True, False)
    for parts in zip(packed, apart, crossed, strict=True):
        assert len({str(part.asnumpy().tolist()) for part in parts}) == 1
    seen = nn_func._inner_pad(mindspore.Tensor([[True]]), (0, 1))
    assert seen.dtype == mindspore.bool_ and seen.asnumpy().tolist() == [[True, False]]
    assert nn_func._check_qkv_shape(3, 3, 3) and not nn_func._check_qkv_shape(2, 2, 2)
    with pytest.raises(ValueError, match="query, key and value have all 3 axes"):
        nn_func._check_qkv_shape(3, 2, 3)
    image = ops.zeros((1, 1, 4, 6))
    assert nn_func._interploate_ext_make_tuple(image, 2.0) == (2.0, 2.0)
    assert nn_func._interpolate_ext_scale_factor_convert_size(image, (2.0, 0.5)) == (8, 3)


def test_the_version_of_the_package_is_what_a_library_asks_for_by_its_metadata():
    from importlib import metadata

    assert metadata.version("mindspore") == mindspore.__version__
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.version("mindspore-of-nobody")


REPLACED_MEMBERS = """
import mindspore
from mindspore import ops
mindspore.Tensor.size = lambda self, dim=None: self.shape if dim is None else self.shape[dim]
x = mindspore.Tensor([1.0, 2.0])
print(ops.meshgrid(x, x, indexing="ij")[0].shape, ops.numel(x), ops.size(x), ops.is_nonzero(x[:1]))
print(ops.masked_scatter(x, x > 1, x).tolist(), ops.assign_add(mindspore.Parameter(x[:1]), 1).tolist())
print(ops.bincount(mindspore.Tensor([0, 1, 1])).tolist(), ops.zeros((2, 2)).fill_diagonal(3.0).tolist())
"""


def test_functions_count_elements_also_where_a_library_has_put_another_size_on_tensors():
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", REPLACED_MEMBERS],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "(2, 2) 2 2 True",
        "[1.0, 1.0] [2.0]",
        "[1.0, 2.0] [[3.0, 0.0], [0.0, 3.0]]",
    ], done.stderr
