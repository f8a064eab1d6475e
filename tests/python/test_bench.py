"""The benchmark driver's own judgement: what counts as an answer, and what the table says."""

import sys

import places
import pytest

sys.path.insert(0, str(places.ROOT / "benchmarks"))

import contenders
import pipeline
import processes
import table


def losses(last, count=13):
    lines = [f"epoch: {epoch}, step: {10 * i}, loss is 2.3" for epoch in range(9) for i in range(count)]
    return "\n".join(lines + [f"epoch: 9, step: {10 * i}, loss is {last}" for i in range(count)])


JOB = contenders.Job(workers=2, rows=8000, digits=places.ROOT, omp_num_threads="1")


def test_accepts_losses_that_fall():
    contenders.check_losses(losses("0.9"), "worker_0", JOB)


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (losses("2.2"), "only fell to 2.2"),
        (losses("nan"), "no number"),
        (losses("0.9", count=12), "printed 120 losses, 130 were expected"),
        ("", "printed 0 losses"),
    ],
)
def test_refuses_a_job_that_did_not_train(output, complaint):
    with pytest.raises(contenders.WrongAnswerError, match=complaint):
        contenders.check_losses(output, "worker_0", JOB)


def placed_output(steps=6, last="0.4", accuracy="Accuracy is: {'Accuracy': 0.95}"):
    lines = []
    for epoch in range(1, 11):
        lines += [
            f"epoch: {epoch} step: {i}, loss is {last if i == steps else 2.3}" for i in range(1, steps + 1)
        ]
        lines += [f"Train epoch time: 60.000 ms, per step time: {9 if epoch == 1 else 2}.000 ms"]
    return "\n".join([*lines, accuracy])


def test_takes_the_figures_of_a_placed_job_from_what_it_printed():
    result = contenders.placed_result(12.0, placed_output(), [], 6 * 32)
    assert (result.seconds, result.step_seconds, result.accuracy) == (12.0, 0.002, 0.95)


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (placed_output(steps=5), "printed 50 losses, 60 were expected"),
        (placed_output(last="nan"), "no number"),
        (placed_output(accuracy=""), "no accuracy"),
    ],
)
def test_refuses_a_placed_job_that_did_not_train(output, complaint):
    with pytest.raises(contenders.WrongAnswerError, match=complaint):
        contenders.placed_result(12.0, output, [], 6 * 32)


def test_knows_what_overlapping_stages_can_reach_at_best():
    assert [pipeline.least_share(parts, 2) for parts in (1, 2, 4)] == [1, 0.75, 0.625]


def test_takes_the_time_of_a_pipeline_whose_workers_agree():
    output = "".join(f"rank {rank} loss {loss}\n" for rank in (0, 1) for loss in ("0x1p+1", "0x1p+0"))
    output += "rank 1 median_step_seconds 9\nrank 0 median_step_seconds 0.25\n"
    assert pipeline.answer(output, 2, 2) == (0.25, ["0x1p+1", "0x1p+0"])
    for wrong in (
        output.replace("rank 1 loss 0x1p+0", "rank 1 loss 0x1p+2"),
        output.replace("rank 1 loss", ""),
    ):
        with pytest.raises(contenders.WrongAnswerError, match=r"agree.*2 losses"):
            pipeline.answer(wrong, 2, 2)


def test_refuses_messages_of_other_sizes_than_it_asked_for():
    output = '{"program": "muster", "bytes": 1024, "median_us": 2.5, "mean_us": 9}\n'
    assert contenders.crossing_times(output, (1024,)) == {1024: 2.5e-6}
    with pytest.raises(contenders.WrongAnswerError, match="crossing of"):
        contenders.crossing_times(output, (1024, 65536))


def test_tells_exit_code_output_and_memory_of_every_process(tmp_path):
    commands = [
        processes.Command(
            "one", [sys.executable, "-c", "import os; print(os.environ['GIVEN'])"], {"GIVEN": "x"}
        ),
        processes.Command("two", [sys.executable, "-c", "import sys; sys.exit(3)"], {"HOME": None}),
    ]
    one, two = processes.run_together(commands, tmp_path)
    assert (one.name, one.exit_code, one.output) == ("one", 0, "x\n")
    assert one.peak_memory_bytes > 1 << 20 and one.seconds > 0
    assert (two.name, two.exit_code) == ("two", 3)


def test_ends_processes_that_do_not_end(tmp_path):
    commands = [processes.Command("stuck", [sys.executable, "-c", "import signal; signal.pause()"])]
    with pytest.raises(processes.StuckError, match="stuck did not end"):
        processes.run_together(commands, tmp_path, deadline_seconds=0.5)


def test_says_whether_muster_reached_its_target():
    medians = {
        "job 2": {"mindspore": 20.0, "torch": 8.7, "muster": 1.45},
        "all_reduce 1048576 2": {"mpi": 0.00058, "muster": 0.0003},
        "step 2": {"torch": 0.002},
        "placed accuracy": {"mindspore": 0.94, "muster": 0.91},
    }
    text = table.render(medians, {"muster": "Muster 1"}, "2 cores", 5)
    assert "| whole job, 2 workers | 20 s | 8.7 s | - | 1.45 s | 6.00 | <= 1.5 s | yes |" in text
    assert (
        "| all_reduce 1 MiB, 2 processes | - | - | 580 us | 300 us | 1.93 | <= 0.5 x Open MPI | NO |" in text
    )
    assert "| 0.9400 | - | - | 0.9100 |  | >= MindSpore - 0.02 | NO |" in text
    assert "| step, 2 workers | - | 2 ms | - | - |  | <= 150 us |  |" in text
