"""`once`: what takes long is made once in a run of the tests, whichever process needs it first."""

import pytest
from once import once


def test_what_was_made_once_is_given_to_whoever_asks_later(tmp_path_factory):
    asked = []

    def make():
        asked.append(1)
        return ["state", None]

    ends = [once(tmp_path_factory, "test_once-made", make) for _ in range(2)]
    assert ends == [["state", None]] * 2
    assert len(asked) == 1


def test_what_failed_is_made_again_by_the_next_who_asks(tmp_path_factory):
    def fail():
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        once(tmp_path_factory, "test_once-failed", fail)
    assert once(tmp_path_factory, "test_once-failed", lambda: 7) == 7
