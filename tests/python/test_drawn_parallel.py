"""Drawn combinations of mesh, layouts, Zero, optimizers and networks have the numbers of one process."""

import drawn_parallel
import pytest

# 1, 10 and 50 have stages, 5, 23 and 54 a plan with Zero 3, 29 one with Zero 1.
SEEDS = [*range(8), 10, 23, 29, 50, 54]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_training_has_the_numbers_of_one_process(seed):
    choice = drawn_parallel.drawn(seed)
    print(f"./dev parallel --first {seed} --seeds 1: {choice}")
    assert drawn_parallel.difference(choice) is None
