"""save_state and load_state: a loop by hand goes on with the bits of one that was never interrupted."""

import sys

import numpy
import pytest
from job import Job
from test_resume import InterruptedHereError, Net, data

import muster
from muster import nn


class Loop:
    """The loop of the guide."""

    def __init__(self, path, epochs=3, stop=None, every=2, missing_ok=True, seed=5):
        muster.set_seed(seed)
        self.net = Net()
        self.optimizer = nn.Momentum(self.net.trainable_params(), 0.1, 0.9)
        self.rows = data()
        self.losses = []
        loss_fn = nn.CrossEntropyLoss()
        parameters = self.net.trainable_params()
        step_fn = muster.value_and_grad(lambda x, y: loss_fn(self.net(x), y), None, parameters)
        self.net.set_train()
        first, done = muster.load_state(path, self.net, self.optimizer, self.rows, missing_ok=missing_ok)
        self.begun_at = (first, done)
        for epoch in range(first, epochs):
            for step, (x, y) in enumerate(self.rows, done):
                loss, gradients = step_fn(x, y)
                self.optimizer(gradients)
                self.losses.append(((epoch, step), loss.item()))
                if (step + 1) % every == 0:
                    muster.save_state(path, self.net, self.optimizer, self.rows)
                if len(self.losses) == stop:
                    raise InterruptedHereError(self)
            done = 0

    def bits(self):
        cells = (self.net, self.optimizer)
        return [p.asnumpy().tobytes() for cell in cells for p in cell.get_parameters()]


@pytest.mark.parametrize("every", [2, 5])
@pytest.mark.parametrize("stop", [5, 7, 12])
def test_a_loop_goes_on_with_the_bits_of_an_unbroken_one(tmp_path, stop, every, capfd):
    whole = Loop(str(tmp_path / "whole.state"), every=every)
    assert whole.begun_at == (0, 0)
    assert "whole.state' yet, so the loop begins anew" in capfd.readouterr().out
    path = str(tmp_path / "run.state")
    with pytest.raises(InterruptedHereError):
        Loop(path, stop=stop, every=every)
    again = Loop(path, every=every, missing_ok=False)
    assert again.begun_at != (0, 0)
    assert again.bits() == whole.bits()
    assert again.losses == whole.losses[-len(again.losses) :]


def test_nothing_yet_is_an_error_unless_it_is_allowed(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"run.state.*missing_ok"):
        Loop(str(tmp_path / "run.state"), missing_ok=False)


def test_damaged_and_foreign_files_are_named(tmp_path):
    path = tmp_path / "run.state"
    Loop(str(path), epochs=1)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(muster.CorruptDataError, match=r"run.state.*Remove this file"):
        Loop(str(path))
    path.write_bytes(whole[:-4] + b"\0\1\2\3")
    with pytest.raises(muster.CorruptDataError, match=r"run.state"):
        Loop(str(path))
    muster.save_checkpoint(Net(), str(tmp_path / "net.safetensors"))
    (tmp_path / "net.safetensors").rename(path)
    with pytest.raises(muster.CorruptDataError, match="no state of a training"):
        Loop(str(path))


def test_a_network_that_does_not_fit_is_told(tmp_path):
    path = str(tmp_path / "run.state")
    muster.save_state(path, Net())
    with pytest.raises(ValueError, match=r"run.state.*does not fit this script"):
        muster.load_state(path, Net(width=9))
    with pytest.raises(ValueError, match="parameter"):
        muster.load_state(path, nn.Dense(2, 2))


def test_counters_may_be_ones_own_and_cells_several(tmp_path):
    path = str(tmp_path / "run.state")
    cells = [nn.Dense(2, 3), nn.Dense(3, 2)]
    cells[0].weight.set_data(muster.Tensor(numpy.full((3, 2), 4, numpy.float32)))
    muster.save_state(path, cells, epoch=7, step=70)
    other = [nn.Dense(2, 3), nn.Dense(3, 2)]
    assert muster.load_state(path, other) == (7, 70)
    for one, two in zip(cells, other, strict=True):
        assert (one.weight.asnumpy() == two.weight.asnumpy()).all()


def test_a_place_in_the_data_that_a_model_would_not_see_is_an_error(tmp_path):
    path = str(tmp_path / "run.state")
    with pytest.raises(InterruptedHereError):
        Loop(path, stop=4)
    rows, net = data(), Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    muster.load_state(path, net, optimizer, rows)
    model = muster.Model(net, nn.CrossEntropyLoss(), optimizer)
    with pytest.raises(ValueError, match=r"load_state.*resume=PATH"):
        model.train(1, rows)


def test_a_checkpoint_of_a_model_is_told(tmp_path):
    from test_resume import Trained

    Trained(tmp_path, epochs=1)
    with pytest.raises(ValueError, match=r"ModelCheckpoint: Model.train"):
        muster.load_state(str(tmp_path / "net-1_4.ckpt"), Net())


SCRIPT = """
import hashlib, os, sys
sys.path[:0] = PATH
import muster
from muster import nn
from test_resume import Net, data

muster.init()
rank = muster.get_rank()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
muster.set_seed(3)
net, loss_fn, rows = Net(), nn.CrossEntropyLoss(), data(shard=rank)
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
reducer = nn.DistributedGradReducer(optimizer.parameters)
net.set_train()
first, done = muster.load_state(FILE, net, optimizer, rows, missing_ok=True)
print("begins at", first, done, flush=True)
for epoch in range(first, 3):
    for step, (x, y) in enumerate(rows, done):
        loss, gradients = grad_fn(x, y)
        optimizer(reducer(gradients))
        if STOP == (epoch, step, rank):  # before it saves
            os._exit(3)
        muster.save_state(FILE, net, optimizer, rows)
    done = 0
print("bits", hashlib.sha256(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
"""


# The same network, over both workers.
PLACES = """
net.first.place("MS_WORKER", 1)
net.last.place("MS_WORKER", 0)
grad_fn = """
PLACED = (
    SCRIPT.replace("data(shard=rank)", "data()")
    .replace("\ngrad_fn = ", PLACES)
    .replace("reducer(gradients)", "gradients")
    .replace("net.get_parameters()))", "net.get_parameters() if p.name.startswith(MINE)))")
    .replace("MINE", '"first" if rank else "last"')
)


@pytest.mark.parametrize("script", [SCRIPT, PLACED], ids=["data parallel", "placed"])
def test_workers_go_on_from_the_newest_state_that_all_have(tmp_path, script):
    def job(name, stop=None):
        code = script.replace("PATH", repr(sys.path)).replace("STOP", repr(stop))
        with Job(code.replace("FILE", repr(str(tmp_path / name))), 2) as running:
            codes = [process.wait(60) for process in running.workers]
            return codes, [worker.output().splitlines() for worker in running.workers]

    codes, whole = job("whole.state")
    assert codes == [0, 0], whole
    assert job("run.state", stop=(1, 3, 1))[0][1] == 3
    codes, again = job("run.state")
    assert codes == [0, 0], again
    assert [lines[-1] for lines in again] == [lines[-1] for lines in whole]
    assert all("begins at 1 3" in lines for lines in again)
