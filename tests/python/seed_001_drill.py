"""run.sh of tests/seeds/001, a worker and the scheduler killed in the middle of it, and recover.sh.

usage: seed_001_drill.py NODE_ID; run below reap.py, which takes over what shells leave behind.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PATIENCE_SECONDS = 60


def processes(role, node_id=None):
    """Of this job, by what the shell exported to them."""
    for pid in Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read_text().split():
        try:
            told = dict(
                entry.partition("=")[::2] for entry in Path(f"/proc/{pid}/environ").read_text().split("\0")
            )
        except OSError:
            continue
        if told.get("MS_ROLE") == role and node_id in (None, told.get("MS_NODE_ID")):
            yield int(pid)


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what} did not come")
        time.sleep(0.01)


def checkpoints(node_id):
    return {path.name for path in Path("ckpt_of_rank", node_id).glob("*.ckpt")}


def main():
    node_id = sys.argv[1]
    subprocess.run(["bash", "run.sh"], check=True)
    wait_for(lambda: checkpoints(node_id), "a checkpoint")

    [worker] = processes("MS_WORKER", node_id)
    os.kill(worker, signal.SIGKILL)
    seen = checkpoints(node_id)
    # As recover.sh does it for the scheduler.
    subprocess.run(["bash", "recover_worker.sh"], check=True)
    wait_for(lambda: checkpoints(node_id) - seen, "a newer checkpoint")

    [scheduler] = processes("MS_SCHED")
    os.kill(scheduler, signal.SIGKILL)
    subprocess.run(["bash", "recover.sh"], check=True)


main()
