"""THIRD_PARTY_NOTICES.md names what Muster is built from, no more and no less."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTS = [
    path.name
    for path in sorted((ROOT / "tools").glob("*.txt"))
    if re.match(r"debian-|requirements", path.name)
]


def names_in(path: Path) -> set[str]:
    """The packages of a list, without versions and conditions."""
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return {re.split(r"[=;<> ]", line)[0] for line in lines if line}


def noticed() -> set[str]:
    """The second column of the tables."""
    rows = [
        line.split("|")[2]
        for line in (ROOT / "THIRD_PARTY_NOTICES.md").read_text().splitlines()
        if line[:1] == "|"
    ]
    return {name.strip() for row in rows for name in row.split(",")} - {"package", "---"}


@pytest.mark.parametrize("name", LISTS)
def test_every_package_of_a_list_has_its_licence_named(name):
    assert names_in(ROOT / "tools" / name) - noticed() == set()


def test_what_the_package_needs_has_its_licence_named():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*pyproject["build-system"]["requires"], *pyproject["project"]["dependencies"]]
    assert {re.split(r"[=;<> ]", line)[0] for line in wanted} - noticed() == set()


def test_nothing_is_named_that_no_list_has():
    assert noticed() - set().union(*(names_in(ROOT / "tools" / name) for name in LISTS)) == set()


def test_the_licence_is_the_official_text():
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert text.count("\n") > 200 and "END OF TERMS AND CONDITIONS" in text
