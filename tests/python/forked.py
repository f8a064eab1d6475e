"""Processes that run Python, forked from one that has imported what their scripts import.

More than half of what the tests' 5,000 processes do is to start: an interpreter with numpy and muster takes
70 ms of processor time, a fork 16. What `muster run --preload` does makes a fork what a new interpreter is.
With MUSTER_TESTS_FORK=0 each is one: `.ci/nightly`.
"""

import atexit
import contextlib
import functools
import gc
import importlib.machinery
import importlib.util
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types

from places import PACKAGES, ROOT, clean_environment

MODULES = ["numpy", "muster", "muster.nn", "muster.train", "muster.dataset"]
# Variables that are looked at where the interpreter and its libraries start.
STARTS = ("PYTHON", "LD_", "OPENBLAS_", "MALLOC_", "GLIBC_", "ASAN_", "UBSAN_", "TSAN_", "MUSTER_LOG")


def popen(command, env, stdin=None, **options):
    """A Popen, or what acts like one. `options`: cwd, stdout, stderr, text, start_new_session."""
    if stdin in (None, subprocess.DEVNULL) and (words := Words.of(command)):
        parent = forking_parent()
        if parent is not None and parent.starts_alike(env):
            return Forked(parent, command, words, env, **options)
    return subprocess.Popen(command, env=env, stdin=stdin, **options)


class Words:
    """What a Python is told: `python [-u] (-c CODE | SCRIPT) ARGUMENTS...`."""

    def __init__(self, is_unbuffered, kind, target, arguments):
        self.is_unbuffered, self.kind, self.target, self.arguments = is_unbuffered, kind, target, arguments

    @classmethod
    def of(cls, command):
        """None: it is another command."""
        words = list(map(os.fspath, command))
        if words.pop(0) != sys.executable or not words:
            return None
        is_unbuffered = words[0] == "-u"
        words = words[is_unbuffered:]
        if words[:1] == ["-c"] and len(words) > 1:
            return cls(is_unbuffered, "code", words[1], words[2:])
        is_script = words and words[0].endswith(".py")
        return cls(is_unbuffered, "script", words[0], words[1:]) if is_script else None


# ---- The test's side ------------------------------------------------------------------------------------


@functools.cache
def forking_parent():
    """One for each process of pytest. None: there is to be none."""
    return Parent() if os.environ.get("MUSTER_TESTS_FORK", "1") != "0" else None


class Parent:
    """The process that forks; its children's ends are known by their descriptors, and asked of it."""

    def __init__(self):
        self._environment = clean_environment(PACKAGES)
        self._lock = threading.Lock()
        self._connection, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(there.fileno())],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
                start_new_session=True,  # a Ctrl-C is for pytest
            )
        atexit.register(self._end)

    def starts_alike(self, environment):
        """But for PYTHONPATH, which each fork reads."""
        names = {name for name in {*environment, *self._environment} if name.startswith(STARTS)}
        return all(
            name == "PYTHONPATH" or environment.get(name) == self._environment.get(name) for name in names
        )

    def fork(self, order, out, err, has_session):
        with tempfile.TemporaryFile() as file:
            file.write(json.dumps(order).encode())
            file.flush()
            return self._ask("session" if has_session else "fork", [file.fileno(), out, err])

    def exit_code(self, pid):
        """Of one that has ended, which is forgotten then."""
        return self._ask(f"reap {pid}", [])

    def _ask(self, text, descriptors):
        with self._lock:
            socket.send_fds(self._connection, [text.encode()], descriptors)
            try:
                answer = self._connection.recv(64)
            except ConnectionResetError:
                answer = b""
        assert answer, "the process that forks others has ended: what it wrote is told with this"
        return int(answer)

    def _end(self):
        self._connection.close()
        self._process.wait()


class Forked:
    """As a subprocess.Popen."""

    def __init__(self, parent, command, words, env, cwd=None, stdout=None, stderr=None, **options):
        self.args, self.returncode, self.stdin = command, None, None
        self._parent = parent
        with contextlib.ExitStack() as ends:
            self.stdout, out = self._output(stdout, 1, options.get("text"), ends)
            self.stderr, err = (None, out) if stderr == subprocess.STDOUT else (None, None)
            if err is None:
                self.stderr, err = self._output(stderr, 2, options.get("text"), ends)
            order = {**vars(words), "words": list(map(os.fspath, command)), "environment": dict(env)}
            order["folder"] = os.fspath(cwd or os.getcwd())
            self.pid = parent.fork(order, out, err, options.get("start_new_session", False))
        self._end = os.pidfd_open(self.pid)

    @staticmethod
    def _output(wanted, inherited, is_text, ends):
        """This side's file, and the descriptor of the process."""
        if wanted == subprocess.PIPE:
            ours, theirs = os.pipe()
            ends.callback(os.close, theirs)
            return (open(ours) if is_text else open(ours, "rb")), theirs
        if wanted == subprocess.DEVNULL:
            return None, ends.enter_context(open(os.devnull, "wb")).fileno()
        if wanted is None:
            return None, inherited
        return None, wanted if isinstance(wanted, int) else wanted.fileno()

    def wait(self, timeout=None):
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._end, select.POLLIN)
            if not poll.poll(None if timeout is None else 1000 * max(0, timeout)):
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = self._parent.exit_code(self.pid)
            os.close(self._end)
        return self.returncode

    def poll(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


# ---- The parent's side ----------------------------------------------------------------------------------


def preloader():
    """The program behind `muster run --preload`."""
    path = str(ROOT / "muster/launch/preload/preloader.py")
    loader = importlib.machinery.SourceFileLoader("muster_preloader", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def serve(connection, before, make):
    """Returns in each process that it forks: kind and target of what it runs."""
    parent = os.getpid()
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 64, 3)
        if not message:
            os._exit(0)
        what, *pid = message.split()
        if what == b"reap":
            _, status = os.waitpid(int(pid[0]), 0)
            connection.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        if os.fork() == 0:
            if what == b"session":
                os.setsid()
            connection.send(str(os.getpid()).encode())  # not before its group can be sent signals
            connection.close()
            with open(descriptors[0], "rb") as file:
                file.seek(0)
                order = types.SimpleNamespace(**json.load(file))
            become(order, descriptors[1:], parent, before, make)
            return order.kind, order.target
        for descriptor in descriptors:
            os.close(descriptor)


def become(order, outputs, parent, before, make):
    folder = os.open(order.folder, os.O_PATH | os.O_DIRECTORY)
    order.variables = [os.fsencode(f"{name}={text}") for name, text in order.environment.items()]
    order.words = list(map(os.fsencode, order.words))
    make.become(order, outputs, parent, folder, before)
    atexit.unregister(gc.unfreeze)  # 11 of the 27 ms of an empty script: the end looks through what it shares
    if order.is_unbuffered:
        told = {"encoding": sys.stdout.encoding, "errors": sys.stdout.errors}
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True, **told)
        sys.__stdout__ = sys.stdout
    sys.argv = [{"script": order.target, "code": "-c"}[order.kind], *order.arguments]
    sys.orig_argv = list(map(os.fsdecode, order.words))
    sys.path[:] = ["", *order.environment.get("PYTHONPATH", "").split(os.pathsep), *sys.path]
    make.set_up_path(order.kind, order.target)


def main():
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    make = preloader()
    before = dict(os.environb)
    del sys.path[0]  # the tests' own folder
    for name in MODULES:
        importlib.import_module(name)
    sys.path.remove(os.environ["PYTHONPATH"])  # each fork has its own
    gc.freeze()
    make.main(lambda: serve(connection, before, make))


if __name__ == "__main__":
    main()
