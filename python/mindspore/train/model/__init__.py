"""mindspore.train.model: Model with MindSpore's arguments."""

import muster
from mindspore import _device, _names, amp
from mindspore.context import ParallelMode as ParallelMode


class Model(muster.Model):
    """muster.Model: trains, evaluates and predicts with a network."""

    def __init__(
        self,
        network,
        loss_fn=None,
        optimizer=None,
        metrics=None,
        eval_network=None,
        eval_indexes=None,
        amp_level="O0",
        boost_level="O0",
        **settings,
    ):
        manager = settings.pop("loss_scale_manager", None)
        if manager is not None and not isinstance(manager, amp.LossScaleManager):
            kind = type(manager).__name__
            raise TypeError(f"mindspore.Model: loss_scale_manager is a LossScaleManager, not {kind}")
        neutral = {"keep_batchnorm_fp32": (None, True)}  # it is, at every level
        others = {name: (value, *neutral.get(name, (None,))) for name, value in settings.items()}
        _names.refuse("mindspore.Model", boost_level=(boost_level, "O0"), **others)
        self._predicting = None
        if manager is not None and optimizer is not None:
            self._predicting = network
            if eval_network is None and metrics is not None and loss_fn is not None:
                eval_network = muster.train.WithEvalCell(network, loss_fn, amp_level not in (None, "O0"))
            network = amp.build_train_network(
                network, optimizer, loss_fn, amp_level, loss_scale_manager=manager
            )
            loss_fn = optimizer = None
            amp_level = "O0"
        super().__init__(
            network,
            loss_fn,
            optimizer,
            metrics,
            eval_network,
            eval_indexes,
            amp_level,
            evaluation="mindspore",
        )

    def fit(
        self,
        epoch,
        train_dataset,
        valid_dataset=None,
        valid_frequency=1,
        callbacks=None,
        dataset_sink_mode=False,
        valid_dataset_sink_mode=False,
        sink_size=-1,
        initial_epoch=0,
        *,
        resume=None,
    ):
        """Trains, and evaluates after every `valid_frequency` epochs, or after those of a list.

        `resume` is as in muster.Model."""
        super().fit(
            epoch,
            train_dataset,
            valid_dataset,
            valid_frequency,
            callbacks,
            dataset_sink_mode,
            sink_size,
            initial_epoch,
            resume=resume,
        )

    def eval(self, valid_dataset, callbacks=None, dataset_sink_mode=False):
        """The metrics over the dataset, by name."""
        return super().eval(valid_dataset, callbacks)

    def predict(self, *predict_data, backend=None, config=None):
        """What the network gives, not training."""
        if backend is not None or config is not None:
            _device.note_once("note: Model.predict(backend, config) have no effect: there is one backend")
        if self._predicting is not None:
            self._predicting.set_train(False)
            return self._predicting(*predict_data)
        return super().predict(*predict_data)


__all__ = ["Model"]
__getattr__ = _names.missing(__name__)
