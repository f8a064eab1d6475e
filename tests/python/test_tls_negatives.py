"""Who must not be let in over TLS: refused soon, with a reason, no secret told, and the job goes on.

The names follow the list "TLS negatives" that this was written from.
"""

import json
import re
import shutil
import signal
import ssl
import subprocess
import time

import pytest
from job import PATIENCE
from tls import (
    FalseScheduler,
    Job,
    Tree,
    client_hello,
    ended,
    knock,
    send_plain,
)

REFUSED, CONFIGURATION = 77, 78  # exit codes


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("certificates"))


def client(tree, certificate=None, version=None):
    context = tree.context(ssl.PROTOCOL_TLS_CLIENT, certificate)
    if version:
        context.minimum_version = context.maximum_version = version
    return context


# ---- Whom the scheduler refuses ----------------------------------------------------------------------------

STRANGERS = [
    # whose certificate, what the unauthorized peer is told, what the scheduler says
    ("expired", "certificate expired", r"certificate has expired on \S+ \S+ UTC \(CN=expired\)"),
    ("not-yet-valid", "bad certificate", r"certificate is not valid before \S+ \S+ UTC \(CN=not-yet-valid\)"),
    ("other-authority", "unknown ca", "its issuer CN=Another authority is not in ca_cert_path"),
    ("same-name-other-authority", "unknown ca", "its issuer CN=Test authority is not in ca_cert_path"),
    ("self-signed", "unknown ca", "it is self-signed, and not in ca_cert_path"),
    ("revoked", "certificate revoked", r"certificate revoked \(CN=revoked\)"),
    ("under-revoked-intermediate", "certificate revoked", r"certificate revoked \(CN=Revoked intermediate\)"),
    ("under-intermediate-without-list", "unknown ca", "crl_path has no revocation list of its issuer"),
    ("server-only", "unsupported certificate", r"unsuitable certificate purpose \(CN=server-only\)"),
    ("rsa-1024", "bad certificate", r"certificate key too weak \(CN=rsa-1024\)"),
    ("sha-1", "bad certificate", r"signature digest algorithm too weak \(CN=sha-1\)"),
    (None, "certificate required|handshake failure", "showed no certificate"),
]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(("certificate", "told", "said"), STRANGERS)
def test_the_scheduler_refuses(tree, certificate, told, said, version):
    with Job(tree) as job:
        worker = job.running_worker()
        how = knock(job.port, client(tree, certificate, version))
        line = job.scheduler.wait_for_line("a connection from 127.0.0.1 was closed")
        assert_matches(told, how)
        assert_matches(said, line.string)
        job.ends_well(worker)


@pytest.mark.parametrize(
    ("crl", "said"),
    [
        ("crl-expired.pem", "the revocation list of its issuer .*Test authority in crl_path has expired"),
        (
            "crl-not-yet-valid.pem",
            "the revocation list of its issuer .*Test authority in crl_path is not yet",
        ),
        ("crl-of-another.pem", "crl_path has no revocation list of its issuer"),
        ("crl-of-the-same-name.pem", "crl_path has no revocation list of its issuer"),
    ],
)
def test_nobody_is_let_in_by_a_revocation_list_that_cannot_be_used(tree, crl, said):
    with Job(tree, scheduler=tree.variables(crl_path=crl)) as job:
        worker = job.worker()
        code, output = ended(worker)
        assert code == REFUSED
        assert "refused this process's certificate" in output
        knock(job.port, client(tree, "good"))
        job.scheduler.signal(signal.SIGINT)
        job.scheduler.wait()
        assert_matches(said, job.scheduler.output())


def knock_until(job, tree, pattern):
    """The scheduler looks at its revocation list when somebody comes, at most once a second."""
    deadline = time.monotonic() + PATIENCE
    while not job.scheduler.has_printed(pattern):
        assert time.monotonic() < deadline, f"never printed: {pattern}"
        knock(job.port, client(tree))


def test_a_revocation_list_that_breaks_lets_nobody_in_until_it_is_whole_again(tree, tmp_path):
    crl = tree.copy("crl.pem", tmp_path / "crl.pem")
    settings = {**tree.variables(crl_path=str(crl)), "MUSTER_LOG": "info"}
    with Job(tree, workers=2, scheduler=settings) as job:
        first = job.worker(0)
        first.wait_for_line("registered|waiting|came")
        tree.copy("crl-corrupt.pem", crl)
        knock_until(job, tree, "crl.pem.*no new peer is admitted until it can be read")
        second = job.worker(1)
        second.wait_for_line("the other side cannot check certificates now")  # and tries again
        tree.copy("crl.pem", crl)
        knock_until(job, tree, "crl.pem.* again: 3 revocation lists")
        first.wait_for_line("rank 0 of 2")
        job.ends_well(first, second)


