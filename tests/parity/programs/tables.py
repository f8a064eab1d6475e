"""What the families of programs are made of: rows of tables/, and choices that are the same each time."""

import random
from pathlib import Path

TABLES = Path(__file__).parent / "tables"


def table(name):
    """The lines of a file in tables/; a program of several lines is written with \\n between them."""
    return [line.replace("\\n", "\n") for line in (TABLES / f"{name}.txt").read_text().splitlines()]


def some(seed, values, count):
    values = list(values)
    return random.Random(seed).sample(values, min(count, len(values)))
