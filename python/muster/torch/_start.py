"""A hint for jobs of many ranks on a host, each of which imports PyTorch for itself."""

import os
import sys
import time
from pathlib import Path

_LONG_S = 5.0
_MANY = 4


def _seconds_since_start() -> float:
    """Of this process, as the kernel has it; of one that was forked, since then."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def hint() -> None:
    """Once a host and job, where `muster run` started it: called before the first group is made."""
    told = os.environ.get
    of_launcher = "GROUP_RANK" in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ
    many = int(told("LOCAL_WORLD_SIZE", "1")) >= _MANY
    first = told("LOCAL_RANK") == "0" and told("MUSTER_RESTART_COUNT", "0") == "0"
    if not (of_launcher and many and first):
        return
    seconds = _seconds_since_start()
    if seconds > _LONG_S:
        print(
            f"muster: {seconds:.0f} s went by before this rank had imported what it needs: "
            "muster run --preload torch,torch._dynamo imports it once for all ranks of a host",
            file=sys.stderr,
            flush=True,
        )
