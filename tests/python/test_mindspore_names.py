"""MindSpore's names: what is there works, what is not says so, and nothing is silently ignored."""

import random
import re
import subprocess
import sys

import numpy
import pytest
from digits import write_digits
from job import clean_environment


def run(code, **variables):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean_environment(), **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


def raised_by(statement):
    """'Type: message' of the exception that `statement` raises behind the usual imports."""
    code = f"""
import mindspore as ms
from mindspore import nn
import mindspore.dataset as ds
try:
    {statement}
except Exception as error:
    print(type(error).__name__ + ":", error)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("statement", "kind", "name"),
    [
        ("nn.DenseThorn", "AttributeError", "mindspore.nn.DenseThorn"),
        ("from mindspore.nn import DenseThorn", "ImportError", "mindspore.nn.DenseThorn"),
        ("from mindspore import SparseTensors", "ImportError", "mindspore.SparseTensors"),
        ("import mindspore.rewriting", "ImportError", "mindspore.rewriting"),
        ("nn.DenseThor(3, 4)", "NotImplementedError", "mindspore.nn.DenseThor"),
        (
            "from mindspore.rewrite import SymbolTree; SymbolTree.create(3)",
            "NotImplementedError",
            "SymbolTree",
        ),
        ("ds.sync_wait_for_dataset(1)", "NotImplementedError", "mindspore.dataset.sync_wait_for_dataset"),
        ("ds.vision.DecodeVideo", "AttributeError", "mindspore.dataset.vision.DecodeVideo"),
        ("ms.set_context(enable_dump=True)", "NotImplementedError", "enable_dump"),
        ("ms.set_auto_parallel_context(auto_pipeline=True)", "NotImplementedError", "auto_pipeline"),
        ("ms.set_auto_parallel_context(comm_fusion={'gather': {}})", "NotImplementedError", "gather"),
        (
            "ms.set_auto_parallel_context(grad_accumulation_step=2)",
            "NotImplementedError",
            "grad_accumulation_step",
        ),
        ("nn.BatchNorm2d(1, dtype=ms.float16)", "NotImplementedError", "dtype=Float16"),
        ("ds.MnistDataset('x', cache=3)", "NotImplementedError", "cache"),
    ],
)
def test_what_is_not_provided_says_so(statement, kind, name):
    text = raised_by(statement)
    assert text.startswith(kind + ":")
    assert name in text and "not provided" in text


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ("comm_fusion={'allreduce': {'mode': 'all'}}", r"mode.*'auto', 'size'.*'index'.*'all'"),
        ("comm_fusion={'allreduce': {'mode': 'size', 'config': 0}}", r"whole.*MiB.*from 1.*not 0"),
        ("comm_fusion={'allreduce': {'mode': 'size', 'size': 3}}", r"'mode'.*'config'.*'size'"),
        ("comm_fusion={'allreduce': {'mode': 'index', 'config': [5, 2]}}", "split before 2 after 5"),
        ("comm_fusion={'allreduce': 32}", "a dict such as"),
        ("comm_fusion=32", "a dict such as"),
        ("comm_fusion={}, all_reduce_fusion_config=[2]", "not both"),
    ],
)
def test_gradients_are_fused_only_in_ways_that_can_be(settings, complaint):
    assert re.search(complaint, raised_by(f"ms.set_auto_parallel_context({settings})"))


def test_gradients_are_fused_as_comm_fusion_says():
    settings = [
        "comm_fusion={'allreduce': {'mode': 'auto'}}",
        "comm_fusion={'allreduce': {'mode': 'size', 'config': 32}}",
        "comm_fusion={'allreduce': {'mode': 'index', 'config': [2, 5]}}",
        "comm_fusion={'openstate': False}",
        "all_reduce_fusion_config=[20, 35]",
    ]
    for setting in settings:
        assert raised_by(f"ms.set_auto_parallel_context({setting})") == ""


@pytest.mark.parametrize(
    "statement",
    ["nn.SGD([], lr=1)", "nn.ReLU(3)", "nn.CrossEntropyLoss(reduce=True)", "ds.MnistDataset('x', shards=2)"],
)
def test_an_unknown_argument_is_an_error(statement):
    assert raised_by(statement).startswith("TypeError:")


def test_a_missing_name_is_missing_for_hasattr_too():
    assert run("import mindspore as ms; print(hasattr(ms.nn, 'DenseThorn'))").stdout == "False\n"


USES_ACCELERATORS = """
import mindspore as ms
ms.set_context(device_target="GPU")
ms.set_context(device_target="GPU", device_id=0)
"""


def test_a_seed_is_that_of_random_too_wherever_it_is_imported_first():
    behind = run("import mindspore\nmindspore.set_seed(3)\nimport random\nprint(random.random())").stdout
    before = run("import random, mindspore\nmindspore.set_seed(3)\nprint(random.random())").stdout
    twice = "import mindspore as ms\nms.set_seed(7)\nms.set_seed(3)\nimport random\nprint(random.random())"
    again = run(twice)
    assert behind == before == again.stdout == f"{random.Random(3).random()}\n"


def test_accelerators_run_on_the_cpu_after_one_warning():
    done = run(USES_ACCELERATORS)
    assert done.returncode == 0
    assert done.stderr.count("warning: set_context(device_target) asks for GPU") == 1
    assert "device_id=..." in done.stderr and "effect" in done.stderr


def test_accelerators_are_an_error_when_strictness_is_asked_for():
    done = run(USES_ACCELERATORS, MUSTER_STRICT="1")
    assert done.returncode != 0 and "MUSTER_STRICT=1" in done.stderr


def test_in_musters_own_names_another_device_is_an_error():
    done = run("import muster; muster.set_context(device_target='GPU')")
    assert done.returncode != 0 and "GPU" in done.stderr and "CPU" in done.stderr


def test_a_pipeline_takes_mindspores_arguments(tmp_path):
    write_digits(tmp_path, rows=30)
    code = f"""
