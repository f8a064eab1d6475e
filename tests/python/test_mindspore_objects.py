"""Programs about cells, parameters, tensors and gradients print what they print under MindSpore."""

import json
import sys

import pytest
from job import clean_environment
from places import ROOT

PARITY = ROOT / "tests" / "parity" / "objects"


def printed(mode, tmp_path):
    import subprocess

    to = tmp_path / "answers.json"
    done = subprocess.run(
        [sys.executable, PARITY / "programs.py", to, str(mode)],
        env=clean_environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(to.read_text(encoding="utf-8"))


@pytest.mark.parametrize("mode", [1, 0], ids=["eager", "graph"])
def test_programs_print_what_mindspore_printed(mode, tmp_path):
    expected = json.loads((PARITY / "answers.json").read_text(encoding="utf-8"))
    assert expected
    assert printed(mode, tmp_path) == expected


def test_settings_without_a_meaning_are_told_once(run_with_mindspore):
    told = run_with_mindspore(
        """
        for _ in range(2):
            ms.set_auto_parallel_context(enable_alltoall=True)
        ms.set_context(jit_level="O1")
        """
    )
    assert told.count("enable_alltoall") == 1
    assert told.count("jit_level") == 1


def test_modules_that_scripts_seldom_use_are_imported_with_their_first_use(run_with_mindspore):
    run_with_mindspore(
        """
        import sys
        assert "mindspore.profiler" not in sys.modules and "logging" not in sys.modules
        ms.log.warning("seen")
        assert ms.runtime.synchronize() is None and ms.hal.device_count("CPU") == 1
        assert ms.runtime.memory_allocated() > 1 << 20
        """
    )


def test_what_would_change_a_result_is_refused(run_with_mindspore):
    run_with_mindspore(
        """
        for call in (lambda: ms.set_auto_parallel_context(auto_pipeline=True), lambda: ms.set_seed(-1)):
            try:
                call()
            except (NotImplementedError, ValueError):
                continue
            raise AssertionError("not refused")
        """
    )
