"""Starts the processes of a small job on this host, each running the same script."""

import os
import socket
import subprocess
import sys

from places import COMPAT_PACKAGES, PACKAGES


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clean_environment():
    """This process's variables without those that would tell Muster or OpenMP something."""
    chosen = {
        name: value for name, value in os.environ.items() if not name.startswith(("MS_", "OMP_", "MUSTER_"))
    }
    return {**chosen, "PYTHONPATH": os.pathsep.join([str(COMPAT_PACKAGES), str(PACKAGES)])}


class Job:
    """One scheduler and some workers. Use it with `with`: what still runs at the end is killed."""

    def __init__(self, folder, script, workers, options=()):
        self._script = folder / "script.py"
        self._script.write_text(script)
        self._options = options
        self._variables = {
            "MS_WORKER_NUM": str(workers),
            "MS_SCHED_HOST": "127.0.0.1",
            "MS_SCHED_PORT": str(free_port()),
        }
        self.processes = {}

    def start(self, name, **variables):
        environment = {**clean_environment(), **self._variables, **variables}
        self.processes[name] = subprocess.Popen(
            [sys.executable, *self._options, str(self._script)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self.processes[name]

    def start_all(self):
        for rank in range(int(self._variables["MS_WORKER_NUM"])):
            self.start(f"worker {rank}", MS_ROLE="MS_WORKER", MS_NODE_ID=str(rank))
        self.start("scheduler", MS_ROLE="MS_SCHED")

    def finish(self, timeout=30):
        """(status, stdout, stderr) of each process by its name."""
        results = {}
        for name, process in self.processes.items():
            out, err = process.communicate(timeout=timeout)
            results[name] = (process.returncode, out, err)
        print(results)  # shown when the test fails
        return results

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
