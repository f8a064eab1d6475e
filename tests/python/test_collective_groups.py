"""Groups that are made by hand, which muster.torch stands on: each rank is a thread here."""

import array
import threading

import pytest

from muster import _collective


def connected(size: int, host: str = "one host") -> list:
    listeners = [_collective.Listener("127.0.0.1") for _ in range(size)]
    ends = [(host, one.address, one.port, one.local_name) for one in listeners]
    groups = [None] * size

    def connect(rank: int) -> None:
        groups[rank] = _collective.connect(
            rank, ends, listeners[rank], job_id=7, epoch=1, connect_timeout=30, call_timeout=30
        )

    threads = [threading.Thread(target=connect, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return groups


class Buffer:
    def __init__(self, *values: float) -> None:
        self.values = array.array("f", values)
        self.address, self.count = self.values.buffer_info()
        self.size_bytes = self.count * self.values.itemsize


def test_a_message_that_comes_too_late_ends_the_group():
    """The buffer may be gone by then: what came later would be written there."""
    first, second = connected(2)
    late = Buffer(0.0)
    with pytest.raises(TimeoutError, match=r"0\.2 s"):
        first.receive(late.address, late.size_bytes, 1, timeout=0.2)
    sent = Buffer(5.0)
    for rank in (first, second):
        with pytest.raises(Exception, match=r"0\.2 s"):
            rank.all_reduce(sent.address, sent.address, 1, "float32", "sum")
    assert late.values[0] == 0.0


def test_a_lost_rank_is_named_by_who_waits_and_by_who_calls_next():
    first, second, _ = connected(3)
    values = [Buffer(1.0), Buffer(1.0)]
    waiting = first.all_reduce(values[0].address, values[0].address, 1, "float32", "sum", asynchronous=True)
    second.lose(2, "rank 2 (process 7) has ended")
    with pytest.raises(Exception, match=r"rank 2 \(process 7\) has ended"):
        waiting.wait(20)
    with pytest.raises(Exception, match=r"rank 2 \(process 7\) has ended"):
        second.all_reduce(values[1].address, values[1].address, 1, "float32", "sum")


def test_a_group_says_what_it_is_at_and_for_whom_it_waits():
    first, second = connected(2)
    assert first.state() == ("", 0, 0, 0, [])
    value, other = Buffer(1.0), Buffer(2.0)
    call = first.all_reduce(value.address, value.address, 1, "float32", "sum", asynchronous=True)
    while first.state()[4] != [1]:
        assert not call.is_done()
    assert first.state() == ("all_reduce", 1, 0, 0, [1])
    second.all_reduce(other.address, other.address, 1, "float32", "sum")
    assert call.wait(20)
    assert value.values[0] == other.values[0] == 3.0
    second.send(other.address, other.size_bytes, 0)
    first.receive(value.address, value.size_bytes, 1, timeout=20)
    assert first.state()[2] == 1
    assert first.state()[3] > 0
