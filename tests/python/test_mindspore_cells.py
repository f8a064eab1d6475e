"""Cells by MindSpore's names: loss scales step by step, members, names of parameters in lists."""

import pytest

SETUP = """
from mindspore import nn, amp, train

def numbers(*shape):
    return Tensor((numpy.arange(numpy.prod(shape)).reshape(shape) / 7).astype(numpy.float32))

net = nn.Dense(4, 1)
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
with_loss = nn.WithLossCell(net, nn.MSELoss())
x, y, infinite = numbers(3, 4), numbers(3, 1), Tensor(numpy.full((3, 4), numpy.inf, numpy.float32))

def state():
    return [p.asnumpy().copy() for p in (*optimizer.parameters, *optimizer.get_parameters())]

def equal(a, b):
    return all(numpy.array_equal(p, q) for p, q in zip(a, b))
"""


@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
def test_a_step_that_overflows_updates_nothing_and_shrinks_the_scale(run_with_mindspore, mode):
    run_with_mindspore(f"""
ms.set_context(mode=ms.{mode})
{SETUP}
step = nn.TrainOneStepWithLossScaleCell(with_loss, optimizer, nn.DynamicLossScaleUpdateCell(1024, 2, 2))
step.set_train()
seen = []
for data in (x, x, x, infinite, x):
    before = state()
    loss, overflow, scale = step(data, y)
    seen.append((bool(overflow.asnumpy()), float(scale.asnumpy())))
    assert equal(before, state()) == (data is infinite), seen
assert seen == [(False, 1024), (False, 1024), (False, 2048), (True, 2048), (False, 1024)], seen
""")


def test_the_update_does_not_depend_on_the_scale(run_with_mindspore):
    run_with_mindspore(f"""
{SETUP}
begin = [p.asnumpy().copy() for p in net.get_parameters()]
ends = []
for scale in (Tensor(1.0), Tensor(4096.0), nn.FixedLossScaleUpdateCell(64)):
    for parameter, value in zip(net.get_parameters(), begin):
        parameter.set_data(Tensor(value))
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    step = nn.TrainOneStepWithLossScaleCell(with_loss, optimizer, scale).set_train()
    losses = [float(step(x, y)[0].asnumpy()) for _ in range(3)]
    ends.append(losses)
assert losses[2] < losses[0]
assert numpy.allclose(ends[0], ends[1], rtol=1e-5) and numpy.allclose(ends[0], ends[2], rtol=1e-5), ends
""")


def test_managers_and_scalers_count_as_mindspores_do(run_with_mindspore):
    run_with_mindspore(f"""
{SETUP}
manager = train.DynamicLossScaleManager(16, 2, 3)
scales = []
for overflow in (False, False, True, False, False, False, False):
    manager.update_loss_scale(overflow)
    scales.append(manager.get_loss_scale())
assert scales == [16, 16, 8, 8, 8, 16, 16], scales  # as MindSpore 2.7.0
assert train.FixedLossScaleManager(8, False).get_update_cell() is None
scaler = amp.DynamicLossScaler(16.0, 2, 2)
values = []
for finite in (True, True, False, True):
    scaler.adjust(Tensor(finite))
    values.append(float(scaler.scale_value.asnumpy()))
assert values == [16, 32, 16, 16], values
assert float(scaler.scale(Tensor(2.0)).asnumpy()) == 32
assert float(scaler.unscale((Tensor(32.0),))[0].asnumpy()) == 2
assert not amp.all_finite((x, infinite)).asnumpy() and amp.all_finite(x).asnumpy()
try:
    nn.TrainOneStepWithLossScaleCell(with_loss, optimizer, "16")
    raise SystemExit("taken")
except TypeError as error:
    assert "scale_sense" in str(error)
""")


