"""The picture of the network in the folder of a run, and what the page is told of it."""

import itertools
import subprocess
from xml.etree import ElementTree

import pytest
from job import PATIENCE, clean_environment
from pages import MUSTER, NETWORKS, Events, ask, keep_run, kept_page, run_mesh
from places import SEARCH_PATH


def run(folder, network, *, loop="model"):
    """The folder of a run of two workers."""
    (folder / "train.py").write_text(NETWORKS)
    job = ["run", "-n", "2", "--log-dir", "logs", "train.py", network, loop]
    command = ["env", "-C", str(folder), MUSTER, *job]
    environment = {**clean_environment(), "PATH": SEARCH_PATH}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "logs"


def drawn(svg):
    return [each.get("class") for each in ElementTree.fromstring(svg).iter()]


def told(folder):
    """What a page is told of the network, None where nothing; the answer for the picture."""
    with kept_page(folder) as port:
        events = itertools.takewhile(lambda event: event[0] != "end", Events(port))
        found = [data for name, data in events if name == "network"]
        return (found[0] if found else None), ask(port, "/network.svg")


@pytest.mark.parametrize("loop", ["model", "by hand"])
def test_a_placed_network_has_a_picture(tmp_path, loop):
    folder = run(tmp_path, "placed", loop=loop)
    svg = (folder / "network.svg").read_text()
    assert drawn(svg).count("worker") == 2 and drawn(svg).count("message") >= 2
    assert "TrainOneStepCell on 2 workers" in svg  # not the evaluation before it
    assert "workers: 2, worker 0 has the inputs" in (folder / "network.txt").read_text()
    network, (status, headers, body) = told(folder)
    assert network["has_picture"] and "worker 1: " in network["text"]
    assert (status, headers["Content-Type"]) == (200, "image/svg+xml")
    assert body == svg


def test_a_mesh_has_a_picture(tmp_path):
    folder = run_mesh(tmp_path, "mesh")
    svg = (folder / "network.svg").read_text()
    assert drawn(svg).count("worker") == 4 and drawn(svg).count("edge") == 4
    assert "over 4 ranks: data=2, model=2" in svg
    assert "part 2 of 2 of dim 0 (model)" in svg
    assert "all_reduce, " in svg
    network, (status, _, body) = told(folder)
    assert network["has_picture"] and "fc1.weight float32 (16, 12): (model, -)" in network["text"]
    assert "  along model: " in network["text"]
    assert status == 200 and body == svg


def test_zero_has_a_picture(tmp_path):
    folder = run_mesh(tmp_path, "zero")
    svg = (folder / "network.svg").read_text()
    assert drawn(svg).count("worker") == 4 and drawn(svg).count("edge") == 3
    assert "over 4 ranks: zero=4" in svg and "part 4 of 4 of dim 0 (zero)" in svg
    assert "along zero: " in (folder / "network.txt").read_text()


def test_a_network_that_is_not_placed_says_why_it_has_none(tmp_path):
    folder = run(tmp_path, "whole")
    assert not (folder / "network.svg").exists()
    network, (status, _, body) = told(folder)
    assert not network["has_picture"]
    reason = "nothing is placed on a worker (Cell.place): each rank computes the whole network"
    assert reason in network["text"]
    assert status == 404 and "no picture of the network" in body


def test_a_later_run_in_the_folder_does_not_show_an_earlier_network(tmp_path):
    run(tmp_path, "placed")
    folder = run(tmp_path, "whole", loop="eager")
    assert not list(folder.glob("network.*"))
    network, (status, _, _) = told(folder)
    assert network is None and status == 404


def test_a_link_is_no_picture(tmp_path):
    (tmp_path / "secret").write_text("secret")
    keep_run(tmp_path / "run", [1.0])
    for name in ["network.svg", "network.txt"]:
        (tmp_path / "run" / name).symlink_to(tmp_path / "secret")
    network, (status, _, body) = told(tmp_path / "run")
    assert network is None and status == 404 and "secret" not in body
