"""A character GPT by MindSpore's names, under MindSpore or Muster: the losses of thirty steps, as JSON."""

import json
import math
import sys

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

WORDS, BLOCK, WIDTH, HEADS, LAYERS, BATCH, STEPS = 29, 32, 64, 4, 3, 8, 30
ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
numbers = np.random.default_rng(5)


def weight(*shape):
    return Tensor(numbers.normal(0, 0.02, shape).astype(np.float32))


def dense(width_in, width_out, has_bias=True):
    return nn.Dense(width_in, width_out, weight(width_out, width_in), "zeros", has_bias)


class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.qkv = dense(WIDTH, 3 * WIDTH)
        self.out = dense(WIDTH, WIDTH)
        self.mask = Tensor(np.tril(np.ones((BLOCK, BLOCK), np.float32)) == 0)

    def construct(self, x):
        rows = x.shape[0]
        heads = self.qkv(x).reshape(rows, BLOCK, 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
        q, k, v = heads[0], heads[1], heads[2]
        scores = ops.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(WIDTH // HEADS)
        shares = ops.softmax(scores.masked_fill(self.mask, -1e9), -1)
        return self.out(ops.matmul(shares, v).transpose(0, 2, 1, 3).reshape(rows, BLOCK, WIDTH))


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
        self.attention = Attention()
        self.mlp = nn.SequentialCell(
            dense(WIDTH, 4 * WIDTH), nn.GELU(approximate=False), dense(4 * WIDTH, WIDTH)
        )

    def construct(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, embedding_table=weight(WORDS, WIDTH))
        self.places = Parameter(weight(BLOCK, WIDTH), name="places")
        self.blocks = nn.SequentialCell([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm((WIDTH,))
        self.head = dense(WIDTH, WORDS, has_bias=False)

    def construct(self, ids):
        return self.head(self.norm(self.blocks(self.words(ids) + self.places)))


net = Gpt()
matrices = [each for each in net.trainable_params() if each.ndim > 1]
others = [each for each in net.trainable_params() if each.ndim == 1]
groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
optimizer = nn.AdamWeightDecay(groups, learning_rate=3e-3, beta2=0.95)


def loss_of(ids, following):
    return ops.cross_entropy(net(ids).reshape(-1, WORDS), following.reshape(-1))


gradients_of = ms.value_and_grad(loss_of, None, optimizer.parameters)


def step(ids, following):
    loss, gradients = gradients_of(ids, following)
    optimizer(ops.clip_by_global_norm(gradients, 1.0))
    return loss


text = np.cumsum(numbers.integers(0, 4, 4000)) % WORDS
losses = []
for _ in range(STEPS):
    begins = numbers.integers(0, len(text) - BLOCK - 1, BATCH)
    ids, following = (np.stack([text[at + by : at + by + BLOCK] for at in begins]) for by in (0, 1))
    losses.append(float(step(Tensor(ids, ms.int32), Tensor(following, ms.int32)).asnumpy()))
print(json.dumps(losses))