import mindspore as ms
import mindspore.dataset as ds
data = ds.MnistDataset({str(tmp_path)!r}, usage="train", num_parallel_workers=4, shuffle=False)
data = data.map(operations=ds.transforms.TypeCast(ms.float32), input_columns=["label"])
data = data.batch(batch_size=10, drop_remainder=True)
for item in data.create_dict_iterator(num_epochs=1, output_numpy=True):
    print(item["image"].shape, item["label"].dtype)
print(data.get_dataset_size(), len(data), isinstance(data, ds.Dataset))
"""
    done = run(code)
    assert done.stdout.splitlines() == ["(10, 28, 28, 1) float32"] * 3 + ["3 3 True"]


def test_older_paths_hold_the_names_of_the_modules_that_have_them_now():
    done = run(
        """
import mindspore as ms
from mindspore.communication.management import get_rank, init
from mindspore.nn.loss.loss import LossBase
from mindspore.nn.optim.momentum import Momentum
import mindspore.nn.metrics
from mindspore.common.tensor import Tensor
from mindspore.nn.wrap import *
print(init is ms.communication.init, LossBase is ms.nn.LossBase, TrainOneStepCell is ms.nn.TrainOneStepCell)
try:
    from mindspore.nn.loss.loss import NoSuchLoss
except ImportError as error:
    print(error)
try:
    import mindspore.nn.loss.other
except ImportError as error:
    print(error)
"""
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "True True True"
    assert "NoSuchLoss" in lines[1]
    assert lines[2].startswith("mindspore.nn.loss.other is not provided by Muster yet")


def test_tensors_are_those_of_muster_and_print_alike():
    done = run("import mindspore as ms, muster; print(ms.Tensor(2.3499548), ms.Tensor is muster.Tensor)")
    assert done.stdout == str(numpy.float32(2.3499548)) + " True\n"


def test_importing_mindspores_names_loads_nothing_heavy():
    heavy = ("numpy", "json", "re", "random", "traceback", "mindspore.parallel")
    code = f"import mindspore, sys; mindspore.set_seed(3); print([n for n in {heavy} if n in sys.modules])"
    assert run(code).stdout == "[]\n"


def test_a_pipeline_of_images_in_the_library_loads_no_numpy():
    script = """
