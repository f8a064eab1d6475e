"""What importlib.metadata says of mindspore."""

import importlib.metadata
from pathlib import Path

import mindspore


class Distribution(importlib.metadata.Distribution):
    """The names of this package, in the version of MindSpore whose they are."""

    def read_text(self, filename):
        """A file of what pip would have written down; None: there is none."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: mindspore\nVersion: {mindspore.__version__}\n"

    def locate_file(self, path):
        """Where a file of the package stands."""
        return Path(mindspore.__file__).parent.parent / path
