"""Names of choices, as MindSpore numbers them, of tokenizers that are other packages'."""

import enum


class JiebaMode(enum.IntEnum):
    """How JiebaTokenizer cuts."""

    MIX = 0
    MP = 1
    HMM = 2


class SentencePieceModel(enum.IntEnum):
    """Kinds of SentencePiece's models."""

    UNIGRAM = 0
    BPE = 1
    CHAR = 2
    WORD = 3


class SPieceTokenizerOutType(enum.IntEnum):
    """What SentencePieceTokenizer gives."""

    STRING = 0
    INT = 1


class SPieceTokenizerLoadType(enum.IntEnum):
    """Where SentencePieceTokenizer's model comes from."""

    FILE = 0
    MODEL = 1
