"""Subclasses in Python whose __init__ does not call super().__init__()."""

import numpy as np
import pytest

import muster
from muster import dataset, nn, train


def trained(callbacks=(), metrics=None):
    rows = [(np.ones(2, np.float32), np.ones(1, np.float32))] * 2
    data = dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(1)
    net = nn.Dense(2, 1)
    model = muster.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), metrics=metrics)
    model.train(1, data, callbacks=list(callbacks))
    return model, data


def test_a_callback_needs_no_call_of_the_base_class():
    class Counter(train.Callback):
        def __init__(self):
            self.steps = 0

        def step_end(self, run_context):
            self.steps += 1

    counter = Counter()
    trained([counter])
    assert counter.steps == 2


def test_a_callback_may_call_the_base_class_and_be_subclassed():
    class Base(train.Callback):
        def __init__(self, name):
            super().__init__()
            self.name = name

    class Named(Base):
        def __init__(self):
            super().__init__("named")

        def step_end(self, run_context):
            self.name += "."

    named = Named()
    trained([named])
    assert named.name == "named.."


def test_a_mixin_before_the_base_class_is_no_obstacle():
    class Mixin:
        def __init__(self):
            self.seen = []

    class Both(Mixin, train.Callback):
        def step_end(self, run_context):
            self.seen.append(run_context.cur_step_num)

    both = Both()
    trained([both])
    assert both.seen == [1, 2]


def test_a_metric_needs_no_call_of_the_base_class():
    class Count(train.Metric):
        def __init__(self):
            self.count = 0

        def clear(self):
            self.count = 0

        def update(self, *inputs):
            self.count += 1

        def eval(self):
            return float(self.count)

    model, data = trained(metrics={"count": Count()})
    assert model.eval(data) == {"count": 2.0}


def test_mindspore_callbacks_need_none_either(run_with_mindspore):
    run_with_mindspore("""
        class Plain(ms.train.Callback):
            def __init__(self):
                self.steps = 0

            def on_train_step_end(self, run_context):
                self.steps += run_context.original_args().cur_step_num

        plain = Plain()
        net = ms.nn.Dense(2, 1)
        rows = [(numpy.ones(2, numpy.float32), numpy.ones(1, numpy.float32))] * 2
        data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(1)
        ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.1)).train(1, data, callbacks=plain)
        assert plain.steps == 3
    """)


BASES = {
    "Cell": nn.Cell,
    "Dense": nn.Dense,
    "SGD": nn.SGD,
    "LossMonitor": train.LossMonitor,
    "ModelCheckpoint": train.ModelCheckpoint,
    "Accuracy": train.Accuracy,
    "Model": muster.Model,
    "GeneratorDataset": dataset.GeneratorDataset,
    "NumpySlicesDataset": dataset.NumpySlicesDataset,
    "Tensor": muster.Tensor,
    "Parameter": muster.Parameter,
    "ExponentialDecayLR": nn.ExponentialDecayLR,
}


@pytest.mark.parametrize("name", BASES)
def test_a_base_class_that_takes_arguments_is_named_with_the_line_to_add(name):
    class Without(BASES[name]):
        def __init__(self):
            pass

    with pytest.raises(TypeError, match=r"Without.__init__ .*super\(\).__init__\(.*" + name):
        Without()


def test_the_signature_and_the_name_of_init_stay():
    import inspect

    class Net(nn.Cell):
        def __init__(self, width, depth=2):
            """Makes it."""
            super().__init__()

    assert list(inspect.signature(Net).parameters) == ["width", "depth"]
    assert Net.__init__.__doc__ == "Makes it."


def test_an_initializer_of_ones_own_fills_parameters():
    class Sevens(muster.nn.Initializer):
        def _initialize(self, array):
            array[:] = 7

    assert muster.nn.Dense(2, 1, weight_init=Sevens()).weight.tolist() == [[7.0, 7.0]]


