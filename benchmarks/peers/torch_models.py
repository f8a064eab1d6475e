"""Training steps of today's models under PyTorch, as mindspore_models.py builds them.

torch_models.py MODEL BATCH THREADS STEPS [bfloat16] [compile]: one line of JSON. Attention is
scaled_dot_product_attention, AdamW the fused one. `floating_point_operations` are those of products and
convolutions of a step, three times those of its forward pass, `peak` what a product of 2,048 x 2,048 does a
second here, `copied` the bytes that are copied a second.
"""

import json
import resource
import sys
import time

import torch
from model_sizes import EFFICIENTNET, MOBILENET, TOKENS
from torch import nn
from torch.nn import functional as f
from torch.utils.flop_counter import FlopCounterMode


class Attention(nn.Module):
    """Heads over one projection; `causal`, or with rotary positions."""

    def __init__(self, width, heads, causal, dropout=0.0, bias=True, rotary=None):
        super().__init__()
        self.heads, self.causal, self.dropout, self.rotary = heads, causal, dropout, rotary
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=bias), nn.Linear(width, width, bias=bias)

    def forward(self, x, cache=None):
        batch, tokens, width = x.shape
        split = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        if self.rotary is not None:
            q, k = turned(q, *self.rotary), turned(k, *self.rotary)
        if cache is not None:
            keys, values, at = cache
            keys[:, :, at], values[:, :, at] = k[:, :, 0], v[:, :, 0]
            k, v = keys[:, :, : at + 1], values[:, :, : at + 1]
        dropout = self.dropout if self.training else 0.0
        causal = self.causal and cache is None
        y = f.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))


def turned(x, cos, sin):
    """Rotary positions (Su et al., RoFormer, 2021), halves turned against each other."""
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


def rotary(tokens, depth):
    angles = torch.outer(torch.arange(tokens), 10000.0 ** (-torch.arange(0, depth, 2) / depth))
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


class Block(nn.Module):
    """Norm before each half (GPT, ViT), or behind it (BERT)."""

    def __init__(self, width, heads, causal, dropout, norm_first=True):
        super().__init__()
        self.attention = Attention(width, heads, causal, dropout)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop, self.norm_first = nn.Dropout(dropout), norm_first

    def forward(self, x, cache=None):
        if self.norm_first:
            x = x + self.drop(self.attention(self.norm1(x), cache))
            return x + self.drop(self.mlp(self.norm2(x)))
        x = self.norm1(x + self.drop(self.attention(x)))
        return self.norm2(x + self.drop(self.mlp(x)))


class Text(nn.Module):
    """GPT (causal) and BERT (not): tokens and positions, blocks, a score for each word."""

    def __init__(self, words, tokens, layers, width, heads, causal, dropout):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, causal, dropout, causal) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, ids):
        x = self.drop(self.words(ids) + self.places.weight[: ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def next(self, token, at, caches):
        """Scores behind one token at place `at`."""
        x = self.words(token) + self.places.weight[at]
        for block, (keys, values) in zip(self.blocks, caches, strict=True):
            x = block(x, (keys, values, at))
        return self.head(self.norm(x))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, hidden, tables):
        super().__init__()
        self.attention = Attention(width, heads, True, bias=False, rotary=tables)
        self.norm1, self.norm2 = nn.RMSNorm(width, 1e-6), nn.RMSNorm(width, 1e-6)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(f.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, words, tokens, layers, width, heads, hidden):
        super().__init__()
        self.words = nn.Embedding(words, width)
        tables = rotary(tokens, width // heads)
        self.blocks = nn.Sequential(*(LlamaBlock(width, heads, hidden, tables) for _ in range(layers)))
        self.norm, self.head = nn.RMSNorm(width, 1e-6), nn.Linear(width, words, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.words(ids))))


class ViT(nn.Module):
    def __init__(self, layers=12, width=768, heads=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads, False, 0.0) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1), x), 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class Lstm(nn.Module):
    def __init__(self, words=10000, width=512):
        super().__init__()
        self.words, self.lstm = nn.Embedding(words, width), nn.LSTM(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        return self.head(self.lstm(self.words(ids))[0])


def conv(channels_in, channels, kernel, stride=1, groups=1, act=None):
    layers = [
        nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(channels),
    ]
    return [*layers, act()] if act else layers


class Squeeze(nn.Module):
    def __init__(self, channels, reduced):
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, reduced, 1), nn.Conv2d(reduced, channels, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(f.silu(self.down(x.mean((2, 3), keepdim=True)))))


class Inverted(nn.Module):
    """Wide, depthwise, narrow (Sandler et al., MobileNetV2, 2018), with squeeze and excitation or not."""

    def __init__(self, channels_in, channels, expand, kernel, stride, act, squeeze):
        super().__init__()
        wide = channels_in * expand
        layers = conv(channels_in, wide, 1, act=act) if expand > 1 else []
        layers += conv(wide, wide, kernel, stride, wide, act)
        layers += [Squeeze(wide, channels_in // 4)] if squeeze else []
        self.path = nn.Sequential(*layers, *conv(wide, channels, 1))
        self.same = stride == 1 and channels_in == channels

    def forward(self, x):
        return x + self.path(x) if self.same else self.path(x)


def inverted_net(stages, act, squeeze):
    layers, channels_in = conv(3, 32, 3, 2, act=act), 32
    for expand, channels, count, stride, kernel in stages:
        for index in range(count):
            first = stride if index == 0 else 1
            layers.append(Inverted(channels_in, channels, expand, kernel, first, act, squeeze))
            channels_in = channels
    layers += conv(channels_in, 1280, 1, act=act)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class ChannelNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels, 1e-6)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, 1, 3, groups=channels)
        self.norm = nn.LayerNorm(channels, 1e-6)
        self.wide, self.narrow = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.full((channels,), 1e-6))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.narrow(f.gelu(self.wide(y)))
        return x + y.permute(0, 3, 1, 2)


