"""parallel.place: stages that cost about the same, chosen alike on all workers."""

import itertools
import random
import re

import numpy
import pytest
from job import run_alone
from muster._placing import _cuts
from parallel_jobs import SETUP, held, losses, outputs

from muster import Tensor, nn, ops, parallel


class Block(nn.Cell):
    def __init__(self, width=64):
        super().__init__()
        self.norm = nn.LayerNorm((width,))
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)

    def construct(self, x):
        return x + self.down(ops.gelu(self.up(self.norm(x))))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.into, self.head = nn.Dense(16, 64), nn.Dense(64, 4)
        self.blocks = nn.SequentialCell(*(Block() for _ in range(6)))

    def construct(self, x):
        return self.head(self.blocks(self.into(x)))


def batch(*shape):
    return Tensor(numpy.zeros(shape, numpy.float32))


def ranks_of(net):
    return {path: cell.placed_rank for path, cell in net.cells_and_names() if cell.placed_rank is not None}


@pytest.mark.parametrize(("stages", "blocks"), [(1, {0: 6}), (2, {0: 3, 1: 3}), (3, {0: 2, 1: 2, 2: 2})])
def test_equal_blocks_are_shared_equally(stages, blocks):
    net = Net()
    told = parallel.place(net, batch(8, 16), stages=stages)
    assert told == ranks_of(net)
    assert told["into"] == 0 and told["head"] == stages - 1
    of_blocks = [told["blocks"]] * 6 if stages == 1 else [told[f"blocks.{i}"] for i in range(6)]
    assert of_blocks == sorted(of_blocks)
    assert {rank: of_blocks.count(rank) for rank in set(of_blocks)} == blocks


def test_the_costliest_convolution_gets_a_stage_of_its_own():
    layers = [nn.Conv2d(3, 4, 3), nn.Conv2d(4, 64, 3), nn.Conv2d(64, 64, 3), nn.Conv2d(64, 4, 3)]
    told = parallel.place(nn.SequentialCell(*layers), batch(2, 3, 16, 16), stages=3)
    assert [told[str(i)] for i in range(4)] == [0, 0, 1, 2]


def test_a_cell_that_is_called_twice_has_one_place():
    class Twice(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first, self.shared, self.last = nn.Dense(64, 64), nn.Dense(64, 64), nn.Dense(64, 64)

        def construct(self, x):
            return self.shared(self.last(self.shared(self.first(x))))

    net = Twice()
    parallel.place(net, batch(8, 64), stages=2)
    assert ranks_of(net) == {"first": 0, "shared": 0, "last": 1}


def test_a_network_that_computes_much_by_itself_is_taken_apart_where_stages_need_it():
    class Small(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.head = nn.Dense(12, 16), nn.Dense(16, 8), nn.Dense(8, 4)

        def construct(self, x):
            return self.head(ops.tanh(self.second(ops.gelu(ops.gelu(self.first(x))))))

    assert parallel.place(Small(), batch(8, 12), stages=3) == {"first": 0, "second": 1, "head": 2}
    with pytest.raises(ValueError, match=r"4 stages, and the network has 3 cells .*choose 1 to 3"):
        parallel.place(Small(), batch(8, 12), stages=4)


def test_cuts_are_the_best_there_are():
    seed = random.randrange(10**6)
    print("seed", seed)
    draw = random.Random(seed)
    for _ in range(100):
        costs = [draw.choice((0.0, 1.0, draw.random() * 10)) for _ in range(draw.randint(1, 8))]
        stages = draw.randint(1, len(costs))
        ranks = _cuts(costs, stages)
        assert ranks == sorted(ranks) and set(ranks) == set(range(stages))

        def slowest(ranks, costs=costs, stages=stages):
            return max(
                sum(cost for cost, rank in zip(costs, ranks, strict=True) if rank == stage)
                for stage in range(stages)
            )

        all_cuts = [
            [sum(cut <= place for cut in cuts) for place in range(len(costs))]
            for cuts in itertools.combinations(range(1, len(costs)), stages - 1)
        ]
        assert slowest(ranks) == pytest.approx(min(map(slowest, all_cuts)))


@pytest.mark.parametrize(
    ("call", "error", "reason"),
    [
        (lambda: parallel.place(1, batch(2, 2)), TypeError, "takes a network .*not int"),
        (lambda: parallel.place(Net()), TypeError, "the tensors that the network is called with"),
        (lambda: parallel.place(Net(), 3), TypeError, "the tensors that the network is called with"),
        (
            lambda: parallel.place(Net(), batch(8, 16), stages=1.5),
            TypeError,
            "stages is a whole number, not 1.5",
        ),
        (lambda: parallel.place(Net(), batch(8, 16), stages=0), ValueError, "0 stages"),
        (
            lambda: parallel.place(nn.Dense(2, 2), batch(2, 2), stages=2),
            ValueError,
            "1 cells .*choose 1 to 1",
        ),
        (lambda: parallel.place(Net(), batch(8, 3), stages=2), ValueError, "3"),  # what the network says
    ],
    ids=["no cell", "no tensor", "a number", "half a stage", "no stage", "too many", "another shape"],
)
def test_what_cannot_be_placed_is_an_error(call, error, reason):
    with pytest.raises(error, match=reason):
        call()


def test_a_cell_that_is_placed_already_is_named():
    net = Net()
    net.blocks[2].place("MS_WORKER", 1)
    with pytest.raises(ValueError, match=r"'blocks\.2' is placed already"):
        parallel.place(net, batch(8, 16), stages=2)
    assert ranks_of(net) == {"blocks.2": 1}


TRAIN = """
if workers > 1:
    parallel.mesh(data=2, stages=2)
inner = [nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 64), nn.ReLU()]
net = nn.SequentialCell(nn.Dense(12, 64), nn.ReLU(), *inner, nn.Dense(64, 4))
if workers > 1:
    print("places", parallel.place(net, Tensor(np.zeros((8, 12), np.float32))))
model = train.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01))
model.train(2, rows(sharded=False), Losses(), micro_batches=2 if workers > 1 else 1)
print("held", parallel.held_bytes(net), 0)
"""


def test_workers_choose_alike_and_train_as_one_process_does():
    code, alone, _ = run_alone(SETUP + TRAIN)
    assert code == 0, alone
    texts = outputs(TRAIN, 4)
    (places,) = {re.search("places (.*)", text).group(1) for text in texts}
    assert "0" in places and "1" in places
    for text in texts:
        assert losses(text) == pytest.approx(losses(alone), rel=1e-5)
    assert held(texts[0])[0] + held(texts[1])[0] == held(alone)[0]
