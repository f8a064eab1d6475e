"""Training steps of today's models, as torch_models.py builds them, under MindSpore or Muster's names.

mindspore_models.py MODEL BATCH THREADS STEPS [bfloat16]: one line of JSON. Attention is written as scripts
write it: products, a mask, softmax, dropout.
"""

import json
import math
import os
import resource
import sys
import time

model, (batch, threads, steps), settings = sys.argv[1], map(int, sys.argv[2:5]), sys.argv[5:]
os.environ["OMP_NUM_THREADS"] = str(threads)

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Parameter, Tensor, nn, ops  # noqa: E402
from model_sizes import EFFICIENTNET, MOBILENET, TOKENS  # noqa: E402

try:
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", runtime_num_threads=threads)
except ValueError:
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(1)


def dense(width_in, width_out, bias=True):
    bound = 1 / math.sqrt(width_in)
    values = np.random.default_rng(width_in + width_out).uniform(-bound, bound, (width_out, width_in))
    return nn.Dense(width_in, width_out, Tensor(values, ms.float32), has_bias=bias)


class Attention(nn.Cell):
    def __init__(self, width, heads, tokens, causal, dropout=0.0, bias=True, rotary=None):
        super().__init__()
        self.heads, self.depth, self.width = heads, width // heads, width
        self.q, self.k, self.v = (dense(width, width, bias) for _ in range(3))
        self.out = dense(width, width, bias)
        self.causal, self.rotary = causal, rotary
        self.mask = Tensor(np.triu(np.full((tokens, tokens), -1e9, np.float32), 1))
        self.drop = nn.Dropout(p=dropout) if dropout else None

    def split(self, x):
        return x.reshape(x.shape[0], -1, self.heads, self.depth).transpose(0, 2, 1, 3)

    def turned(self, x):
        if self.rotary is None:
            return x
        cos, sin = self.rotary
        half = self.depth // 2
        return x * cos + ops.cat((-x[..., half:], x[..., :half]), -1) * sin

    def construct(self, x):
        q, k, v = (
            self.turned(self.split(self.q(x))),
            self.turned(self.split(self.k(x))),
            self.split(self.v(x)),
        )
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) * (1 / math.sqrt(self.depth))
        if self.causal:
            scores = scores + self.mask
        shares = ops.softmax(scores, -1)
        if self.drop is not None:
            shares = self.drop(shares)
        y = ops.matmul(shares, v).transpose(0, 2, 1, 3)
        return self.out(y.reshape(x.shape[0], -1, self.width))


def rotary(tokens, depth):
    angles = np.outer(np.arange(tokens), 10000.0 ** (-np.arange(0, depth, 2) / depth))
    angles = np.concatenate((angles, angles), -1).astype(np.float32)
    return Tensor(np.cos(angles)), Tensor(np.sin(angles))


class Block(nn.Cell):
    def __init__(self, width, heads, tokens, causal, dropout, norm_first=True):
        super().__init__()
        self.attention = Attention(width, heads, tokens, causal, dropout)
        self.norm1, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.wide, self.narrow, self.gelu = dense(width, 4 * width), dense(4 * width, width), nn.GELU(False)
        self.drop = nn.Dropout(p=dropout) if dropout else nn.Identity()
        self.norm_first = norm_first

    def mlp(self, x):
        return self.narrow(self.gelu(self.wide(x)))

    def construct(self, x):
        if self.norm_first:
            x = x + self.drop(self.attention(self.norm1(x)))
            return x + self.drop(self.mlp(self.norm2(x)))
        x = self.norm1(x + self.drop(self.attention(x)))
        return self.norm2(x + self.drop(self.mlp(x)))


