"""The code of docs/guide/python.md runs, from top to bottom."""

import re
import subprocess
import sys

from digits import write_digits
from job import clean_environment
from places import ROOT

GUIDE = (ROOT / "docs/guide/python.md").read_text()


def test_the_code_of_the_tour_runs(tmp_path):
    write_digits(tmp_path, rows=100)
    code = "\n".join(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)).replace(
        "FOLDER", repr(str(tmp_path))
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"loss \d+\.\d+\n", done.stdout)
