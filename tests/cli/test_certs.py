"""`muster certs`, and what `muster run` hands on to the processes that it starts."""

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/apps/muster/muster"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("MS_", "MUSTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def muster(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(PROGRAM), *arguments], capture_output=True, text=True, timeout=60, check=False, **options
    )


def make(*more: str) -> subprocess.CompletedProcess:
    done = muster("certs", "new", "--hosts", "a.invalid,10.0.0.7,localhost", "--out", "certs", *more)
    assert done.returncode == 0, done.stderr
    return done


def passwords(folder: Path) -> list[str]:
    return [path.read_text().strip() for path in folder.rglob("*.password")]


def test_new_makes_everything_that_a_job_needs_and_says_what_to_do_with_it(folder):
    done = make()
    made = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder / "certs").iterdir()}
    assert sorted(made) == [
        *["ca.crt", "ca.key", "client.p12", "client.password", "config.json", "crl.pem"],
        *["server.p12", "server.password"],
    ]
    assert set(made.values()) == {0o600}
    assert stat.S_IMODE((folder / "certs").stat().st_mode) == 0o700
    for name in ("DNS:a.invalid", "IP:10.0.0.7", "DNS:localhost", "IP:127.0.0.1", "IP:::1"):
        assert name in done.stdout
    assert "'a.invalid'" in done.stderr and "known" in done.stderr
    assert "muster" in done.stdout and "2 --tls-config certs/config.json" in done.stdout
    secrets = passwords(folder)
    assert len(set(secrets)) == 2
    assert all(len(secret) == 32 and secret not in done.stdout + done.stderr for secret in secrets)


def test_new_makes_certificates_for_each_node_where_it_is_asked_to(folder):
    make("--nodes", "0,1")
    shown = muster("certs", "show", "certs/1").stdout
    assert re.search(r"for .*URI:muster:node:1\n", shown)
    assert "muster:node:0" not in shown
    assert "URI:muster:node:scheduler" in muster("certs", "show", "certs").stdout
    assert sorted(path.name for path in (folder / "certs/0").iterdir()) == [
        *["ca.crt", "client.p12", "client.password", "config.json", "crl.pem"],
        *["server.p12", "server.password"],
    ]


def test_new_writes_into_no_folder_that_has_something_in_it(folder):
    make()
    again = muster("certs", "new", "--hosts", "a", "--out", "certs")
    assert again.returncode == 2
    assert "--out" in again.stderr and "already" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--hosts", "a b"], r"'a b'.*neither.*IP"),
        (["--hosts", "a", "--days", "0"], r"--days 0.*whole.*from 1.*to 36500"),
        (["--hosts", "a", "--nodes", "../b"], r"'\.\./b'.*cannot"),
    ],
)
def test_new_says_what_it_cannot_make(folder, arguments, complaint):
    refused = muster("certs", "new", *arguments, "--out", "certs")
    assert refused.returncode == 2
    assert re.search(complaint, refused.stderr)
    assert not (folder / "certs").exists()


def test_revoke_adds_to_every_copy_of_the_list_and_show_tells(folder):
    make("--nodes", "0,1")
    first = muster("certs", "revoke", "certs", "certs/1/client.p12")
    assert first.returncode == 0, first.stderr
    assert "CN = Muster client of 1" in first.stdout
    for copy in ("certs/crl.pem", "certs/0/crl.pem", "certs/1/crl.pem"):
        assert copy in first.stdout
        assert "1 revoked" in muster("certs", "show", copy).stdout
    second = muster("certs", "revoke", "certs/crl.pem", "certs/0/client.p12")
    assert second.returncode == 0, second.stderr
    serial = re.search(r"\((\w+)\)", second.stdout)[1]
    listed = muster("certs", "show", "certs/1/crl.pem").stdout
    assert "2 revoked" in listed
    assert f"  {serial} revoked on " in listed
    assert "was revoked before" in muster("certs", "revoke", "certs", "certs/0/client.p12").stdout
    assert "2 revoked" in muster("certs", "show", "certs/crl.pem").stdout


def test_revoke_takes_only_what_the_same_authority_signed(folder):
    make()
    other = muster("certs", "new", "--hosts", "a", "--out", "others")
    assert other.returncode == 0
    (folder / "certs/ca.crt").rename(folder / "kept")
    assert "ca.crt" in muster("certs", "revoke", "certs", "certs/client.p12").stderr
    (folder / "kept").rename(folder / "certs/ca.crt")
    (folder / "certs/client.password").write_text("wrong\n")
    refused = muster("certs", "revoke", "certs", "certs/client.p12")
    assert refused.returncode == 2
    assert "client.p12" in refused.stderr and "wrong" in refused.stderr


TELLS = """
import os, sys
if os.environ["MS_ROLE"] == "MS_WORKER":
    for name in sys.argv[1:]:
        value = os.environ[name]
        print(name, value)
        print(open(f"/proc/self/fd/{value[3:]}" if value.startswith("fd:") else value).read())
"""


def test_run_hands_on_files_by_name_and_never_what_is_in_them(folder):
    make()
    (folder / "script.py").write_text(TELLS)
    names = ["MUSTER_TLS_CONFIG", "MUSTER_TLS_CLIENT_PASSWORD_FILE"]
    done = muster(
        *["run", "-n", "1", "--tls-config", "certs/config.json"],
        *["--client-password-file", "certs/client.password", "script.py", *names],
    )
    assert done.returncode == 0, done.stderr
    assert f"MUSTER_TLS_CONFIG {folder}/certs/config.json\n" in done.stdout
    assert f"MUSTER_TLS_CLIENT_PASSWORD_FILE {folder}/certs/client.password\n" in done.stdout


def test_run_reads_a_pipe_once_and_every_process_gets_what_was_in_it(folder):
    (folder / "script.py").write_text(TELLS)
    reading, writing = os.pipe()
    os.write(writing, b"a token that nobody guesses\n")
    os.close(writing)
    done = muster(
        *["run", "-n", "2", "--token-file", f"fd:{reading}", "script.py", "MUSTER_TOKEN_FILE"],
        pass_fds=[reading],
    )
    os.close(reading)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\[worker 0\] MUSTER_TOKEN_FILE fd:\d+\n", done.stdout)
    for worker in ("worker 0", "worker 1"):
        assert f"[{worker}] a token that nobody guesses\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--tls-config", "absent.json"], r"--tls-config absent\.json.*such"),
        (["--token-file", "absent"], r"--token-file.*cannot.*'absent'"),
        (["--token-file", "fd:77"], r"'fd:77'.*descriptor"),
        (
            ["--token-file", "present", "--tls-config", "present"],
            r"certificates.*both",
        ),
    ],
)
def test_run_refuses_files_that_are_not_there(folder, arguments, complaint):
    (folder / "present").write_text("0123456789abcdef")
    (folder / "script.py").write_text("")
    refused = muster("run", "-n", "1", *arguments, "script.py")
    assert refused.returncode == 2
    assert re.search(complaint, refused.stderr)
