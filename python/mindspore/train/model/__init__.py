"""mindspore.train.model: Model with MindSpore's arguments."""

import contextlib
import sys

import muster
from mindspore import _device, _names, _optimizers, amp
from mindspore.context import ParallelMode as ParallelMode
from mindspore.train import _metrics


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
        amp.note_batch_norms("mindspore.Model", amp_level, settings.pop("keep_batchnorm_fp32", None))
        others = {name: (value, None) for name, value in settings.items()}
        _names.refuse("mindspore.Model", boost_level=(boost_level, "O0"), **others)
        metrics = _named_metrics(metrics, loss_fn, eval_network, eval_indexes)
        self._predicting = None
        self._trainings = 0  # that go on
        self._given = network, optimizer
        optimizer = _optimizers.of_steps(optimizer)
        if manager is not None and optimizer is not None:
            self._predicting = network
            if eval_network is None and metrics is not None and loss_fn is not None:
                eval_network = muster.train.WithEvalCell(network, loss_fn, amp_level not in (None, "O0"))
            made_of = {"network": network, "loss_fn": loss_fn, "optimizer": optimizer}
            network = amp.build_train_network(
                network, optimizer, loss_fn, amp_level, loss_scale_manager=manager
            )
            network.__dict__["_made_of"] = made_of
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

    def train(
        self,
        epoch,
        train_dataset,
        callbacks=None,
        dataset_sink_mode=False,
        sink_size=-1,
        initial_epoch=0,
        **settings,
    ):
        """muster.Model.train. ValueError where `initial_epoch` leaves none of the epochs."""
        _check_epochs("train", epoch, initial_epoch)
        epochs = _epochs(train_dataset)
        with self._training():
            super().train(epoch, epochs, callbacks, dataset_sink_mode, sink_size, initial_epoch, **settings)

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
        _check_epochs("fit", epoch, initial_epoch)
        with _metrics.model_chooses, self._training():
            super().fit(
                epoch,
                _epochs(train_dataset),
                _passes(valid_dataset),
                valid_frequency,
                callbacks,
                dataset_sink_mode,
                sink_size,
                initial_epoch,
                resume=resume,
            )

    def build(self, train_dataset=None, valid_dataset=None, sink_size=-1, epoch=1, sink_mode=True) -> None:
        """Does nothing: plans are made by the first step, in milliseconds."""

    def infer_train_layout(self, train_dataset, dataset_sink_mode=True, sink_size=-1):
        """How the parameters of the training will lie on this worker: nothing is trained.

        Returns:
            A dict of names and lists: the device matrix, the tensor map, the shape held here, and three
            numbers of MindSpore's, as load_distributed_checkpoint takes it.

        Raises:
            RuntimeError: Not in semi-automatic or automatic mode.
        """
        from mindspore.parallel import _held

        _held.check_mode("Model.infer_train_layout")
        self.explain(train_dataset)  # which divides what strategies say
        network, optimizer = self._given
        return _held.layouts_of([each for each in (network, optimizer) if each is not None])

    def infer_predict_layout(self, *predict_data, skip_backend_compile=False):
        """The same for `predict` of such data."""
        from mindspore.parallel import _held

        _held.check_mode("Model.infer_predict_layout")
        network, _ = self._given
        network.compile(*predict_data)
        return _held.layouts_of([network])

    def eval(self, valid_dataset, callbacks=None, dataset_sink_mode=False):
        """The metrics over the dataset, by name."""
        with _metrics.model_chooses:
            return super().eval(_passes(valid_dataset), callbacks)

    def predict(self, *predict_data, backend=None, config=None):
        """What the network gives, not training."""
        if backend is not None or config is not None:
            _device.note_once("note: Model.predict(backend, config) have no effect: there is one backend")
        if self._predicting is not None:
            return self._predict(*predict_data)
        return super().predict(*predict_data)

    @contextlib.contextmanager
    def _training(self):
        self._trainings += 1
        try:
            yield
        finally:
            self._trainings -= 1

    def _predict(self, *predict_data):
        """By the network within a step of amp's; a training whose callback predicts goes on in its mode."""
        net = self._predicting
        modes = [(cell, cell.training) for _, cell in net.cells_and_names()] if self._trainings else []
        net.set_train(False)
        try:
            return net(*predict_data)
        finally:
            for cell, training in modes:
                cell.training = training


def _shown(name):
    """An attribute of callbacks' contexts: what the script gave to a Model that made a step of it."""
    found, network = getattr(CallbackContext, name), CallbackContext.network

    def get(self):
        made_of = network.__get__(self).__dict__.get("_made_of", {})
        return _optimizers.with_groups(made_of.get(name, found.__get__(self)))

    return property(get, doc=found.__doc__)


