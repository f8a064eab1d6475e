"""muster status beside a PyTorch job, its warning of a stuck rank, and the flight recorder's files."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from peers import PROGRAM, ROOT, SECONDS_MAX, environment, free_port, needs

pytestmark = needs("TORCH")

SCRIPT = Path(__file__).parent / "torch_backend/watched.py"


class Job:
    """Rank 0 waits in its third call until go_on()."""

    def __init__(self, folder: Path) -> None:
        self._file, port = folder / "go on", str(free_port())
        self.master, self.traces = f"127.0.0.1:{port}", folder / "traces"
        self.traces.mkdir()
        variables = {
            "PYTHONPATH": str(ROOT / "build/python"),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "WORLD_SIZE": "2",
            "MUSTER_STUCK_LIMIT": "1.5",
            "TORCH_FR_DUMP_TEMP_FILE": f"{self.traces}/trace_",
        }
        self.ranks = [
            subprocess.Popen(
                [os.environ["MUSTER_PEER_TORCH"], str(SCRIPT), str(self._file)],
                env=environment(**variables, RANK=str(rank)),
                stdout=subprocess.PIPE,
                stderr=(folder / f"stderr {rank}").open("w"),
                text=True,
            )
            for rank in range(2)
        ]
        self._folder = folder

    def stderr(self, rank: int) -> str:
        return (self._folder / f"stderr {rank}").read_text()

    def status(self, *flags: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [PROGRAM, "status", "--master", self.master, *flags],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def waiting(self) -> dict:
        """What each rank says, by rank, once rank 0 waits in its third call for longer than a second."""
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            done = self.status("--json")
            if done.returncode == 0:
                [job] = json.loads(done.stdout)["jobs"]
                said = {rank["rank"]: rank["said"] for rank in job["ranks"]}
                groups = (said.get(0) or {}).get("groups", [])
                if len(said) == 2 and groups and groups[0].get("number") == 3 and groups[0]["for_s"] > 1:
                    return said
        raise AssertionError(done.stdout + done.stderr)

    def go_on(self) -> list[str]:
        self._file.touch()
        return [rank.communicate(timeout=SECONDS_MAX)[0] for rank in self.ranks]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    started = Job(tmp_path_factory.mktemp("torch-watching"))
    yield started
    for rank in started.ranks:
        rank.kill()
        rank.wait()


@pytest.mark.xdist_group("torch_watching")
class TestAJobWithARankThatDoesNotCome:
    def test_status_says_who_waits_for_whom(self, job):
        said = job.waiting()
        [of_first], [of_second] = said[0]["groups"], said[1]["groups"]
        assert (of_first["call"], of_first["number"], of_first["waits_for"]) == ("all_reduce", 3, [1])
        assert (of_second["finished"], "call" in of_second) == (2, False)
        lines = job.status().stdout.splitlines()
        assert f"PyTorch job at {job.master}: 2 of 2 ranks" in lines[0]
        assert "in all_reduce 3 for" in lines[2]
        assert lines[2].endswith("rank 1")
        assert "in no call, 2 finished" in lines[3]

    def test_torchfrtrace_reads_the_dumps_and_names_the_missing_rank(self, job):
        job.waiting()
        done = job.status("--dump")
        assert done.stdout.count("wrote") == 2, done.stdout + done.stderr
        trace = subprocess.run(
            [
                os.environ["MUSTER_PEER_TORCH"],
                *("-m", "torch.distributed.flight_recorder.fr_trace"),
                *("--prefix", "trace_", str(job.traces)),
            ],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        text = trace.stdout + trace.stderr
        assert trace.returncode == 0, text
        assert "missing ranks: {1}" in text, text
        assert "muster:all_reduce" in text

    def test_the_waiting_rank_warns_and_says_when_it_goes_on(self, job):
        deadline = time.monotonic() + SECONDS_MAX
        while "waits for" not in job.stderr(0) and time.monotonic() < deadline:
            job.waiting()
        assert "rank 0 is in all_reduce 3" in job.stderr(0)
        assert "waits for rank 1" in job.stderr(0)
        assert job.go_on() == ["sum 14.0\n", "sum 14.0\n"]
        assert "go on, after" in job.stderr(0)
        assert "waits for" not in job.stderr(1)
