"""What can happen to a job. Each fault is done when everything that it ended has been started again."""

import signal
import subprocess
import time

from recovering_job import PATIENCE_SECONDS, LostError

FENCED_STATUS = 77


def kill(job, *names):
    for name in names:
        job.processes[name].signal(signal.SIGKILL)
    for name in names:
        job.processes[name].wait()


def start(job, *names):
    """Again, whoever was not done."""
    for name in names:
        if job.processes[name].status() != 0 and not job.has_ended_well():
            job.start(name)


def some_workers(job, random, count):
    return [f"worker {rank}" for rank in random.sample(range(job.workers), count)]


def kill_worker(job, random):
    [name] = some_workers(job, random, 1)
    kill(job, name)
    start(job, name)


def kill_two_workers(job, random):
    names = some_workers(job, random, 2)
    kill(job, *names)
    start(job, *names)


def kill_all_workers(job, _random):
    names = job.names()[1:]
    kill(job, *names)
    start(job, *names)


def kill_scheduler(job, random):
    kill(job, "scheduler")
    time.sleep(random.uniform(0, 0.5))
    start(job, "scheduler")


def kill_scheduler_and_worker(job, random):
    names = ["scheduler", *some_workers(job, random, 1)]
    kill(job, *names)
    random.shuffle(names)
    start(job, *names)


def kill_everybody(job, _random):
    kill(job, *job.names())
    start(job, *job.names())


def kill_worker_in_recovery_of_another(job, random):
    first, second = some_workers(job, random, 2)
    kill(job, first)
    start(job, first)
    time.sleep(random.uniform(0, 0.8))
    kill(job, second)
    start(job, second)


def kill_returning_worker(job, random):
    [name] = some_workers(job, random, 1)
    for _ in range(2):
        kill(job, name)
        start(job, name)
        time.sleep(random.uniform(0, 0.6))


def pause_worker(job, random):
    """A pause is no death."""
    [name] = some_workers(job, random, 1)
    job.processes[name].signal(signal.SIGSTOP)
    time.sleep(random.uniform(0.05, 1))
    job.processes[name].signal(signal.SIGCONT)


def replace_stopped_worker(job, random):
    """Its twin takes its place, and it is refused when it wakes up, and ends; or it wakes in time, and the
    twin is."""
    [name] = some_workers(job, random, 1)
    old = job.processes[name]
    if old.status() is not None:
        return
    old.signal(signal.SIGSTOP)
    twin = job.start(name)
    time.sleep(random.uniform(0.5, 4))
    old.signal(signal.SIGCONT)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while FENCED_STATUS not in (old.status(), twin.status()) and not job.has_ended():
        if time.monotonic() > deadline:
            raise LostError(f"both live, {name} and its twin:\n{old.output()[-1500:]}")
        time.sleep(0.02)
    if twin.status() == FENCED_STATUS:
        job.processes[name] = old


def cut(job, random):
    """All TCP connections of a worker, its process lives."""
    [name] = some_workers(job, random, 1)
    pid = job.processes[name].pid
    listed = subprocess.run(
        ["ss", "-tnpH", "state", "established"], capture_output=True, text=True, check=True
    )
    for line in listed.stdout.splitlines():
        if f"pid={pid}," in line:
            port = line.split()[2].rpartition(":")[2]
            subprocess.run(["ss", "-K", "sport", "=", f":{port}"], capture_output=True, check=False)


def fill_disk(job, random):
    """The folder of recovery is full for a while: training goes on with the points that it has."""
    filler = job.recovery / "filler"
    try:
        with filler.open("wb") as file:
            while True:
                file.write(bytes(1 << 20))
                file.flush()
    except OSError:
        pass
    time.sleep(random.uniform(0.2, 1))
    filler.unlink()


def kill_at_write(job, random):
    """The process dies at its n-th write, fsync or rename after it came back."""
    [name] = some_workers(job, random, 1)
    kill(job, name)
    call = random.choice(["write", "fsync", "rename,renameat,renameat2", "mkdir,mkdirat"])
    when = random.randint(1, 12)
    trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}"]
    job.start(name, [*trace, "-e", f"inject={call}:signal=KILL:when={when}"])
    time.sleep(random.uniform(0.5, 3))
    kill(job, name)
    start(job, name)


FAULTS = [
    kill_worker,
    kill_two_workers,
    kill_all_workers,
    kill_scheduler,
    kill_scheduler_and_worker,
    kill_everybody,
    kill_worker_in_recovery_of_another,
    kill_returning_worker,
    pause_worker,
    replace_stopped_worker,
    cut,
    fill_disk,
    kill_at_write,
]
