"""Random numbers of operations in Python: of the seed, the pass, the row and the operation's place."""

import threading

_state = threading.local()
_calls = 0


def begin(*key) -> None:
    """What draws next on this thread depends on `key` alone."""
    _state.key = [part & 0xFFFFFFFFFFFFFFFF for part in key]
    _state.generator = None


def end() -> None:
    """Behind a row: calls outside of datasets draw by their number."""
    _state.key = _state.generator = None


def generator():
    """numpy's Generator for the row at hand; outside of a pass a new one for each call."""
    import numpy

    from mindspore.dataset import config

    key = getattr(_state, "key", None)
    if key is None:
        global _calls
        _calls += 1
        return numpy.random.default_rng([config.get_seed(), _calls])
    if _state.generator is None:
        _state.generator = numpy.random.default_rng(_state.key)
    return _state.generator


def stream(*key):
    """numpy's Generator for what a pass draws: an order of rows."""
    import numpy

    return numpy.random.default_rng([part & 0xFFFFFFFFFFFFFFFF for part in key])
