"""How a recovering job ends that nobody breaks: what each broken one is compared with."""

import functools

from once import once

OWN_STATES = ("placed", "norm")  # modes in which each worker ends with a state of its own


def unbroken_ends(tmp_path_factory, name, start):
    """A function of a mode, and what else `start(folder, mode, ...)` takes: the last state of each worker."""

    def train(mode, *more):
        with start(tmp_path_factory.mktemp("unbroken"), mode, *more) as job:
            states = job.wait()
        assert None not in states
        assert mode in OWN_STATES or len(set(states)) == 1
        return states

    @functools.cache
    def end(mode, *more):
        return once(tmp_path_factory, "-".join(map(str, (name, mode, *more))), lambda: train(mode, *more))

    return end
