"""Checkpoints whose rows parameter servers write and read themselves: integrated_save=False."""

import hashlib
import re
import shutil
import subprocess

import pytest
from job import Job
from places import BUILD
from test_served_checkpoints import OPTIMIZERS, broken_once, ended, start

import muster
from muster import nn


def whole_end(folder):
    """Hashes of all that the last checkpoint has, as a process alone loads it."""
    end = muster.load_checkpoint(str(folder / "end_1.ckpt"))
    return {name: hashlib.sha256(end[name].asnumpy().tobytes()).hexdigest()[:16] for name in end}


def ended_apart(folder, *arguments, **told):
    ended(folder, *arguments, APART="yes", **told)
    return whole_end(folder)


@pytest.mark.parametrize("table", ["vocabulary", "any"])
def test_a_training_goes_on_from_them_with_any_number_of_servers(tmp_path, table):
    expected = ended(tmp_path / "unbroken", 6, 2, table=table)
    folder = tmp_path / "broken"
    for epochs, servers in ((2, 2), (3, 2), (4, 3), (6, 1)):
        end = ended_apart(folder, epochs, servers, table=table)
    assert end == expected


@pytest.mark.parametrize("table", ["vocabulary", "any"])
def test_it_goes_on_from_one_file_to_several_and_back(tmp_path, table):
    expected = ended(tmp_path / "unbroken", 6, 2, table=table)
    ended(tmp_path / "broken", 2, 2, table=table)
    ended_apart(tmp_path / "broken", 4, 2, table=table)
    assert ended(tmp_path / "broken", 6, 1, table=table) == expected


def test_a_process_alone_has_all_rows(tmp_path):
    ended_apart(tmp_path, 1, 2, table="vocabulary")
    values = muster.load_checkpoint(str(tmp_path / "end_0.ckpt"))
    table = nn.Embedding(30, 6)
    rows = values["table.embedding_table"]
    muster.load_param_into_net(table, {"embedding_table": rows})
    assert (table.embedding_table.asnumpy() == rows.asnumpy()).all()
    assert rows.asnumpy().std() > 0
    assert values["moment1.table.embedding_table"].shape == (30, 6)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_they_have_what_each_optimizer_keeps(tmp_path, optimizer):
    expected = ended(tmp_path / "unbroken", 4, 2, optimizer, table="vocabulary")
    ended_apart(tmp_path / "broken", 2, 2, optimizer, table="vocabulary")
    assert ended_apart(tmp_path / "broken", 4, 3, optimizer, table="vocabulary") == expected


@pytest.mark.parametrize("at", [0, 13])
@pytest.mark.parametrize("table", ["vocabulary", "any"])
@pytest.mark.parametrize("role", ["server", "worker"])
def test_a_process_may_die_in_a_training_that_goes_on_from_them(tmp_path, role, table, at):
    expected = ended(tmp_path / "unbroken", 4, 2, table=table)
    broken_once(tmp_path, role, table, at=at, APART="yes")
    assert whole_end(tmp_path / "broken") == expected


def test_only_those_of_checkpoints_that_are_kept_stay(tmp_path):
    folder = tmp_path / "all"
    ended_apart(folder, 6, 2, table="any")
    checkpoints = {path.name for path in folder.glob("net*.ckpt")}
    assert len(checkpoints) == 5
    assert {path.name.removesuffix(".rows") for path in folder.glob("net*.rows")} == checkpoints
    for path in folder.glob("net*.rows"):
        (save,) = path.iterdir()
        assert sorted(file.name for file in save.iterdir()) == [
            "server_0_of_2.safetensors",
            "server_1_of_2.safetensors",
        ]


def test_a_checkpoint_may_move_with_its_rows(tmp_path):
    end = ended_apart(tmp_path / "here", 1, 2, table="vocabulary")
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert whole_end(tmp_path / "there") == end
    assert ended_apart(tmp_path / "there", 2, 2, table="vocabulary") == ended(
        tmp_path / "unbroken", 2, 2, table="vocabulary"
    )


def test_a_file_that_is_missing_is_named(tmp_path):
    ended_apart(tmp_path, 1, 2, table="vocabulary")
    (file,) = (tmp_path / "end_0.ckpt.rows").glob("*/server_1_of_2.safetensors")
    file.unlink()
    with pytest.raises(FileNotFoundError, match="server_1_of_2"):
        muster.load_checkpoint(str(tmp_path / "end_1.ckpt"))


def test_the_command_line_says_where_rows_are_and_does_not_lose_them(tmp_path):
    ended_apart(tmp_path, 1, 2, table="any")
    command = [BUILD / "apps/muster/muster", "checkpoint"]
    path = tmp_path / "end_0.ckpt"
    shown = subprocess.run([*command, "show", path], capture_output=True, text=True)
    assert f"NAME.rows: parameter servers have written them into {path}.rows" in shown.stdout
    converted = subprocess.run(
        [*command, "convert", path, tmp_path / "whole.ckpt"], capture_output=True, text=True
    )
    assert converted.returncode != 0
    assert "no rows of table 'table.embedding_table'" in converted.stderr
    muster.save_checkpoint(muster.load_checkpoint(str(path)), str(tmp_path / "whole.ckpt"))
    assert "table.embedding_table.ids" in muster.load_checkpoint(str(tmp_path / "whole.ckpt"))


