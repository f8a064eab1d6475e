"""The last line of a terminal under `muster run`: how the job is, as its scheduler says."""

import pytest
from test_residue import FORMING, Launcher

MODEL = """
import numpy
import muster
from muster import nn, train
from muster.dataset import GeneratorDataset

muster.init()

def rows():
    for i in range(64):
        yield numpy.full(4, i / 64, numpy.float32), numpy.int32(i % 2)

net = nn.Dense(4, 2)
model = train.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 1e-3, 0.9), {"accuracy"})
data = GeneratorDataset(rows, ["data", "label"]).batch(8)
"""
TRAIN = "model.train(10**6, data)"
FIT = "model.fit(9999, data, data, callbacks=train.ProgressBar(width=4, live=True))"


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
    start(MODEL + TRAIN, "-n", "2").wait_for(r"muster: running, step \d+, [\d.e+]+ steps/s")


def test_it_shows_the_progress_bar_of_fit_with_the_values_of_its_evaluations(start):
    fits = start(MODEL + FIT, "-n", "2")
    steps = r"epoch \d+/9999 \[[=> ]+\] \d/8, [\d.e+]+ steps/s, ETA [\d:]+, loss [\d.]+"
    fits.wait_for(steps + r", accuracy 0\.5, eval_loss [\d.]+")
