"""`import muster` in the tests is the package of the build tree."""

import sys

import places

sys.path.insert(0, str(places.PACKAGES))
