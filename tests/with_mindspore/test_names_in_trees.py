"""Names of parameters are where they are in the tree, whatever a cell says of its own children."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, train


def test_a_child_without_auto_prefix_names_its_children_once_it_has_a_place(tmp_path):
    class Inner(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self.a, self.b = nn.Dense(2, 2), nn.Dense(2, 2)

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

    net = Outer()
    names = ["inner.a.weight", "inner.a.bias", "inner.b.weight", "inner.b.bias"]
    assert [each.name for each in net.get_parameters()] == names
    ms.save_checkpoint(net, str(tmp_path / "net.ckpt"))
    assert list(ms.load_checkpoint(str(tmp_path / "net.ckpt"))) == names


def test_callbacks_change_the_rate_of_a_step_that_scales_its_loss():
    net = nn.Dense(1, 1)
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    ones = np.ones((2, 1), np.float32)
    rows = ms.dataset.NumpySlicesDataset((ones, ones)).batch(1)
    scale = ms.FixedLossScaleManager(1.0, False)
    model = train.Model(net, nn.MSELoss(), optimizer, loss_scale_manager=scale)
    halved = train.LearningRateScheduler(lambda rate, step: rate / 2)
    model.train(1, rows, callbacks=halved, dataset_sink_mode=False)
    assert np.allclose(Tensor(optimizer.learning_rate).asnumpy(), 0.025)
