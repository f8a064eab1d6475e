"""Time lines of single steps: what workers keep of them, and what the page is told."""

import itertools
import json
import subprocess

import pytest
from job import PATIENCE, clean_environment
from pages import MUSTER, ask, keep_run, kept_page, line_of_rank
from places import SEARCH_PATH

# Rank 1 reads its data slowly: rank 0 waits for it in the reduction of each step.
TRAINS = """
import time
import numpy
import muster
from muster import nn, train, dataset as ds

muster.init()
muster.set_seed(1)
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)

def read(x):
    time.sleep(0.06 if muster.get_rank() == 1 else 0)
    return x

rows = numpy.random.default_rng(1).normal(size=(24, 8)).astype(numpy.float32)
labels = numpy.zeros(24, numpy.int32)
data = ds.NumpySlicesDataset((rows, labels), ["x", "y"], shuffle=False)
data = data.map(read, "x", num_parallel_workers=1).batch(2)
net = nn.SequentialCell(nn.Dense(8, 64), nn.ReLU(), nn.Dense(64, 3))
model = train.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01))
model.train(1, data)
"""


def logs_of(place, script, workers=2):
    (place / "train.py").write_text(script)
    command = ["env", "-C", str(place), MUSTER, "run", "-n", str(workers), "--log-dir", "logs", "train.py"]
    environment = {**clean_environment(), "PATH": SEARCH_PATH}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "logs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return logs_of(tmp_path_factory.mktemp("run"), TRAINS)


def timeline(folder):
    with kept_page(folder) as port:
        status, headers, body = ask(port, "/timeline")
        assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8")
        return json.loads(body)


def test_each_rank_keeps_the_same_steps(folder):
    for rank in [0, 1]:
        kept = json.loads((folder / f"timeline/worker_{rank}.json").read_text())
        assert kept["rank"] == rank and [line["step"] for line in kept["lines"]] == [2, 5, 10]
        for line in kept["lines"]:
            length = line["end_ns"] - line["begin_ns"]
            phases = line["phases"]
            assert phases[0][1] == 0 and phases[-1][2] == length
            assert all(a[2] == b[1] for a, b in itertools.pairwise(phases))  # without a gap
            assert {"reading_data", "computing"} <= {name for name, _, _ in phases}
            parts = {name: (begin, end) for name, begin, end in line["parts"]}
            assert 0 <= parts["forward"][0] <= parts["forward"][1] <= parts["backward"][0]
            assert parts["backward"][1] <= parts["update"][0] <= parts["update"][1] <= length
            assert [call[0] for call in line["calls"]].count("all_reduce") >= 1


DIVIDES = """
import numpy
import muster
from muster import nn, parallel, train, dataset as ds

muster.init()
muster.set_seed(1)
MESH
rows = numpy.random.default_rng(1).normal(size=(24, 8)).astype(numpy.float32)
data = ds.NumpySlicesDataset((rows, numpy.zeros(24, numpy.int32)), ["x", "y"], shuffle=False).batch(4)
net = nn.SequentialCell(nn.Dense(8, 64), nn.ReLU(), nn.Dense(64, 4))
PLACES
model = train.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01))
model.train(1, data, micro_batches=PARTS)
"""
STAGES = 'net[0].place("MS_WORKER", 0)\nnet[2].place("MS_WORKER", 1)'


