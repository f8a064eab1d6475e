"""`muster run --hosts` through the real ssh: two hosts, which are network namespaces with an sshd each."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from hosts import needs_namespaces, two_hosts_joined
from job import PATIENCE
from places import BUILD, PACKAGES, SEARCH_PATH

PROGRAM = BUILD / "apps/muster/muster"
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")
ADDRESSES = ["10.77.0.1", "10.77.0.2"]
TELLS = "import os\nprint(os.environ['MS_ROLE'], os.environ['MS_NODE_ID'])\n"

pytestmark = [
    needs_namespaces,
    pytest.mark.skipif(
        SSHD is None or shutil.which("ssh") is None,
        reason="there is no sshd: apt-get install openssh-server openssh-client",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="an sshd of one's own needs root"),
]


def make_key(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return Path(f"{path}.pub").read_text()


def wait_for_port(host, address):
    """Until sshd listens there."""
    probe = f"import socket; socket.create_connection(('{address}', 2222), 1).close()"
    deadline = time.monotonic() + PATIENCE
    while subprocess.run([*host, sys.executable, "-c", probe], capture_output=True).returncode != 0:
        assert time.monotonic() < deadline


class Cluster:
    """Two hosts with an sshd, and the ssh command of whoever starts jobs on the first."""

    def __init__(self, folder, hosts):
        self.folder, self.hosts = folder, hosts
        self.daemons = []
        public = make_key(folder / "key")
        (folder / "authorized_keys").write_text(public)
        known = []
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd wants it for its own safety
        for host, address in zip(hosts, ADDRESSES, strict=True):
            host_key = folder / f"host_{address}"
            known.append(f"[{address}]:2222 {make_key(host_key)}")
            config = folder / f"sshd_{address}"
            config.write_text(
                f"Port 2222\nListenAddress {address}\nHostKey {host_key}\nPidFile none\nStrictModes no\n"
                f"AuthorizedKeysFile {folder}/authorized_keys\nPasswordAuthentication no\nUsePAM no\n"
                "PermitRootLogin prohibit-password\n"
            )
            command = [*host, SSHD, "-D", "-e", "-f", str(config)]
            log = (folder / f"sshd_{address}.log").open("w")
            self.daemons.append(subprocess.Popen(command, stderr=log))
            wait_for_port(host, address)
        (folder / "known_hosts").write_text("".join(known))
        self.ssh = (
            f"ssh -F none -p 2222 -i {folder}/key -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes "
            f"-o UserKnownHostsFile={folder}/known_hosts -o GlobalKnownHostsFile=none"
        )

    def start(self, script, *options, hosts="10.77.0.1:1,10.77.0.2:1", ssh=None):
        (self.folder / "script.py").write_text(script)
        self.mark = f"MARK_{uuid.uuid4().hex}"
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("MS_", "MUSTER_"))}
        environment = {
            **kept,
            "PATH": SEARCH_PATH,
        }
        command = [*self.hosts[0], str(PROGRAM), "run", "--hosts", hosts, "--ssh", ssh or self.ssh]
        command += ["--env", f"PYTHONPATH={PACKAGES}", "--env", f"{self.mark}=1", *options, "script.py"]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def marked(self):
        """The processes of the job, wherever they are."""
        mark = f"{self.mark}=1".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
        return found

    def close(self):
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with two_hosts_joined() as hosts:
        made = Cluster(tmp_path_factory.mktemp("ssh"), hosts)
        yield made
        made.close()


def lines_until(job, pattern, count=1):
    seen = []
    while count > 0:
        line = job.stdout.readline()
        assert line, "it ended:\n" + "".join(seen)
        seen.append(line)
        count -= bool(re.search(pattern, line))
    return seen


@contextlib.contextmanager
def waiting_job(cluster, **options):
    """A job whose three workers wait, each with a grandchild that has left it."""
    job = cluster.start(WAITS, **options)
    try:
        lines_until(job, "waits", 3)
        deadline = time.monotonic() + PATIENCE
        while len(cluster.marked()) < 6:
            assert time.monotonic() < deadline, cluster.marked()
        yield job
    finally:
        job.kill()
        job.wait()
        job.stdout.close()


def expect_nothing_left(cluster, seconds):
    deadline = time.monotonic() + seconds
    while left := cluster.marked():
        assert time.monotonic() < deadline, left


def test_a_training_runs_on_both_hosts(cluster):
    script = """
