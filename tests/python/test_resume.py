"""Model.train(resume=...): a training that is started again ends with the bits of an uninterrupted one."""

import pickle
import random
import signal
import subprocess
import sys

import numpy
import pytest
from job import Job, clean_environment
from muster.dataset import NumpySlicesDataset

import muster
from muster import nn, train

BATCHES = 5


class Net(nn.Cell):
    """Draws random numbers, keeps statistics."""

    def __init__(self, width=8):
        super().__init__()
        self.first = nn.Dense(4, width)
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(p=0.3)
        self.last = nn.Dense(width, 3)

    def construct(self, x):
        return self.last(self.drop(self.norm(self.first(x))))


class InterruptedHereError(Exception):
    pass


class Interruption(train.Callback):
    """As a kill behind that step, or within it, before its state is on the disk."""

    def __init__(self, step, within=False):
        super().__init__()
        self.step = step
        self.within = within

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass

    def on_train_step_begin(self, run_context):
        if self.step is not None and not self.within and run_context.cur_step_num == self.step + 1:
            raise InterruptedHereError

    def on_train_step_end(self, run_context):
        if self.within and run_context.cur_step_num == self.step:
            raise InterruptedHereError


class Losses(train.Callback):
    def __init__(self):
        super().__init__()
        self.losses = []

    def state_dict(self):
        return {"losses": self.losses}

    def load_state_dict(self, state):
        self.losses = state["losses"]

    def on_train_step_end(self, run_context):
        self.losses.append(run_context.net_outputs.item())


def bits_in(text):
    """The line that begins so, of which there is one: lines of the two streams come in any order."""
    (line,) = [line for line in text.splitlines() if line.startswith("bits ")]
    return line


def data(rows=BATCHES * 4, shard=0):
    drawn = numpy.random.default_rng(2 + shard)
    x = drawn.standard_normal((rows, 4)).astype(numpy.float32)
    y = drawn.integers(0, 3, rows).astype(numpy.int32)
    return NumpySlicesDataset((x, y), ["x", "y"], shuffle=True).batch(4)


class Trained:
    def __init__(
        self, folder, resume=None, epochs=3, stop=None, every=2, seed=5, width=8, rows=BATCHES * 4, **options
    ):
        if seed is not None:
            muster.set_seed(seed)
        net = Net(width)
        rate = nn.exponential_decay_lr(0.1, 0.9, 100, BATCHES, 1)
        optimizer = nn.Momentum(net.trainable_params(), rate, 0.9)
        self.model = muster.Model(net, nn.CrossEntropyLoss(), optimizer)
        config = train.CheckpointConfig(
            every, keep_checkpoint_max=options.pop("keep", 5), format=options.pop("format", "ckpt")
        )
        self.saver = train.ModelCheckpoint("net", str(folder), config)
        self.losses = Losses()
        callbacks = [self.saver, self.losses, *options.pop("callbacks", [])]
        callbacks.append(Interruption(stop, options.pop("within", False)))
        try:
            self.model.train(epochs, data(rows), callbacks, resume=resume, **options)
            self.is_interrupted = False
        except InterruptedHereError:
            self.is_interrupted = True

    def bits(self):
        return {p.name: p.asnumpy().tobytes() for p in self.model.train_network.get_parameters()}


@pytest.fixture(name="unbroken", scope="module")
def unbroken_fixture(tmp_path_factory):
    return Trained(tmp_path_factory.mktemp("unbroken"))


def assert_same(one, other):
    assert one.losses.losses == other.losses.losses
    assert one.bits() == other.bits()


# In the middle of an epoch, behind its last step, and behind the checkpoint after it.
@pytest.mark.parametrize("stop", [3, 5, 6, 10, 14])
def test_a_training_goes_on_with_the_bits_of_an_unbroken_one(tmp_path, unbroken, stop, capfd):
    first = Trained(tmp_path, stop=stop, every=1 if stop == 5 else 2)
    assert first.is_interrupted
    again = Trained(tmp_path, resume="last", every=1 if stop == 5 else 2)
    assert_same(again, unbroken)
    assert f"going on from '{tmp_path}/net-" in capfd.readouterr().out


