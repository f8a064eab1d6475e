"""Links between pages lead somewhere: to a file of this tree, and to a heading of that page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from snippets import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from sources import walk

PAGES = [page for page in walk(ROOT, {".md"}) if not page.is_relative_to(ROOT / "tests/seeds")]
LINK = re.compile(r"(?<!\\)\]\((?!https?://|mailto:)([^)#\s]*)(#[^)\s]+)?\)")
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The headings as forges and the site name them."""
    found: set[str] = set()
    without_blocks = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.+)$", without_blocks, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(next(name for name in (slug, *(f"{slug}-{i}" for i in range(1, 999))) if name not in found))
    return found


def dead_links(page: Path, text: str) -> list[str]:
    dead = []
    for path, anchor in LINK.findall(CODE.sub("", text)):
        target = page.parent / path
        if path and not target.is_file():
            dead.append(path)
        elif anchor and anchor[1:] not in anchors(target.read_text() if path else text):
            dead.append(path + anchor)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page):
    assert dead_links(page, page.read_text()) == []


def test_dead_links_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# A `code` and [link](x.md)\n\n## Twice\n\n## Twice\n")
    good = "[a](other.md) [b](other.md#twice-1) [c](other.md#a-code-and-link) [d](#here)\n# Here\n"
    assert dead_links(tmp_path / "page.md", good) == []
    bad = "[a](absent.md) [b](other.md#thrice) [c](#there) [d](.)"
    assert dead_links(tmp_path / "page.md", bad) == ["absent.md", "other.md#thrice", "#there", "."]
