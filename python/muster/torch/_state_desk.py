"""Where `muster status` asks a rank what it is at: a local socket with a name that says whose it is.

The name is abstract, so that nothing is left behind: `muster-torch/PROCESS/RANK`
(muster/launch/torch_ranks.cpp finds it). Asked "show", "dump" or "stacks" it answers one JSON object, and
the connection closes. This user and root are answered.
"""

import json
import os
import socket
import struct

from muster._core import _take_stacks
from muster.torch._flight_recorder import dump

_ANSWER_SECONDS = 0.2  # an answer fits into the socket, and who does not read it waits alone


class StateDesk:
    def __init__(self, world_rank: int) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        try:
            self._listener.bind(f"\0muster-torch/{os.getpid()}/{world_rank}")
            self._listener.listen(16)
        except OSError:  # a system that allows none: muster status does not show this rank
            self._listener.close()

    @property
    def descriptor(self) -> int | None:
        number = self._listener.fileno()
        return number if number >= 0 else None

    def answer(self, states: list) -> None:
        try:
            asking, _ = self._listener.accept()
        except OSError:
            return
        with asking:
            credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            user = struct.unpack("3i", credentials)[1]
            if user not in (0, os.geteuid()):
                return
            asking.settimeout(_ANSWER_SECONDS)
            try:
                question = asking.recv(64).strip()
                asking.sendall(json.dumps(_answer(question, states)).encode())
            except OSError:
                pass  # it has gone away


def _answer(question: bytes, states: list) -> dict:
    groups = [shown for shown in (state.shown() for state in states) if shown is not None]
    first = states[0] if states else None
    made = {
        "master": first.master if first else "",
        "rank": first.world_rank if first else 0,
        "size": max((len(state.ranks) for state in states), default=0),
        "process": os.getpid(),
        "groups": groups,
    }
    if question == b"dump":
        made["dumped"] = dump(made["rank"])
    if question == b"stacks":
        made["stacks"] = _take_stacks()
    return made
