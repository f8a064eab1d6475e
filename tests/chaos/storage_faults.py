"""What can happen to the folders and disks of a job, and to the hosts that they are in."""

import contextlib
import fcntl
import glob
import hashlib
import resource
import shutil
import signal
import tempfile
import time
from pathlib import Path

from faults import kill, some_workers, start, wait_until
from job import free_port
from recovering_job import PATIENCE_SECONDS, LostError, Process

REFUSALS = ("in use by", "processes of an unfinished job live that do not come to this scheduler")
FILE_BYTES = 128 << 10  # less than a recovery point has, and more than a log
SHARED_MODES = ("model", "loop", "calls")  # no worker has anything in memory that the others lack


# ---- Folders ----------------------------------------------------------------------------------------------


def put_away(job, folders):
    """As if they had never been; where they are now."""
    away = Path(tempfile.mkdtemp(prefix="lost-", dir=job.folder))
    for number, folder in enumerate(path for path in folders if path.exists()):
        # Away at once, before it is copied to another disk: workers that live write below its name.
        gone = folder.rename(folder.with_name(f".lost-{folder.name}"))
        shutil.move(gone, away / str(number))
    return away


def own_folders(job, name):
    return [job.paths[name]] if job.layout == "own" else job.folders(name)


def end_without(job, name, since):
    """Whether the job has ended because nobody else has what `name` has lost."""
    wait_until(lambda: job.has_ended() or (job.points(name) and job.newest_point() > since))
    if not job.has_ended() or job.has_ended_well():
        return False
    texts = [process.output() for process in job.processes.values()]
    if not any(
        "Nothing was changed: start the workers where their recovery points are" in text for text in texts
    ):
        raise LostError(
            "it ended without a word of what is lost:\n" + "\n".join(text[-1000:] for text in texts)
        )
    return True


def lose_and_start(job, name, *also, **variables):
    """Others have what it needs. Where they do not, all end with an error, and the folder is found again."""
    folders = own_folders(job, name)
    since = job.newest_point()
    away = put_away(job, folders)
    job.start(name, **variables)
    start(job, *also)
    if job.mode in SHARED_MODES or not end_without(job, name, since):
        return
    put_away(job, own_folders(job, name))
    for number, folder in enumerate(folders):
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(away / str(number), folder)
    start(job, *job.names())


def is_past_last_call(job):
    """Whether some worker has its end: the others may have left before one comes back that has lost it
    (docs/guide/recovery.md, Limits)."""
    last_call, end = 2 if job.mode == "calls" else 0, 2
    return job.newest_point() >= (last_call, end)


def lose_folder(job, random):
    """A worker dies, and its folder with it."""
    [name] = some_workers(job, random, 1)
    kill(job, name)
    if is_past_last_call(job):
        start(job, name)
    elif job.is_open(name):
        lose_and_start(job, name)


def replace_host(job, random):
    """A worker goes on in another host, with another address, and an empty folder; or, where it is the only
    one that is missing, without the name that it had."""
    [name] = some_workers(job, random, 1)
    kill(job, name)
    if is_past_last_call(job):
        return start(job, name)
    if not job.is_open(name):
        return
    number = len(job.everybody) % 250 + 2
    job.hosts[name] = {"MUSTER_HOST_KEY": f"host-{number}"}
    if not job.has_certificates:  # they are for one address
        job.hosts[name]["MS_WORKER_IP"] = f"127.0.0.{number}"
    lose_and_start(job, name, **random.choice([{}, {"MS_NODE_ID": None}]))


def lose_scheduler_folder(job, random):
    """The scheduler's host is replaced, while the workers live, or with one of them, or with all."""
    names = ["scheduler", *some_workers(job, random, random.choice([0, 1, job.workers]))]
    kill(job, *names)
    folder = job.paths["scheduler"]
    if job.layout != "shared":
        put_away(job, [folder])
    elif job.mode in SHARED_MODES and len(names) <= job.workers and random.random() < 0.5:
        put_away(job, [folder])  # and every point with it: a worker lives
    else:
        put_away(job, folder.glob("scheduler.*"))
    random.shuffle(names)
    start(job, *names)


# ---- Disks ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def full(disk):
    """A file system to its last byte."""
    filler = disk / "filler"
    try:
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            for count in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while file.write(bytes(count)) == count:
                        pass
        yield
    finally:
        filler.unlink(missing_ok=True)


@contextlib.contextmanager
def no_large_files(job, name):
    """What a process writes fails as if its disk were full, until it has ended or the limit is lifted."""
    pid, unlimited = job.processes[name].pid, resource.RLIM_INFINITY
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_BYTES, unlimited))
    try:
        yield
    finally:
        if job.processes[name].status() is None:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))


def fill_disk(job, random):
    """Every disk is full for a while: training goes on with the points that it has."""
    with contextlib.ExitStack() as disks:
        for disk in job.disks():
            disks.enter_context(full(disk))
        time.sleep(random.uniform(0.2, 1))