def test_an_initializer_that_fills_nothing_is_refused():
    class Nothing(muster.nn.Initializer):
        pass

    with pytest.raises(TypeError, match="Nothing defines no _initialize"):
        muster.nn.initializer(Nothing(), [2])


def refused(base, name):
    """A subclass of `base` that defines `name`, made; the error is what is tested."""
    kind = type("Mine", (base,), {name: lambda self, *args: None, "__init__": lambda self: None})
    with pytest.raises(NotImplementedError, match=f"Mine defines {name}, .* would be ignored: "):
        kind()


NEVER_CALLED = [
    (nn.Cell, "parameters_and_names"),
    (nn.Dense, "cells_and_names"),
    (nn.SGD, "get_lr"),
    (nn.Momentum, "decay_weight"),
    (nn.MSELoss, "get_loss"),
    (muster.Model, "_build_train_network"),
    (dataset.GeneratorDataset, "create_dict_iterator"),
    (dataset.NumpySlicesDataset, "get_dataset_size"),
    (dataset.Sampler, "__iter__"),
    (dataset.RandomSampler, "get_indices"),
    (dataset.vision.Resize, "__call__"),
]


@pytest.mark.parametrize(("base", "name"), NEVER_CALLED)
def test_what_mindspore_would_call_and_nothing_calls_here_is_refused(base, name):
    refused(base, name)


def test_datasets_by_mindspores_names_are_refused_likewise(run_with_mindspore):
    run_with_mindspore("""
        class Mine(ms.dataset.GeneratorDataset):
            def create_dict_iterator(self, *args):
                return iter(())

        try:
            Mine([1, 2], ["x"])
        except NotImplementedError as error:
            assert "Mine defines create_dict_iterator" in str(error)
        else:
            raise AssertionError("it was ignored")
    """)


class Doubled(nn.Cell):
    """As libraries define __call__: around that of all cells."""

    def __call__(self, *inputs, **keywords):
        return super().__call__(*inputs, **keywords) * 2


class Scaled(Doubled):
    def construct(self, x, scale=3.0):
        return x * scale


class ScaledAndMoved(Scaled):
    def construct(self, x, scale=3.0):
        return super().construct(x, scale) + 1


@pytest.mark.parametrize(("kind", "moved"), [(Scaled, 0), (ScaledAndMoved, 2)])
def test_a_cells_own_call_stands_around_its_construct_wherever_the_cell_is_called(kind, moved):
    cell, x = kind(), muster.Tensor([1.0, 2.0])
    assert cell(x).tolist() == [6 + moved, 12 + moved]
    assert cell(x, scale=1.0).tolist() == [2 + moved, 4 + moved]
    once = 6 + moved
    assert nn.SequentialCell(cell, cell)(x).tolist()[0] == 6 * once + moved
    assert muster.jit(lambda x: cell(x))(x).tolist() == [once, 12 + moved]
    _, gradient = muster.value_and_grad(lambda x: muster.ops.reduce_sum(cell(x)), 0)(x)
    assert gradient.tolist() == [6, 6]
    assert muster.Model(cell).predict(x).tolist() == [once, 12 + moved]


def test_a_call_of_ones_own_may_compute_it_all():
    class Alone(nn.Cell):
        def __call__(self, x):
            return x + 1

    assert nn.SequentialCell(Alone(), Alone())(muster.Tensor([1.0])).tolist() == [3]


def test_a_second_call_around_the_first_is_refused():
    class Twice(Doubled):
        def __call__(self, x):
            return super().__call__(x)

    with pytest.raises(NotImplementedError, match=r"Twice defines __call__, .* one class has one"):
        Twice()