class Text(nn.Cell):
    def __init__(self, words, tokens, layers, width, heads, causal, dropout):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
        self.places_of = Tensor(np.arange(tokens), ms.int32)
        self.drop = nn.Dropout(p=dropout)
        self.blocks = nn.CellList(
            [Block(width, heads, tokens, causal, dropout, causal) for _ in range(layers)]
        )
        self.norm, self.head = nn.LayerNorm((width,)), dense(width, words, False)

    def construct(self, ids):
        x = self.drop(self.words(ids) + self.places(self.places_of))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class RmsNorm(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.weight = Parameter(Tensor(np.ones(width), ms.float32))

    def construct(self, x):
        return x * ops.rsqrt(ops.mean(x * x, -1, True) + 1e-6) * self.weight


class LlamaBlock(nn.Cell):
    def __init__(self, width, heads, tokens, hidden, tables):
        super().__init__()
        self.attention = Attention(width, heads, tokens, True, bias=False, rotary=tables)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.gate, self.up = dense(width, hidden, False), dense(width, hidden, False)
        self.down = dense(hidden, width, False)
        self.silu = nn.SiLU()

    def construct(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(self.silu(self.gate(y)) * self.up(y))


class Llama(nn.Cell):
    def __init__(self, words, tokens, layers, width, heads, hidden):
        super().__init__()
        self.words = nn.Embedding(words, width)
        tables = rotary(tokens, width // heads)
        self.blocks = nn.SequentialCell(
            [LlamaBlock(width, heads, tokens, hidden, tables) for _ in range(layers)]
        )
        self.norm, self.head = RmsNorm(width), dense(width, words, False)

    def construct(self, ids):
        return self.head(self.norm(self.blocks(self.words(ids))))


class ViT(nn.Cell):
    def __init__(self, layers=12, width=768, heads=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16, pad_mode="valid", has_bias=True)
        self.first = Parameter(Tensor(np.zeros((1, 1, width)), ms.float32))
        self.places = Parameter(Tensor(np.random.default_rng(1).normal(0, 0.02, (1, 197, width)), ms.float32))
        self.blocks = nn.SequentialCell([Block(width, heads, 1, False, 0.0) for _ in range(layers)])
        self.norm, self.head, self.width = nn.LayerNorm((width,)), dense(width, 1000), width

    def construct(self, images):
        x = self.patches(images).reshape(images.shape[0], self.width, -1).transpose(0, 2, 1)
        first = ops.broadcast_to(self.first, (images.shape[0], 1, self.width))
        x = ops.cat((first, x), 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class Lstm(nn.Cell):
    def __init__(self, words=10000, width=512):
        super().__init__()
        self.words, self.lstm = nn.Embedding(words, width), nn.LSTM(width, width, 2, batch_first=True)
        self.head = dense(width, words)

    def construct(self, ids):
        return self.head(self.lstm(self.words(ids))[0])


def conv(channels_in, channels, kernel, stride=1, groups=1, act=None):
    layers = [
        nn.Conv2d(channels_in, channels, kernel, stride, "pad", kernel // 2, group=groups),
        nn.BatchNorm2d(channels),
    ]
    return [*layers, act()] if act else layers


class Squeeze(nn.Cell):
    def __init__(self, channels, reduced):
        super().__init__()
        self.down = nn.Conv2d(channels, reduced, 1, has_bias=True)
        self.up = nn.Conv2d(reduced, channels, 1, has_bias=True)
        self.silu, self.sigmoid = nn.SiLU(), nn.Sigmoid()

    def construct(self, x):
        return x * self.sigmoid(self.up(self.silu(self.down(ops.mean(x, (2, 3), True)))))


class Inverted(nn.Cell):
    def __init__(self, channels_in, channels, expand, kernel, stride, act, squeeze):
        super().__init__()
        wide = channels_in * expand
        layers = conv(channels_in, wide, 1, act=act) if expand > 1 else []
        layers += conv(wide, wide, kernel, stride, wide, act)
        layers += [Squeeze(wide, channels_in // 4)] if squeeze else []
        self.path = nn.SequentialCell([*layers, *conv(wide, channels, 1)])
        self.same = stride == 1 and channels_in == channels

    def construct(self, x):
        return x + self.path(x) if self.same else self.path(x)


class Pooled(nn.Cell):
    """The mean over an image."""

    def construct(self, x):
        return ops.mean(x, (2, 3))


def inverted_net(stages, act, squeeze):
    layers, channels_in = conv(3, 32, 3, 2, act=act), 32
    for expand, channels, count, stride, kernel in stages:
        for index in range(count):
            first = stride if index == 0 else 1
            layers.append(Inverted(channels_in, channels, expand, kernel, first, act, squeeze))
            channels_in = channels
    layers += conv(channels_in, 1280, 1, act=act)
    return nn.SequentialCell([*layers, Pooled(), dense(1280, 1000)])


class ChannelNorm(nn.Cell):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm((channels,), epsilon=1e-6)

    def construct(self, x):
        return self.norm(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


class ConvNextBlock(nn.Cell):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, 1, "pad", 3, group=channels, has_bias=True)
        self.norm = nn.LayerNorm((channels,), epsilon=1e-6)
        self.wide, self.narrow = dense(channels, 4 * channels), dense(4 * channels, channels)
        self.gelu = nn.GELU(False)
        self.scale = Parameter(Tensor(np.full(channels, 1e-6), ms.float32))

    def construct(self, x):
        y = self.norm(self.depthwise(x).transpose(0, 2, 3, 1))
        y = self.scale * self.narrow(self.gelu(self.wide(y)))
        return x + y.transpose(0, 3, 1, 2)


def convnext():
    layers, channels_in = [nn.Conv2d(3, 96, 4, 4, "valid", has_bias=True), ChannelNorm(96)], 96
    for channels, count in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if channels != channels_in:
            layers += [
                ChannelNorm(channels_in),
                nn.Conv2d(channels_in, channels, 2, 2, "valid", has_bias=True),
            ]
        layers += [ConvNextBlock(channels) for _ in range(count)]
        channels_in = channels
    return nn.SequentialCell([*layers, Pooled(), nn.LayerNorm((768,), epsilon=1e-6), dense(768, 1000)])


MODELS = {
    "gpt_small": lambda: Text(65, 64, 4, 128, 4, True, 0.1),
    "gpt": lambda: Text(65, 256, 6, 384, 6, True, 0.1),
    "bert": lambda: Text(30522, 128, 12, 768, 12, False, 0.1),
    "llama": lambda: Llama(4096, 1024, 8, 512, 8, 1376),
    "lstm": Lstm,
    "vit": ViT,
    "mobilenet_v2": lambda: inverted_net(MOBILENET, nn.ReLU6, False),
    "efficientnet_b0": lambda: inverted_net(EFFICIENTNET, nn.SiLU, True),
    "convnext_t": convnext,
}


def batch_of():
    if model in TOKENS:
        words, tokens = TOKENS[model]
        ids = (np.arange(batch * (tokens + 1)).reshape(batch, -1) * 7919 % 65537 % words).astype(np.int32)
        return Tensor(ids[:, :-1].copy()), Tensor(ids[:, 1:].copy())
    images = np.random.default_rng(1).standard_normal((batch, 3, 224, 224), np.float32)
    return Tensor(images), Tensor((np.arange(batch) * 37 % 1000).astype(np.int32))


class Loss(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x, y):
        scores = self.net(x)
        return ops.cross_entropy(scores.reshape(-1, scores.shape[-1]), y.reshape(-1))


class Step(nn.Cell):
    """Gradients, clipped by their norm, and AdamW."""

    def __init__(self, loss, optimizer):
        super().__init__()
        self.optimizer = optimizer
        self.gradients = ms.value_and_grad(loss, None, optimizer.parameters)

    def construct(self, x, y):
        loss, gradients = self.gradients(x, y)
        return ops.depend(loss, self.optimizer(ops.clip_by_global_norm(gradients, 1.0)))


net = MODELS[model]()
if "bfloat16" in settings:
    net = ms.amp.auto_mixed_precision(net, "O2", ms.bfloat16)
loss_of = Loss(net)
step = Step(loss_of, nn.AdamWeightDecay(net.trainable_params(), 3e-4, weight_decay=0.01))
step.set_train()
x, y = batch_of()
losses, seconds = [], []
for index in range(2 + steps):
    begin = time.perf_counter()
    losses.append(float(step(x, y).asnumpy()))
    if index >= 2:
        seconds.append(time.perf_counter() - begin)
print(
    json.dumps(
        {
            "seconds": seconds,
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "losses": [losses[0], losses[-1]],
            "right": losses[-1] < losses[0],
            "parameters": sum(p.size for p in net.trainable_params()),
        }
    )
)
