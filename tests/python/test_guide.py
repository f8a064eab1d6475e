"""The code of the guide's pages runs, from top to bottom."""

import re
import subprocess
import sys

import pytest
from digits import write_digits
from job import clean_environment
from places import ROOT

LAST_LINES = {
    "mixed-precision.md": r"\[1\.\s+0\.10009766\]",
    "python.md": r"loss \d+\.\d+",
    "placement.md": r"\d to \d .* \d+ bytes",
    "model.md": r"Train epoch time: \d+\.\d{3} ms, per step time: \d+\.\d{3} ms",
}


@pytest.mark.parametrize("page", LAST_LINES)
def test_the_code_of_a_page_runs(tmp_path, page):
    write_digits(tmp_path / "digits", rows=100)
    text = (ROOT / "docs/guide" / page).read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)).replace(
        "FOLDER", repr(str(tmp_path / "digits"))
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(LAST_LINES[page], done.stdout.splitlines()[-1])
