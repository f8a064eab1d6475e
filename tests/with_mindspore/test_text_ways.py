"""Operations on text: what MindSpore 2.7.0 gives for texts of our own, and what it refuses."""

import sys

import numpy as np
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore
import mindspore.dataset as ds
from mindspore.dataset import text


def _vocab():
    return text.Vocab.from_list(["sea", "sky", "##s", "[UNK]"])


def _offsets(made):
    words, begins, ends = made
    return list(zip(words.tolist(), begins.tolist(), ends.tolist(), strict=True))


def test_a_bert_tokenizer_tells_where_its_pieces_lie():
    tokenizer = text.BertTokenizer(_vocab(), with_offsets=True)
    wanted = [("sky", 0, 3), ("sea", 5, 8), ("##s", 8, 9), ("[UNK]", 9, 10), ("[UNK]", 11, 14)]
    assert _offsets(tokenizer("sky  seas, 海")) == wanted
    assert _offsets(tokenizer("")) == [("", 0, 0)]
    rows = ds.NumpySlicesDataset(["seas"], ["text"]).map(tokenizer, ["text"], ["words", "begins", "ends"])
    (row,) = rows.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert _offsets(row) == [("sea", 0, 3), ("##s", 3, 4)]


def test_the_places_of_pieces_stay_when_the_rest_of_a_word_is_unknown():
    _, begins, ends = text.WordpieceTokenizer(_vocab(), with_offsets=True)("seaside")
    assert begins.tolist() == [0, 3, 0]
    assert ends.tolist() == [3, 4, 7]


@pytest.mark.parametrize(
    ("pattern", "replace", "wanted"),
    [
        ("(o)(n)", "$2$1", "noe two"),
        ("on", r"a\$1\\", "a$1\\e two"),
        ("e", r"\g", "ong two"),
    ],
)
def test_groups_in_a_replacement_are_spelt_as_icu_spells_them(pattern, replace, wanted):
    assert text.RegexReplace(pattern, replace)("one two").item() == wanted


@pytest.mark.parametrize(
    ("make", "kind", "word"),
    [
        (lambda: text.WhitespaceTokenizer(1), TypeError, "input type for with_offsets, should be boolean"),
        (lambda: text.RegexTokenizer(None), ValueError, "delim_pattern is not provided"),
        (lambda: text.RegexTokenizer(1), TypeError, "input type for delim_pattern, should be string"),
        (lambda: text.WordpieceTokenizer(None), ValueError, "not provided"),
        (lambda: text.PythonTokenizer(4), TypeError, "not a callable Python function"),
        (lambda: text.PythonTokenizer(str.split)("a b"), TypeError, "NumPy array"),
        (lambda: text.AddToken(""), RuntimeError, "token is not provided"),
        (lambda: text.Truncate(0), ValueError, r"interval of \[1, 2147483647\]"),
        (lambda: text.TruncateSequencePair(-2), RuntimeError, "greater than or equal to 0: -2"),
        (lambda: text.Ngram([2, 0]), ValueError, "gram_1 must be greater than 0"),
        (lambda: text.ToNumber((0.5, 1.5)), TypeError, "dtype"),
        (lambda: text.Lookup(_vocab(), data_type=(1, 2)), TypeError, "dtype"),
    ],
)
def test_text_operations_refuse_what_mindspore_refuses(make, kind, word):
    with pytest.raises(kind, match=word):
        make()


def test_lookup_names_the_word_that_is_in_no_vocabulary():
    with pytest.raises(RuntimeError, match="moon"):
        text.Lookup(_vocab(), data_type=mindspore.int64)(np.array(["sea", "moon"]))


@pytest.mark.parametrize("control", ["\t", "\r", "\x00", "\x0b", "\x85"])
@pytest.mark.parametrize("lower_case", [True, False])
def test_basic_tokens_are_cut_at_control_characters_as_at_blanks(control, lower_case):
    tokenizer = text.BasicTokenizer(lower_case, keep_whitespace=True)
    assert tokenizer(f"ab{control} c").tolist() == ["ab", "  ", "c"]
    assert text.BasicTokenizer(lower_case)(f"ab{control}c").tolist() == ["ab", "c"]


def test_basic_tokens_keep_what_stands_for_a_character_that_is_none():
    assert text.BasicTokenizer()("a\ufffdb c").tolist() == ["a\ufffdb", "c"]


def test_characters_without_width_are_folded_away_and_cut_words_otherwise():
    assert text.BasicTokenizer(True)("so\u00adft").tolist() == ["soft"]
    assert text.BasicTokenizer(False)("so\u00adft").tolist() == ["so", "ft"]


@pytest.mark.parametrize(
    "given, folded",
    [
        ("\ufb01X", "fix"),
        ("\uff21\u3000b", "a b"),
        ("\u2460", "1"),
        ("A\u200bB", "ab"),
        ("E\u0301", "\u00e9"),
    ],
)
def test_case_is_folded_with_forms_that_stand_for_the_same(given, folded):
    assert str(text.CaseFold()(given)) == folded
