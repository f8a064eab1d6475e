"""tools/check_words.py finds the words that the glossary forbids, and this tree has none of them."""

import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_words  # noqa: E402

GLOSSARY = """
| term | meaning | instead of |
| --- | --- | --- |
| peer | The other side. | |
| unauthenticated peer | It has proved nothing yet. | `guest`, `shared room` |
| stale incarnation | A newer process has its seat. | `twin` |
| watchdog | It ends everything. | `twin` |
| activity | What a process does. | `Doing` |
| rendezvous | Where hosts meet. | `meeting` in muster/launch |
"""


def tree(root: Path, files: dict[str, str]) -> list[str]:
    """The problems of a tree made of `files` and the glossary above."""
    for name, text in {check_words.GLOSSARY: GLOSSARY, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return check_words.problems(root)


def test_this_tree_uses_the_words_of_its_glossary():
    begin = time.process_time()
    assert check_words.problems(ROOT) == []
    assert time.process_time() - begin < 4  # two are promised, and the tree grows


def test_a_forbidden_word_is_named_with_its_line_and_the_word_to_use(tmp_path):
    [problem] = tree(tmp_path, {"muster/net/a.cpp": "int a;\n// Who is a guest.\n"})
    assert problem == f"muster/net/a.cpp:2: 'guest': say 'unauthenticated peer' ({check_words.GLOSSARY})"


def test_a_word_that_two_terms_replace_names_both(tmp_path):
    [problem] = tree(tmp_path, {"docs/a.md": "its twin\n"})
    assert "'stale incarnation'" in problem and "'watchdog'" in problem


@pytest.mark.parametrize(
    "text",
    ["guests_", "is_guest", "GuestRoom", "last_guest_id", "Guests", "MaxGuests", "shared_room", "SharedRoom"],
)
def test_a_word_is_found_as_a_part_of_a_name(tmp_path, text):
    assert len(tree(tmp_path, {"muster/a.h": f"{text}\n"})) == 1


@pytest.mark.parametrize("opening", ["What a job knows.", "Private to net: who has come."])
def test_a_header_that_does_not_open_with_a_noun_is_named(tmp_path, opening):
    [problem] = tree(tmp_path, {"muster/net/a.h": f"// {opening}\n#pragma once\n"})
    assert problem.startswith("muster/net/a.h:1: ") and "noun" in problem


def test_a_header_that_opens_with_a_noun_is_right(tmp_path):
    assert (
        tree(tmp_path, {"muster/net/a.h": "// Traits check: whether processes are alike.\n#pragma once\n"})
        == []
    )


def test_words_on_two_lines_are_found(tmp_path):
    [problem] = tree(tmp_path, {"docs/a.md": "in the shared\nroom\n"})
    assert problem.startswith("docs/a.md:1: ")


@pytest.mark.parametrize(
    "text", ["guesting", "unguest", "between", "the room is shared", "twinkle", "MEETING"]
)
def test_a_word_that_only_contains_one_is_let_be(tmp_path, text):
    assert tree(tmp_path, {"muster/launch/a.h": f"{text}\n"}) == []


def test_a_name_with_a_capital_is_found_only_as_a_whole_name(tmp_path):
    assert tree(tmp_path, {"a.py": "# doing this\nNowDoingIt = 1\n"}) == []
    [problem] = tree(tmp_path, {"a.py": "now = Doing()\n"})
    assert problem.startswith("a.py:1: 'Doing'")


def test_a_word_that_is_forbidden_in_one_folder_may_be_used_elsewhere(tmp_path):
    files = {"muster/launch/a.h": "// a meeting\n", "muster/graph/a.h": "// dtypes meeting\n"}
    [problem] = tree(tmp_path, files)
    assert problem.startswith("muster/launch/a.h:1: ")


def test_the_glossary_and_the_diary_may_name_forbidden_words(tmp_path):
    assert tree(tmp_path, {"docs/dev/progress.md": "the guests\n"}) == []
