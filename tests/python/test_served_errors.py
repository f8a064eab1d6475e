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
        "'fc.weight' was written between two steps of its optimizer, before step 1: it lives on parameter "
        "servers, which do not see that. To go on from a checkpoint, start the job anew",
    ),
    "the state of an optimizer is loaded behind the first step": (
        {
            "PREPARED": "net.fc.set_param_ps()",
            "AFTER_STEP": "optimizer.global_step.set_data(Tensor(np.array([7], np.int32)))",
        },
        "Start the job anew, and make and load all optimizers before its first step",
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
    "a table is placed on one worker": (
        {"PREPARED": "net.table.place('MS_WORKER', 0); net.fc.place('MS_WORKER', 1)"},
        "'table.embedding_table' is on parameter servers, and its cell is placed on worker 0",
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


READS = {
    "an array": "table.asnumpy()",
    "numpy": "np.asarray(table)",
    "memory": "memoryview(table)",
    "dlpack": "np.from_dlpack(table)",
    "lists": "table.tolist()",
    "a row": "table[0]",
    "a tensor": "Tensor(table)",
    "its value": "table.value()",
    "a clone": "table.clone()",
    "a copy": "copy.copy(table)",
    "a copy of its network": "copy.deepcopy(net)",
    "pickle": "pickle.dumps(net)",
    "another parameter": "muster.Parameter(table, name='ema')",
}


def test_who_reads_or_copies_a_table_hears_where_its_rows_are():
    body = "import copy, pickle\n"
    for what, expression in READS.items():
        body += f"try: print('READ', {what!r}, {expression})\n"
        body += "except NotImplementedError as error: "
        body += f"print('refused', {what!r}, 'its cell looks' in str(error))\n"
    body += "print(table)"
    (said,), statuses = outputs(1, PREPARED=body)
    assert statuses == [0], said
    assert "READ" not in said
    assert all(f"refused {what} True" in said for what in READS), said


def test_the_best_rows_of_a_table_cannot_be_put_back():
    """Its last ones stayed, in silence, beside the best of all other parameters."""
    body = (
        "early = muster.train.EarlyStopping(monitor='loss', restore_best_weights=True)\n"
        "rows = (np.zeros((8, 3), np.int32), np.zeros((8, 1), np.float32))\n"
        "data = muster.dataset.NumpySlicesDataset(rows, ['ids', 'y']).batch(4)\n"
        "sgd = nn.SGD(net.trainable_params(), 0.1)\n"
        "muster.train.Model(net, nn.MSELoss(), sgd).train(2, data, callbacks=[early])"
    )
    (said,), statuses = outputs(1, PREPARED=body)
    assert statuses != [0], said
    assert "restore_best_weights=True): the rows of table 'table.embedding_table'" in said


def test_a_worker_that_makes_fewer_steps_than_the_others_is_named():
    options = {"PREPARED": "net.fc.set_param_ps()", "AFTER_STEP": "if rank == 1 and step == 1: break"}
    said, statuses = outputs(**options)
    assert statuses[0] != 0, said
    assert "worker 1 has left the job before step 2, and worker 0 waits in step 3" in said[0], said[0]


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
