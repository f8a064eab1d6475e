"""One mistake each, on two ranks: rank 0 prints `raised` and what it was told."""

import os
import select
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])
LONG, SHORT = timedelta(seconds=60), timedelta(seconds=2)


def begin(timeout=LONG, backend: str = "muster") -> None:
    dist.init_process_group(backend, timeout=timeout)


def sparse_max():
    begin()
    dist.all_reduce(torch.eye(2).to_sparse(), dist.ReduceOp.MAX)


def sparse_shapes():
    begin()
    dist.all_reduce(torch.eye(2 + RANK).to_sparse())


def float8():
    begin()
    dist.all_reduce(torch.ones(2).to(torch.float8_e4m3fn))


def device():
    begin(backend="cuda:muster")


def sizes():
    begin()
    parts = [torch.zeros(2), torch.zeros(3)] if RANK == 0 else None
    if RANK == 0:
        dist.gather(torch.zeros(2), parts)


def splits():
    begin()
    dist.all_to_all_single(torch.zeros(3), torch.zeros(3))


def number():
    begin()
    dist.all_to_all_single(torch.tensor(0.0), torch.tensor(1.0))


def endless():
    begin()
    dist.new_group(timeout=timedelta.max)


def version():
    if RANK == 1:
        import muster._version

        muster._version.__version__ = "9.9.9"
    begin()


def old():
    torch.__version__ = "2.5.1"
    import muster.torch  # noqa: F401


def late():
    import muster.torch._rendezvous as rendezvous

    if RANK == 1:  # it comes to the store, and no further
        store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), 2, False, LONG)
        store.wait(["end"], LONG)
        return
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), 2, True, LONG)
    try:
        rendezvous.connect(store, 0, [0, 1], SHORT)
    finally:
        store.set("end", "")
        time.sleep(0.5)


def mixed():
    """Rank 1 takes another backend."""
    begin(timedelta(seconds=4), "muster" if RANK == 0 else "gloo")


def _of_three(call) -> None:
    """`call(group)` in a group of ranks 1 and 2 of the job, which are its ranks 0 and 1."""
    begin()
    store, some = dist.distributed_c10d._get_default_store(), dist.new_group([1, 2])
    if RANK == 0:
        store.wait(["told"], LONG)  # which this rank serves
        return
    try:
        call(some)
    finally:
        store.set("told", "")


def dead_in_a_group_of_some():
    def call(some):
        if RANK == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(torch.zeros(2), group=some)

    _of_three(call)


def mismatch_in_a_group_of_some():
    _of_three(lambda some: dist.all_reduce(torch.zeros(RANK), group=some))


def mismatch_asynchronous_in_a_group_of_some():
    _of_three(lambda some: dist.all_reduce(torch.zeros(RANK), group=some, async_op=True).wait())


def late_in_a_group_of_some():
    begin()
    if RANK == 1:
        dist.new_group([1, 2], timeout=SHORT)
    time.sleep(4)  # rank 2 makes no such group


def barrier():
    begin()
    if RANK == 0:
        dist.monitored_barrier(timeout=timedelta(seconds=0.5))
    time.sleep(1)


def wait():
    begin()
    if RANK == 0:
        dist.irecv(torch.zeros(1), 1).wait(timedelta(seconds=0.3))
    time.sleep(1)


def _die(store) -> None:
    store.set("killed at", str(time.monotonic_ns()))
    os.kill(os.getpid(), signal.SIGKILL)


def _named_after(store, call) -> None:
    """Fails as `call` does, which has to name rank 1, and says how long after its end that was."""
    try:
        call()
    except Exception:
        killed = int(store.get("killed at"))
        print(f"after {(time.monotonic_ns() - killed) / 1e6:.1f} ms", flush=True)
        raise


def _dead(call) -> None:
    """Rank 1 is killed while rank 0 is in `call`."""
    begin()
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    if RANK == 1:
        store.wait(["waiting"], LONG)
        _die(store)
    store.set("waiting", "")
    _named_after(store, call)


