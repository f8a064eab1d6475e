"""Trainings over TLS: the bits of those without, by every way to turn it on; nothing to see on the wire."""

import hashlib
import os
import subprocess
import sys

import pytest
from hosts import TRAIN, needs_namespaces, result, two_hosts_joined
from job import Job, clean_environment
from places import BUILD, SEARCH_PATH
from tls import Tree

SCRIPT = TRAIN.replace("STEPS", "10")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def plain_result():
    with Job(SCRIPT, workers=2) as job:
        return result(job)


def token(tree):
    (tree.folder / "token").write_text(hashlib.sha256(tree.password.encode()).hexdigest())
    (tree.folder / "token").chmod(0o600)
    return {"MUSTER_TOKEN_FILE": str(tree.folder / "token")}


@pytest.mark.parametrize("transport", ["auto", "tcp"])
@pytest.mark.parametrize("how", ["certificates", "token"])
def test_a_training_has_the_bits_that_it_has_without(tree, plain_result, how, transport):
    security = tree.variables() if how == "certificates" else token(tree)
    with Job(SCRIPT, workers=2, MUSTER_TRANSPORT=transport, **security) as job:
        assert result(job) == plain_result


@pytest.mark.parametrize("module", ["muster", "mindspore"])
def test_set_ps_context_does_what_the_variables_do(tree, plain_result, module):
    config = tree.variables()["MUSTER_TLS_CONFIG"]
    chosen = (
        f"import {module}\n{module}.set_ps_context(config_file_path={config!r}, enable_ssl=True, "
        f"client_password={tree.password!r}, server_password={tree.password!r})\n"
    )
    script = chosen + SCRIPT + f"\n{module}.set_ps_context(enable_ssl=True)\n"  # nothing changes: no error
    with Job(script, workers=2, MUSTER_TRANSPORT="tcp") as job:
        assert result(job) == plain_result
    late = SCRIPT.replace(
        "ms.init()", f"ms.init(); import {module}; {module}.set_ps_context(enable_ssl=True)"
    )
    with Job(late, workers=1) as job:
        assert job.workers[0].wait() == 1
        assert (
            "ValueError: set_ps_context: this process has joined its job already" in job.workers[0].output()
        )


@pytest.mark.parametrize("strict", ["0", "1"])
def test_passwords_from_a_pipe_are_no_secret_that_others_can_read(tree, tmp_path, strict):
    (tmp_path / "train.py").write_text(SCRIPT)
    security = tree.variables()
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as pipe:
        pipe.write(tree.password)
        pipe.close()
        command = [
            *[BUILD / "apps/muster/muster", "run", "-n", "2", "--tls-config", security["MUSTER_TLS_CONFIG"]],
            *["--client-password-file", f"fd:{reading}"],
            *["--server-password-file", security["MUSTER_TLS_SERVER_PASSWORD_FILE"], "train.py"],
        ]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**clean_environment(), "PATH": SEARCH_PATH, "MUSTER_STRICT": strict},
            pass_fds=[reading],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "which is a secret" not in done.stderr


def start_workers(job, names, hosts, security):
    for name, host in zip(names, hosts, strict=True):
        job.workers.append(job.start(name, host, MS_ROLE="MS_WORKER", MS_NODE_ID=name, **security))


def test_a_worker_whose_own_listener_shows_another_name_is_not_met(tree):
    """It registers with the certificate that it connects with; for tensors the other one counts too."""
    common = {"MS_WORKER_NUM": "2", "MUSTER_TRANSPORT": "tcp"}
    with Job(SCRIPT, workers=0, hosts=[[]], **common, **tree.variables()) as job:
        start_workers(job, ["0", "1"], [[], []], tree.variables(server="wrong-name"))
        for process in job.everybody():
            assert process.wait() != 0
        output = job.workers[0].output() + job.workers[1].output()
    assert all(part in output for part in ("elsewhere.invalid", "none", "127.0.0.1"))
    assert tree.password not in output


SENDS = """
import muster as ms
from muster import nn

ms.init()
parameter = ms.Parameter(ms.Tensor([0.0] * 4096, ms.float32), name="p")
reducer = nn.DistributedGradReducer([parameter])
for _ in range(3):
    (sum_of_all,) = reducer([ms.Tensor([1.2345678] * 4096, ms.float32)])
print("reduced")
"""
SNIFFS = """
import select, socket, struct, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
print("listens", flush=True)
tensor, name, packets = struct.pack("<f", 1.2345678) * 4, b"a-name-to-be-seen", 0
seen = set()
while True:
    ready = select.select([wire, sys.stdin], [], [])[0]
    if wire in ready:
        packet = wire.recv(1 << 16)
        packets += 1
        seen |= {what for what, bytes_ in (("tensor", tensor), ("name", name)) if bytes_ in packet}
    elif sys.stdin in ready:
        break
print(packets > 20, *sorted(seen))
"""


def seen_on_the_wire(hosts, **security):
    """What of a job on two hosts somebody on the cable can read."""
    sniffer = subprocess.Popen(
        [*hosts[0], sys.executable, "-c", SNIFFS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert sniffer.stdout.readline() == "listens\n"
    common = {"MS_WORKER_NUM": "2", "MS_SCHED_HOST": "10.77.0.1"}
    with Job(SENDS, workers=0, hosts=[hosts[0]], **common, **security) as job:
        start_workers(job, ["a-name-to-be-seen-1", "a-name-to-be-seen-2"], hosts, {})
        for worker in job.workers:
            assert worker.wait() == 0, worker.output()
        assert job.scheduler.wait() == 0, job.scheduler.output()
    return sniffer.communicate("")[0].split()


def certificates_for(addresses, folder):
    """What a user gets who follows the guide."""
    new = [str(BUILD / "apps/muster/muster"), "certs", "new", "--hosts", addresses, "--out", str(folder)]
    subprocess.run(new, check=True, capture_output=True, timeout=60)
    return {
        "MUSTER_TLS_CONFIG": str(folder / "config.json"),
        "MUSTER_TLS_CLIENT_PASSWORD_FILE": str(folder / "client.password"),
        "MUSTER_TLS_SERVER_PASSWORD_FILE": str(folder / "server.password"),
        "MUSTER_STRICT": "1",
    }


@needs_namespaces
def test_between_hosts_nothing_can_be_read(tree, tmp_path):
    made = certificates_for("10.77.0.1,10.77.0.2", tmp_path / "certs")
    with two_hosts_joined() as hosts:
        assert seen_on_the_wire(hosts) == ["True", "name", "tensor"]
        assert seen_on_the_wire(hosts, **token(tree)) == ["True"]
        assert seen_on_the_wire(hosts, **made) == ["True"]
