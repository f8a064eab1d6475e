"""PyTorch's own tests of torch.distributed, in torch.testing._internal.distributed.distributed_test.

    python distributed_cases.py muster|gloo RESULTS [name ...]

runs each test over that backend on as many processes as WORLD_SIZE says (4) and writes lines
`name passed|skipped|failed` to RESULTS. Many of those tests ask whether the backend is Gloo, mean any backend
of CPU tensors, and are skipped otherwise: to them the name is equal to Gloo's, and what makes groups sees the
wanted one. Processes are forked: each would import PyTorch otherwise.
"""

import os
import sys
import tempfile
import traceback
import unittest
from pathlib import Path

SECONDS_MAX = "60"  # of a test: most take less than one


class Name(str):
    """Of a backend, which the tests take for Gloo's."""

    def __eq__(self, other):
        return other == "gloo" or str(self) == other

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


def prepare(backend: str):
    """The module of the tests, whose tests use `backend`."""
    folder = Path(tempfile.mkdtemp(prefix="muster-cases-"))
    for name in ("barrier", "test_dir", "init_dir"):
        (folder / name).mkdir(exist_ok=True)
    os.environ.setdefault("WORLD_SIZE", "4")
    os.environ.update(BACKEND="gloo", TEMP_DIR=str(folder), DISTRIBUTED_TESTS_DEFAULT_TIMEOUT=SECONDS_MAX)
    import torch
    from torch.testing._internal.distributed import distributed_test as module

    torch.set_num_threads(1)
    if backend == "muster":
        import muster.torch  # noqa: F401 - where this PyTorch does not know the entry point, and before the forks

    module.BACKEND = Name(backend)
    os.environ["BACKEND"] = backend
    return module


def cases(module):
    """The class of the tests, one process group for each."""

    class Cases(module.TestDistBackend, module.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(module.torch.multiprocessing.get_context("fork").Process)

    return Cases


class Results(unittest.TestResult):
    """Writes each outcome at once, with the reason of a failure in a file beside the list."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file, self._reasons = file, file.with_suffix(".reasons")

    def _write(self, test, outcome: str, reason: str = "") -> None:
        name = test.id().rsplit(".", 1)[-1]
        with self._file.open("a") as file:
            file.write(f"{name} {outcome}\n")
        if reason:
            with self._reasons.open("a") as file:
                file.write(f"==== {name}\n{reason}\n")

    def addSuccess(self, test):  # noqa: N802 - unittest's name
        self._write(test, "passed")

    def addSkip(self, test, reason):  # noqa: N802
        self._write(test, "skipped", reason)

    def addFailure(self, test, error):  # noqa: N802
        self._write(test, "failed", "".join(traceback.format_exception(*error)))

    addError = addFailure  # noqa: N815


def main(backend: str, results: str, *names: str) -> None:
    kind = cases(prepare(backend))
    found = names or unittest.TestLoader().getTestCaseNames(kind)
    shown = Results(Path(results))
    for name in found:
        kind(name).run(shown)


if __name__ == "__main__":
    main(*sys.argv[1:])
