"""Checkpoints of one layout for another, by MindSpore's names."""

import re

from job import Job, run_alone

SETUP = """
import numpy as np
import mindspore as ms
from mindspore import nn

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(4, 8), nn.Dense(8, 4)

    def construct(self, x):
        return self.fc2(self.fc1(x))

def show(values):
    for name, value in values.items():
        print("value", name, float(np.abs(value.asnumpy()).sum()))
"""

SAVED = """
import pathlib
from mindspore.communication import get_rank, init
from mindspore.parallel.auto_parallel import AutoParallel

init()
ms.set_seed(3)
net = Net()
parallel = AutoParallel(net)
parallel.save_param_strategy_file(f"{FOLDER}/strategy.json")
pathlib.Path(f"{FOLDER}/rank_{get_rank()}").mkdir()
ms.save_checkpoint(net, f"{FOLDER}/rank_{get_rank()}/net.ckpt")
show(net.parameters_dict())
"""

CONVERTED = """
def told(what, call):
    try:
        call()
    except (NotADirectoryError, TypeError, ValueError) as error:
        print(what, type(error).__name__, error)

strategy = f"{FOLDER}/strategy.json"
print("ranks", ms.rank_list_for_transform(1, strategy, strategy))
ms.transform_checkpoints(FOLDER, f"{FOLDER}/to", "to_", strategy, strategy)
ms.transform_checkpoints(FOLDER, f"{FOLDER}/one", "one_", strategy, output_format="safetensors")
ms.transform_checkpoint_by_rank(0, {0: f"{FOLDER}/rank_0/net.ckpt"}, f"{FOLDER}/by_rank")
for path in ("to/rank_0/to_0.ckpt", "to/rank_1/to_1.ckpt", "one/rank_0/one_0.safetensors", "by_rank.ckpt"):
    net = Net()
    ms.load_distributed_checkpoint(net, [f"{FOLDER}/{path}"])
    print("from", path)
    show(net.parameters_dict())
net = Net()
print("from segments")
show(ms.load_segmented_checkpoints(f"{FOLDER}/rank_0", net))
ms.sync_pipeline_shared_parameters(net)

piece = {"name": "fc1.weight", "data": ms.Tensor(np.zeros((4, 4), np.float32))}
ms.save_checkpoint([piece], f"{FOLDER}/piece.ckpt")
files = [f"{FOLDER}/piece.ckpt", f"{FOLDER}/by_rank.ckpt"]
told("piece:", lambda: ms.load_distributed_checkpoint(net, files))
told("rank:", lambda: ms.rank_list_for_transform(2, strategy, strategy))
told("strategy:", lambda: ms.rank_list_for_transform(0, None, f"{FOLDER}/piece.ckpt"))
told("folder:", lambda: ms.transform_checkpoints(f"{FOLDER}/no", f"{FOLDER}/to", "a"))
told("none:", lambda: ms.transform_checkpoints(f"{FOLDER}/to/rank_0", f"{FOLDER}/to", "a"))
told("no file:", lambda: ms.load_distributed_checkpoint(net))
"""


def values(text):
    found = re.findall(r"value (\S+) (\S+)", text)
    assert len(found) == 4
    return found


def test_checkpoints_are_joined_and_copied_for_another_layout(tmp_path):
    folder = f"FOLDER = {str(tmp_path)!r}\n"
    with Job(SETUP + folder + SAVED, 2) as job:
        assert [process.wait(60) for process in job.everybody()] == [0, 0, 0]
        saved = values(job.workers[0].output())
    code, text, _ = run_alone(SETUP + folder + CONVERTED)
    assert code == 0, text
    assert "ranks [0, 1]" in text
    parts = re.split(r"(?m)^from \S+", text)[1:]
    assert len(parts) == 5
    assert [values(part) for part in parts] == [saved] * 5
    assert re.search(
        r"piece: ValueError .*'fc1.weight' is float32 \(4, 4\) .*\(8, 4\) .*pieces .*--from", text
    )
    assert re.search(r"rank: ValueError .*rank_id is 2, and there are 2 workers", text)
    assert re.search(r"strategy: ValueError .*no strategy file of Muster", text)
    assert re.search(r"folder: NotADirectoryError", text)
    assert re.search(r"none: ValueError .*no folders rank_0", text)
    assert re.search(r"no file: ValueError", text)


MERGED = """
from mindspore.parallel import (
    convert_checkpoint_by_rank, convert_checkpoints, merge_sliced_parameter, rank_list_for_convert,
)

def told(what, call):
    try:
        call()
    except (KeyError, NotImplementedError, TypeError, ValueError) as error:
        print(what, type(error).__name__, error)

def piece(values, name="table"):
    return ms.Parameter(ms.Tensor(np.array(values, np.float32)), name=name)

whole = merge_sliced_parameter([piece([[1, 2]]), piece([[3, 4]]), piece([[5, 6]])])
print("merged", whole.name, whole.asnumpy().tolist(), ms.merge_sliced_parameter is merge_sliced_parameter)
told("none:", lambda: merge_sliced_parameter([]))
told("kind:", lambda: merge_sliced_parameter((piece([1]),)))
told("unlike:", lambda: merge_sliced_parameter([piece([1]), piece([1, 2])]))
told("names:", lambda: merge_sliced_parameter([piece([1]), piece([1], "other")]))
told("lacks:", lambda: merge_sliced_parameter([piece([1])], {}))
told("strategy:", lambda: merge_sliced_parameter([piece([1])], {"table": object()}))

net = Net()
pathlib.Path(f"{FOLDER}/rank_0").mkdir()
ms.save_checkpoint(net, f"{FOLDER}/rank_0/net.ckpt")
ranks = rank_list_for_convert(0)
files = {rank: f"{FOLDER}/rank_{rank}/net.ckpt" for rank in ranks}
convert_checkpoint_by_rank(0, files, f"{FOLDER}/one.ckpt")
convert_checkpoints(FOLDER, f"{FOLDER}/to", "to_", output_format="safetensors")
for path in (f"{FOLDER}/one.ckpt", f"{FOLDER}/to/rank_0/to_0.safetensors"):
    read = ms.load_checkpoint(path, format=path.rpartition(".")[2])
    wanted = net.parameters_dict().items()
    same = all((read[name].asnumpy() == value.asnumpy()).all() for name, value in wanted)
    print("converted", len(read), same)
"""


def test_pieces_are_merged_and_checkpoints_converted_by_newer_names(tmp_path):
    status, text, _ = run_alone(f"FOLDER = {str(tmp_path)!r}\n" + SETUP + "import pathlib\n" + MERGED)
    assert status == 0, text
    assert "merged table [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]] True" in text
    assert re.findall(r"converted \d+ \w+", text) == ["converted 4 True"] * 2
    for reason in (
        "none: ValueError .*no piece",
        "kind: TypeError .*list of Parameters",
        "unlike: ValueError .*piece 1 is 'table' Float32 \\(2,\\)",
        "names: ValueError .*piece 1 is 'other'",
        "lacks: KeyError .*lacks 'table'",
        "strategy: NotImplementedError .*merge_sliced_parameter\\(strategy=",
    ):
        assert re.search(reason, text), (reason, text)
