"""examples/gpt.py as its first lines and docs/guide/transformers.md say: prepare, train, go on, write."""

import importlib.util
import os
import re
import subprocess
import sys

import numpy
import pytest
from places import BUILD, PACKAGES, ROOT, SEARCH_PATH

import muster

GPT = ROOT / "examples/gpt.py"
SIZE = ["--words", "300", "--block", "16", "--layers", "2", "--width", "16", "--heads", "2"]
TEXT = "the licensee shall not be liable for the work of the licensor in any case. " * 80
# Worker 1 kills itself once, while the data of its eleventh step are read.
DIES_ONCE = """
import os, runpy, signal, sys
from pathlib import Path
from muster import train

class Killer(train.Callback):
    state_is_shared = True
    def on_train_step_end(self, run_context):
        once, step = Path("died"), run_context.original_args().cur_step_num
        if os.environ.get("MS_NODE_ID") == "1" and step == 11 and not once.exists():
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)

made = train.ProgressBar
train.ProgressBar = lambda: Killer() if os.environ.get("DIES") else made()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(folder, *command, fails=False, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
    environment |= {"PYTHONPATH": str(PACKAGES), "PATH": SEARCH_PATH, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def on_two_workers(folder, *arguments, script=(GPT,), flags=(), **variables):
    command = [
        BUILD / "apps/muster/muster",
        "run",
        "-n",
        "2",
        *flags,
        *script,
        "train",
        *SIZE,
        "--batch",
        "4",
    ]
    return run(folder, *command, *arguments, **variables)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with tokens.bin and tokenizer.json."""
    pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("gpt")
    (folder / "text.txt").write_text(TEXT)
    said = run(folder, sys.executable, GPT, "prepare", "text.txt", *SIZE)
    [(count, words)] = re.findall(r"^text\.txt: (\d+) tokens of (\d+) words$", said, re.MULTILINE)
    assert int(words) <= 300 and int(count) == (folder / "tokens.bin").stat().st_size / 2
    return folder


@pytest.fixture
def folder(prepared, tmp_path):
    for name in ("tokens.bin", "tokenizer.json"):
        (tmp_path / name).write_bytes((prepared / name).read_bytes())
    return tmp_path


def parameters(folder):
    newest = max((folder / "checkpoints").glob("*.ckpt"), key=lambda path: path.stat().st_mtime_ns)
    return {name: value.asnumpy() for name, value in muster.load_checkpoint(str(newest)).items()}


def assert_same_bits(a, b):
    assert a.keys() == b.keys()
    for name in a:
        numpy.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_it_learns_goes_on_when_started_again_and_writes(folder, tmp_path_factory):
    output = on_two_workers(folder, "--epochs", "4")
    losses = [float(loss) for loss in re.findall(r"^\[worker 0\] .*loss is ([\d.]+)", output, re.MULTILINE)]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])

    again = tmp_path_factory.mktemp("again")
    for name in ("tokens.bin", "tokenizer.json"):
        (again / name).write_bytes((folder / name).read_bytes())
    on_two_workers(again, "--epochs", "2")
    assert "going on from" in on_two_workers(again, "--epochs", "4")
    assert_same_bits(parameters(again), parameters(folder))

    def written(*arguments, beginning="the licensee", **settings):
        command = [sys.executable, GPT, "write", beginning, *SIZE, "--tokens", "40", *arguments]
        return run(folder, *command, **settings)

    assert written("--seed", "3") == written("--seed", "3") != written("--seed", "4")
    assert written("--temperature", "0").startswith("the licensee")
    assert "does not fit the network" in written("--width", "32", fails=True)
    assert "the beginning is empty" in written(beginning="", fails=True)


def test_a_killed_worker_changes_no_bit(folder, tmp_path_factory):
    (folder / "dies_once.py").write_text(DIES_ONCE)
    recovery = {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(folder / "recovery"), "DIES": "1"}
    on_two_workers(
        folder, "--epochs", "3", script=("dies_once.py", GPT), flags=("--max-restarts", "3"), **recovery
    )
    assert (folder / "died").exists()
    unbroken = tmp_path_factory.mktemp("unbroken")
    (unbroken / "tokens.bin").write_bytes((folder / "tokens.bin").read_bytes())
    on_two_workers(unbroken, "--epochs", "3")
    assert_same_bits(parameters(folder), parameters(unbroken))


