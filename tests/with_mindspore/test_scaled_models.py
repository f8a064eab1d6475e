"""Model with a loss scale: what callbacks see of it, and which arguments it takes."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn, train


def _batches():
    rows = np.arange(12, dtype=np.float32).reshape(4, 3) / 12
    return ds.NumpySlicesDataset((rows, rows[:, :1]), ["row", "label"], shuffle=False).batch(2)


def _parts():
    net = nn.SequentialCell(nn.Dense(3, 2), nn.BatchNorm1d(2), nn.Dense(2, 1))
    return (
        net,
        nn.MSELoss(),
        nn.Momentum(net.trainable_params(), [0.1, 0.05, 0.01, 0.005, 0.001], 0.9, loss_scale=8.0),
    )


class _Seen(train.Callback):
    def __init__(self):
        self.found = []

    def on_train_step_end(self, run_context):
        context = run_context.original_args()
        rate = float(context.optimizer.get_lr().asnumpy())
        self.found.append((context.network, context.loss_fn, context.optimizer, round(rate, 4)))


@pytest.mark.parametrize(
    "manager",
    [
        None,
        ms.FixedLossScaleManager(8.0, False),
        ms.FixedLossScaleManager(8.0),
        ms.DynamicLossScaleManager(8),
    ],
)
def test_callbacks_see_what_a_model_with_a_loss_scale_was_made_of(manager):
    net, loss, optimizer = _parts()
    seen = _Seen()
    model = train.Model(net, loss, optimizer, loss_scale_manager=manager, metrics={"mse"})
    model.train(2, _batches(), callbacks=[seen], dataset_sink_mode=False)
    model.eval(_batches(), callbacks=[seen])
    assert [each[:3] for each in seen.found] == [(net, loss, optimizer)] * 4
    assert [each[3] for each in seen.found] == [0.05, 0.01, 0.005, 0.001]


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3", "auto"])
@pytest.mark.parametrize("keep", [True, False])
def test_batch_norms_may_be_asked_to_compute_in_less_than_float32(level, keep):
    net, loss, optimizer = _parts()
    train.Model(net, loss, optimizer, amp_level=level, keep_batchnorm_fp32=keep).train(
        1, _batches(), dataset_sink_mode=False
    )
    net, loss, optimizer = _parts()
    amp.build_train_network(net, optimizer, loss, level, keep_batchnorm_fp32=keep)
    with pytest.raises(TypeError, match="keep_batchnorm_fp32"):
        train.Model(net, loss, optimizer, keep_batchnorm_fp32="yes")


def _losses(does):
    """Of the steps of a training whose callback `does(model)` behind each epoch."""
    ms.set_seed(1)
    net, loss_fn, optimizer = _parts()
    model = ms.Model(net, loss_fn, optimizer, loss_scale_manager=ms.FixedLossScaleManager(8.0, False))
    losses = []

    class Looks(train.Callback):
        def on_train_step_end(self, run_context):
            losses.append(float(np.mean(run_context.original_args().net_outputs.asnumpy())))

        def on_train_epoch_end(self, run_context):
            does(model)

    model.train(2, _batches(), Looks())
    return losses


def test_a_training_goes_on_in_its_mode_behind_a_callback_that_predicts():
    rows = ms.Tensor(np.ones((2, 3), np.float32))
    assert _losses(lambda model: model.predict(rows)) == _losses(lambda model: None)


def test_a_network_stays_as_it_predicts_behind_a_training():
    net, loss_fn, optimizer = _parts()
    model = ms.Model(net, loss_fn, optimizer, loss_scale_manager=ms.FixedLossScaleManager(8.0, False))
    model.predict(ms.Tensor(np.ones((2, 3), np.float32)))
    assert not net[1].training
