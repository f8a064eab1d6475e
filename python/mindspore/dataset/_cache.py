"""Caches of rows."""

from mindspore import _device
from mindspore.dataset import _checks


class DatasetCache:
    """Accepted as `cache=` of sources and of map(): rows are not kept, each pass makes them again.

    Args:
        session_id: A whole number from 1.
        size: MiB of memory; 0: any.
        spilling: Whether rows go to disk where memory is short.
        hostname, port, num_connections, prefetch_size: Of the server, which is not needed.
    """

    def __init__(
        self,
        session_id,
        size=0,
        spilling=False,
        hostname=None,
        port=None,
        num_connections=None,
        prefetch_size=None,
    ):
        _checks.whole("session_id", session_id, 1, 2**32 - 1)
        _checks.whole("size", size, 0, 2**63 - 1)
        _checks.of_type("spilling", spilling, bool)
        self.session_id, self.size, self.spilling = session_id, size, spilling
        self.hostname, self.port = hostname, port
        self.num_connections, self.prefetch_size = num_connections, prefetch_size
        _device.note_once("note: DatasetCache keeps nothing: each pass reads and maps its rows again")


def refused(cache) -> dict:
    """What _names.refuse() refuses of an argument `cache`."""
    return {} if isinstance(cache, DatasetCache) else {"cache": (cache, None)}
