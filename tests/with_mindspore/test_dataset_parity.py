"""Datasets answer as MindSpore 2.7.0 does: the programs of tests/parity/datasets.py."""

import json
import math
import sys

import pytest
from places import COMPAT_PACKAGES, ROOT

sys.path[:0] = [str(COMPAT_PACKAGES), str(ROOT / "tests/parity")]
import datasets  # noqa: E402

RECORDED = json.loads(datasets.RECORDED.read_text())


def agree(found, expected, within):
    """Whether both are the same, numbers within `within` of each other."""
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and found.keys() == expected.keys()
            and all(agree(found[key], expected[key], within) for key in expected)
        )
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(map(agree, found, expected, [within] * len(found)))
        )
    if (
        isinstance(expected, float | int)
        and isinstance(found, float | int)
        and (within >= 1 or isinstance(expected, float))
    ):
        return math.isclose(found, expected, rel_tol=1e-5, abs_tol=within) or (
            found != found and expected != expected
        )
    return found == expected


def within(program):
    """How far numbers may be apart."""
    return 1 if any(name in program for name in datasets.NEAR) else 1e-6


def test_every_program_is_recorded():
    assert {group: set(programs) for group, programs in datasets.PROGRAMS.items()} == {
        group: set(programs) for group, programs in RECORDED.items()
    }


@pytest.mark.parametrize("group", datasets.PROGRAMS)
def test_programs_answer_as_in_mindspore(group, tmp_path):
    names = datasets.environment(tmp_path)
    differ = []
    for program, expected in RECORDED[group].items():
        found = datasets.answer(program, names)
        if "raises" in expected:
            same = expected["raises"] in found.get("is", ())
        else:
            same = "gives" in found and agree(found["gives"], expected["gives"], within(program))
        if not same:
            differ.append(f"{program}\n  MindSpore: {str(expected)[:300]}\n  here: {str(found)[:300]}")
    assert not differ, f"{len(differ)} of {len(RECORDED[group])} differ:\n" + "\n".join(differ)
