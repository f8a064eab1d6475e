"""What servers would not see, or workers not agree in, is an error: it was another result in silence."""

import contextlib

import pytest
from job import Job

# Trains a table and a dense layer, with what stands at the names that end in an underscore.
SCRIPT = """
import numpy as np
import muster
from muster import nn, ops, Tensor

BEFORE_INIT_
muster.init()
AFTER_INIT_
rank, workers = muster.get_rank(), muster.get_group_size()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
muster.set_seed(3)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 4, where="servers")
        self.fc = nn.Dense(4, 1)

    def construct(self, ids):
        return self.fc(ops.reduce_sum(self.table(ids), 1))

class Own(nn.Optimizer):
    def construct(self, gradients):
        for parameter, gradient in zip(self.parameters, gradients):
            ops.assign(parameter, parameter - 0.1 * gradient)

def loss_of(ids, y):
    return ops.reduce_mean(ops.square(net(ids) - y)) + PENALTY_

net = Net()
table = net.table.embedding_table
PREPARED_
optimizer = OPTIMIZER_
reducer = nn.DistributedGradReducer(optimizer.parameters)
grad_fn = muster.value_and_grad(loss_of, None, optimizer.parameters)
random = np.random.default_rng(rank)
for step in range(4):
    ids = random.integers(0, 50, (8, 3)).astype(np.int32)
    loss, gradients = grad_fn(Tensor(ids), Tensor(np.ones((8, 1), np.float32)))
    optimizer(reducer(gradients))
    AFTER_STEP_
print("rows", net.table(Tensor(np.arange(3))).asnumpy().tolist())
"""
DEFAULTS = {
    "BEFORE_INIT": "muster.set_ps_context(enable_ps=True)",
    "AFTER_INIT": "",
    "PREPARED": "",
    "PENALTY": "0.0",
    "OPTIMIZER": "nn.SGD(net.trainable_params(), 0.1)",
    "AFTER_STEP": "",
}


def outputs(workers=2, **options):
    """What the workers have said, and with what status they ended."""
    text = SCRIPT
    for name, value in {**DEFAULTS, **options}.items():
        text = text.replace(f"{name}_", value)
    with Job(text, workers, MS_SERVER_NUM="1") as job:
        server = job.start("server 0", MS_ROLE="MS_PSERVER")
        with contextlib.ExitStack() as stack:
            stack.callback(server.end)
            said = [worker.output() for worker in job.workers]
            statuses = [worker.wait() for worker in job.workers]
    return said, statuses


ERRORS = {
    "a marked parameter is set between two steps": (
        {"PREPARED": "net.fc.set_param_ps()", "AFTER_STEP": "net.fc.weight.set_data(net.fc.weight * 0.5)"},
        "'fc.weight' was written between two steps",
    ),
    "a marked parameter has an optimizer of the script's own": (
        {"PREPARED": "net.fc.set_param_ps()", "OPTIMIZER": "Own(0.1, [net.fc.weight, net.fc.bias])"},
        "Own has no rule for parameter 'fc.weight'",
    ),
    "a parameter is marked behind the first step": (
        {"AFTER_STEP": "net.fc.set_param_ps()"},
        "'fc.weight': its optimizer has made steps already",
    ),
    "one worker alone sets the rows": (
        {"PREPARED": "if rank == 0: table.set_data(Tensor(np.ones((50, 4), np.float32)))"},
        "'table.embedding_table' begins differently in the workers",
    ),
    "learning rates differ": (
        {"OPTIMIZER": "nn.SGD(net.trainable_params(), 0.1 + 0.1 * rank)"},
        "the learning rate of 'table.embedding_table' differs between the workers",
    ),
    "servers are asked for behind init": (
        {"BEFORE_INIT": "", "AFTER_INIT": "muster.set_ps_context(enable_ps=True)"},
        "call it before init()",
    ),
    "a loss has a penalty on the table": (
        {"PENALTY": "0.01 * ops.reduce_sum(ops.square(table))"},
        "square cannot read table 'table.embedding_table'",
    ),
    "an initializer is of the row that the worker has": (
        {"PREPARED": "table.set_data(nn.initializer('ones', (1, 4)))"},
        "'table.embedding_table' is (50, 4), the initializer is for (1, 4)",
    ),
}


@pytest.mark.parametrize("what", ERRORS)
def test_it_is_an_error_where(what):
    options, told = ERRORS[what]
    said, statuses = outputs(**options)
    assert any(told in each for each in said), "\n".join(said)
    assert 0 not in statuses


def test_a_table_may_be_set_by_an_initializer_of_all_of_its_rows():
    options = {"PREPARED": "table.set_data(nn.initializer('ones', (50, 4)))"}
    (said,), statuses = outputs(1, **options, OPTIMIZER="nn.SGD(net.trainable_params(), 0.0)")
    assert statuses == [0], said
    assert f"rows {[[1.0] * 4] * 3}" in said


@pytest.mark.parametrize("staleness", [4, None])
def test_workers_that_are_ahead_of_marked_parameters_are_not_compared(staleness):
    before = f"muster.set_ps_context(enable_ps=True, staleness={staleness})"
    said, statuses = outputs(BEFORE_INIT=before, PREPARED="net.fc.set_param_ps()")
    assert statuses == [0, 0], said
    assert not any("differ" in each for each in said)
