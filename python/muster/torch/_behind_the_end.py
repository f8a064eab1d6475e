"""A process that died behind the end of its training, and is started again, when the others may have left."""

import os
import sys

import torch.distributed as dist

from muster.torch._points import Points
from muster.torch._recovering_backend import CAME_BACK, recovers

RUN = "MUSTER_RUN_ID"  # of the launcher: the same for a process that it starts again


def end_of_this_run(points: Points) -> dict | None:
    """The point that holds how the training of this start of the launcher has ended, or None."""
    run, found = os.environ.get(RUN), points.find()
    return found if run and found is not None and found["is_over"] and found["run"] == run else None


def meet_nobody_behind_the_end() -> None:
    """init_process_group() of such a process waits for nobody: rank 0, whose store it would ask, has left."""
    folder = os.environ.get("MS_RECOVERY_PATH")
    if not (recovers() and folder and int(os.environ.get(CAME_BACK) or 0) > 0):
        return
    if end_of_this_run(Points(folder, 0)) is None:
        return

    def alone(url, timeout=None, **_):
        yield dist.HashStore(), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

    # register_rendezvous_handler() takes new schemes only.
    sys.modules["torch.distributed.rendezvous"]._rendezvous_handlers["env"] = alone
