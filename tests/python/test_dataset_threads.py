"""Rows that Python makes on the threads of passes: the interpreter's state of such a thread goes with it."""

import os
import threading

import numpy
from muster.dataset import GeneratorDataset


class Rows:
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return numpy.full(4, i, numpy.float32)


def passes(count):
    dataset = GeneratorDataset(Rows(), ["x"], shuffle=False).map(lambda x: x + 1, "x").batch(4)
    for _ in range(count):
        assert [batch.asnumpy()[0, 0] for (batch,) in dataset.create_tuple_iterator()] == [1, 5]


def resident_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def test_threads_of_ended_passes_leave_no_memory_behind():
    passes(200)
    before = resident_kib()
    passes(2000)
    assert resident_kib() - before < 4096


def test_passes_run_on_several_threads_at_once():
    ended = []
    threads = [threading.Thread(target=lambda: ended.append(passes(20))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ended) == 4


def test_a_forked_child_begins_passes_of_its_own():
    passes(3)
    child = os.fork()
    if child == 0:
        passes(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    passes(3)
