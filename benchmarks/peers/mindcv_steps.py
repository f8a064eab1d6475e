"""Training steps of one model of mindcv, unmodified, under MindSpore or under Muster's names.

mindcv_steps.py NAME SIDE BATCH THREADS STEPS: one line of JSON.
"""

import json
import os
import sys
import time

name, side, batch, threads, steps = sys.argv[1], *map(int, sys.argv[2:6])
os.environ["OMP_NUM_THREADS"] = str(threads)

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindcv.loss import create_loss  # noqa: E402
from mindcv.models import create_model  # noqa: E402
from mindcv.optim import create_optimizer  # noqa: E402
from mindspore import nn  # noqa: E402

WARM = 2  # the first step compiles

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", runtime_num_threads=threads)
ms.set_seed(1)
network = create_model(name)
images = ms.Tensor(np.random.default_rng(1).standard_normal((batch, 3, side, side), np.float32))
labels = ms.Tensor((np.arange(batch) % 10).astype(np.int32))
optimizer = create_optimizer(network.trainable_params(), opt="momentum", lr=0.01, momentum=0.9)
step = nn.TrainOneStepCell(nn.WithLossCell(network, create_loss(name="CE", aux_factor=0.3)), optimizer)
step.set_train()
losses, seconds, processor_seconds = [], [], []
for index in range(WARM + steps):
    begin, begin_processor = time.perf_counter(), time.process_time()
    losses.append(float(step(images, labels).asnumpy()))
    if index >= WARM:
        seconds.append(time.perf_counter() - begin)
        processor_seconds.append(time.process_time() - begin_processor)
right = min(losses[1:]) < losses[0]  # with dropout, or a rate too high for a net, the last one may be greater
print(
    json.dumps({"seconds": seconds, "processor_seconds": processor_seconds, "losses": losses, "right": right})
)
