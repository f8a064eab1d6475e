"""`muster run --preset mpi` with a real Open MPI: on this host, and on two that are network namespaces."""

import contextlib
import ctypes.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hosts import needs_namespaces, two_hosts_joined
from job import PATIENCE, Process, clean_environment, free_port
from places import BUILD

LEFT_AFTER = 3  # seconds until nothing may be there any more
MUSTER = str(BUILD / "apps/muster/muster")

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun") is None or ctypes.util.find_library("mpi") is None,
    reason="there is no Open MPI here (apt-get install openmpi-bin)",
)
needs_sshd = pytest.mark.skipif(
    not (shutil.which("ssh") and (shutil.which("sshd") or Path("/usr/sbin/sshd").exists())),
    reason="there is no sshd here (apt-get install openssh-server openssh-client)",
)

# As a Horovod script would: MPI itself tells each rank who it is, without any argument.
SUM = """
import ctypes, ctypes.util, os, sys

mpi = ctypes.CDLL(ctypes.util.find_library("mpi"), mode=ctypes.RTLD_GLOBAL)
constant = lambda name: ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
world = constant("ompi_mpi_comm_world")
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
mine = ctypes.c_int(rank.value + 1)
integer, add = constant("ompi_mpi_int"), constant("ompi_mpi_op_sum")
mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(total), 1, integer, add, world)
print(f"rank {rank.value} of {size.value} sum {total.value}", sys.argv[1:], flush=True)
mpi.MPI_Finalize()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tmp").mkdir()
    return tmp_path


def variables(folder, **more):
    told = ("MA_", "VC_", "VK_", "MY_", "SLURM_", "OMPI_")
    kept = {name: value for name, value in clean_environment().items() if not name.startswith(told)}
    return {**kept, "TMPDIR": str(folder / "tmp"), **more}


def script(folder, text):
    (folder / "script.py").write_text(text)
    return str(folder / "script.py")


def command(*words):
    return [MUSTER, "run", "--preset", "mpi", *words]


def run(folder, *words, **more):
    return subprocess.run(
        command(*words), env=variables(folder, **more), capture_output=True, text=True, timeout=PATIENCE
    )


def left_over(folder):
    """What a job should have taken away with it."""
    return [path.name for path in (folder / "tmp").iterdir()]


def test_mpirun_starts_a_script_that_takes_no_arguments_of_ours(folder):
    done = run(folder, "-n", "2", script(folder, SUM), "--lr", "0.1")
    assert done.returncode == 0, done.stderr
    lines = sorted(line for line in done.stdout.splitlines() if "rank" in line)
    assert lines == [f"[mpirun] rank {rank} of 2 sum 3 ['--lr', '0.1']" for rank in range(2)]
    assert left_over(folder) == []


def test_its_exit_code_is_the_scripts(folder):
    done = run(folder, "-n", "2", script(folder, "raise SystemExit(7)"))
    assert done.returncode == 7
    assert "failed" in done.stderr and "code 7" in done.stderr
    assert left_over(folder) == []


def test_what_is_missing_is_named_with_what_to_install(folder):
    done = subprocess.run(
        command("-n", "2", script(folder, SUM)),
        env=variables(folder, PATH="/nowhere"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert all(part in done.stderr for part in ("'mpirun'", "install", "MPI"))
    assert left_over(folder) == []


@needs_sshd
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_launcher_that_is_ended_while_the_hosts_meet_leaves_nothing(folder, number):
    place = f"127.0.0.1:{free_port()}"
    words = command("--open", "--nnodes", "2", "--node-rank", "1", "--scheduler", place, script(folder, SUM))
    waiting = Process("host 1", words, variables(folder))
    try:
        waiting.wait_for_line(f"for the first host, {place}: .*nothing listens")
        waiting.signal(number)
        assert waiting.wait(LEFT_AFTER) != 0
        deadline = time.monotonic() + LEFT_AFTER
        while left_over(folder) and time.monotonic() < deadline:
            pass
        assert left_over(folder) == []
    finally:
        waiting.end()


# ---- Two hosts ---------------------------------------------------------------------------------------------


class Hosts:
    """Two namespaces with host names, and what each finds in /etc/hosts, as containers of a platform have."""

    def __init__(self, folder, namespaces):
        self.folder, self.processes = folder, []
        (folder / "token").write_text("a token that nobody guesses")
        (folder / "token").chmod(0o600)
        names = folder / "hosts"
        names.write_text("127.0.0.1 localhost\n10.77.0.1 job-worker-0.job\n10.77.0.2 job-worker-1.job\n")
        own = 'mount --bind "$1" /etc/hosts; hostname "$2"; shift 2; exec "$@"'
        self.inside = [
            [*host, "unshare", "--uts", "--mount", "sh", "-c", own, "own", str(names), f"job-worker-{i}"]
            for i, host in enumerate(namespaces)
        ]

    def start(self, index, *words, protection="--token-file=token", **more):
        platform = {
            "MA_VJ_NAME": "job",
            "MA_TASK_NAME": "worker",
            "MA_NUM_HOSTS": "2",
            "VC_TASK_INDEX": str(index),
            "MA_NUM_GPUS": "2",
            "MY_SSHD_PORT": "36666",
        }
        environment = variables(self.folder, **{**platform, **more})
        line = [*self.inside[index], *command(f"--log-dir=logs-{index}", protection, *words)]
        self.processes.append(Process(f"host {index}", line, environment))
        return self.processes[-1]

    def still_running(self):
        """Processes whose command lines name a file of the test, as those of mpirun and sshd do."""
        found = []
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                command = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(self.folder) in command:
                    found.append(command)
        return found


@pytest.fixture
def hosts(folder):
    with two_hosts_joined() as namespaces:
        made = Hosts(folder, namespaces)
        yield made
        for process in made.processes:
            process.end()


def expect_nothing_left(hosts):
    deadline = time.monotonic() + LEFT_AFTER
    while (hosts.still_running() or left_over(hosts.folder)) and time.monotonic() < deadline:
        pass
    assert hosts.still_running() == []
    assert left_over(hosts.folder) == []


@needs_namespaces
@needs_sshd
def test_the_same_line_on_two_hosts_is_one_mpi_job(folder, hosts):
    text = SUM + "print('secret', os.environ.get('CRED_KEY'), os.environ.get('MY_OWN'), flush=True)\n"
    # The second host comes first, and waits.
    second = hosts.start(1, script(folder, text))
    first = hosts.start(0, script(folder, text), CRED_KEY="a b;c#d", MY_OWN="stays here")
    assert first.wait() == 0, first.output()
    assert second.wait() == 0, second.output()
    output = first.output()
    for rank in range(4):
        assert f"rank {rank} of 4 sum 10" in output
    assert output.count("secret a b;c#d None") == 2, "on the second host only what travels"
    assert "can run programs as you" not in output + second.output()
    assert "Accepted publickey" in second.output()
    assert "Server listening on 10.77.0.2 port 36666" in second.output()
    assert second.output().count("Server listening") == 1
    expect_nothing_left(hosts)


@needs_namespaces
@needs_sshd
def test_every_host_of_an_open_job_says_what_that_means(folder, hosts):
    both = [hosts.start(index, script(folder, SUM), protection="--open") for index in range(2)]
    for process in both:
        assert process.wait() == 0, process.output()
        assert "warning: any process that reaches the first host's port" in process.output()
    expect_nothing_left(hosts)


def test_hosts_that_share_no_secret_say_what_to_type(folder):
    several = ["--nnodes", "2", "--node-rank", "1", "--scheduler", "10.0.0.1:36665"]
    done = run(folder, *several, script(folder, SUM))
    assert done.returncode == 2
    assert "--token-file FILE" in done.stderr and "programs" in done.stderr
    assert left_over(folder) == []


@needs_namespaces
@needs_sshd
@pytest.mark.parametrize(
    ("source", "asked", "refusal"),
    [
        ("10.77.0.1", ["id"], r"starts.*daemon"),
        ("10.77.0.1", ["orted; id"], r"asked.*orted"),
        ("10.77.0.1", [], "was asked for: "),
        ("10.78.0.1", ["orted"], "Permission denied"),
    ],
)
def test_the_first_hosts_key_opens_no_shell_and_nothing_elsewhere(folder, hosts, source, asked, refusal):
    """Whoever takes the key from the first host's folder while the job runs."""
    launchers = [hosts.start(index, script(folder, WAITS)) for index in range(2)]
    for _ in range(4):
        launchers[0].wait_for_line("ready")
    (config,) = (folder / "tmp").glob("muster-*/ssh_config")
    ssh = ["ssh", "-F", str(config), "-p", "36666", "-b", source, "10.77.0.2", *asked]
    done = subprocess.run(
        [*hosts.inside[0], *ssh], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE
    )
    assert done.returncode != 0
    assert re.search(refusal, done.stderr)
    assert "uid=" not in done.stdout
    launchers[0].signal(signal.SIGINT)
    for launcher in launchers:
        assert launcher.wait() != 0
    expect_nothing_left(hosts)