@pytest.mark.parametrize(
    ("mesh", "places", "parts", "workers"),
    [
        ("", STAGES, 1, 2),
        ("", STAGES, 2, 2),
        ("parallel.mesh(model=2)", 'parallel.shard(net[0].weight, ("model", None))', 1, 2),
        (
            "parallel.mesh(model=2, stages=2)",
            STAGES + '\nparallel.shard(net[0].weight, ("model", None))',
            2,
            4,
        ),
    ],
    ids=["stages", "parts of a batch", "a mesh", "both"],
)
def test_workers_of_a_divided_network_go_forward_and_backward(tmp_path, mesh, places, parts, workers):
    script = DIVIDES.replace("MESH", mesh).replace("PLACES", places).replace("PARTS", str(parts))
    logs = logs_of(tmp_path, script, workers)
    for rank in range(workers):
        kept = json.loads((logs / f"timeline/worker_{rank}.json").read_text())
        for line in kept["lines"]:
            names = [name for name, _, _ in line["parts"] if name != "call"]
            assert set(names) == {"forward", "backward", "update"}
            assert names[0] == "forward" and names[-1] == "update"
            # Without parts of a batch there is one way, and then the other.
            assert parts > 1 or names == sorted(names, key=["forward", "backward", "update"].index)
            spans = sorted((begin, end) for _, begin, end in line["parts"])
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


def test_the_page_is_told_who_waited_for_whom(folder):
    step = timeline(folder)
    assert step["step"] == 10 and len(step["hosts"]) == 1
    fast, slow = step["ranks"]
    assert (fast["rank"], slow["rank"]) == (0, 1)
    first = {tuple(call[:3]): call[3] for call in fast["calls"] if call[0] == "all_reduce"}
    later = [call[3] - first[tuple(call[:3])] for call in slow["calls"] if tuple(call[:3]) in first]
    assert max(later) > 30e6, "rank 1 came to the reduction later, as it read for 60 ms or more"
    read = sum(end - begin for name, begin, end in slow["phases"] if name == "reading_data")
    assert 50e6 < read < step["length_ns"]


def test_the_newest_step_that_all_ranks_have_is_shown(tmp_path):
    keep_run(tmp_path / "run", [1.0], ranks=3)
    line_of_rank(tmp_path / "run", 0, {50: 1000, 100: 2000})
    line_of_rank(tmp_path / "run", 1, {50: 1100, 100: 2300})
    line_of_rank(tmp_path / "run", 2, {50: 1200, 150: 3000})
    step = timeline(tmp_path / "run")
    assert step["step"] == 50 and [rank["rank"] for rank in step["ranks"]] == [0, 1, 2]
    # On one clock: what a rank did later is further to the right.
    assert [rank["begin"] for rank in step["ranks"]] == [0, 100, 200]
    assert step["ranks"][2]["parts"][0] == ["forward", 300, 400]
    assert step["length_ns"] == 200 + 1000


def test_a_step_that_was_made_again_is_that_of_one_time(tmp_path):
    keep_run(tmp_path / "run", [1.0])
    line_of_rank(tmp_path / "run", 0, {50: 1000})  # died, and has not made it again
    line_of_rank(tmp_path / "run", 1, {50: 900_000})
    assert [rank["rank"] for rank in timeline(tmp_path / "run")["ranks"]] == [1]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"rank": 0, "host": 1, "lines": []}', '{"rank": 0, "host": "a", "lines": [[], {}]}'],
)
def test_a_file_that_is_none_is_left_out(tmp_path, text):
    keep_run(tmp_path / "run", [1.0])
    (tmp_path / "run/timeline").mkdir()
    (tmp_path / "run/timeline/worker_0.json").write_text(text)
    (tmp_path / "run/timeline/worker_1.json").symlink_to("/dev/zero")
    assert timeline(tmp_path / "run") is None
    line_of_rank(tmp_path / "run", 2, {50: 1000}, parts=[["forward", 0, 2**63 - 1], ["a"], 3, ["b", "c", 1]])
    assert timeline(tmp_path / "run")["ranks"][0]["parts"] == []


def test_a_later_run_in_the_folder_does_not_show_an_earlier_step(tmp_path):
    line_of_rank(tmp_path / "logs", 0, {50: 1000})
    (tmp_path / "script.py").write_text("pass\n")
    command = ["env", "-C", str(tmp_path), MUSTER, "run", "-n", "1", "--log-dir", "logs", "script.py"]
    environment = {**clean_environment(), "PATH": SEARCH_PATH}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=PATIENCE)
    assert timeline(tmp_path / "logs") is None
