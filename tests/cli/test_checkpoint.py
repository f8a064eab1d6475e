"""`muster checkpoint` and `muster verify`, on what a job would have left."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/apps/muster/muster"
PROBE = ROOT / "build/tests/process/checkpoint_probe/checkpoint_probe"
JOB = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*arguments: object) -> None:
    subprocess.run([str(PROBE), *map(str, arguments)], check=True, timeout=60)


def muster(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(PROGRAM), *arguments], capture_output=True, text=True, timeout=60)


def change(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_ls_lists_the_points_of_every_worker(folder):
    write("run", "recovery", JOB, 2, 25)
    done = muster("checkpoint", "ls", "recovery")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"job {JOB}, worker 0 of 2: recovery/job-{JOB}/worker_0",
        "  start of call 0              2 tensors      4.1 kB",
        "  step 10 of call 0            2 tensors      4.1 kB",
        "  step 20 of call 0            2 tensors      4.1 kB",
        "  call 0 has ended",
        f"job {JOB}, worker 1 of 2: recovery/job-{JOB}/worker_1",
        "  start of call 0              2 tensors      4.1 kB",
        "  step 10 of call 0            2 tensors      4.1 kB",
        "  step 20 of call 0            2 tensors      4.1 kB",
        "  call 0 has ended",
    ]


@pytest.mark.parametrize(
    "inside", ["", f"/job-{JOB}", f"/job-{JOB}/worker_1", f"/job-{JOB}/worker_1/call_0.step_20"]
)
def test_show_names_the_tensors_and_sections_of_the_newest_point(folder, inside):
    write("run", "recovery", JOB, 2, 25)
    done = muster("checkpoint", "show", "recovery" + inside)
    assert done.returncode == 0, done.stderr
    tensors = [line.split() for line in done.stdout.splitlines() if line.startswith("  ")][-3:]
    assert tensors[0][:4] == ["fc.weight", "float32", "(2,", "3)"]
    assert tensors[1][:3] == ["fc.bias", "float32", "(2,)"]
    assert tensors[2][:4] == ["training", "section", "12", "bytes"]
    assert " step 20 of call 0" in done.stdout.splitlines()


def test_verify_finds_every_point_whole_and_the_newest_that_all_hold(folder):
    write("run", "recovery", JOB, 2, 25)
    done = muster("checkpoint", "verify", "recovery")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("  ok       step 20 of call 0") == 2
    assert done.stdout.splitlines()[-1] == "The newest point that all workers hold: step 20 of call 0"


def test_verify_names_what_is_damaged(folder):
    write("run", "recovery", JOB, 2, 25)
    damaged = folder / f"recovery/job-{JOB}/worker_1/call_0.step_20/tensors.safetensors"
    change(damaged, -1)
    done = muster("checkpoint", "verify", "recovery")
    assert done.returncode == 1
    assert (
        f"  DAMAGED: 'recovery/job-{JOB}/worker_1/call_0.step_20/tensors.safetensors' is damaged: "
        "the bytes of tensor 'fc.bias' do not fit their hash"
    ) in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == "The newest point that all workers hold: step 10 of call 0"


@pytest.mark.parametrize("name", ["net.ckpt", "net.safetensors"])
def test_files_of_tensors_are_listed_shown_and_checked(folder, name):
    write("file", name, 7)
    assert muster("checkpoint", "ls", name).stdout == f"{name}: 2 tensors, 32 bytes\n"
    shown = muster("checkpoint", "show", name).stdout.splitlines()
    assert shown[0] == f"{name}: 2 tensors"
    assert shown[1].split()[:4] == ["fc.weight", "float32", "(2,", "3)"]
    assert muster("checkpoint", "verify", name).returncode == 0
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-3])
    done = muster("checkpoint", "verify", name)
    assert done.returncode == 1
    assert done.stdout.startswith(f"DAMAGED {name}: "), done.stdout


def test_a_folder_of_files_is_each_of_its_files(folder):
    (folder / "ckpt").mkdir()
    for step in (9, 10):
        write("file", f"ckpt/net-1_{step}.ckpt", step)
    assert muster("checkpoint", "ls", "ckpt").stdout.splitlines() == [
        "ckpt/net-1_9.ckpt: 2 tensors, 32 bytes",
        "ckpt/net-1_10.ckpt: 2 tensors, 32 bytes",
    ]
    (folder / "ckpt/net-1_9.ckpt").write_bytes(b"rubbish")
    done = muster("checkpoint", "verify", "ckpt/")
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["DAMAGED", "ok"]


def test_files_are_those_of_safetensors(folder):
    """Where that package is installed: it reads ours, and we read its own."""
    package = pytest.importorskip("safetensors.numpy")
    numpy = pytest.importorskip("numpy")
    write("file", "ours.safetensors", 7)
    read = package.load_file("ours.safetensors")
    assert read["fc.weight"].tolist() == [[1, 2, 7], [4, 5, 6]]
    assert read["fc.bias"].tolist() == [0, 0]
    package.save_file(read, "theirs.safetensors", metadata={"format": "np"})
    assert muster("verify", "ours.safetensors", "theirs.safetensors").returncode == 0
    package.save_file({**read, "fc.bias": numpy.ones(2, numpy.float32)}, "other.safetensors")
    done = muster("verify", "ours.safetensors", "other.safetensors")
    assert done.returncode == 1
    assert all(part in done.stdout for part in ("'fc.bias'", "differs", "2 of 2"))


def test_what_is_no_checkpoint_is_refused_with_what_would_be(folder):
    for command in ("ls", "show", "verify"):
        done = muster("checkpoint", command, str(folder))
        assert done.returncode == 2
        assert "MS_RECOVERY_PATH" in done.stderr and "folder" in done.stderr
        assert muster("checkpoint", command, "missing.ckpt").returncode == 2
        assert muster("checkpoint", command, "missing").returncode == 2


def test_equal_runs_are_equal_whatever_their_jobs_are_called(folder):
    write("run", "a", JOB, 2, 25)
    write("run", "b", "f" * 16, 2, 25)
    done = muster("verify", "a", "b")
    assert (done.returncode, done.stdout) == (0, "equal: 50 steps and 6 points that both runs have\n")


def test_the_first_step_and_tensor_that_differ_are_named(folder):
    write("run", "a", JOB, 3, 45)
    write("run", "b", JOB, 3, 45, 1, 17)
    done = muster("verify", "a", "b")
    assert done.returncode == 1
    first, second = done.stdout.splitlines()
    assert first.startswith(
        "DIFFERENT: step 17 of call 0, of worker 1, is the first whose hashes differ: "
    ), first
    assert second == (
        "DIFFERENT: step 20 of call 0, of worker 1, is the first point that differs: tensor 'fc.weight' "
        "differs in 1 of 6 elements, the first at (0, 2): 20.0 and 20.5"
    )


def test_folders_of_checkpoint_files_are_compared_in_the_order_of_their_steps(folder):
    for run, values in (("a", (1, 2, 3)), ("b", (1, 9, 9))):
        (folder / run / "ckpt_0").mkdir(parents=True)
        for step, value in zip((8, 9, 10), values, strict=True):
            write("file", f"{run}/ckpt_0/net-1_{step}.ckpt", value)
    done = muster("verify", "a", "b")
    assert done.returncode == 1
    assert done.stdout == (
        "DIFFERENT: 'ckpt_0/net-1_9.ckpt' is the first file that differs: tensor 'fc.weight' differs in "
        "1 of 6 elements, the first at (0, 2): 2.0 and 9.0\n"
    )
    assert muster("verify", "a", "a").returncode == 0


def test_runs_that_have_nothing_in_common_cannot_be_compared(folder):
    write("run", "a", JOB, 1, 5)
    done = muster("verify", "a", "missing")
    assert done.returncode == 2
    assert "missing" in done.stderr
    assert muster("verify", "a").returncode == 2


def test_rm_shows_what_goes_and_asks(folder):
    write("run", "recovery", JOB, 2, 25)
    (folder / "recovery/scheduler.log").write_bytes(b"what it knows")
    refused = muster("checkpoint", "rm", "recovery")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    job, log = refused.stdout.splitlines()
    assert job.startswith(f"job {JOB}, NOT FINISHED, workers 0, 1 of 2, as far as step 20 of call 0, "), job
    assert job.endswith(f" kB: {folder}/recovery/job-{JOB}")
    assert log == f"the scheduler's log: {folder}/recovery/scheduler.log"
    assert muster("checkpoint", "verify", "recovery").returncode == 0
    done = muster("checkpoint", "rm", "recovery", "--yes")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "removed")
    assert os.listdir("recovery") == ["jobs.lock"]
    assert muster("checkpoint", "rm", "recovery", "--yes").returncode == 2


def test_rm_takes_one_worker_and_leaves_the_others(folder):
    write("run", "recovery", JOB, 2, 25)
    (folder / "recovery/scheduler.log").write_bytes(b"what it knows")
    done = muster("checkpoint", "rm", f"recovery/job-{JOB}/worker_1/", "--yes")
    assert done.returncode == 0, done.stderr
    assert "worker 1 of 2" in done.stdout
    assert sorted(os.listdir(f"recovery/job-{JOB}")) == ["in-use", "worker_0"]
    assert (folder / "recovery/scheduler.log").exists()


def test_a_path_in_use_is_neither_removed_nor_taken(folder):
    holder = subprocess.Popen(
        [str(PROBE), "hold", "recovery", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "saved\n"
        refused = muster("checkpoint", "rm", "recovery", "--yes")
        assert refused.returncode == 1
        assert f"job {JOB} is in use (worker 0 is pid {holder.pid} on " in refused.stderr
        other = subprocess.run(
            [str(PROBE), "run", "recovery", "f" * 16, "1", "5"], capture_output=True, text=True, timeout=60
        )
        assert other.returncode == 1
        assert f"MS_RECOVERY_PATH='recovery' is in use by job {JOB}" in other.stderr
    finally:
        holder.communicate("", timeout=60)
    assert holder.returncode == 0
    assert muster("checkpoint", "rm", "recovery", "--yes").returncode == 0


# The system calls by which a point comes to the disk and goes.
CALLS = (
    "write",
    "pwrite64",
    "fsync",
    "rename",
    "unlink",
    "unlinkat",
    "rmdir",
    "mkdir",
    "ftruncate",
    "openat",
)


def strace(*arguments: str) -> subprocess.CompletedProcess:
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={','.join(CALLS)}", *arguments]
    return subprocess.run(
        [*command, str(PROBE), "run", "recovery", JOB, "1", "70"], capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def strace_works(monkeypatch):
    """In memory where that is possible: a kill is no loss of power, and hundreds of syncs take long."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        monkeypatch.chdir(folder)
        if shutil.which("strace") is None or strace().returncode != 0:
            pytest.skip("strace cannot be used here")
        shutil.rmtree("recovery")
        yield
        monkeypatch.undo()


