"""Parameters of a file in a net whose parameters have other dtypes."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Parameter, Tensor, nn


def net_with(values, dtype):
    net = nn.Cell()
    net.w = Parameter(Tensor(values, dtype), name="w")
    return net


@pytest.mark.parametrize(
    ("of_net", "of_file"),
    [
        (ms.float32, ms.float16),
        (ms.float16, ms.float32),
        (ms.float32, ms.bfloat16),
        (ms.int32, ms.int64),
        (ms.int64, ms.int8),
    ],
)
def test_parameters_of_a_file_take_the_dtype_of_the_net_within_a_kind_of_numbers(of_net, of_file):
    net, values = net_with([0, 0], of_net), {"w": Parameter(Tensor([1, 3], of_file), name="w")}
    with pytest.raises(RuntimeError, match="w is"):
        ms.load_param_into_net(net, values, strict_load=True)
    assert ms.load_param_into_net(net, values) == ([], [])
    assert net.w.dtype == of_net
    assert net.w.asnumpy().tolist() == [1, 3]


@pytest.mark.parametrize(
    ("of_net", "of_file"),
    [(ms.float32, ms.int32), (ms.float32, ms.bool_), (ms.int32, ms.float32), (ms.uint8, ms.int32)],
)
def test_other_kinds_of_numbers_are_not_loaded(of_net, of_file):
    with pytest.raises(RuntimeError, match="w is"):
        ms.load_param_into_net(net_with([0], of_net), {"w": Parameter(Tensor([1], of_file), name="w")})
