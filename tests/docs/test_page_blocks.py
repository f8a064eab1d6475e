"""Every block of code in README, docs/guide and docs/formats runs, or says why it cannot."""

from __future__ import annotations

from collections import Counter

import pytest
from reader import HAS_HOST, Reader, at_once, commands_of, first_missing
from snippets import ROOT, blocks_in, page_blocks, pages, problems_in

# How many blocks of each page nothing runs. Keep it short: a mark is for what no test machine has.
NOT_RUN = {
    "README.md": 1,
    "docs/guide/cpp.md": 1,
    "docs/guide/dashboard.md": 3,
    "docs/guide/runs.md": 3,
    "docs/guide/hosts.md": 1,
    "docs/guide/install.md": 1,
    "docs/guide/launch-ascend.md": 2,
    "docs/guide/launch-mindspore.md": 1,
    "docs/guide/launch-mpi.md": 1,
    "docs/guide/launch-pytorch.md": 1,
    "docs/guide/launch-slurm.md": 2,
    "docs/guide/launch-tensorflow.md": 1,
    "docs/guide/metrics.md": 6,
    "docs/guide/profiling.md": 1,
    "docs/guide/pytorch.md": 3,
    "docs/guide/rdma.md": 1,
    "docs/guide/watching.md": 1,
}

# Without hosts of their own pages name ports of this one, as the seeds do.
ONE_BY_ONE = () if HAS_HOST else (pytest.mark.xdist_group("ports of the seeds"),)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=ONE_BY_ONE) for page in pages() if page_blocks(page)]
)
def test_the_blocks_of_a_page_run(tmp_path, page):
    Reader(tmp_path / "reader").follow(page_blocks(page))


@pytest.mark.parametrize("page", pages())
def test_all_code_of_a_page_is_in_blocks_of_a_known_language(page):
    assert list(problems_in(page, (ROOT / page).read_text())) == []


def test_only_these_blocks_are_not_run():
    blocks = [block for page in pages() for block in page_blocks(page) if block.marked("not run") is not None]
    assert [block.where for block in blocks if not block.marked("not run")] == [], "say why"
    listed = "".join(f"\n{block.where}: {block.marked('not run')}" for block in blocks)
    assert Counter(block.page for block in blocks) == NOT_RUN, listed


@pytest.mark.parametrize("page", pages())
def test_blocks_that_another_test_runs_are_known_there(page):
    for block in page_blocks(page):
        if test := block.marked("run by"):
            assert page.rpartition("/")[2] in (ROOT / test).read_text(), (
                f"{block.where}: {test} does not name it"
            )


def test_a_mark_that_nothing_reads_is_an_error():
    known = ("not run: ", "run by ", "stand-in ", "needs ", "at once", "ends with ")
    for page in pages():
        for block in page_blocks(page):
            unread = [mark for mark in block.marks if not mark.startswith(known)]
            assert not unread, f"{block.where}: {unread[0]}"


def test_a_block_that_fails_is_named_with_its_line(tmp_path):
    page = "A command:\n\n```sh\nfalse\n```\n"
    with pytest.raises(AssertionError, match=r"page\.md:3"):
        Reader(tmp_path / "reader").follow(blocks_in("page.md", page))


def test_the_python_of_a_page_is_one_script(tmp_path):
    page = "```python\nx = 1\n```\nthen\n```sh\npython train.py\n```\nand\n```python\nassert x == 2\n```\n"
    with pytest.raises(AssertionError, match=r"line 10, in <module>\s+assert x == 2"):
        Reader(tmp_path / "reader").follow(blocks_in("page.md", page))


def test_output_that_a_page_shows_has_to_come(tmp_path):
    page = "```console\n$ echo job 12 of 0123456789abcdef; echo done\njob 7 of fedcba9876543210\ndone\n```\n"
    Reader(tmp_path / "a").follow(blocks_in("page.md", page))
    with pytest.raises(AssertionError, match="no 'dinner'"):
        Reader(tmp_path / "b").follow(blocks_in("page.md", page.replace("done\n```", "dinner\n```")))


def test_a_named_block_is_a_file(tmp_path):
    page = "Write `folder/a.py`:\n\n```python\nprint(5)\n```\n\n```console\n$ python folder/a.py\n5\n```\n"
    Reader(tmp_path / "reader").follow(blocks_in("page.md", page))


@pytest.mark.parametrize("code", ["    indented\n", "```\nno language\n```\n", "1. item\n\n    code\n"])
def test_code_without_a_language_is_found(code):
    assert list(problems_in("page.md", "Words:\n\n" + code))


def test_lines_that_are_typed_at_once_do_not_wait_for_each_other():
    assert at_once("a b    # on one host\nc\n") == "a b &\nc &\n"


def test_commands_and_their_output_are_told_apart():
    assert commands_of("$ a\n1\n...\n$ b\n") == [("a", ["1"]), ("b", [])]
    assert first_missing(["step 3 of ...", "end"], "step 14 of 20\nend of all\n") is None
    assert first_missing(["end", "step 3"], "step 3\nend\n") == "step 3"
