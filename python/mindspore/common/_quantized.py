"""Whole numbers of few bits, loaded with their first use: an enumeration takes as long as many modules."""

import enum


class QuantDtype(enum.Enum):
    """Whole numbers of few bits: names only, nothing computes in them."""

    INT1, INT2, INT3, INT4, INT5, INT6, INT7, INT8 = range(8)
    INT9, INT10, INT11, INT12, INT13, INT14, INT15, INT16 = range(8, 16)
    UINT1, UINT2, UINT3, UINT4, UINT5, UINT6, UINT7, UINT8 = range(100, 108)
    UINT9, UINT10, UINT11, UINT12, UINT13, UINT14, UINT15, UINT16 = range(108, 116)
