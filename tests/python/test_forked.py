"""A forked process of the tests finds and leaves what an interpreter of its own does."""

import os
import signal
import subprocess
import sys
import time

import forked
import pytest
from job import clean_environment

pytestmark = pytest.mark.skipif(forked.forking_parent() is None, reason="MUSTER_TESTS_FORK is 0")

# With numpy, for the signals that its library catches.
FINDS = """
import os, signal, sys
import numpy
print(__name__, __builtins__.__name__, globals().get("__file__"), type(__loader__).__name__)
print(sys.argv, sys.path, sys.orig_argv, sys.flags, sys.warnoptions)
print(os.getcwd(), os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid(), sorted(os.environ.items()))
with open("/proc/self/status") as file:
    print([line for line in file if line.startswith(("SigBlk", "SigIgn", "SigCgt", "Umask"))])
descriptors = set(os.listdir("/proc/self/fd")) - {str(os.open("/", os.O_RDONLY))}
print(signal.getsignal(signal.SIGINT), sorted(descriptors))
print(repr(sys.stdin.read()), sys.stdout.line_buffering, sys.stdout.write_through, sys.stdout.encoding)
print(type(sys.stdout.buffer).__name__, sys.stdout is sys.__stdout__)
with open("/proc/self/cmdline") as file:
    print(file.read().split("\\0"))
"""
ENDS = {
    "well": "print('done')",
    "with a code": "import sys; sys.exit(3)",
    "with words": "import sys; sys.exit('no')",
    "by an error": "def fail():\n    raise ValueError('upside down')\n\nfail()",
    "by a mistake in the code": "def (",
    "by a signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "by Ctrl-C": "import os, signal; os.kill(os.getpid(), signal.SIGINT); signal.pause()",
    "at once": "import os; print('lost', end=''); os._exit(7)",
    "behind its threads": "import threading; threading.Timer(0.05, print, ['last']).start()",
}


def both(words, folder, **variables):
    """Exit code and output, of a fork and of an interpreter of its own."""
    found = []
    for popen in (forked.popen, subprocess.Popen):
        process = popen(
            [sys.executable, *words],
            env={**clean_environment(), **variables},
            stdin=subprocess.DEVNULL,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        found.append((process.stdout.read(), process.stderr.read(), process.wait(), type(process).__name__))
    return found


@pytest.mark.parametrize("flags", [[], ["-u"]])
@pytest.mark.parametrize("kind", ["code", "script"])
def test_it_finds_the_same(tmp_path, kind, flags):
    (tmp_path / "finds.py").write_text(FINDS)
    words = [*flags, *(["-c", FINDS] if kind == "code" else ["finds.py"]), "one", "two words"]
    fork, own = both(words, tmp_path, MS_ROLE="MS_WORKER")
    assert (fork[3], own[3]) == ("Forked", "Popen")
    assert fork[0].splitlines() == own[0].splitlines()
    assert fork[1:3] == own[1:3] == ("", 0)
    assert "two words" in fork[0]


@pytest.mark.parametrize("how", ENDS)
def test_it_ends_the_same(tmp_path, how):
    fork, own = both(["-c", ENDS[how]], tmp_path)
    assert fork[3] == "Forked"
    assert fork[:3] == own[:3]


def test_its_random_numbers_are_its_own(tmp_path):
    code = "import numpy, random; print(random.random(), numpy.random.random())"
    drawn = [number for _ in range(2) for number in both(["-c", code], tmp_path)[0][0].split()]
    assert len(set(drawn)) == 4


@pytest.mark.parametrize(
    "words, variables",
    [
        (["-m", "this"], {}),
        (["-X", "dev", "-c", ""], {}),
        (["-c", ""], {"PYTHONHASHSEED": "1"}),
        (["-c", ""], {"MUSTER_LOG": "info"}),
    ],
)
def test_what_acts_at_the_start_has_an_interpreter_of_its_own(tmp_path, words, variables):
    assert both(words, tmp_path, **variables)[0][3] == "Popen"


def test_it_is_waited_for_and_signalled(tmp_path):
    process = forked.popen(
        [sys.executable, "-c", "import signal; print('here', flush=True); signal.pause()"],
        clean_environment(),
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"here\n"
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.terminate()
    begin = time.monotonic()
    assert process.wait(10) == process.poll() == -signal.SIGTERM
    assert time.monotonic() - begin < 10
    process.kill()  # reaches none
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
