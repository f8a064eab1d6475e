"""export: what onnxruntime computes of a file is what the network computes."""

import importlib.util

import numpy
import places
import pytest
from numpy.testing import assert_allclose

import muster
from muster import nn, ops

onnxruntime = pytest.importorskip("onnxruntime")


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def computed(path, *inputs):
    runtime = session(path)
    names = [value.name for value in runtime.get_inputs()]
    return runtime.run(None, dict(zip(names, inputs, strict=True)))


def arrays(result):
    return [value.asnumpy() for value in (result if isinstance(result, tuple) else (result,))]


def assert_exported(path, net, *inputs, tolerance=1e-5, **options):
    """The file gives what the network gives for `inputs`; returns that."""
    tensors = [muster.Tensor(array) for array in inputs]
    muster.export(net, tensors, str(path), **options)
    net.set_train(False)
    expected = arrays(net(*tensors))
    got = computed(path, *inputs)
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert_allclose(one, other, rtol=0, atol=tolerance)
    return expected


def floats(*shape, seed=1):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def make_random(net, seed=3):
    """Parameters that are no zeros and ones, so that leaving one out would show."""
    random = numpy.random.default_rng(seed)
    for parameter in net.get_parameters():
        name = parameter.name.rsplit(".", 1)[-1]
        if name in ("gamma", "moving_variance", "variance"):
            values = random.uniform(0.5, 1.5, parameter.shape)
        elif name in ("beta", "moving_mean", "mean", "bias"):
            values = random.uniform(-0.2, 0.2, parameter.shape)
        else:
            continue
        parameter.set_data(muster.Tensor(values.astype(numpy.float32)))


# ---- Whole networks ---------------------------------------------------------------------------------------


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.head = nn.SequentialCell(
            nn.Flatten(),
            nn.Dense(256, 120, activation="relu"),
            nn.Dense(120, 84, activation="relu"),
            nn.Dense(84, 10),
        )

    def construct(self, x):
        x = self.pool(ops.relu(self.conv1(x)))
        return self.head(self.pool(ops.relu(self.conv2(x))))


def test_lenet(tmp_path):
    assert_exported(tmp_path / "net.onnx", LeNet(), floats(4, 1, 28, 28))


