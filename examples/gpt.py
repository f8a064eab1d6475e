"""A GPT learns a text on all workers of a cluster, and writes on from a beginning.

    muster data tiny-text text.txt                     # a text to try it with, or one of yours
    python examples/gpt.py prepare text.txt            # tokens.bin, tokenizer.json (pip install tokenizers)
    muster run -n 2 examples/gpt.py train --epochs 5   # checkpoints/, from which it goes on
    python examples/gpt.py write "The licensee"

Radford et al., Language models are unsupervised multitask learners, 2019. docs/guide/transformers.md tells
about it.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy

import muster
from muster import dataset as ds
from muster import nn, ops, train

Cache = tuple[muster.Tensor, muster.Tensor]  # keys and values of a layer, (samples, heads, block, depth)


class Attention(muster.Cell):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.width, self.heads, self.dropout = width, heads, dropout
        self.qkv, self.out = nn.Dense(width, 3 * width), nn.Dense(width, width)

    def split(self, x: muster.Tensor) -> tuple[muster.Tensor, ...]:
        """q, k and v, each (samples, heads, tokens, depth)."""
        shape = (*x.shape[:2], self.heads, self.width // self.heads)
        parts = ops.split(self.qkv(x), self.width, 2)
        q, k, v = (ops.transpose(ops.reshape(part, shape), (0, 2, 1, 3)) for part in parts)
        return q, k, v

    def merge(self, heads: muster.Tensor) -> muster.Tensor:
        y = ops.transpose(heads, (0, 2, 1, 3))
        merged: muster.Tensor = self.out(ops.reshape(y, (*y.shape[:2], self.width)))
        return merged

    def construct(self, x: muster.Tensor) -> muster.Tensor:
        dropout = self.dropout if self.training else 0.0
        q, k, v = self.split(x)
        return self.merge(ops.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True))

    def next(self, x: muster.Tensor, cache: Cache, place: muster.Tensor) -> tuple[muster.Tensor, Cache]:
        """Of one token, which sees those before `place` in the cache; it becomes a part of it."""
        q, k, v = self.split(x)
        keys, values = cache
        keys[:, :, place], values[:, :, place] = k[:, :, 0], v[:, :, 0]
        seen = ops.less_equal(ops.arange(keys.shape[2]), place)
        return self.merge(ops.scaled_dot_product_attention(q, keys, values, seen)), (keys, values)


class Block(muster.Cell):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads, dropout)
        self.norm1, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.mlp = nn.SequentialCell(nn.Dense(width, 4 * width), nn.GELU(), nn.Dense(4 * width, width))
        self.drop = nn.Dropout(p=dropout)

    def construct(self, x: muster.Tensor) -> muster.Tensor:
        x = x + self.drop(self.attention(self.norm1(x)))
        x = x + self.drop(self.mlp(self.norm2(x)))
        return x

    def next(self, x: muster.Tensor, cache: Cache, place: muster.Tensor) -> tuple[muster.Tensor, Cache]:
        y, cache = self.attention.next(self.norm1(x), cache, place)
        x = x + y
        return x + self.mlp(self.norm2(x)), cache


class GPT(muster.Cell):
    """Scores (samples, tokens, words) for the token behind each of `ids` (samples, tokens)."""

    def __init__(self, words: int, block: int, layers: int, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.block, self.heads, self.depth = block, heads, width // heads
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(block, width)
        self.drop = nn.Dropout(p=dropout)
        self.blocks = nn.CellList([Block(width, heads, dropout) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm((width,)), nn.Dense(width, words, has_bias=False)

    def construct(self, ids: muster.Tensor) -> muster.Tensor:
        x = self.drop(self.words(ids) + self.places(ops.arange(ids.shape[1])))
        for block in self.blocks:
            x = block(x)
        scores: muster.Tensor = self.head(self.norm(x))
        return scores

    def empty_caches(self) -> list[Cache]:
        shape = (1, self.heads, self.block, self.depth)
        return [(ops.zeros(shape, muster.float32), ops.zeros(shape, muster.float32)) for _ in self.blocks]

    def next(
        self, token: muster.Tensor, place: muster.Tensor, caches: list[Cache]
    ) -> tuple[muster.Tensor, list[Cache]]:
        """Scores (words,) behind one token, without computing those before it again."""
        x = self.words(ops.reshape(token, (1, 1))) + self.places(ops.reshape(place, (1, 1)))
        kept: list[Cache] = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = block.next(x, cache, place)
            kept.append(cache)
        return ops.reshape(self.head(self.norm(x)), (-1,)), kept


class Loss(muster.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.entropy = nn.CrossEntropyLoss()

    def construct(self, scores: muster.Tensor, targets: muster.Tensor) -> muster.Tensor:
        rows = ops.reshape(scores, (-1, scores.shape[-1]))
        loss: muster.Tensor = self.entropy(rows, ops.reshape(targets, (-1,)))
        return loss


# ---- Text and tokens ---------------------------------------------------------------------------------------


def prepare(options: argparse.Namespace) -> None:
    """Learns pairs of bytes from the text and writes it as numbers, a piece at a time."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=options.words, initial_alphabet=alphabet, show_progress=False)
    try:
        tokenizer.train([str(options.text)], trainer)
    except Exception as error:  # of the package: it does not name the file
        raise SystemExit(f"gpt.py prepare: '{options.text}': {error}") from None
    tokenizer.save("tokenizer.json")
    count = 0
    with open(options.text, encoding="utf-8", newline="") as text, open("tokens.bin", "wb") as tokens:
        while piece := text.read(1 << 20):
            ids = tokenizer.encode(piece).ids
            numpy.array(ids, numpy.uint16).tofile(tokens)
            count += len(ids)
    print(f"{options.text}: {count} tokens of {tokenizer.get_vocab_size()} words")


