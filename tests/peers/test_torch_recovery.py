"""Trainings of muster.torch.recoverable() whose ranks are hurt end with the bits of one that nobody hurts."""

import functools
import os
import random
import re
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from peers import ROOT, SECONDS_MAX, Process, command, environment, free_port, needs, run

pytestmark = needs("TORCH")

SCRIPT = ROOT / "tests/peers/torch_backend/recovering.py"
HABITS = ROOT / "tests/peers/torch_backend/habits.py"
PACKAGES = str(ROOT / "build/python")
KILLS = 50


class Job:
    """`muster run` of the training, whose lines are read as they come."""

    peer, script = "TORCH", SCRIPT
    more_flags: tuple[str, ...] = ()

    def __init__(self, folder: Path, ranks: int, *options: str, **variables: str) -> None:
        flags = (
            "-n",
            str(ranks),
            "--preset",
            "pytorch",
            "--max-restarts",
            "99",
            "--log-dir",
            str(folder / "logs"),
            *self.more_flags,
        )
        self.process = Process(
            "muster run",
            command(self.peer, str(self.script), *flags, arguments=options),
            environment(PYTHONPATH=PACKAGES, **variables),
        )

    def read(self, pattern: str) -> None:
        """Reads on until a line has the pattern."""
        self.process.wait_for_line(pattern, SECONDS_MAX)

    def end(self) -> "Job":
        try:
            self.code = self.process.wait(None)  # within the time of the test
            self.process.output()
        finally:
            self.stop()
        return self

    def stop(self) -> None:
        self.process.terminate()  # it ends its ranks, too

    def text(self) -> str:
        return self.process.text()

    def found(self, pattern: str) -> list:
        return re.findall(pattern, self.text())

    def outcome(self) -> dict:
        """What each rank has in the end, and the loss of each step: of whoever says it, since a rank may die
        before it can."""
        assert self.code == 0, self.text()
        return {
            "ends": sorted(self.found(r"rank \d+ end \S+ rate \S+")),
            "losses": sorted(set(self.found(r"epoch \d+ step \d+ loss \S+"))),
        }


