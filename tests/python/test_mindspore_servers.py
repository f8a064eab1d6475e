"""What MindSpore's scripts do with parameters on parameter servers."""

import re

import pytest
from job import Job

# Trains a network of a table and two layers by what stands at BODY_, and says a hash of all of it.
SCRIPT = """
import hashlib, os
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor
from mindspore import dataset as ds

ms.set_ps_context(enable_ps=True)
if "MS_ROLE" in os.environ:
    ms.communication.init()
ms.set_seed(3)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingLookup(50, 4)
        self.hidden = nn.Dense(4, 8)
        self.out = nn.Dense(8, 1)

    def construct(self, ids):
        return self.out(ops.relu(self.hidden(self.table(ids).sum(1))))

net = Net()
net.MARKED_.set_param_ps()
random = np.random.default_rng(7)
ids = random.integers(0, 50, (48, 3)).astype(np.int32)
y = random.standard_normal((48, 1)).astype(np.float32)
data = ds.NumpySlicesDataset((ids, y), ["ids", "y"], shuffle=False).batch(8)
loss_fn = nn.MSELoss()
optimizer = nn.SGD(net.trainable_params(), 0.05, momentum=MOMENTUM_, loss_scale=LOSS_SCALE_)
gradients_of = ms.value_and_grad(lambda ids, y: loss_fn(net(ids), y), None, optimizer.parameters)
BODY_
rows = net.table(Tensor(np.arange(50, dtype=np.int32))).asnumpy().tobytes()
weights = b"".join(layer.weight.asnumpy().tobytes() for layer in (net.hidden, net.out))
print("bits", hashlib.sha256(rows + weights).hexdigest())
print("sum", sum(np.abs(np.frombuffer(each, np.float32)).sum() for each in (rows, weights)))
"""
TABLE = "table.embedding_table"


def script(body, marked, momentum=0.0, loss_scale=1.0):
    told = {"MARKED": marked, "MOMENTUM": momentum, "LOSS_SCALE": loss_scale, "BODY": body}
    text = SCRIPT
    for name, value in told.items():
        text = text.replace(f"{name}_", str(value))
    return text


def in_job(text):
    """Of one worker with a server: its exit code and what it printed."""
    with Job(text, 1, MS_SERVER_NUM="1") as job:
        server = job.start("server 0", MS_ROLE="MS_PSERVER")
        try:
            return job.workers[0].wait(), job.workers[0].output()
        finally:
            server.end()


def bits(text):
    return re.search(r"bits (\w+)", text)[1]


SAVED = """
model = ms.Model(net, loss_fn, optimizer)
model.train(1, data, dataset_sink_mode=False)
ms.save_checkpoint([*net.get_parameters(), *optimizer.get_parameters()], FILE, integrated_save=TOGETHER)
"""
LOADED = """
values = ms.load_checkpoint(FILE)
assert ms.load_param_into_net(net, values)[0] == ms.load_param_into_net(optimizer, values)[0] == []
"""


@pytest.mark.parametrize("together", [True, False])
def test_what_an_optimizer_keeps_on_servers_is_loaded(tmp_path, together):
    def body(text):
        return text.replace("FILE", repr(str(tmp_path / "net.ckpt"))).replace("TOGETHER", str(together))

    again = "ms.Model(net, loss_fn, optimizer).train(1, data, dataset_sink_mode=False)"
    code, whole = in_job(script(SAVED.partition("ms.save")[0] + again, TABLE, momentum=0.9))
    assert code == 0, whole
    code, told = in_job(script(body(SAVED), TABLE, momentum=0.9))
    assert code == 0, told
    code, resumed = in_job(script(body(LOADED) + again, TABLE, momentum=0.9))
    assert code == 0, resumed
    assert bits(resumed) == bits(whole)


def test_rows_of_another_table_are_not_loaded(tmp_path):
    file = repr(str(tmp_path / "net.ckpt"))
    code, told = in_job(script(SAVED.replace("FILE", file).replace("TOGETHER", "True"), TABLE))
    assert code == 0, told
    text = script(LOADED.replace("FILE", file), TABLE).replace("Lookup(50, 4)", "Lookup(60, 4)")
    code, told = in_job(text)
    assert code != 0
    assert "RuntimeError: mindspore.load_param_into_net: table.embedding_table is" in told
