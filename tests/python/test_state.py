"""state_dict and load_state_dict of callbacks and metrics: what a recovery point keeps of them."""

import json

import pytest

import muster
from muster import train

BUILT_IN = [
    train.LossMonitor(2),
    train.TimeMonitor(),
    train.ProgressBar(live=False),
    train.EarlyStopping("loss"),
    train.ReduceLROnPlateau("loss"),
    train.ModelCheckpoint("a"),
]


@pytest.mark.parametrize("callback", BUILT_IN, ids=lambda callback: type(callback).__name__)
def test_built_in_callbacks_give_their_state_and_take_it_back(callback):
    state = callback.state_dict()
    assert state and json.loads(json.dumps(state)) == state
    callback.load_state_dict(state)


@pytest.mark.parametrize(
    "callback",
    [train.LambdaCallback(), train.LearningRateScheduler(lambda rate, step: rate), train.Callback()],
)
def test_callbacks_without_state_have_an_empty_one(callback):
    assert callback.state_dict() == {}
    callback.load_state_dict({})


def test_metrics_give_their_state_and_take_it_back():
    first, second = train.Accuracy(), train.Accuracy()
    first.update([[0.9, 0.1], [0.2, 0.8]], [0, 0])
    second.load_state_dict(first.state_dict())
    assert second.eval() == 0.5


def test_a_state_that_does_not_fit_is_an_error():
    with pytest.raises(TypeError, match=r"dict.*list"):
        train.LossMonitor().load_state_dict([1])
    with pytest.raises(muster.CorruptDataError, match="'last_printed'"):
        train.LossMonitor().load_state_dict({"printed": 1})


class Followed(train.EarlyStopping):
    """A built-in callback with something of its own."""

    def __init__(self):
        super().__init__("loss")
        self.seen = 0

    def state_dict(self):
        return {**super().state_dict(), "seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state.pop("seen")
        super().load_state_dict(state)


def test_a_subclass_adds_to_the_state():
    first, second = Followed(), Followed()
    first.seen = 3
    second.load_state_dict(first.state_dict())
    assert second.seen == 3
