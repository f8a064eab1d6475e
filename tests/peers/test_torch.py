"""The backend of torch.distributed beside Gloo: trainings, calls, errors, and PyTorch's own tests."""

import fcntl
import functools
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from peers import ROOT, SECONDS_MAX, Process, environment, free_port, needs, run
from test_pages import run_page

pytestmark = needs("TORCH")

FOLDER = Path(__file__).parent / "torch_backend"
CASES = re.findall(r"^def case_(\w+)\(", (FOLDER / "trainings.py").read_text(), re.MULTILINE)
PACKAGES = str(ROOT / "build/python")
DEAD_MILLISECONDS = 50  # from a rank's end to the error that names it
CASES_SECONDS_MAX = 3600  # 285 tests, twice, on a busy machine


@functools.cache
def compiled() -> dict[str, str]:
    """The variables with which calls go through the compiled part; it is kept: g++ takes half a minute."""
    variables = {"MUSTER_TORCH_COMPILED": "1", "MUSTER_TORCH_CACHE": str(ROOT / ".peers/torch-calls")}
    command = [os.environ["MUSTER_PEER_TORCH"], "-m", "muster.torch"]
    subprocess.run(command, env=environment(PYTHONPATH=PACKAGES, **variables), timeout=540, check=True)
    return variables


WAYS = {"python": dict, "compiled": compiled}  # what calls go through


