"""Modules that another thread of the script is importing are waited for, not taken half made."""

import sys
import threading

from muster._loaded import loaded

SOURCE = """
import events
events.begun.set()
assert events.go_on.wait(30)
VALUE = 3
"""


def test_a_module_that_another_thread_imports_is_given_whole(tmp_path, monkeypatch):
    (tmp_path / "slowly_made.py").write_text(SOURCE)
    (tmp_path / "events.py").write_text(
        "import threading\nbegun, go_on = threading.Event(), threading.Event()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import events

    assert loaded("slowly_made") is None
    importer = threading.Thread(target=__import__, args=("slowly_made",))
    importer.start()
    assert events.begun.wait(30) and not hasattr(sys.modules["slowly_made"], "VALUE")
    found = []
    reader = threading.Thread(target=lambda: found.append(loaded("slowly_made").VALUE))
    reader.start()
    events.go_on.set()
    reader.join(30)
    importer.join(30)
    assert found == [3]
