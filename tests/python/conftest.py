"""`import muster` in the tests is the package of the build tree, and Ctrl-C reaches what the tests start."""

import signal
import sys

import places

sys.path.insert(0, str(places.PACKAGES))

# A shell starts background commands with SIGINT ignored, and so would every process be that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
