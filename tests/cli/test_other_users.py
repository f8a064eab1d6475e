"""A job that is started by variables alone warns where other people of the host could take part in it."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROBE = ROOT / "build/tests/process/cluster_probe/cluster_probe"
# A host with accounts of its own, where nobody looks at the others' processes.
ENTER = 'mount --bind "$1" /etc/passwd && shift && exec "$@"'
HOST = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
PASSWD = """root:x:0:0::/root:/bin/sh
bob:x:4711:4711::/:/bin/sh
daemon:x:4712:4712::/:/usr/sbin/nologin
"""
# Somebody's process, and the scheduler of a job that ends when nobody comes.
BOTH = """
begun=$(setpriv --reuid "$1" --clear-groups sh -c 'sleep 1000 > /dev/null & echo begun')
shift; exec "$@"
"""


def can_enter():
    made = subprocess.run([*HOST, "setpriv --reuid 4711 --clear-groups true"], capture_output=True)
    return os.geteuid() == 0 and made.returncode == 0


@pytest.mark.skipif(not can_enter(), reason="namespaces and users are not allowed here")
@pytest.mark.parametrize(
    ("user", "is_told", "more"),
    [
        (4711, True, {}),
        (4712, False, {}),
        (4713, False, {}),
        (4711, False, {"MUSTER_TOKEN_FILE": "token"}),
    ],
    ids=["another person", "a daemon", "a container", "a job with a token"],
)
def test_another_person_on_this_host_is_warned_of_once(tmp_path, user, is_told, more):
    (tmp_path / "passwd").write_text(PASSWD)
    (tmp_path / "token").write_text("a token that nobody guesses")
    (tmp_path / "token").chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    job = {"MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": str(port), "MS_WORKER_NUM": "1"}
    scheduler = {**job, **more, "PATH": os.environ["PATH"], "MS_ROLE": "MS_SCHED", "MS_TOPO_TIMEOUT": "1"}
    inside = ["sh", "-c", BOTH, "both", str(user), str(PROBE)]
    done = subprocess.run(
        [*HOST, ENTER, "enter", str(tmp_path / "passwd"), *inside],
        env=scheduler,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "MS_TOPO_TIMEOUT" in done.stdout + done.stderr
    told = (done.stdout + done.stderr).count("the job is open to every user of this host")
    assert told == is_told, done.stderr
    assert ("where 'bob' runs something too" in done.stderr) == is_told