def test_who_is_revoked_while_connected_is_cut_off(tree, tmp_path):
    crl = tree.copy("crl.pem", tmp_path / "crl.pem")
    with Job(tree, scheduler=tree.variables(crl_path=str(crl)), MS_NODE_TIMEOUT="1") as job:
        worker = job.running_worker(0, tree.variables("revoked-later"))
        tree.copy("crl-later.pem", crl)
        code, _ = ended(worker)
        assert code != 0
        job.scheduler.wait()
        assert "certificate revoked (CN=revoked-later)" in job.scheduler.output()


# ---- Who claims to be another ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("certificate", "said"),
    [
        ("wrong-name", "is for elsewhere.invalid, and for none of 127.0.0.1"),
        ("127.0.0.1", r"is for no names at all \(the common name does not count\)"),
        ("node-1", "was made for node 1, not for node 0"),
        ("scheduler", "was made for node scheduler, not for node 0"),
    ],
)
def test_a_worker_is_refused_that_is_not_who_its_certificate_says(tree, certificate, said):
    with Job(tree) as job:
        code, output = ended(job.worker(0, tree.variables(client=certificate)))
        assert code == REFUSED
        assert_matches(said, output)
        job.ends_well(job.running_worker(0))


def test_who_has_a_certificate_for_its_node_or_under_an_intermediate_is_let_in(tree):
    with Job(tree, workers=3) as job:
        names = ["node-0", "under-intermediate", "rsa-2048"]
        workers = [job.worker(i, tree.variables(client=name)) for i, name in enumerate(names)]
        for worker in workers:
            worker.wait_for_line("rank . of 3")
        job.ends_well(*workers)


# ---- Whom a worker refuses ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("certificate", "said"),
    [
        ("expired", "certificate has expired on"),
        ("not-yet-valid", "certificate is not valid before"),
        ("other-authority", "its issuer .*Another authority is not in ca_cert_path"),
        ("same-name-other-authority", "its issuer .*Test authority is not in ca_cert_path"),
        ("self-signed", "it is self-signed, and not in ca_cert_path"),
        ("revoked", r"certificate revoked \(CN=revoked\)"),
        ("under-revoked-intermediate", r"certificate revoked \(CN=Revoked intermediate\)"),
        ("client-only", r"unsuitable certificate purpose \(CN=client-only\)"),
        ("wrong-name", "is for elsewhere.invalid, and for none of 127.0.0.1"),
        ("127.0.0.1", "the common name does not count"),
        ("node-1", "was made for node 1, not for node scheduler"),
        ("rsa-1024", r"certificate key too weak \(CN=rsa-1024\)"),
        ("sha-1", r"signature digest algorithm too weak \(CN=sha-1\)"),
    ],
)
def test_a_worker_refuses_a_scheduler(tree, certificate, said, version):
    context = tree.context(ssl.PROTOCOL_TLS_SERVER, certificate)
    context.minimum_version = context.maximum_version = version
    with FalseScheduler(context) as false, Job(tree) as job:
        worker = job.start(
            "worker", MS_ROLE="MS_WORKER", **{**tree.variables(), "MS_SCHED_PORT": str(false.port)}
        )
        code, output = ended(worker)
        assert code == REFUSED, output
        assert "the scheduler at 127.0.0.1" in output
        assert_matches(said, output)
        job.ends_well(job.running_worker())


# ---- What is no TLS, or none that is good enough -----------------------------------------------------------

HANDSHAKE_FAILURE, PROTOCOL_VERSION, INAPPROPRIATE_FALLBACK = 40, 70, 86


@pytest.mark.parametrize(
    ("version", "suites", "alert"),
    [
        pytest.param(0x0300, [0xC02B], HANDSHAKE_FAILURE, id="ssl-3"),
        pytest.param(0x0301, [0xC009], PROTOCOL_VERSION, id="tls-1.0"),
        pytest.param(0x0302, [0xC009], PROTOCOL_VERSION, id="tls-1.1"),
        pytest.param(0x0303, [0xC006, 0x003B], HANDSHAKE_FAILURE, id="null-cipher"),
        pytest.param(0x0303, [0x0003, 0x0006, 0x0008], HANDSHAKE_FAILURE, id="export-cipher"),
        pytest.param(0x0303, [0x00A8, 0xC037], HANDSHAKE_FAILURE, id="psk-cipher"),
        pytest.param(0x0303, [0x00A6, 0xC018], HANDSHAKE_FAILURE, id="anonymous-cipher"),
        pytest.param(0x0303, [0xC02B, 0x5600], INAPPROPRIATE_FALLBACK, id="downgrade"),
    ],
)
def test_tls_that_is_not_good_enough_is_refused(tree, version, suites, alert):
    with Job(tree) as job:
        worker = job.running_worker()
        answer = send_plain(job.port, client_hello(version, suites))
        assert answer[0] == 0x15, "an alert"
        assert answer[6] == alert
        job.scheduler.wait_for_line("a connection from 127.0.0.1 was closed: ")
        job.ends_well(worker)


