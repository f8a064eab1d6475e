"""`muster run --max-restarts` for other frameworks: who died comes back alone, or the whole group does."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/apps/muster/muster"
FAMILIES = ("MS_", "MA_", "VC_", "VK_", "TF_", "MASTER_", "MUSTER_", "RANK", "WORLD_SIZE", "LOCAL_", "TORCH")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name in [name for name in os.environ if name.startswith(FAMILIES)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(script: str, *flags: str):
    Path("script.py").write_text(script)
    return subprocess.run(
        [str(PROGRAM), "run", "--log-dir", "logs", *flags, "script.py"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


ALONE = """
import os, pathlib, signal, time
rank, life = os.environ["RANK"], os.environ.get("MUSTER_RESTART_COUNT", "0")
print(rank, life, os.environ["MS_ENABLE_RECOVERY"], os.environ["MS_RECOVERY_PATH"])
if rank == "0" and life == "0":
    os.kill(os.getpid(), signal.SIGKILL)
if rank == "0":
    pathlib.Path("back").touch()
while not pathlib.Path("back").exists():
    time.sleep(0.01)
print("same run", os.environ["MUSTER_RUN_ID"])
"""


def test_a_rank_of_pytorch_that_died_comes_back_and_the_others_keep_their_processes(folder):
    done = run(ALONE, "--preset", "pytorch", "-n", "2", "--max-restarts", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    recovery = f"{folder}/logs/recovery"
    told = sorted(line for line in lines if "same run" not in line)
    assert told == [
        f"[worker 0] 0 0 1 {recovery}",
        f"[worker 0] 0 1 1 {recovery}",
        f"[worker 1] 1 0 1 {recovery}",
    ]
    assert len({line.split("same run ")[1] for line in lines if "same run" in line}) == 1


# Others have said all that they say.
HEARD = """
import os, pathlib, signal, sys, time
said = pathlib.Path("said" + os.environ["TORCHELASTIC_RESTART_COUNT"])
def hear():
    while not said.exists():
        time.sleep(0.01)
"""

# Worker 1 fails in the lives that are named; the other waits for its end, and is ended.
GROUP = (
    HEARD
    + """
role = os.environ.get("RANK") or os.environ.get("RANK_ID") or sys.argv[sys.argv.index("--task_index") + 1]
life = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print(role, "life", life, "of", os.environ["TORCHELASTIC_MAX_RESTARTS"])
if life in FAILING:
    if role == "1":
        hear()
        sys.exit(3)
    said.touch()
    signal.pause()
"""
)
PRESETS = [
    ("--preset", "pytorch", "-n", "2"),
    ("--preset", "ascend", "-n", "2"),
]


@pytest.mark.parametrize("flags", PRESETS, ids=lambda flags: flags[1])
def test_the_failure_of_one_ends_all_and_all_begin_again(folder, flags):
    done = run(GROUP.replace("FAILING", "(0, 1)"), *flags, "--max-restarts", "3", "--restart", "group")
    assert done.returncode == 0, done.stderr
    lives = sorted(done.stdout.splitlines())
    assert lives == [f"[worker {rank}] {rank} life {life} of 3" for rank in (0, 1) for life in range(3)]
    again = re.findall(r"ending all processes and starting them again \((\d) of 3\)", done.stderr)
    assert again == ["1", "2"]


TENSORFLOW = (
    HEARD
    + """
life, role = os.environ["TORCHELASTIC_RESTART_COUNT"], sys.argv[sys.argv.index("--job_name") + 1]
print(role, "life", life, flush=True)
if role == "ps":
    said.touch()
    signal.pause()
hear()
sys.exit(3 if life == "0" else 0)
"""
)


def test_servers_of_tensorflow_are_started_again_with_their_workers(folder):
    flags = (
        "--preset",
        "tensorflow",
        "-n",
        "1",
        "--servers",
        "1",
        "--max-restarts",
        "1",
        "--restart",
        "group",
    )
    done = run(TENSORFLOW, *flags)
    assert done.returncode == 0, done.stderr
    lives = sorted(line.split("] ")[1] for line in done.stdout.splitlines())
    assert lives == ["ps life 0", "ps life 1", "worker life 0", "worker life 1"]


def test_the_last_failure_of_a_group_ends_the_job(folder):
    flags = ("--preset", "pytorch", "-n", "2", "--max-restarts", "1", "--restart", "group")
    done = run(GROUP.replace("FAILING", "range(9)"), *flags)
    assert done.returncode == 3
    assert (
        "muster: all processes have been started again 1 times, as often as --max-restarts allows"
        in done.stderr
    )
    assert "the job failed: worker 1 exited with code 3" in done.stderr


STUBBORN = (
    HEARD
    + """
life = os.environ["TORCHELASTIC_RESTART_COUNT"]
print(os.environ["RANK"], "life", life)
if life == "0":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.environ["RANK"] == "1":
        hear()
        os.abort()
    said.touch()
    while True:
        signal.pause()
"""
)


def test_who_does_not_end_when_asked_is_killed_and_all_begin_again(folder):
    flags = ("--preset", "pytorch", "-n", "2", "--max-restarts", "1", "--restart", "group")
    done = run(STUBBORN, *flags)
    assert done.returncode == 0, done.stderr
    assert "[worker 0] 0 life 1" in done.stdout


def test_a_preset_whose_processes_come_back_alone_says_that_it_has_no_groups(folder):
    done = run("", "--preset", "muster", "-n", "1", "--max-restarts", "1", "--restart", "group")
    assert done.returncode == 2
    assert (
        "--restart group: with the preset muster the others wait for the process that is started again: "
        "leave it out"
    ) in done.stderr