def test_files_of_two_saves_are_told_apart(tmp_path):
    for number in range(2):
        ended_apart(tmp_path / str(number), 1 + number, 2, table="vocabulary")
    (mine,), (other,) = (
        list((tmp_path / str(number) / "end_0.ckpt.rows").glob("*/server_1_of_2.safetensors"))
        for number in range(2)
    )
    shutil.copy(other, mine)
    with pytest.raises(muster.CorruptDataError, match="another checkpoint"):
        muster.load_checkpoint(str(tmp_path / "0" / "end_1.ckpt"))


def test_a_servers_disk_that_takes_no_more_ends_no_training(tmp_path):
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "net-1_5.ckpt.rows").write_text("in the way")
    expected = ended(tmp_path / "unbroken", 2, 2, table="vocabulary")
    assert ended_apart(folder, 2, 2, table="vocabulary") == expected
    assert not (folder / "net-1_5.ckpt").exists()
    assert (folder / "net-2_5.ckpt").exists()


@pytest.mark.parametrize("table", ["vocabulary", "any"])
def test_rows_in_bfloat16_are_those_that_are_saved(tmp_path, table):
    bits = {}
    for name, save in (("whole", ended), ("apart", ended_apart)):
        folder = tmp_path / name
        for epochs, servers in ((2, 2), (4, 3)):
            bits[name] = save(folder, epochs, servers, table=table, ROW_DTYPE="bfloat16")
    unbroken = ended(tmp_path / "unbroken", 4, 1, table=table, ROW_DTYPE="bfloat16")
    assert bits["whole"] == bits["apart"] == unbroken
    rows = muster.load_checkpoint(str(folder / "end_0.ckpt"))["table.embedding_table"].asnumpy()
    assert not (rows.view("uint32") & 0xFFFF).any()
    assert ended(tmp_path / "float32", 4, 2, table=table) != unbroken


# Server 0 is killed by worker 0 between a step's update and its save.
SAVED_WHILE_A_SERVER_DIES = """
import os, signal
from pathlib import Path
import numpy
import muster
from muster import nn, ops
from muster.dataset import NumpySlicesDataset

folder = Path(os.environ["FOLDER"])
if os.environ["MS_ROLE"] == "MS_PSERVER" and os.environ["MS_NODE_ID"] == "0":
    (folder / "pid").write_text(str(os.getpid()))
muster.set_ps_context(enable_ps=True)
muster.init()
muster.set_seed(1)
rank = muster.get_rank()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
net = nn.Embedding(30, 4, where="servers", embedding_table="ones")
optimizer = nn.SGD(net.trainable_params(), 0.5)
grad_fn = muster.value_and_grad(lambda ids: ops.reduce_sum(net(ids)), None, optimizer.parameters)
rows = NumpySlicesDataset((numpy.arange(6, dtype=numpy.int32),), ["ids"], shuffle=False).batch(1)
file, killed = folder / f"{rank}.ckpt", folder / f"killed_{rank}"
for _, step, (ids,) in muster.recoverable(net, optimizer, rows, epochs=1):
    optimizer(grad_fn(ids)[1])
    if step != 3:
        continue
    is_first = not killed.exists()
    killed.touch()
    if is_first and rank == 0:
        os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    muster.save_checkpoint(net, str(file), os.environ["APART"] == "no")
    print("saved" if file.exists() else "nothing", flush=True)
"""


@pytest.mark.parametrize("apart", ["yes", "no"])
def test_a_save_in_a_step_that_loses_a_server_writes_nothing_and_is_made_again(tmp_path, apart):
    """Rows of zeros were written, or the workers crashed."""
    told = {"MS_SERVER_NUM": "2", "MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(tmp_path / "points")}
    with Job(SAVED_WHILE_A_SERVER_DIES, 2, FOLDER=str(tmp_path), APART=apart, **told) as job:
        servers = [start(job, "server", number) for number in range(2)]
        try:
            servers[0].wait()
            servers[0] = start(job, "server", 0)
            said = [worker.output() for worker in job.workers]
            statuses = [worker.wait() for worker in job.workers]
        finally:
            for server in servers:
                server.end()
    assert statuses == [0, 0], said
    trained = [0.5] * 4 + [1.0] * 26
    tries = [re.findall("^(saved|nothing)$", each, re.MULTILINE) for each in said]
    assert tries[0] == ["nothing", "saved"] and tries[1][1:] == ["saved"], said  # 1 may be ahead of the death
    for rank in range(2):
        rows = muster.load_checkpoint(str(tmp_path / f"{rank}.ckpt"))["embedding_table"].asnumpy()
        assert rows[:, 0].tolist() == trained