def resnet50():
    spec = importlib.util.spec_from_file_location(
        "resnet50", places.ROOT / "examples" / "resnet50_cifar10.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    net = module.resnet50(num_classes=10)
    random = numpy.random.default_rng(3)
    for parameter in net.get_parameters():
        if parameter.name.endswith((".gamma", ".beta")):
            low, high = (0.3, 0.9) if parameter.name.endswith(".gamma") else (-0.2, 0.2)
            values = random.uniform(low, high, parameter.shape).astype(numpy.float32)
            parameter.set_data(muster.Tensor(values))
    net.set_train()
    for step in range(10):  # so that the statistics fit
        net(muster.Tensor(floats(8, 3, 32, 32, seed=step)))
    return net


def test_resnet50(tmp_path):
    (scores,) = assert_exported(tmp_path / "net.onnx", resnet50(), floats(2, 3, 32, 32), dynamic_batch=True)
    assert numpy.abs(scores).max() > 0.1


class Attention(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.to_all = nn.Dense(width, 3 * width)
        self.out = nn.Dense(width, width)

    def construct(self, x, mask):
        batch, length, width = x.shape
        size = width // self.heads
        split = self.to_all(x).reshape(batch, length, 3, self.heads, size).transpose(2, 0, 3, 1, 4)
        query, key, value = split[0], split[1], split[2]
        scores = ops.batch_matmul(query, key, transpose_b=True) / size**0.5
        scores = ops.select(mask, scores, ops.full_like(scores, -1e9))
        mixed = ops.matmul(ops.softmax(scores), value)
        return self.out(mixed.transpose(0, 2, 1, 3).reshape(batch, length, width))


class Block(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm((width,))
        self.norm2 = nn.LayerNorm((width,))
        self.attention = Attention(width, heads)
        self.mlp = nn.SequentialCell(nn.Dense(width, 4 * width), nn.GELU(), nn.Dense(4 * width, width))
        self.drop = nn.Dropout(p=0.1)

    def construct(self, x, mask):
        x = x + self.drop(self.attention(self.norm1(x), mask))
        return x + self.drop(self.mlp(self.norm2(x)))


class Transformer(nn.Cell):
    """Tokens and which of them count, to scores of the next one, and the state of the first."""

    def __init__(self, words=50, width=32, heads=4, length=12):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = muster.Parameter(muster.Tensor(floats(1, length, width)), name="places")
        self.blocks = nn.CellList([Block(width, heads) for _ in range(2)])
        self.norm = nn.LayerNorm((width,))
        self.head = nn.Dense(width, words)
        causal = numpy.tril(numpy.ones((length, length), bool))[None, None]
        self.causal = muster.Tensor(causal)

    def construct(self, tokens, counts):
        mask = ops.logical_and(self.causal, counts.expand_dims(1).expand_dims(1))
        x = self.words(tokens) + self.places
        for block in self.blocks:
            x = block(x, mask)
        x = self.norm(x)
        return self.head(x), x[:, 0]


def tokens(batch, length=12):
    random = numpy.random.default_rng(8)
    counts = numpy.ones((batch, length), bool)
    counts[:, length - 3 :] = False
    return random.integers(0, 50, (batch, length)).astype(numpy.int32), counts


def test_a_transformer_with_several_inputs_and_outputs(tmp_path):
    net = Transformer()
    make_random(net)
    path = tmp_path / "net.onnx"
    names = {"input_names": ["tokens", "counts"], "output_names": ["scores", "first"]}
    assert_exported(path, net, *tokens(3), dynamic_batch=True, **names)
    runtime = session(path)
    assert [value.name for value in runtime.get_inputs()] == ["tokens", "counts"]
    assert [value.name for value in runtime.get_outputs()] == ["scores", "first"]
    assert [value.shape[0] for value in runtime.get_inputs()] == ["batch", "batch"]


@pytest.mark.parametrize("batch", [1, 5])
def test_a_dynamic_batch_may_have_any_size(tmp_path, batch):
    net = Transformer()
    path = tmp_path / "net.onnx"
    muster.export(net, [muster.Tensor(array) for array in tokens(3)], str(path), dynamic_batch=True)
    net.set_train(False)
    expected = arrays(net(*(muster.Tensor(array) for array in tokens(batch))))
    for got, wanted in zip(computed(path, *tokens(batch)), expected, strict=True):
        assert_allclose(got, wanted, rtol=0, atol=1e-5)


# ---- Single ops -------------------------------------------------------------------------------------------


class Of(nn.Cell):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, *inputs):
        return self.function(*inputs)


def words(text):
    return text.split()


UNARY = words(
    """relu tanh relu6 leaky_relu elu sigmoid gelu silu softplus neg abs sign square exp expm1 erf sin cos
    floor ceil round isnan isinf isfinite logical_not softmax log_softmax stop_gradient reciprocal"""
)
BINARY = words(
    """add sub mul div maximum minimum floor_div mod equal not_equal less less_equal greater greater_equal
    logical_and logical_or"""
)
POSITIVE = numpy.abs(floats(3, 4)) + 0.1
IMAGES = floats(2, 3, 7, 9)
CASES = {
    **{name: (getattr(ops, name), [floats(3, 4)]) for name in UNARY},
    **{name: (getattr(ops, name), [POSITIVE]) for name in ("sqrt", "rsqrt", "log", "log1p")},
    **{name: (getattr(ops, name), [floats(3, 4), floats(4, seed=2)]) for name in BINARY},
    "pow": (ops.pow, [POSITIVE, floats(4, seed=2)]),
    "gelu_tanh": (lambda x: ops.gelu(x, approximate=True), [floats(3, 4)]),
    "int_mod": (ops.mod, [numpy.array([-7, 7, 5], numpy.int32), numpy.array([3, -3, 2], numpy.int32)]),
    "nan": (ops.isnan, [numpy.array([numpy.nan, 1, numpy.inf], numpy.float32)]),
    "cast": (lambda x: x.astype(muster.int32), [floats(3, 4)]),
    "matmul": (ops.matmul, [floats(3, 4), floats(4, 5)]),
    "vectors": (ops.matmul, [floats(4), floats(4)]),
    "attention": (
        ops.scaled_dot_product_attention,
        [floats(2, 3, 4, 8), floats(2, 3, 5, 8, seed=2), floats(2, 3, 5, 6, seed=3)],
    ),
    "attention_masked": (
        lambda q, k, v, mask: ops.scaled_dot_product_attention(q, k, v, mask, is_causal=True, scale=0.5),
        [
            floats(2, 3, 4, 8),
            floats(2, 3, 5, 8, seed=2),
            floats(2, 3, 5, 6, seed=3),
            floats(2, 1, 4, 5, seed=4) > 0,
        ],
    ),
    "attention_with_an_added_mask": (
        ops.scaled_dot_product_attention,
        [
            floats(2, 3, 4, 8),
            floats(2, 3, 5, 8, seed=2),
            floats(2, 3, 5, 6, seed=3),
            floats(4, 5, seed=4),
        ],
    ),
    "batch_matmul": (
        lambda a, b: ops.batch_matmul(a, b, transpose_a=True, transpose_b=True),
        [floats(2, 4, 3), floats(2, 5, 4)],
    ),
    "bias_add": (ops.bias_add, [floats(3, 4), floats(4)]),
    "transpose": (lambda x: x.transpose(2, 0, 1), [floats(2, 3, 4)]),
    "index": (lambda x: x[1:, ::-1, ..., 1::2], [floats(3, 4, 2, 5)]),
    "slice": (lambda x: ops.slice(x, (0, 1), (2, 2)), [floats(3, 4)]),
    "pad": (lambda x: ops.pad(x, (1, 2, 0, 1), value=0.5), [floats(3, 4)]),
    "broadcast_to": (lambda x: ops.broadcast_to(x, (2, 3, 4)), [floats(3, 1)]),
    "tile": (lambda x: ops.tile(x, (2, 3)), [floats(3, 4)]),
    "reshape": (lambda x: x.reshape(2, -1), [floats(3, 4)]),
    "sum": (lambda x: ops.reduce_sum(x, 1), [floats(3, 4)]),
    "sum_of_all": (ops.reduce_sum, [floats(3, 4)]),
    "mean": (lambda x: ops.reduce_mean(x, (0, -1), keep_dims=True), [floats(3, 4, 5)]),
    "max": (lambda x: ops.reduce_max(x, 0), [floats(3, 4)]),
    "min": (ops.reduce_min, [floats(3, 4)]),
    "prod": (lambda x: ops.reduce_prod(x, 1), [floats(3, 4)]),
    "argmax": (lambda x: ops.argmax(x, 0), [floats(3, 4)]),
    "argmin": (ops.argmin, [floats(3, 4)]),
    "all": (ops.reduce_all, [floats(3, 4) > 0]),
    "concat": (lambda a, b: ops.concat([a, b], 1), [floats(3, 4), floats(3, 2)]),
    "stack": (lambda a, b: ops.stack([a, b], 1), [floats(3, 4), floats(3, 4)]),
    "split": (lambda x: ops.split(x, [1, 3], 1), [floats(3, 4)]),
    "select": (ops.select, [floats(3, 4) > 0, floats(3, 4), floats(4)]),
    "clip": (lambda x: ops.clip(x, -0.5, 0.5), [floats(3, 4)]),
    "clip_below": (lambda x: ops.clip(x, min=0.1), [floats(3, 4)]),
    "clip_above": (lambda x: ops.clip(x, max=0.1), [floats(3, 4)]),
    "gather": (lambda x, i: ops.gather(x, i, 1), [floats(3, 4), numpy.array([[0, -1], [2, 1]], numpy.int32)]),
    "gather_elements": (
        lambda x, i: ops.gather_elements(x, i, 1),
        [floats(3, 4), numpy.array([[0], [2], [1]], numpy.int64)],
    ),
    "one_hot": (lambda i: ops.one_hot(i, 4, 2.0, -1.0), [numpy.array([[0, 3], [-1, 9]], numpy.int32)]),
    "one_hot_first": (lambda i: ops.one_hot(i, 3, axis=0), [numpy.array([0, 2], numpy.int64)]),
    "topk": (lambda x: ops.topk(x, 2), [floats(3, 4)]),
    "smallest": (lambda x: ops.topk(x, 2, largest=False), [floats(3, 4)]),
    "cumsum": (lambda x: ops.cumsum(x, 1, exclusive=True, reverse=True), [floats(3, 4)]),
    "full": (lambda x: x + ops.full((3, 4), 2.5), [floats(3, 4)]),
    "layer_norm": (ops.layer_norm, [floats(3, 4), floats(4), floats(4, seed=2)]),
    "layer_norm_of_two": (
        lambda *x: ops.layer_norm(*x, begin_norm_axis=1, eps=1e-3),
        [floats(3, 4, 5), floats(4, 5), floats(4, 5, seed=2)],
    ),
    "rms_norm": (lambda x, g: ops.rms_norm(x, g)[0], [floats(3, 4), floats(4)]),
    "conv2d": (
        lambda x, w: ops.conv2d(x, w, stride=(2, 1), pad_mode="pad", padding=(1, 2), dilation=(1, 2)),
        [IMAGES, floats(4, 3, 3, 2)],
    ),
    "conv3d": (
        lambda x, w: ops.conv3d(x, w, [2, 1, 1], [1, 0, 0, 2, 1, 1], [1, 2, 1], 2),
        [floats(2, 4, 3, 5, 4), floats(6, 2, 2, 2, 3, seed=2)],
    ),
    "max_pool2d": (lambda x: ops.max_pool2d(x, 3, 2, 1), [IMAGES]),
    "max_pool2d_ceil": (lambda x: ops.max_pool2d(x, 2, 2, ceil_mode=True), [IMAGES]),
    "avg_pool2d": (lambda x: ops.avg_pool2d(x, 3, 2, 1), [IMAGES]),
    "avg_pool2d_inside": (lambda x: ops.avg_pool2d(x, 3, 2, 1, count_include_pad=False), [IMAGES]),
    "avg_pool2d_ceil": (lambda x: ops.avg_pool2d(x, 2, 2, ceil_mode=True, count_include_pad=False), [IMAGES]),
    "global_pool": (lambda x: ops.adaptive_avg_pool2d(x, 1), [IMAGES]),
    "adaptive_pool": (lambda x: ops.adaptive_avg_pool2d(x, (3, 4)), [floats(2, 3, 6, 8)]),
    "input_as_output": (lambda x: (x, x + 1, x), [floats(3, 4)]),
}


@pytest.mark.parametrize("name", CASES)
def test_an_op(tmp_path, name):
    function, inputs = CASES[name]
    assert_exported(tmp_path / "net.onnx", Of(function), *inputs)


@pytest.mark.parametrize("name", [name for name, (_, inputs) in CASES.items() if len(inputs) == 1])
def test_an_op_with_a_dynamic_batch_is_right_or_refused(tmp_path, name):
    function, (inputs,) = CASES[name]
    path = tmp_path / "net.onnx"
    try:
        muster.export(Of(function), muster.Tensor(inputs), str(path), dynamic_batch=True)
    except (NotImplementedError, ValueError) as error:
        assert "batch" in str(error)
        return
    other = numpy.concatenate([inputs, inputs[:1], inputs[:1]])
    for got, wanted in zip(computed(path, other), arrays(Of(function)(muster.Tensor(other))), strict=True):
        assert got.shape == wanted.shape
        assert_allclose(got, wanted, rtol=0, atol=1e-5)


# ---- What cannot be ---------------------------------------------------------------------------------------


def test_an_op_without_a_counterpart_is_named_with_its_cell(tmp_path):
    class Inner(nn.Cell):
        def construct(self, x):
            return ops.cumprod(x, 1)

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.body = Inner()

        def construct(self, x):
            return self.body(x) + 1

    with pytest.raises(NotImplementedError) as error:
        muster.export(Outer(), muster.Tensor(floats(3, 4)), str(tmp_path / "net.onnx"))
    for word in ("cumprod", "Inner 'body'", "test_export.py:", "adding-an-op.md"):
        assert word in str(error.value)
    assert not (tmp_path / "net.onnx").exists()


def test_a_network_that_counts_its_batch_is_refused_where_that_is_open(tmp_path):
    net = Of(lambda x: ops.reduce_sum(x, 0) / x.shape[0])
    muster.export(net, muster.Tensor(floats(3, 4)), str(tmp_path / "net.onnx"))
    with pytest.raises(NotImplementedError, match=r"another batch size.*dynamic_batch"):
        muster.export(net, muster.Tensor(floats(3, 4)), str(tmp_path / "net.onnx"), dynamic_batch=True)
    fixed = Of(lambda x: x + muster.Tensor(floats(3, 4)))
    with pytest.raises(ValueError, match="with a batch of 4 instead of 3 the network fails"):
        muster.export(fixed, muster.Tensor(floats(3, 4)), str(tmp_path / "net.onnx"), dynamic_batch=True)


def test_names_must_fit(tmp_path):
    path, x = str(tmp_path / "net.onnx"), muster.Tensor(floats(3, 4))
    with pytest.raises(ValueError, match="2 input_names for 1 inputs"):
        muster.export(nn.ReLU(), x, path, input_names=["a", "b"])
    with pytest.raises(ValueError, match="named 'a'"):
        muster.export(nn.ReLU(), x, path, input_names=["a"], output_names=["a"])
    with pytest.raises(ValueError, match="inputs are needed"):
        muster.export(nn.ReLU(), [], path)


def test_the_network_stays_as_it_was(tmp_path):
    net = Transformer()
    net.set_train()
    net.norm.set_train(False)
    modes = [cell.training for _, cell in net.cells_and_names()]
    muster.export(net, [muster.Tensor(array) for array in tokens(2)], str(tmp_path / "net.onnx"))
    assert [cell.training for _, cell in net.cells_and_names()] == modes


def test_the_names_of_mindspore(tmp_path, run_with_mindspore):
    path = tmp_path / "net"
    run_with_mindspore(
        f"""
        net = ms.nn.Dense(3, 2)
        ms.export(net, Tensor(numpy.ones((4, 3), numpy.float32)), file_name={str(path)!r}, file_format="ONNX")
        try:
            ms.export(net, Tensor(numpy.ones((4, 3), numpy.float32)), file_name="net", file_format="TFLITE")
        except ValueError as error:
            assert "MINDIR" in str(error) and "ONNX" in str(error)
        else:
            raise AssertionError
        """
    )
    assert session(tmp_path / "net.onnx").get_inputs()[0].shape == [4, 3]