def dead():
    _dead(lambda: dist.all_reduce(torch.zeros(4)))


def dead_async():
    _dead(lambda: dist.all_reduce(torch.zeros(4), async_op=True).wait())


def dead_receive():
    _dead(lambda: dist.recv(torch.zeros(4), 1))


def dead_backward():
    """In the reducer of DistributedDataParallel, which is C++."""
    begin()
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    loss = net(torch.ones(1, 2)).sum()
    store = dist.distributed_c10d._get_default_store()
    if RANK == 1:
        _die(store)
    _named_after(store, loss.backward)


def dead_next():
    """Rank 0 computes while rank 1 is killed, and makes the next call."""
    begin()
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    if RANK == 1:
        store.set("process", str(os.getpid()))
        _die(store)
    ended = os.pidfd_open(int(store.get("process")))
    select.select([ended], [], [])

    def calls():
        for _ in range(1000):  # the first one may be made before anybody knows; it must not wait
            dist.all_reduce(torch.zeros(4))

    _named_after(store, calls)


def dead_sent():
    """What rank 1 had sent when it was killed arrives, also when its end is known; nothing comes after it."""
    begin()
    other = dist.new_group()
    store = dist.distributed_c10d._get_default_store()
    if RANK == 1:
        dist.send(torch.full((3,), 5.0), 0)
        _die(store)
    try:
        dist.barrier(other)
    except dist.DistBackendError:
        got = torch.zeros(3)
        dist.recv(got, 1)
        print("received", got.tolist(), flush=True)
        dist.recv(got, 1)


def again():
    """Groups that are made as soon as the one before is gone, whose store ends with rank 0's."""
    for _ in range(10):
        begin()
        dist.all_reduce(torch.zeros(4))
        dist.destroy_process_group()


def grown():
    """A group of three over the store of one of two, in which rank 2 comes first."""
    from muster.torch._rendezvous import connect

    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), None, RANK == 0, LONG)
    if RANK < 2:
        native, liveness, _ = connect(store, RANK, [0, 1], LONG)
        native.barrier()
        liveness.close()
        store.set("first", store.get("muster/word"))
    store.wait(["first"])
    if RANK < 2:
        store.wait([f"muster/{store.get('first').decode()}/rank/2"])
    native, liveness, _ = connect(store, RANK, [0, 1, 2], LONG)
    native.barrier()  # behind it nobody needs the store, which rank 0 serves
    liveness.close()


def _connections() -> int:
    """To the store, of all ranks."""
    port = f":{int(os.environ['MASTER_PORT']):04X}"
    tables = [Path(f"/proc/self/net/{name}").read_text() for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table.splitlines()]
    return sum(line[2].endswith(port) and line[3] == "01" for line in lines)  # established


def several():
    """Groups beside the default one, and the connections to the store."""
    begin()
    dist.barrier()
    before = _connections()
    dist.barrier()
    for _ in range(5):
        dist.new_group()
    print(f"more connections {_connections() - before}", flush=True)
    dist.barrier()


def alone():
    """A group of one rank, made when rank 0, which serves the store, has left."""
    from muster.torch._rendezvous import connect

    begin()
    store = dist.distributed_c10d._get_default_store()
    if RANK == 0:
        store.set("process", str(os.getpid()))
        store.wait(["seen"])
        os._exit(0)
    process = os.pidfd_open(int(store.get("process")))
    store.set("seen", "")
    select.select([process], [], [])
    native, liveness, _ = connect(store, 0, [0], LONG)
    native.barrier()
    liveness.close()


if __name__ == "__main__":
    try:
        globals()[sys.argv[1]]()
    except Exception as error:
        print(f"raised {type(error).__name__}: {error}", flush=True)
    else:
        print("raised nothing", flush=True)
    os._exit(0)
