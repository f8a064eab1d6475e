# Started by `muster run --preload`: imports modules once and forks from itself the processes of a host, which
# so begin with these modules imported.
#
# It obeys the launcher, whose orders come over a socket, each with three descriptors: a file with the words
# and variables of a process, its standard output, its standard error. The answers are texts: "ready" when the
# modules are imported, "started <pid>", "failed <why>", "note <line>". What it forks becomes a child of the
# launcher, which is a subreaper, and finds itself as a fresh interpreter would have made it.
import atexit
import contextlib
import ctypes
import gc
import importlib
import importlib.machinery
import os
import signal
import socket
import sys
import types

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_MM, PR_SET_MM_MAP = 1, 35, 14
TEXT_MAX = 4096
KEPT = []  # memory that the kernel reads for /proc/<pid>/cmdline and environ


class MemoryMap(ctypes.Structure):
    """prctl_mm_map of linux/prctl.h."""

    PLACES = (
        *("start_code", "end_code", "start_data", "end_data", "start_brk", "brk", "start_stack"),
        *("arg_start", "arg_end", "env_start", "env_end", "auxv"),
    )
    _fields_ = [
        *((name, ctypes.c_uint64) for name in PLACES),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    ]


def show_as(words: list, variables: list) -> None:
    """What ps and `muster status` read of this process, where the kernel lets us."""
    with open("/proc/self/stat", "rb") as file:
        numbers = file.read().rpartition(b")")[2].split()
    field = {
        "start_code": 26,
        "end_code": 27,
        "start_stack": 28,
        "start_data": 45,
        "end_data": 46,
        "start_brk": 47,
    }
    memory = MemoryMap(exe_fd=0xFFFFFFFF, **{name: int(numbers[at - 3]) for name, at in field.items()})
    LIBC.sbrk.restype = ctypes.c_void_p
    memory.brk = LIBC.sbrk(ctypes.c_ssize_t(0))
    texts = [b"".join(text + b"\0" for text in part) for part in (words, variables)]
    block = ctypes.create_string_buffer(b"".join(texts))
    memory.arg_start = ctypes.addressof(block)
    memory.arg_end = memory.env_start = memory.arg_start + len(texts[0])
    memory.env_end = memory.env_start + len(texts[1])
    size = ctypes.c_ulong(ctypes.sizeof(memory))
    if (
        LIBC.prctl(PR_SET_MM, ctypes.c_ulong(PR_SET_MM_MAP), ctypes.byref(memory), size, ctypes.c_ulong(0))
        == 0
    ):
        KEPT[:] = [block]


def is_container(path: str) -> bool:
    """Whether Python runs the __main__ in it: a folder, or an archive."""
    if os.path.isdir(path):
        return True
    import zipfile

    return not path.endswith(".py") and zipfile.is_zipfile(path)


def set_up_path(kind: str, target: str) -> None:
    if kind == "script" and is_container(target):
        place = os.path.abspath(target)
    elif sys.flags.isolated or getattr(sys.flags, "safe_path", False):
        return
    elif kind == "script":
        place = os.path.dirname(os.path.realpath(target))
    else:
        place = os.getcwd() if kind == "module" else ""
    if sys.path and sys.path[0] == "":
        sys.path[0] = place
    else:
        sys.path.insert(0, place)


def say(connection, text: str) -> None:
    connection.send(text.encode("utf-8", "replace")[:TEXT_MAX])


def import_all(connection, names: list) -> None:
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            if not (isinstance(error, ModuleNotFoundError) and error.name == name):
                import traceback

                traceback.print_exc()
            say(connection, f"failed {name} cannot be imported: {type(error).__name__}: {error}")
            raise SystemExit(1) from None
    threads = len(os.listdir("/proc/self/task")) - 1
    if threads > 0:
        what = "a thread" if threads == 1 else f"{threads} threads"
        say(
            connection,
            f"note {','.join(names)}: its import starts {what}, which no process has that begins with these "
            "modules: if one hangs, preload fewer of them",
        )
    gc.freeze()  # the collector would write into each object, and part the memory that processes share
    say(connection, "ready")


class Order:
    def __init__(self, descriptor: int) -> None:
        fields = os.pread(descriptor, os.fstat(descriptor).st_size, 0).split(b"\0")
        arguments_at, count = int(fields[0]), int(fields[1])
        self.words = fields[2 : 2 + count]
        self.arguments = [os.fsdecode(word) for word in self.words[arguments_at:]]
        self.variables = [field for field in fields[2 + count :] if field]


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    LIBC.fflush(None)


def help_to_fork(steps, go) -> None:
    """Between the preloader and what it forks: its end makes that a child of the launcher. Returns there."""
    rank = -1
    try:
        rank = os.fork()
        if rank == 0:
            steps.close()
            if go.recv(1) != b"1":  # the preloader is gone
                os._exit(127)
            return
        os.setpgid(rank, rank)
        steps.send(str(rank).encode())
        if steps.recv(1) != b"1":
            os.kill(rank, signal.SIGKILL)
    except OSError as error:
        steps.send(f"!{error.strerror}".encode())
    if rank != 0:
        os._exit(0)


