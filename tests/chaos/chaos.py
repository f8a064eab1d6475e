"""Breaks trainings at random, and proves after each that its end is bit-equal to that of one nobody broke.

  ./dev chaos --seed 1 --faults 200

A seed replays the same faults in the same order, at times that depend on the machine.
"""

import argparse
import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import faults
from recovering_job import BUILD, LAYOUTS, ROOT, Job, LostError, place
from storage_faults import STORAGE_FAULTS, fill_disk

sys.path.insert(0, str(ROOT / "tests/python"))
from digits import write_digits
from tls import Tree

MODES = ("model", "loop", "calls", "norm", "placed")
TRANSPORTS = ("auto", "tcp", "tls")
LEFT_SECONDS = 10  # a stale incarnation that was refused ends by itself
DISK_BYTES = 48 << 20  # for each worker


class Disks:
    """A file system for each place of a job, to be filled without harm; folders where that is forbidden."""

    def __init__(self, root, workers, layout):
        names = ["scheduler", *(f"worker {rank}" for rank in range(workers))]
        bytes_of = Counter(place(name, layout) for name in names)
        self.root = root
        self._places = [(root / name, count * DISK_BYTES) for name, count in bytes_of.items()]

    def __enter__(self):
        for folder, size in self._places:
            folder.mkdir(parents=True)
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
            subprocess.run(mount, capture_output=True, check=False)
        return self

    def __exit__(self, *_):
        for folder, _ in self._places:
            if folder.is_mount():
                subprocess.run(["umount", "-l", str(folder)], check=False)


def usable_faults(wanted, network_is_own):
    usable = [fault for fault in [*faults.FAULTS, *STORAGE_FAULTS] if not wanted or fault.__name__ in wanted]
    if shutil.which("strace") is None and faults.kill_at_write in usable:
        print("no strace: nothing is killed at its n-th write")
        usable.remove(faults.kill_at_write)
    network = [fault for fault in usable if fault in faults.NETWORK_FAULTS]
    if network and not (network_is_own and faults.network_can_break()):
        print("no network namespace of its own, or no `tc`: the network is neither slow nor one-way")
        usable = [fault for fault in usable if fault not in network]
    return usable


def unbroken_end(folder, workers, mode, data, epochs):
    with Job(folder, workers, mode, data, CHAOS_EPOCHS=epochs) as job:
        return job.wait()


def living(folder):
    """Processes that were started for jobs below a folder."""
    mark, found = f"CHAOS_JOB={folder}".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes():
                found.append(f"process {process.name}")
    return found


def leftovers(folder):
    """What a job must not leave: processes that it started, halves of points."""
    faults.wait_until(lambda: not living(folder), LEFT_SECONDS)
    return living(folder) + [str(path) for path in folder.glob("disks/*/recovery/**/.new-*")]


def break_some(job, dice, options, budget):
    """Which faults it had, and the last state of each worker."""
    done = []
    for _ in range(min(budget, dice.randint(1, 4))):
        time.sleep(dice.uniform(0, 1.2))
        fault = dice.choice(options.faults)
        if fault is fill_disk and not job.disks():
            fault = faults.kill_worker
        since = job.newest_point()
        if job.is_ending():
            break
        print(f"  {job.description}: {fault.__name__} after {since}", flush=True)
        done.append(fault.__name__)
        fault(job, dice)
        job.wait_for_progress(since)
    return done, job.wait()


def break_one(folder, dice, expected, options, data, tree, budget):
    """One job with some faults; which."""
    mode, transport, layout = map(dice.choice, (options.modes, options.transports, options.layouts))
    variables = {"MUSTER_TRANSPORT": transport, "CHAOS_EPOCHS": str(options.epochs)}
    if transport == "tls":
        variables.update(tree.variables(), MUSTER_TRANSPORT="tcp")
    with (
        Disks(folder / "disks", options.workers, layout) as disks,
        Job(folder / "job", options.workers, mode, data, disks.root, layout, **variables) as job,
    ):
        job.description = f"{mode} {transport} {layout}"
        done, ends = break_some(job, dice, options, budget)
        if ends != expected[mode]:
            raise LostError(f"the end differs: {ends} instead of {expected[mode]}")
        if left := leftovers(folder):
            raise LostError(f"left behind: {left}")
    return done


def parsed_options(network_is_own):
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randint(1, 10**6))
    parser.add_argument("--faults", type=int, default=20, help="how many (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--transports", nargs="+", default=TRANSPORTS, choices=TRANSPORTS)
    parser.add_argument("--layouts", nargs="+", default=LAYOUTS, choices=LAYOUTS, help="of recovery paths")
    parser.add_argument("--only", nargs="+", default=[], help="names of faults")
    options = parser.parse_args()
    options.faults_wanted, options.faults = options.faults, usable_faults(options.only, network_is_own)
    return options


def move_into_own_network():
    """A network that is made slow should be nobody else's: this program again, in a namespace of its own,
    where that is allowed. Whether it runs in one."""
    outside = os.environ.pop("CHAOS_OUTSIDE", None)
    if outside is not None:
        return outside != faults.own_network()
    alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if not all(map(shutil.which, ("unshare", "ip"))):
        return False
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        return False
    environment = {**os.environ, "CHAOS_OUTSIDE": faults.own_network()}
    os.execvpe(alone[0], [*alone, sys.executable, *sys.argv], environment)


def main():
    options = parsed_options(move_into_own_network())
    print(f"seed {options.seed}, {options.faults_wanted} faults, {options.workers} workers, of {BUILD}")
    dice = random.Random(options.seed)
    counts = Counter()
    folder = Path(tempfile.mkdtemp(prefix="muster-chaos-"))
    data, tree = folder / "digits", Tree(folder / "certificates")
    write_digits(data, rows=1280)
    begin = time.monotonic()
    try:
        expected = {
            mode: unbroken_end(folder / mode, options.workers, mode, data, str(options.epochs))
            for mode in options.modes
        }
        while (budget := options.faults_wanted - counts.total()) > 0:
            job = folder / f"job-{counts.total()}"
            counts.update(break_one(job, dice, expected, options, data, tree, budget))
            shutil.rmtree(job)
            print(
                f"{counts.total()} faults, bit-equal, nothing left, {time.monotonic() - begin:.0f} s",
                flush=True,
            )
    except LostError as lost:
        print(f"seed {options.seed}: {lost}\nlogs are kept in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    print("\n".join(f"{count:5} {name}" for name, count in sorted(counts.items())))
    return 0


sys.exit(main())