# ---- Training and writing ----------------------------------------------------------------------------------


def make_net(options: argparse.Namespace) -> GPT:
    return GPT(options.words, options.block, options.layers, options.width, options.heads, options.dropout)


def learn(options: argparse.Namespace) -> None:
    muster.init()  # the scheduler's process ends in here, when the job has ended
    muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    muster.set_seed(options.seed)
    rank, workers = muster.get_rank(), muster.get_group_size()
    windows = ds.TokenFileDataset("tokens.bin", options.block, num_shards=workers, shard_id=rank)
    batches = windows.batch(options.batch, drop_remainder=True)
    net = make_net(options)
    optimizer = nn.AdamWeightDecay(net.trainable_params(), options.learning_rate, weight_decay=0.1)
    model = muster.Model(net, Loss(), optimizer, amp_level="auto" if options.bfloat16 else "O0")
    saver = train.ModelCheckpoint("gpt", "checkpoints", train.CheckpointConfig(100, keep_checkpoint_max=2))
    callbacks = [saver, train.LossMonitor(), train.ProgressBar()]
    model.train(options.epochs, batches, callbacks=callbacks, resume="last")


def chosen(scores: numpy.ndarray, random: numpy.random.Generator, temperature: float, top_k: int) -> int:
    """A token by its score: the best one at temperature 0, else one of the `top_k` best at random."""
    best = numpy.argsort(scores)[::-1][:top_k]
    if temperature == 0:
        return int(best[0])
    shares = numpy.exp((scores[best] - scores[best[0]]) / temperature)
    return int(random.choice(best, p=shares / shares.sum()))


