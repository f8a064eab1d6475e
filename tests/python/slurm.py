"""A Slurm of two nodes on this machine, in namespaces of its own: nothing of it is seen outside."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PATIENCE_SECONDS = 60

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPort=16817
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
KillWait=2
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
NodeName=node1 NodeHostname={host} NodeAddr=10.79.0.1 Port=17001 CPUs=8
NodeName=node2 NodeHostname={host} NodeAddr=10.79.0.2 Port=17002 CPUs=8
PartitionName=all Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP
"""

# In the namespaces. Slurm looks for addresses other than loopback before it listens, so there is a cable that
# leads nowhere; its nodes are the two addresses of one end.
START = r"""
set -e
cd "$1"
ip link set lo up
ip link add cable type veth peer name other
ip link set cable up
ip addr add 10.79.0.1/24 dev cable
ip addr add 10.79.0.2/24 dev cable
printf '127.0.0.1 localhost %s\n10.79.0.1 node1\n10.79.0.2 node2\n' "$(hostname -s)" >hosts
mount --bind hosts /etc/hosts
mkdir -m 755 munge state spool
dd if=/dev/urandom of=munge/key bs=1024 count=1 status=none
chmod 400 munge/key
chown -R munge:munge munge
setpriv --reuid=munge --regid=munge --init-groups munged --force --key-file="$1/munge/key" \
  --socket="$1/munge/socket" --pid-file="$1/munge/pid" --log-file="$1/munge/log" --seed-file="$1/munge/seed"
slurmctld
slurmd -N node1
slurmd -N node2
until [ "$(sinfo --noheader --states=idle --format=%D 2>>sinfo.log)" = 2 ]; do sleep 0.05; done
echo ready
read -r _
"""


def why_not():
    """What is missing here to run it; nothing: it can be run."""
    missing = [name for name in ("slurmctld", "slurmd", "srun", "munged") if shutil.which(name) is None]
    if missing:
        return f"Slurm is not installed ({missing[0]} is missing): apt-get install slurm-wlm munge"
    if os.geteuid() != 0:
        return "starting a Slurm needs root"
    if not Path("/sys/devices/system/cpu").exists():
        return "slurmd reads the cores from /sys, which is not there: mount -t sysfs sysfs /sys"
    if not os.path.ismount("/sys/fs/cgroup"):
        return "slurmd wants control groups: mount -t cgroup2 none /sys/fs/cgroup"
    made = subprocess.run(
        [
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "sh",
            "-c",
            "ip link add cable type veth peer name other",
        ],
        capture_output=True,
    )
    return "" if made.returncode == 0 else "network namespaces are not allowed here"


class Slurm:
    """Runs commands where Slurm is."""

    def __init__(self, init, configuration):
        # With its root: where the tests run in a chroot, the namespace alone would lead out of it.
        kinds = ("--mount", "--root", "--net", "--pid")
        self._inside = ["nsenter", f"--target={init}", *kinds, "--wd=."]
        self._variables = {"SLURM_CONF": str(configuration)}

    def start(self, command, folder, environment, **options):
        return subprocess.Popen(
            [*self._inside, *map(str, command)],
            cwd=folder,
            env={**environment, **self._variables},
            stdin=subprocess.DEVNULL,
            text=True,
            **options,
        )

    def run(self, command, folder, environment):
        process = self.start(command, folder, environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            output, errors = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        print(output, errors, sep="\n", file=sys.stderr)  # shown when the test fails
        return subprocess.CompletedProcess(command, process.returncode, output, errors)


@contextlib.contextmanager
def slurm_in(folder):
    reason = why_not()
    if reason:
        pytest.skip(reason)
    host = subprocess.run(["hostname", "-s"], capture_output=True, text=True, check=True).stdout.strip()
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder, host=host))
    holder = subprocess.Popen(
        [
            *["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"],
            *["bash", "-c", START, "start", str(folder)],
        ],
        env={**os.environ, "SLURM_CONF": str(configuration)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(folder / "start.log").open("w"),
        text=True,
    )
    try:
        if holder.stdout.readline() != "ready\n":
            logs = sorted(folder.glob("*.log"))
            raise AssertionError("\n".join(f"{log.name}:\n{log.read_text()}" for log in logs))
        with open(f"/proc/{holder.pid}/task/{holder.pid}/children") as children:
            init = children.read().split()[0]
        yield Slurm(init, configuration)
    finally:
        holder.kill()  # and with it the first process of its namespace, and so all others
        holder.wait()