def test_a_checkpoint_whose_state_was_never_written_is_left_for_the_one_before(tmp_path, unbroken):
    assert Trained(tmp_path, stop=8, within=True).is_interrupted
    assert (tmp_path / "net-2_3.ckpt").exists()
    assert not (tmp_path / "net-2_3.state").exists()
    assert_same(Trained(tmp_path, resume="last"), unbroken)


def test_a_training_may_be_interrupted_again_and_again(tmp_path, unbroken):
    for stop in (4, 7, 11):
        assert Trained(tmp_path, resume="last", stop=stop).is_interrupted
    assert_same(Trained(tmp_path, resume="last"), unbroken)


def test_a_first_start_begins_anew_and_says_so_in_one_line(tmp_path, unbroken, capfd):
    assert_same(Trained(tmp_path / "new", resume="last"), unbroken)
    lines = [line for line in capfd.readouterr().out.splitlines() if "resume" in line]
    assert lines == [f"resume='last': no checkpoint in '{tmp_path}/new' yet, so the training begins anew"]


def test_a_path_names_any_checkpoint_and_files_of_its_folder_stay(tmp_path, unbroken):
    Trained(tmp_path / "old", stop=9)
    names = sorted(path.name for path in (tmp_path / "old").iterdir())
    again = Trained(tmp_path / "new", resume=str(tmp_path / "old" / "net-1_4.ckpt"), keep=1)
    assert_same(again, unbroken)
    assert sorted(path.name for path in (tmp_path / "old").iterdir()) == names
    by_state = Trained(tmp_path / "other", resume=str(tmp_path / "old" / "net-1_4.state"))
    assert_same(by_state, unbroken)


def test_a_finished_training_goes_on_for_more_epochs(tmp_path, unbroken):
    Trained(tmp_path, epochs=2)
    assert_same(Trained(tmp_path, resume="last", epochs=3), unbroken)
    done = Trained(tmp_path, resume="last", epochs=3)
    assert_same(done, unbroken)


def test_states_go_with_their_checkpoints(tmp_path):
    Trained(tmp_path, keep=2)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["net-3_4.ckpt", "net-3_4.state", "net-3_5.ckpt", "net-3_5.state"]


@pytest.mark.parametrize(
    ("before", "after"), [("safetensors",) * 2, ("ckpt", "safetensors"), ("safetensors", "ckpt")]
)
@pytest.mark.parametrize("within", [False, True])
def test_a_training_goes_on_in_either_format(tmp_path, unbroken, before, after, within):
    assert Trained(tmp_path, stop=8, within=within, format=before).is_interrupted
    assert (tmp_path / f"net-1_4.{before}").exists()
    again = Trained(tmp_path, resume="last", format=after, keep=3)
    assert_same(again, unbroken)
    assert again.saver.latest_ckpt_file_name == f"{tmp_path}/net-3_5.{after}"
    # What the second one kept has a state, by which a third goes on.
    kept = sorted(path.name for path in tmp_path.glob(f"net-3_*.{after}"))
    assert kept == [f"net-3_{step}.{after}" for step in (2, 4, 5)]
    for name in kept:
        assert_same(Trained(tmp_path / "third", resume=str(tmp_path / name)), unbroken)
    assert muster.load_checkpoint(str(tmp_path / kept[-1])).keys() >= {"first.weight", "global_step"}


def test_a_format_that_there_is_not_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="'ckpt' or 'safetensors', not 'onnx'"):
        train.CheckpointConfig(format="onnx")


