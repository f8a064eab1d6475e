"""One model of mindcv: its output and the losses of three steps into FOLDER/NAME.PEER.npz, each stage said.

Runs unmodified under MindSpore, which leaves FOLDER/NAME.ckpt, and under Muster's names, which take that.

    mindcv_model.py NAME SIDE FOLDER PEER [MODE]
"""

import sys
import zlib
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn

BATCH, STEPS = 2, 3
RANDOM = ("Dropout", "DropPath", "DropBlock")  # draws differ: these stay as in evaluation


def first(outputs):
    return first(outputs[0]) if isinstance(outputs, (tuple, list)) else outputs


def main(name: str, side: int, folder: Path, peer: str, mode: str = "graph") -> None:
    """Builds, evaluates, trains."""
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    from mindcv.loss import create_loss
    from mindcv.models import create_model
    from mindcv.optim import create_optimizer

    print("stage import", flush=True)
    ms.set_seed(1)
    network = create_model(name)
    print("stage build", flush=True)
    weights = str(folder / f"{name}.ckpt")
    if peer == "mindspore":
        ms.save_checkpoint(network, weights)
    else:
        missing, _ = ms.load_param_into_net(network, ms.load_checkpoint(weights))
        assert not missing, f"not in the checkpoint: {missing[:5]}"
    random = np.random.default_rng(zlib.crc32(name.encode()))
    images = ms.Tensor(random.standard_normal((BATCH, 3, side, side)).astype(np.float32))
    labels = ms.Tensor(random.integers(0, 1000, BATCH).astype(np.int32))
    network.set_train(False)
    output = first(network(images)).asnumpy()
    print("stage output", flush=True)
    np.savez(folder / f"{name}.{peer}.npz", output=output)

    network.set_train(True)
    for _, cell in network.cells_and_names():
        if type(cell).__name__.startswith(RANDOM):
            cell.set_train(False)
    loss = create_loss(name="CE", aux_factor=0.3)
    optimizer = create_optimizer(network.trainable_params(), opt="momentum", lr=0.001, momentum=0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(network, loss), optimizer)
    losses = [float(step(images, labels).asnumpy()) for _ in range(STEPS)]
    print("stage train", losses, flush=True)
    np.savez(folder / f"{name}.{peer}.npz", output=output, losses=losses)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