def test_a_model_with_a_loss_scale_manager_trains_evaluates_and_predicts(run_with_mindspore):
    run_with_mindspore(f"""
{SETUP}
import mindspore.dataset as ds
rows = ds.NumpySlicesDataset((x.asnumpy(), y.asnumpy()), ["x", "y"], shuffle=False).batch(3)
for manager in (train.FixedLossScaleManager(16, False), train.DynamicLossScaleManager(16, 2, 2)):
    scale = 16.0 if isinstance(manager, train.FixedLossScaleManager) else 1.0
    optimizer = nn.Momentum(net.trainable_params(), 0.001, 0.9, loss_scale=scale)
    model = train.Model(net, nn.MSELoss(), optimizer, metrics={{"mse"}}, loss_scale_manager=manager)
    before = model.eval(rows)["mse"]
    model.train(3, rows)
    assert model.eval(rows)["mse"] < before
    assert model.predict(x).shape == (3, 1)
""")


@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
def test_accumulated_gradients_update_once(run_with_mindspore, mode):
    run_with_mindspore(f"""
ms.set_context(mode=ms.{mode})
{SETUP}
accumulate = ms.boost.GradientAccumulation(2, optimizer)
before = state()
assert float(accumulate(Tensor(1.5), (numbers(1, 4), numbers(1))).asnumpy()) == 1.5
assert equal(before, state())
accumulate(Tensor(1.5), (numbers(1, 4), numbers(1)))
assert not equal(before, state())
assert numpy.allclose(optimizer.parameters[0].asnumpy(), before[0] - 0.01 * numbers(1, 4).asnumpy())
""")


def test_losses_and_optimizers_of_ones_own_find_mindspores_members(run_with_mindspore):
    run_with_mindspore(f"""
{SETUP}
class Smooth(nn.LossBase):
    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction

    def construct(self, logits, labels):
        return self.get_loss(logits - labels)

loss = Smooth("sum")
assert loss.reduction == "sum" and loss.reduce and loss.average
assert float(loss(x, x).asnumpy()) == 0

class Own(nn.Optimizer):
    @nn.Optimizer.target.setter
    def target(self, value):
        self._set_base_target(value)

own = Own(nn.exponential_decay_lr(0.1, 0.9, 4, 2, 1), net.trainable_params())
own.target = "CPU"
assert own.target == "CPU" and own.dynamic_lr and not own.is_group_lr and own.param_length == 2
assert nn.optim.Adam is nn.Adam and nn.layer.conv.Conv1d is nn.Conv1d
""")


def test_cells_that_join_a_list_later_are_named_as_mindspores(run_with_mindspore):
    run_with_mindspore("""
from mindspore import nn

class Network(nn.Cell):
    def __init__(self, kind):
        super().__init__()
        self.before = kind([nn.Dense(1, 1, has_bias=False)])
        self.before.append(nn.Dense(1, 1, has_bias=False))
        self.after = kind()
        for _ in range(3):
            self.after.append(nn.SequentialCell([nn.Dense(1, 1, has_bias=False)]))
        self.more = nn.CellList()
        self.more.extend([nn.Dense(1, 1, has_bias=False), nn.Dense(1, 1, has_bias=False)])

for kind in (nn.CellList, nn.SequentialCell):
    names = [parameter.name for parameter in Network(kind).get_parameters()]
    assert names == [  # as MindSpore 2.7.0
        *("before.0.weight", "before.1.weight", "0.0.weight", "0.1.0.weight", "0.2.0.weight"),
        *("0.weight", "1.weight"),
    ], names
""")


def test_float16_computes_in_bfloat16_and_a_line_says_so_once(run_with_mindspore):
    said = run_with_mindspore(f"""
{SETUP}
assert net.to_float(ms.float16)(x).dtype == ms.bfloat16
for level in ("O1", "O2", "O3", "auto"):
    assert amp.auto_mixed_precision(nn.Dense(4, 1), level, ms.float16)(x).dtype == ms.float32
outer = nn.SequentialCell(nn.Dense(4, 1))
assert amp.custom_mixed_precision(outer, white_list=amp.get_white_list())(x).dtype == ms.float32
""")
    assert said.count("float16 computes in bfloat16") == 1


