"""mindspore._checkparam, and cells of older paths: what MindSpore 2.7.0 answers to the same calls."""

import math

import mindspore
import numpy
import pytest
from mindspore import _checkparam as check
from mindspore import nn

OK, TYPE, VALUE = None, TypeError, ValueError


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
    ],
)
def test_checks_of_arguments_answer_as_mindspores_do(call, answer):
    if answer is OK:
        call()
    else:
        with pytest.raises(answer):
            call()


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
