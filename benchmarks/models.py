#!/usr/bin/env python3
"""Training steps of today's models, and generation: Muster beside PyTorch and MindSpore, in turn.

    MUSTER_PEER_MINDSPORE=/path/to/python MUSTER_PEER_TORCH=/path/to/python ./dev bench models

All learn one batch again and again with AdamW and gradients clipped by their norm; the loss must fall, and
what is generated must be what the whole net says, before a figure counts. PyTorch runs eager and compiled,
with its scaled_dot_product_attention; MindSpore and Muster run the same script, in which attention is written
in several ops. A step is the median over all rounds; quote ratios, not times. The limit is the time that
products and convolutions take at the rate of a large product here, for generation that of reading all
parameters once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
DEADLINE_SECONDS = 900
TORCH = ("PyTorch", "compiled")


@dataclass(frozen=True)
class Row:
    """A model with its settings, and the share of the best PyTorch's time that is wanted."""

    title: str
    model: str
    batch: int
    steps: int
    target: float
    dtype: str = "float32"


ROWS = (
    Row("GPT, 0.8 M, block 64, batch 16", "gpt_small", 16, 30, 0.45),
    Row("GPT, 10.8 M, block 256, batch 8", "gpt", 8, 6, 0.70),
    Row("the same", "gpt", 8, 6, 0.60, "bfloat16"),
    Row("ViT-Base/16 at 224, batch 4", "vit", 4, 4, 0.75),
    Row("the same", "vit", 4, 4, 0.70, "bfloat16"),
    Row("BERT-base, length 128, batch 8", "bert", 8, 3, 0.75),
    Row("the same", "bert", 8, 3, 0.70, "bfloat16"),
    Row("Llama-like, 29 M, length 1,024, batch 2", "llama", 2, 4, 0.75),
    Row("the same", "llama", 2, 4, 0.70, "bfloat16"),
    Row("LSTM, 2 x 512, length 128, batch 32", "lstm", 32, 4, 0.75),
    Row("MobileNetV2 at 224, batch 16", "mobilenet_v2", 16, 6, 0.75),
    Row("EfficientNet-B0 at 224, batch 16", "efficientnet_b0", 16, 6, 0.75),
    Row("ConvNeXt-T at 224, batch 16", "convnext_t", 16, 3, 0.75),
    Row("generating, GPT 10.8 M, one token", "generate", 1, 200, 0.5),
)


def command(contender: str, row: Row) -> list[str]:
    values = [row.model, str(row.batch), "2", str(row.steps)]
    values += ["bfloat16"] if row.dtype == "bfloat16" else []
    if contender in TORCH:
        compiled = ["compile"] if contender == "compiled" else []
        return [os.environ["MUSTER_PEER_TORCH"], str(HERE / "peers/torch_models.py"), *values, *compiled]
    if row.model == "generate":
        return [sys.executable, str(HERE / "generate.py"), *values[1:]]
    python = sys.executable if contender == "Muster" else os.environ["MUSTER_PEER_MINDSPORE"]
    return [python, str(HERE / "peers/mindspore_models.py"), *values]


def runs(contender: str, row: Row) -> bool:
    """Whether the contender has such a row: MindSpore computes no bfloat16 on CPUs and keeps no cache."""
    if contender == "MindSpore":
        return row.dtype == "float32" and row.model != "generate"
    return contender != "compiled" or row.model != "generate"


def run(contender: str, row: Row) -> dict | None:
    print(f"  {contender:10} {row.title} {row.dtype}", file=sys.stderr, flush=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    if contender == "Muster":
        environment["PYTHONPATH"] = f"{ROOT / 'build/python_compat'}:{ROOT / 'build/python'}"
    try:
        ended = subprocess.run(
            command(contender, row), capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False,
            env=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"    FAILED: not done within {DEADLINE_SECONDS} s", file=sys.stderr)
        return None
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if ended.returncode != 0 or not lines or not json.loads(lines[-1])["right"]:
        print(f"    FAILED ({ended.returncode}): {ended.stderr[-800:]}", file=sys.stderr)
        return None
    return json.loads(lines[-1])


def limit_seconds(row: Row, found: dict) -> float:
    if row.model == "generate":
        return 4 * found["parameters"] / found["copied"]
    return found["floating_point_operations"] / found["peak"]


def text(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def line(row: Row, results: dict[str, list[dict]]) -> str:
    medians = {
        name: statistics.median(second for result in found for second in result["seconds"])
        for name, found in results.items()
        if found
    }
    peaks = {name: max(result["peak_bytes"] for result in found) for name, found in results.items() if found}
    limits = [limit_seconds(row, found) for found in results.get("PyTorch", [])]
    ours, theirs = medians.get("Muster"), [medians[name] for name in TORCH if name in medians]
    share = ours / min(theirs) if ours and theirs else None
    memory = " / ".join(
        f"{peaks[name] / 2**20:.0f}" if name in peaks else "-" for name in ("PyTorch", "Muster")
    )
    cells = [
        row.title,
        row.dtype,
        *(text(medians.get(name)) for name in ("MindSpore", *TORCH, "Muster")),
        text(statistics.median(limits)) if limits else "-",
        f"{share:.2f}" if share else "-",
        f"{row.target:g}",
        "" if share is None else "yes" if share <= row.target else "NO",
        memory,
    ]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--models", help=f"only these, by commas: {', '.join(sorted({r.model for r in ROWS}))}"
    )
    parser.add_argument(
        "--dtype", choices=sorted({row.dtype for row in ROWS}), help="only rows of this; both without"
    )
    options = parser.parse_args()
    wanted = options.models.split(",") if options.models else [row.model for row in ROWS]
    unknown = set(wanted) - {row.model for row in ROWS}
    if unknown:
        parser.error(f"no model {', '.join(sorted(unknown))}")
    peers = {"MindSpore": ("MindSpore",), "Torch": TORCH}
    contenders = [
        name
        for peer, names in peers.items()
        for name in names
        if os.environ.get(f"MUSTER_PEER_{peer.upper()}")
    ]
    contenders.append("Muster")
    failed = False
    print(
        "| a step, 2 threads | dtype | MindSpore | PyTorch | compiled | Muster | limit | of the best PyTorch "
        "| wanted | reached | MiB, PyTorch / Muster |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in ROWS:
        if row.model not in wanted or (options.dtype and row.dtype != options.dtype):
            continue
        results = defaultdict(list)
        for _ in range(options.rounds):
            for contender in contenders:
                if not runs(contender, row):
                    continue
                result = run(contender, row)
                failed = failed or result is None
                results[contender] += [result] if result else []
        print(line(row, results), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
