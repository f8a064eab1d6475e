"""One model of mindcv: its output and the losses of three steps into FOLDER/NAME.PEER.npz, each stage said.

Runs unmodified under MindSpore, which leaves FOLDER/NAME.ckpt, and under Muster's names, which take that.
With MOVES also the losses of so many trainings with images that differ by their rounding: `moved`.

    mindcv_model.py NAME SIDE FOLDER PEER [MODE [MOVES]]
"""

import sys
import zlib
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn

BATCH, STEPS = 2, 3
ROUNDING = 1e-7
RANDOM = ("Dropout", "DropPath", "DropBlock")  # draws differ: these stay as in evaluation


def first(outputs):
    return first(outputs[0]) if isinstance(outputs, (tuple, list)) else outputs


def model(name: str, folder: Path, peer: str):
    """The network with the weights that both have."""
    from mindcv.models import create_model

    ms.set_seed(1)
    network = create_model(name)
    weights = str(folder / f"{name}.ckpt")
    if peer == "mindspore":
        ms.save_checkpoint(network, weights)
    else:
        missing, _ = ms.load_param_into_net(network, ms.load_checkpoint(weights))
        assert not missing, f"not in the checkpoint: {missing[:5]}"
    return network


def train(network, images: np.ndarray, labels: np.ndarray) -> list[float]:
    """The losses of the steps."""
    from mindcv.loss import create_loss
    from mindcv.optim import create_optimizer

    network.set_train(True)
    for _, cell in network.cells_and_names():
        if type(cell).__name__.startswith(RANDOM):
            cell.set_train(False)
    loss = create_loss(name="CE", aux_factor=0.3)
    optimizer = create_optimizer(network.trainable_params(), opt="momentum", lr=0.001, momentum=0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(network, loss), optimizer)
    return [float(step(ms.Tensor(images), ms.Tensor(labels)).asnumpy()) for _ in range(STEPS)]


def moved(images: np.ndarray, seed: int) -> np.ndarray:
    """The images, each number multiplied by 1 and about its rounding."""
    noise = np.random.default_rng(seed).standard_normal(images.shape)
    return (images * (1 + ROUNDING * noise)).astype(np.float32)


def main(name: str, side: int, folder: Path, peer: str, mode: str = "graph", moves: str = "0") -> None:
    """Builds, evaluates, trains."""
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    network = model(name, folder, peer)
    print("stage build", flush=True)
    random = np.random.default_rng(zlib.crc32(name.encode()))
    images = random.standard_normal((BATCH, 3, side, side)).astype(np.float32)
    labels = random.integers(0, 1000, BATCH).astype(np.int32)
    network.set_train(False)
    results = {"output": first(network(ms.Tensor(images))).asnumpy()}
    print("stage output", flush=True)
    np.savez(folder / f"{name}.{peer}.npz", **results)

    results["losses"] = train(network, images, labels)
    print("stage train", results["losses"], flush=True)
    if int(moves):
        results["moved"] = [
            train(model(name, folder, peer), moved(images, seed), labels) for seed in range(int(moves))
        ]
    np.savez(folder / f"{name}.{peer}.npz", **results)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