def test_a_seed_that_nobody_chose_is_that_of_the_checkpoint(tmp_path):
    """In processes of their own: each draws another seed."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys\nsys.path[:0] = {sys.path!r}\nfrom test_resume import Trained\n"
        "done = Trained(sys.argv[1], seed=None, resume='last', stop=int(sys.argv[2]) or None)\n"
        "print(done.losses.losses)\n"
    )

    def run(folder, stop):
        command = [sys.executable, str(script), str(tmp_path / folder), str(stop)]
        done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return eval(done.stdout.splitlines()[-1])

    before = run("folder", 8)
    after = run("folder", 0)
    assert after[:8] == before and len(after) == 15


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda path: path.write_bytes(path.read_bytes()[:-5]),
            ["net-3_4.state", "Remove it", "resume=PATH"],
        ),
        (lambda path: path.write_bytes(b"x" * 100), ["net-3_4.state", "resume=PATH"]),
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b"steps_in_epoch", b"stepz_in_epoch", 1)),
            ["net-3_4.state"],
        ),
    ],
)
def test_a_truncated_or_foreign_state_is_named_with_the_way_out(tmp_path, damage, words):
    Trained(tmp_path, stop=14)
    path = tmp_path / "net-3_4.state"
    before = path.read_bytes()
    damage(path)
    assert path.read_bytes() != before
    with pytest.raises(ValueError) as error:
        Trained(tmp_path, resume="last")
    for word in words:
        assert word in str(error.value)


def test_a_checkpoint_that_was_changed_is_named(tmp_path):
    Trained(tmp_path, stop=14)
    values = muster.load_checkpoint(str(tmp_path / "net-3_4.ckpt"))
    values["first.weight"] = values["first.weight"] + 1
    muster.save_checkpoint(values, str(tmp_path / "net-3_4.ckpt"))
    with pytest.raises(muster.CorruptDataError, match=r"net-3_4.ckpt.*first.weight"):
        Trained(tmp_path, resume="last")


def test_what_does_not_fit_is_said(tmp_path):
    Trained(tmp_path, stop=14)
    with pytest.raises(ValueError, match=r"first.weight|first.bias"):
        Trained(tmp_path, resume="last", width=9)
    with pytest.raises(ValueError, match="5 batches of data an epoch, the script has 4"):
        Trained(tmp_path, resume="last", rows=16)
    with pytest.raises(ValueError, match=r"seed 5, and this script has chosen 6.*set_seed\(5\)"):
        Trained(tmp_path, resume="last", seed=6)
    with pytest.raises(ValueError, match="initial_epoch"):
        Trained(tmp_path, resume="last", initial_epoch=1)
    with pytest.raises(ValueError, match="resume is ''"):
        Trained(tmp_path, resume="")
    with pytest.raises(FileNotFoundError, match=r"nothing.state.*load_checkpoint"):
        Trained(tmp_path, resume=str(tmp_path / "nothing.ckpt"))


class Noise(train.Callback):
    """Draws from the generators of Python and numpy, and keeps where they are."""

    def __init__(self):
        super().__init__()
        self.drawn = []

    def state_dict(self):
        generators = pickle.dumps((random.getstate(), numpy.random.get_state()))
        return {"drawn": self.drawn, "generators": numpy.frombuffer(generators, numpy.uint8)}

    def load_state_dict(self, state):
        self.drawn = [tuple(pair) for pair in state["drawn"]]
        python, of_numpy = pickle.loads(numpy.asarray(state["generators"]).tobytes())
        random.setstate(python)
        numpy.random.set_state(of_numpy)

    def on_train_step_end(self, run_context):
        self.drawn.append((random.random(), numpy.random.random()))


def test_a_callback_may_keep_the_generators_of_python_and_numpy(tmp_path):
    def drawn(folder, stop=None):
        random.seed(1)
        numpy.random.seed(1)
        noise = Noise()
        Trained(tmp_path / folder, resume="last", stop=stop, callbacks=[noise])
        return noise.drawn

    whole = drawn("whole")
    assert drawn("cut", stop=7) == whole[:7]
    assert drawn("cut") == whole


def test_checkpoints_without_a_state_are_no_silent_new_start(tmp_path):
    Trained(tmp_path, stop=14)
    for path in tmp_path.glob("*.state"):
        path.unlink()
    with pytest.raises(ValueError, match=r"net-3_4.ckpt.*net-3_4.state.*load_checkpoint"):
        Trained(tmp_path, resume="last")


def test_last_needs_a_callback_that_says_where(tmp_path):
    model = Trained(tmp_path).model
    with pytest.raises(ValueError, match="ModelCheckpoint among the callbacks"):
        model.train(4, data(), resume="last")


def test_the_librarys_own_callbacks_forget_nothing(tmp_path, capfd):
    Trained(tmp_path, resume="last", callbacks=[train.LossMonitor(1), train.TimeMonitor()])
    assert "has attributes" not in capfd.readouterr().err


# ---- Several workers --------------------------------------------------------------------------------------

SCRIPT = """
import hashlib, sys
sys.path[:0] = PATH
import muster
from muster import nn, train
from test_resume import Interruption, Net, data