def convnext():
    layers, channels_in = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96)], 96
    for channels, count in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if channels != channels_in:
            layers += [ChannelNorm(channels_in), nn.Conv2d(channels_in, channels, 2, 2)]
        layers += [ConvNextBlock(channels) for _ in range(count)]
        channels_in = channels
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(768, 1e-6), nn.Linear(768, 1000)]
    return nn.Sequential(*layers)


MODELS = {
    "gpt_small": lambda: Text(65, 64, 4, 128, 4, True, 0.1),
    "gpt": lambda: Text(65, 256, 6, 384, 6, True, 0.1),
    "generate": lambda: Text(65, 256, 6, 384, 6, True, 0.1),
    "bert": lambda: Text(30522, 128, 12, 768, 12, False, 0.1),
    "llama": lambda: Llama(4096, 1024, 8, 512, 8, 1376),
    "lstm": Lstm,
    "vit": ViT,
    "mobilenet_v2": lambda: inverted_net(MOBILENET, nn.ReLU6, False),
    "efficientnet_b0": lambda: inverted_net(EFFICIENTNET, nn.SiLU, True),
    "convnext_t": convnext,
}


def batch_of(model, batch):
    if model in TOKENS:
        words, tokens = TOKENS[model]
        ids = torch.arange(batch * (tokens + 1)).reshape(batch, -1) * 7919 % 65537 % words
        return ids[:, :-1], ids[:, 1:]
    return torch.randn(batch, 3, 224, 224), torch.arange(batch) * 37 % 1000


def loss_of(net, x, y):
    scores = net(x)
    return f.cross_entropy(scores.flatten(0, -2), y.flatten())


class Training:
    """A net that learns one batch."""

    def __init__(self, model, batch, settings):
        torch.manual_seed(1)
        self.net = MODELS[model]()
        self.x, self.y = batch_of(model, batch)
        if self.x.ndim == 4:
            self.net = self.net.to(memory_format=torch.channels_last)
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), 3e-4, weight_decay=0.01, fused=True)
        self.loss_of = torch.compile(loss_of) if "compile" in settings else loss_of
        self.bfloat16 = "bfloat16" in settings
        self.losses = []

    def backward(self):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16):
            loss = self.loss_of(self.net, self.x, self.y)
        loss.backward()
        return loss

    def step(self):
        begin = time.perf_counter()
        self.optimizer.zero_grad()
        loss = self.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        self.losses.append(loss.item())
        return time.perf_counter() - begin

    def is_right(self):
        return self.losses[-1] < self.losses[0]


class Generation:
    """One token after the other, behind a cache of keys and values; always the likeliest."""

    def __init__(self, batch, settings):
        torch.manual_seed(1)
        self.net = MODELS["generate"]().eval()
        self.caches = [(torch.zeros(batch, 6, 256, 64), torch.zeros(batch, 6, 256, 64)) for _ in range(6)]
        self.token, self.at, self.tokens = torch.zeros(batch, 1, dtype=torch.int64), 0, []
        self.next = self.net.next

    @torch.inference_mode()
    def step(self):
        begin = time.perf_counter()
        scores = self.next(self.token, self.at, self.caches)
        self.token = scores[:, -1].argmax(-1, keepdim=True)
        self.tokens.append(self.token)
        self.at = (self.at + 1) % 256
        return time.perf_counter() - begin

    @torch.inference_mode()
    def is_right(self):
        ids = torch.cat([torch.zeros_like(self.token), *self.tokens[:254]], 1)
        return bool((self.net(ids)[:, :-1].argmax(-1) == ids[:, 1:]).all())


def recurrent(net, x):
    """The operations that the counter does not see."""
    return sum(
        2 * x.numel() * p.numel()
        for m in net.modules()
        if isinstance(m, nn.LSTM)
        for p in m.parameters()
        if p.ndim == 2
    )


def peak(dtype):
    a, b = (torch.randn(2048, 2048).to(dtype) for _ in range(2))
    return 2 * 2048**3 / min(timed(lambda: a @ b) for _ in range(5))


def copied():
    a, b = torch.randn(1 << 25), torch.empty(1 << 25)
    return a.nbytes / min(timed(lambda: b.copy_(a)) for _ in range(5))


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def main():
    model, (batch, threads, steps), settings = sys.argv[1], map(int, sys.argv[2:5]), sys.argv[5:]
    torch.set_num_threads(threads)
    training = Generation(batch, settings) if model == "generate" else Training(model, batch, settings)
    for _ in range(2):
        training.step()
    seconds = [training.step() for _ in range(steps)]
    found = {
        "seconds": seconds,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "right": training.is_right(),
        "parameters": sum(p.numel() for p in training.net.parameters()),
        "peak": peak(torch.bfloat16 if "bfloat16" in settings else torch.float32),
        "copied": copied(),
    }
    if model != "generate" and "compile" not in settings:
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            loss_of(training.net, training.x, training.y)
        found["floating_point_operations"] = 3 * (
            counter.get_total_flops() + recurrent(training.net, training.x)
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
