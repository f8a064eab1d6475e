"""`muster run --preset ...`: scripts say what they were given, or use it as their own framework would."""

import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/apps/muster/muster"
FAMILIES = (
    "MS_",
    "MA_",
    "VC_",
    "VK_",
    "TF_",
    "MASTER_",
    "MUSTER_",
    "ASCEND_",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_",
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name in [name for name in os.environ if name.startswith(FAMILIES)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(script: str, *flags: str, arguments: tuple[str, ...] = (), **variables: str):
    Path("script.py").write_text(script)
    return subprocess.run(
        [str(PROGRAM), "run", *flags, "script.py", *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def said(done: subprocess.CompletedProcess) -> list[str]:
    """What the processes said, in an order that does not depend on their speed."""
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


ASCEND = """
import json, os
names = ["ASCEND_DEVICE_ID", "DEVICE_ID", "RANK_ID", "RANK_SIZE"]
table = json.load(open(os.environ["RANK_TABLE_FILE"]))
print(*[f"{name}={os.environ[name]}" for name in names], "servers", table["server_count"])
"""

# What the guide shows for work that is done once on a server.
ONCE = re.search(r"```python\n(.*?)```", (ROOT / "docs/guide/launch-ascend.md").read_text(), re.DOTALL)[1]


def write_table(servers: int = 1, cards: int = 2) -> None:
    made = [
        {
            "server_id": f"s{server}",
            "device": [
                {
                    "device_id": str(card),
                    "device_ip": f"10.0.{server}.{card + 1}",
                    "rank_id": str(server * cards + card),
                }
                for card in range(cards)
            ],
        }
        for server in range(servers)
    ]
    table = {"version": "1.0", "status": "completed", "server_count": str(servers), "server_list": made}
    Path("table.json").write_text(json.dumps(table))


def test_ascend_runs_the_script_once_for_each_card_of_its_server(folder):
    write_table(servers=2)
    flags = ("--preset", "ascend", "--rank-table", "table.json")
    assert said(run(ASCEND, *flags, "--node-rank", "1")) == [
        "[worker 2] ASCEND_DEVICE_ID=0 DEVICE_ID=0 RANK_ID=2 RANK_SIZE=4 servers 2",
        "[worker 3] ASCEND_DEVICE_ID=1 DEVICE_ID=1 RANK_ID=3 RANK_SIZE=4 servers 2",
    ]
    for index in ("0", "1"):
        once = said(run(ONCE, *flags, "--node-rank", index))
        assert len(once) == 1 and once[0].endswith("prepares the data")


def test_ascend_finds_the_table_that_a_platform_names_and_is_guessed_from_it(folder):
    write_table()
    done = run(ASCEND, RANK_TABLE_FILE=str(folder / "table.json"), MA_NUM_GPUS="8", MA_NUM_HOSTS="1")
    assert len(said(done)) == 2
    assert "guessed" in done.stderr and "RANK_TABLE_FILE" in done.stderr


@pytest.mark.parametrize(
    ("flags", "variables", "complaint"),
    [
        (
            ["--rank-table", "absent"],
            {},
            "--rank-table absent: cannot open 'absent': No such file or directory",
        ),
        (
            ["--rank-table", "bad.json"],
            {},
            "bad.json: 'status' is 'initializing', and not 'completed': its writer has not finished it yet",
        ),
        ([], {"RANK_TABLE_FILE": "bad.json"}, "bad.json: 'status' is 'initializing', and not 'completed'"),
        (["--rank-table", "table.json"], {}, "table.json has 2 servers: say which of them this is, from"),
        (
            ["--rank-table", "table.json", "--node-rank", "0", "-n", "8"],
            {},
            "-n 8 on server 's0': table.json has 2 cards there",
        ),
        (["--nnodes", "2", "--node-rank", "0"], {}, "several servers need a rank table: make one on each"),
    ],
)
def test_ascend_says_what_is_wrong_with_a_table(folder, flags, variables, complaint):
    write_table(servers=2)
    (folder / "bad.json").write_text('{"version": "1.0", "status": "initializing"}')
    done = run(ASCEND, "--preset", "ascend", *flags, **variables)
    assert done.returncode == 2
    assert (
        complaint.replace("table.json", str(folder / "table.json")) in done.stderr or complaint in done.stderr
    )
    assert done.stdout == ""


PYTORCH = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--init_method")
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--world_size", type=int, default=1)
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
print(args.init_method, args.rank, args.world_size, args.epochs)
"""

PYTORCH_ENV = """
import os
names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"]
print(*[os.environ[name] for name in names])
"""


def test_pytorch_tells_one_process_where_to_meet(folder):
    (line,) = said(run(PYTORCH, "--preset", "pytorch", arguments=("--epochs", "3")))
    assert re.fullmatch(r"\[worker 0\] tcp://127\.0\.0\.1:\d+ 0 1 3", line)


def test_pytorch_tells_the_hosts_of_a_platform_their_ranks(folder):
    done = run(
        PYTORCH,
        "--preset",
        "pytorch",
        VC_TASK_INDEX="1",
        MA_NUM_HOSTS="2",
        MA_NUM_GPUS="8",
        VC_WORKER_HOSTS="job-worker-0.job,job-worker-1.job",
    )
    assert said(done) == ["[worker 1] tcp://job-worker-0.job:29500 1 2 None"]


def test_pytorch_is_guessed_and_tells_each_slot_by_variables(folder):
    done = run("if 0:\n    import torch\n" + PYTORCH_ENV, "-n", "2", "--port", "23457")
    assert said(done) == [
        "[worker 0] 0 0 2 2 0 127.0.0.1 23457",
        "[worker 1] 1 1 2 2 0 127.0.0.1 23457",
    ]
    assert "guessed" in done.stderr and "script.py" in done.stderr


TENSORFLOW = """
import argparse, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--task_index", type=int)
parser.add_argument("--ps_hosts")
parser.add_argument("--worker_hosts")
parser.add_argument("--job_name")
args = parser.parse_args()
config = json.loads(os.environ.get("TF_CONFIG", "null"))
if args.job_name is not None:
    cluster = {"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")}
    assert config == {"cluster": cluster, "task": {"type": args.job_name, "index": args.task_index}}, config
    ports = [int(address.rpartition(":")[2]) for address in sum(cluster.values(), [])]
    if "CHECKS_PORTS" in os.environ:
        assert len(set(ports)) == len(ports) and all(5000 <= port <= 10000 for port in ports), ports
if "CHECKS_PORTS" in os.environ:
    if args.job_name == "ps":
        import signal
        signal.pause()
    print(args.job_name, args.task_index, len(cluster["worker"]), len(cluster["ps"]))
else:
    print(args.job_name, args.task_index, args.worker_hosts)
"""


def test_tensorflow_starts_one_process_on_one_host_alone(folder):
    assert said(run(TENSORFLOW, "--preset", "tensorflow")) == ["[worker 0] None None None"]


def test_tensorflow_ends_servers_that_serve_for_ever_when_the_workers_are_done(folder):
    flags = ("--preset", "tensorflow", "-n", "2", "--servers", "2")
    assert said(run(TENSORFLOW, *flags, CHECKS_PORTS="1")) == [
        "[worker 0] worker 0 2 2",
        "[worker 1] worker 1 2 2",
    ]


def test_tensorflow_chief_is_the_work_and_all_others_serve(folder):
    serves = """
import json, os, signal
task = json.loads(os.environ["TF_CONFIG"])["task"]
if task["type"] != "chief":
    signal.pause()
print(task, flush=True)
raise SystemExit(7)
"""
    done = run(serves, "--preset", "tensorflow", "--style", "chief")
    assert (done.returncode, done.stdout) == (7, "[chief] {'type': 'chief', 'index': 0}\n")


def test_tensorflow_hosts_that_run_the_same_line_tell_each_other_their_ports(folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        meeting = f"127.0.0.1:{probe.getsockname()[1]}"
    (folder / "script.py").write_text(TENSORFLOW)
    line = [str(PROGRAM), "run", "--preset", "tensorflow", "--nnodes", "2", "--scheduler", meeting]
    hosts = [
        subprocess.Popen(
            [*line, "--node-rank", str(index), "--log-dir", f"logs{index}", "script.py"],
            env={**os.environ, "CHECKS_PORTS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    ends = [host.communicate(timeout=60) for host in hosts]
    assert [host.returncode for host in hosts] == [0, 0], ends
    assert [out for out, _ in ends] == ["[worker 0] worker 0 2 2\n", "[worker 1] worker 1 2 2\n"]


def test_tensorflow_runs_the_task_that_a_platforms_container_is(folder):
    tasks = {"TF_PS_HOSTS": "[a:6000,b:6000]", "TF_WORKER_HOSTS": "[a:7000,b:7000]", "VC_TASK_INDEX": "1"}
    for name in ("ps", "worker"):
        done = run(TENSORFLOW, "--preset", "tensorflow", MA_TASK_NAME=name, **tasks)
        assert said(done) == [f"[{name} 1] {name} 1 a:7000,b:7000"]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (
            ["--preset", "pytorch", "--style", "new"],
            "--style new: the preset pytorch has the styles init_method",
        ),
        (
            ["--preset", "ascend", "--style", "env"],
            "--style env: the preset ascend has no styles: leave it out",
        ),
        (
            ["--preset", "pytorch", "--servers", "1"],
            "--servers 1: the preset pytorch has no parameter servers",
        ),
        (
            ["-n", "1", "--rank-table", "t"],
            "--rank-table t: a rank table is for the preset ascend, and this is",
        ),
        (["--preset", "torch"], "--preset 'torch': there is no such preset"),
    ],
)
def test_flags_that_a_preset_has_no_meaning_for_are_named(folder, flags, complaint):
    done = run("", *flags)
    assert done.returncode == 2
    assert f"muster run: {complaint}" in done.stderr
