"""One token after the other from the GPT of examples/gpt.py, as peers/torch_models.py generates them.

generate.py BATCH THREADS STEPS, with as many threads as OMP_NUM_THREADS says: one line of JSON.
"""

import importlib.util
import json
import resource
import sys
import time
from pathlib import Path

import muster
from muster import ops

EXAMPLE = Path(__file__).resolve().parents[1] / "examples/gpt.py"


def main() -> None:
    spec = importlib.util.spec_from_file_location("gpt", EXAMPLE)
    gpt = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpt)
    muster.set_seed(1)
    net = gpt.GPT(words=65, block=256, layers=6, width=384, heads=6, dropout=0.1)
    net.set_train(False)

    @muster.jit
    def step(token, place, caches):
        scores, caches = net.next(token, place, caches)
        return ops.argmax(scores), caches

    caches, token, tokens, seconds = net.empty_caches(), muster.Tensor(0, muster.int32), [], []
    for place in range(min(254, 2 + int(sys.argv[3]))):
        begin = time.perf_counter()
        found, caches = step(token, muster.Tensor(place, muster.int32), caches)
        token = muster.Tensor(found.item(), muster.int32)
        seconds.append(time.perf_counter() - begin)
        tokens.append(token.item())
    ids = [0, *tokens[:-1]]
    expected = net(muster.Tensor([ids], muster.int32)).asnumpy()[0].argmax(-1)
    print(
        json.dumps(
            {
                "seconds": seconds[2:],
                "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "right": expected.tolist() == tokens,
                "parameters": sum(p.size for p in net.trainable_params()),
            }
        )
    )


if __name__ == "__main__":
    main()
