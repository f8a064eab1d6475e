"""`muster explain`, `plan` and `profile` of a script: it ends as it would alone, if it ever used Muster."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[2] / "build"
MUSTER = BUILD / "apps/muster/muster"
VERBS = ("explain", "plan", "profile")
USES = "import muster\nfrom muster import nn\nnn.Dense(3, 2)(muster.Tensor([[1.0, 2.0, 3.0]]))\n"


def words(before):
    """With the script at the end, unless it is among them."""
    return before if {"script.py", "script"} & set(before) else (*before, "script.py")


@pytest.fixture(name="start")
def start_fixture(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    started = []

    def start(verb, text, *before):
        (tmp_path / "script.py").write_text(text)
        environment = {
            **os.environ,
            "PYTHONPATH": str(BUILD / "python"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "MUSTER_CALL_TIMES": "",
        }
        process = subprocess.Popen(
            [MUSTER, verb, *words(before or (sys.executable,))],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("verb", VERBS)
def test_a_script_that_never_uses_muster_is_told_of(start, verb):
    process = start(verb, "print('hello')")
    out, err = process.communicate(timeout=60)
    assert out == "hello\n"
    assert err.startswith(f"muster {verb}: there is nothing to show") and "import muster" in err
    assert process.returncode == 1


@pytest.mark.parametrize("verb", ["explain", "profile"])
def test_a_script_is_not_told_of_when_a_program_between_closes_what_it_inherits(start, verb):
    between = "import subprocess, sys\nsys.exit(subprocess.call([sys.executable, '-c', USES]))"
    process = start(verb, between.replace("USES", repr(USES)))
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "nothing to show" not in err, err


def test_the_file_that_tells_of_the_use_is_gone_however_the_command_ends(start, tmp_path):
    for text in (
        USES,
        "pass",
        "import sys\nsys.exit(7)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)",
    ):
        process = start("explain", text)
        process.communicate(timeout=60)
        assert not list((tmp_path / "temporary").iterdir())
    assert process.returncode == -signal.SIGUSR1


def test_a_script_runs_where_no_temporary_file_can_be_made(start, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    process = start("explain", "print('hello')")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "hello\n", "")


@pytest.mark.parametrize("verb", VERBS)
def test_the_exit_code_of_a_script_is_that_of_the_command(start, verb):
    process = start(verb, "import sys\nsys.exit(7)")
    _out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (7, "")


@pytest.mark.parametrize("verb", VERBS)
def test_a_signal_that_ends_a_script_ends_the_command(start, verb):
    process = start(verb, "import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)")
    _out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (-signal.SIGUSR1, "")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_command_is_for_the_script(start, verb, number):
    process = start(
        verb,
        # Not a handler and pause(): a signal that comes between the two would be waited for in vain.
        f"import signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])\n"
        f"print('ready', flush=True)\nsignal.sigwait([{int(number)}])\nsys.exit(5)",
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.wait(timeout=60) == 5


@pytest.mark.parametrize("verb", VERBS)
def test_a_script_ends_with_the_command_that_is_killed(start, verb):
    process = start(verb, "import os, signal\nprint(os.getpid(), flush=True)\nsignal.pause()")
    script = os.pidfd_open(int(process.stdout.readline()))
    process.kill()
    assert select.select([script], [], [], 60)[0]
    os.close(script)


ASKED = """
import os, sys
print(os.environ.get("MUSTER_PLAN"), os.environ.get("MUSTER_EXPLAIN_WORKERS"), sys.argv[1:])
"""


def behind(start, verb, *words):
    """What a script and its environment hold with these words behind the script."""
    process = start(verb, ASKED, *words)
    printed, said = process.communicate(timeout=60)
    return printed.splitlines()[:1], said


@pytest.mark.parametrize(
    ("verb", "words", "asked"),
    [
        ("plan", ["script.py", "-n", "2", "--memory", "1GiB"], "2,1073741824 None []"),
        ("plan", ["script.py", "--memory=1KiB", "-n", "2", "--json"], "2,1024,json None []"),
        ("plan", ["-m", "script", "-n", "2"], "2,0 None []"),
        ("plan", ["script.py", "--rate", "3", "-n", "2"], "2,0 None ['--rate', '3']"),
        ("plan", ["script.py", "-n", "2", "--", "-n", "7"], "2,0 None ['-n', '7']"),
        ("plan", ["-n", "2", "script.py", "-n", "7", "--", "x"], "2,0 None ['-n', '7', '--', 'x']"),
        ("plan", ["script.py", "--help"], "2,0 None ['--help']"),
        ("explain", ["script.py", "--parallel", "2"], "None 2 []"),
    ],
)
def test_options_behind_the_script_are_the_commands_where_none_stands_before_it(start, verb, words, asked):
    assert behind(start, verb, *words)[0] == [asked]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["script.py", "-n", "0"], "muster plan: -n: Value 0 not in range"),
        (["script.py", "-n"], "muster plan: -n: 1 required"),
        (["-n", "0", "script.py"], "muster plan: -n: Value 0 not in range"),
    ],
)
def test_a_value_that_does_not_fit_is_named_wherever_its_option_stands(start, words, said):
    printed, error = behind(start, "plan", *words)
    assert printed == [] and error.startswith(said)
