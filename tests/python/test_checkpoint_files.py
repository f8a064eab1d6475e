"""Files of parameters: .ckpt and .safetensors, and what does not fit the network."""

import numpy
import pytest

import muster
from muster import nn

safetensors = pytest.importorskip("safetensors.numpy")


class Net(nn.Cell):
    def __init__(self, classes=2):
        super().__init__()
        self.body = nn.Dense(3, 4)
        self.head = nn.Dense(4, classes)

    def construct(self, x):
        return self.head(self.body(x))


def values(net):
    return {parameter.name: parameter.asnumpy() for parameter in net.get_parameters()}


def assert_equal(one, other):
    assert set(one) == set(other)
    for name in one:
        numpy.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize("name", ["net.safetensors", "net.ckpt", "net"])
def test_a_network_is_saved_and_loaded_whatever_the_format(tmp_path, name):
    net, other = Net(), Net()
    muster.save_checkpoint(net, str(tmp_path / name))
    assert muster.load_param_into_net(other, muster.load_checkpoint(str(tmp_path / name))) == ([], [])
    assert_equal(values(net), values(other))


def test_the_library_of_safetensors_reads_ours_and_we_read_its_files(tmp_path):
    net, other = Net(), Net()
    muster.save_checkpoint(net, str(tmp_path / "ours.safetensors"))
    read = safetensors.load_file(tmp_path / "ours.safetensors")
    assert_equal(values(net), read)
    safetensors.save_file(read, tmp_path / "theirs.safetensors", metadata={"format": "np"})
    muster.load_param_into_net(other, muster.load_checkpoint(str(tmp_path / "theirs.safetensors")))
    assert_equal(values(net), values(other))


def test_what_does_not_fit_is_named_and_nothing_is_loaded():
    net, other = Net(), Net(classes=5)
    given = {parameter.name: parameter for parameter in net.get_parameters()}
    given["tail.weight"] = given.pop("body.bias")
    before = values(other)
    with pytest.raises(ValueError, match="strict") as error:
        muster.load_param_into_net(other, given)
    for word in ("body.bias", "tail.weight", "head.weight", "(5, 4)", "(2, 4)"):
        assert word in str(error.value)
    assert_equal(values(other), before)
    missing, left = muster.load_param_into_net(other, given, strict=False)
    assert sorted(missing) == ["body.bias", "head.bias", "head.weight"]
    assert sorted(left) == ["head.bias", "head.weight", "tail.weight"]
    numpy.testing.assert_array_equal(other.body.weight.asnumpy(), net.body.weight.asnumpy())


NETS = """
from mindspore import nn

class Net(nn.Cell):
    def __init__(self, classes=2):
        super().__init__()
        self.body = nn.Dense(3, 4)
        self.head = nn.Dense(4, classes)

net, other = Net(), Net()

def error_of(*arguments, **settings):
    try:
        ms.load_param_into_net(*arguments, **settings)
    except RuntimeError as error:
        return str(error)
"""


def test_the_mindspore_names_load_what_fits_and_say_what_did_not(tmp_path, run_with_mindspore):
    told = run_with_mindspore(
        NETS
        + f"""
ms.save_checkpoint(net, {str(tmp_path / "net")!r}, format="safetensors")
given = ms.load_checkpoint({str(tmp_path / "net.safetensors")!r}, format="safetensors")
given["tail.weight"] = given.pop("body.bias")
assert ms.load_param_into_net(other, given) == (["body.bias"], ["tail.weight"])
assert "head.weight" in error_of(Net(classes=5), given)
"""
    )
    assert "body.bias" in told


def test_the_mindspore_names_convert_floats_unless_strict(run_with_mindspore):
    run_with_mindspore(
        NETS
        + """
half = {p.name: p.astype(ms.bfloat16) for p in net.get_parameters()}
assert ms.load_param_into_net(net, half) == ([], [])
assert net.body.weight.dtype == ms.float32
assert "weight" in error_of(net, half, strict_load=True)
"""
    )
