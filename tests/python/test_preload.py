"""`muster run --preload`: modules are imported once for the processes of a host, which are then forked.

What a script finds has to be what a Python of its own would give it: most tests run it both ways.
"""

import os
import re
import signal
import subprocess
import time

import pytest
from places import BUILD, PACKAGES, SEARCH_PATH

FAMILIES = ("MS_", "MA_", "VC_", "VK_", "MASTER_", "MUSTER_", "RANK", "WORLD_SIZE", "LOCAL_", "TORCH", "OMP_")
# Each import adds a line: who imported, and with which rank.
SLOW = """
import os, time
with open("imports", "a") as file:
    file.write(f"{os.getpid()} {os.environ.get('RANK')} {os.environ.get('OMP_NUM_THREADS')}\\n")
time.sleep(0.3)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(FAMILIES)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", SEARCH_PATH)
    monkeypatch.setenv("PYTHONPATH", str(PACKAGES))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


def command(*words):
    return [str(BUILD / "apps/muster/muster"), "run", "--log-dir", "logs", *map(str, words)]


def run(*words, preset="pytorch"):
    done = subprocess.run(
        command("--preset", preset, *words), capture_output=True, text=True, timeout=60, check=False
    )
    print(done.stdout, done.stderr)  # shown when the test fails
    return done


def imports():
    with open("imports") as file:
        return [line.split() for line in file]


def alike(*words):
    """What the same line gives with and without --preload, but for what differs from run to run."""
    plain, preloaded = run(*words), run("--preload", "colorsys", *words)
    assert preloaded.returncode == plain.returncode
    ends = [
        re.sub(r"pid \d+|after [\d.]+ s|\d+ MiB|, colorsys imported once for all", "", each.stderr)
        for each in (plain, preloaded)
    ]
    assert ends[0] == ends[1]
    assert sorted(preloaded.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    return preloaded


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_module_is_imported_once_and_each_rank_has_variables_and_random_numbers_of_its_own(folder):
    (folder / "script.py").write_text(
        "import os, random, slow\n"
        "print(os.environ['RANK'], os.environ['LOCAL_RANK'], os.environ['WORLD_SIZE'], random.random())\n"
    )
    done = run("-n", "3", "--preload", "slow", "script.py")
    assert done.returncode == 0
    assert "slow imported once for all" in done.stderr
    found = [line.split()[2:] for line in sorted(done.stdout.splitlines())]
    assert [line[:3] for line in found] == [[str(rank), str(rank), "3"] for rank in range(3)]
    assert len({line[3] for line in found}) == 3
    assert [line[1:] for line in imports()] == [
        ["None", "1"]
    ]  # what ranks share is set, what they do not is not


WHAT_IT_FINDS = """
\"\"\"Its text.\"\"\"
import os, sys, __main__
class Sample: pass
print(__name__, __doc__, __file__, __spec__ and __spec__.name, __package__, __builtins__.__name__)
print(type(__loader__).__name__, os.getcwd(), os.getpgid(0) == os.getpid())
with open("/proc/self/status") as file:
    print([line for line in file if line.startswith(("SigBlk", "SigIgn", "SigCgt", "Umask"))])
print(sys.argv, sys.path, sys.orig_argv, sys.flags, sys.warnoptions, __main__.Sample is Sample)
print(repr(sys.stdin.read()), sys.stdout.line_buffering, sys.stdout.encoding)
print(sorted(set(os.listdir("/proc/self/fd")) - {str(os.open("/", os.O_RDONLY))}))
with open("/proc/self/cmdline") as file:
    print(file.read().split("\\0"))
with open("/proc/self/environ") as file:
    print(dict(entry.split("=", 1) for entry in file.read().split("\\0") if entry).get("RANK"))
