"""Ranks and sizes that scripts ask for without init(), in a process of no job."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

from mindspore import communication

_VARIABLES = ("RANK_ID", "RANK_SIZE", "LOCAL_RANK", "LOCAL_RANK_SIZE", "MS_ROLE")


def _asked():
    return (
        communication.get_rank(),
        communication.get_group_size(),
        communication.get_local_rank(),
        communication.get_local_rank_size(),
    )


@pytest.fixture(autouse=True)
def no_job(monkeypatch):
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_a_process_of_no_job_is_rank_0_of_1():
    assert _asked() == (0, 1, 0, 1)
    assert communication.management.get_rank(communication.GlobalComm.WORLD_COMM_GROUP) == 0


def test_a_process_of_no_job_is_what_its_launcher_says(monkeypatch):
    for name, value in zip(_VARIABLES, ("3", "8", "1", "2"), strict=False):
        monkeypatch.setenv(name, value)
    assert _asked() == (3, 8, 1, 2)


def test_a_process_of_a_job_has_to_call_init_first(monkeypatch):
    monkeypatch.setenv("MS_ROLE", "MS_WORKER")
    for asked in (communication.get_rank, communication.get_group_size, communication.get_local_rank):
        with pytest.raises(RuntimeError, match="init"):
            asked()


def test_groups_want_init_all_the_same():
    with pytest.raises(ValueError, match="no group"):
        communication.get_rank("others")
    with pytest.raises(RuntimeError, match="init"):
        communication.create_group("two", [0, 1])