muster.init()
rank = muster.get_rank()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
muster.set_seed(3)
net = Net()
model = muster.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
saver = train.ModelCheckpoint("net", FOLDER, train.CheckpointConfig(2))
model.train(3, data(shard=rank), [saver, Interruption(STOP if rank == 1 else None)], resume="last")
weights = b"".join(p.asnumpy().tobytes() for p in model.train_network.get_parameters())
print("bits", hashlib.sha256(weights).hexdigest())
"""


def job(folder, stop=None, script=SCRIPT, **variables):
    code = script.replace("PATH", repr(sys.path)).replace("FOLDER", folder).replace("STOP", repr(stop))
    with Job(code, 2, **variables) as running:
        codes = [process.wait(60) for process in running.workers]
        return codes, [worker.output() for worker in running.workers]


@pytest.mark.parametrize("shared", [True, False])
def test_all_workers_go_on_from_the_newest_that_each_has(tmp_path, shared):
    def folder(name):
        return repr(str(tmp_path / name)) if shared else f"{str(tmp_path / name)!r} + str(rank)"

    codes, whole = job(folder("whole"))
    assert codes == [0, 0], whole
    assert job(folder("cut"), stop=7)[0][1] != 0
    # Worker 1 was killed before its newest state was on the disk.
    (newest,) = tmp_path.glob("cut*/net-2_1.rank_1.state")
    newest.unlink()
    codes, again = job(folder("cut"))
    assert codes == [0, 0], again
    assert [bits_in(text) for text in again] == [bits_in(text) for text in whole]
    assert "net-1_4.ckpt', the newest that all workers have" in again[0]
    assert "going on" not in again[1]


def test_a_worker_without_a_checkpoint_is_named(tmp_path):
    folder = f"{str(tmp_path / 'cut')!r} + str(rank)"
    assert job(folder, stop=7)[0][1] != 0
    for path in (tmp_path / "cut1").iterdir():
        path.unlink()
    codes, texts = job(folder)
    assert 0 not in codes
    assert any("worker 0 has epoch 2, step 1, worker 1 has none" in text for text in texts), texts


# ---- Networks over several workers ------------------------------------------------------------------------

PLACED = """
import hashlib, os, sys
sys.path[:0] = PATH
import muster
from muster import nn, train
from test_resume import InterruptedHereError, Interruption, Net, data

