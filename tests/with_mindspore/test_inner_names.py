"""What libraries for MindSpore import from its inside: a library is loaded, and what it uses is there."""

import importlib

import mindspore
import numpy
import pytest
from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype

NAMES = """
mindspore._c_expression.MSContext
mindspore._c_expression.amp.AmpLevel
mindspore._c_expression.typing
mindspore._c_expression.typing.BFloat
mindspore._checkparam.args_type_check
mindspore._extends.cell_attr_register
mindspore._extends.utils.cell_attr_register
mindspore.common._stub_tensor.StubTensor
mindspore.common.complex64
mindspore.common.hook_handle.HookHandle
mindspore.common.initializer.Tensor
mindspore.common.initializer._register
mindspore.common.seed._get_graph_seed
mindspore.common.sparse_tensor.RowTensorInner
mindspore.log._LogActionOnce
mindspore.nn.layer.rnn_cells.RNNCellBase
mindspore.nn.layer.rnn_cells._gru_cell
mindspore.nn.layer.rnn_cells._lstm_cell
mindspore.nn.layer.rnn_cells._rnn_relu_cell
mindspore.nn.wrap.loss_scale._grad_overflow
mindspore.ops.Tensor
mindspore.parallel._utils._is_sharding_propagation
mindspore.train._utils._make_directory
mindspore.train._utils.check_value_type
mindspore.train.callback._callback.CallbackManager
mindspore.train.callback._callback.InternalCallbackParam
mindspore.train.callback._callback._handle_loss
mindspore.train.callback._callback.set_cur_net
mindspore.train.callback._CallbackManager
mindspore.train.model.RunContext
mindspore.train.model._InternalCallbackParam
mindspore.train.model._StepSync
mindspore.train.model._transfer_tensor_to_tuple
mindspore.train.model.context
"""


@pytest.mark.parametrize("path", NAMES.split())
def test_a_name_of_mindspores_inside_can_be_imported(path):
    module, _, name = path.rpartition(".")
    assert getattr(importlib.import_module(module), name) is not None


REFUSED = """
mindspore._c_expression.swap_cache
mindspore.ops.auto_generate.GroupedMatmul
mindspore.ops.operations._quant_ops.FakeQuantPerLayer
mindspore.ops.operations._rl_inner_ops.PriorityReplayBufferCreate
mindspore.ops.operations._tensor_array.TensorArrayWrite
mindspore.ops.operations.math_ops.NPUGetFloatStatusV2
mindspore.parallel._transformer.transformer.FeedForward
mindspore.rewrite.PatternEngine
"""


@pytest.mark.parametrize("path", REFUSED.split())
def test_what_has_no_meaning_on_a_cpu_is_refused_at_its_use(path):
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    with pytest.raises(NotImplementedError, match=f"{name} is not provided by Muster: .*; "):
        value(1)(2)  # of ops there are objects, whose call it is


class _Gated(importlib.import_module("mindspore.nn.layer.rnn_cells").RNNCellBase):
    """A cell as OCR libraries make them: weights of the base, a step of its own."""

    def __init__(self, inputs, hidden, has_bias=True):
        super().__init__(inputs, hidden, has_bias, num_chunks=3)

    def construct(self, x, h):
        from mindspore.nn.layer.rnn_cells import _gru_cell

        return _gru_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


@pytest.mark.parametrize("has_bias", [True, False])
def test_a_cell_that_derives_from_rnncellbase_computes_what_grucell_does(has_bias):
    mindspore.set_seed(1)
    own, built_in = _Gated(3, 4, has_bias), nn.GRUCell(3, 4, has_bias)
    mindspore.load_param_into_net(own, built_in.parameters_dict())
    x, h = Tensor(numpy.ones((2, 3), numpy.float32)), Tensor(numpy.full((2, 4), 0.5, numpy.float32))
    assert isinstance(built_in, type(own).__mro__[1])
    assert (own.bias_ih is None) is not has_bias
    numpy.testing.assert_allclose(own(x, h).asnumpy(), built_in(x, h).asnumpy(), rtol=1e-6)
    before = own.weight_ih.asnumpy()
    own.reset_parameters()
    assert abs(own.weight_ih.asnumpy()).max() <= 0.5
    assert (own.weight_ih.asnumpy() != before).any()


def test_dtypes_that_no_tensor_has_are_names_in_tables_and_comparisons():
    table = {mindspore.complex64: numpy.complex64, mindspore.float32: numpy.float32}
    assert table[mindspore.complex64] is mindspore.dtype_to_nptype(mindspore.complex64)
    assert mindspore.pytype_to_dtype(numpy.complex128) is mindspore.complex128
    assert mindspore.pytype_to_dtype(complex) is mstype.complex128
    assert Tensor([1.0]).dtype not in mstype.complex_type
    assert not isinstance(mindspore.float32, mstype.Complex)
    assert [str(each) for each in (mindspore.cfloat, mindspore.qint4x2)] == ["Complex64", "Int4"]
    with pytest.raises(TypeError, match=r"no dtype mindspore\.complex64; the dtypes are "):
        ops.cast(Tensor([1.0]), mindspore.complex64)


