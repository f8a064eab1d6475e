#!/usr/bin/env python3
"""What layouts cost, and whether that was told beforehand.

./dev bench parallel [--workers 2 4] [--rounds 3] [--megabytes 1024] [--only predicted]

predicted: nets over every plan of `muster plan`, in turn: the error of the predicted step, and the chosen
plan over the fastest that was measured. A measured step has some Python in it, which is not predicted.
zero: what a worker holds at each level beside the arithmetic, and the step of each level over plain data
parallel, four workers. mesh: eight workers over one process with two threads. stages: the same as samples,
weights and stages at once, and two stages with a batch in parts. convert: a checkpoint cut for two
workers. Losses are compared first, with those of one process, or of level 0.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from contenders import WrongAnswerError

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
MUSTER = str(BUILD / "apps/muster/muster")
SCRIPT = str(ROOT / "benchmarks/parallel_net.py")
# What parallel_net.py is given for a transformer of 25.7 M parameters.
LARGE = {
    "NET": "transformer",
    "WIDTH": "512",
    "BLOCKS": "8",
    "LENGTH": "64",
    "BATCH": "16",
    "STEPS": "12",
}
# The nets whose steps are predicted: sizes of a first try, and of a day's work.
NETS = (
    {"NET": "mlp"},
    {"NET": "mlp", "WIDTH": "512", "BATCH": "128"},
    {"NET": "mlp", "WIDTH": "1024", "BATCH": "64"},
    {"NET": "convolution"},
    {"NET": "convolution", "BATCH": "128"},
    {"NET": "transformer"},
    {"NET": "transformer", "WIDTH": "512", "BLOCKS": "4", "LENGTH": "64", "BATCH": "16"},
)


def call(command: list[str], **settings: str) -> str:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # `muster run` takes its python3
        "PYTHONPATH": str(BUILD / "python"),
        **settings,
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise WrongAnswerError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


class Answer:
    """What a training prints."""

    def __init__(self, output: str) -> None:
        self.losses = [float(loss) for loss in re.findall(r"\bloss (\S+)", output)]
        self.step = float(re.findall(r"median_step_seconds (\S+)", output)[0])
        self.held = tuple(map(int, re.findall(r"held (\d+) (\d+)", output)[0]))


def run(workers: int, **settings: str) -> Answer:
    with tempfile.TemporaryDirectory() as logs:
        return Answer(call([MUSTER, "run", "-n", str(workers), "--log-dir", logs, SCRIPT], **settings))


def check(answer: Answer, right: Answer, what: str) -> None:
    # Of later steps rounding has made something else, where sums are split.
    first = itertools.islice(zip(answer.losses, right.losses, strict=True), 8)
    close = (abs(a - b) <= 1e-3 * abs(b) for a, b in first)
    if not all(close):
        raise WrongAnswerError(
            f"{what}: other losses than one process: {answer.losses[:5]}, {right.losses[:5]}"
        )


def key_of(plan: dict) -> str:
    return f"{plan['data']},{plan['model']},{plan['zero']}"


def name_of(net: dict[str, str]) -> str:
    sizes = (f"{name.lower()} {value}" for name, value in net.items() if name != "NET")
    return ", ".join([net["NET"], *sizes])


def measured_plans(plans: list[dict], workers: int, net: dict[str, str], rounds: int) -> list[float]:
    """The median step of each plan, in seconds: by turns, so that a busy minute hits all of them."""
    right = run(1, **net)
    times: list[list[float]] = [[] for _ in plans]
    for _ in range(rounds):
        for plan, each in zip(plans, times, strict=True):
            answer = run(workers, **net, LAYOUT=key_of(plan))
            check(answer, right, f"{name_of(net)} as {key_of(plan)}")
            each.append(answer.step)
    return [statistics.median(each) for each in times]


def predicted(options: argparse.Namespace) -> None:
    errors, chosen = [], []
    print("| net | workers | plan | predicted | measured | error |\n| --- | --- | --- | --- | --- | --- |")
    for net, workers in itertools.product(NETS, options.workers):
        found = call([MUSTER, "plan", "-n", str(workers), "--json", "--measure", SCRIPT], **net)
        plans = json.loads(found.splitlines()[-1])["plans"]
        steps = measured_plans(plans, workers, net, options.rounds)
        for plan, step in zip(plans, steps, strict=True):
            errors.append(abs(plan["step_s"] - step) / step)
            print(
                f"| {name_of(net)} | {workers} | {key_of(plan)} | {plan['step_s'] * 1e3:.2f} ms "
                f"| {step * 1e3:.2f} ms | {100 * errors[-1]:.0f} % |",
                flush=True,
            )
        chosen.append(steps[0] / min(steps))
    median, worst = 100 * statistics.median(errors), 100 * max(errors)
    print(f"error: median {median:.0f} %, worst {worst:.0f} % of {len(errors)} pairs (wanted: 10 %, 25 %)")
    print(f"chosen over the fastest: {', '.join(f'{each:.2f}' for each in chosen)} (wanted: 1.05)")


def zero(options: argparse.Namespace) -> None:
    print(
        "| Zero, 4 workers | parameters | state | arithmetic | step over level 0 |\n"
        "| --- | --- | --- | --- | --- |"
    )
    for name, net in {"mlp": {"NET": "mlp"}, "transformer of 25.7 M": LARGE}.items():
        zero_levels(options, name, net)


def zero_levels(options: argparse.Namespace, name: str, net: dict[str, str]) -> None:
    workers = 4
    answers: list[list[Answer]] = [[] for _ in range(4)]  # by level
    for _ in range(options.rounds):
        for level, rounds in enumerate(answers):
            rounds.append(run(workers, **net, LAYOUT=f"zero {level}"))
            # Of rank 0's rows, which one process does not print.
            if rounds[-1].losses != answers[0][0].losses:
                raise WrongAnswerError(f"Zero {level} has other losses than data parallel")
    steps = [statistics.median(each.step for each in rounds) for rounds in answers]
    whole_net, whole_state = answers[0][0].held
    for level, rounds in enumerate(answers):
        held_net, held_state = rounds[0].held
        wanted = (whole_net / (workers if level == 3 else 1), whole_state / (workers if level else 1))
        print(
            f"| {name}, level {level} | {held_net} B | {held_state} B | {wanted[0]:.0f} B, {wanted[1]:.0f} B "
            f"| {steps[level] / steps[0]:.2f} of {steps[0] * 1e3:.1f} ms |",
            flush=True,
        )


def mesh(options: argparse.Namespace) -> None:
    settings = {"NET": "transformer", "WIDTH": "512"}
    alone = [run(1, **settings, OMP_NUM_THREADS="2") for _ in range(options.rounds)]
    divided = [run(8, **settings, LAYOUT="4,2,1") for _ in range(options.rounds)]
    check(divided[0], alone[0], "data=4, model=2, zero=1")
    one, eight = (statistics.median(each.step for each in answers) for answers in (alone, divided))
    print(
        f"8 workers as data=4, model=2, Zero 1: {eight * 1e3:.1f} ms, one process {one * 1e3:.1f} ms: "
        f"{eight / one:.2f}"
    )


def median_of(rounds: int, workers: int, threads: int, layout: str) -> Answer:
    answers = [
        run(workers, **LARGE, LAYOUT=f"stages {layout}", OMP_NUM_THREADS=str(threads)) for _ in range(rounds)
    ]
    answers[0].step = statistics.median(each.step for each in answers)
    return answers[0]


def stages(options: argparse.Namespace) -> None:
    alone = median_of(options.rounds, 1, 2, "1,1,1,1")
    divided = median_of(options.rounds, 8, 1, "2,2,2,1")
    check(divided, alone, "data=2, model=2, stages=2")
    print(
        f"transformer of {alone.held[0] / 4e6:.1f} M, 8 workers as data=2, model=2, stages=2: "
        f"{divided.step * 1e3:.0f} ms, one process {alone.step * 1e3:.0f} ms: "
        f"{divided.step / alone.step:.2f} (wanted: 1.15)"
    )
    one_thread = median_of(options.rounds, 1, 1, "1,1,1,1")
    for parts in (1, 2, 4, 8):
        staged = median_of(options.rounds, 2, 1, f"1,1,2,{parts}")
        check(staged, alone, f"two stages, {parts} parts")
        print(
            f"two stages, {parts} parts of a batch: {staged.step * 1e3:.0f} ms, half of one process's step "
            f"{one_thread.step * 500:.0f} ms: {2 * staged.step / one_thread.step:.2f} "
            f"(wanted: {(parts + 1) / parts + 0.05:.2f})"
        )


def convert(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make = (
            "import numpy, sys, muster\n"
            "from muster import nn\n"
            "rows = int(sys.argv[1]) << 8\n"  # of 4 KiB
            "net = nn.SequentialCell(nn.Dense(1024, rows, has_bias=False, weight_init='zeros'))\n"
            "muster.save_checkpoint(net, sys.argv[2])\n"
        )
        call([sys.executable, "-c", make, str(options.megabytes), str(folder / "net.ckpt")])
        (folder / "mesh.toml").write_text('[mesh]\nmodel = 2\n\n[parameters]\n"0.weight" = ["model", "-"]\n')
        begin = time.perf_counter()
        process = subprocess.Popen(
            [
                MUSTER,
                "checkpoint",
                "convert",
                str(folder / "net.ckpt"),
                str(folder / "pieces"),
                "--to",
                str(folder / "mesh.toml"),
            ],
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise WrongAnswerError(f"the conversion failed with {status}")
        took = time.perf_counter() - begin
        print(
            f"conversion of {options.megabytes} MiB: {took:.1f} s, {options.megabytes / took:.0f} MiB/s, "
            f"{usage.ru_maxrss / 1024:.0f} MiB of memory"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4], help="of predicted")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=1024, help="of the checkpoint that is converted")
    parts = {"predicted": predicted, "zero": zero, "mesh": mesh, "stages": stages, "convert": convert}
    parser.add_argument("--only", choices=parts)
    options = parser.parse_args()
    for name, part in parts.items():
        if options.only in (None, name):
            part(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
