"""Compiles the backend's part in C++ now, and says where it is (_compiled.py).

`python -m muster.torch trace RUN_FOLDER FOLDER` writes a run's flight recorders in PyTorch's format instead
(_flight_files.py).
"""

import sys

if sys.argv[1:2] == ["trace"]:
    from muster.torch._flight_files import main
else:
    from muster.torch._compiled import main

main()
