"""Recurrent layers, attention, layers of Transformers; convolutions and normalizations that are newer."""

import copy

import numpy as np
import pytest

import muster
from muster import nn


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def numbers(cell):
    return {parameter.name: parameter.asnumpy().astype(np.float64) for parameter in cell.get_parameters()}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---- Recurrent layers --------------------------------------------------------------------------------------


def rnn_step(given, carried, states):
    return [np.tanh(given + carried)]


def lstm_step(given, carried, states):
    enter, forget, cell, leave = np.split(given + carried, 4, 1)
    c = sigmoid(forget) * states[1] + sigmoid(enter) * np.tanh(cell)
    return [sigmoid(leave) * np.tanh(c), c]


def gru_step(given, carried, states):
    (reset_x, update_x, new_x), (reset_h, update_h, new_h) = np.split(given, 3, 1), np.split(carried, 3, 1)
    update = sigmoid(update_x + update_h)
    new = np.tanh(new_x + sigmoid(reset_x + reset_h) * new_h)
    return [new + update * (states[0] - new)]


KINDS = {nn.RNN: (rnn_step, 1), nn.LSTM: (lstm_step, 2), nn.GRU: (gru_step, 1)}


def recurrent(kind, weights, x, layers, directions, states, lengths):
    """(outputs, states) of x (T, N, features); each sample by itself, for as many steps as it has."""
    step, count = KINDS[kind]
    size = weights["weight_hh_l0"].shape[1]
    behind = [np.zeros((layers * directions, x.shape[1], size)) for _ in range(count)]
    for layer in range(layers):
        outputs = np.zeros((*x.shape[:2], directions * size))
        for direction in range(directions):
            place, end = layer * directions + direction, f"_l{layer}" + ("_reverse" if direction else "")
            for sample, length in enumerate(lengths):
                now = [state[place][sample : sample + 1] for state in states]
                for t in reversed(range(length)) if direction else range(length):
                    given = x[t, sample : sample + 1] @ weights["weight_ih" + end].T
                    carried = now[0] @ weights["weight_hh" + end].T
                    given = given + weights.get("bias_ih" + end, 0)
                    now = step(given, carried + weights.get("bias_hh" + end, 0), now)
                    outputs[t, sample, direction * size : (direction + 1) * size] = now[0][0]
                for state, last in zip(behind, now, strict=True):
                    state[place, sample] = last[0]
        x = outputs
    return x, behind


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_layers": 2, "bidirectional": True},
        {"num_layers": 3, "has_bias": False},
        {"bidirectional": True, "batch_first": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("given", ["x", "states", "lengths", "states and lengths"])
def test_a_recurrent_layer_gives_what_its_steps_give(kind, options, given):
    layers, directions = options.get("num_layers", 1), 1 + options.get("bidirectional", False)
    cell = kind(3, 5, **options)
    x = drawn(6, 4, 3)
    shape, count = (layers * directions, 4, 5), KINDS[kind][1]
    states = [
        drawn(*shape, seed=i) if "states" in given else np.zeros(shape, np.float32) for i in range(count)
    ]
    lengths = [6, 1, 4, 0] if "lengths" in given else [6] * 4
    inputs = [muster.Tensor(x.swapaxes(0, 1).copy() if options.get("batch_first") else x)]
    inputs += [muster.Tensor(state) for state in states if "states" in given]
    inputs += [muster.Tensor(lengths, muster.int32)] if "lengths" in given else []
    outputs, *behind = cell(*inputs)
    expected, expected_behind = recurrent(
        kind, numbers(cell), x.astype(np.float64), layers, directions, states, lengths
    )
    found = outputs.asnumpy()
    np.testing.assert_allclose(
        found.swapaxes(0, 1) if options.get("batch_first") else found, expected, atol=2e-6
    )
    assert len(behind) == count
    for state, other in zip(behind, expected_behind, strict=True):
        np.testing.assert_allclose(state.asnumpy(), other, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_dropout_between_recurrent_layers_is_there_in_training_alone(kind):
    muster.set_seed(1)
    cell, x = kind(3, 8, num_layers=2, dropout=0.5), muster.Tensor(drawn(4, 2, 3))
    cell.set_train(False)
    still = cell(x)[0].asnumpy()
    assert np.array_equal(still, cell(x)[0].asnumpy())
    cell.set_train()
    assert not np.array_equal(still, cell(x)[0].asnumpy())


# ---- Attention ---------------------------------------------------------------------------------------------


def dense(x, weights, name):
    return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0)


def attention(weights, query, key, value, heads, mask=None, prefix=""):
    def split(x, name):
        y = dense(x, weights, prefix + name)
        return y.reshape(*y.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    q, k, v = split(query, "query"), split(key, "key"), split(value, "value")
    scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    y = (shares / shares.sum(-1, keepdims=True)) @ v
    return dense(y.transpose(0, 2, 1, 3).reshape(*query.shape[:2], -1), weights, prefix + "out")


def causal(length):
    return np.tril(np.ones((length, length), bool))


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("mask", [None, "seen", "added", "causal"])
def test_attention_of_a_sequence_to_itself(has_bias, mask):
    cell = nn.MultiHeadAttention(12, 3, has_bias=has_bias, is_causal=mask == "causal")
    x = drawn(2, 5, 12)
    masks = {"seen": drawn(2, 1, 1, 5) < 0.8, "added": drawn(5, 5), "causal": causal(5)}
    inputs = [x] if mask in (None, "causal") else [x, masks[mask]]
    expected = attention(numbers(cell), x, x, x, 3, masks.get(mask))
    np.testing.assert_allclose(cell(*map(muster.Tensor, inputs)).asnumpy(), expected, atol=2e-6)


def test_attention_to_another_sequence():
    cell = nn.MultiHeadAttention(8, 2, key_size=3, value_size=4)
    q, k, v, seen = drawn(2, 5, 8), drawn(2, 7, 3), drawn(2, 7, 4), np.arange(7) < 6
    expected = attention(numbers(cell), q, k, v, 2, seen[None, None, None])
    given = map(muster.Tensor, (q, k, v, seen[None, None, None]))
    np.testing.assert_allclose(cell(*given).asnumpy(), expected, atol=2e-6)


def layer_norm(x, weights, name):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return scaled * weights[f"{name}.gamma"] + weights[f"{name}.beta"]


def residuals(x, weights, norm_first, parts):
    for number, part in enumerate(parts, 1):
        name = f"norm{number}"
        x = x + part(layer_norm(x, weights, name)) if norm_first else layer_norm(x + part(x), weights, name)
    return x


def feed_forward(weights):
    return lambda x: dense(np.maximum(dense(x, weights, "linear1"), 0), weights, "linear2")


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
def test_the_layer_of_an_encoder(norm_first, is_causal):
    cell = nn.TransformerEncoderLayer(8, 2, 16, norm_first=norm_first, is_causal=is_causal)
    x, weights = drawn(2, 5, 8), numbers(cell)
    mask = causal(5) if is_causal else None
    parts = [lambda y: attention(weights, y, y, y, 2, mask, "self_attention."), feed_forward(weights)]
    expected = residuals(x, weights, norm_first, parts)
    np.testing.assert_allclose(cell(muster.Tensor(x)).asnumpy(), expected, atol=5e-6)


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_layer_of_a_decoder(norm_first):
    cell = nn.TransformerDecoderLayer(8, 2, 16, norm_first=norm_first)
    x, memory, weights = drawn(2, 5, 8), drawn(2, 6, 8, seed=1), numbers(cell)
    seen = np.arange(6)[None, None, None] < 4
    parts = [
        lambda y: attention(weights, y, y, y, 2, causal(5), "self_attention."),
        lambda y: attention(weights, y, memory, memory, 2, seen, "cross_attention."),
        feed_forward(weights),
    ]
    expected = residuals(x, weights, norm_first, parts)
    np.testing.assert_allclose(cell(*map(muster.Tensor, (x, memory, seen))).asnumpy(), expected, atol=5e-6)


def test_every_part_of_a_transformers_layer_drops_elements_of_its_own():
    muster.set_seed(1)
    cell = nn.TransformerEncoderLayer(64, 1, 64, dropout=0.5)
    names = [name for name, child in cell.cells_and_names() if isinstance(child, nn.Dropout)]
    assert sorted(names) == ["dropout", "dropout1", "dropout2"]
    cell.set_train()
    x = muster.Tensor(drawn(2, 5, 64))
    assert not np.array_equal(cell(x).asnumpy(), cell(x).asnumpy())


# ---- Convolutions and normalizations -----------------------------------------------------------------------


def conv2d_transpose(x, weight, stride, dilation, sizes, corner, group):
    """Each element of x puts its copy of the kernel into an image whose upper left `corner` is cut off."""
    (n, channels, height, width), (_, outs, kh, kw) = x.shape, weight.shape
    whole = np.zeros((n, outs * group, *(size + cut + 64 for size, cut in zip(sizes, corner, strict=True))))
    per_group = channels // group
    for c, i, j in np.ndindex(channels, height, width):
        rows = i * stride[0] + dilation[0] * np.arange(kh)
        columns = j * stride[1] + dilation[1] * np.arange(kw)
        first = c // per_group * outs
        place = np.ix_(range(n), range(first, first + outs), rows, columns)
        whole[place] += x[:, c, i, j][:, None, None, None] * weight[c]
    return whole[:, :, corner[0] : corner[0] + sizes[0], corner[1] : corner[1] + sizes[1]]


@pytest.mark.parametrize(
    ("options", "sizes", "corner"),
    [
        ({"stride": 2}, (8, 10), (0, 0)),
        ({"stride": 2, "pad_mode": "valid"}, (9, 11), (0, 0)),
        ({"stride": 2, "pad_mode": "pad", "padding": 1}, (7, 9), (1, 1)),
        ({"stride": 2, "pad_mode": "pad", "padding": 1, "output_padding": 1}, (8, 10), (1, 1)),
        ({"stride": (1, 3), "pad_mode": "valid", "group": 2}, (6, 15), (0, 0)),
        ({"dilation": 2, "pad_mode": "pad", "padding": (2, 1, 0, 2)}, (5, 7), (2, 0)),
        ({}, (4, 5), (1, 1)),
    ],
    ids=str,
)
def test_a_transposed_convolution_spreads_its_kernel(options, sizes, corner):
    cell = nn.Conv2dTranspose(4, 6, 3, has_bias=True, **options)
    x = drawn(2, 4, 4, 5)
    pairs = [
        (n, n) if isinstance(n, int) else n for n in (options.get("stride", 1), options.get("dilation", 1))
    ]
    weights = numbers(cell)
    expected = conv2d_transpose(x, weights["weight"], *pairs, sizes, corner, options.get("group", 1))
    found = cell(muster.Tensor(x)).asnumpy()
    np.testing.assert_allclose(found, expected + weights["bias"][None, :, None, None], atol=1e-5)


def test_a_convolution_of_sequences_is_one_of_pictures_of_one_row():
    cell = nn.Conv1d(4, 6, 3, stride=2, pad_mode="pad", padding=1, dilation=2, group=2, has_bias=True)
    picture = nn.Conv2d(4, 6, (1, 3), (1, 2), "pad", (0, 0, 1, 1), (1, 2), 2, has_bias=True)
    picture.weight, picture.bias = cell.weight, cell.bias
    x = drawn(2, 4, 9)
    assert np.array_equal(
        cell(muster.Tensor(x)).asnumpy(), picture(muster.Tensor(x[:, :, None])).asnumpy()[:, :, 0]
    )


@pytest.mark.parametrize("shape", [(3, 6), (3, 6, 5), (2, 6, 4, 3)])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(shape, groups):
    if groups == 6 and len(shape) == 2:
        pytest.skip("one element in a group")
    cell = nn.GroupNorm(groups, 6, gamma_init=drawn(6), beta_init=drawn(6, seed=1))
    x = drawn(*shape, seed=2)
    parts = x.reshape(shape[0], groups, -1)
    normal = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
    spread = (1, 6) + (1,) * (len(shape) - 2)
    expected = normal.reshape(shape) * drawn(6).reshape(spread) + drawn(6, seed=1).reshape(spread)
    np.testing.assert_allclose(cell(muster.Tensor(x)).asnumpy(), expected, atol=1e-5)


def test_rms_norm_over_two_axes():
    cell = nn.RMSNorm((3, 4), gamma_init=drawn(3, 4))
    x = drawn(2, 3, 4, seed=1)
    expected = x / np.sqrt((x**2).mean((1, 2), keepdims=True) + 1e-6) * drawn(3, 4)
    np.testing.assert_allclose(cell(muster.Tensor(x)).asnumpy(), expected, atol=1e-6)


# ---- All of them -------------------------------------------------------------------------------------------

MADE = {
    "RNN": (lambda: nn.RNN(3, 4, num_layers=2, bidirectional=True), (5, 2, 3)),
    "LSTM": (lambda: nn.LSTM(3, 4, num_layers=2), (5, 2, 3)),
    "GRU": (lambda: nn.GRU(3, 4, bidirectional=True, batch_first=True), (2, 5, 3)),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(6, 2), (2, 4, 6)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(6, 2, 8, 0.0, "gelu"), (2, 4, 6)),
    "Conv1d": (lambda: nn.Conv1d(3, 4, 3, has_bias=True), (2, 3, 7)),
    "Conv2dTranspose": (lambda: nn.Conv2dTranspose(3, 4, 3, 2, has_bias=True), (2, 3, 3, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    "RMSNorm": (lambda: nn.RMSNorm((4,)), (3, 4)),
}


@pytest.mark.parametrize("name", MADE)
def test_gradients_are_those_of_differences(name):
    make, shape = MADE[name]
    cell = make()
    x, weighing = drawn(*shape, seed=3), None
    parameters = cell.trainable_params()

    def loss(y):
        nonlocal weighing
        y = cell(y)
        y = y[0] if isinstance(y, tuple) else y
        weighing = drawn(*y.shape, seed=4) if weighing is None else weighing
        return muster.ops.reduce_sum(muster.ops.mul(y, muster.Tensor(weighing)))

    _value, (of_x, of_parameters) = muster.value_and_grad(loss, 0, parameters)(muster.Tensor(x))
    draws = np.random.default_rng(5)

    def differences(write, begin, found):
        for place in draws.choice(begin.size, min(4, begin.size), replace=False):
            values = []
            for step in (1e-2, -1e-2):
                moved = begin.copy()
                moved.flat[place] += step
                write(moved)
                values.append(float(loss(muster.Tensor(x if write is not note_x else moved)).asnumpy()))
            write(begin)
            assert (values[0] - values[1]) / 2e-2 == pytest.approx(found.flat[place], rel=2e-2, abs=2e-2)

    def note_x(moved):
        pass

    differences(note_x, x, of_x.asnumpy())
    for parameter, gradient in zip(parameters, of_parameters, strict=True):
        differences(
            lambda moved, parameter=parameter: parameter.set_data(muster.Tensor(moved)),
            parameter.asnumpy().copy(),
            gradient.asnumpy(),
        )


@pytest.mark.parametrize("name", MADE)
def test_a_copy_gives_the_same_and_has_parameters_of_its_own(name):
    make, shape = MADE[name]
    cell = make()
    other = copy.deepcopy(cell)
    x = muster.Tensor(drawn(*shape))

    def first(y):
        return (y[0] if isinstance(y, tuple) else y).asnumpy()

    assert np.array_equal(first(cell(x)), first(other(x)))
    parameter = next(iter(other.get_parameters()))
    parameter.set_data(muster.Tensor(parameter.asnumpy() + 1))
    assert not np.array_equal(first(cell(x)), first(other(x)))


@pytest.mark.parametrize("name", MADE)
def test_mixed_precision_stays_near(name):
    make, shape = MADE[name]
    cell = make()
    x = muster.Tensor(drawn(*shape))

    def first(y):
        y = y[0] if isinstance(y, tuple) else y
        return muster.ops.cast(y, muster.float32).asnumpy()

    exact = first(cell(x))
    cell.to_float(muster.bfloat16)
    np.testing.assert_allclose(first(cell(x)), exact, atol=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.LSTM(0, 4), r"LSTM: input_size.*least 1.*0"),
        (lambda: nn.LSTM(3, 4, dropout=1.0), r"LSTM: dropout.*\[0, 1\)"),
        (lambda: nn.RNN(3, 4, activation="gelu"), r"RNN: activation is 'tanh' or 'relu', not 'gelu'"),
        (lambda: nn.LSTM(3, 4)(muster.Tensor(drawn(5, 2, 4))), r"\(5, 2, 4\).*\(T, N, 3\)"),
        (lambda: nn.GRU(3, 4, batch_first=True)(muster.Tensor(drawn(5, 3))), r"\(5, 3\).*\(N, T, 3\)"),
        (
            lambda: nn.LSTM(3, 4)(muster.Tensor(drawn(5, 2, 3)), muster.Tensor(drawn(1, 2, 4))),
            r"LSTM: 2 inputs do not fit: x, or x and h and c",
        ),
        (
            lambda: nn.GRU(3, 4)(muster.Tensor(drawn(5, 2, 3)), muster.Tensor(drawn(2, 2, 4))),
            r"state \(2, 2, 4\) does not fit: \(1, 2, 4\)",
        ),
        (
            lambda: nn.GRU(3, 4)(muster.Tensor(drawn(5, 2, 3)), muster.Tensor([1, 2, 3], muster.int32)),
            r"lengths \(3,\) do not fit: \(2,\)",
        ),
        (lambda: nn.MultiHeadAttention(10, 3), r"num_heads 3 must divide embed_size 10"),
        (
            lambda: nn.MultiHeadAttention(8, 2)(muster.Tensor(drawn(5, 8))),
            r"\(5, 8\).*\(N, length, features\)",
        ),
        (
            lambda: nn.TransformerEncoderLayer(8, 2)(muster.Tensor(drawn(2, 5, 6))),
            r"\(2, 5, 6\).*length, 8\)",
        ),
        (lambda: nn.TransformerDecoderLayer(8, 2)(muster.Tensor(drawn(2, 5, 8))), r"x and memory"),
        (
            lambda: nn.Conv1d(3, 4, 3)(muster.Tensor(drawn(2, 3, 4, 5))),
            r"Conv1d.*\(2, 3, 4, 5\).*\(N, 3, L\)",
        ),
        (lambda: nn.Conv1d(3, 4, 3)(muster.Tensor(drawn(2, 4, 5))), r"Conv1d.*\(2, 4, 5\).*\(N, 3, L\)"),
        (lambda: nn.Conv2dTranspose(3, 4, 3, output_padding=1), r"output_padding needs pad_mode 'pad'"),
        (
            lambda: nn.Conv2dTranspose(3, 4, 3, 2, "pad", output_padding=2),
            r"output_padding \(2, 2\) must be.*below",
        ),
        (
            lambda: nn.Conv2dTranspose(3, 4, 3, 1, "pad", 4)(muster.Tensor(drawn(1, 3, 2, 2))),
            r"the padding leaves an output of -4 x -4",
        ),
        (lambda: nn.GroupNorm(4, 6), r"num_groups 4 must divide num_channels 6"),
        (lambda: nn.GroupNorm(2, 6)(muster.Tensor(drawn(2, 4, 3))), r"\(2, 4, 3\).*\(N, 6"),
        (lambda: nn.RMSNorm((4,))(muster.Tensor(drawn(2, 3))), r"last axes of \(2, 3\) are not \(4,\)"),
    ],
)
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
