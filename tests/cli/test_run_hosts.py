"""`muster run --hosts` with a stand-in for ssh, which starts the agent here. The real ssh: tests/python."""

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/apps/muster/muster"

# It takes what ssh takes, and says what ssh says of a host that it does not know. Its shell greets people.
# It knows that 'later' is not there once the launcher has seen the end of the ssh to 'nowhere'.
SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
case $2 in
  nowhere)
    echo $$ > pid
    echo "ssh: Could not resolve hostname nowhere: Name or service not known" >&2; exit 255 ;;
  later)
    until [ -s pid ]; do :; done
    while kill -0 "$(cat pid)" 2>/dev/null; do :; done
    echo "ssh: Could not resolve hostname later: Name or service not known" >&2; exit 255 ;;
  empty) echo "sh: 1: exec: muster: not found" >&2; exit 127 ;;
esac
echo "Welcome to $2"
cd / && HOST_NAME=$2 exec sh -c "$3"
"""
TELLS = """
import os
print(os.environ["MS_ROLE"], os.environ["MS_NODE_ID"], os.environ["HOST_NAME"], os.getcwd())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("MS_", "MUSTER_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "ssh").write_text(SSH)
    (tmp_path / "ssh").chmod(0o755)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setenv("MUSTER_SSH", f"{tmp_path}/ssh -p 2222")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, hosts: str, script: str, *options: str) -> subprocess.CompletedProcess:
    (folder / "script.py").write_text(script)
    command = [str(PROGRAM), "run", "--hosts", hosts, "--log-dir", "logs", *options, "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert list((folder / "scratch").iterdir()) == []
    return done


def test_each_host_runs_its_slots_and_the_first_one_the_scheduler(folder):
    done = run(folder, "a:2,b:1", TELLS)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"[scheduler] MS_SCHED scheduler a {folder}",
        f"[worker 0] MS_WORKER 0 a {folder}",
        f"[worker 1] MS_WORKER 1 a {folder}",
        f"[worker 2] MS_WORKER 2 b {folder}",
    ]
    assert (folder / "logs/worker_2.log").read_text() == f"MS_WORKER 2 b {folder}\n"


def test_variables_travel_only_when_they_are_named(folder, monkeypatch):
    monkeypatch.setenv("MS_UNNAMED", "x")
    done = run(folder, "a:1", "import os; print(os.environ['NAMED'])", "--env", "NAMED=a b")
    assert done.returncode == 0, done.stderr
    assert "[worker 0] a b\n" in done.stdout


IMPORTS_ONCE = """
import os, pathlib, signal
print(f"{os.environ['HOST_NAME']}: rank {os.environ['RANK']}, {os.environ.get('MUSTER_RESTART_COUNT')}")
assert os.getcwd() == os.path.dirname(os.path.realpath(__file__))
import slow
if os.environ["RANK"] == "2" and "MUSTER_RESTART_COUNT" not in os.environ:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_each_host_imports_once_what_its_processes_begin_with(folder):
    (folder / "slow.py").write_text(
        "import os\nopen(f\"imports-{os.environ['HOST_NAME']}\", 'a').write('x')\n"
    )
    options = ("--preset", "pytorch", "--max-restarts", "1", "--preload", "slow")
    done = run(folder, "a:2,b:2", IMPORTS_ONCE, *options)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "[worker 0] a: rank 0, None",
        "[worker 1] a: rank 1, None",
        "[worker 2] b: rank 2, 1",
        "[worker 2] b: rank 2, None",
        "[worker 3] b: rank 3, None",
    ]
    assert [(folder / f"imports-{host}").read_text() for host in "ab"] == ["x", "x"]


def test_a_host_that_cannot_import_is_named(folder):
    (folder / "some.py").write_text("import os\nif os.environ['HOST_NAME'] == 'b': import nosuch\n")
    done = run(folder, "a:1,b:1", "print('ran')", "--preset", "pytorch", "--preload", "some")
    assert done.returncode == 127
    assert (
        "host b: --preload: some cannot be imported: ModuleNotFoundError: No module named 'nosuch'"
        in done.stderr
    )


TOKEN = """
import os, pathlib
name = os.environ["NAME"]
token = pathlib.Path(os.environ[name]).read_text().strip()
print(name, token, os.environ["HOST_NAME"])
for process in pathlib.Path("/proc").glob("[0-9]*"):
    for part in ("cmdline", "environ"):
        try:
            assert token.encode() not in (process / part).read_bytes(), (process, part)
        except OSError:
            pass