@functools.cache
def unbroken(ranks: int, *options: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        found = Job(Path(folder), ranks, *options).end().outcome()
    assert len(found["ends"]) == ranks
    return found


def hurt(folder: Path, ranks: int, hurts: str, *options: str, **variables: str) -> Job:
    return Job(folder, ranks, *options, f"hurt={hurts}", **variables).end()


@pytest.mark.parametrize(
    ("ranks", "hurts", "returns"),
    [
        (3, "0:0:2:forward:kill,1:0:4:update:kill,2:0:7:end:kill", 3),  # each in turn, in both epochs
        (3, "0:0:3:begin:kill,2:0:3:update:kill", None),  # two at once
        (2, "1:0:0:begin:kill", 1),
        (2, "0:0:0:before:kill", None),
        (2, "1:0:3:update:kill,1:1:-1:import:kill", 1),  # while it comes back
        (2, "0:0:3:update:kill,0:1:0:before:kill", 1),
        (2, "1:0:3:update:kill,1:1:3:begin:kill", 2),  # in the step that is made again
    ],
    ids=["each", "two", "first-step", "before-the-loop", "importing", "coming-back", "again"],
)
def test_ranks_that_are_killed_change_nothing(tmp_path, ranks, hurts, returns):
    job = hurt(tmp_path, ranks, hurts)
    assert job.outcome() == unbroken(ranks)
    assert len(job.found("is hurt")) == len(hurts.split(","))
    if returns is not None:
        assert len(job.found("ranks go on from rank")) == returns


def test_a_rank_that_is_killed_behind_the_loop_finds_the_end(tmp_path):
    job = hurt(tmp_path, 2, "0:0:-1:after:kill")
    assert job.outcome()["ends"] == unbroken(2)["ends"]


def test_batches_of_worker_processes_come_again(tmp_path):
    job = hurt(tmp_path, 2, "1:0:3:update:kill", "workers=1")
    assert job.outcome() == unbroken(2, "workers=1")


@pytest.mark.parametrize("place", ["begin", "update"])
@pytest.mark.parametrize("look", ["look=graph", "look=plain"])
def test_a_step_begins_without_what_an_evaluation_before_it_has_left(tmp_path, look, place):
    """DistributedDataParallel remembers a forward pass, and a rank that comes back has not made it."""
    job = hurt(tmp_path, 2, f"0:0:3:{place}:kill", look)
    assert job.outcome() == unbroken(2, look)


def test_a_static_graph_is_seen_anew_by_all_ranks(tmp_path):
    job = hurt(tmp_path, 2, "1:0:3:begin:kill", "static=1")
    assert job.outcome() == unbroken(2, "static=1")


def run_habit(folder: Path, *options: str):
    modules = "torch,torch._dynamo,muster.torch"
    flags = ("-n", "2", "--preset", "pytorch", "--max-restarts", "9", "--preload", modules)
    flags += ("--log-dir", str(folder / "logs"))
    done = run("TORCH", str(HABITS), *flags, arguments=options, PYTHONPATH=PACKAGES)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def ends_of_habit(folder: Path, *options: str) -> list[str]:
    done = run_habit(folder, *options)
    hurts = sum("hurt=" in option for option in options)
    assert done.stdout.count("is hurt") == hurts
    assert done.stderr.count("starting it again") == hurts, done.stderr
    return sorted(re.findall(r"rank \d end .*", done.stdout))


@pytest.mark.parametrize(
    "habit",
    [
        pytest.param("buffers", id="buffers-are-assigned"),
        pytest.param("generators", id="loader-and-script-have-generators"),
        pytest.param("persistent-workers", id="workers-of-the-loader-persist"),
        pytest.param("own-generators", id="dataset-and-sampler-have-generators"),
        pytest.param("two-loaders", id="a-loader-is-made-of-two"),
        pytest.param("wide", id="optimizer-keeps-more-bits-than-parameters"),
        pytest.param("numpy", id="states-have-numbers-of-numpy"),
        pytest.param("later", id="parameters-join-the-optimizer-later"),
        pytest.param("objects", id="ranks-exchange-objects"),
        pytest.param("extra-state", id="modules-have-an-extra-state"),
        pytest.param("stops", id="stop-is-said-for-numbers-of-a-void-step"),
        pytest.param("sizes", id="sizes-of-buffers-come-from-other-ranks"),
        pytest.param("averages", id="averages-of-weights-are-states"),
        pytest.param("stream", id="rows-are-not-counted"),
    ],
)
def test_what_scripts_do_in_the_loop_comes_back_with_a_killed_rank(tmp_path, habit):
    killed = ends_of_habit(tmp_path / "killed", habit, "hurt=1:1:2:update")
    assert killed == ends_of_habit(tmp_path / "unbroken", habit)
    assert len(killed) == 2


def test_rows_that_are_others_when_they_are_read_again_are_told_of(tmp_path):
    """Drawn before the dropout of a step, from the same generator: who comes back has not made that step."""
    told = run_habit(tmp_path, "early-stream", "hurt=1:1:3:update").stderr
    assert told.count("batch 2 of epoch 1 has other rows where rank 1 reads it again") == 1


def test_a_loader_that_can_be_iterated_once_is_refused_in_its_second_epoch(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        """
import muster.torch, torch
net = torch.nn.Linear(2, 2)
for place in muster.torch.recoverable(net, torch.optim.SGD(net.parameters(), 0.1), zip("ab", "cd"), epochs=2):
    print(*place)
"""
    )
    done = run("TORCH", str(script), "-n", "1", "--preset", "pytorch", PYTHONPATH=PACKAGES)
    assert re.findall(r"\d \d \('\w', '\w'\)", done.stdout) == ["0 0 ('a', 'c')", "0 1 ('b', 'd')"]
    assert "epoch 1 of recoverable() has no batch: its loader, a zip, has to begin anew" in done.stderr


def test_a_hook_that_keeps_a_state_is_refused(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        """
import muster.torch, torch, torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
dist.init_process_group("muster")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
net.register_comm_hook(PowerSGDState(None), powerSGD_hook)
muster.torch.recoverable(net, torch.optim.SGD(net.parameters(), 0.1), [])
"""
    )
    flags = ("-n", "1", "--preset", "pytorch", "--style", "env")
    done = run("TORCH", str(script), *flags, PYTHONPATH=PACKAGES, MS_ENABLE_RECOVERY="1")
    assert "keeps a PowerSGDState from step to step, and a rank that comes back has none" in done.stderr


def test_a_state_that_a_rank_could_not_read_is_refused_behind_the_first_step(tmp_path):
    """And not when the first rank comes back."""
    script = tmp_path / "train.py"
    script.write_text(
        """
import collections, muster.torch, torch, torch.distributed as dist
class Meter:
    losses = collections.deque([1.0])
    def state_dict(self): return {"losses": self.losses}
    def load_state_dict(self, state): self.losses = state["losses"]
dist.init_process_group("muster")
net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for epoch, step, batch in muster.torch.recoverable(net, optimizer, [1, 2, 3], states={"meter": Meter()}):
    print("step", step, flush=True)
    optimizer.step()
"""
    )
    flags = ("-n", "1", "--preset", "pytorch", "--style", "env")
    done = run("TORCH", str(script), *flags, PYTHONPATH=PACKAGES, MS_ENABLE_RECOVERY="1")
    assert done.stdout.count("step") == 1
    assert (
        "ValueError: muster: the state 'meter' of recoverable() cannot be read: state_dict() of"
        in done.stderr
    )


def test_a_node_timeout_that_is_no_number_is_named(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        """
import muster.torch, torch, torch.distributed as dist
dist.init_process_group("muster")
net = torch.nn.Linear(2, 2)
list(muster.torch.recoverable(net, torch.optim.SGD(net.parameters(), 0.1), [1]))
"""
    )
    flags = ("-n", "1", "--preset", "pytorch", "--style", "env")
    variables = {"MS_ENABLE_RECOVERY": "1", "MS_NODE_TIMEOUT": "soon"}
    done = run("TORCH", str(script), *flags, PYTHONPATH=PACKAGES, **variables)
    assert "ValueError: muster: MS_NODE_TIMEOUT is 'soon': give seconds, above 0" in done.stderr


def test_a_state_that_differs_between_ranks_is_told_of(tmp_path):
    told = run_habit(tmp_path / "own", "own-losses").stderr
    assert told.count("the state 'losses' of recoverable() is not the same on rank 0 and rank 1") == 1
    assert "muster: warning" not in run_habit(tmp_path / "same", "numpy").stderr


def test_a_scaler_and_a_scheduler_that_are_not_named_are_told_of(tmp_path):
    told = run_habit(tmp_path, "unnamed").stderr
    assert told.count("uses a GradScaler that recoverable() is not told of") == 1
    assert told.count("uses a scheduler of learning rates that recoverable() is not told of") == 1


def test_weights_and_optimizers_that_are_not_named_are_told_of(tmp_path):
    told = run_habit(tmp_path / "untold", "untold-averages").stderr
    changed = re.findall(r"uses weights that it changes \((\S+)\) that recoverable\(\) is not told of", told)
    assert sorted(changed) == ["average", "critic", "shadow.shadow"]
    assert told.count("uses an optimizer (SGD) that recoverable() is not told of") == 1
    assert "muster: warning" not in run_habit(tmp_path / "named", "averages").stderr


def test_an_epoch_is_told_to_all_that_the_loader_has(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        """
import muster.torch, torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler
class Told:
    def set_epoch(self, epoch): print(type(self).__name__, epoch)
class Rows(Told, Dataset):
    def __len__(self): return 2
    def __getitem__(self, index): return index
class Batches(Told, BatchSampler): pass
class Several:
    def __init__(self, *loaders): self.loaders = loaders
    def __iter__(self): return (batch for loader in self.loaders for batch in loader)
rows, net = Rows(), torch.nn.Linear(2, 2)
loader = Several(DataLoader(rows, batch_sampler=Batches(SequentialSampler(rows), 2, False)))
for _ in muster.torch.recoverable(net, torch.optim.SGD(net.parameters(), 0.1), loader, epochs=2):
    pass
"""
    )
    done = run("TORCH", str(script), "-n", "1", "--preset", "pytorch", PYTHONPATH=PACKAGES)
    told = re.findall(r"(Rows|Batches) (\d)", done.stdout)
    assert sorted(told) == [("Batches", "0"), ("Batches", "1"), ("Rows", "0"), ("Rows", "1")], done.stderr


def test_a_loop_that_sums_gradients_over_steps_is_told_what_a_death_would_lose(tmp_path):
    told = run_habit(tmp_path, "sums").stderr
    assert told.count("no optimizer has made a step in the first step of recoverable()") == 1


def test_all_killed_at_once_go_on_from_the_newest_point(tmp_path):
    job = hurt(tmp_path, 2, "0:0:5:end:kill,1:0:5:end:kill", "save=2")
    assert job.outcome() == unbroken(2)
    assert job.found("all 2 ranks go on from the disk with step 4 of epoch 0")


def test_all_killed_before_the_first_point_begin_again(tmp_path):
    job = hurt(tmp_path, 2, "0:0:5:end:kill,1:0:5:end:kill")
    assert job.outcome() == unbroken(2)


def test_a_damaged_point_is_passed_over(tmp_path):
    first = Job(tmp_path, 2, "save=2", "hurt=0:0:7:end:stop")
    try:
        first.read("is hurt")
        points = sorted((tmp_path / "logs/recovery/torch").glob("*.point"))
    finally:
        first.process.end()
    assert [int(point.name.split("-")[0]) for point in points] == [4, 6]
    data = bytearray(points[-1].read_bytes())
    data[len(data) // 2] ^= 1
    points[-1].write_bytes(data)
    job = Job(tmp_path, 2).end()
    assert job.found("is passed over: it is damaged")
    assert job.found("all 2 ranks go on from the disk with step 4 of epoch 0")
    assert job.outcome()["ends"] == unbroken(2)["ends"]


def pid_of(rank: int, job: Job) -> int:
    return int(job.found(rf"rank {rank} is process (\d+)")[-1])


def test_a_rank_that_is_stopped_is_waited_for_and_goes_on(tmp_path):
    job = Job(tmp_path, 2, "limit=3", "hurt=1:0:3:forward:stop")
    job.read("waiting for rank 1")
    os.kill(pid_of(1, job), signal.SIGCONT)
    assert job.end().outcome() == unbroken(2)


def test_a_rank_that_is_stopped_for_good_is_named(tmp_path):
    job = hurt(tmp_path, 2, "1:0:3:forward:stop", "limit=2", MS_NODE_TIMEOUT="3")
    assert job.code == 69
    assert job.found(r"rank 1 of 2 did not come back within 3 s \(MS_NODE_TIMEOUT; this is rank 0\)")


def test_rank_0_that_is_stopped_for_good_is_named(tmp_path):
    job = hurt(tmp_path, 2, "0:0:3:forward:stop", "limit=2", MS_NODE_TIMEOUT="3")
    assert job.code == 69
    assert job.found(r"rank 0, whose store the others meet at, is not there")


def test_calls_that_do_not_match_are_named_and_no_death(tmp_path):
    job = Job(tmp_path, 2, "lonely=1", "limit=5")
    try:
        named = r"rank 0 called all_reduce .* but rank 1 called all_reduce #\d+ \(3 x float32, sum\)"
        job.read(named)
    finally:
        job.stop()


def test_a_step_that_is_cut_three_times_without_a_death_is_the_scripts_error(tmp_path):
    """Rank 1 computes for longer than a call may wait, each time."""
    job = Job(tmp_path, 2, "slow=5", "limit=3")
    try:
        named = r"step 0 of epoch 0 was cut 3 times, and no rank died: .* waited 3 s for rank 1"
        job.read(named)
    finally:
        job.stop()
    assert not job.found(r"epoch 0 step 0 loss")


def test_a_rank_that_nobody_starts_again_is_named(tmp_path):
    port = str(free_port())
    ranks = [
        Process(
            f"rank {rank}",
            [os.environ["MUSTER_PEER_TORCH"], str(SCRIPT), "hurt=1:0:3:update:kill"],
            environment(
                PYTHONPATH=PACKAGES,
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
                RANK=str(rank),
                WORLD_SIZE="2",
                MS_ENABLE_RECOVERY="1",
                MS_NODE_TIMEOUT="2",
            ),
        )
        for rank in range(2)
    ]
    try:
        assert [rank.wait(SECONDS_MAX) for rank in ranks] == [69, -signal.SIGKILL]
    finally:
        for rank in ranks:
            rank.end()
    assert "rank 1 of 2 did not come back within 2 s" in ranks[0].output()


def test_a_call_of_the_store_that_nobody_waits_for_ends_before_the_process():
    """Back in Python while the interpreter ends, it would end the process by std::terminate."""
    done = subprocess.run(
        [os.environ["MUSTER_PEER_TORCH"], str(ROOT / "tests/peers/torch_backend/left_behind.py")],
        env=environment(PYTHONPATH=PACKAGES),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["left", "waited in vain", "waited in vain"]


def test_the_three_lines_of_the_page_run(tmp_path):
    pages = (ROOT / "docs/guide/pytorch.md").read_text().split("```python\n")
    [script] = [text.split("```")[0] for text in pages if "muster.torch.recoverable" in text.split("```")[0]]
    (tmp_path / "train.py").write_text(script)
    done = subprocess.run(
        command("TORCH", str(tmp_path / "train.py"), "-n", "2", "--max-restarts", "10"),
        cwd=tmp_path,
        env=environment(PYTHONPATH=PACKAGES),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"rank \d of 2: loss", done.stdout)) == 2


class ForkedJob(Job):
    more_flags = ("--preload", "torch,torch._dynamo,muster.torch")


def seconds_after_a_kill(job: Job, rank: int) -> float:
    """To the next step of all ranks."""
    os.kill(pid_of(rank, job), signal.SIGKILL)
    killed = time.time()
    job.read("ranks go on from rank")
    job.read(r"loss")
    return time.time() - killed


def seconds_to_the_next_step(kind: type, folder: Path, kills: int, *options: str) -> list[float]:
    job = kind(folder, 2, *options)
    seconds = []
    try:
        for kill in range(kills):
            job.read(r"loss")
            seconds.append(seconds_after_a_kill(job, kill % 2))
        job.end()
    finally:
        job.stop()
    assert job.outcome() == unbroken(2, *options)
    return seconds


@pytest.mark.timeout(1200)
def test_a_rank_that_is_forked_from_imported_modules_is_back_sooner_with_the_same_bits(tmp_path):
    options = ("epochs=10", "rows=96", "pause=0.02")
    taken = {
        kind: statistics.median(seconds_to_the_next_step(kind, tmp_path / kind.__name__, 3, *options))
        for kind in (Job, ForkedJob)
    }
    print("kill to the next step:", {kind.__name__: f"{seconds:.2f} s" for kind, seconds in taken.items()})
    assert taken[ForkedJob] < taken[Job] / 2


@pytest.mark.timeout(3600)
def test_fifty_kills_change_nothing(tmp_path):
    """Each behind the return of the rank before, at a moment that the seed says."""
    options = ("epochs=40", "rows=96", "pause=0.02")
    chance = random.Random(24)
    job = Job(tmp_path, 3, *options, "save=20")
    seconds = []
    try:
        for _ in range(KILLS):
            job.read(rf"epoch \d+ step {chance.randrange(8)} ")
            seconds.append(seconds_after_a_kill(job, chance.randrange(3)))
        job.end()
    finally:
        job.stop()
    print(f"kill to the next step: median {statistics.median(seconds):.2f} s, most {max(seconds):.2f} s")
    assert job.outcome() == unbroken(3, *options)
