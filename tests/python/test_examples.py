"""The examples run as their first lines say, in C++ and in Python."""

import os
import re
import subprocess
import sys

import pytest
from digits import write_digits
from places import BUILD, PACKAGES, ROOT, SEARCH_PATH, clean_environment


def run_on_two_workers(folder, program):
    write_digits(folder / "MNIST_Data/train", rows=640)
    write_digits(folder / "MNIST_Data/test", rows=100, seed=8, prefix="t10k")
    environment = clean_environment(PACKAGES) | {"DATA_PATH": "MNIST_Data/train", "PATH": SEARCH_PATH}
    command = [BUILD / "apps/muster/muster", "run", "-n", "2", program]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_python_example_shows_its_progress_each_rank_and_the_test_accuracy(tmp_path):
    output = run_on_two_workers(tmp_path, ROOT / "examples/mnist.py")
    epochs = re.findall(
        r"^\[worker 0\] epoch (\d+) of 10, (\d+) images, loss \d+\.\d{3}$", output, re.MULTILINE
    )
    assert epochs == [(str(epoch), str(320 * epoch)) for epoch in range(1, 11)]
    for rank in (0, 1):
        assert re.search(rf"^\[worker {rank}\] rank {rank} of 2: [\d,]+ images/s$", output, re.MULTILINE)
    [accuracy] = re.findall(r"^\[worker 0\] test accuracy: (\d\.\d{3})$", output, re.MULTILINE)
    assert float(accuracy) >= 0.8  # a unit behind a ReLU may have died: one digit of ten


@pytest.mark.skipif(not (BUILD / "examples/mnist").exists(), reason="built without the examples")
def test_the_cpp_example_trains(tmp_path):
    output = run_on_two_workers(tmp_path, BUILD / "examples/mnist")
    losses = [
        float(loss)
        for loss in re.findall(r"^\[worker 0\] epoch: \d+, step: 0, loss is (.+)$", output, re.MULTILINE)
    ]
    assert len(losses) == 10
    assert losses[-1] < 0.8 * losses[0]


def run_resnet50(folder, program):
    muster = BUILD / "apps/muster/muster"
    pictures = [muster, "data", "synthetic-cifar10", folder / "pictures", "--records", "2"]
    subprocess.run(pictures, check=True, capture_output=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
    environment |= {
        "DATA_PATH": "pictures",
        "PYTHONPATH": str(PACKAGES),
        "PATH": SEARCH_PATH,
        "IMAGE_SIZE": "16",
        "EPOCHS": "1",
        "BATCH": "2",
    }
    command = [muster, "run", "-n", "2", program]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = re.findall(r"^\[worker 1\] epoch: (\d) step: (\d), loss is [\d.]+$", done.stdout, re.MULTILINE)
    assert lines == [("1", "1"), ("1", "2")]
    assert len(re.findall(r"^\[worker 1\] Train epoch time: ", done.stdout, re.MULTILINE)) == 1


def test_the_python_resnet50_trains(tmp_path):
    run_resnet50(tmp_path, ROOT / "examples/resnet50_cifar10.py")


@pytest.mark.skipif(not (BUILD / "examples/resnet50_cifar10").exists(), reason="built without the examples")
def test_the_cpp_resnet50_trains(tmp_path):
    run_resnet50(tmp_path, BUILD / "examples/resnet50_cifar10")


CLICKS = ["--samples", "40000", "--fields", "4", "--vocabulary", "10", "--numbers", "3"]


@pytest.mark.parametrize("servers", [0, 2])
@pytest.mark.parametrize("program", [ROOT / "examples/wide_and_deep.py", BUILD / "examples/wide_and_deep"])
def test_wide_and_deep_comes_near_the_best_that_can_be_had(tmp_path, servers, program):
    if not program.exists():
        pytest.skip("built without the examples")
    muster = BUILD / "apps/muster/muster"
    subprocess.run([muster, "data", "synthetic-clicks", tmp_path / "clicks", *CLICKS], check=True)
    environment = clean_environment(PACKAGES) | {"PATH": SEARCH_PATH, "EPOCHS": "6", "BATCH": "256"}
    command = [sys.executable, program] if program.suffix else [program]
    if servers:
        command = [muster, "run", "-n", "2", "--servers", str(servers), program]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [share] = re.findall(r"AUC 0\.\d{4}, (\d\.\d{4}) of the limit", done.stdout)
    assert 0.98 <= float(share) <= 1.0


def run_placed_lenet(folder, program, workers):
    write_digits(folder / "MNIST_Data/train", rows=640)
    write_digits(folder / "MNIST_Data/test", rows=96, seed=8, prefix="t10k")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
    environment |= {
        "DATA_PATH": "MNIST_Data/train",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(PACKAGES),
        "PATH": SEARCH_PATH,
    }
    command = [BUILD / "apps/muster/muster", "run", "-n", str(workers), program]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = re.findall(r"^\[worker (\d)\] (epoch: \d+ step: \d+, loss is .+)$", done.stdout, re.MULTILINE)
    of_first = [line for rank, line in losses if rank == "0"]
    assert len(of_first) == 4
    return of_first, done.stdout


def test_the_python_lenet_has_the_same_losses_over_five_workers_as_on_one(tmp_path):
    alone, _ = run_placed_lenet(tmp_path / "one", ROOT / "examples/placed_lenet.py", 1)
    placed, output = run_placed_lenet(tmp_path / "five", ROOT / "examples/placed_lenet.py", 5)
    assert placed == alone
    [accuracy] = re.findall(r"^\[worker 0\] test accuracy: (\d\.\d{3})$", output, re.MULTILINE)
    assert float(accuracy) > 0.8


@pytest.mark.skipif(not (BUILD / "examples/placed_lenet").exists(), reason="built without the examples")
def test_the_cpp_lenet_has_the_same_losses_over_five_workers_as_on_one(tmp_path):
    alone, _ = run_placed_lenet(tmp_path / "one", BUILD / "examples/placed_lenet", 1)
    placed, _ = run_placed_lenet(tmp_path / "five", BUILD / "examples/placed_lenet", 5)
    assert placed == alone
