"""Breaks trainings at random, and proves after each that its end is bit-equal to that of one nobody broke.

  ./dev chaos --seed 1 --faults 200

A seed replays the same faults in the same order, at times that depend on the machine.
"""

import argparse
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
from recovering_job import BUILD, ROOT, Job, LostError

sys.path.insert(0, str(ROOT / "tests/python"))
from digits import write_digits
from tls import Tree

MODES = ("model", "loop", "placed")
TRANSPORTS = ("auto", "tcp", "tls")
RECOVERY_BYTES = 96 << 20  # of the small disk that can be filled


class SmallDisk:
    """A file system that can be filled without harm; an ordinary folder where we may not mount."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        mount = ["mount", "-t", "tmpfs", "-o", f"size={RECOVERY_BYTES}", "tmpfs", str(folder)]
        self.is_small = subprocess.run(mount, capture_output=True, check=False).returncode == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.is_small:
            subprocess.run(["umount", "-l", str(self.folder)], check=False)


def usable_faults(wanted, network_is_own):
    usable = [fault for fault in faults.FAULTS if not wanted or fault.__name__ in wanted]
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


def leftovers(folder):
    """What a job must not leave: processes that it started, halves of points."""
    found = subprocess.run(
        ["pgrep", "-f", str(folder)], capture_output=True, text=True, check=False
    ).stdout.split()
    return [f"process {pid}" for pid in found] + [str(path) for path in folder.glob("recovery/job-*/*/*tmp*")]


def break_one(folder, dice, expected, options, data, tree, budget):
    """One job with some faults; how many, and which."""
    mode, transport = dice.choice(options.modes), dice.choice(options.transports)
    variables = {"MUSTER_TRANSPORT": transport, "CHAOS_EPOCHS": str(options.epochs)}
    if transport == "tls":
        variables.update(tree.variables(), MUSTER_TRANSPORT="tcp")
    done = []
    with SmallDisk(folder.with_name(folder.name + "-disk")) as disk:
        with Job(folder, options.workers, mode, data, recovery=disk.folder / "recovery", **variables) as job:
            for _ in range(min(budget, dice.randint(1, 4))):
                time.sleep(dice.uniform(0, 1.2))
                fault = dice.choice(options.faults)
                if fault is faults.fill_disk and not disk.is_small:
                    fault = faults.kill_worker
                since = job.newest_point()
                if any(process.status() is not None for process in job.processes.values()):
                    break  # it is ending
                print(f"  {mode} {transport}: {fault.__name__} after {since}", flush=True)
                done.append(fault.__name__)
                fault(job, dice)
                job.wait_for_progress(since)
            ends = job.wait()
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