def fill_disk_for_a_while(job, random):
    """That of one worker is full for some saves, or across the end of a call; one dies then, or meanwhile."""
    name, other = some_workers(job, random, 2)
    victims = random.choice([[], [name], [other], [name, other]])
    dies_meanwhile = random.random() < 0.3
    is_whole_disk = random.random() < 0.5 and job.layout == "own" and job.disks()
    with full(job.paths[name].parent) if is_whole_disk else no_large_files(job, name):
        if random.random() < 0.5:
            call = job.newest_point()[:1]
            wait_until(lambda: job.newest_point()[:1] > call or job.is_ending(), 4)
        time.sleep(random.uniform(0.1, 1.5))
        if job.is_ending():
            return
        if dies_meanwhile:
            kill(job, *victims)
            start(job, *victims)
            time.sleep(random.uniform(0, 1.5))
    if not dies_meanwhile and not job.is_ending():
        kill(job, *victims)
        start(job, *victims)


def fill_all_disks_over_two_ends(job, random):
    """Nobody keeps the end of one call, nor that of the next; later there is room; then everybody dies."""
    workers = job.names()[1:]
    if job.mode != "calls":
        return
    with contextlib.ExitStack() as limits:
        for name in workers:
            limits.enter_context(no_large_files(job, name))
        missed = "could not keep the end of call 1"
        wait_until(lambda: all(missed in job.processes[name].output() for name in workers) or job.is_ending())
    wait_until(lambda: job.newest_point() > (2, 1) or job.is_ending())
    if random.random() < 0.5:
        kill(job, *job.names())
        start(job, *job.names())
    elif not job.is_ending():
        kill(job, *job.names())
        lose_and_start(job, workers[0], *[name for name in job.names() if name != workers[0]])


# ---- Two jobs on one path ---------------------------------------------------------------------------------


def contents(job):
    """A hash of every file below the points of every worker."""
    found = {}
    for name in job.names()[1:]:
        for file in (path for point in job.points(name) for path in glob.glob(f"{point}/*")):
            with contextlib.suppress(FileNotFoundError):
                found[file] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return found


class Rival:
    """Another job, of another port, on the same paths; or its scheduler has one of its own."""

    def __init__(self, job, has_own_path, **variables):
        self.folder = Path(tempfile.mkdtemp(prefix="rival-", dir=job.folder))
        told = {"MS_SCHED_PORT": str(free_port()), **variables}
        paths = {"scheduler": {"MS_RECOVERY_PATH": str(self.folder / "recovery")}} if has_own_path else {}
        self.processes = [
            Process(name, self.folder, job.environment(name, **told, **paths.get(name, {})))
            for name in job.names()
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()

    def is_refused(self):
        """Whoever finds the path in use ends with an error that says so. Where that is the scheduler, the
        workers wait for one that may yet come."""
        ended = [process for process in self.processes if process.status() is not None]
        is_over = self.processes[0] in ended or len(ended) == len(self.processes)
        texts = "\n".join(process.output() for process in ended)
        return is_over and any(refusal in texts for refusal in REFUSALS)

    def output(self):
        return "\n".join(process.output()[-800:] for process in self.processes)


def is_up(job):
    """Whether each process has taken its folder, as far as others can tell."""
    try:
        with (job.paths["scheduler"] / "scheduler.lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return all(job.points(name) for name in job.names()[1:])
    except FileNotFoundError:
        pass
    return False


def stands_still(process):
    """Whether every thread has stopped, or ended: one in the middle of a write stops behind it."""
    try:
        tasks = list(Path(f"/proc/{process.pid}/task").glob("*/stat"))
        return all(task.read_text().rpartition(")")[2].split()[0] in "TtZX" for task in tasks)
    except (FileNotFoundError, ProcessLookupError):
        return process.status() is not None


def two_jobs_one_path(job, random):
    """The second one is refused, and changes nothing."""
    wait_until(lambda: is_up(job) or job.is_ending())
    is_still = random.random() < 0.5
    for process in job.processes.values() if is_still else ():
        process.signal(signal.SIGSTOP)
    wait_until(lambda: not is_still or all(map(stands_still, job.processes.values())))
    try:
        before = contents(job)
        fresh = random.choice([{}, {"MUSTER_FRESH": "1"}])
        with Rival(job, has_own_path=random.random() < 0.5, **fresh) as rival:
            wait_until(lambda: rival.is_refused() or job.is_ending(), PATIENCE_SECONDS / 2)
            if job.is_ending():
                return
            if not rival.is_refused():
                raise LostError(f"a second job was not refused:\n{rival.output()}")
        after = contents(job)
        changed = [path for path, value in before.items() if path in after and after[path] != value]
        if changed or (is_still and after != before):
            raise LostError(f"a second job has changed the points of the first: {changed or 'some are gone'}")
    finally:
        for process in job.processes.values():
            process.signal(signal.SIGCONT)


STORAGE_FAULTS = [
    lose_folder,
    replace_host,
    lose_scheduler_folder,
    fill_disk,
    fill_disk_for_a_while,
    fill_all_disks_over_two_ends,
    two_jobs_one_path,
]