"""


def test_all_hosts_get_the_same_token_which_nobody_can_see_on_the_way(folder):
    done = run(folder, "a:1,b:1", TOKEN, "--env", "NAME=MUSTER_RUN_TOKEN_FILE")
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.findall(r"MUSTER_RUN_TOKEN_FILE ([0-9a-f]{64}) ([ab])\n", done.stdout)
    assert len({token for token, _ in told}) == 1
    assert sorted(host for _, host in told) == ["a", "a", "b"]


def test_a_token_of_the_users_own_has_to_be_here_alone(folder, tmp_path_factory):
    file = tmp_path_factory.mktemp("elsewhere") / "token"
    file.write_text("a token that nobody guesses\n")
    script = TOKEN.replace("print", f"pathlib.Path('{file}').unlink(missing_ok=True)\nprint", 1)
    done = run(folder, "a:1,b:1", script, "--env", "NAME=MUSTER_TOKEN_FILE", "--token-file", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("MUSTER_TOKEN_FILE a token that nobody guesses") == 3


def test_the_first_failure_is_reported_last_with_its_host(folder):
    script = """
import os, signal, sys
if os.environ["MS_NODE_ID"] == "1":
    print("no such column", file=sys.stderr)
    sys.exit(3)
signal.pause()
"""
    done = run(folder, "a:1,b:1", script)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-3:] == [
        "muster: how its processes ended: scheduler, worker 0 ran on until asked to end; "
        "worker 1 exited with code 3",
        "muster: the job failed: worker 1 on host b exited with code 3; its last lines:",
        "[worker 1] no such column",
    ]


def test_what_dies_on_another_host_is_started_again_there(folder):
    script = """
import os, pathlib, signal
died = pathlib.Path("died")
if os.environ["MS_NODE_ID"] == "1" and not died.exists():
    died.touch()
    os.kill(os.getpid(), signal.SIGKILL)
print("life on", os.environ["HOST_NAME"])
"""
    done = run(folder, "a:1,b:1", script, "--max-restarts", "2")
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"worker 1 on host b \(pid \d+\) was killed by signal 9 \(Killed\): starting", done.stderr
    )
    assert "[worker 1] life on b\n" in done.stdout


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        (
            "a:1,nowhere:1",
            "host nowhere: ssh: Could not resolve hostname nowhere: Name or service not known; "
            "it has to work without a question: {folder}/ssh -p 2222 nowhere true",
        ),
        (
            "empty:1",
            "host empty: the program muster is not there (sh: 1: exec: muster: not found): "
            "install Muster there, or say where it is by MUSTER_AGENT=/folder/muster",
        ),
    ],
)
def test_a_host_without_an_agent_says_why_before_anything_starts(folder, hosts, message):
    done = run(folder, hosts, "print('started')")
    assert done.returncode == 2
    assert "started" not in done.stdout
    assert done.stderr == f"muster run: {message.format(folder=folder)}\n"


def test_every_host_that_cannot_be_reached_is_named(folder):
    done = run(folder, "later:1,nowhere:1,a:1", "print('started')")
    assert done.returncode == 2
    assert "started" not in done.stdout
    assert re.findall(r"host (\w+): ssh: Could not resolve", done.stderr) == ["later", "nowhere"]


def test_a_program_that_is_not_there_names_the_host(folder, monkeypatch):
    command = [str(PROGRAM), "run", "--preset", "muster", "--hosts", "a:1", "./no_such_program"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "no_such_program" in done.stderr


def test_an_agent_that_is_killed_ends_the_job_and_says_which_host_was_lost(folder):
    script = """
import os, signal
if os.environ["MS_NODE_ID"] == "1":
    keeper = os.popen(f"ps -o ppid= -p {os.getppid()}").read().strip()
    os.kill(int(keeper), signal.SIGKILL)
signal.pause()
"""
    done = run(folder, "a:1,b:1", script)
    assert done.returncode == 69, done.stderr
    assert "muster: host b is lost: " in done.stderr
    assert "failed" in done.stderr and "worker 1" in done.stderr


WAITS = """
import os, signal
print("waits below", os.getppid(), flush=True)
signal.pause()
"""


@contextlib.contextmanager
def started(folder, script, **options):
    """A job on the hosts a and b."""
    (folder / "script.py").write_text(script)
    command = [str(PROGRAM), "run", "--hosts", "a:1,b:1", "script.py"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    ) as job:
        try:
            yield job
        finally:
            job.kill()


def agent_of(job, label):
    """The process that the launcher speaks with on that process's host; all three wait then."""
    lines = [job.stdout.readline() for _ in range(3)]
    return next(int(line.split()[-1]) for line in lines if line.startswith(f"[{label}]"))