import sys
import mindspore as ms
import mindspore.dataset as ds
ds.MnistDataset
ds.vision.Rescale(1.0 / 255.0, 0), ds.vision.Normalize(mean=(0.1307,), std=(0.3081,)), ds.vision.HWC2CHW()
ds.transforms.TypeCast(ms.int32)
print("numpy" in sys.modules)
"""
    assert run(script).stdout == "False\n"


def test_a_seed_loads_no_numpy_and_holds_when_numpy_comes():
    script = """
import mindspore, sys
mindspore.set_seed(3)
mindspore.set_seed(7)
print("numpy" in sys.modules)
import numpy
print(numpy.random.rand(), numpy.random.RandomState(7).rand(), numpy.random.__spec__.name)
mindspore.set_seed(7)
print(numpy.random.rand())
"""
    before, drawn, again = run(script).stdout.splitlines()
    assert before == "False"
    first, wanted, name = drawn.split()
    assert first == wanted == again
    assert name == "numpy.random"


USES_PARAMETER_TUPLES = """
import mindspore as ms
from mindspore import nn
weights = ms.ParameterTuple(nn.Dense(2, 1, weight_init="ones", bias_init="zeros").trainable_params())
moments = weights.clone(prefix="moments", init="zeros")
same = weights.clone("same")
print([p.name for p in moments], moments[0].tolist(), same[0].tolist(), same[0] is weights[0])
"""


def test_parameter_tuples_may_be_cloned():
    assert run(USES_PARAMETER_TUPLES).stdout == (
        "['moments.weight', 'moments.bias'] [[0.0, 0.0]] [[1.0, 1.0]] False\n"
    )


TUPLES_OF_A_CELL = """
import mindspore as ms
from mindspore import nn
def one(name): return ms.Parameter(ms.Tensor([1.0]), name=name)
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = ms.ParameterTuple([one("first.0"), one("first.1")])
        self.second = ms.ParameterTuple([one("second.0"), one("second.1")])
        self.one, self.two = nn.Dense(1, 1, has_bias=False), nn.Dense(1, 1, has_bias=False)
        layers = self.one.trainable_params() + self.two.trainable_params()
        self.moments = ms.ParameterTuple(layers).clone("moments")
print(*[p.name for p in nn.SequentialCell(Net()).get_parameters()])
"""


def test_a_cell_has_every_parameter_of_its_tuples_under_the_name_that_mindspore_gives_it():
    first = "0.first.0 0.first.1 0.second.0 0.second.1"
    assert run(TUPLES_OF_A_CELL).stdout == (
        f"{first} 0.moments.one.weight 0.moments.two.weight 0.one.weight 0.two.weight\n"
    )


NEW_DTYPES = """
import mindspore as ms
from mindspore import nn
net = nn.Dense(1, 1, has_bias=False)
net.weight.set_dtype(ms.float32)
net.weight = ms.Parameter(net.weight.astype(ms.float16))
print(net(ms.Tensor([[1.0]], ms.float16)).dtype, ms.Tensor([1.0]).set_dtype(ms.float16))
net.weight.set_dtype(ms.float32)
"""


def test_a_parameter_that_would_not_take_another_dtype_says_so_and_what_does():
    answer = run(NEW_DTYPES)
    assert answer.stdout == "Float16 Float16\n"
    assert "NotImplementedError: Parameter 'weight' keeps its dtype" in answer.stderr


MEDIANS = """
from mindspore import Tensor, mint, ops
lines = Tensor([[2.0, 9.0, 1.0, 7.0], [1.0, float("nan"), 3.0, float("nan")]])
for method in (ops.median(lines, 1), lines.median(1), mint.median(lines, 1)):
    print(*[part.tolist() for part in method])
