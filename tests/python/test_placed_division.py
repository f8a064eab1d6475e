"""Who divides a network, and over how many workers: what the workers of a job have to agree on."""

import re
import time

import pytest
from digits import write_digits
from job import Job
from test_placed_jobs import REPLICATED, SETUP, failures, lines, outputs


@pytest.fixture(name="digits", scope="module")
def digits_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, 160)
    return str(folder)


# What each rank places, and what all are told.
DISAGREEMENTS = [
    ("Net((0, 1, 1) if rank == 0 else ())", r"rank 0 .* Conv2d 'conv1' .*<string>:\d+.* rank 1 .* nothing"),
    ("Net((0, 1, 1) if rank == 1 else ())", r"rank 0 .* nothing .* rank 1 .* Conv2d 'conv1' .*<string>:\d+"),
]


@pytest.mark.parametrize(("net", "told"), DISAGREEMENTS)
def test_data_parallel_workers_of_which_only_some_place_are_told_before_the_first_step(digits, net, told):
    code = f"""
muster.set_auto_parallel_context(parallel_mode="data_parallel")
model_of({net}).train(1, digits(), Losses())
"""
    begin = time.monotonic()
    for text in failures(code, 2, digits):
        assert re.search(told, text), text
        assert lines(text, "loss") == []
    assert time.monotonic() - begin < 60


def test_a_worker_that_alone_has_placed_says_so_when_the_others_have_ended(digits):
    code = "model_of(Net((0, 1, 1) if rank == 0 else ())).train(1, digits(), Losses())"
    with Job((SETUP + code).replace("FOLDER", repr(digits)), 2) as job:
        begin = time.monotonic()
        assert job.workers[0].wait() != 0
        assert time.monotonic() - begin < 60
        text = job.workers[0].output()
    assert lines(text, "loss") == []
    assert re.search(r"asking all workers whether they have placed Conv2d 'conv1' .*<string>:\d+", text), text


SEVERAL = REPLICATED.replace("net = Net(PLACES)", "other, net = Net((0, 1, 3)), Net((0, 1, 0))").replace(
    "muster.get_replica_count(), muster.get_replica_rank()",
    "muster.get_replica_count(net), muster.get_replica_rank(net)",
)


def test_another_network_of_the_script_changes_nothing_about_the_one_that_trains(digits):
    alone = outputs(REPLICATED.replace("PLACES", "(0, 1, 0)"), 4, digits)
    for text, right in zip(outputs(SEVERAL, 4, digits), alone, strict=True):
        for word in ("copy", "loss", "weights"):
            assert lines(text, word) == lines(right, word)


def test_a_network_that_is_gone_counts_no_more(digits):
    code = REPLICATED.replace("net = Net(PLACES)", "net = Net((0, 1, 3))\nnet = Net((0, 1, 0))")
    for text in outputs(code, 4, digits):
        assert lines(text, "copy")[0].endswith("of 2")
        assert len(lines(text, "loss")) == 20


def test_the_shards_of_another_network_are_refused(digits):
    code = """
muster.set_auto_parallel_context(parallel_mode="data_parallel")
other, net = Net((0, 0, 1)), Net((0, 1, 2))
shards = muster.get_replica_count(other)
model_of(net).train(1, digits(num_shards=shards, shard_id=0), Losses())
"""
    for text in failures(code, 6, digits):
        assert "3 shards" in text and "copies" in text
        assert lines(text, "loss") == []


def test_a_place_that_comes_while_the_network_is_traced_is_too_late(digits):
    code = """
class Late(Net):
    def construct(self, x):
        self.fc1.place("MS_WORKER", 1)
        return super().construct(x)

muster.set_auto_parallel_context(parallel_mode="data_parallel")
model_of(Late(())).train(1, digits(), Losses())
"""
    for text in failures(code, 2, digits):
        assert re.search(
            r"Dense 'fc1' \(<string>:\d+\): place: .* comes too late: place it in __init__", text
        )
        assert lines(text, "loss") == []


IN_MEMORY = """
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
net = Net((0, 1, 0))
parameters, criterion = net.trainable_params(), nn.CrossEntropyLoss()
reducer = nn.DistributedGradReducer(parameters)
step = muster.value_and_grad(lambda x, y: criterion(net(x), y), None, parameters)
image, label = next(iter(digits().create_tuple_iterator()))
_, gradients = step(image, label)
here = net.conv1.weight if rank % 2 == 0 else net.fc1.weight
reduced = reducer(gradients)[[p is here for p in parameters].index(True)]
address = reduced.asnumpy().__array_interface__["data"][0]
for line in open("/proc/self/maps"):
    begin, end = (int(part, 16) for part in line.split()[0].split("-"))
    if begin <= address < end:
        print("memory", line.split()[1], line.split()[4])  # how it is mapped, and the file's number
"""


def test_the_same_stage_of_all_copies_on_a_host_reduces_in_memory_of_its_own(digits):
    memory = [lines(text, "memory") for text in outputs(IN_MEMORY, 4, digits)]
    assert memory[0] == memory[2] != memory[1] == memory[3]
    assert all(line.startswith("rw-s") for [line] in memory)