@pytest.mark.parametrize(
    "command, told",
    [
        (["train", "--heads", "3"], "--heads 3 does not divide --width 256"),
        (["train", "--heads", "0"], "--heads: 0 is not allowed: give a number, at least 1"),
        (
            ["prepare", "text.txt", "--words", "255"],
            "--words: 255 is not allowed: give a number, from 256 to 65536",
        ),
        (["write", "a", "--top-k", "0"], "--top-k: 0 is not allowed: give a number, at least 1"),
        (
            ["write", "a", "--temperature", "-1"],
            "--temperature: -1 is not allowed: give a number, at least 0",
        ),
        (["write", "a"], "no 'tokenizer.json' in this folder"),
    ],
)
def test_a_setting_that_cannot_be_is_named_with_what_can(tmp_path, command, told):
    assert told in run(tmp_path, sys.executable, GPT, *command, fails=True)


def test_bfloat16_learns_too(folder):
    output = on_two_workers(folder, "--epochs", "4", "--bfloat16")
    losses = [float(loss) for loss in re.findall(r"^\[worker 0\] .*loss is ([\d.]+)", output, re.MULTILINE)]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


def example():
    spec = importlib.util.spec_from_file_location("gpt_example", GPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_with_the_cache_it_writes_what_the_whole_net_says():
    gpt = example()
    muster.set_seed(5)
    net = gpt.GPT(words=50, block=12, layers=2, width=16, heads=2, dropout=0.1)
    options = type("Options", (), {"seed": 1, "tokens": 9, "temperature": 0, "top_k": 50})
    begin = [7, 3, 9]
    written = list(gpt.continued(net, begin, options))
    ids = list(begin)
    for _ in range(9):
        scores = net(muster.Tensor([ids], muster.int32)).asnumpy()[0, -1]
        ids.append(int(scores.argmax()))
    assert written == ids[3:]


def test_a_full_block_goes_on_from_its_second_half():
    gpt = example()
    net = gpt.GPT(words=50, block=8, layers=1, width=16, heads=2, dropout=0.0)
    options = type("Options", (), {"seed": 1, "tokens": 30, "temperature": 1.0, "top_k": 50})
    assert len(list(gpt.continued(net, [1, 2], options))) == 30


@pytest.mark.parametrize("text", [None, b"\xff\xfe"])
def test_a_text_that_cannot_be_read_is_named(tmp_path, text):
    pytest.importorskip("tokenizers")
    if text is not None:
        (tmp_path / "novel.txt").write_bytes(text)
    said = run(tmp_path, sys.executable, GPT, "prepare", "novel.txt", fails=True)
    assert "gpt.py prepare: 'novel.txt': " in said and "Traceback" not in said


def test_its_command_lines_are_those_of_the_page(prepared):
    page = (ROOT / "docs/guide/transformers.md").read_text()
    for command in ("prepare text.txt", "train --epochs", 'write "The licensee"'):
        assert f"examples/gpt.py {command}" in page


@pytest.mark.skipif(not (BUILD / "examples/gpt").exists(), reason="built without the examples")
def test_the_cpp_gpt_learns_and_writes(tmp_path):
    run(tmp_path, BUILD / "apps/muster/muster", "data", "tiny-text", "text.txt")
    (tmp_path / "short.txt").write_bytes((tmp_path / "text.txt").read_bytes()[:20000])
    sizes = {
        "DATA_PATH": "short.txt",
        "BLOCK": "32",
        "LAYERS": "1",
        "WIDTH": "16",
        "BATCH": "8",
        "EPOCHS": "2",
    }
    output = run(tmp_path, BUILD / "apps/muster/muster", "run", "-n", "2", BUILD / "examples/gpt", **sizes)
    losses = [float(loss) for loss in re.findall(r"^\[worker 0\] .*loss is ([\d.]+)", output, re.MULTILINE)]
    assert losses[-1] < 0.9 * losses[0]
    assert re.search(r"^\[worker 0\] The ", output, re.MULTILINE)