CallbackContext = muster.train.CallbackContext
for _name, _member in {name: _shown(name) for name in ("network", "loss_fn", "optimizer")}.items():
    setattr(CallbackContext, _name, _member)


def _given_dataset(self):
    if "train_dataset" not in self.__dict__:
        raise AttributeError("train_dataset is of a training")
    return self.__dict__["train_dataset"]


def _note_dataset(self, dataset):
    self.__dict__["train_dataset"] = dataset._dataset if isinstance(dataset, _Epochs) else dataset


CallbackContext.train_dataset = property(_given_dataset, _note_dataset, doc="What the script trains with.")


class _Passes:
    """Passes over an object of a script that is its own iterator, and begins anew when asked for one."""

    def __init__(self, dataset):
        self._dataset = dataset

    def __iter__(self):
        begin = getattr(self._dataset, "create_tuple_iterator", None)
        return iter(begin(num_epochs=1, do_copy=True) if begin is not None else self._dataset)

    def __len__(self):
        if not hasattr(self._dataset, "get_dataset_size"):
            raise TypeError(f"{type(self._dataset).__name__} has no get_dataset_size")
        return self._dataset.get_dataset_size()


class _Epochs:
    """Passes over a dataset whose rows are made in Python, or that go on at a step: told their numbers."""

    _pipeline = None  # which the Model would read by itself

    def __init__(self, dataset):
        self._dataset = dataset
        self._begun = None  # passes, of the dataset
        self._size_varies = dataset._size_varies or dataset.get_init_step() > 0  # of its first pass, then

    def __getattr__(self, name):
        return getattr(self._dataset, name)

    def __len__(self):
        return len(self._dataset)

    def __iter__(self):
        from mindspore.dataset import _iterators

        made = _iterators.TupleIterator(self._dataset, 1, False, _is_further_pass=self._begun is not None)
        if self._begun is None:
            self._begun = made._number
        made._number, self._begun = self._begun, self._begun + 1
        return made


class _Slices:
    """Batches of a script's own object, which may come from iterators over datasets: the Model joins their
    slices, and those do not."""

    def __init__(self, batches):
        self._batches = batches

    def __getattr__(self, name):
        return getattr(self._batches, name)

    def __len__(self):
        return len(self._batches)

    def __iter__(self):
        from mindspore.dataset import _iterators

        made = self._batches if hasattr(self._batches, "__iter__") else self._batches()
        return _iterators.unjoined(made)


def _passes(dataset):
    """A dataset as muster.Model takes it."""
    begins_anew = hasattr(dataset, "create_tuple_iterator") or hasattr(dataset, "reset")
    passes = _Passes(dataset) if hasattr(dataset, "__next__") and begins_anew else dataset
    slices = sys.modules.get("mindspore.dataset._slices")
    comes_in_slices = slices is not None and slices.are_chosen()
    is_plain = passes is None or hasattr(passes, "_pipeline")
    is_plain = is_plain or isinstance(passes, list | tuple | muster._core.Dataset)
    return passes if is_plain or not comes_in_slices else _Slices(passes)


def _epochs(dataset):
    """A dataset to train with, as muster.Model takes it."""
    passes = _passes(dataset)
    if not hasattr(passes, "_pipeline"):
        return passes
    return _Epochs(passes) if passes._pipeline is None or passes.get_init_step() else passes


def _named_metrics(metrics, loss_fn, eval_network, eval_indexes):
    """The metrics by their names; None where there are none.

    Raises:
        ValueError: Nothing says what they are counted of, or `eval_indexes` are not three.
        KeyError, TypeError: As get_metrics() says.
    """
    made = _metrics.get_metrics(metrics)
    if not made:
        return made
    if eval_network is None and loss_fn is None:
        raise ValueError("Model: metrics need a loss_fn or an eval_network, whose outputs they count")
    are_three = isinstance(eval_indexes, list | tuple) and len(eval_indexes) == 3
    if eval_network is not None and eval_indexes is not None and not are_three:
        raise ValueError(f"Model: eval_indexes are three, of loss, prediction and label: {eval_indexes}")
    return made


def _check_epochs(method, epoch, initial_epoch) -> None:
    """ValueError where none is left; muster.Model takes that as done."""
    if initial_epoch >= epoch:
        raise ValueError(
            f"Model.{method}: epoch is {epoch} and initial_epoch {initial_epoch}, which leaves no epoch: "
            "epoch counts those before, too"
        )


__all__ = ["Model"]
__getattr__ = _names.missing(__name__)
