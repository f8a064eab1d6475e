"""Recurrent cells and layers: RNN, LSTM and GRU; several layers, both directions, samples of own lengths."""

import math

import muster
from muster import ops


def _linear(weight, bias, dtype):
    """The map of x (..., features) in `dtype` to x weight^T, plus the bias where there is one.

    Made once for all steps: the weight is transposed once, and its gradients are summed before they are.
    """
    columns = ops.transpose(_as(weight, dtype), (1, 0))
    offset = None if bias is None else _as(bias, dtype)

    def linear(x):
        y = ops.matmul(ops.reshape(x, (-1, x.shape[-1])), columns)
        if offset is not None:
            y = ops.bias_add(y, offset)
        return ops.reshape(y, (*x.shape[:-1], columns.shape[1]))

    return linear


def _as(parameter, dtype):
    return parameter if parameter.dtype is dtype else ops.cast(parameter, dtype)


# One step: (what the input gives, the state before, what the state gives) to the state, h first.


def _rnn_step(activation):
    def step(given, state, carried):
        return (activation(ops.add(given, carried(state[0]))),)

    return step


def _lstm_step(given, state, carried):
    gates = ops.add(given, carried(state[0]))
    enter, forget, cell, leave = ops.split(gates, gates.shape[1] // 4, 1)
    c = ops.add(ops.mul(ops.sigmoid(forget), state[1]), ops.mul(ops.sigmoid(enter), ops.tanh(cell)))
    return ops.mul(ops.sigmoid(leave), ops.tanh(c)), c


def _gru_step(given, state, carried):
    h = state[0]
    size = h.shape[1]
    reset_x, update_x, new_x = ops.split(given, size, 1)
    reset_h, update_h, new_h = ops.split(carried(h), size, 1)
    reset = ops.sigmoid(ops.add(reset_x, reset_h))
    update = ops.sigmoid(ops.add(update_x, update_h))
    new = ops.tanh(ops.add(new_x, ops.mul(reset, new_h)))
    return (ops.add(new, ops.mul(update, ops.sub(h, new))),)


_GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


def _step_of(kind: str, nonlinearity: str):
    if kind == "RNN":
        return _rnn_step({"tanh": ops.tanh, "relu": ops.relu}[nonlinearity])
    return {"LSTM": _lstm_step, "GRU": _gru_step}[kind]


def _check(owner: str, **counts) -> None:
    for name, value in counts.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{owner}: {name} is a whole number of at least 1, not {value!r}")


def _check_nonlinearity(owner: str, nonlinearity) -> None:
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"{owner}: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")


def _uniform(shape, hidden_size: int, name: str, dtype) -> muster.Parameter:
    initial = muster.initializers.uniform(1 / math.sqrt(hidden_size))
    return muster.Parameter(muster.nn.initializer(initial, shape, dtype), name=name)


# ---- One step ----------------------------------------------------------------------------------------------


