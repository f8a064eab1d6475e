"""What `import muster` loads, and what it leaves behind."""

import os
import subprocess
import sys

import pytest
from places import PACKAGES

# Each costs milliseconds to start with, and no worker that only trains needs any of them.
HEAVY = [
    "numpy",
    "typing",
    "dataclasses",
    "inspect",
    "re",
    "asyncio",
    "subprocess",
    "logging",
    "json",
]


def start(code, **variables):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MS_", "OMP_"))}
    environment = {**clean, "PYTHONPATH": str(PACKAGES), **variables}
    # -S leaves out what a virtual environment's own start files load.
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done


def run(code, **variables):
    return start(code, **variables).stdout.strip()


def test_importing_muster_loads_no_heavy_module():
    code = f"import sys, muster; print([name for name in {HEAVY} if name in sys.modules])"
    assert run(code) == "[]"


def test_printing_a_scalar_loads_no_numpy():
    code = "import sys, muster; print(muster.Tensor(2.5), 'numpy' in sys.modules)"
    assert run(code) == "2.5 False"


def test_the_wait_policy_is_not_left_to_children():
    code = "import os, muster; print(os.environ.get('OMP_WAIT_POLICY'), os.environ.get('GOMP_SPINCOUNT'))"
    assert run(code, MS_WORKER_NUM="4") == "None None"
    assert run(code) == "None None"
    assert run(code, MS_WORKER_NUM="4", OMP_WAIT_POLICY="active") == "active None"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "10000"),
        ({"MS_WORKER_NUM": "4"}, "0"),
        ({"GOMP_SPINCOUNT": "77"}, "77"),
        ({"MS_WORKER_NUM": "4", "GOMP_SPINCOUNT": "77"}, "77"),
    ],
)
def test_threads_that_wait_do_not_spin_for_long(variables, expected):
    # libgomp itself says what it read.
    told = start("import muster", OMP_DISPLAY_ENV="VERBOSE", **variables).stderr
    assert f"GOMP_SPINCOUNT = '{expected}'" in told


def test_onednn_is_loaded_by_the_first_convolution_and_not_before():
    code = """
import muster
loaded = lambda: "libdnnl" in open("/proc/self/maps").read()
x = muster.Tensor([[1.0, 2.0], [3.0, 4.0]])
(x @ x + x).tolist()
before = loaded()
image = x.reshape(1, 1, 2, 2)
muster.ops.conv2d(image, image)
print(before, loaded())
"""
    before, after = run(code).split()
    assert before == "False"
    assert after == str((PACKAGES.parent / "lib" / "muster" / "muster_onednn.so").exists())
