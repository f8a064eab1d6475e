"""The frameworks that scripts were written for: where they are, and `muster run` with them.

`./dev test --peers` makes an environment for each below .peers/ and names its Python in a variable. Without
the variable the tests are skipped: the packages are gigabytes.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
from job import Process, free_port  # noqa: E402, F401  (for the tests here, too)

PROGRAM = ROOT / "build/apps/muster/muster"
SCRIPTS = Path(__file__).resolve().parent / "scripts"
SECONDS_MAX = 300  # they compile, and import for a long time on a busy machine
NAMES = {"TORCH": "PyTorch", "TENSORFLOW": "TensorFlow", "MINDSPORE": "MindSpore", "LIGHTNING": "Lightning"}
FAMILIES = ("MS_", "MA_", "VC_", "VK_", "TF_", "MASTER_", "MUSTER_TLS", "MUSTER_TOKEN", "RANK", "WORLD_SIZE")


def needs(peer: str):
    return pytest.mark.skipif(
        f"MUSTER_PEER_{peer}" not in os.environ,
        reason=f"needs {NAMES[peer]}: ./dev test --peers, or MUSTER_PEER_{peer}=<a Python that has it>",
    )


def environment(**variables: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(FAMILIES)}
    # Nothing is compiled behind the back of a test, or left in the caches of who runs it.
    return plain | {"PYTHONPATH": "", "MUSTER_TORCH_COMPILED": "0"} | variables


def command(peer: str, script: str, *flags: str, arguments: tuple[str, ...] = ()) -> list[str]:
    python = os.environ[f"MUSTER_PEER_{peer}"]
    return [str(PROGRAM), "run", *flags, python, str(SCRIPTS / script), *arguments]


def run(peer: str, script: str, *flags: str, arguments: tuple[str, ...] = (), **variables: str):
    return subprocess.run(
        command(peer, script, *flags, arguments=arguments),
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def lines_of(python: str, script: str, *arguments: str, **variables: str) -> list[str]:
    """What a script prints that runs alone, without `muster run`."""
    done = subprocess.run(
        [python, str(SCRIPTS / script), *arguments],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout.splitlines()


def run_hosts(peer: str, script: str, *flags: str, hosts: int = 2, **variables: str):
    """The same line on each of `hosts` hosts, which are all this one."""
    launchers = [
        subprocess.Popen(
            command(peer, script, *flags, "--nnodes", str(hosts), "--node-rank", str(index)),
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(hosts)
    ]
    try:
        outputs = [launcher.communicate(timeout=SECONDS_MAX) for launcher in launchers]
    finally:
        for launcher in launchers:
            if launcher.poll() is None:
                launcher.terminate()
                launcher.wait()
    return [
        subprocess.CompletedProcess(launcher.args, launcher.returncode, *output)
        for launcher, output in zip(launchers, outputs, strict=True)
    ]
