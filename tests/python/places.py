"""Where the tests find the packages: the build tree of this checkout, unless MUSTER_BUILD names another."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
PACKAGES = BUILD / "python"
COMPAT_PACKAGES = BUILD / "python_compat"
# What `muster run` starts scripts with is the Python that runs the tests.
SEARCH_PATH = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]


def clean_environment(*packages):
    """This process's variables; none but PYTHONPATH tells Muster, OpenMP, Python or an example something."""
    told = ("MS_", "OMP_", "MUSTER_", "PYTHON", "DATA_PATH")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(told)}
    return {**kept, "PYTHONPATH": os.pathsep.join(map(str, packages))}
