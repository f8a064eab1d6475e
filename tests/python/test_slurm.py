"""`srun muster run` on a real Slurm."""

import os
import re
import select
import sys
import tempfile
from pathlib import Path

import pytest
from digits import write_digits
from places import BUILD, PACKAGES, ROOT
from slurm import PATIENCE_SECONDS, slurm_in

PROGRAM = BUILD / "apps/muster/muster"
TELLS = """
import os
names = ["MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM", "MS_SCHED_HOST", "MS_SCHED_PORT", "SLURMD_NODENAME"]
print(*[os.environ[name] for name in names])
"""


@pytest.fixture(scope="module")
def slurm():
    with tempfile.TemporaryDirectory(prefix="muster-slurm-") as folder:
        Path(folder).chmod(0o755)  # munge's daemon runs as a user of its own
        with slurm_in(Path(folder)) as cluster:
            yield cluster


def environment(folder, **more):
    (folder / "token").write_text("a token that nobody guesses")
    (folder / "token").chmod(0o600)
    told = ("MS_", "OMP_", "MUSTER_", "PYTHON", "SLURM", "CHAOS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(told)}
    path = os.pathsep.join([os.path.dirname(sys.executable), str(PROGRAM.parent), os.environ["PATH"]])
    return {
        **kept,
        "PYTHONPATH": str(PACKAGES),
        "PATH": path,
        "MUSTER_TOKEN_FILE": str(folder / "token"),
        **more,
    }


def tasks(count, *command):
    """A step of so many tasks on each of the two nodes."""
    return ["srun", "-N2", f"--ntasks-per-node={count}", "muster", "run", *command]


def told(done):
    return sorted(re.findall(r"^\[[^]]+\] (MS_\w+ .*)$", done.stdout, re.MULTILINE))


def test_several_tasks_on_a_node_are_a_worker_each(slurm, tmp_path):
    (tmp_path / "tells.py").write_text(TELLS)
    done = slurm.run(tasks(2, "tells.py"), tmp_path, environment(tmp_path))
    assert done.returncode == 0
    (port,) = {line.split()[4] for line in told(done)}
    assert 20000 <= int(port) < 30000
    assert told(done) == [
        f"MS_SCHED scheduler 4 node1 {port} node1",
        f"MS_WORKER 0 4 node1 {port} node1",
        f"MS_WORKER 1 4 node1 {port} node1",
        f"MS_WORKER 2 4 node1 {port} node2",
        f"MS_WORKER 3 4 node1 {port} node2",
    ]


def test_one_task_on_a_node_starts_as_many_workers_as_are_asked_for(slurm, tmp_path):
    (tmp_path / "tells.py").write_text(TELLS)
    command = tasks(1, "-n", "2", "--port", "9999", "tells.py")
    done = slurm.run(command, tmp_path, environment(tmp_path))
    assert done.returncode == 0
    assert told(done) == [
        "MS_SCHED scheduler 4 node1 9999 node1",
        "MS_WORKER 0 4 node1 9999 node1",
        "MS_WORKER 1 4 node1 9999 node1",
        "MS_WORKER 2 4 node1 9999 node2",
        "MS_WORKER 3 4 node1 9999 node2",
    ]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            tasks(2, "-n", "2", "tells.py"),
            r"-n 2 contradicts.*4 tasks.*2 nodes",
        ),
        (
            ["salloc", "-N2", "muster", "run", "-n", "2", "tells.py"],
            r"Slurm's.*2 nodes.*`muster run`.*srun",
        ),
        (
            tasks(1, "--node-rank", "3", "tells.py"),
            r"--node-rank 3.*contradicts.*SLURM_NODEID=",
        ),
    ],
)
def test_what_contradicts_slurm_is_named(slurm, tmp_path, command, message):
    (tmp_path / "tells.py").write_text(TELLS)
    done = slurm.run(command, tmp_path, environment(tmp_path))
    assert done.returncode == 2
    assert re.search(message, done.stderr)


def test_tasks_that_share_no_secret_say_what_to_type(slurm, tmp_path):
    (tmp_path / "tells.py").write_text(TELLS)
    done = slurm.run(tasks(1, "tells.py"), tmp_path, environment(tmp_path, MUSTER_TOKEN_FILE=""))
    assert done.returncode == 2
    assert "several" in done.stderr and "launchers" in done.stderr
    assert (
        slurm.run(
            tasks(1, "--open", "tells.py"), tmp_path, environment(tmp_path, MUSTER_TOKEN_FILE="")
        ).returncode
        == 0
    )


FAILS = """
import sys
import muster
muster.init()
one = muster.Tensor([1.0], muster.float32)
muster.ops.all_reduce(one)
if muster.get_rank() == 3:
    sys.exit(7)
muster.ops.all_reduce(one)
"""


def test_slurm_gets_the_exit_code_of_the_worker_that_failed_first(slurm, tmp_path):
    (tmp_path / "fails.py").write_text(FAILS)
    done = slurm.run(tasks(2, "fails.py"), tmp_path, environment(tmp_path))
    assert done.returncode == 7
    assert "worker 3 exited with code 7" in done.stderr


# The training of the chaos tests, with a callback that waits for ever at the 70th step of the first time.
WAITS = """
import pathlib, signal

class Waits(train.Callback):
    def on_train_step_end(self, run_context):
        if muster.get_rank() == 1 and run_context.original_args().cur_step_num == 70:
            if os.environ.get("SLURM_RESTART_COUNT", "0") == "0":
                pathlib.Path("reached").write_text("step 70")
                signal.pause()
            print("passes step 70")


def digits("""
BATCH_SCRIPT = """#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=2 --requeue --output=slurm.out --open-mode=append
srun muster run --max-restarts 1 train.py
echo "$?" >ended
"""


class Pipe:
    """Told by another process, once."""

    def __init__(self, path):
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def read(self):
        ready, _, _ = select.select([self._fd], [], [], PATIENCE_SECONDS)
        assert ready, "nobody wrote into the pipe"
        return os.read(self._fd, 100).decode()


def states(text):
    return re.findall(r"^\[worker \d\] state (\w+)$", text, re.MULTILINE)


def test_a_job_that_is_put_back_into_the_queue_ends_as_one_that_is_not(slurm, tmp_path):
    write_digits(tmp_path, rows=640)
    script = (ROOT / "tests/chaos/train.py").read_text()
    (tmp_path / "whole.py").write_text(script)
    script = script.replace("def digits(", WAITS, 1)
    script = script.replace("epochs, data, [train.", "epochs, data, [Waits(), train.", 1)
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "job.sh").write_text(BATCH_SCRIPT)
    variables = environment(
        tmp_path, CHAOS_MODE="model", CHAOS_DATA=str(tmp_path), CHAOS_EPOCHS="5", OMP_NUM_THREADS="1"
    )

    whole = slurm.run(tasks(2, "whole.py"), tmp_path, variables)
    assert whole.returncode == 0

    reached, ended = Pipe(tmp_path / "reached"), Pipe(tmp_path / "ended")
    job = slurm.run(["sbatch", "--parsable", "job.sh"], tmp_path, variables).stdout.strip()
    assert reached.read() == "step 70"
    assert slurm.run(["scontrol", "requeue", job], tmp_path, variables).returncode == 0
    assert ended.read() == "0\n"
    output = (tmp_path / "slurm.out").read_text()
    print(output, file=sys.stderr)
    assert "resuming job" in output
    assert "[worker 1] passes step 70\n" in output
    assert states(output) == states(whole.stdout)
    assert len(states(output)) == 4
    assert (tmp_path / f"muster-recovery/slurm-{job}.0").is_dir()
