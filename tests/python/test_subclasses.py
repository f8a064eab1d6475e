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


class Doubled(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (dout * 100,)


class DoubledInside(nn.Cell):
    def __init__(self):
        super().__init__()
        self.doubled = Doubled()


@pytest.mark.parametrize("kind", [Doubled, DoubledInside])
def test_a_gradient_of_ones_own_is_refused_and_not_ignored(kind):
    with pytest.raises(NotImplementedError, match="Doubled defines bprop"):
        kind()


def test_the_way_that_is_named_instead_of_bprop_works():
    class StraightThrough(nn.Cell):
        def construct(self, x):
            y = x * 100
            return y + muster.ops.stop_gradient(x * 2 - y)

    x = muster.Tensor([1.0, 1.0])
    value, gradient = muster.value_and_grad(lambda x: StraightThrough()(x).sum(), 0)(x)
    assert value.item() == 4.0
    assert gradient.tolist() == [100.0, 100.0]


def test_an_initializer_of_ones_own_is_refused():
    class Ones(muster.nn.Initializer):
        def __init__(self):
            super().__init__()

        def _initialize(self, array):
            array[:] = 1

    with pytest.raises(NotImplementedError, match="_initialize"):
        Ones()
