"""What can happen to a job. Each fault is done when everything that it ended has been started again."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

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
        if job.is_open(name):
            job.start(name)


def wait_until(condition, seconds=PATIENCE_SECONDS):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)


def some_workers(job, random, count):
    return [f"worker {rank}" for rank in random.sample(range(job.workers), count)]


def kill_worker(job, random):
    [name] = some_workers(job, random, 1)
    kill(job, name)
    start(job, name)


def interrupt_worker(job, random):
    """Ctrl-C, wherever it stands."""
    [name] = some_workers(job, random, 1)
    job.processes[name].signal(signal.SIGINT)
    job.processes[name].wait()
    start(job, name)


def kill_two_workers(job, random):
    names = some_workers(job, random, 2)
    kill(job, *names)
    start(job, *names)


def kill_server(job, random):
    name = f"server {random.randrange(job.servers)}"
    kill(job, name)
    start(job, name)


def lose_server_disk(job, random):
    """It comes back on an empty disk: each row is on another one, too."""
    name = f"server {random.randrange(job.servers)}"
    # A worker's first point may be there before a server has its first row.
    wait_until(lambda: server_rank(job, name) or job.is_ending())
    rank = server_rank(job, name)
    kill(job, name)
    for file in job.paths[name].glob(f"*/server_{rank}*"):
        file.unlink()
    start(job, name)


def server_rank(job, name):
    """As it came to the scheduler, whatever its name: its files have it. None while it has none open."""
    folder = Path(f"/proc/{job.processes[name].pid}/fd")
    with contextlib.suppress(FileNotFoundError, PermissionError):  # ended meanwhile
        for link in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                if match := re.search(r"/recovery/.*/server_(\d+)", str(link.readlink())):
                    return match[1]
    return None


def lose_both_server_disks(job, _random):
    names = [f"server {number}" for number in range(job.servers)]
    kill(job, *names)
    for file in job.paths[names[0]].glob("*/server_*"):
        file.unlink()
    start(job, *names)


def kill_server_and_worker(job, random):
    names = [f"server {random.randrange(job.servers)}", *some_workers(job, random, 1)]
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


def kill_alone(job, name):
    """It comes back when others are done already; or not at all, since it was done itself."""
    old = job.processes[name]
    kill(job, name)
    if old.status() == 0 or job.has_ended_well():
        return
    again = job.start(name)
    wait_until(lambda: again.status() is not None or job.has_ended_well())
    if again.status() != 0 and (job.has_ended_well() or "was done and has left" in again.output()):
        again.kill()
        job.processes[name] = old


def kill_at_end(job, random):
    """A worker dies when another is done."""
    workers = job.names()[1:]
    wait_until(lambda: any(job.processes[name].status() is not None for name in workers))
    if alive := [name for name in workers if job.processes[name].status() is None]:
        kill_alone(job, random.choice(alive))


def kill_in_last_rendezvous(job, random):
    """A worker dies with the end of the training on its disk, whether others have heard of that or not."""
    [name] = some_workers(job, random, 1)
    wait_until(lambda: job.has_ended() or any(path.suffix == ".end" for path in job.points(name)))
    job.processes[name].signal(signal.SIGSTOP)
    others = [job.processes[other] for other in job.names()[1:] if other != name]
    wait_until(lambda: any(other.status() is not None for other in others), random.uniform(0, 1))
    kill_alone(job, name)


def pause_worker(job, random):
    """A pause is no death."""
    [name] = some_workers(job, random, 1)
    job.processes[name].signal(signal.SIGSTOP)
    time.sleep(random.uniform(0.05, 1))
    job.processes[name].signal(signal.SIGCONT)


def replace_stopped_worker(job, random):
    """Its replacement takes its place, and it is refused when it wakes up, and ends; or it wakes in time, and
    the replacement is."""
    [name] = some_workers(job, random, 1)
    old = job.processes[name]
    if old.status() is not None:
        return
    old.signal(signal.SIGSTOP)
    replacement = job.start(name)
    time.sleep(random.uniform(0.5, 4))
    old.signal(signal.SIGCONT)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while FENCED_STATUS not in (old.status(), replacement.status()) and not job.has_ended():
        if time.monotonic() > deadline:
            raise LostError(f"both live, {name} and its replacement:\n{old.output()[-1500:]}")
        time.sleep(0.02)
    if replacement.status() == FENCED_STATUS:
        job.processes[name] = old
    if job.has_ended():
        # It slept until all were done: there is no scheduler any more that could tell it so.
        wait_until(lambda: old.status() is not None or "waiting for the scheduler" in old.output())
        old.kill()


def connections(job, name):
    """The two ends of each TCP connection of a process, its own first."""
    listed = subprocess.run(
        ["ss", "-tnpH", "state", "established"], capture_output=True, text=True, check=True
    )
    pid = job.processes[name].pid
    return [line.split()[2:4] for line in listed.stdout.splitlines() if f"pid={pid}," in line]


def cut(job, random):
    """All TCP connections of a worker, its process lives."""
    [name] = some_workers(job, random, 1)
    for here, _ in connections(job, name):
        port = here.rpartition(":")[2]
        subprocess.run(["ss", "-K", "sport", "=", f":{port}"], capture_output=True, check=False)


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


def step_points(job, name):
    return [path for path in job.points(name) if ".step_" in path.name]


def damage_newest_point(job, random):
    """A bit of it is another one when its worker comes back: all go on from the point before."""
    [name] = some_workers(job, random, 1)
    wait_until(lambda: len(step_points(job, name)) > 1 or job.has_ended())
    kill(job, name)
    if len(points := step_points(job, name)) > 1:
        file = random.choice(sorted(points[-1].iterdir()))
        contents = bytearray(file.read_bytes())
        contents[random.randrange(len(contents))] ^= 1 << random.randrange(8)
        file.write_bytes(contents)
    start(job, name)


# ---- The network, where the job has one of its own -------------------------------------------------------


def own_network():
    return os.readlink("/proc/self/ns/net")


def network_can_break():
    """Whether that of this process can be made slow."""
    if os.geteuid() != 0 or shutil.which("tc") is None:
        return False
    is_usable = traffic("qdisc add dev lo root handle 1: htb", check=False).returncode == 0
    traffic("qdisc del dev lo root", check=False)
    return is_usable


def traffic(words, check=True):
    return subprocess.run(["tc", *words.split()], capture_output=True, check=check)


def slow_network(_job, random):
    """4 Mbit/s for all processes together."""
    traffic("qdisc add dev lo root tbf rate 4mbit burst 32kb latency 400ms")
    time.sleep(random.uniform(0.3, 1.5))
    traffic("qdisc del dev lo root")


def one_way_network(job, random):
    """What comes from one port arrives nowhere for a while; what goes there does."""
    [name] = some_workers(job, random, 1)
    ports = [job.port, *(int(place.rpartition(":")[2]) for place, _ in connections(job, name))]
    traffic("qdisc add dev lo root handle 1: htb default 1")
    traffic("class add dev lo parent 1: classid 1:1 htb rate 10gbit quantum 60000")
    traffic("class add dev lo parent 1: classid 1:2 htb rate 10gbit quantum 60000")
    traffic("qdisc add dev lo parent 1:2 bfifo limit 1")  # no packet is so small
    port = random.choice(ports)
    traffic(f"filter add dev lo parent 1: protocol ip u32 match ip sport {port} 0xffff flowid 1:2")
    time.sleep(random.uniform(0.3, 1.5))
    traffic("qdisc del dev lo root")


NETWORK_FAULTS = [slow_network, one_way_network]

FAULTS = [
    kill_worker,
    interrupt_worker,
    kill_two_workers,
    kill_all_workers,
    kill_scheduler,
    kill_scheduler_and_worker,
    kill_everybody,
    kill_worker_in_recovery_of_another,
    kill_returning_worker,
    kill_at_end,
    kill_in_last_rendezvous,
    pause_worker,
    replace_stopped_worker,
    cut,
    kill_at_write,
    damage_newest_point,
    *NETWORK_FAULTS,
]