class RNNCellBase(muster.Cell):
    """Weights and biases of one step, `num_chunks` gates of them: what cells of scripts' own derive from."""

    def __init__(self, input_size, hidden_size, has_bias, num_chunks, dtype=muster.float32):
        super().__init__()
        _check(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size, self.has_bias = input_size, hidden_size, bool(has_bias)
        rows = num_chunks * hidden_size
        self.weight_ih = _uniform((rows, input_size), hidden_size, "weight_ih", dtype)
        self.weight_hh = _uniform((rows, hidden_size), hidden_size, "weight_hh", dtype)
        self.bias_ih = _uniform((rows,), hidden_size, "bias_ih", dtype) if has_bias else None
        self.bias_hh = _uniform((rows,), hidden_size, "bias_hh", dtype) if has_bias else None

    def reset_parameters(self, dtype=muster.float32):
        """Draws all of them anew."""
        for parameter in self.get_parameters():
            bound = muster.initializers.uniform(1 / math.sqrt(self.hidden_size))
            parameter.set_data(muster.nn.initializer(bound, parameter.shape, dtype))


def _one_step(step_of):
    """A function of one step, as scripts for MindSpore import it, for weights that are given."""

    def step(inputs, hidden, w_ih, w_hh, b_ih, b_hh):
        state = hidden if isinstance(hidden, tuple | list) else (hidden,)
        given = _linear(w_ih, b_ih, inputs.dtype)(inputs)
        after = step_of(given, state, _linear(w_hh, b_hh, state[0].dtype))
        return after if len(after) > 1 else after[0]

    return step


_rnn_tanh_cell, _rnn_relu_cell = _one_step(_rnn_step(ops.tanh)), _one_step(_rnn_step(ops.relu))
_lstm_cell, _gru_cell = _one_step(_lstm_step), _one_step(_gru_step)


class _Step(RNNCellBase):
    kind = "RNN"

    def __init__(self, input_size, hidden_size, has_bias=True, nonlinearity="tanh", dtype=muster.float32):
        _check_nonlinearity(type(self).__name__, nonlinearity)
        super().__init__(input_size, hidden_size, has_bias, _GATES[self.kind], dtype)
        self.nonlinearity = nonlinearity

    def construct(self, x, hx):
        """The state after x (N, input_size), from the state before, (N, hidden_size)."""
        state = hx if isinstance(hx, tuple | list) else (hx,)
        for what, tensor, size in (("x", x, self.input_size), *(("hx", h, self.hidden_size) for h in state)):
            if tensor.ndim != 2 or tensor.shape[1] != size:
                raise ValueError(
                    f"{type(self).__name__}: {what} {tensor.shape} does not fit: (N, {size}) is needed"
                )
        bias_ih, bias_hh = (self.bias_ih, self.bias_hh) if self.has_bias else (None, None)
        given = _linear(self.weight_ih, bias_ih, x.dtype)(x)
        step = _step_of(self.kind, self.nonlinearity)
        after = step(given, state, _linear(self.weight_hh, bias_hh, state[0].dtype))
        return after if len(after) > 1 else after[0]


class RNNCell(_Step):
    """h' = tanh(x weight_ih^T + bias_ih + h weight_hh^T + bias_hh), or relu of it. Elman, 1990."""


class LSTMCell(_Step):
    """(h, c) after one step of a long short-term memory: gates in, forget, cell, out. Hochreiter, 1997."""

    kind = "LSTM"

    def __init__(self, input_size, hidden_size, has_bias=True, dtype=muster.float32):
        super().__init__(input_size, hidden_size, has_bias, dtype=dtype)


class GRUCell(_Step):
    """h after one step of a gated recurrent unit: gates reset, update, new. Cho et al., 2014."""

    kind = "GRU"

    def __init__(self, input_size, hidden_size, has_bias=True, dtype=muster.float32):
        super().__init__(input_size, hidden_size, has_bias, dtype=dtype)


# ---- Layers ------------------------------------------------------------------------------------------------


def _steps(step, x, weights, state, seq_length=None, backwards=False):
    """The outputs of a layer in one direction for x (T, N, features), and the state behind the last step."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    given = ops.unstack(_linear(weight_ih, bias_ih, x.dtype)(x))
    carried = _linear(weight_hh, bias_hh, state[0].dtype)
    steps = range(len(given))
    outputs = [None] * len(given)
    for t in reversed(steps) if backwards else steps:
        after = step(given[t], state, carried)
        outputs[t] = after[0]
        if seq_length is not None:
            inside = ops.expand_dims(ops.greater(seq_length, t), 1)
            outputs[t] = ops.select(inside, after[0], ops.zeros_like(after[0]))
            after = tuple(ops.select(inside, new, old) for new, old in zip(after, state, strict=True))
        state = after
    return ops.stack(outputs), state


def lstm_of_flat_weights(x, h, c, w, hidden_size: int, has_bias: bool):
    """(outputs, h, c) of one LSTM layer over x (T, N, features) whose weights lie in `w` one behind the
    other: of the input, of the state, then one bias. What is behind them in `w` is not used.

    ValueError when `w` has too few elements.
    """
    rows, inputs = 4 * hidden_size, x.shape[2]
    sizes = [rows * inputs, rows * hidden_size, *([rows] if has_bias else [])]
    flat = ops.reshape(w, (-1,))
    if flat.shape[0] < sum(sizes):
        raise ValueError(
            f"LSTM: w has {flat.shape[0]} elements; {inputs} inputs and a hidden_size of {hidden_size} need "
            f"{sum(sizes)}"
        )
    parts = ops.split(flat[: sum(sizes)], sizes, 0)
    weights = [ops.reshape(parts[0], (rows, inputs)), ops.reshape(parts[1], (rows, hidden_size)), None, None]
    if has_bias:
        weights[2] = parts[2]
    y, after = _steps(_lstm_step, x, weights, (h[0], c[0]))
    return y, *(ops.expand_dims(state, 0) for state in after)


class _Layers(muster.Cell):
    kind = "RNN"

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        has_bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        dtype=muster.float32,
        nonlinearity="tanh",
    ):
        super().__init__()
        name = type(self).__name__
        _check(name, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        _check_nonlinearity(name, nonlinearity)
        if not isinstance(dropout, float):
            raise TypeError(f"{name}: dropout is a float, not {type(dropout).__name__}")
        if not isinstance(bidirectional, bool):
            raise TypeError(f"{name}: bidirectional is a bool, not {type(bidirectional).__name__}")
        if not 0 <= dropout < 1:
            raise ValueError(f"{name}: dropout is in [0, 1), not {dropout}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.has_bias, self.batch_first, self.bidirectional = bool(has_bias), batch_first, bidirectional
        self.dropout, self.nonlinearity = dropout, nonlinearity
        if dropout > 0 and num_layers > 1:
            self.dropout_op = muster.nn.Dropout(p=float(dropout))
        self._make_parameters(muster.dtype(dtype))

    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def _make_parameters(self, dtype) -> None:
        rows, directions = _GATES[self.kind] * self.hidden_size, self._directions()
        for what in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if self.has_bias else 2]:
            for layer in range(self.num_layers):
                inputs = self.input_size if layer == 0 else self.hidden_size * len(directions)
                shape = {"weight_ih": (rows, inputs), "weight_hh": (rows, self.hidden_size)}.get(
                    what, (rows,)
                )
                for direction in directions:
                    name = f"{what}_l{layer}{direction}"
                    setattr(self, name, _uniform(shape, self.hidden_size, name, dtype))

    def _weights(self, layer: int, direction: str):
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return [
            getattr(self, f"{name}_l{layer}{direction}")
            if self.has_bias or name.startswith("weight")
            else None
            for name in names
        ]

    def to_float(self, dst_type):
        """Changes nothing: layers compute in the dtype of their input, as MindSpore's do. Gives the cell."""
        if dst_type not in (muster.float16, muster.float32, muster.bfloat16):
            raise ValueError(
                f"{type(self).__name__}.to_float: float16, float32 or bfloat16, not {dst_type!r}"
            )
        return self

    def construct(self, x, hx=None, seq_length=None):
        """The outputs of the last layer for x (T, N, input_size), and the last states of all layers."""
        if x.ndim != 3 or x.shape[2] != self.input_size:
            form = "(N, T" if self.batch_first else "(T, N"
            raise ValueError(
                f"{type(self).__name__}: x {x.shape} does not fit: {form}, {self.input_size}) is needed"
            )
        if self.batch_first:
            x = ops.transpose(x, (1, 0, 2))
        states = self._begin(x, hx)
        ends = []
        for layer in range(self.num_layers):
            x, found = self._layer(x, layer, states, seq_length)
            ends += found
            if self.dropout > 0 and layer < self.num_layers - 1:
                x = self.dropout_op(x)
        if self.batch_first:
            x = ops.transpose(x, (1, 0, 2))
        last = tuple(ops.stack(parts) for parts in zip(*ends, strict=True))
        return x, last if len(last) > 1 else last[0]

    def _begin(self, x, hx):
        """For each layer and direction the state before the first step."""
        count = self.num_layers * len(self._directions())
        shape = (count, x.shape[1], self.hidden_size)
        parts = 2 if self.kind == "LSTM" else 1
        if hx is None:
            given = (ops.zeros(shape, x.dtype),) * parts
        else:
            given = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
        if len(given) != parts or any(part.shape != shape for part in given):
            found = [part.shape for part in given]
            raise ValueError(f"{type(self).__name__}: hx is {parts} of {shape}, not {found}")
        return list(zip(*(ops.unstack(part) for part in given), strict=True))

    def _layer(self, x, layer, states, seq_length):
        outputs, ends = [], []
        for index, direction in enumerate(self._directions()):
            state = states[layer * len(self._directions()) + index]
            output, end = self._direction(x, self._weights(layer, direction), state, seq_length, index == 1)
            outputs.append(output)
            ends.append(end)
        return outputs[0] if len(outputs) == 1 else ops.concat(outputs, 2), ends

    def _direction(self, x, weights, state, seq_length, backwards):
        step = _step_of(self.kind, self.nonlinearity)
        return _steps(step, x, weights, state, seq_length, backwards)


class RNN(_Layers):
    """Layers of RNNCell over sequences (T, N, input_size), or (N, T, input_size) with `batch_first`.

    Gives the outputs (T, N, directions hidden_size) and the last states (layers directions, N, hidden_size).
    Behind a sample's `seq_length` outputs are 0 and the state stays.
    """

    def __init__(self, *args, **kwargs):
        names = ("input_size", "hidden_size", "num_layers", "nonlinearity", "has_bias", "batch_first")
        names += ("dropout", "bidirectional", "dtype")
        super().__init__(**dict(zip(names, args, strict=False)), **kwargs)


class LSTM(_Layers):
    """Layers of LSTMCell, as RNN; the state is (h, c)."""

    kind = "LSTM"


class GRU(_Layers):
    """Layers of GRUCell, as RNN."""

    kind = "GRU"


__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]
