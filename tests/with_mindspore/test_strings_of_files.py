"""Strings in checkpoints, as append_dict of MindSpore keeps them."""

import sys

import numpy as np
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Tensor, nn

# What MindSpore 2.7.0 writes of append_dict={"note": "grün"}.
OF_MINDSPORE = bytes.fromhex(
    "0a21 0a04 6e6f7465 1219 0800 1203 737472 1a10 67000000 72000000 fc000000 6e000000"
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.ckpt"


def test_strings_beside_parameters_come_back_as_strings(path):
    net = nn.Dense(2, 3)
    texts = {"note": "grün", "empty": "", "long": "x" * 300}
    ms.save_checkpoint(net, str(path), append_dict={**texts, "epoch": 3, "rate": Tensor([0.1])})
    found = ms.load_checkpoint(str(path))
    assert {name: found[name] for name in texts} == texts
    assert sorted(found) == sorted([*texts, "bias", "epoch", "rate", "weight"])
    np.testing.assert_array_equal(found["weight"].asnumpy(), net.weight.asnumpy())
    assert [each.name for each in path.parent.iterdir()] == ["net.ckpt"]


def test_they_stand_in_the_file_as_mindspore_writes_them(path):
    ms.save_checkpoint(nn.Dense(2, 3), str(path))
    plain = path.read_bytes()
    ms.save_checkpoint(nn.Dense(2, 3, weight_init=0.0), str(path), append_dict={"note": "grün"})
    assert path.read_bytes()[len(plain) :] == OF_MINDSPORE
    path.write_bytes(OF_MINDSPORE + plain)
    found = ms.load_checkpoint(str(path))
    assert found["note"] == "grün"
    assert found["weight"].shape == (3, 2)


def test_a_dict_may_have_strings_and_checksums_hold_them(path):
    ms.save_checkpoint({"a": Tensor([1.0]), "b": "x"}, str(path))
    assert ms.load_checkpoint(str(path))["b"] == "x"
    ms.save_checkpoint({"a": Tensor([1.0])}, str(path), append_dict={"b": "y"}, crc_check=True)
    assert ms.load_checkpoint(str(path), crc_check=True)["b"] == "y"
    assert ms.check_checkpoint(str(path))


def test_a_net_takes_the_parameters_and_leaves_the_strings(path):
    net, other = nn.Dense(2, 3), nn.Dense(2, 3)
    ms.save_checkpoint(net, str(path), append_dict={"note": "a text"})
    assert ms.load_param_into_net(other, ms.load_checkpoint(str(path))) == ([], [])
    np.testing.assert_array_equal(other.weight.asnumpy(), net.weight.asnumpy())
    assert sorted(ms.load_checkpoint(str(path), filter_prefix="w")) == ["bias", "note"]


def test_a_file_of_safetensors_keeps_no_strings_and_says_which(path):
    with pytest.raises(TypeError, match="'note' is a string, which a file of 'ckpt' alone keeps"):
        ms.save_checkpoint(nn.Dense(2, 3), str(path), append_dict={"note": "a"}, format="safetensors")


def test_a_write_that_fails_leaves_the_older_file(path):
    ms.save_checkpoint(nn.Dense(2, 3), str(path))
    older = path.read_bytes()
    with pytest.raises((TypeError, ValueError)):
        ms.save_checkpoint({"w": object()}, str(path), append_dict={"note": "a"})
    assert path.read_bytes() == older
    assert [each.name for each in path.parent.iterdir()] == ["net.ckpt"]
