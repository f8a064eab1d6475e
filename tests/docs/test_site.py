"""The site that `./dev docs` makes: its C++ pages, and the whole where its generator is installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from snippets import ROOT

sys.path.insert(0, str(ROOT / "tools/site"))

import cpp_pages
import make_site

GENERATOR = ROOT / ".venv-docs/bin/python"
HEADER = """// Public header of `garden`: plants.
//
//   Plant plant(3);
#pragma once

#include <string>

#define MUSTER_GARDEN 1

namespace muster::garden {

class Gardener;  // elsewhere

// Grows *slowly*,
// over years.
class Plant {
 public:
  explicit Plant(int age);  // in years {

 private:
  int age_;
};

using Plants = std::vector<Plant>;

// Waters them. Threads: any.
template <class Plants, class T = std::vector<int>>
void water(const Plants& plants, int liters = 1);
inline void water() {
  work();
}

struct Options {
  std::string name = {};  // "}"
  int count = 0;
};

// The most that fit.
inline constexpr int plants_max = 5;

bool operator==(const Plant& left, const Plant& right);

}  // namespace muster::garden
"""


def test_a_page_of_the_site_has_every_section_of_its_source():
    files = make_site.page_files()
    for file in files:
        headings = [line for line in file.read_text().splitlines() if line.startswith("## ")]
        staged = make_site.stage_page(file, set(files)).splitlines()
        assert [line for line in headings if line not in staged] == [], file


def test_each_declaration_of_a_header_is_found_with_its_words():
    found = list(cpp_pages.declarations(HEADER))
    names = ["Plant", "Plants", "water", "water", "Options", "plants_max", "operator=="]
    assert [each.name for each in found] == names
    words = {each.name: each.words for each in reversed(found)}
    assert words["Plant"] == "Grows *slowly*,\nover years."
    assert words["water"] == "Waters them. Threads: any."
    assert words["plants_max"] == "The most that fit."
    assert words["Plants"] == words["Options"] == words["operator=="] == ""


def test_what_is_private_is_not_shown_and_neither_are_bodies():
    page = cpp_pages.page("garden", [("muster/garden/garden.h", HEADER)])
    assert "explicit Plant(int age);" in page
    assert "age_" not in page
    assert "inline void water();" in page and "work" not in page


def test_a_page_begins_with_the_contract_and_takes_words_as_they_are():
    page = cpp_pages.page("garden", [("muster/garden/garden.h", HEADER)])
    begin = "# muster/garden\n\nPublic header of `garden`: plants.\n\n```cpp\nPlant plant(3);\n```\n"
    assert page.startswith(begin)
    assert r"Grows \*slowly\*" in page


def test_the_pages_have_what_a_first_program_uses():
    pages = cpp_pages.pages([ROOT, ROOT / "build/generated"])
    for module, name in (("train", "TrainStep"), ("nn", "Module"), ("data", "mnist"), ("tensor", "Tensor")):
        assert f"\n### {name}\n" in pages[module]


def test_what_a_page_loads_from_elsewhere_is_found_and_a_link_to_read_is_not():
    for tag in (
        '<script async src="https://x/a.js">',
        '<link href="//x/a.css" rel="stylesheet">',
        "<img src='http://x'>",
    ):
        assert make_site.LOADED.search(tag)
    for tag in (
        '<a href="https://x">',
        '<script src="_static/a.js">',
        '<link rel="index" href="genindex.html">',
    ):
        assert not make_site.LOADED.search(tag)


@pytest.mark.skipif(not GENERATOR.exists(), reason="no `./dev docs` has installed the generator")
def test_the_site_is_made_without_a_warning_and_loads_nothing_from_elsewhere():
    done = subprocess.run(
        [GENERATOR, ROOT / "tools/site/make_site.py"],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    site = ROOT / "build/site"
    assert "all_reduc" in (site / "searchindex.js").read_text()
    for page in ("index", "docs/guide/python", "docs/reference/muster.nn", "cpp/train", "docs/formats/frame"):
        assert (site / f"{page}.html").is_file()