print(mint.median(lines), mint.median(lines[0]), ops.nanmedian(lines, 1)[0])
"""


def test_a_median_of_what_is_no_number_is_none():
    assert run(MEDIANS).stdout == "[2.0, nan] [0, 1]\n" * 3 + "nan 2.0 [2. 1.]\n"


HELPERS_OF_INITIALIZERS = """
import numpy as np
from mindspore.common import initializer as i
print([i._calculate_fan_in_and_fan_out(s) for s in ((2, 3), (4, 3, 5, 5))])
print(i._calculate_correct_fan((4, 3, 2), 'FAN_OUT'))
print([round(i._calculate_gain(n), 6) for n in ('tanh', 'relu', 'leaky_relu', 'conv_transpose2d', 'sigmoid')])
print(round(i._calculate_gain('leaky_relu', .5), 6))
print(*(i._assignment(np.zeros(s), n) for s, n in (((2,), 3), ((), 3), ((2,), np.array([1, 2])))))
"""


def test_the_helpers_of_initializers_answer_as_mindspore_2_7_0():
    assert run(HELPERS_OF_INITIALIZERS).stdout.splitlines() == [
        "[(3, 2), (75, 100)]",
        "8",
        "[1.666667, 1.414214, 1.414143, 1, 1]",
        "1.264911",
        "[3. 3.] 3.0 [1. 2.]",
    ]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "ms.common.initializer._calculate_fan_in_and_fan_out((3,))",
            "ValueError: .*fewer than 2 dimensions",
        ),
        (
            "ms.common.initializer._calculate_correct_fan((3, 2), 'fan')",
            r"ValueError: 'mode' fan not supported",
        ),
        ("ms.common.initializer._calculate_gain('gelu')", "ValueError: .*but got gelu"),
        ("ms.common.initializer._calculate_gain('leaky_relu', True)", "ValueError: .*'negative_slope' True"),
        (
            "ms.communication.init(); ms.communication.create_group('g', [0, 1])",
            r"ValueError: group 'g' \(workers 0, 1\): different ranks",
        ),
        ("ms.communication.destroy_group('muster_world_group')", "ValueError: .*stays"),
        ("ms.communication.get_rank('g')", "ValueError: .*'g'"),
    ],
)
def test_helpers_and_groups_say_what_they_do_not_take(statement, message):
    assert re.match(message, raised_by(statement))


USES_OTHER_PLACES = """
import mindspore as ms
from mindspore.train.model import ParallelMode
from mindspore.train.serialization import context
from mindspore.dataset import context as same
from mindspore.communication import create_group, destroy_group, get_group_size, init, release
from mindspore.parallel import get_algo_parameters, reset_algo_parameters, set_algo_parameters
init()
create_group("all", [0])
print(ParallelMode is context.ParallelMode, context is same, ParallelMode.MODE_LIST[1], get_group_size("all"))
destroy_group("all")
assert get_algo_parameters("tensor_slice_align_size") == 16
set_algo_parameters(elementwise_op_strategy_follow=True)
assert get_algo_parameters("elementwise_op_strategy_follow") is True
reset_algo_parameters()
assert get_algo_parameters("elementwise_op_strategy_follow") is False
for wrong in ({"follow": True}, {"algo_approxi_epsilon": 1}):
    try:
        set_algo_parameters(**wrong)
    except (TypeError, ValueError) as error:
        assert next(iter(wrong)) in str(error)
    else:
        raise AssertionError(wrong)
release()
"""


def test_names_are_found_where_scripts_import_them_and_a_group_of_all_is_the_world():
    done = run(USES_OTHER_PLACES)
    assert done.stdout == "True True data_parallel 1\n", done.stderr
    assert "set_algo_parameters(elementwise_op_strategy_follow=...) has no effect" in done.stderr