muster.init()
muster.set_seed(3)
net = Net()
net.first.place("MS_WORKER", 1)
net.last.place("MS_WORKER", 0)
model = muster.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
saver = train.ModelCheckpoint("net", FOLDER, train.CheckpointConfig(2))
model.train(3, data(), [saver, Interruption(STOP if muster.get_rank() == 1 else None)], resume="last")
weights = b"".join(p.asnumpy().tobytes() for p in model.gather_parameters().values())
print("bits", hashlib.sha256(weights).hexdigest())
"""


def test_a_network_over_several_workers_goes_on(tmp_path):
    codes, whole = job(repr(str(tmp_path / "whole")), script=PLACED)
    assert codes == [0, 0], whole
    folder = repr(str(tmp_path / "cut"))
    assert 0 not in job(folder, stop=7, script=PLACED)[0]
    codes, again = job(folder, script=PLACED)
    assert codes == [0, 0], again
    assert [bits_in(text) for text in again] == [bits_in(text) for text in whole]
    assert f"going on from '{tmp_path}/cut/net-2_1.ckpt'" in again[0]


def test_a_network_over_several_workers_needs_as_many_again(tmp_path):
    muster.set_seed(3)
    Trained(tmp_path, stop=7)
    codes, texts = job(repr(str(tmp_path)), script=PLACED)
    assert 0 not in codes
    assert any("is the state of worker 0 of 1, and this is worker" in text for text in texts), texts


# ---- Jobs that recover ------------------------------------------------------------------------------------

DIES = """
import os, signal

class Dies(train.Callback):
    def on_train_step_end(self, run_context):
        mark = f"MARK.{rank}"
        if rank in DEAD and run_context.cur_step_num == 9 and not os.path.exists(mark):
            open(mark, "x").close()
            os.kill(os.getpid(), signal.SIGKILL)

net = Net()
"""


def recovering(folder, root, dead):
    """The script, in which workers `dead` kill themselves once, behind step 9; and its variables."""
    dies = DIES.replace("MARK", str(root / "died")).replace("DEAD", repr(dead))
    code = SCRIPT.replace("net = Net()\n", dies).replace("[saver,", "[saver, Dies(),")
    code = code.replace("PATH", repr(sys.path)).replace("FOLDER", folder).replace("STOP", "None")
    return code, {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(root / "points")}


@pytest.mark.parametrize("ending", ["ckpt", "safetensors"])
def test_a_job_that_recovers_goes_on_from_a_checkpoint_and_from_a_death_behind_it(tmp_path, ending):
    _, whole = job(repr(str(tmp_path / "whole")))
    folder = repr(str(tmp_path / "cut"))
    script = SCRIPT.replace("CheckpointConfig(2)", f"CheckpointConfig(2, format={ending!r})")
    assert job(folder, stop=7, script=script)[0][1] != 0
    code, variables = recovering(folder, tmp_path, dead=[1])
    code = code.replace("CheckpointConfig(2)", f"CheckpointConfig(2, format={ending!r})")
    with Job(code, 2, **variables) as running:
        assert running.workers[1].wait(60) == -signal.SIGKILL
        assert f"net-2_1.{ending}" in running.workers[0].wait_for_line(
            "resume='last': going on from '(.*)'"
        ).group(1)
        running.workers[1] = running.start("worker 1", MS_ROLE="MS_WORKER", MS_NODE_ID="1")
        assert [process.wait(60) for process in running.everybody()] == [0, 0, 0]
        again = [worker.output() for worker in running.workers]
    assert [bits_in(text) for text in again] == [bits_in(text) for text in whole]


def test_a_job_that_is_started_again_goes_on_from_its_points_and_asks_for_no_checkpoint(tmp_path):
    _, whole = job(repr(str(tmp_path / "whole")))
    code, variables = recovering(repr(str(tmp_path / "cut")), tmp_path, dead=[0, 1])
    for codes in ([-signal.SIGKILL, -signal.SIGKILL], [0, 0]):
        with Job(code, 2, **variables) as running:
            assert [worker.wait(60) for worker in running.workers] == codes
            texts = [worker.output() for worker in running.workers]
    assert [bits_in(text) for text in texts] == [bits_in(text) for text in whole]
    assert "resuming job" in texts[0] and "resume='last'" not in texts[0]
