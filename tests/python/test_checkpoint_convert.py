"""`muster checkpoint convert`: checkpoints of jobs and files, as those of other layouts, bit for bit."""

import re
import resource
import subprocess

import numpy
import pytest
from job import Job, run_alone
from places import BUILD

import muster
from muster import nn

SETUP = """
import hashlib
import numpy
import muster
from muster import nn, parallel

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(12, 16), nn.Dense(16, 4)

    def construct(self, x):
        return self.fc2(self.fc1(x))

def show(values):
    for name, value in sorted(values.items()):
        print("value", name, hashlib.sha256(value.asnumpy().tobytes()).hexdigest())
"""

PIECES = """
muster.init()
parallel.mesh(data=1, model=2)
muster.set_seed(7)
net = Net()
parallel.shard(net.fc1.weight, ("model", None))
parallel.shard(net.fc2.weight, (None, "model"))
parallel.save_layout(FOLDER + "/held.toml", net)
pieces = muster.load_checkpoint(f"{FOLDER}/pieces/rank_{muster.get_rank()}.safetensors")
assert pieces["fc1.weight"].shape == (8, 12) and pieces["fc2.weight"].shape == (4, 8)
muster.load_param_into_net(net, muster.load_checkpoint(f"{FOLDER}/pieces"))
show(muster.train.Model(net).gather_parameters())
"""

WHOLE = """
net = Net()
muster.load_param_into_net(net, muster.load_checkpoint(FOLDER + "/pieces"))
show({p.name: p for p in net.get_parameters()})
"""

MESH = """
[mesh]
data = 1
model = 2
[parameters]
"fc1.weight" = ["model", "-"]
"fc2.weight" = ["-", "model"]
"""


def convert(*arguments, **settings):
    command = [BUILD / "apps/muster/muster", "checkpoint", "convert", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **settings)


def values_in(text):
    found = re.findall(r"value (\S+) (\S+)", text)
    assert len(found) == 4, text
    return found


@pytest.fixture
def saved(tmp_path):
    """A network as a file, and the mesh file of a job of two."""
    script = SETUP + "muster.set_seed(3)\nnet = Net()\n"
    script += f"muster.save_checkpoint(net, {str(tmp_path / 'net.ckpt')!r})\n"
    script += "show({p.name: p for p in net.get_parameters()})"
    code, text, _ = run_alone(script)
    assert code == 0, text
    (tmp_path / "mesh.toml").write_text(MESH)
    return tmp_path, values_in(text)


def test_pieces_are_loaded_by_a_job_of_their_layout_and_by_one_process(saved):
    folder, wanted = saved
    done = convert(folder / "net.ckpt", folder / "pieces", "--to", folder / "mesh.toml")
    assert done.returncode == 0, done.stderr
    assert "4 tensors, 1104 bytes, from 1 file to 2 over data=1, model=2; 2 are cut" in done.stdout
    place = f"FOLDER = {str(folder)!r}\n"
    with Job(SETUP + place + PIECES, 2) as job:
        codes = [process.wait(60) for process in job.everybody()]
        assert codes == [0, 0, 0], job.workers[0].output()
        assert [values_in(worker.output()) for worker in job.workers] == [wanted] * 2
    code, text, _ = run_alone(SETUP + place + WHOLE)
    assert code == 0, text
    assert values_in(text) == wanted
    # The layout that the job has written is the one that was given to it.
    again = convert(folder / "pieces", folder / "again", "--to", folder / "held.toml")
    assert again.returncode == 0, again.stderr
    for rank in range(2):
        name = f"rank_{rank}.safetensors"
        assert (folder / "again" / name).read_bytes() == (folder / "pieces" / name).read_bytes()


def test_the_way_back_gives_the_file_that_there_was(saved):
    folder, _ = saved
    assert convert(folder / "net.ckpt", folder / "pieces", "--to", folder / "mesh.toml").returncode == 0
    done = convert(folder / "pieces", folder / "back.ckpt")
    assert done.returncode == 0, done.stderr
    back = muster.load_checkpoint(str(folder / "back.ckpt"))
    for name, value in muster.load_checkpoint(str(folder / "net.ckpt")).items():
        assert back[name].asnumpy().tobytes() == value.asnumpy().tobytes()


def test_what_cannot_be_converted_is_said_with_the_way_out(saved):
    folder, _ = saved
    net, mesh = folder / "net.ckpt", folder / "mesh.toml"
    mesh.write_text(MESH.replace("model = 2", "model = 3"))
    cases = [
        ([net, folder / "to", "--to", mesh], r"'fc1.weight' is \(16, 12\): dimension 0 of 16 .*would do"),
        ([net, folder / "to"], "--to mesh.toml"),
        ([net, folder / "to.ckpt", "--to", mesh], "name a folder"),
        ([folder / "no.ckpt", folder / "to.ckpt"], "no.ckpt"),
        ([folder, folder, "--to", mesh], "has files of tensors already"),
        ([net, folder / "to", "--to", folder / "no.toml"], "no.toml"),
    ]
    for arguments, said in cases:
        done = convert(*arguments)
        assert done.returncode == 2
        assert re.search(said, done.stderr), done.stderr
        assert done.stderr.startswith("muster checkpoint convert: ")


def limit_memory(bytes_most):
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (bytes_most, bytes_most))

    return limit


def test_a_large_checkpoint_needs_little_memory(tmp_path):
    """Of 160 MB in one tensor; a process may have 100 MB, its libraries among them."""
    values = numpy.arange(40 << 20, dtype=numpy.float32).reshape(4096, 10240)
    muster.save_checkpoint({"w": muster.Tensor(values)}, str(tmp_path / "net.safetensors"))
    for cuts in ('["model", "-"]', '["-", "model"]'):
        folder = tmp_path / cuts[2]
        (tmp_path / "mesh.toml").write_text(f"[mesh]\nmodel = 4\n[parameters]\nw = {cuts}\n")
        limit = {"preexec_fn": limit_memory(100 << 20)}
        done = convert(tmp_path / "net.safetensors", folder, "--to", tmp_path / "mesh.toml", **limit)
        assert done.returncode == 0, done.stderr
        done = convert(folder, tmp_path / "back.safetensors", **limit)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "back.safetensors").read_bytes() == (tmp_path / "net.safetensors").read_bytes()


def test_a_network_in_one_process_has_a_layout_that_cuts_nothing(tmp_path):
    net = nn.Dense(4, 2)
    muster.parallel.save_layout(tmp_path / "mesh.toml", net)
    assert (tmp_path / "mesh.toml").read_text() == '[mesh]\n"workers" = 1\n\n[parameters]\n'
    with pytest.raises(TypeError, match="cells is a Cell"):
        muster.parallel.save_layout(tmp_path / "mesh.toml", 3)
