"""Checkpoints with a checksum behind them, as MindSpore writes and reads them."""

import binascii

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.ckpt"


def test_the_sum_of_the_file_stands_behind_it(path):
    net = nn.Dense(2, 3)
    ms.save_checkpoint(net, str(path))
    plain = path.read_bytes()
    ms.save_checkpoint(net, str(path), crc_check=True)
    assert path.read_bytes() == plain + b"crc_num" + binascii.crc32(plain).to_bytes(10, "big")
    for settings in ({}, {"crc_check": True}):
        found = ms.load_checkpoint(str(path), **settings)
        np.testing.assert_array_equal(found["weight"].asnumpy(), net.weight.asnumpy())
    other = nn.Dense(2, 3)
    ms.load_checkpoint(str(path), other)
    np.testing.assert_array_equal(other.weight.asnumpy(), net.weight.asnumpy())
    assert ms.check_checkpoint(str(path))


def test_another_sum_is_an_error_where_it_is_asked_for(path):
    ms.save_checkpoint(nn.Dense(2, 3), str(path), crc_check=True)
    content = bytearray(path.read_bytes())
    content[-20] ^= 1  # in the elements of the last parameter
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"the checksum of .*net\.ckpt is another one"):
        ms.load_checkpoint(str(path), crc_check=True)
    assert sorted(ms.load_checkpoint(str(path))) == ["bias", "weight"]
    assert not ms.check_checkpoint(str(path))


def test_a_file_without_a_sum_is_read_and_said_so(path, capfd):
    ms.save_checkpoint(nn.Dense(2, 3), str(path))
    assert sorted(ms.load_checkpoint(str(path), crc_check=True)) == ["bias", "weight"]
    assert "has no checksum" in capfd.readouterr().err
    assert ms.check_checkpoint(str(path))


@pytest.mark.parametrize("content", [b"", b"x" * 16, b"x" * 40, b"crc_num", b"crc_num" + bytes(10)])
def test_files_that_are_no_checkpoints(content, path):
    path.write_bytes(content)
    # Nothing at all is a checkpoint of no parameters, with a checksum of 0 or without one.
    is_empty = content in (b"", b"crc_num" + bytes(10))
    assert ms.check_checkpoint(str(path)) == is_empty


def test_what_is_wrong_says_so(path):
    net = nn.Dense(2, 3)
    with pytest.raises(TypeError, match="crc_check is True or False, not 1"):
        ms.save_checkpoint(net, str(path), crc_check=1)
    with pytest.raises(NotImplementedError, match="checksums are provided for 'ckpt'"):
        ms.save_checkpoint(net, str(path), crc_check=True, format="safetensors")
    with pytest.raises(TypeError, match="crc_check is True or False, not 'yes'"):
        ms.load_checkpoint(str(path), crc_check="yes")
    with pytest.raises(FileNotFoundError):
        ms.check_checkpoint(str(path))
    assert not ms.check_checkpoint("net.safetensors")
