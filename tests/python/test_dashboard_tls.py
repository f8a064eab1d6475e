"""The page of a job with certificates, where other hosts reach it: HTTPS."""

import http.client
import json
import re
import socket
import ssl

import pytest
from job import PATIENCE
from pages import MUSTER, Events, acting_job, ask, clean_environment, run_until_end
from tls import Tree


@pytest.fixture(scope="module", name="tree")
def tree_fixture(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("certificates"))


def connection_to(port, tree):
    """As a browser that trusts the job's authority."""
    context = ssl.create_default_context(cafile=tree.folder / "ca.crt")
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=context)


def ask_encrypted(port, tree, path, method="GET", **headers):
    connection = connection_to(port, tree)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_page_of_a_job_with_certificates_is_encrypted_where_other_hosts_reach_it(tmp_path, tree):
    with acting_job(tmp_path, where="=0.0.0.0:0", scheme="https", **tree.variables()) as (job, port, token):
        connection = connection_to(port, tree)  # checks the certificate, and that it is of this address
        connection.request("GET", "/events")
        events = connection.getresponse()
        assert events.status == 200
        assert b"event: hello" in events.readline()
        told = json.loads(events.readline().decode().removeprefix("data: "))
        assert told["may_act"]
        assert "<html" in ask_encrypted(port, tree, "/")[1]
        assert ask_encrypted(port, tree, "/metrics")[0] == 200
        origin = f"https://127.0.0.1:{port}"
        others = ask_encrypted(port, tree, "/events", Origin=f"http://127.0.0.1:{port}")
        assert others == (403, "other sites may not ask\n")
        sent = {"X-Muster-Token": token, "Origin": origin}
        status, text = ask_encrypted(port, tree, "/act?do=stop", "POST", **sent)
        assert status == 202, text
        assert job.wait() == 0
        assert "stopped behind" in job.output()


def test_who_speaks_no_tls_to_an_encrypted_page_is_told_and_keeps_nobody_else_from_it(tmp_path, tree):
    with acting_job(tmp_path, where="=0.0.0.0:0", scheme="https", **tree.variables()) as (_, port, _token):
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(70)]  # more than are kept
        status, _, text = ask(port, "/")
        assert (status, text) == (400, "this page is encrypted: its address begins with https://\n")
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as other:
            other.sendall(b"\x16\x03\x01\x00\x05nonsense")
            assert re.match(rb"\x15|", other.recv(100))  # an alert, or the end
        assert "<html" in ask_encrypted(port, tree, "/")[1]
        for each in silent:
            each.close()


def test_the_page_of_a_job_with_certificates_on_this_host_alone_needs_none(tmp_path, tree):
    with acting_job(tmp_path, **tree.variables()) as (_, port, token):
        assert token
        assert "<html" in ask(port, "/")[2]


def test_a_page_beside_a_job_with_certificates_is_encrypted_too(tmp_path, tree):
    with acting_job(tmp_path, **tree.variables()) as (_, first, _token):
        scheduler = Events(first).wait_for("state")["scheduler"]
        command = [MUSTER, "dashboard", "--scheduler", scheduler, "--listen", "0.0.0.0:0"]
        with run_until_end("dashboard", command, {**clean_environment(), **tree.variables()}) as beside:
            port = int(beside.wait_for_line(r"https://0\.0\.0\.0:(\d+)/").group(1))
            assert "<html" in ask_encrypted(port, tree, "/")[1]