# Told after 5 s, lost after 10 s, and others have 3 s to notice: asserted with a factor of two.
def test_an_agent_that_stands_still_is_told_and_then_lost(folder):
    with started(folder, WAITS) as job:
        agent = agent_of(job, "worker 1")
        begin = time.monotonic()
        os.kill(agent, signal.SIGSTOP)
        lines = []
        while not lines or "has said nothing" not in lines[-1]:
            lines.append(job.stderr.readline())
            assert lines[-1], lines
        assert lines[-1] == "muster: host b: has said nothing for 5 s; after 10 s it is lost\n"
        assert time.monotonic() - begin < 2 * 5
        _, errors = job.communicate(timeout=60)
        assert time.monotonic() - begin < 2 * (10 + 3)
    assert job.returncode == 69, errors
    assert all(part in errors for part in ("host b is lost", "10 s"))
    assert "failed" in errors and "worker 1" in errors
    assert not Path(f"/proc/{agent}").exists()
    assert list((folder / "scratch").iterdir()) == []


def test_an_agent_that_goes_on_in_time_loses_nothing(folder):
    with started(folder, WAITS) as job:
        agent = agent_of(job, "worker 1")
        os.kill(agent, signal.SIGSTOP)
        while "has said nothing for 5 s" not in (line := job.stderr.readline()):
            assert line
        os.kill(agent, signal.SIGCONT)
        assert job.stderr.readline() == "muster: host b: speaks again\n"
        job.send_signal(signal.SIGTERM)
        _, errors = job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGTERM
    assert "is lost" not in errors


LASTS = """
import time
print("begins", flush=True)
time.sleep(12)  # longer than agents bear silence
print("is done", flush=True)
"""


def test_control_z_gives_the_terminal_back_and_the_job_goes_on(folder):
    with started(folder, LASTS, process_group=0) as job:
        for _ in range(3):
            assert "begins" in job.stdout.readline()
        job.send_signal(signal.SIGTSTP)
        _, how = os.waitpid(job.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(how)
        for _ in range(3):
            assert "is done" in job.stdout.readline()
        job.send_signal(signal.SIGCONT)
        _, errors = job.communicate(timeout=60)
    assert job.returncode == 0, errors
    assert "muster" in errors and "brings" in errors
    assert "is lost" not in errors


def test_control_c_reaches_every_host(folder):
    script = """
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit("saved"))
print("waits", flush=True)
signal.pause()
"""
    (folder / "script.py").write_text(script)
    command = [str(PROGRAM), "run", "--hosts", "a:1,b:1", "script.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        for _ in range(3):
            assert "waits" in job.stdout.readline()
        job.send_signal(signal.SIGINT)
        _, errors = job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGINT
    assert errors.count("saved\n") == 3
    assert list((folder / "scratch").iterdir()) == []


TASK = """
import os, sys
sys.argv.pop(0)
given = dict(zip(sys.argv[::2], sys.argv[1::2]))
if given["--job_name"] == "ps":
    import signal
    signal.pause()
addresses = given["--ps_hosts"].split(",") + given["--worker_hosts"].split(",")
ports = [int(address.rpartition(":")[2]) for address in addresses]
print(len(ports), all(5000 <= port <= 10000 for port in ports), os.environ["HOST_NAME"])
print(given["--worker_hosts"].count("a:"), given["--worker_hosts"].count("b:"))
"""


def test_tasks_of_tensorflow_are_told_the_ports_of_all_hosts_and_servers_end_after_the_work(folder):
    done = run(folder, "a,me@b", TASK, "--preset", "tensorflow")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        *["[worker 0] 1 1", "[worker 0] 4 True a", "[worker 1] 1 1", "[worker 1] 4 True me@b"],
    ]


def test_a_rank_table_reaches_every_host(folder):
    made = [
        str(PROGRAM),
        "ranktable",
        "make",
        "--server",
        "a=10.0.0.1",
        "--server",
        "b=10.0.1.1",
        "--out",
        "t",
    ]
    subprocess.run(made, check=True, timeout=60)
    script = """
import json, os
table = json.load(open(os.environ["RANK_TABLE_FILE"]))
print(os.environ["RANK_ID"], os.environ["RANK_SIZE"], table["server_count"], os.environ["HOST_NAME"])
"""
    done = run(folder, "b,a", script, "--preset", "ascend", "--rank-table", "t")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[worker 0] 0 2 2 a", "[worker 1] 1 2 2 b"]