@needs_namespaces
@needs_sshd
def test_an_installation_that_mpirun_names_is_found_on_the_other_host(folder, hosts):
    (folder / "bin").mkdir()
    found = shutil.which("mpirun")
    prefix = str(Path(found).parent.parent)
    (folder / "bin/mpirun").write_text(f'#!/bin/sh\nexec {found} --prefix {prefix} "$@"\n')
    (folder / "bin/mpirun").chmod(0o755)
    path = f"{folder}/bin:{clean_environment()['PATH']}"
    first, second = (hosts.start(index, script(folder, SUM), PATH=path) for index in range(2))
    assert first.wait() == 0, first.output() + second.output()
    assert "rank 3 of 4 sum 10" in first.output()
    expect_nothing_left(hosts)


@needs_namespaces
@needs_sshd
def test_all_hosts_end_with_the_exit_code_of_mpirun(folder, hosts):
    text = "import os\nraise SystemExit(5 if os.environ['OMPI_COMM_WORLD_RANK'] == '3' else 0)"
    first, second = (hosts.start(index, script(folder, text)) for index in range(2))
    assert (first.wait(), second.wait()) == (5, 5), first.output() + second.output()
    assert "host 0 (10.77.0.1) ended with code 5" in second.output()
    expect_nothing_left(hosts)


