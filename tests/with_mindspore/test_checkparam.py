"""mindspore._checkparam, and cells of older paths: what MindSpore 2.7.0 answers to the same calls."""

import math

import mindspore
import numpy
import pytest
from mindspore import _checkparam as check
from mindspore import nn

OK, TYPE, VALUE = None, TypeError, ValueError
FLOATS = {"x": mindspore.float32, "y": mindspore.float16}


class Typed:
    @check.args_type_check(depth=int, width=(int, float))
    def __call__(self, depth, width=1):
        return depth * (width or 1)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda: check.check_positive_int(3), OK),
        (lambda: check.check_positive_int(0, "n", "Net"), VALUE),
        (lambda: check.check_positive_int(True, "n"), TYPE),
        (lambda: check.check_positive_int(numpy.int32(3), "n"), TYPE),
        (lambda: check.check_int_range(numpy.int32(1), 0, 1, check.INC_RIGHT), OK),
        (lambda: check.check_int_range(1, 0, 1, check.INC_LEFT), VALUE),
        (lambda: check.check_float_range(1, 0.0, 1.0, check.INC_BOTH), TYPE),
        (lambda: check.check_float_range(0.0, 0.0, 1.0, check.INC_NEITHER), VALUE),
        (lambda: check.check_positive_float(math.inf), VALUE),
        (lambda: check.check_is_float(math.nan), VALUE),
        (lambda: check.check_int(2, 1, check.LE), VALUE),
        (lambda: check.check_number("x", 2.5, 1, check.GT, "Net"), OK),
        (lambda: check.check_bool(1), TYPE),
        (lambda: check.check_string("c", ["a", "b"]), VALUE),
        (lambda: check.check_value_type("x", True, [int]), TYPE),
        (lambda: check.check_value_type("x", True, [int, bool]), OK),
        (lambda: check.check_isinstance("x", 1.0, int), VALUE),
        (lambda: check.check_positive_int_sequence((1, 0)), VALUE),
        (lambda: check.check_positive_int_sequence(1), TYPE),
        (lambda: check.Validator.check_positive_int(0), VALUE),
        (lambda: check.check("x", 2, "limit", 3, check.LE, "Net"), OK),
        (lambda: check.check("x", 4, "limit", 3, check.LE, "Net"), VALUE),
        (lambda: check.check("x", (1, 2), "shape", (1, 3)), VALUE),
        (lambda: check.check("x", 4, "limit", 3, check.LE, "Net", TypeError), TYPE),
        (lambda: check.check_type_name("x", mindspore.float32, [mindspore.float16], "Net"), TYPE),
        (lambda: check.check_type_name("x", mindspore.float32, (mindspore.float32,), "Net"), OK),
        (lambda: check.check_subclass("x", mindspore.float32, mindspore.dtype.number, "Net"), OK),
        (lambda: check.check_subclass("x", mindspore.dtype.string, mindspore.dtype.number, "Net"), TYPE),
        (lambda: check.check_subclass("x", mindspore.int8, [mindspore.int8, mindspore.int16], "Net"), OK),
        (lambda: check.check_types_same_and_valid(FLOATS, mindspore.dtype.number_type, "Net"), TYPE),
        (lambda: check.twice((1, 2.0)), TYPE),
        (lambda: check.triple((1, 2)), TYPE),
        (lambda: check.twice([1, 2]), TYPE),
        (lambda: check.twice_sequence([1, 2]), OK),
        (lambda: check.check_str_by_regular("a.b_c"), OK),
        (lambda: check.check_str_by_regular("-a"), VALUE),
        (lambda: check.check_file_name_by_regular("a/b.ckpt"), OK),
        (lambda: check.check_file_name_by_regular("a/b/"), VALUE),
        (lambda: check.check_file_name_by_regular(3), TYPE),
        (lambda: check.check_element_type_of_iterable("x", [1, "a"], [int, str]), OK),
        (lambda: check.check_element_type_of_iterable("x", [1, "a"], [int]), TYPE),
        (lambda: check.check_element_type_of_dict("x", {"a": 1}, [str], [str]), TYPE),
        (lambda: check.check_size_and_element_type_of_tuple("x", (1, 2), 3, int), VALUE),
        (lambda: check.check_axis_in_range(-3, 2), VALUE),
        (lambda: check.check_axis_valid((0, -2), 2), VALUE),
        (lambda: check.check_and_canonicalize_axes("a", 2), TYPE),
        (lambda: Typed()(1, width="2"), TYPE),
        (lambda: Typed()(1, width=None), OK),
    ],
)
def test_checks_of_arguments_answer_as_mindspores_do(call, answer):
    if answer is OK:
        call()
    else:
        with pytest.raises(answer):
            call()


def test_checks_give_values_in_their_form():
    assert check.twice(3) == (3, 3)
    assert check.triple_sequence([1, 2, 3]) == (1, 2, 3)
    assert check.check_axis_valid(None, 2) == (0, 1)
    assert check.check_axis_valid([-1, 0], 2) == (1, 0)
    tensor_type = mindspore.dtype.TensorType(mindspore.float32)
    assert check.check_type_name("x", tensor_type, [mindspore.float32], "Net") is mindspore.float32
    assert Typed()(2, width=3) == 6


def test_a_check_names_the_argument_and_its_class():
    with pytest.raises(ValueError, match="Net: 'channels' is greater than 0, not -1"):
        check.check_positive_int(-1, "channels", "Net")


class Sum(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(2, 2)

    def construct(self, a, b, c):
        return self.fc(a + b + c)


def test_virtual_dataset_cells_keep_the_names_of_the_network():
    net = Sum()
    cell = nn.VirtualDatasetCellTriple(net)
    assert [p.name for p in cell.trainable_params()] == ["fc.weight", "fc.bias"]
    one = mindspore.Tensor(numpy.ones((1, 2), numpy.float32))
    assert (cell(one, one, one).asnumpy() == net(one, one, one).asnumpy()).all()