"""


@pytest.mark.parametrize(
    "words",
    [
        ("script.py", "--epochs", "3", ""),
        ("-m", "package.part", "x"),
        ("-m", "package"),
        ("python3", "-u", "-Wignore", "-X", "dev", "script.py", "-n"),
        ("python3", "-Im", "package.part"),
        ("python3", "-c", "import sys; print(sys.argv, sys.path, __name__, __spec__)", "-x"),
        ("python3", "package"),
    ],
)
def test_a_script_finds_what_a_python_of_its_own_gives_it(folder, words):
    (folder / "package").mkdir()
    for name in ("script.py", "package/part.py", "package/__main__.py", "package/__init__.py"):
        (folder / name).write_text(WHAT_IT_FINDS if "init" not in name else "")
    done = alike("--style", "env", "-n", "1", *words)
    assert done.returncode == (0 if "-Im" not in words else 1)  # isolated: the folder is not searched


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("sys.exit(3)", 3),
        ("sys.exit('a text')", 1),
        ("sys.exit()", 0),
        ("f()", 1),
        ("raise KeyboardInterrupt", 130),
        ("os.kill(os.getpid(), 9)", 137),
        ("os._exit(5)", 5),
        ("threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()", 0),
        ("sys.excepthook = lambda *error: print('mine', error[0].__name__); f()", 1),
        ("print('unfinished', end=''); 1/0", 1),
        ("x = = 3", 1),
    ],
)
def test_it_ends_as_a_python_of_its_own(folder, ending, code):
    (folder / "script.py").write_text(
        "import atexit, os, sys, threading, time\natexit.register(print, 'at exit')\n"
        f"def f():\n    raise ValueError('boom')\n{ending}\n"
    )
    assert alike("-n", "1", "script.py").returncode == code


def test_code_that_fails_is_shown_as_it_stands(folder):
    assert alike("--style", "env", "-n", "1", "python3", "-c", "import os\n1 / 0\n").returncode == 1


def test_what_is_not_there_is_told(folder):
    (folder / "fails.py").write_text("1 / 0\n")
    (folder / "dies.py").write_text("import os; os.kill(os.getpid(), 11)\n")
    (folder / "script.py").write_text("print('ran')\n")
    for module, said in {
        "nosuch": "--preload: nosuch cannot be imported: ModuleNotFoundError: No module named 'nosuch'",
        "fails": "--preload: fails cannot be imported: ZeroDivisionError: division by zero",
        "dies": "--preload: the process that imports dies was killed by signal 11 (Segmentation fault)",
        "slow.py": "--preload slow.py: name a module, without .py: slow",
        "slow,": "--preload '': name modules as Python does, as in torch,torch._dynamo",
        "a b": "--preload 'a b': name modules as Python does",
    }.items():
        done = run("-n", "2", "--preload", module, "script.py")
        assert said in done.stderr and "ran" not in done.stdout
        assert done.returncode in (2, 127)
    assert 'fails.py", line 1, in <module>' in run("-n", "2", "--preload", "fails", "script.py").stderr
    for words, said in {
        ("ls",): "the command 'ls' is not Python's",
        ("python3", "-i", "script.py"): "Python's option 'i' in '-i' is not known here",
        ("python3", "-u"): "'python3' names no script and no module",
    }.items():
        done = run("-n", "2", "--preload", "slow", *words)
        assert said in done.stderr and done.returncode == 2
    assert "the preset mpi" in run("--preload", "slow", "script.py", preset="mpi").stderr


def test_a_class_of_main_goes_to_a_spawned_process_and_back(folder):
    (folder / "script.py").write_text(
        "import multiprocessing\n"
        "class Sample:\n    def __init__(self, n): self.n = n\n"
        "def twice(sample): return Sample(2 * sample.n)\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        "        print([sample.n for sample in pool.map(twice, [Sample(1), Sample(2)])])\n"
    )
    assert "[2, 4]" in run("-n", "1", "--preload", "slow,multiprocessing", "script.py").stdout


# Hurts the process that has imported, which is the other kind of child of the launcher.
HURTS = """
import os, signal, sys, time, slow
rank, life = int(os.environ["RANK"]), int(os.environ.get("MUSTER_RESTART_COUNT", "0"))
print("life", life, "of", rank, flush=True)
def hurt(number):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{pid}/cmdline") as file:
                if parent == os.getppid() and "--preload" in file.read():
                    os.kill(int(pid), number)
        except OSError:
            pass
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)
if rank == 0:
    open("begun", "w").close()
