"""Muster and its peers: where they are, how each runs the jobs of the table, whether its answer is right."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from processes import Command, Ended, free_port, run_together

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = HERE / "peers"
BUILD = ROOT / "build"
EPOCHS, BATCH, PRINT_EVERY = 10, 32, 10
LOSS_LINE = re.compile(r"epoch: (\d+), step: (\d+), loss is (\S+)")
PLACED_WORKERS = 5
PLACED_LOSS_LINE = re.compile(r"epoch: (\d+) step: (\d+), loss is (\S+)")
PLACED_STEP_LINE = re.compile(r"Train epoch time: \S+ ms, per step time: (\S+) ms")
PLACED_ACCURACY_LINE = re.compile(r"Accuracy is: \{'Accuracy': (\S+)\}")


class WrongAnswerError(Exception):
    """A contender ended, but not with what it should have computed."""


@dataclass(frozen=True)
class Missing:
    """A contender that is not here, and how it would be."""

    name: str
    remedy: str


@dataclass(frozen=True)
class Job:
    """Training the net of seed 000 by several workers on this host."""

    workers: int
    rows: int
    digits: Path  # folder of train-*-ubyte
    omp_num_threads: str | None  # None: not set
    timed: bool = False  # with the timestamps of timed_net.py


@dataclass(frozen=True)
class JobResult:
    seconds: float  # until the last worker has ended
    notes: Sequence[str] = ()
    # Only of a timed job.
    first_step_seconds: float | None = None
    step_seconds: float | None = None
    peak_memory_bytes: int | None = None


@dataclass(frozen=True)
class PlacedResult:
    """Seed 003: LeNet, its layers placed on five workers, trained and then evaluated."""

    seconds: float  # until the last worker has ended
    step_seconds: float  # mean over the epochs after the first
    accuracy: float
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class AllReduce:
    ranks: int
    sizes_bytes: Sequence[int]
    tcp: bool = False
    # Each input is written before its call and each output read after it, as in a training step; Muster's
    # lie in memory that the processes share, as its training steps' do.
    touched: bool = False


def check_losses(output: str, who: str, job: Job) -> None:
    """Every step that should be printed is, every loss is a number, and training has made it smaller."""
    losses = [(int(m[1]), float(m[3])) for m in LOSS_LINE.finditer(output)]
    steps = math.ceil(math.ceil(job.rows / job.workers) / BATCH)
    expected = EPOCHS * math.ceil(steps / PRINT_EVERY)
    if len(losses) != expected:
        raise WrongAnswerError(f"{who} printed {len(losses)} losses, {expected} were expected")
    if not all(math.isfinite(loss) for _, loss in losses):
        raise WrongAnswerError(f"{who} printed a loss that is no number")
    last = [loss for epoch, loss in losses if epoch == EPOCHS - 1]
    first = losses[0][1]
    if sum(last) / len(last) > 0.8 * first:
        raise WrongAnswerError(
            f"{who}: the loss began at {first:.3f} and only fell to {sum(last) / len(last):.3f}"
        )


def placed_result(seconds: float, output: str, notes: Sequence[str], rows: int) -> PlacedResult:
    """From what worker 0 printed, the only one whose figures the text vouches for."""
    losses = [(int(m[1]), float(m[3])) for m in PLACED_LOSS_LINE.finditer(output)]
    if len(losses) != EPOCHS * (rows // BATCH):
        raise WrongAnswerError(
            f"worker 0 printed {len(losses)} losses, {EPOCHS * (rows // BATCH)} were expected"
        )
    if not all(math.isfinite(loss) for _, loss in losses):
        raise WrongAnswerError("worker 0 printed a loss that is no number")
    steps = [float(m[1]) / 1e3 for m in PLACED_STEP_LINE.finditer(output)]
    if len(steps) != EPOCHS:
        raise WrongAnswerError(f"worker 0 printed the time of {len(steps)} epochs, of {EPOCHS}")
    accuracy = PLACED_ACCURACY_LINE.search(output)
    if not accuracy:
        raise WrongAnswerError("worker 0 printed no accuracy")
    return PlacedResult(seconds, sum(steps[1:]) / len(steps[1:]), float(accuracy[1]), notes)


def json_lines(output: str) -> list[dict]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{") and line.endswith("}")]


def timings(seconds: float, outputs: Iterable[str], notes: Sequence[str], workers: int) -> JobResult:
    reports = [report for output in outputs for report in json_lines(output)]
    if sorted(report["rank"] for report in reports) != list(range(workers)):
        raise WrongAnswerError(
            f"the ranks that reported are {sorted(r['rank'] for r in reports)}, of {workers}"
        )
    return JobResult(
        seconds=seconds,
        notes=notes,
        first_step_seconds=max(report["first_step_seconds"] for report in reports),
        step_seconds=max(report["step_seconds"] for report in reports),
        peak_memory_bytes=max(report["peak_memory_bytes"] for report in reports),
    )


def all_reduce_times(output: str, test: AllReduce) -> dict[int, float]:
    """Mean seconds of a call, for each size. The programs have checked the sums."""
    return times_by_size(output, "all_reduce", test.sizes_bytes, "mean_us")


def crossing_times(output: str, sizes_bytes: Sequence[int]) -> dict[int, float]:
    """Median seconds of a message, for each size. The programs have checked the bytes."""
    return times_by_size(output, "crossing", sizes_bytes, "median_us")


def times_by_size(output: str, what: str, sizes_bytes: Sequence[int], figure: str) -> dict[int, float]:
    times = {report["bytes"]: report[figure] / 1e6 for report in json_lines(output)}
    if sorted(times) != sorted(sizes_bytes):
        raise WrongAnswerError(f"{what} of {sizes_bytes} bytes reported {sorted(times)}: {output[-500:]}")
    return times


def picture_seconds(output: str) -> float:
    """Seconds a picture, from a program that prints how many it makes a second, having looked at some."""
    found = re.search(r"pictures/s (\S+)", output)
    if not found:
        raise WrongAnswerError(f"no line 'pictures/s' was printed: {output[-500:]}")
    return 1 / float(found[1])


def require_success(ended: Ended) -> str:
    if ended.exit_code != 0:
        tail = "\n".join(ended.output.splitlines()[-8:])
        raise WrongAnswerError(f"{ended.name} ended with {ended.exit_code}; its last lines:\n{tail}")
    return ended.output


class Contender:
    name = ""
    title = ""
    how = ""  # it is used here
    trains = True
    reduces = True
    makes_pictures = False
    sends = False  # from one process to another
    places = False  # parts of a network on workers
    shares_memory = True  # all_reduce uses TCP only when it is asked to

    def heading(self) -> str:
        return " ".join(filter(None, (self.title, self.version(), self.how)))

    def version(self) -> str:
        raise NotImplementedError

    def run_job(self, job: Job, logs: Path) -> JobResult:
        raise NotImplementedError

    def run_placed(self, digits: Path, rows: int, logs: Path) -> PlacedResult:
        """`digits`: the folder of train/ with `rows` digits and of test/."""
        raise NotImplementedError

    def run_all_reduce(self, test: AllReduce, logs: Path) -> dict[int, float]:
        """Mean seconds of a call, for each size."""
        raise NotImplementedError

    def run_crossing(self, sizes_bytes: Sequence[int], logs: Path) -> dict[int, float]:
        """Median seconds of a message from one process to another, for each size."""
        raise NotImplementedError

    def run_pictures(self, cifar: Path, logs: Path) -> float:
        """Seconds a picture, of the pipeline of seed 002."""
        raise NotImplementedError


class DynamicCluster(Contender):
    """Seed 000's script, started as its shell loop does: workers first, the scheduler last, all in the
    background, each variable inherited by what comes after it. MindSpore and Muster differ in nothing but the
    interpreter's surroundings."""

    strict = True  # every process must exit with 0

    def python(self) -> str:
        raise NotImplementedError

    def environment(self) -> dict[str, str | None]:
        return {}

    def run_job(self, job: Job, logs: Path) -> JobResult:
        script = HERE / "timed_net.py" if job.timed else ROOT / "tests/seeds/000/net.py"
        variables = {
            **self.environment(),
            "DATA_PATH": str(job.digits),
            "OMP_NUM_THREADS": job.omp_num_threads,
            "MS_WORKER_NUM": str(job.workers),
            "MS_SCHED_HOST": "127.0.0.1",
            "MS_SCHED_PORT": str(free_port()),
        }
        commands = []
        for rank in range(job.workers):
            variables |= {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(rank)}
            commands.append(Command(f"worker_{rank}", [self.python(), str(script)], dict(variables)))
        variables |= {"MS_ROLE": "MS_SCHED"}
        commands.append(Command("scheduler", [self.python(), str(script)], dict(variables)))
        *workers, scheduler = run_together(commands, logs)

        failed = [ended for ended in (*workers, scheduler) if ended.exit_code != 0]
        if self.strict and failed:
            require_success(failed[0])
        notes = [f"{ended.name} ended with {ended.exit_code}" for ended in failed]
        for worker in workers:
            check_losses(worker.output, worker.name, job)
        seconds = max(worker.seconds for worker in workers)
        if not job.timed:
            return JobResult(seconds, notes, peak_memory_bytes=max(w.peak_memory_bytes for w in workers))
        return timings(seconds, [worker.output for worker in workers], notes, job.workers)

    def placed_text(self, text: str) -> str:
        """A script of seed 003 as it runs here."""
        return text

    def run_placed(self, digits: Path, rows: int, logs: Path) -> PlacedResult:
        scripts = logs / "scripts"
        scripts.mkdir(parents=True)
        for source in (ROOT / "tests/seeds/003").glob("*.py"):
            (scripts / source.name).write_text(self.placed_text(source.read_text()))
        variables = {
            **self.environment(),
            "DATA_PATH": str(digits),
            "OMP_NUM_THREADS": "1",
            "MS_WORKER_NUM": str(PLACED_WORKERS),
            "MS_SCHED_HOST": "127.0.0.1",
            "MS_SCHED_PORT": str(free_port()),
        }
        arguments = [self.python(), str(scripts / "train.py")]
        commands = [Command("scheduler", arguments, {**variables, "MS_ROLE": "MS_SCHED"})]
        for rank in range(PLACED_WORKERS):
            told = {**variables, "MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(rank)}
            commands.append(Command(f"worker_{rank}", arguments, told))
        ended = run_together(commands, logs)
        failed = [each for each in ended if each.exit_code != 0]
        if self.strict and failed:
            require_success(failed[0])
        notes = [f"{each.name} ended with {each.exit_code}" for each in failed]
        workers = ended[1:]
        # Nobody numbers MindSpore's workers: worker 0 is the one that tells the accuracy.
        first = next((each for each in workers if PLACED_ACCURACY_LINE.search(each.output)), workers[0])
        result = placed_result(max(each.seconds for each in workers), first.output, notes, rows)
        if self.strict and result.accuracy < 0.8:
            raise WrongAnswerError(f"the accuracy is {result.accuracy}: nothing was learnt")
        return result


class Muster(DynamicCluster):
    name, title = "muster", "Muster"
    makes_pictures = True
    places = True
    sends = True

    def __init__(self, command: Path, python: Path) -> None:
        self.python_ = python
        done = subprocess.run([command, "compat-path"], capture_output=True, text=True, check=True)
        self.compat_path_ = done.stdout.strip()

    def version(self) -> str:
        described = subprocess.run(
            ["git", "-C", ROOT, "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            check=False,
        )
        return described.stdout.strip() or "of this tree"

    def python(self) -> str:
        return str(self.python_)

    def environment(self) -> dict[str, str | None]:
        return {"PYTHONPATH": self.compat_path_}

    def run_all_reduce(self, test: AllReduce, logs: Path) -> dict[int, float]:
        program = [str(BUILD / "benchmarks/bench_all_reduce"), "--json", "--ranks", str(test.ranks)]
        sizes = ",".join(map(str, test.sizes_bytes))
        transport = "tcp" if test.tcp else "auto"
        buffers = ["--shared", "--touch"] if test.touched else []
        command = Command("all_reduce", [*program, "--bytes", sizes, "--transport", transport, *buffers])
        return all_reduce_times(require_success(run_together([command], logs)[0]), test)

    def run_crossing(self, sizes_bytes: Sequence[int], logs: Path) -> dict[int, float]:
        sizes = ",".join(map(str, sizes_bytes))
        command = Command("crossing", [str(BUILD / "benchmarks/bench_crossing"), "--json", "--bytes", sizes])
        return crossing_times(require_success(run_together([command], logs)[0]), sizes_bytes)

    def run_pictures(self, cifar: Path, logs: Path) -> float:
        command = Command("pictures", [str(BUILD / "benchmarks/bench_data"), str(cifar)])
        return picture_seconds(require_success(run_together([command], logs)[0]))


class MindSpore(DynamicCluster):
    name, title = "mindspore", "MindSpore"
    makes_pictures = True
    places = True
    reduces = False
    strict = False  # of eight workers two crash at exit, after the work is done: noted, not held against it

    def __init__(self, python: str) -> None:
        self.python_ = python

    def version(self) -> str:
        return package_version(self.python_, "mindspore")

    def python(self) -> str:
        return self.python_

    def placed_text(self, text: str) -> str:
        return text.replace("device_target='GPU'", "device_target='CPU'")  # it refuses to start without one

    def run_pictures(self, cifar: Path, logs: Path) -> float:
        command = Command("pictures", [self.python_, str(PEERS / "mindspore_data.py"), str(cifar)])
        return picture_seconds(run_together([command], logs)[0].output)


class Torch(Contender):
    name, title, how = "torch", "PyTorch", "DDP, Gloo"
    shares_memory = False

    def __init__(self, python: str) -> None:
        self.python_ = python

    def version(self) -> str:
        return package_version(self.python_, "torch")

    def launch(self, workers: int) -> list[str]:
        port = str(free_port())
        torchrun = [self.python_, "-m", "torch.distributed.run", "--nproc_per_node", str(workers)]
        return [*torchrun, "--master_addr", "127.0.0.1", "--master_port", port]

    def run_job(self, job: Job, logs: Path) -> JobResult:
        arguments = [*self.launch(job.workers), str(PEERS / "torch_net.py")]
        variables = {"DATA_PATH": str(job.digits), "OMP_NUM_THREADS": job.omp_num_threads}
        (ended,) = run_together([Command("torchrun", arguments, variables)], logs)
        # Like MindSpore's, its processes sometimes abort at exit, when all is done and reported.
        notes = [f"torchrun ended with {ended.exit_code}"] if ended.exit_code else []
        check_losses(ended.output, "rank 0 of torch_net.py", job)  # the others print none
        result = timings(ended.seconds, [ended.output], notes, job.workers)
        return (
            result
            if job.timed
            else JobResult(ended.seconds, notes, peak_memory_bytes=result.peak_memory_bytes)
        )

    def run_all_reduce(self, test: AllReduce, logs: Path) -> dict[int, float]:
        arguments = [
            *self.launch(test.ranks),
            str(PEERS / "torch_all_reduce.py"),
            *map(str, test.sizes_bytes),
        ]
        (ended,) = run_together([Command("torchrun", arguments, {"OMP_NUM_THREADS": "1"})], logs)
        return all_reduce_times(ended.output, test)  # reported only when the sums were right


class OpenMpi(Contender):
    name, title = "mpi", "Open MPI"
    trains = False
    sends = True

    def __init__(self, all_reduce: Path, crossing: Path) -> None:
        self.all_reduce_ = all_reduce
        self.crossing_ = crossing

    def version(self) -> str:
        said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"\d+\.\d+\.\d+", said)
        return found[0] if found else "?"

    def run_all_reduce(self, test: AllReduce, logs: Path) -> dict[int, float]:
        options = ["--oversubscribe", "-n", str(test.ranks)]
        if test.tcp:
            options += ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
        touch = ["--touch"] if test.touched else []
        program = [str(self.all_reduce_), *touch, *map(str, test.sizes_bytes)]
        return all_reduce_times(self.mpirun([*options, *program], logs), test)

    def run_crossing(self, sizes_bytes: Sequence[int], logs: Path) -> dict[int, float]:
        program = ["--oversubscribe", "-n", "2", str(self.crossing_), *map(str, sizes_bytes)]
        return crossing_times(self.mpirun(program, logs), sizes_bytes)

    def mpirun(self, arguments: Sequence[str], logs: Path) -> str:
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        (ended,) = run_together([Command("mpirun", ["mpirun", *arguments], root)], logs)
        return require_success(ended)


def package_version(python: str, package: str) -> str:
    code = f"from importlib.metadata import version; print(version('{package}'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


def find_muster() -> Contender | Missing:
    command, python = ROOT / ".venv/bin/muster", ROOT / ".venv/bin/python"
    for needed in (command, python, BUILD / "benchmarks/bench_all_reduce"):
        if not needed.exists():
            return Missing(Muster.title, f"{needed} is not there: ./dev setup, ./dev build benchmarks")
    return Muster(command, python)


def find_python_peer(kind: type[MindSpore] | type[Torch], variable: str, install: str) -> Contender | Missing:
    python = os.environ.get(variable)
    package = kind.name
    remedy = f"{variable}=/path/to/python of an environment with it ({install})"
    if not python:
        return Missing(kind.title, remedy)
    if not shutil.which(python) or package_version(python, package) == "?":
        return Missing(kind.title, f"{variable}={python} has no {package}; {remedy}")
    return kind(python)


def find_mpi(scratch: Path) -> Contender | Missing:
    if not shutil.which("mpirun") or not shutil.which("mpicc"):
        return Missing(OpenMpi.title, "apt-get install openmpi-bin libopenmpi-dev")
    programs = []
    for name in ("mpi_all_reduce", "mpi_crossing"):
        programs.append(scratch / name)
        source = PEERS / f"{name}.c"
        built = subprocess.run(
            ["mpicc", "-O2", source, "-o", programs[-1]], capture_output=True, text=True, check=False
        )
        if built.returncode != 0:
            return Missing(OpenMpi.title, f"mpicc could not build {source}:\n{built.stderr}")
    return OpenMpi(*programs)


def find_all(scratch: Path) -> list[Contender | Missing]:
    """In the order of the table's columns."""
    return [
        find_python_peer(MindSpore, "MUSTER_PEER_MINDSPORE", "pip install mindspore==2.7.0 numpy==1.26.4"),
        find_python_peer(Torch, "MUSTER_PEER_TORCH", "pip install torch numpy"),
        find_mpi(scratch),
        find_muster(),
    ]
