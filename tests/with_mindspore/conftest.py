"""Tests that import package `mindspore`, in processes of their own (tests/python/test_with_mindspore.py).

Its import changes what `muster` says of dtypes and tensors, and members of Tensor, for the whole process.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

import places

sys.path.insert(0, str(places.PACKAGES))
