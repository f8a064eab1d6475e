"""For all Python tests: Ctrl-C reaches the processes that they start.

A shell that runs something in the background has it ignore SIGINT, and children inherit that.
"""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
