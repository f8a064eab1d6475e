"""mindspore.dataset.text: operations on text."""

from mindspore import _names

_OPERATIONS = (
    "AddToken BasicTokenizer BertTokenizer CaseFold CharNGram FastText FilterWikipediaXML GloVe JiebaMode "
    "JiebaTokenizer Lookup Ngram NormalizeForm NormalizeUTF8 PythonTokenizer RegexReplace RegexTokenizer "
    "SPieceTokenizerLoadType SPieceTokenizerOutType SentencePieceModel SentencePieceTokenizer "
    "SentencePieceVocab "
    "SlidingWindow ToNumber ToVectors Truncate TruncateSequencePair UnicodeCharTokenizer "
    "UnicodeScriptTokenizer Vectors "
    "WhitespaceTokenizer WordpieceTokenizer to_bytes to_str"
)
_LATER = {**dict.fromkeys(_OPERATIONS.split(), "_ops"), "Vocab": "_vocab"}
_LATER.update(
    dict.fromkeys(
        ("AddToken", "Lookup", "Ngram", "SlidingWindow", "ToNumber", "Truncate", "TruncateSequencePair"),
        "_tokens",
    )
)
_LATER.update(dict.fromkeys(("CharNGram", "FastText", "GloVe", "ToVectors", "Vectors"), "_vectors"))
_LATER.update(
    dict.fromkeys(
        ("JiebaMode", "SPieceTokenizerLoadType", "SPieceTokenizerOutType", "SentencePieceModel"), "_enums"
    )
)

__all__ = sorted(_LATER)
__getattr__ = _names.later(__name__, _LATER)
