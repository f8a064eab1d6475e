"""`muster run --max-restarts`: what dies comes back by itself, and what cannot be mended ends the job."""

import os
import re
import subprocess

import pytest
from digits import write_digits
from places import BUILD, PACKAGES, ROOT, SEARCH_PATH

# The training of the chaos tests, with a callback that ends worker 1 at its 70th step.
DIES = """
import pathlib, signal, sys

class Dies(train.Callback):
    def on_train_step_end(self, run_context):
        if muster.get_rank() != 1 or run_context.original_args().cur_step_num not in DIES_AT:
            return
        ENDING
"""
ONCE = """
        if not pathlib.Path("died").exists():
            pathlib.Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
"""


# Worker 1 is killed at these steps, one in each of its lives; no step is made twice.
NEVER_AT_ONE_STEP = """
        steps = [64, 66, 70]
        lives = pathlib.Path("lives")
        life = int(lives.read_text()) if lives.exists() else 0
        if life < len(steps) and run_context.original_args().cur_step_num == steps[life]:
            lives.write_text(str(life + 1))
            os.kill(os.getpid(), signal.SIGKILL)
"""


def run(folder, ending, *options, dies_at=range(70, 71), dies_in="on_train_step_end", **variables):
    folder.mkdir()
    write_digits(folder, rows=640)
    script = (ROOT / "tests/chaos/train.py").read_text()
    dies = DIES.replace("ENDING", ending.strip()).replace("DIES_AT", repr(dies_at))
    dies = dies.replace("on_train_step_end", dies_in)
    script = script.replace("def digits(", f"{dies}\n\ndef digits(", 1)
    script = script.replace("epochs, data, [train.", "epochs, data, [Dies(), train.", 1)
    (folder / "train.py").write_text(script)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
    environment |= {
        "PYTHONPATH": str(PACKAGES),
        "PATH": SEARCH_PATH,
        "CHAOS_MODE": "model",
        "CHAOS_DATA": str(folder),
        "CHAOS_EPOCHS": "5",
        **variables,
    }
    command = [BUILD / "apps/muster/muster", "run", "-n", "2", "--log-dir", "logs", *options, "train.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    print(done.stdout, done.stderr)  # shown when the test fails
    return done


def states(done):
    return re.findall(r"^\[worker \d\] state (\w+)$", done.stdout, re.MULTILINE)


def test_who_comes_back_to_a_job_that_was_begun_anew_goes_on_with_it(tmp_path):
    broken = run(tmp_path / "broken", ONCE, "--max-restarts", "2", MUSTER_FRESH="1")
    assert broken.returncode == 0
    assert "has MUSTER_FRESH=1" not in broken.stdout + broken.stderr
    assert re.search(r"^\[worker 1\] resuming job \w+ at step (69|70)", broken.stdout, re.MULTILINE)


def test_a_job_whose_worker_is_killed_ends_as_one_whose_is_not(tmp_path):
    unbroken = run(tmp_path / "unbroken", "pass", "--max-restarts", "2")
    broken = run(tmp_path / "broken", ONCE, "--max-restarts", "2")
    assert unbroken.returncode == 0
    assert broken.returncode == 0
    assert re.search(
        r"worker 1 \(pid \d+\) was killed by signal 9 \(Killed\): starting it again \(1 of 2\)", broken.stderr
    )
    assert states(broken) == states(unbroken)
    assert len(states(broken)) == 2
    runs = [str(tmp_path / name / "logs/recovery") for name in ("unbroken", "broken")]
    verified = subprocess.run(
        [BUILD / "apps/muster/muster", "verify", *runs], capture_output=True, text=True, timeout=60
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert verified.stdout.splitlines()[-1].startswith("equal: ")


def test_a_worker_that_is_killed_again_and_again_but_never_at_one_step_comes_back(tmp_path):
    done = run(tmp_path / "job", NEVER_AT_ONE_STEP, "--max-restarts", "9", dies_at=range(60, 71))
    assert "(3 of 9)" in done.stderr
    assert "not started again" not in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("ending", ["sys.exit(3)", "os._exit(3)"])
def test_what_fails_three_times_at_one_step_ends_the_job_with_its_cause(tmp_path, ending):
    # A step whose end was reached by all is not made again: it has to die before.
    ends = f"print('no way on', flush=True); {ending}"
    done = run(tmp_path / "job", ends, "--max-restarts", "9", dies_in="on_train_step_begin")
    assert done.returncode == 3
    assert "(4 of 9)" not in done.stderr
    told = re.sub(r" \(pid \d+\)", "", done.stderr)
    assert all(part in told for part in ("worker 1", "code 3", "failure", "3 times", "step 69"))


def test_workers_that_are_forked_from_imported_modules_come_back_with_the_same_bits(tmp_path):
    options = ("--max-restarts", "2")
    plain = run(tmp_path / "plain", ONCE, *options)
    forked = run(tmp_path / "forked", ONCE, *options, "--preload", "muster,muster.train")
    assert (plain.returncode, forked.returncode) == (0, 0)
    assert "starting it again (1 of 2)" in forked.stderr
    states = [sorted(re.findall(r"state [0-9a-f]{64}", done.stdout)) for done in (plain, forked)]
    assert len(states[0]) == 2
    assert states[0] == states[1]
