"""The callback BackupAndRestore: where the next training begins."""

import sys

import numpy
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

from mindspore import dataset, nn, train


class _Noted(train.Callback):
    """What the network holds when a training begins; may cut the training off."""

    def __init__(self, cut=False):
        super().__init__()
        self.cut, self.begin = cut, None

    def on_train_begin(self, run_context):
        self.begin = next(iter(run_context.original_args().network.get_parameters())).asnumpy()

    def on_train_epoch_end(self, run_context):
        if self.cut:
            raise KeyError("cut off")


def _train(folder, noted):
    net = nn.Dense(2, 1, weight_init="zeros")
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    array = numpy.ones((4, 2), numpy.float32)
    rows = dataset.NumpySlicesDataset((array, array[:, :1]), ["x", "y"], shuffle=False).batch(2)
    model.train(2, rows, callbacks=[train.BackupAndRestore(str(folder)), noted], dataset_sink_mode=False)


def test_a_training_begins_with_the_backup_but_not_where_recovery_points_say_more(
    tmp_path, monkeypatch, capfd
):
    with pytest.raises(KeyError, match="cut off"):
        _train(tmp_path, _Noted(cut=True))
    assert (tmp_path / "backup.ckpt").exists()
    told = f"BackupAndRestore leaves {tmp_path / 'backup.ckpt'} as it is"
    with monkeypatch.context() as patched:
        patched.setenv("MS_ENABLE_RECOVERY", "1")
        noted = _Noted(cut=True)
        with pytest.raises(KeyError, match="cut off"):
            _train(tmp_path, noted)
        assert (noted.begin == 0).all()
        assert told in capfd.readouterr().err
    _train(tmp_path, noted := _Noted())
    assert (noted.begin != 0).all()
    assert told not in capfd.readouterr().err
    assert not (tmp_path / "backup.ckpt").exists()
