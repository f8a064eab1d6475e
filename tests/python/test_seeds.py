"""The scripts of tests/seeds run as they are."""

import os
import re
import shutil
import socket
import subprocess
import sys

import pytest
from digits import write_digits
from job import free_port
from places import BUILD, COMPAT_PACKAGES, PACKAGES, ROOT

# Their start scripts name ports, which two tests at once must not take.
pytestmark = pytest.mark.xdist_group("ports of the seeds")
LINE = re.compile(r"epoch: (\d+), step: (\d+), loss is (\d+\.\d+(?:e-\d+)?)$")


def test_these_tests_are_a_group_for_xdist(request):
    """pytest 9.2.0 hides groups from xdist 3.8.0, which then runs tests of one port at once."""
    assert "@" in request.node.nodeid or not request.config.getoption("loadgroup", default=False)


def port_is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def environment():
    """A user's shell: `python` is the one with Muster, and PYTHONPATH begins with the other names."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MS_", "OMP_"))}
    python = os.path.dirname(sys.executable)
    return {
        **clean,
        "PATH": python + os.pathsep + os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(COMPAT_PACKAGES), str(PACKAGES)]),
    }


def start_script(folder, workers):
    """The script of the page. Only the number of workers, or a port that is taken, may be another."""
    script = (ROOT / "tests/seeds/000/run_dynamic_cluster.sh").read_text()
    if workers != 8:
        script = script.replace("i<8;", f"i<{workers};").replace(
            "MS_WORKER_NUM=8 ", f"MS_WORKER_NUM={workers} "
        )
    if not port_is_free(8118):
        script = script.replace("8118", str(free_port()))
    (folder / "run_dynamic_cluster.sh").write_text(script)


@pytest.mark.parametrize("workers", [2, 8])
def test_the_net_of_seed_000_trains_with_its_own_start_script(tmp_path, workers):
    shutil.copy(ROOT / "tests/seeds/000/net.py", tmp_path)
    start_script(tmp_path, workers)
    write_digits(tmp_path / "MNIST_Data/train", rows=1600)

    reap = [sys.executable, str(ROOT / "tests/python/reap.py"), "90", "bash", "run_dynamic_cluster.sh"]
    done = subprocess.run(reap, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120)

    logs = {path.name: path.read_text() for path in (tmp_path / "device").iterdir()}
    print(done.stdout, done.stderr, logs)  # shown when the test fails
    assert done.returncode == 0
    processes = [line.split(" ", 2) for line in done.stdout.splitlines() if line.endswith("net.py")]
    assert [status for _, status, _ in processes] == ["0"] * (workers + 1)
    assert logs.pop("scheduler.log") == ""
    assert len(logs) == workers
    for text in logs.values():
        matches = [LINE.match(line) for line in text.splitlines()]
        assert all(matches), text
        epochs = {int(match[1]) for match in matches}
        assert epochs == set(range(10))
        losses = [float(match[3]) for match in matches]
        assert 2 < losses[0] < 3
        assert losses[-1] < 0.8 * losses[0]


SEED_002_LINE = re.compile(r"epoch: (\d+) step: (\d+), loss is (\d+\.\d+)$")


def test_the_script_of_seed_002_trains_with_its_own_start_script(tmp_path):
    """Two workers, two epochs, small pictures, to take a minute; the text has 8, 10 and 224 x 224."""
    for name in ("resnet.py", "softmax_cross_entropy_expand.py"):
        shutil.copy(ROOT / "tests/seeds/002" / name, tmp_path)
    script = (ROOT / "tests/seeds/002/resnet50_distributed_training.py").read_text()
    script = script.replace("epoch_size=10", "epoch_size=2").replace("= 224", "= 32")
    (tmp_path / "resnet50_distributed_training.py").write_text(script)
    start = (ROOT / "tests/seeds/002/run.sh").read_text().replace("MS_WORKER_NUM=8", "MS_WORKER_NUM=2")
    if not port_is_free(8117):
        start = start.replace("8117", str(free_port()))
    (tmp_path / "run.sh").write_text(start)
    folder = str(tmp_path / "cifar-10-batches-bin")
    pictures = [BUILD / "apps/muster/muster", "data", "synthetic-cifar10", folder, "--records", "43"]
    subprocess.run(pictures, check=True, capture_output=True)  # 258 of them: four batches for each worker

    reap = [sys.executable, str(ROOT / "tests/python/reap.py"), "900", "bash", "run.sh", folder]
    done = subprocess.run(reap, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=1000)

    logs = {path.name: path.read_text() for path in tmp_path.glob("*.txt")}
    print(done.stdout, done.stderr, logs)  # shown when the test fails
    assert done.returncode == 0
    processes = [line.split(" ", 2) for line in done.stdout.splitlines() if line.endswith("training.py")]
    assert [status for _, status, _ in processes] == ["0"] * 3
    assert logs.pop("scheduler.txt") == ""
    assert len(logs) == 2
    for text in logs.values():
        matches = [SEED_002_LINE.match(line) for line in text.splitlines()]
        assert all(matches), text
        assert [(int(match[1]), int(match[2])) for match in matches] == [
            (epoch, step) for epoch in (1, 2) for step in (1, 2, 3, 4)
        ]
        losses = [float(match[3]) for match in matches]
        assert sum(losses[4:]) < sum(losses[:4])


SEED_003_LINE = re.compile(r"epoch: (\d+) step: (\d+), loss is (\d+\.?\d*(?:e-\d+)?)$")


def seed_003(folder, script="", workers=5):
    """The script of the page, unmodified or with a seed, by its own start script: the logs of the workers."""
    shutil.copy(ROOT / "tests/seeds/003/lenet.py", folder)
    text = (ROOT / "tests/seeds/003/train.py").read_text()
    (folder / "train.py").write_text(text.replace("\ninit()\n", f"\ninit()\n{script}\n") if script else text)
    start = (ROOT / "tests/seeds/003/run.sh").read_text()
    if workers != 5:
        start = start.replace("MS_WORKER_NUM=5", f"MS_WORKER_NUM={workers}")
    if not port_is_free(8118):
        start = start.replace("8118", str(free_port()))
    (folder / "run.sh").write_text(start)
    reap = [sys.executable, str(ROOT / "tests/python/reap.py"), "280", "bash", "run.sh", str(folder / "data")]
    alone = {**environment(), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(reap, cwd=folder, env=alone, capture_output=True, text=True, timeout=300)
    logs = {path.stem: path.read_text() for path in folder.glob("*/*.log")}
    print(done.stdout, done.stderr, logs)  # shown when the test fails
    assert done.returncode == 0
    left = [line.split(" ", 2) for line in done.stdout.splitlines() if line.endswith("train.py")]
    assert {status for _, status, _ in left} <= {"0"}  # run.sh waits for the workers itself
    assert len(logs) == workers + 1
    assert "Start" not in logs.pop("sched")
    return logs


def losses_003(log):
    return [(match[1], match[2], match[3]) for match in map(SEED_003_LINE.match, log.splitlines()) if match]


def test_the_script_of_seed_003_trains_over_five_workers_with_its_own_start_script(tmp_path):
    # Its small random weights keep the loss at 2.3 for about 600 steps; in 1 of 70 runs for more than 1000.
    write_digits(tmp_path / "data/train", rows=6400)
    write_digits(tmp_path / "data/test", rows=320, seed=8, prefix="t10k")
    logs = seed_003(tmp_path)
    losses = {tuple(losses_003(text)) for text in logs.values()}
    assert len(losses) == 1  # the same on all workers
    [losses] = losses
    assert len(losses) == 2000
    assert 2 < float(losses[0][2]) < 3
    assert float(losses[-1][2]) < 0.5
    for text in logs.values():
        assert text.count("asks for GPU") == 1
        assert "Start testing" in text
    [accuracy] = re.findall(r"^Accuracy is: {'Accuracy': (.+)}$", "\n".join(logs.values()), re.MULTILINE)
    assert float(accuracy) > 0.9


def test_the_losses_of_seed_003_over_five_workers_are_those_of_one(tmp_path):
    found = []
    for workers in (1, 5):
        folder = tmp_path / str(workers)
        write_digits(folder / "data/train", rows=640)
        write_digits(folder / "data/test", rows=320, seed=8, prefix="t10k")
        found += [losses_003(text) for text in seed_003(folder, "ms.set_seed(3)", workers).values()]
    assert len(found[0]) == 200
    assert all(losses == found[0] for losses in found)


def seed_001(folder, port):
    """Its scripts, as they are but for a port that is taken, and recover.sh for a worker."""
    folder.mkdir()
    source = ROOT / "tests/seeds/001"
    shutil.copy(source / "train.py", folder)
    for name in ("run.sh", "recover.sh"):
        (folder / name).write_text((source / name).read_text().replace("8118", port))
    worker = (folder / "recover.sh").read_text().replace("MS_ROLE=MS_SCHED", "MS_ROLE=MS_WORKER")
    worker = worker.replace("MS_NODE_ID=sched", "MS_NODE_ID=5").replace("scheduler.log", "worker_5_again.log")
    (folder / "recover_worker.sh").write_text(worker)


def run_seed_001(folder, digits, command):
    seed_001(folder, "8118" if port_is_free(8118) else str(free_port()))
    (folder / "MNIST_Data").symlink_to(digits)
    reap = [sys.executable, str(ROOT / "tests/python/reap.py"), "150", *command]
    shell = {**environment(), "EXEC_PATH": str(folder)}  # recover.sh counts on it
    done = subprocess.run(reap, cwd=folder, env=shell, capture_output=True, text=True, timeout=180)
    logs = "\n".join(f"== {path.name}\n{path.read_text()}" for path in (folder / "device").iterdir())
    print(done.stdout, done.stderr, logs)  # shown when the test fails
    assert done.returncode == 0
    return sorted(line.split(" ", 2)[1] for line in done.stdout.splitlines() if line.endswith("train.py"))


def test_seed_001_goes_on_after_a_worker_and_the_scheduler_were_killed(tmp_path):
    write_digits(tmp_path / "digits/train", rows=60_000)
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    assert run_seed_001(unbroken, tmp_path / "digits", ["bash", "run.sh"]) == ["0"] * 9
    drill = [sys.executable, str(ROOT / "tests/python/seed_001_drill.py"), "5"]
    assert run_seed_001(broken, tmp_path / "digits", drill) == ["0"] * 9  # and two that have no name any more

    assert "resuming job" in (broken / "device/worker_5_again.log").read_text()
    for rank in range(8):
        ends = [folder / f"ckpt_of_rank/{rank}" for folder in (unbroken, broken)]
        newest = [max(end.glob("*.ckpt"), key=lambda path: path.stat().st_mtime) for end in ends]
        assert newest[0].name == newest[1].name
        assert newest[0].read_bytes() == newest[1].read_bytes()