wait_for("begun")  # a process that has just been forked looks like the one that has imported
"""
DIES = (
    HURTS
    + """
if rank == 1 and life == 0:
    os.kill(os.getpid(), signal.SIGKILL)
if rank == 1 and life == 1:
    hurt(signal.SIGKILL)
    sys.exit(4)
if rank == 1:
    open("back", "w").close()
wait_for("back")
"""
)
DIES_ASKED = (
    HURTS
    + """
if rank == 1 and life == 0:
    hurt(signal.SIGSTOP)
    open("stopped", "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
if rank == 1:
    open("back", "w").close()
wait_for("stopped")
if rank == 0:
    time.sleep(0.5)
    hurt(signal.SIGKILL)
wait_for("back")
"""
)


def test_who_dies_comes_back_without_an_import_and_where_the_preloader_died_with_one(folder):
    (folder / "script.py").write_text(DIES)
    done = run("-n", "2", "--max-restarts", "3", "--preload", "slow", "script.py")
    assert done.returncode == 0
    assert sorted(line for line in done.stdout.splitlines() if "life" in line) == [
        "[worker 0] life 0 of 0",
        "[worker 1] life 0 of 1",
        "[worker 1] life 1 of 1",
        "[worker 1] life 2 of 1",
    ]
    assert "was killed by signal 9 (Killed): starting it again (1 of 3)" in done.stderr
    assert re.search(r"the process that had imported modules \(pid \d+\) was killed by signal 9", done.stderr)
    assert len(imports()) == 2


def test_a_process_that_was_asked_for_comes_from_another_import_where_the_preloader_dies(folder):
    (folder / "script.py").write_text(DIES_ASKED)
    done = run("-n", "2", "--max-restarts", "1", "--preload", "slow", "script.py")
    assert done.returncode == 0
    assert done.stdout.count("life 1 of 1") == 1
    assert len(imports()) == 2


def test_all_begin_again_from_the_same_import(folder):
    (folder / "script.py").write_text(
        "import os, sys, slow\nlife = os.environ['TORCHELASTIC_RESTART_COUNT']\nprint('life', life)\n"
        "sys.exit(3 if life == '0' and os.environ['RANK'] == '1' else 0)\n"
    )
    done = run("-n", "2", "--max-restarts", "3", "--restart", "group", "--preload", "slow", "script.py")
    assert done.returncode == 0
    assert done.stdout.count("life 1") == 2
    assert len(imports()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("imports_still", [True, False])
def test_a_signal_ends_all_of_it_and_nothing_is_left(folder, number, imports_still):
    (folder / "slow.py").write_text(
        "import os, time\nopen('imports', 'w').write(str(os.getpid()))\n"
        f"time.sleep({60 if imports_still else 0})\n"
    )
    (folder / "script.py").write_text(
        "import os, time\nopen('begun' + os.environ['RANK'], 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    )
    begun = [folder / "begun0", folder / "begun1"]
    job = subprocess.Popen(
        command("--preset", "pytorch", "-n", "2", "--preload", "slow", "script.py"),
        stderr=subprocess.PIPE,
        text=True,
    )
    awaited = [folder / "imports"] if imports_still else begun
    deadline = time.monotonic() + 30
    while not all(each.exists() and each.read_text() for each in awaited) and time.monotonic() < deadline:
        time.sleep(0.01)
    begin = time.monotonic()
    job.send_signal(number)
    _, said = job.communicate(timeout=30)
    assert job.returncode == 128 + number, said
    assert time.monotonic() - begin < 4
    assert any(each.exists() for each in begun) != imports_still
    assert not any(is_alive(int(each.read_text())) for each in (folder / "imports", *begun) if each.exists())


def test_a_signal_at_any_moment_of_the_start_ends_it_soon(folder):
    (folder / "script.py").write_text("import time\ntime.sleep(60)\n")
    (folder / "slow.py").write_text(
        "import os, time\nos.register_at_fork(after_in_child=lambda: time.sleep(0.2))\n"
    )
    for milliseconds in range(100, 1000, 150):
        job = subprocess.Popen(
            command("--preset", "pytorch", "-n", "3", "--preload", "slow", "script.py"),
            stderr=subprocess.PIPE,
        )
        time.sleep(milliseconds / 1000)
        begin = time.monotonic()
        job.send_signal(signal.SIGINT)
        _, said = job.communicate(timeout=30)
        assert (job.returncode, time.monotonic() - begin < 4) == (130, True), said


def test_nothing_outlives_a_launcher_that_is_killed(folder):
    (folder / "script.py").write_text(
        "import os, time, slow\nopen('pids', 'a').write(f'{os.getpid()} {os.getppid()}\\n')\ntime.sleep(60)\n"
    )
    job = subprocess.Popen(command("--preset", "pytorch", "-n", "2", "--preload", "slow", "script.py"))
    deadline = time.monotonic() + 30
    pids = folder / "pids"
    while not (pids.exists() and pids.read_text().count("\n") == 2) and time.monotonic() < deadline:
        time.sleep(0.01)
    lines = [line.split() for line in pids.read_text().splitlines()]
    assert len({line[1] for line in lines}) == 1  # both are children of the supervisor
    os.kill(int(lines[0][1]), signal.SIGKILL)
    job.wait(timeout=30)
    left = [int(pid) for pid in [lines[0][0], lines[1][0], imports()[0][0]]]
    deadline = time.monotonic() + 5
    while any(map(is_alive, left)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(is_alive, left))


def test_an_import_that_starts_a_thread_is_told(folder):
    (folder / "threads.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
    )
    (folder / "script.py").write_text("print('ran')\n")
    done = run("-n", "2", "--preload", "slow,threads", "script.py")
    assert done.returncode == 0 and done.stdout.count("ran") == 2
    assert "muster: slow,threads: its import starts a thread" in done.stderr


def test_a_variable_that_an_import_sets_stays(folder):
    (folder / "sets.py").write_text("import os\nos.environ['OF_IMPORT'] = 'yes'\n")
    (folder / "script.py").write_text(
        "import os\nprint(os.environ['OF_IMPORT'], os.getenv('RANK'), os.getenv('MINE'))\n"
    )
    done = run("-n", "2", "--env", "MINE=1", "--preload", "sets", "script.py")
    assert sorted(done.stdout.splitlines()) == ["[worker 0] yes 0 1", "[worker 1] yes 1 1"]


def test_numpy_draws_other_numbers_on_each_rank_unless_an_import_has_seeded_it(folder):
    (folder / "seeds.py").write_text("import numpy\nnumpy.random.seed(3)\n")
    (folder / "script.py").write_text("import numpy\nprint(numpy.random.rand())\n")
    for modules, kinds in {"numpy.random": 2, "seeds": 1}.items():
        done = run("-n", "2", "--env", "OPENBLAS_NUM_THREADS=1", "--preload", modules, "script.py")
        assert len({line.split()[-1] for line in done.stdout.splitlines()}) == kinds


JOB = """
import os, sys
import muster
from muster import nn
muster.init()
net = nn.Dense(3, 1)
print("rank", muster.get_rank(), "of", muster.get_group_size())
"""


@pytest.mark.parametrize("modules", ["slow", "numpy", "muster", "muster,muster.nn,muster.train"])
def test_a_job_of_musters_own_runs_too(folder, modules):
    (folder / "script.py").write_text(JOB)
    done = run("-n", "2", "--preload", modules, "script.py", preset="muster")
    assert done.returncode == 0
    assert sorted(line for line in done.stdout.splitlines() if "rank" in line) == [
        "[worker 0] rank 0 of 2",
        "[worker 1] rank 1 of 2",
    ]


def test_a_job_file_names_modules_too(folder):
    (folder / "script.py").write_text("print('ran')\n")
    (folder / "job.toml").write_text(
        'script = "script.py"\npreset = "pytorch"\nslots = 2\npreload = ["slow"]\n'
    )
    done = subprocess.run(
        command("--job", "job.toml"), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0 and done.stdout.count("ran") == 2 and len(imports()) == 1
    said = subprocess.run(
        command("--job", "job.toml", "--explain"), capture_output=True, text=True, check=False
    )
    assert re.search(r'^preload = \["slow"\] +# job.toml: preload$', said.stdout, re.MULTILINE)
