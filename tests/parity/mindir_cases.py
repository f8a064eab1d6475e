"""Networks that go through MindIR files: mindir.py records what MindSpore exports of them."""

import importlib
import sys
import tempfile
from pathlib import Path

import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(2, 3, 5, pad_mode="valid", has_bias=True)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(48, 8)
        self.fc2 = nn.Dense(8, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        return self.fc2(self.relu(self.fc1(self.flatten(x))))


class Block(nn.Cell):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.c1 = nn.Conv2d(inputs, outputs, 3, stride, pad_mode="pad", padding=1)
        self.b1 = nn.BatchNorm2d(outputs)
        self.c2 = nn.Conv2d(outputs, outputs, 3, 1, pad_mode="pad", padding=1)
        self.b2 = nn.BatchNorm2d(outputs)
        self.down = None
        if stride > 1 or inputs != outputs:
            self.down = nn.SequentialCell([nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)])
        self.relu = nn.ReLU()

    def construct(self, x):
        y = self.b2(self.c2(self.relu(self.b1(self.c1(x)))))
        if self.down is not None:
            x = self.down(x)
        return self.relu(y + x)


class ResNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 4, 3, pad_mode="same")
        self.b = nn.BatchNorm2d(4)
        self.blocks = nn.SequentialCell([Block(4, 4, 1), Block(4, 6, 2)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.f = nn.Dense(6, 5)

    def construct(self, x):
        x = self.blocks(ops.relu(self.b(self.c(x))))
        return self.f(ops.flatten(self.pool(x)))


class TextCNN(nn.Cell):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 6)
        self.cs = nn.CellList([nn.Conv2d(1, 3, (size, 6), pad_mode="valid") for size in (2, 3)])
        self.d = nn.Dropout(p=0.5)
        self.fc = nn.Dense(6, 2)
        self.max = ops.ReduceMax()

    def construct(self, x):
        x = self.e(x).expand_dims(1)
        parts = ()
        for c in self.cs:
            parts += (self.max(ops.relu(c(x)).squeeze(3), 2),)
        return ops.softmax(self.fc(self.d(ops.concat(parts, 1))), -1)


class TransformerBlock(nn.Cell):
    def __init__(self, size=8, heads=2):
        super().__init__()
        self.heads = heads
        self.size = size
        self.q = nn.Dense(size, 3 * size)
        self.o = nn.Dense(size, size)
        self.n1 = nn.LayerNorm((size,))
        self.n2 = nn.LayerNorm([size])
        self.f = nn.SequentialCell(nn.Dense(size, 16), nn.GELU(approximate=False), nn.Dense(16, size))

    def split_heads(self, t):
        b, s, d = t.shape
        return t.reshape(b, s, self.heads, d // self.heads).transpose(0, 2, 1, 3)

    def construct(self, x, mask):
        b, s, d = x.shape
        q, k, v = ops.split(self.q(self.n1(x)), d, 2)
        q, k, v = self.split_heads(q), self.split_heads(k), self.split_heads(v)
        a = ops.matmul(q, k.swapaxes(-1, -2)) / (d // self.heads) ** 0.5
        a = ops.softmax(ops.masked_fill(a, mask, -1e4), -1)
        x = x + self.o(ops.matmul(a, v).transpose(0, 2, 1, 3).reshape(b, s, d))
        return x + self.f(self.n2(x)), a


class Chosen(nn.Cell):
    def construct(self, x):
        if x.sum() > 0:  # noqa: SIM108 - MindSpore makes a switch of it
            y = x * 2
        else:
            y = x - 1
        return y


class Repeated(nn.Cell):
    def construct(self, x, n):
        i = Tensor(np.array(0, np.int32))
        while i < n:
            x = x * 2
            i = i + 1
        return x


class Counting(nn.Cell):
    def __init__(self):
        super().__init__()
        self.n = Parameter(Tensor(np.array(0, np.float32)), name="n")

    def construct(self, x):
        self.n += 1
        return x * self.n


class Nested(nn.Cell):
    def __init__(self):
        super().__init__()
        self.d = nn.Dense(4, 3)

    def construct(self, x):
        return self.d(x), (x, x.sum())


class Function(nn.Cell):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, x):
        return self.function(x)


def real(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def networks() -> dict:
    """By name: a network and its inputs."""
    mask = np.triu(np.ones((3, 3)), 1) > 0
    mlp = nn.SequentialCell(nn.Flatten(), nn.Dense(6, 4, activation="relu"), nn.Dense(4, 3))
    tokens = np.random.default_rng(1).integers(0, 20, (2, 7)).astype(np.int32)
    return {
        "lenet": (LeNet(), [real(1, 1, 28, 28)]),
        "resnet": (ResNet(), [real(2, 3, 8, 8)]),
        "textcnn": (TextCNN(), [tokens]),
        "transformer block": (TransformerBlock(), [real(2, 3, 8), mask]),
        "mlp": (mlp, [real(2, 2, 3)]),
        "if": (Chosen(), [real(2, 3, 4)]),
        "while": (Repeated(), [real(2, 3, 4), np.array(3, np.int32)]),
        "counting": (Counting(), [real(2, 3, 4)]),
        "nested": (Nested(), [real(3, 4)]),
        "lstm": (nn.LSTM(4, 3, batch_first=True), [real(2, 3, 4)]),
        "gru": (nn.GRU(4, 3), [real(2, 3, 4)]),
        "multihead attention": (nn.MultiheadAttention(4, 2), [real(3, 2, 4)] * 3),
        "transformer encoder layer": (nn.TransformerEncoderLayer(4, 2), [real(2, 3, 4)]),
    }


def cells() -> dict:
    """By name: cells of mindspore.nn and their inputs."""
    row, line, image = [real(3, 4)], [real(2, 3, 4)], [real(1, 3, 6, 6)]
    likely = np.full((2, 2), 0.3, np.float32)
    plain = (
        "GELU LeakyReLU SiLU HSigmoid ELU SeLU ReLU6 Tanh Sigmoid LogSoftmax Softmax Mish Softsign Hardtanh"
    )
    made = {name: (getattr(nn, name)(), row) for name in f"{plain} LogSigmoid CELU Identity GLU ReLU".split()}
    return made | {
        "Conv1d": (nn.Conv1d(4, 2, 3), [real(2, 4, 5)]),
        "Conv2d groups": (nn.Conv2d(4, 4, 3, 2, group=2, dilation=2), [real(1, 4, 9, 9)]),
        "Conv2dTranspose": (nn.Conv2dTranspose(3, 2, 3), image),
        "Conv3d": (nn.Conv3d(1, 2, 3), [real(1, 1, 4, 4, 4)]),
        "AvgPool2d": (nn.AvgPool2d(2, 2), image),
        "MaxPool2d same": (nn.MaxPool2d(3, 2, "same"), image),
        "MaxPool1d": (nn.MaxPool1d(2, 2), line),
        "AdaptiveMaxPool2d": (nn.AdaptiveMaxPool2d(2), image),
        "BatchNorm1d": (nn.BatchNorm1d(4), row),
        "GroupNorm": (nn.GroupNorm(1, 3), image),
        "LayerNorm": (nn.LayerNorm((4,)), row),
        "PReLU": (nn.PReLU(), image),
        "HSwish": (nn.HSwish(), image),
        "Threshold": (nn.Threshold(0.1, 0.2), row),
        "Dropout": (nn.Dropout(p=0.5), row),
        "PixelShuffle": (nn.PixelShuffle(3), [real(1, 9, 2, 2)]),
        "ZeroPad2d": (nn.ZeroPad2d(1), image),
        "ReflectionPad2d": (nn.ReflectionPad2d(1), image),
        "Pad": (nn.Pad(((0, 0), (1, 1))), row),
        "Embedding": (nn.Embedding(5, 3), [np.array([[0, 4], [1, 1]], np.int32)]),
        "OneHot": (nn.OneHot(depth=3), [np.array([0, 2], np.int32)]),
        "Dense without bias": (nn.Dense(4, 2, has_bias=False), row),
        "Flatten": (nn.Flatten(), line),
        "L1Loss": (nn.L1Loss(), [real(3, 4), real(4, 3).T.copy()]),
        "MSELoss": (nn.MSELoss(), [real(3, 4), real(4, 3).T.copy()]),
        "SmoothL1Loss": (nn.SmoothL1Loss(), [real(3, 4), real(4, 3).T.copy()]),
        "BCELoss": (nn.BCELoss(), [likely, np.ones_like(likely)]),
        "CrossEntropyLoss": (nn.CrossEntropyLoss(), [real(3, 4), np.array([0, 1, 2], np.int32)]),
        "SoftmaxCrossEntropyWithLogits": (
            nn.SoftmaxCrossEntropyWithLogits(True, "mean"),
            [real(3, 4), np.array([0, 1, 2], np.int32)],
        ),
    }


# Of one tensor, float32 (2, 3, 4).
FUNCTIONS = """
x.mean(-1)
x.sum(1, keepdims=True)
x.max()
x.argmax(-1)
x.view(-1, 4)
x[:, 1:, 0]
x[..., None, ::2]
x[x > 0]
x[:, Tensor([0, 2])]
x.permute(2, 0, 1)
x[0].T
x.std()
x.var(-1)
x.clip(-1, 1)
x.topk(2)
x.sort()
x.tile((2, 1, 1))
x.split(2, 2)
x.chunk(2, 2)
x.astype(ms.int32)
x.int().float()
x.masked_fill(x > 0, 0.0)
x ** 2
2 ** x
1 / (x + 5)
1 - x
-x
abs(x)
x @ x.swapaxes(1, 2)
ops.where(x > 0, x, -x)
x.cumsum(1)
x.gather(Tensor([0]), 1)
ops.norm(x, dim=-1)
x[:, :1].expand_as(x)
ops.broadcast_to(x[:1], (2, 3, 4))
ops.stack((x, x), 1)
ops.cat((x, x), 1)
ops.concat([x, x], -1)
ops.unstack(x, axis=1)
ops.pad(x, (1, 1))
ops.interpolate(x[None], size=(6, 8), mode="bilinear")
ops.interpolate(x[None], scale_factor=2.0, mode="nearest", recompute_scale_factor=True)
ops.one_hot((x > 0).astype(ms.int32), 2, Tensor(1.0), Tensor(0.0))
ops.zeros_like(x) + ops.ones((2, 3, 4), ms.float32) + ops.arange(4).astype(ms.float32)
x + ops.full((4,), 2.0)
ops.softmax(x, 1)
ops.gelu(x, approximate="tanh")
ops.L2Normalize(-1)(x)
ops.flip(x, (1,))
ops.tril(x)
ops.logical_and(x > 0, x < 1)
ops.logical_not(x > 0)
(x >= 0, x <= 0, x == 0, x != 0)
ops.amax(x, -1)
ops.argmax(x, -1)
ops.max(x, -1)
ops.min(x, 1)
ops.prod(x, 1)
ops.any(x > 0)
ops.clamp(x, -0.5, 0.5)
ops.maximum(x, 0.5) + ops.minimum(x, 0.1)
ops.bmm(x, x.transpose(0, 2, 1))
ops.tensor_scatter_elements(x, Tensor([[[0]]]), Tensor(np.ones((1, 1, 1), np.float32)), 1)
ops.gather_nd(x, Tensor([[0, 1]]))
ops.gather_elements(x, 1, Tensor(np.zeros((2, 1, 4), np.int32)))
ops.cumprod(x, 1)
ops.floor(x) // 2 % 3
ops.sqrt(ops.abs(x)) + ops.exp(x) + ops.log(ops.abs(x) + 1) + ops.rsqrt(x * x + 1) + ops.erf(x)
ops.sin(x) + ops.cos(x) + ops.tan(x) + ops.tanh(x) + ops.atan(x) + ops.square(x) + ops.reciprocal(x)
ops.sign(x) + ops.round(x) + ops.ceil(x) + ops.log1p(ops.abs(x)) + ops.expm1(x)
ops.meshgrid(x[0, 0], x[0, :, 0])
ops.nonzero(x > 0)
ops.dropout(x, 0.5, training=False)
ops.cross_entropy(x[0], Tensor([0, 1, 2], ms.int32))
ops.mse_loss(x, x * 2)
ops.binary_cross_entropy_with_logits(x, ops.ones_like(x), ops.ones_like(x), ops.ones_like(x))
ops.avg_pool2d(x[None], 2, 2)
ops.max_pool2d(x[None], 2, 2)
ops.adaptive_avg_pool2d(x[None], 1)
ops.conv2d(x[None], Tensor(np.ones((2, 2, 2, 2), np.float32)))
ops.grid_sample(x[None], Tensor(np.zeros((1, 2, 2, 2), np.float32)), align_corners=True)
mint.mean(x, -1)
mint.sum(x)
mint.softmax(x, -1)
mint.matmul(x, x.permute(0, 2, 1))
mint.cat((x, x))
mint.max(x, -1)
mint.add(x, x, alpha=2)
mint.sub(x, 1)
mint.nn.functional.linear(x, Tensor(np.ones((2, 4), np.float32)))
mint.nn.functional.silu(x)
mint.where(x > 0, x, 0.0)
mint.clamp(x, -1, 1)
mint.flatten(x, 1)
mint.pow(x, 2)
mint.bmm(x, x.permute(0, 2, 1))
mint.zeros_like(x) + mint.ones((2, 3, 4))
mint.argmax(x, 1)
mint.gather(x, 1, Tensor(np.zeros((2, 1, 4), np.int64)))
mint.squeeze(mint.unsqueeze(x, 1), 1)
"""


def functions() -> dict:
    """By their text: cells that compute one expression."""
    texts = FUNCTIONS.split("\n")[1:-1]
    lines = ["import numpy as np", "import mindspore as ms", "from mindspore import Tensor, mint, ops", ""]
    for number, text in enumerate(texts):
        lines += ["", f"def f{number}(x):", f"    return {text}", ""]
    # MindSpore reads the text of functions from their file, which therefore stays.
    path = Path(tempfile.mkdtemp()) / "functions_of_mindir.py"
    path.write_text("\n".join(lines))
    sys.path.insert(0, str(path.parent))
    module = importlib.import_module(path.stem)
    x = real(2, 3, 4)
    return {text: (Function(getattr(module, f"f{number}")), [x]) for number, text in enumerate(texts)}


def all_cases() -> dict:
    return networks() | cells() | functions()


def flat(value) -> list:
    """The arrays of numpy in a result, in its order."""
    if isinstance(value, tuple | list):
        return [each for part in value for each in flat(part)]
    return [value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)]
