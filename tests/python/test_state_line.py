"""The last line of a terminal under `muster run`: how the job is, as its scheduler says."""

import pytest
from test_residue import FORMING, Launcher

TRAINS = """
import numpy
import muster
from muster import nn, train
from muster.dataset import GeneratorDataset

muster.init()

def rows():
    for i in range(64):
        yield numpy.full(4, i / 64, numpy.float32), numpy.int32(i % 2)

net = nn.Dense(4, 2)
model = train.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 1e-3, 0.9))
model.train(10**6, GeneratorDataset(rows, ["data", "label"]).batch(8))
"""


@pytest.fixture
def start(tmp_path):
    launchers = []

    def begin(*arguments):
        launchers.append(Launcher(tmp_path, *arguments))
        return launchers[-1]

    yield begin
    for launcher in launchers:
        launcher.close()


def test_it_says_who_is_there_while_the_job_forms(start):
    start(FORMING, "-n", "2").wait_for("muster: forming, 1 of 2 workers")


def test_it_says_how_fast_the_job_runs(start):
    start(TRAINS, "-n", "2").wait_for(r"muster: running, step \d+, [\d.e+]+ steps/s")