def until_nothing_is_left_to_break(call: str, how: str) -> Iterator[subprocess.CompletedProcess]:
    """strace counts each call by itself: one call at a time, or only the first of all would be broken."""
    for number in range(1, 400):
        broken = strace("-e", f"inject={call}:{how}:when={number}")
        yield broken
        if broken.returncode == 0 and "error" not in broken.stderr:
            return
        shutil.rmtree("recovery", ignore_errors=True)
    raise AssertionError("it never ended")


def expect_whole() -> None:
    """What a kill has left holds no point that is not whole, and the next start goes on from there."""
    if (Path("recovery") / f"job-{JOB}").is_dir():
        found = muster("checkpoint", "verify", "recovery")
        assert found.returncode == 0 or "there are no recovery points" in found.stderr, found.stdout
    write("run", "recovery", JOB, 1, 10)
    assert muster("checkpoint", "verify", "recovery").returncode == 0


@pytest.mark.parametrize("call", CALLS)
def test_no_kill_at_any_system_call_leaves_half_a_point(strace_works, call):
    for _killed in until_nothing_is_left_to_break(call, "signal=KILL"):
        expect_whole()


def test_a_sync_that_fails_is_told_and_leaves_what_was_there(strace_works):
    failures = 0
    for done in until_nothing_is_left_to_break("fsync", "error=EIO"):
        failures += done.returncode != 0
        assert done.returncode == 0 or "Input/output error" in done.stderr
        expect_whole()
    assert failures > 5 * 7, "a point takes five syncs, and none of them may fail unnoticed"
