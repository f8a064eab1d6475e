"""Groups of ranks that another library has counted: what `muster.torch` stands on."""

from muster._core import _compiled_calls as compiled_calls
from muster._core import _connect as connect
from muster._core import _Group as Group
from muster._core import _host_key as host_key
from muster._core import _Listener as Listener
from muster._core import _Work as Work

__all__ = ["Group", "Listener", "Work", "compiled_calls", "connect", "host_key"]