def test_an_optimizer_of_ones_own_may_define_what_its_construct_calls():
    class Halved(nn.Optimizer):
        def get_lr(self):
            return super().get_lr() * 0.5

        def construct(self, gradients):
            rate = self.get_lr()
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                muster.ops.assign(parameter, parameter - rate * gradient)
            return self.count_step()

    weight = muster.Parameter(muster.Tensor([1.0]), name="w")
    Halved(0.5, [weight])([muster.Tensor([1.0])])
    assert weight.tolist() == [0.75]


def test_a_loss_of_ones_own_may_define_get_loss():
    class Sum(nn.LossBase):
        def get_loss(self, x, weights=1.0):
            return x.sum()

        def construct(self, logits, labels):
            return self.get_loss(logits - labels)

    assert Sum()(muster.Tensor([3.0, 4.0]), muster.Tensor([1.0, 1.0])).item() == 5


MISSPELT = [
    (train.Callback, "on_train_step_ends", "on_train_step_end"),
    (train.Callback, "on_epoch_end", "on_train_epoch_end|on_eval_epoch_end"),
    (train.Callback, "step_ends", "step_end"),
    (train.Accuracy, "updates", "update"),
    (train.Metric, "compute", "eval"),
    (nn.Cell, "contruct", "construct"),
    (nn.Cell, "forward", "construct"),
]


@pytest.mark.parametrize(("base", "name", "meant"), MISSPELT)
def test_a_misspelt_hook_gets_a_warning_with_the_nearest_at_the_class(base, name, meant):
    with pytest.warns(UserWarning, match=f"Mine.{name} by itself; did you mean ({meant})") as warned:

        class Mine(base):
            locals()[name] = lambda self, *args: None

    assert warned[0].filename == __file__


def test_methods_that_are_like_no_hook_get_no_warning(recwarn):
    class Mine(train.Callback):
        def record(self, value):
            pass

        def _step_ends(self):
            pass

        def step_end(self, run_context):
            pass

    class Autoencoder(nn.Cell):
        def construct(self, x):
            return self.reconstruct(x)

        def reconstruct(self, x):
            return x

    assert not recwarn.list


def test_a_callback_is_entered_before_and_left_after_each_call_of_a_model():
    class Entered(train.Callback):
        def __init__(self):
            self.seen = []

        def __enter__(self):
            self.seen.append("enter")
            return self

        def __exit__(self, kind, *_):
            self.seen.append(kind and kind.__name__)

        def begin(self, run_context):
            self.seen.append("begin")

    class Fails(train.Callback):
        def step_end(self, run_context):
            raise KeyError("one")

    callback = Entered()
    model, data = trained([callback], metrics={"mse": train.MSE()})
    assert callback.seen == ["enter", "begin", None]
    model.eval(data, callbacks=callback)
    assert callback.seen[3:] == ["enter", "begin", None]
    with pytest.raises(KeyError):
        trained([callback, Fails()])
    assert callback.seen[6:] == ["enter", "begin", "KeyError"]


def test_a_function_that_is_set_on_a_callback_is_called():
    steps = []
    callback = train.Callback()
    callback.step_end = lambda run_context: steps.append(run_context.cur_step_num)
    trained([callback])
    assert steps == [1, 2]


def test_set_train_of_ones_own_is_called_by_a_model():
    class Frozen(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(2, 1)
            self.drop = nn.Dropout(p=0.5)
            self.modes = []

        def set_train(self, mode=True):
            super().set_train(mode)
            self.drop.set_train(False)
            self.modes.append(mode)
            return self

        def construct(self, x):
            return self.fc(self.drop(x))

    net = Frozen()
    rows = [(np.ones(2, np.float32), np.ones(1, np.float32))] * 2
    data = dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(1)
    muster.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(1, data)
    assert net.modes and all(net.modes)
    assert net.training and net.fc.training and not net.drop.training


def test_print_shows_the_extend_repr_of_ones_own():
    class Scaled(nn.Cell):
        def extend_repr(self):
            return "factor=3"

    assert repr(nn.SequentialCell(Scaled())).splitlines()[1].strip() == "(0): Scaled(factor=3)"
