"""mindspore.recompute: what is said of it."""

from mindspore import _device


def note() -> None:
    """One line: what the forward pass computes is kept."""
    _device.note_once("note: recompute has no effect yet: values are kept, which needs more memory")


def recompute(block, *args, **kwargs):
    """block(*args, **kwargs); its values are kept, which is said once."""
    note()
    return block(*args, **kwargs)
