"""Eight ways in which a job does not form: who says what, within 5 s.

The expected words are those of the page docs/guide/forming.md: in each of its sections the first block is
what the odd process says, the second what the scheduler and the waiting workers do. The time is asserted with
a factor of two, as all deadlines in these tests are.
"""

import contextlib
import re
import socket
import subprocess
import time

import pytest
from job import Process, clean_environment, free_port
from places import BUILD, ROOT
from test_hosts import needs_namespaces, two_hosts  # noqa: F401  (a fixture)

PROBE = BUILD / "tests/process/cluster_probe/cluster_probe"
PAGE = ROOT / "docs/guide/forming.md"
SOON = 5 * 2  # twice what is promised: this machine may be busy
REFUSED, TIMED_OUT, MISCONFIGURED = 77, 75, 78


def words_of(section):
    """The lines of a section's blocks, each as a pattern that leaves numbers open."""
    text = PAGE.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert blocks, f"the page has no words under '{section}'"
    return [[pattern_of(line) for line in block.splitlines()] for block in blocks]


def pattern_of(line):
    line = re.sub(r"^muster(\[.*?\])? \w+: ", "", line)
    line = line.removesuffix("Name or service not known")  # a host without DNS says it in other words
    return re.sub(r"[0-9]+(\\\.[0-9]+)*(e[-+][0-9]+)?", r"[0-9.e+-]+", re.escape(line))


class Job:
    """A scheduler and workers 0 and 1 of three, which have registered."""

    def __init__(self, host=(), address="127.0.0.1", **variables):
        self.host = host
        self.variables = {
            "MS_SCHED_HOST": address,
            "MS_SCHED_PORT": str(free_port()),
            "MS_WORKER_NUM": "3",
            "MS_TOPO_TIMEOUT": "60",
            **variables,
        }
        self.processes = []
        scheduler = self.start(MS_ROLE="MS_SCHED", MUSTER_LOG="debug")
        self.waiting = [scheduler, *(self.worker(rank) for rank in range(2))]
        for _ in range(2):
            scheduler.wait_for_line("registered")

    def start(self, host=None, **variables):
        environment = {**clean_environment(), **self.variables, **variables}
        process = Process("probe", [*(self.host if host is None else host), str(PROBE)], environment)
        self.processes.append(process)
        return process

    def worker(self, rank, host=None, **variables):
        return self.start(host, MS_ROLE="MS_WORKER", MS_NODE_ID=str(rank), **variables)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.end()


def expect(section, begin, odd, waiting):
    """The words of the section come soon after `begin`, and the job goes on waiting."""
    said = words_of(section)
    for process, patterns in [(odd, said[0] if odd else []), *((process, said[-1]) for process in waiting)]:
        for pattern in patterns:
            process.wait_for_line(pattern)
        assert time.monotonic() - begin < SOON
    for process in waiting:
        process.signal(0)  # it is there


def test_a_host_name_that_is_not_known():
    with Job() as job:
        begin = time.monotonic()
        odd = job.worker(2, MS_SCHED_HOST="no-such-host.invalid", MUSTER_RESOLVE_TIMEOUT="30")
        expect("The name of the scheduler's host is not known", begin, odd, job.waiting)


def test_a_host_name_that_is_not_waited_for():
    with Job() as job:
        odd = job.worker(2, MS_SCHED_HOST="no-such-host.invalid")
        assert odd.wait() == MISCONFIGURED
        assert "MS_SCHED_HOST='no-such-host.invalid' cannot be used" in odd.output()


def test_a_wrong_port():
    with Job() as job:
        begin = time.monotonic()
        odd = job.worker(2, MS_SCHED_PORT=str(free_port()))
        expect("Nothing listens there", begin, odd, job.waiting)


