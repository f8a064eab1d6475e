"""Survivors stay: their processes, what they have compiled, and what they say while they wait."""

import re
import signal

from job import Job

SCRIPT = """
import os, pathlib, signal
import numpy
import muster
from muster import nn, train
from muster.dataset import NumpySlicesDataset

muster.init()
muster.set_seed(1)
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
died = pathlib.Path(DIED)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(6, 3)

    def construct(self, x):
        print("traced", flush=True)
        return self.dense(x)

class Dies(train.Callback):
    def on_train_step_end(self, run_context):
        if muster.get_rank() == 1 and run_context.original_args().cur_step_num == 12 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)

random = numpy.random.default_rng(1)
rows = random.standard_normal((40, 6)).astype(numpy.float32), random.integers(0, 3, 40).astype(numpy.int32)
net = Net()
model = train.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
model.train(2, NumpySlicesDataset(rows, ["x", "label"]).batch(4), Dies())
"""


def test_survivors_trace_and_compile_nothing_again_and_say_whom_they_wait_for(tmp_path):
    recovery = {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(tmp_path / "recovery")}
    script = SCRIPT.replace("DIED", repr(str(tmp_path / "died")))
    with Job(script, 2, **recovery) as job:
        assert job.workers[1].wait() == -signal.SIGKILL
        job.workers[0].wait_for_line(r"epoch 2: waiting for node 1 \(.*\) - start it again with MS_NODE_ID=1")
        first_life = job.workers[1].output().count("traced")
        job.workers[1] = job.start("worker 1", MS_ROLE="MS_WORKER", MS_NODE_ID="1")
        assert [process.wait() for process in job.everybody()] == [0, 0, 0]
        survivor, second_life = (worker.output().count("traced") for worker in job.workers)
    assert survivor == first_life > 0
    assert second_life == first_life


ROLLS_BACK = """
class Own(train.Callback):
    def __init__(self):
        super().__init__()
        self.seen = 0

    def state_dict(self):  # not shared: each worker has its own
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]

    def on_train_step_end(self, run_context):
        self.seen += 1
        print("seen", self.seen, flush=True)

points = pathlib.Path(os.environ["MS_RECOVERY_PATH"])
class DiesBehindAPoint(Dies):
    def on_train_step_end(self, run_context):
        if run_context.cur_step_num == 12:
            while len(list(points.glob("*/*/call_0.step_10"))) < 2:
                pass
        super().on_train_step_end(run_context)

saver = train.ModelCheckpoint("net", SAVED, train.CheckpointConfig(save_checkpoint_steps=5))
model.train(2, NumpySlicesDataset(rows, ["x", "label"]).batch(4), [Own(), saver, DiesBehindAPoint()])
"""


def test_survivors_say_the_step_that_they_go_back_to_and_why(tmp_path):
    recovery = {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(tmp_path / "recovery")}
    script = SCRIPT[: SCRIPT.index("model.train(")] + ROLLS_BACK.replace(
        "SAVED", repr(str(tmp_path / "saved"))
    )
    with Job(script.replace("DIED", repr(str(tmp_path / "died"))), 2, **recovery) as job:
        assert job.workers[1].wait() == -signal.SIGKILL
        job.workers[1] = job.start("worker 1", MS_ROLE="MS_WORKER", MS_NODE_ID="1")
        assert [process.wait() for process in job.everybody()] == [0, 0, 0]
        told = job.workers[0].output()
    back = re.search(r"all go back to step (\d+) of call 0: (.*)", told)
    assert back and back[1] == "10" and "worker 1" in back[2], told
    seen = [int(step) for step in re.findall(r"^seen (\d+)", told, re.MULTILINE)]
    assert seen[:-10] == list(range(1, len(seen) - 9))
    assert len(seen) >= 21  # steps 11 and more were seen before, too
    assert seen[-10:] == list(range(11, 21))
