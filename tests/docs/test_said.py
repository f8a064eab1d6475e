"""Sentences that a newcomer needs, where he looks for them."""

import inspect
import re

from snippets import ROOT

import muster


def test_readme_says_in_its_third_sentence_that_it_is_for_cpus():
    text = (ROOT / "README.md").read_text().removeprefix("# Muster").strip()
    third = re.split(r"(?<=[.:])\s", text.split("\n\n")[0])[2]
    assert "for CPUs" in third


def test_the_help_of_train_and_the_guide_tell_the_same_schedule():
    help_text = " ".join(inspect.getdoc(muster.Model.train).split())
    guide = (ROOT / "docs/guide/placement.md").read_text()
    assert "(1F1B)" in help_text and "1F1B" in guide
    assert "all forward" not in help_text + guide