def result(*arguments: str, ranks: int = 2, **variables: str):
    done = run(
        "TORCH",
        *("../torch_backend/trainings.py", "-n", str(ranks)),
        arguments=arguments,
        PYTHONPATH=PACKAGES,
        **variables,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [found] = re.findall(r"result (.*)", done.stdout)
    return json.loads(found)


@functools.cache
def with_gloo(case: str):
    return result("gloo", case)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_a_program_gives_what_it_gives_with_gloo(case, way):
    assert result("muster", case, **WAYS[way]()) == with_gloo(case)


def test_lists_of_tensors_of_different_sizes_are_gathered_and_reduced():
    assert result("muster", "uneven") == [[[1.0], [2.0, 2.0]], [4.0, 4.0]]


@pytest.mark.parametrize("way", WAYS)
def test_a_receive_from_any_rank_leaves_nothing_behind_for_the_others(way):
    case = "any_source_of_several"
    assert result("muster", case, ranks=4, **WAYS[way]()) == result("gloo", case, ranks=4)


def test_sparse_tensors_have_means_and_those_of_16_bits_are_rounded_once():
    assert result("muster", "sparse_mean", ranks=3) == [[1.0, 1.0, 1.0, 4.0], [258.0]]


def starts(**variables: str) -> tuple[str, str]:
    """What a job of one rank prints, whether its calls are compiled, and what it logs."""
    script = (
        "import torch, torch.distributed as dist; dist.init_process_group('muster'); "
        "dist.all_reduce(torch.ones(2)); dist.barrier(); "
        "print(dist.group.WORLD._get_backend(torch.device('cpu')).is_compiled)"
    )
    rank = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "RANK": "0", "WORLD_SIZE": "1"}
    done = subprocess.run(
        [os.environ["MUSTER_PEER_TORCH"], "-c", script],
        env=environment(PYTHONPATH=PACKAGES, **rank, **variables),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def fake_compiler(folder: Path, lines: str) -> dict[str, str]:
    """A compiler and an empty cache."""
    compiler = folder / "compiler"
    compiler.write_text(f"#!/bin/bash\n{lines}\n")
    compiler.chmod(0o755)
    cache = folder / "cache"
    return {"MUSTER_TORCH_COMPILED": "1", "MUSTER_TORCH_CACHE": str(cache), "CXX": str(compiler)}


def wait_for_file(folder: Path, pattern: str) -> Path:
    """One with something in it."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        for found in folder.glob(pattern):
            if found.stat().st_size > 0:
                return found
        time.sleep(0.1)
    raise AssertionError(f"no {pattern} came into {folder}")


def test_the_first_job_has_the_faster_part_compiled_for_the_next_one(tmp_path):
    [library] = Path(compiled()["MUSTER_TORCH_CACHE"]).glob("*.so")
    priority = f"cut -d ' ' -f 19,41 /proc/$$/stat > {tmp_path}/priority"
    variables = fake_compiler(tmp_path, f'{priority}\ncp "{library}" "${{@: -1}}"')
    printed, logged = starts(**variables)
    made = wait_for_file(tmp_path / "cache", "*.so")
    assert printed == "False"
    assert (tmp_path / "priority").read_text().split() == ["19", str(os.SCHED_IDLE)]
    assert f"is compiled for later starts: {made}" in logged
    printed, logged = starts(**variables)
    assert printed == "True"
    assert "muster:" not in logged


def test_a_part_that_does_not_compile_is_told_of_and_not_tried_again(tmp_path):
    variables = fake_compiler(tmp_path, "echo no such header >&2; exit 1")
    starts(**variables)
    log = wait_for_file(tmp_path / "cache", "*.log")
    with log.with_suffix(".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until who compiles has ended
    printed, logged = starts(**variables)
    assert printed == "False"
    assert f"go through Python: {log} says why" in logged
    assert "no such header" in log.read_text()


def test_a_host_without_a_compiler_is_told_of(tmp_path):
    printed, logged = starts(MUSTER_TORCH_COMPILED="1", MUSTER_TORCH_CACHE=str(tmp_path), CXX="no-compiler")
    assert printed == "False"
    assert "there is no C++ compiler (g++, or CXX)" in logged


def test_the_example_gives_the_same_losses_with_both_backends(tmp_path):
    def losses(backend: str) -> list[str]:
        done = run(
            "TORCH",
            str(ROOT / "examples/pytorch_ddp.py"),
            *("-n", "2", "--log-dir", str(tmp_path)),
            arguments=("--backend", backend),
            PYTHONPATH=PACKAGES,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return re.findall(r"step \d+: loss \S+", done.stdout)

    found = losses("muster")
    assert len(found) == 5
    assert found == losses("gloo")


def test_the_page_about_pytorch_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("test_pages.environment", lambda: environment(PYTHONPATH=PACKAGES))
    lines = sorted(run_page(tmp_path, "pytorch.md", "TORCH", "-n", "2").splitlines())
    assert [line.partition(": ")[0] for line in lines] == ["[worker 0] rank 0 of 2", "[worker 1] rank 1 of 2"]


def said(*arguments: str, size: int = 2, **variables: str) -> list[str]:
    """What each rank says in errors.py, started by hand."""
    port = str(free_port())
    ranks = [
        Process(
            f"rank {rank}",
            [os.environ["MUSTER_PEER_TORCH"], str(FOLDER / "errors.py"), *arguments],
            environment(
                PYTHONPATH=PACKAGES,
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
                RANK=str(rank),
                WORLD_SIZE=str(size),
                **variables,
            ),
        )
        for rank in range(size)
    ]
    try:
        for rank in ranks:
            rank.wait(SECONDS_MAX)
        return [rank.output() for rank in ranks]
    finally:
        for rank in ranks:
            rank.end()


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            "sparse_max",
            "the max of sparse tensors is not there, SUM and AVG are",
        ),
        (
            "sparse_shapes",
            "sparse tensors of different shapes: [2, 2] (sparse in the first 2) on rank 0, [3, 3] (sparse in",
        ),
        ("float8", "tensors of torch.float8_e4m3fn cannot be reduced: convert to one of float32"),
        (
            "device",
            'there is no backend of cuda, only of the CPU: init_process_group("cpu:muster,cuda:nccl")',
        ),
        ("sizes", "output 1 of gather has 3 elements, and 2 are needed"),
        ("splits", "the input of all_to_all has 3 rows, which 2 ranks do not divide: give split sizes"),
        ("number", "the input of all_to_all is a single number, which has no rows: give it as reshape(1)"),
        ("endless", "s: give a positive one, and for a very long one timedelta(days=365)"),
        ("version", "rank 1 runs Muster 9.9.9 and rank 0 Muster"),
        ("old", "muster.torch needs PyTorch 2.6 or newer, and this is 2.5.1"),
        ("late", "rank 1 did not come to the rendezvous of 2 ranks within 2 s (this is rank 0)"),
        ("barrier", "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 500 ms"),
        ("wait", "the call is not done after 0.3 s, its timeout"),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_an_error_names_the_thing_and_the_way(case, message, way):
    first, second = said(case, **WAYS[way]())
    assert message in first, first + second
    assert "raised nothing" not in first


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("case", "named"),
    [
        ("dead_in_a_group_of_some", r"rank 1 \(process \d+\) has ended.*\(rank 1 of group \d+ is rank 2 of"),
        ("mismatch_in_a_group_of_some", r"\(rank 0 of group \d+ is rank 1 of the job, rank 1 of .* 2 of the"),
        ("mismatch_asynchronous_in_a_group_of_some", r"\(rank 0 of group \d+ is rank 1 of the job, rank 1"),
        ("late_in_a_group_of_some", r"rank 2 did not come to the rendezvous of ranks 1, 2 within 2 s"),
    ],
)
def test_an_error_in_a_group_of_some_names_the_ranks_of_the_job(case, named, way):
    _, second, third = said(case, size=3, **WAYS[way]())
    assert re.search(named, second), second + third


def test_who_waits_long_for_a_rank_to_come_says_so():
    first, _ = said("mixed", MUSTER_STUCK_LIMIT="1")
    told = "muster[rank 0] warning: rank 1 has not come to the rendezvous of 2 ranks for"
    assert first.count(told) == 2, first  # after one second, and two more
    assert "raised RuntimeError: muster: rank 1 did not come to the rendezvous of 2 ranks within 4 s" in first


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", ["dead", "dead_async", "dead_receive", "dead_next"])
def test_a_dead_rank_is_named_at_once(case, way):
    """The kernel takes most of the time: it frees the memory of the process first."""
    taken = []
    while len(taken) < 3 and (not taken or min(taken) > 2 * DEAD_MILLISECONDS):
        first, _ = said(case, **WAYS[way]())
        assert re.search(r"raised DistBackendError: muster: rank 1 .*ended", first), first
        [milliseconds] = re.findall(r"after (\S+) ms", first)
        taken.append(float(milliseconds))
    assert min(taken) <= 2 * DEAD_MILLISECONDS, taken


@pytest.mark.parametrize("way", WAYS)
def test_a_dead_rank_is_named_by_the_backward_pass_of_ddp(way):
    first, _ = said("dead_backward", **WAYS[way]())
    assert re.search(r"raised (RuntimeError|DistBackendError): .*muster: rank 1 .*ended", first), first


@pytest.mark.parametrize("way", WAYS)
def test_groups_are_made_again_as_soon_as_they_are_gone(way):
    assert all("raised nothing" in one for one in said("again", **WAYS[way]()))


def test_a_group_that_grows_meets_over_the_store_of_the_smaller_one():
    assert all("raised nothing" in one for one in said("grown", size=3))


def test_groups_need_no_connections_to_the_store_of_their_own():
    first, second = said("several")
    assert "more connections 0\nraised nothing" in first, first + second


def test_a_group_of_one_rank_asks_nobody():
    _, second = said("alone")
    assert "raised nothing" in second, second


def test_what_a_dead_rank_has_sent_arrives():
    first, _ = said("dead_sent")
    assert "received [5.0, 5.0, 5.0]" in first
    assert re.search(r"raised DistBackendError: muster: rank 1 ended", first), first


def outcomes(backend: str, folder: Path, ranks: int) -> dict[str, str]:
    """Of PyTorch's own tests. Those of Gloo are kept: they take minutes."""
    file = folder / f"{backend}.txt"
    if not (backend == "gloo" and file.exists()):
        file.unlink(missing_ok=True)
        command = [os.environ["MUSTER_PEER_TORCH"], FOLDER / "distributed_cases.py", backend, file]
        log = (folder / f"{backend}.log").open("w")
        subprocess.run(
            command,
            env=environment(PYTHONPATH=PACKAGES, WORLD_SIZE=str(ranks)),
            stdout=log,
            stderr=log,
            timeout=CASES_SECONDS_MAX,
            check=True,
        )
    return dict(line.split() for line in file.read_text().splitlines())


@pytest.mark.timeout(2 * CASES_SECONDS_MAX)
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_pytorchs_own_tests_pass_where_they_pass_with_gloo(ranks):
    folder = ROOT / f".peers/torch-cases/{ranks}"
    folder.mkdir(parents=True, exist_ok=True)
    gloo, ours = outcomes("gloo", folder, ranks), outcomes("muster", folder, ranks)
    passed = [name for name, outcome in gloo.items() if outcome == "passed"]
    assert len(passed) >= 80
    failed = [name for name in passed if ours.get(name) != "passed"]
    assert failed == [], f"reasons: {folder / 'muster.reasons'}"


def test_a_wheel_tells_pytorch_of_the_backend():
    """What the build tree says is what pyproject.toml says, and PyTorch takes it."""
    with tempfile.TemporaryDirectory() as folder:
        script = (
            "import torch.distributed as dist; "
            f"dist.init_process_group('muster', init_method='file://{folder}/store', rank=0, world_size=1); "
            "print(dist.get_backend())"
        )
        done = subprocess.run(
            [os.environ["MUSTER_PEER_TORCH"], "-c", script],
            env=environment(PYTHONPATH=PACKAGES),
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    assert done.stdout == "muster\n", done.stderr
