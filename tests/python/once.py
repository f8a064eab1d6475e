"""What the processes of one run of the tests (pytest-xdist) share: made by the first that needs it."""

import fcntl
import json
import os
import re


def once(tmp_path_factory, name, make):
    """What `make()` gave, a value that JSON has, in whichever process of this run it was called first."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    path = folder / f"once-{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.json"
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # whoever comes meanwhile waits, instead of making it again
        file.seek(0)
        if text := file.read():
            return json.loads(text)
        value = make()
        json.dump(value, file)
        return value
