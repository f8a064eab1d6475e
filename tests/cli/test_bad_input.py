"""What cannot be started ends at once, and names the thing and the fix."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(ROOT / "build/apps/muster/muster")
SOON = 2 * 2  # seconds: 2 are promised; tests allow twice that


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("MS_", "MA_", "VC_", "MUSTER_", "SLURM_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("open('started', 'w')")
    (tmp_path / "notes.txt").write_text("no program")
    (tmp_path / "hosts").write_text("a slots=2\nb slots=none\n")
    (tmp_path / "table.json").write_text('{"version": "1.0", "server_count": "2"}')
    (tmp_path / "job.toml").write_text('script = "train.py"\nslot = 2\n')
    return tmp_path


def refused(*words, variables=()):
    begin = time.monotonic()
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=60, env={**os.environ, **dict(variables)}
    )
    assert time.monotonic() - begin < SOON
    assert done.returncode not in (0, -6, -11), done.stderr
    assert not Path("started").exists()
    return done.stderr


@pytest.mark.parametrize(
    ("flags", "variables", "message"),
    [
        (["-n", "2", "missing.py"], {}, r"script.*'missing\.py'"),
        (
            ["-n", "2", "./notes.txt"],
            {},
            r"'\./notes\.txt'.*executable",
        ),
        (["-n", "0", "train.py"], {}, r"-n 0.*whole.*from 1.*to 16384"),
        (["--hosts", "a:0", "train.py"], {}, r"--hosts a:0.*'a'.*'0'.*slots.*from 1"),
        (
            ["--hosts", "a,a", "train.py"],
            {},
            r"--hosts.*'a'.*stands.*a:4",
        ),
        (
            ["--hostfile", "hosts", "train.py"],
            {},
            r"line 2.*'b'.*'none'.*slots.*from 1",
        ),
        (["--hostfile", "none", "train.py"], {}, "--hostfile none: "),
        (["--preset", "ascend", "--rank-table", "table.json", "train.py"], {}, r"table\.json: "),
        (["--preset", "torch", "train.py"], {}, r"--preset 'torch'.*such"),
        (["--job", "job.toml"], {}, r"job\.toml.*line 2.*setting.*'slots'"),
        (["-n", "2"], {}, r"example.*4 train\.py --epochs 10"),
        (["-n", "2", "--nnodes", "2", "train.py"], {}, r"need.*--scheduler"),
        (
            ["-n", "2", "train.py"],
            {"MS_WORKER_NUM": "4"},
            r"MS_WORKER_NUM=4.*2 workers.*unset",
        ),
        (
            ["-n", "2", "--node-rank", "0", "--scheduler", "a:8118", "train.py"],
            {"MA_NUM_HOSTS": "2", "VC_TASK_INDEX": "1"},
            r"--node-rank 0.*contradicts.*VC_TASK_INDEX=1",
        ),
        (["-n", "2", "--tail", "7", "train.py"], {}, r"--tail 7.*ranks.*are 0.*to 1"),
        (["-n", "2", "--env", "A", "train.py"], {}, "--env A: write NAME=VALUE"),
        (
            ["-n", "2", "--port", "80", "train.py"],
            {},
            r"--port 80.*whole.*from 1024.*to 65535",
        ),
    ],
)
def test_bad_input_is_refused_at_once_by_its_name(flags, variables, message):
    assert re.search(message, refused(PROGRAM, "run", *flags, variables=variables))


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs ssh: apt-get install openssh-client")
def test_an_unknown_host_is_named():
    said = refused(PROGRAM, "run", "--hosts", "a.invalid:1,b.invalid:1", "train.py")
    assert re.search(r"host ([ab]\.invalid): ssh: Could not resolve hostname \1", said), said


# Binds every port of a range, then becomes the command.
OCCUPY = """
import os, resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
for port in range(5000, 10001):
    taken = socket.socket()
    taken.bind(("127.0.0.1", port))
    os.set_inheritable(taken.detach(), True)
os.execv(sys.argv[1], sys.argv[1:])
"""
OWN_NETWORK = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def has_own_network():
    return subprocess.run([*OWN_NETWORK, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(
    not has_own_network(), reason="needs network namespaces (unshare -n), that is, to be root"
)
def test_a_range_without_a_free_port_is_named():
    run = [PROGRAM, "run", "--preset", "tensorflow", "-n", "2", "train.py"]
    said = refused(*OWN_NETWORK, sys.executable, "-c", OCCUPY, *run)
    assert all(part in said for part in ("0 of 3", "5000 to 10000", "ss -ltn"))
