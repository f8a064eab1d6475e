"""MindIR files: networks that MindSpore exported are read, and those of Muster are written for it."""
