"""Names that can be imported and are refused at their use, and paths of MindSpore to names that are there."""

import ast
import importlib
import subprocess
import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore
from mindspore import Tensor, _paths, _refused
from muster._check import provided


@pytest.mark.parametrize("path", sorted(each for each in _refused._ROWS if _refused.is_op(each)))
def test_objects_of_a_refused_op_are_made_and_raise_where_they_are_called(path):
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    assert issubclass(value, mindspore.ops.Primitive) and not provided.is_provided(path)
    op = value(1, key=2).set_device("CPU").add_prim_attr("note", 3)
    assert op.note == 3
    with pytest.raises(NotImplementedError, match=name) as caught:
        op(Tensor([1.0]))
    assert path in str(caught.value) and value.way in str(caught.value)


@pytest.mark.parametrize("path", sorted(each for each in _refused._ROWS if not _refused.is_op(each)))
def test_a_refused_name_is_imported_and_raises_at_its_use(path):
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    assert type(value) is _refused.Refused, f"{path} is there: take it out of the table"
    assert not isinstance(3, value)
    subclass = type(value)("Mine", (value,), {})
    uses = (value, lambda: value(1, key=2), lambda: value.create(3), subclass)
    for use in uses:
        with pytest.raises(NotImplementedError, match=name) as caught:
            use()
        assert path in str(caught.value) and value.way in str(caught.value)
    assert name not in importlib.import_module(module).__all__
    assert not provided.is_provided(path)


def test_what_is_in_no_table_is_still_an_error_where_it_is_imported():
    with pytest.raises(AttributeError, match=r"mindspore\.nn\.NoSuchCell is not provided"):
        _ = mindspore.nn.NoSuchCell
    with pytest.raises(ImportError, match=r"mindspore\.no_such_module is not provided"):
        importlib.import_module("mindspore.no_such_module")
    assert not hasattr(_refused.find("mindspore.nn.thor"), "_private")
    assert provided.way_out("mindspore.ops.DynamicRNN") == "use nn.LSTM"


@pytest.mark.parametrize("path", sorted({**_paths.OLDER_PATHS, **_paths.BESIDE_FUNCTIONS}))
def test_a_path_shows_the_names_of_its_module(path):
    holder = importlib.import_module((_paths.OLDER_PATHS | _paths.BESIDE_FUNCTIONS)[path])
    module = importlib.import_module(path)
    for name in holder.__all__[:3]:
        assert getattr(module, name) is getattr(holder, name) or callable(getattr(module, name))


@pytest.mark.parametrize("path", sorted(_paths.BESIDE_FUNCTIONS))
def test_a_path_that_ends_like_a_function_leaves_the_function(path):
    importlib.import_module(path)
    module, _, name = path.rpartition(".")
    assert not isinstance(getattr(importlib.import_module(module), name, len), type(sys))


LINES = """
from mindspore.run_check import run_check
from mindspore.run_check.run_check import run_check as again
from mindspore.train.data_sink import data_sink
from mindspore.common.recompute import recompute
from mindspore.train.callback._summary_collector import SummaryCollector
from mindspore.train.callback._on_request_exit import OnRequestExit
from mindspore.train.metrics.auc import auc
from mindspore.nn.optim.adafactor import AdaFactor
from mindspore.nn.optim.lars import LARS
from mindspore.nn.optim.thor import thor
from mindspore.nn.probability.distribution.normal import Normal
from mindspore.nn.probability.bijector.exp import Exp
from mindspore.experimental.optim.adamw import AdamW
from mindspore.mint.optim.adamw import AdamW as MintAdamW
from mindspore.mint.nn.layer.normalization import LayerNorm
from mindspore.hal.memory import memory_allocated
from mindspore.runtime.memory import max_memory_allocated
from mindspore.parallel.shard import shard
from mindspore.parallel.nn.parallel_cell_wrapper import Pipeline
from mindspore.rewrite.api.symbol_tree import SymbolTree
from mindspore.train.train_thor import ConvertModelUtils
from mindspore.common.sparse_tensor import CSRTensor
from mindspore.nn.sparse.sparse import SparseToDense
from mindspore.multiprocessing import Process, get_context
from mindspore.version import __version__
from mindspore.device_manager import set_device
"""


@pytest.mark.parametrize("line", LINES.split("\n")[1:-1])
def test_a_line_of_mindspores_own_paths_runs(line):
    scope = {}
    exec(line, scope)
    imported = ast.parse(line).body[0]
    assert all(scope[each.asname or each.name] is not None for each in imported.names)


def test_import_loads_no_table_of_refused_names():
    code = "import sys, mindspore; print('mindspore._refused' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=_environment())
    assert done.stdout.strip() == "False", done.stderr


def _environment():
    import os

    return {**os.environ, "PYTHONPATH": ":".join(sys.path)}


def test_names_of_the_device_say_what_mindspore_says_on_a_cpu():
    device = mindspore.get_current_device()
    assert device == ("CPU", 0) and device.device_target == "CPU" and device.device_id == 0
    assert mindspore.hal.get_device_name() == "CPU" and mindspore.hal.get_device_properties(0) is None
    assert mindspore.async_ckpt_thread_status() is False
    assert mindspore.no_inline(len) is len and mindspore.no_inline()(len) is len
    with pytest.raises(ValueError, match="above 0"):
        mindspore.set_recursion_limit(0)
    with pytest.raises(TypeError, match="whole number"):
        mindspore.set_recursion_limit(True)