LOOKUPS = """
from mindspore import nn
begin = (numpy.arange(20).reshape(10, 2) / 7 - 1).astype(numpy.float32)
ids = numpy.array([[2, 4, 6, 0, 0], [1, 3, 12, 9, -1]])
values = numpy.array([[1, 0.5, 1, 0, 0], [1, -2, 1, 0.25, 0]], numpy.float32)
fields = numpy.array([[0, 1, 1, 0, 2], [0, 0, 1, 2, 0]], numpy.int32)

def rows(norm=None):
    made = numpy.where((ids < 0) | (ids > 9), 0, 1)[..., None] * begin[numpy.clip(ids, 0, 9)]
    length = numpy.sqrt((made**2).sum(-1, keepdims=True))
    return made if norm is None else made * norm / numpy.maximum(length, norm)
"""


def test_an_embedding_lookup_gives_rows_and_zeros_where_there_is_none(run_with_mindspore):
    run_with_mindspore(f"""
{LOOKUPS}
assert nn.EmbeddingLookup.FIELD_SLICE == "field_slice"
by_rows = {{"target": "DEVICE", "sparse": False, "slice_mode": nn.EmbeddingLookup.TABLE_ROW_SLICE}}
for options in ({{}}, {{"slice_mode": nn.EmbeddingLookup.BATCH_SLICE}}, by_rows):
    for norm in (None, 0.5):
        net = nn.EmbeddingLookup(10, 2, Tensor(begin), max_norm=norm, **options)
        made = net(Tensor(ids, ms.int32)).asnumpy()
        assert numpy.allclose(made, rows(norm), atol=1e-6), made
        assert net.embedding_table.name == "embedding_table"
""")


def test_a_lookup_of_several_fields_puts_the_rows_of_each_together(run_with_mindspore):
    run_with_mindspore(f"""
{LOOKUPS}
def by_hand(operator):
    made = numpy.zeros((2, 3, 2), numpy.float32)
    for sample in range(2):
        for field in range(3):
            chosen = (fields[sample] == field) & (values[sample] != 0)
            if chosen.any():
                of_field = (rows() * values[..., None])[sample, chosen]
                total = abs(values[sample, chosen]).sum()
                made[sample, field] = {{"SUM": of_field.sum(0), "MEAN": of_field.sum(0) / total,
                                       "MAX": of_field.max(0)}}[operator]
    return made

given = Tensor(ids, ms.int32), Tensor(values), Tensor(fields)
lookup = nn.MultiFieldEmbeddingLookup
for operator in (lookup.OPERATOR_SUM, lookup.OPERATOR_MEAN, lookup.OPERATOR_MAX):
    net = nn.MultiFieldEmbeddingLookup(10, 2, 3, Tensor(begin), operator=operator)
    assert numpy.allclose(net(*given).asnumpy(), by_hand(operator), atol=1e-6), operator
    gradients = ms.value_and_grad(lambda *x: net(*x).sum(), None, net.trainable_params())(*given)[1]
    assert all(numpy.isfinite(each.asnumpy()).all() for each in gradients)
""")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("0, 2", "ValueError"),
        ("10, 2.0", "TypeError"),
        ("10, 2, target='GPU'", "ValueError"),
        ("10, 2, slice_mode='rows'", "ValueError"),
        ("10, 2, sparse=False", "ValueError"),
        ("10, 2, vocab_cache_size=5", "ValueError"),
        ("10, 2, vocab_cache_size=-1", "ValueError"),
        ("10, 2, max_norm=-1.0", "ValueError"),
    ],
)
def test_an_embedding_lookup_names_arguments_that_cannot_be(run_with_mindspore, arguments, error):
    run_with_mindspore(f"""
from mindspore import nn
try:
    nn.EmbeddingLookup({arguments})
except {error} as told:
    assert "EmbeddingLookup" in str(told)
else:
    raise AssertionError("no error")
""")