import muster
muster.init()
from muster import nn
net = nn.Dense(4, 2)
reducer = nn.DistributedGradReducer(net.trainable_params())
gradients = tuple(muster.ops.ones_like(parameter) for parameter in net.trainable_params())
reducer(gradients)
print("rank", muster.get_rank(), "of", muster.get_group_size(), "local", muster.get_local_rank_size())
"""
    job = cluster.start(script, hosts="10.77.0.1:2,10.77.0.2:1")
    output, _ = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, output
    assert "[worker 1] rank 1 of 3 local 2\n" in output
    assert "[worker 2] rank 2 of 3 local 1\n" in output


WAITS = """
import os, signal, subprocess
subprocess.run(["sh", "-c", "setsid sh -c 'exec sleep 1000' > /dev/null 2>&1 &"])
print("waits", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_on_either_host_when_the_launcher_ends(cluster, number):
    with waiting_job(cluster) as job:
        job.send_signal(number)
        job.wait(timeout=PATIENCE)
        expect_nothing_left(cluster, 3)


def test_a_host_that_is_cut_off_ends_the_job_on_both_sides(cluster):
    a, b = cluster.hosts
    with waiting_job(cluster, ssh=f"{cluster.ssh} -o ServerAliveInterval=1") as job:
        begin = time.monotonic()
        subprocess.run([*b, "ip", "link", "set", "cable", "down"], check=True)
        try:
            output, _ = job.communicate(timeout=PATIENCE)
            assert job.returncode == 69, output
            assert "muster: host 10.77.0.2 is lost: " in output
            held = begin + 10 - time.monotonic()  # the lease of the agent there
            expect_nothing_left(cluster, held + 3)
        finally:
            subprocess.run([*b, "ip", "link", "set", "cable", "up"], check=True)
            wait_for_port(a, ADDRESSES[1])


def agent_of_worker(cluster, rank):
    for pid in cluster.marked():
        process = Path(f"/proc/{pid}")
        if f"MS_NODE_ID={rank}".encode() in (process / "environ").read_bytes().split(b"\0"):
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if b"agent" in Path(f"/proc/{parent}/cmdline").read_bytes():
                return parent
    raise AssertionError("no agent")


# ssh notices nothing: its own keepalives are answered. Lost after 10 s; asserted with a factor of two.
def test_an_agent_that_stands_still_ends_the_job_and_nothing_is_left_on_either_host(cluster):
    with waiting_job(cluster) as job:
        begin = time.monotonic()
        os.kill(agent_of_worker(cluster, 1), signal.SIGSTOP)
        output, _ = job.communicate(timeout=2 * (10 + 3))
        assert job.returncode == 69, output
        assert "muster: host 10.77.0.2: has said nothing for 5 s; after 10 s it is lost\n" in output
        assert "muster: host 10.77.0.2 is lost: nothing was heard from its agent for 10 s" in output
        expect_nothing_left(cluster, begin + 2 * (10 + 3) - time.monotonic())


@pytest.mark.parametrize(
    ("host", "changed", "message"),
    [
        ("10.77.0.2", ("-i {folder}/key", "-i {folder}/host_10.77.0.1"), "Permission denied"),
        ("10.77.0.2", ("known_hosts", "no_hosts"), "Host key verification failed"),
        ("10.77.0.2", ("-p 2222", "-p 2223"), "Connection refused"),
        ("no.such.host", ("-p 2222", "-p 2222"), "Could not resolve hostname"),
    ],
)
def test_a_host_that_cannot_be_had_says_why_at_once(cluster, host, changed, message):
    old, new = (text.format(folder=cluster.folder) for text in changed)
    begin = time.monotonic()
    job = cluster.start(TELLS, hosts=f"{host}:1", ssh=cluster.ssh.replace(old, new))
    output, _ = job.communicate(timeout=PATIENCE)
    assert job.returncode == 2, output
    assert re.search(rf"host {re.escape(host)}: .*{message}", output), output
    assert time.monotonic() - begin < 12