def fork(connection) -> bool:
    """Whether this is the new process. The launcher knows of it before it can end."""
    steps, steps_there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    go, go_there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    flush()
    helper = os.fork()
    if helper == 0:
        for end in (connection, steps, go):
            end.close()
        help_to_fork(steps_there, go_there)
        go_there.close()
        return True
    steps_there.close()
    go_there.close()
    with steps, go:
        told = steps.recv(TEXT_MAX).decode()
        if told[:1].isdigit():
            say(connection, f"started {told}")
            steps.send(b"1")
            os.waitpid(helper, 0)
            with contextlib.suppress(OSError):  # it was killed already, and the launcher knows it
                go.send(b"1")
        else:
            os.waitpid(helper, 0)
            say(connection, f"failed no process can be forked: {told[1:] or 'its helper has ended'}")
    return False


def become(order: Order, outputs: tuple, launcher: int, folder: int, before: dict) -> None:
    """What the launcher does between fork and exec, and then what a new interpreter does."""
    LIBC.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    if os.getppid() != launcher:
        os._exit(127)
    for descriptor, stream in zip(outputs, (1, 2), strict=True):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    os.fchdir(folder)
    os.close(folder)
    wanted = dict(entry.split(b"=", 1) for entry in order.variables if b"=" in entry[1:])
    for name in before.keys() | wanted.keys():  # what the imports have set stays
        if wanted.get(name) == before.get(name):
            continue
        if name in wanted:
            os.environb[name] = wanted[name]
        else:
            os.environb.pop(name, None)
    atexit.register(gc.unfreeze)  # what is looked through at the end is all there is, as ever
    show_as(order.words, order.variables)
    part_random_numbers()


def part_random_numbers() -> None:
    """Fresh processes begin at different places, unless an import has seeded. `random` sees to itself."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        try:
            is_seeded = numpy_random.mtrand._rand._bit_generator._seed_seq is None
        except AttributeError:
            is_seeded = False
        if not is_seeded:
            numpy_random.seed()
    generator = getattr(sys.modules.get("torch"), "default_generator", None)
    if generator is not None and generator.initial_seed() >> 32:  # people's seeds are small
        generator.seed()
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process().authkey = os.urandom(32)


def make_main(kind: str, target: str) -> dict:
    """A new __main__ as `python` makes it; its names."""
    import builtins

    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    main.__annotations__ = {}
    if kind == "script":
        main.__file__ = os.path.abspath(target)
        main.__cached__ = None
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", main.__file__)
    else:
        main.__loader__ = importlib.machinery.BuiltinImporter
    before = sys.modules["__main__"]
    for name in [name for name, module in sys.modules.items() if module is before]:
        sys.modules[name] = main  # multiprocessing has it as __mp_main__, too
    return main.__dict__


def code_of_script(path: str):
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        print(
            f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    if path.endswith(".pyc"):
        import marshal

        return marshal.loads(source[16:])
    return compile(source, path, "exec", dont_inherit=True)


def run(kind: str, target: str) -> None:
    names = make_main(kind, target)
    if kind == "module" or (kind == "script" and is_container(target)):
        import runpy

        runpy._run_module_as_main(*((target, True) if kind == "module" else ("__main__", False)))
    else:
        is_script = kind == "script"
        if not is_script and sys.version_info >= (3, 13):  # tracebacks show the code behind -c: not this file
            import linecache

            linecache.cache["<string>"] = (len(target), None, target.splitlines(keepends=True), "<string>")
        exec(
            code_of_script(names["__file__"])
            if is_script
            else compile(target, "<string>", "exec", dont_inherit=True),
            names,
        )


def report(error: BaseException) -> None:
    """As the interpreter does, without the lines of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    sys.last_exc = error
    try:
        sys.excepthook(type(error), error, trace)
    except SystemExit:
        raise
    except BaseException as failed:
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(failed), failed, failed.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, trace)


def serve() -> tuple:
    """Returns in each forked process: kind and target of what it runs."""
    descriptor, kind, target, modules, *arguments = sys.argv[1:]
    connection = socket.socket(fileno=int(descriptor))
    connection.set_inheritable(False)
    if sys.version_info < (3, 10):  # noqa: UP036 - it is the Python of people's scripts
        say(
            connection, f"failed Python {sys.version.split()[0]} is too old to fork processes: 3.10 is needed"
        )
        raise SystemExit(1)
    globals()["__name__"] = "muster_preloader"  # Python warns __main__ of forks beside threads: so do we
    launcher = os.getppid()
    folder = os.open(".", os.O_PATH | os.O_DIRECTORY)
    before = dict(os.environb)
    first = {"script": target, "module": "-m", "code": "-c"}[kind]
    show_as(
        [*map(os.fsencode, (sys.executable, "(muster run --preload " + modules + ")"))],
        [name + b"=" + value for name, value in before.items()],
    )
    sys.argv = [first, *arguments]
    set_up_path(kind, target)
    import_all(connection, modules.split(","))
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, TEXT_MAX, 3)
        if not message:
            raise SystemExit(0)
        order = Order(descriptors[0])
        os.close(descriptors[0])
        # Python forgets a Ctrl-C that comes while it calls what modules have registered for forks.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        is_new = fork(connection)
        if is_new:
            become(order, descriptors[1:], launcher, folder, before)
            sys.argv = [first, *order.arguments]
            sys.orig_argv = [os.fsdecode(word) for word in order.words]
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if is_new:
            return kind, target
        for each in descriptors[1:]:
            os.close(each)


def main(serve) -> None:
    """`serve` returns in each forked process: this ends as an interpreter that has run what it says."""
    try:
        run(*serve())
    except SystemExit:
        raise
    except BaseException as error:
        report(error)
        if type(error) is KeyboardInterrupt:  # the interpreter ends itself by SIGINT then
            sys.excepthook = lambda *ignored: None
            raise
        raise SystemExit(1) from None


if __name__ == "__main__":
    main(serve)
