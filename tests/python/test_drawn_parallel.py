"""Drawn combinations of mesh, layouts, Zero, optimizers and networks have the numbers of one process."""

import drawn_parallel
import pytest


@pytest.mark.parametrize("seed", [*range(8), 10, 49])  # 1, 10 and 49 have stages
def test_a_drawn_training_has_the_numbers_of_one_process(seed):
    choice = drawn_parallel.drawn(seed)
    print(f"./dev parallel --first {seed} --seeds 1: {choice}")
    assert drawn_parallel.difference(choice) is None