def continued(net: GPT, ids: list[int], options: argparse.Namespace) -> Iterator[int]:
    """Tokens behind `ids`. When the block is full, its second half is read again as the beginning."""
    random = numpy.random.default_rng(options.seed)
    net.set_train(False)
    step = muster.jit(net.next)
    caches, place, scores = net.empty_caches(), 0, numpy.zeros(0)
    unread = list(ids[-net.block :])
    seen = list(unread)
    for _ in range(options.tokens):
        for token in unread:
            found, caches = step(
                muster.Tensor(token, muster.int32), muster.Tensor(place, muster.int32), caches
            )
            scores, place = found.asnumpy(), place + 1
        token = chosen(scores, random, options.temperature, options.top_k)
        seen, unread = [*seen, token], [token]
        if place == net.block:
            caches, place, unread = net.empty_caches(), 0, seen[-max(1, net.block // 2) :]
        yield token


def write(options: argparse.Namespace) -> None:
    from tokenizers import Tokenizer

    if not Path("tokenizer.json").exists():
        raise SystemExit("gpt.py write: no 'tokenizer.json' in this folder; 'gpt.py prepare TEXT' makes it")
    tokenizer = Tokenizer.from_file("tokenizer.json")
    net = make_net(options)
    newest = max(Path("checkpoints").glob("gpt*.ckpt"), key=lambda path: path.stat().st_mtime, default=None)
    if newest is None:
        raise SystemExit("gpt.py write: no checkpoint in 'checkpoints' yet; train first")
    muster.load_param_into_net(net, muster.load_checkpoint(str(newest)))  # sizes must fit
    ids = tokenizer.encode(options.beginning).ids
    if not ids:
        raise SystemExit("gpt.py write: the beginning is empty; give it a word at least")
    print(options.beginning + tokenizer.decode(list(continued(net, ids, options))))


def between(
    least: float, most: float = math.inf, kind: Callable[[str], float] = int
) -> Callable[[str], float]:
    """What reads a number of the command line and says what is allowed."""

    def read(text: str) -> float:
        number = kind(text)
        if not least <= number <= most:
            allowed = f"at least {least}" if most == math.inf else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"{text} is not allowed: give a number, {allowed}")
        return number

    read.__name__ = "float" if kind is float else "int"  # of which argparse speaks
    return read


def main() -> None:
    parser = argparse.ArgumentParser(description="A GPT learns a text and writes on.")
    commands = parser.add_subparsers(required=True)
    size = argparse.ArgumentParser(add_help=False)
    size.add_argument(
        "--words", type=between(256, 1 << 16), default=1024, help="different tokens"
    )  # of two bytes
    size.add_argument("--block", type=between(1), default=128, help="tokens that it sees at a time")
    size.add_argument("--layers", type=between(1), default=4)
    size.add_argument("--width", type=between(1), default=256)
    size.add_argument("--heads", type=between(1), default=4, help="divides the width")
    size.add_argument("--dropout", type=between(0, 1, float), default=0.1)
    size.add_argument("--seed", type=between(0), default=1)

    command = commands.add_parser("prepare", parents=[size], help="a tokenizer and tokens.bin from a text")
    command.add_argument("text", type=Path)
    command.set_defaults(run=prepare)

    command = commands.add_parser("train", parents=[size], help="learn tokens.bin")
    command.add_argument("--epochs", type=between(1), default=5)
    command.add_argument("--batch", type=between(1), default=16, help="windows of each worker and step")
    command.add_argument("--learning-rate", type=between(0, kind=float), default=1e-3)
    command.add_argument("--bfloat16", action="store_true", help="compute products in bfloat16")
    command.set_defaults(run=learn)

    command = commands.add_parser("write", parents=[size], help="write on from a beginning")
    command.add_argument("beginning")
    command.add_argument("--tokens", type=between(0), default=100)
    command.add_argument(
        "--temperature", type=between(0, kind=float), default=0.8, help="0: always the likeliest"
    )
    command.add_argument("--top-k", type=between(1), default=50)
    command.set_defaults(run=write)

    options = parser.parse_args()
    if options.width % options.heads:
        parser.error(f"--heads {options.heads} does not divide --width {options.width}")
    options.run(options)


if __name__ == "__main__":
    main()