WAITS = """
import os, time
print("ready", os.environ["OMPI_COMM_WORLD_RANK"], flush=True)
time.sleep(1000)
"""


@needs_namespaces
@needs_sshd
@pytest.mark.parametrize(
    ("killed", "number"), [(0, signal.SIGKILL), (1, signal.SIGKILL), (0, signal.SIGINT), (1, signal.SIGTERM)]
)
def test_a_launcher_that_is_ended_takes_all_hosts_with_it(folder, hosts, killed, number):
    launchers = [hosts.start(index, script(folder, WAITS)) for index in range(2)]
    for _ in range(4):
        launchers[0].wait_for_line("ready")
    launchers[killed].signal(number)
    begin = time.monotonic()
    assert launchers[1 - killed].wait() != 0
    assert time.monotonic() - begin < 4
    expect_nothing_left(hosts)


def child_of(process):
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


# Told after 5 s, lost after 10 s: asserted with a factor of two.
@needs_namespaces
@needs_sshd
@pytest.mark.parametrize("stopped", [0, 1])
def test_a_launcher_that_stands_still_is_told_and_then_lost_and_nothing_goes_on_there(folder, hosts, stopped):
    launchers = [hosts.start(index, script(folder, WAITS)) for index in range(2)]
    for _ in range(4):
        launchers[0].wait_for_line("ready")
    other = launchers[1 - stopped]
    begin = time.monotonic()
    os.kill(child_of(launchers[stopped]), signal.SIGSTOP)
    name = r"the first host, job-worker-0.job:36665," if stopped == 0 else r"host 1 \(10.77.0.2\)"
    other.wait_for_line(name + " has said nothing for 5 s; after 10 s it is lost")
    assert time.monotonic() - begin < 2 * 5
    assert other.wait() == 69, other.output()
    assert time.monotonic() - begin < 2 * (10 + 3)
    assert "was lost: nothing was heard from it for 10 s" in other.output()
    assert launchers[stopped].wait() == 128 + signal.SIGKILL
    expect_nothing_left(hosts)


@needs_namespaces
@needs_sshd
def test_a_port_of_sshd_that_is_taken_ends_the_job_and_is_named(folder, hosts):
    port = str(free_port())
    taken = f"import socket; s = socket.create_server(('', {port})); print('taken', flush=True); input()"
    blocker = Process(
        "blocker", [*hosts.inside[1], sys.executable, "-c", taken], variables(folder), stdin=subprocess.PIPE
    )
    try:
        blocker.wait_for_line("taken")
        first, second = (hosts.start(i, script(folder, WAITS), MY_SSHD_PORT=port) for i in range(2))
        assert first.wait() != 0
        assert second.wait() != 0
        assert f"Bind to port {port}" in second.output()
    finally:
        blocker.end()
