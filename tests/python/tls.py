"""Jobs over TLS for tests: a tree of certificates, processes that use them, and peers of other kinds."""

import itertools
import json
import os
import select
import shutil
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

from job import Process, clean_environment, free_port
from places import BUILD

PROBE = BUILD / "tests/process/cluster_probe/cluster_probe"
MAKE_TREE = BUILD / "tests/process/certificate_tree/certificate_tree"
REFUSED_WITHIN = 3  # seconds
_numbers = itertools.count()


class Tree:
    """A folder of certificates, and configurations that use them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([str(MAKE_TREE), str(folder)], check=True, timeout=60)
        self.password = (folder / "password").read_text().strip()

    def variables(self, both="good", *, server=None, client=None, password="password", **fields):
        """What turns TLS on: a new configuration with these certificates, and the password's file."""
        text = {
            "server_cert_path": f"{server or both}.p12",
            "client_cert_path": f"{client or both}.p12",
            "ca_cert_path": "ca.crt",
            "crl_path": "crl.pem",
            **fields,
        }
        path = self.folder / f"config-{next(_numbers)}.json"
        path.write_text(json.dumps(text))
        secret = str(self.folder / password)
        return {
            "MUSTER_TLS_CONFIG": str(path),
            "MUSTER_TLS_CLIENT_PASSWORD_FILE": secret,
            "MUSTER_TLS_SERVER_PASSWORD_FILE": secret,
        }

    def copy(self, name: str, to: Path) -> Path:
        return Path(shutil.copy(self.folder / name, to))

    def context(self, side, certificate=None) -> ssl.SSLContext:
        """Of a peer that believes everybody and is as weak as it can be."""
        made = ssl.SSLContext(side)
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
        made.set_ciphers("DEFAULT:@SECLEVEL=0")
        if certificate:
            made.load_cert_chain(self.folder / f"{certificate}.pem")
        return made


class Probe(Process):
    """A process of a job that does what it is told."""

    def __init__(self, name, variables):
        super().__init__(name, [str(PROBE)], {**clean_environment(), **variables}, stdin=subprocess.PIPE)

    def tell(self, line):
        self._popen.stdin.write(line + "\n")
        self._popen.stdin.flush()


class Job:
    """A scheduler and what joins it. At the end no password may stand in any output."""

    def __init__(self, tree, workers=1, scheduler=None, **variables):
        self.tree, self.processes, self.port = tree, [], free_port()
        self._common = {
            "MS_SCHED_HOST": "127.0.0.1",
            "MS_SCHED_PORT": str(self.port),
            "MS_WORKER_NUM": str(workers),
            "MS_TOPO_TIMEOUT": "30",
            **variables,
        }
        security = tree.variables() if scheduler is None else scheduler
        self.scheduler = self.start("scheduler", MS_ROLE="MS_SCHED", **security)

    def start(self, name, **variables):
        self.processes.append(Probe(name, {**self._common, **variables}))
        return self.processes[-1]

    def worker(self, number=0, security=None):
        security = self.tree.variables() if security is None else security
        return self.start(f"worker {number}", MS_ROLE="MS_WORKER", MS_NODE_ID=str(number), **security)

    def running_worker(self, number=0, security=None):
        worker = self.worker(number, security)
        worker.wait_for_line("rank ")
        return worker

    def ends_well(self, *workers):
        """The workers still do what they are told, and leave."""
        for worker in workers:
            worker.tell("step 7")
            worker.wait_for_line("at step 7")
        for worker in workers:
            worker.tell("leave")
        assert [process.wait() for process in [*workers, self.scheduler]] == [0] * (1 + len(workers))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for process in self.processes:
            process.end()
        if kind is None:
            for process in self.processes:
                assert self.tree.password not in process.output()


def ended(process):
    """The exit code and output of a process that has to end soon."""
    begin = time.monotonic()
    code = process.wait()
    assert time.monotonic() - begin < REFUSED_WITHIN
    return code, process.output()


def fate_of(peer):
    """How it ended what `peer` (called with nothing) does on a connection; an error when it was let in."""
    begin = time.monotonic()
    try:
        peer()
        how = "closed"
    except TimeoutError:
        raise AssertionError("it was let in, or left alone") from None
    except (ssl.SSLError, ConnectionError) as error:
        how = str(error)
    assert time.monotonic() - begin < REFUSED_WITHIN
    return how


def knock(port, context):
    """Connects as a client of TLS, and waits until the other side ends it: how."""

    def peer():
        plain = socket.create_connection(("127.0.0.1", port), timeout=REFUSED_WITHIN + 1)
        with plain, context.wrap_socket(plain) as wrapped:
            while wrapped.recv(4096):
                pass

    return fate_of(peer)


def send_plain(port, data):
    """What comes back for bytes that are sent as they are, until the other side closes."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=REFUSED_WITHIN + 1) as plain:
        begin = time.monotonic()
        plain.sendall(data)
        try:
            while received := plain.recv(4096):
                answer += received
        except ConnectionResetError:
            pass
        assert time.monotonic() - begin < REFUSED_WITHIN + 0.5
    return answer


def client_hello(version, suites):
    """The first bytes of TLS, with nothing in it but what is asked for."""
    extensions = bytes.fromhex("000a000400020017" + "000d0006000404030804" + "00170000")
    body = version.to_bytes(2, "big") + os.urandom(32) + b"\0"
    body += (2 * len(suites)).to_bytes(2, "big") + b"".join(suite.to_bytes(2, "big") for suite in suites)
    body += b"\1\0" + len(extensions).to_bytes(2, "big") + extensions
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message


class FalseScheduler:
    """Listens where a scheduler should, shows a certificate, and says nothing more."""

    def __init__(self, context):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._context = context
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while not self._done.is_set():
            if not select.select([self._listener], [], [], 0.05)[0]:
                continue
            connection, _ = self._listener.accept()
            connection.settimeout(REFUSED_WITHIN)
            try:
                if self._context is None:
                    self._talk(connection)
                else:
                    with self._context.wrap_socket(connection, server_side=True) as wrapped:
                        self._talk(wrapped)
            except OSError:
                pass  # the other side went, as it should
            finally:
                connection.close()

    @staticmethod
    def _talk(connection):
        while connection.recv(4096):
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()
        self._listener.close()
