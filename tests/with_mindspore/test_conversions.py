"""Checkpoints written in the other format, and loaded beside other work."""

import copy

import mindspore as ms
import numpy
import pytest
from mindspore import nn, train


def values_of(path):
    name = str(path)
    found = ms.load_checkpoint(name, format=name.rpartition(".")[2])
    return {key: value.asnumpy().tolist() for key, value in found.items()}


def test_a_file_becomes_one_of_the_other_format_and_back(tmp_path):
    net = nn.Dense(2, 3)
    path = tmp_path / "net.ckpt"
    ms.save_checkpoint(net, str(path))
    train.ckpt_to_safetensors(str(path))
    assert values_of(tmp_path / "net.safetensors") == values_of(path)
    ms.safetensors_to_ckpt(str(tmp_path / "net.safetensors"), str(tmp_path / "new"), {"weight": "w"})
    back = values_of(tmp_path / "new/net.ckpt")
    assert list(back) == ["w", "bias"] and back["w"] == net.weight.asnumpy().tolist()


def test_the_files_of_ranks_are_written_for_each(tmp_path):
    for rank in (0, 1):
        (tmp_path / f"rank_{rank}").mkdir()
        for name in ("a", "b"):
            value = ms.Tensor(numpy.full(2, rank, numpy.float32))
            ms.save_checkpoint([{"name": "w", "data": value}], str(tmp_path / f"rank_{rank}/{name}.ckpt"))
    ms.ckpt_to_safetensors(str(tmp_path), str(tmp_path / "to"), file_name_regex="^a")
    written = sorted(str(path.relative_to(tmp_path / "to")) for path in (tmp_path / "to").rglob("*.*"))
    assert written == ["rank_0/a.safetensors", "rank_1/a.safetensors"]
    assert values_of(tmp_path / "to/rank_1/a.safetensors") == {"w": [1.0, 1.0]}


def test_a_checkpoint_that_is_loaded_beside_other_work(tmp_path):
    path = str(tmp_path / "net.ckpt")
    net = nn.Dense(2, 3)
    ms.save_checkpoint(net, path)
    found = ms.load_checkpoint_async(path, choice_func=lambda name: name == "bias").result()
    assert list(found) == ["bias"]


def test_what_cannot_be_converted_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("", encoding="utf-8")
    path = str(tmp_path / "net.ckpt")
    ms.save_checkpoint(nn.Dense(1, 1), path)
    for words, call in (
        ("there is no file or folder", lambda: train.ckpt_to_safetensors(str(tmp_path / "none.ckpt"))),
        ("ends with .ckpt", lambda: train.ckpt_to_safetensors(str(tmp_path / "a.txt"))),
        ("ends with .safetensors", lambda: train.safetensors_to_ckpt(path)),
        ("no folder that begins with 'rank'", lambda: train.ckpt_to_safetensors(str(tmp_path))),
        ("save_path is a folder", lambda: train.ckpt_to_safetensors(path, "a.safetensors")),
        ("name_map is a dict, not list", lambda: train.ckpt_to_safetensors(path, name_map=[])),
        ("one name", lambda: train.ckpt_to_safetensors(path, name_map={"weight": "bias"})),
        ("does not match", lambda: train.ckpt_to_safetensors(path, file_name_regex="other")),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_cells_that_were_made_with_initializers_are_copied():
    class Threes(ms.common.initializer.Initializer):
        def _initialize(self, arr):
            arr[:] = 3.0

    for initializer in (ms.common.initializer.Normal(0.1), Threes()):
        assert copy.deepcopy(initializer) is initializer
        net = nn.Dense(2, 3, weight_init=initializer)
        copied = copy.deepcopy(net)
        copied.bias.set_data(copied.bias + 1)
        assert numpy.array_equal(copied.weight.asnumpy(), net.weight.asnumpy())
        assert not numpy.array_equal(copied.bias.asnumpy(), net.bias.asnumpy())


def test_names_of_the_top_are_there():
    from mindspore import BackupAndRestore, OnRequestExit, data_sink, set_algo_parameters
    from mindspore.nn import no_init_parameters

    assert (BackupAndRestore, OnRequestExit, data_sink) == (
        train.BackupAndRestore,
        train.OnRequestExit,
        train.data_sink,
    )
    assert set_algo_parameters is ms.parallel.set_algo_parameters
    assert no_init_parameters is nn.utils.no_init_parameters
