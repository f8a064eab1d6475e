"""The batch of a step that callbacks see."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, train

_ROWS = np.arange(20, dtype=np.float32).reshape(5, 4)
_LABELS = np.arange(5, dtype=np.int32) % 3


def _batches():
    return ds.NumpySlicesDataset({"row": _ROWS, "label": _LABELS}, shuffle=False).batch(2)


def _model():
    network = nn.Dense(4, 3)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return train.Model(network, loss, nn.SGD(network.trainable_params(), 0.01), metrics={"accuracy"})


class _Seen(train.Callback):
    def __init__(self, name):
        super().__init__()
        self.name, self.begun, self.ended, self.between = name, [], [], []

    def _now(self, run_context):
        batch = run_context.original_args()[self.name]
        return None if batch is None else [type(batch), *(each.asnumpy().tolist() for each in batch)]

    def step_begin(self, run_context):
        self.begun.append(self._now(run_context))

    def step_end(self, run_context):
        self.ended.append(self._now(run_context))

    def epoch_end(self, run_context):
        self.between.append(self._now(run_context))


def _whole(epochs):
    starts = [0, 2, 4] * epochs
    return [[list, _ROWS[k : k + 2].tolist(), _LABELS[k : k + 2].tolist()] for k in starts]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_callbacks_see_the_batch_of_a_step(mode):
    ms.set_context(mode=mode)
    seen = _Seen("train_dataset_element")
    _model().train(2, _batches(), callbacks=[seen], dataset_sink_mode=False)
    assert seen.begun == _whole(2) and seen.ended == _whole(2) and seen.between == [None, None]


def test_callbacks_of_an_evaluation_see_its_batches():
    seen, other = _Seen("eval_dataset_element"), _Seen("train_dataset_element")
    _model().eval(_batches(), callbacks=[seen, other], dataset_sink_mode=False)
    assert seen.begun == _whole(1) and seen.ended == _whole(1)
    assert other.begun == other.ended == [None] * 3


def test_evaluations_of_fit_have_their_own_batches():
    seen, other = _Seen("eval_dataset_element"), _Seen("train_dataset_element")
    _model().fit(1, _batches(), _batches().take(1), callbacks=[seen, other], dataset_sink_mode=False)
    assert seen.ended == [None] * 3 + _whole(1)[:1]
    assert other.ended == [*_whole(1), None]


def test_a_checkpoint_of_a_training_is_named_with_its_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saves = train.ModelCheckpoint("net", "kept", train.CheckpointConfig(save_checkpoint_steps=3))
    assert saves.latest_ckpt_file_name == ""
    _model().train(1, _batches(), callbacks=saves, dataset_sink_mode=False)
    assert saves.latest_ckpt_file_name == str(tmp_path / "kept" / "net-1_3.ckpt")