def test_a_registered_cell_keeps_what_it_was_made_with():
    from mindspore._extends import cell_attr_register

    class Scale(nn.Cell):
        @cell_attr_register
        def __init__(self, factor, bias=0.0):
            super().__init__()
            self.factor = factor

    class Named(Scale):
        @cell_attr_register(attrs=["factor"])
        def __init__(self, factor):
            super().__init__(factor)

    assert Scale(2, bias=1.0).cell_init_args == "Scale[2, 1.0]"
    assert Named(3).cell_init_args == "Named[3]"
    with pytest.raises(ValueError, match="attrs is a name or a list of names, not 3"):
        cell_attr_register(attrs=3)


def test_warnings_of_a_decorated_function_are_written_once():
    from mindspore.log import _LogActionOnce

    class Logger:
        def __init__(self):
            self.lines = []

        def warning(self, line):
            self.lines.append(line)

    logger = Logger()

    @_LogActionOnce(logger, "key of this test")
    def work(number):
        logger.warning("slow")
        return number

    assert [work(1), work(2)] == [1, 2]
    assert logger.lines == ["slow"]


def test_draws_of_initializers_own_arrays_follow_the_seed():
    from mindspore.common.initializer import _init_random_normal, _init_random_uniform

    def draw():
        mindspore.set_seed(3)
        return _init_random_uniform(2.0, 3.0, (100,)), _init_random_normal(5.0, 0.1, (100,))

    (uniform, normal), again = draw(), draw()
    assert uniform.min() >= 2 and uniform.max() <= 3
    assert abs(normal.mean() - 5) < 0.1
    numpy.testing.assert_array_equal(uniform, again[0])
    numpy.testing.assert_array_equal(normal, again[1])


def test_a_loop_of_a_librarys_own_calls_its_callbacks_together():
    from mindspore.train.callback import Callback, RunContext, _CallbackManager, _InternalCallbackParam

    class Notes(Callback):
        def __init__(self):
            super().__init__()
            self.calls = []

        def __enter__(self):
            self.calls.append("enter")
            return self

        def __exit__(self, *error):
            self.calls.append("exit")

        def epoch_end(self, run_context):
            self.calls.append(run_context.original_args().cur_epoch_num)

        def on_train_step_end(self, run_context):
            self.calls.append("step")

    given = _InternalCallbackParam()
    given.cur_epoch_num = 3
    notes = [Notes(), Notes()]
    with _CallbackManager(notes) as together:
        together.begin(RunContext(given))
        together.on_train_step_end(RunContext(given))
        together.on_train_epoch_end(RunContext(given))
    assert [each.calls for each in notes] == [["enter", "step", 3, "exit"]] * 2


def test_layers_of_libraries_are_made_with_the_settings_of_mindspores_transformer():
    from mindspore.parallel._transformer.layers import (
        _args_type_validator_check,
        _LayerInputCheck,
        _LayerNorm,
        _valid_value_checks,
    )
    from mindspore.parallel._transformer.op_parallel_config import MoEParallelConfig, default_dpmp_config
    from mindspore.parallel._transformer.transformer import TransformerOpParallelConfig

    class Layer(nn.Cell):
        @_args_type_validator_check(dtype=_valid_value_checks([mindspore.float32], "Layer"))
        def __init__(self, size, dtype=mindspore.float32, config=default_dpmp_config):
            super().__init__()
            self.norm, self.ways = _LayerNorm((size,)), config.data_parallel

        def construct(self, x):
            return self.norm(x)

    x = Tensor(numpy.arange(6, dtype=numpy.float32).reshape(2, 3))
    numpy.testing.assert_allclose(
        Layer(3)(x).asnumpy(), nn.LayerNorm((3,), epsilon=1e-5)(x).asnumpy(), rtol=1e-6
    )
    with pytest.raises(TypeError, match="Layer: 'dtype' is Float32, not Float16"):
        Layer(3, mindspore.float16)
    with pytest.raises(ValueError, match="data_parallel"):
        MoEParallelConfig(data_parallel=0)
    config = TransformerOpParallelConfig(model_parallel=2, recompute=True)
    assert (config.model_parallel, config.moe_parallel_config.dpmp.model_parallel) == (2, 2)
    with pytest.raises(ValueError, match=r"the shape of x is one of \[\[2, 2\]\], not \(2, 3\)"):
        _LayerInputCheck.check_shape_equal(x.shape, "x", "Layer", [2, 2])
