"""Compiles the backend's part in C++ now, and says where it is: see _compiled.py."""

from muster.torch._compiled import main

main()
