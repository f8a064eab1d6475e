"""Compiles the part of the backend that is in C++: the calls of a training's step without Python in between.

    python -m muster.torch

PyTorch promises nothing to backends in C++, so the part is made for one version of it, by the compiler of the
host, and kept in a cache: $MUSTER_TORCH_CACHE, or ~/.cache/muster. The first job that would use it begins
that in the background, where it gives way to all else, and goes on without it, as every job does where there
is no compiler; a line says so. The command waits for the end, for images and shared caches.
MUSTER_TORCH_COMPILED=0 leaves all calls to Python.
"""

import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from datetime import timedelta
from pathlib import Path

import torch

from muster._version import __version__

_SOURCES = [Path(__file__).with_name(name) for name in ("backend.cpp", "calls.h")]
_OLDEST = (2, 15)  # of PyTorch: the first whose backends may be classes of Python
_LONGEST_SECONDS = 24 * 3600  # of the compiler, on a host whose jobs leave it little
_LOWEST_PRIORITY = 19


def _key() -> str:
    """Of what the part depends on: another one is another file."""
    parts = [torch.__version__, torch.version.git_version, __version__, sys.implementation.cache_tag]
    seen = hashlib.sha256("\n".join(parts).encode())
    for source in _SOURCES:
        seen.update(source.read_bytes())
    return f"torch-{torch.__version__}-{sys.implementation.cache_tag}-{seen.hexdigest()[:16]}"


def _folder() -> Path:
    chosen = os.environ.get("MUSTER_TORCH_CACHE")
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen or Path(caches) / "muster")


def _library() -> Path:
    return _folder() / f"{_key()}.so"


def _compiler() -> str | None:
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "c++"]
    return next((found for name in names if (found := shutil.which(name))), None)


def _is_of_use() -> bool:
    version = tuple(int(number) for number in torch.__version__.split(".")[:2])
    return version >= _OLDEST


def _command(compiler: str, made: str) -> list[str]:
    home = Path(torch.__file__).parent
    headers = [home / "include", home / "include/torch/csrc/api/include", sysconfig.get_path("include")]
    return [
        compiler,
        *("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(part for folder in headers for part in ("-isystem", str(folder))),
        str(_SOURCES[0]),
        *(f"-L{home / 'lib'}", "-lc10", "-ltorch_cpu", "-ltorch_python"),
        *("-o", made),
    ]


def _load(library: Path):
    spec = importlib.util.spec_from_file_location("muster.torch._calls", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check() -> None:
    """Makes a call through it: a library that ends the process ends this one, and not a training."""
    from muster.torch import _group
    from muster.torch._process_group import MusterProcessGroup

    store = torch.distributed.HashStore()
    backend = _group.backend(store, 0, [0], timedelta(seconds=60), "a check")
    MusterProcessGroup(store, backend).allreduce([torch.ones(2)]).wait()
    backend.shutdown()
    if backend._get_sequence_number_for_group() != 0:
        raise RuntimeError("the call went through Python")


def make() -> Path:
    """Compiles the part now, unless it is there, and says where it is.

    Raises RuntimeError with what the compiler or the check of the result said.
    """
    if not _is_of_use():
        raise RuntimeError(f"the compiled part needs PyTorch 2.15, and this is {torch.__version__}")
    library = _library()
    if library.exists():
        return library
    compiler = _compiler()
    if compiler is None:
        raise RuntimeError("there is no C++ compiler: install g++, or name one in CXX")
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        check = [sys.executable, "-c", "from muster.torch import _compiled; _compiled.check()"]
        for command in (_command(compiler, str(made)), check):
            done = subprocess.run(
                command,
                env=os.environ | {"MUSTER_TORCH_CACHE": folder},
                capture_output=True,
                text=True,
                timeout=_LONGEST_SECONDS,
                check=False,
            )
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}")
        made.replace(library)
    return library


def _give_way(process: int) -> None:
    """It runs and reads when nobody else of this host does, also beside jobs of the lowest priority."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, _LOWEST_PRIORITY)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))  # its class of I/O follows
    with contextlib.suppress(OSError):  # where sessions share the processor, and not processes
        Path(f"/proc/{process}/autogroup").write_text(str(_LOWEST_PRIORITY))


def _begin() -> str:
    """Begins to compile in the background; what there is to say about it."""
    library = _library()
    log = library.with_suffix(".log")  # empty where a compiler was ended before it could say anything
    if _compiler() is None:
        return "PyTorch's calls go through Python: there is no C++ compiler (g++, or CXX) for a faster part"
    begun = f"a faster part for PyTorch {torch.__version__} is compiled for later starts: {library}"
    library.parent.mkdir(parents=True, exist_ok=True)
    with library.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return begun  # by another process
        if log.exists() and log.stat().st_size > 0:
            return (
                f"PyTorch's calls go through Python: {log} says why the compiled part is missing; remove it "
                "to try again"
            )
        told = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
        with log.open("w") as said:
            compiling = subprocess.Popen(
                [sys.executable, "-m", "muster.torch"],
                env={name: value for name, value in os.environ.items() if name not in told},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                pass_fds=[lock.fileno()],  # it holds the lock until it ends
                start_new_session=True,
            )
        _give_way(compiling.pid)
    return begun


@functools.cache
def part():
    """The compiled module; None where it is not there yet: then one process of the host begins to make it."""
    if os.environ.get("MUSTER_TORCH_COMPILED") == "0" or not _is_of_use():
        return None
    try:
        library = _library()
        if library.exists():
            return _load(library)
        said = _begin()
    except (OSError, ImportError) as error:
        said = f"PyTorch's calls go through Python: {error}"
    if os.environ.get("RANK", "0") == "0":
        print(f"muster: {said} (MUSTER_TORCH_COMPILED=0: never)", file=sys.stderr, flush=True)
    return None


def main() -> None:
    try:
        library = make()
    except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        sys.exit(f"muster: {error}")
    library.with_suffix(".log").unlink(missing_ok=True)
    print(library)