@needs_namespaces
def test_a_firewall_that_drops(two_hosts):  # noqa: F811
    a, b = two_hosts
    with Job(host=a, address="10.77.0.1") as job:
        subprocess.run([*a, "ip", "route", "add", "blackhole", "10.77.0.2/32"], check=True)
        begin = time.monotonic()
        odd = job.worker(2, host=b)
        expect("Nothing answers", begin, odd, job.waiting)


@needs_namespaces
def test_no_way_there(two_hosts):  # noqa: F811
    a, b = two_hosts
    with Job(host=a, address="10.77.0.1") as job:
        subprocess.run([*b, "ip", "route", "add", "prohibit", "10.77.0.1/32"], check=True)
        odd = job.worker(2, host=b)
        assert odd.wait() == MISCONFIGURED
        assert "no route to 10.77.0.1" in odd.output()


def test_encryption_on_one_side_only(tmp_path):
    token = tmp_path / "token"
    token.write_text("a token of more than sixteen characters")
    token.chmod(0o600)
    with Job() as job:
        begin = time.monotonic()
        odd = job.worker(2, MUSTER_TOKEN_FILE=str(token))
        expect("One side encrypts, the other does not", begin, odd, job.waiting)
        assert odd.wait() == REFUSED


def test_a_wrong_number_of_workers():
    with Job() as job:
        begin = time.monotonic()
        odd = job.worker(2, MS_WORKER_NUM="8")
        expect("MS_WORKER_NUM differs", begin, odd, job.waiting)
        assert odd.wait() == REFUSED


def test_an_id_that_is_taken():
    with Job() as job:
        begin = time.monotonic()
        odd = job.worker(1)
        expect("Two processes have one MS_NODE_ID", begin, odd, job.waiting)
        assert odd.wait() == REFUSED


def test_one_worker_too_many():
    with Job(MS_SERVER_NUM="1") as job:  # all workers come, and the job waits for its server
        job.worker(2)
        job.waiting[0].wait_for_line("registered")
        begin = time.monotonic()
        odd = job.worker("extra")
        expect("One process too many", begin, odd, job.waiting)
        assert odd.wait() == REFUSED


def test_a_worker_that_was_never_started():
    begin = time.monotonic()
    with Job() as job:
        expect("A process was never started", begin, None, job.waiting)


def test_something_else_at_the_schedulers_port():
    with Job() as job:
        begin = time.monotonic()
        port = int(job.variables["MS_SCHED_PORT"])
        with socket.create_connection(("127.0.0.1", port), timeout=SOON) as odd:
            odd.sendall(
                b"GET / HTTP/1.1\r\nHost: a name that makes it long enough to be a frame's header\r\n\r\n"
            )
            while odd.recv(1 << 10):
                pass
        expect("Connections that do not belong to the job", begin, None, job.waiting)


def test_a_scheduler_that_has_no_free_descriptor_takes_one_from_an_unauthorized_peer():
    limited = ["prlimit", "--nofile=64:64"]
    with contextlib.ExitStack() as stack, Job(limited) as job:
        port = int(job.variables["MS_SCHED_PORT"])
        for _ in range(100):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SOON))
        begin = time.monotonic()
        job.worker(2, host=())
        job.waiting[0].wait_for_line("all 3 workers and 0 servers have come")
        assert time.monotonic() - begin < SOON


def test_the_table_is_the_error_when_the_time_is_over():
    with Job(MS_TOPO_TIMEOUT="3") as job:
        for process in job.waiting:
            assert process.wait() == TIMED_OUT
            for pattern in words_of("The time is over")[0]:
                assert re.search(pattern, process.output()), process.output()


@pytest.mark.parametrize("strict", [False, True])
def test_processes_that_differ(strict):
    with Job(MUSTER_STRICT="1" if strict else "0", OMP_NUM_THREADS="2") as job:
        job.worker(2, OMP_NUM_THREADS="4")
        warning, error = words_of("The processes differ")
        for process in job.waiting:
            process.wait_for_line((error if strict else warning)[0])
            if strict:
                assert process.wait() == MISCONFIGURED