def test_a_hello_that_is_good_enough_is_answered(tree):
    """So that the test above refuses for the reason that it names."""
    with Job(tree) as job:
        worker = job.running_worker()
        assert send_plain(job.port, client_hello(0x0303, [0xC02B]))[0] == 0x16, "its part of the handshake"
        job.ends_well(worker)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the program openssl is not installed")
def test_renegotiation_is_refused(tree):
    with Job(tree) as job:
        worker = job.running_worker()
        done = subprocess.run(
            [
                *["openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{job.port}"],
                *["-cert", str(tree.folder / "good.pem"), "-key", str(tree.folder / "good.pem")],
            ],
            input="R\n",
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        assert "no renegotiation" in done.stderr.lower() + done.stdout.lower()
        job.ends_well(worker)


def test_a_stalled_handshake_is_ended(tree):
    with Job(tree) as job:
        worker = job.running_worker()
        send_plain(job.port, client_hello(0x0303, [0xC02B])[:20])
        assert "handshake" in job.scheduler.wait_for_line("a connection from 127.0.0.1 was closed").string
        job.ends_well(worker)


def test_noise_is_ended(tree):
    with Job(tree) as job:
        worker = job.running_worker()
        send_plain(job.port, b"GET / HTTP/1.1\r\n\r\n")
        job.scheduler.wait_for_line("a connection from 127.0.0.1 was closed")
        job.ends_well(worker)


def test_a_worker_without_tls_is_told_that_the_job_has_it(tree):
    with Job(tree) as job:
        code, output = ended(job.worker(0, {}))
        assert code == REFUSED
        assert "not use TLS" in output
        job.ends_well(job.running_worker())


def test_a_worker_with_tls_is_told_that_the_job_has_none(tree):
    with Job(tree, scheduler={}) as job:
        code, output = ended(job.worker(0))
        assert code == REFUSED
        assert "TLS" in output and "process" in output and "none" in output
        job.ends_well(job.running_worker(0, {}))


# ---- What a process does not start with --------------------------------------------------------------------


def start_with(tree, security, **variables):
    """A worker that has to end before it connects to anything: what it says."""
    with Job(tree, scheduler={}) as job:
        code, output = ended(job.worker(0, {**security, **variables}))
        assert code == CONFIGURATION, output
        assert tree.password not in output
        job.ends_well(job.running_worker(0, {}))
        return output


@pytest.mark.parametrize("side", ["server", "client"])
@pytest.mark.parametrize(
    ("certificate", "said"),
    [
        ("expired", "has expired on"),
        ("not-yet-valid", "is not valid before"),
        ("rsa-1024", "key too small"),
        ("sha-1", "too weak|md too weak"),
        ("truncated", "is no whole PKCS#12 file"),
        ("without-key", "holds no private key"),
        ("foreign-key", "holds no certificate of its private key"),
        ("absent", "is neither"),
    ],
)
def test_a_process_names_its_own_certificate_that_cannot_be_used(tree, side, certificate, said):
    output = start_with(tree, tree.variables(**{side: certificate}))
    assert f"{side}_cert_path" in output
    assert f"{certificate}.p12" in output
    assert_matches(said, output)


def test_a_certificate_for_one_purpose_is_not_used_for_the_other(tree):
    assert_matches("may not be used to listen", start_with(tree, tree.variables(server="client-only")))
    assert_matches("may not be used to connect", start_with(tree, tree.variables(client="server-only")))


def test_a_wrong_password_and_an_empty_one_open_nothing(tree):
    (tree.folder / "wrong").write_text("open barley\n")
    (tree.folder / "empty").write_text("\n")
    output = start_with(tree, tree.variables(password="wrong"))
    assert "good.p12 cannot be opened: the password is wrong" in output.replace("'", "")
    assert "barley" not in output
    assert "is empty, and should hold a password" in start_with(tree, tree.variables(password="empty"))
    without = tree.variables("empty-password")
    del without["MUSTER_TLS_CLIENT_PASSWORD_FILE"], without["MUSTER_TLS_SERVER_PASSWORD_FILE"]
    assert "a certificate with an empty password is not used" in start_with(tree, without).lower()


@pytest.mark.parametrize(
    ("crl", "said"),
    [("crl-corrupt.pem", "crl_path .*is damaged"), ("absent.pem", "crl_path='absent.pem' is neither")],
)
def test_a_process_does_not_start_with_a_revocation_list_that_cannot_be_read(tree, crl, said):
    assert_matches(said, start_with(tree, tree.variables(crl_path=crl)))


def test_a_cipher_list_without_a_usable_name_is_an_error_that_names_them(tree):
    ciphers = "ECDHE-R SA-AES128-GCM-SHA256:NULL-SHA256:EXP-RC4-MD5:PSK-AES128-GCM-SHA256"
    output = start_with(tree, tree.variables(cipher_list=ciphers))
    for name in ("ECDHE-R SA-AES128-GCM-SHA256", "NULL-SHA256", "EXP-RC4-MD5", "PSK-AES128-GCM-SHA256"):
        assert name in output


def test_an_impossible_cipher_name_is_reported_and_the_rest_is_used(tree):
    ciphers = "ECDHE-R SA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256"
    with Job(tree, scheduler=tree.variables(cipher_list=ciphers)) as job:
        job.scheduler.wait_for_line("ECDHE-R SA-AES128-GCM-SHA256")
        job.ends_well(job.running_worker(0, tree.variables(cipher_list=ciphers)))


def test_a_p12_that_every_user_can_read_is_a_warning_and_an_error_when_strict(tree):
    for kind in ("p12", "pem"):
        shutil.copy(tree.folder / f"good.{kind}", tree.folder / f"open.{kind}")
    (tree.folder / "open.p12").chmod(0o644)
    with Job(tree) as job:
        worker = job.running_worker(0, tree.variables("open"))
        job.ends_well(worker)
        assert "open.p12', which is a secret: chmod 600 it" in worker.output()
    output = start_with(tree, tree.variables("open"), MUSTER_STRICT="1")
    assert all(part in output for part in ("open.p12'", "chmod", "600 it"))


def test_a_certificate_near_its_end_warns(tree):
    with Job(tree) as job:
        worker = job.running_worker(0, tree.variables("ends-soon"))
        job.ends_well(worker)
        assert_matches("ends-soon.* expires on .* in 20 days", worker.output())


# ---- Tokens ------------------------------------------------------------------------------------------------


def token(tree, text):
    path = tree.folder / f"token-{text[:8]}"
    path.write_text(text + "\n")
    path.chmod(0o600)
    return {"MUSTER_TOKEN_FILE": str(path)}


GOOD_TOKEN, OTHER_TOKEN = "0123456789abcdef" * 2, "fedcba9876543210" * 2


def test_a_token_lets_in_who_has_it_and_nobody_else(tree):
    with Job(tree, scheduler=token(tree, GOOD_TOKEN)) as job:
        for security, said in [
            (token(tree, OTHER_TOKEN), "refused this process's token"),
            ({}, "does not use TLS, and this job does"),
            (tree.variables(), "ended TLS: "),
        ]:
            code, output = ended(job.worker(0, security))
            assert code == REFUSED, output
            assert_matches(said, output)
            assert GOOD_TOKEN not in output and OTHER_TOKEN not in output
        worker = job.running_worker(0, token(tree, GOOD_TOKEN))
        job.ends_well(worker)
        assert GOOD_TOKEN not in job.scheduler.output() + worker.output()


# ---- New certificates --------------------------------------------------------------------------------------


def test_certificates_are_renewed_while_the_job_runs(tree, tmp_path):
    """A worker whose files were replaced comes back with them; the others go on."""
    for name in ("ca.crt", "crl.pem", "password"):
        tree.copy(name, tmp_path / name)
    tree.copy("good.p12", tmp_path / "own.p12")
    fields = {f"{name}_cert_path": "own.p12" for name in ("server", "client")}
    config = {**fields, "ca_cert_path": "ca.crt", "crl_path": "crl.pem"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    own = {**tree.variables(), "MUSTER_TLS_CONFIG": str(tmp_path / "config.json")}
    recovery = {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(tmp_path / "recovery")}
    with Job(tree, workers=2, **recovery) as job:
        others = job.worker(0)
        renewed = job.worker(1, own)
        for step in range(3):
            others.wait_for_line(f"epoch {step + 1} ")
            others.tell(f"step {step}")
            others.wait_for_line(f"at step {step}")
            renewed.wait_for_line(f"epoch {step + 1} ")
            if step == 2:
                break
            tree.copy(["renewed.p12", "rsa-2048.p12"][step], tmp_path / "own.p12")
            renewed.signal(signal.SIGKILL)
            renewed.wait()
            renewed = job.worker(1, own)
        job.ends_well(others, renewed)


def assert_matches(pattern, text):
    assert re.search(pattern, text), f"'{pattern}' is not in '{text}'"
