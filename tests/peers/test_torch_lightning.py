"""Trainings of Lightning whose ranks are killed end with the bits of one that nobody disturbed."""

import functools
import tempfile
from pathlib import Path

import pytest
from peers import ROOT, needs
from test_torch_recovery import Job

pytestmark = needs("LIGHTNING")


class LightningJob(Job):
    peer, script = "LIGHTNING", ROOT / "tests/peers/torch_backend/lightning_fit.py"

    def outcome(self) -> dict:
        """What each rank has in the end, and the loss of each batch, which one that is repeated has again."""
        assert self.code == 0, self.text()
        return {
            "ends": sorted(self.found(r"rank \d+ end \S+ rate \S+")),
            "losses": sorted(set(self.found(r"rank \d+ epoch \d+ batch \d+ loss \S+"))),
        }


def run(folder: Path, *options: str) -> LightningJob:
    return LightningJob(folder, 2, f"folder={folder / 'checkpoints'}", *options).end()


@functools.cache
def unbroken(*options: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), *options).outcome()
    assert len(found["ends"]) == 2
    return found


@pytest.mark.parametrize(
    ("hurts", "options"),
    [
        ("1:0:0:2:forward", ()),
        ("1:0:0:1:end", ()),  # where the others agree that a batch is done
        ("0:0:1:0:begin", ()),  # rank 0, and the first batch of an epoch
        ("1:0:0:0:validation,0:0:1:4:end", ()),  # behind the last batch of an epoch, each time
        ("1:0:0:0:sanity", ()),  # before anything is kept
        ("0:0:0:3:forward", ("accumulate=2", "workers=1")),  # in the middle of a sum of gradients
        ("1:0:1:2:forward", ("workers=1", "persistent=1")),
        ("1:0:1:2:forward", ("workers=1", "generator=1")),
        ("1:0:0:2:forward", ("workers=1", "generator=1", "every=2")),
        ("1:0:0:0:sanity", ("workers=1", "generator=1")),
        ("1:0:1:2:forward", ("sampler=own",)),
        ("1:0:1:2:forward", ("sampler=weighted",)),
        ("1:0:1:3:forward", ("stream=1",)),
        ("0:0:0:4:begin,1:0:1:1:end", ("stream=1",)),
        ("0:0:1:3:forward,1:0:1:3:forward", ("stream=1", "save=2")),
        ("1:0:1:4:forward", ("stream=1", "keep=3")),
        ("0:0:1:2:forward,1:0:1:2:forward", ("save=2",)),
        ("1:0:1:3:forward,1:1:1:3:forward", ("keep=3",)),  # it comes back, and dies in what is repeated
    ],
    ids=[
        "middle",
        "agreement",
        "begin",
        "validation",
        "sanity",
        "accumulate",
        "persistent",
        "generator",
        "later-validation",
        "nothing-kept",
        "permutations",
        "weighted",
        "stream",
        "stream-first-and-last",
        "stream-all",
        "stream-repeated",
        "all",
        "again",
    ],
)
def test_ranks_that_are_killed_change_nothing(tmp_path, hurts, options):
    job = run(tmp_path, f"hurt={hurts}", *options)
    kept = [option for option in options if not option.startswith(("save", "keep"))]
    assert job.outcome() == unbroken(*kept)
    assert len(job.found("is hurt")) == len(hurts.split(","))
    assert job.found("all 2 ranks go on from") and not job.found("has other rows")


def test_rows_that_are_not_the_same_when_they_are_read_again_are_told_of(tmp_path):
    """They wait in the dataset since the batch before, whose dropout drew from the same generator."""
    job = run(tmp_path, "hurt=1:0:1:3:forward", "stream=4")
    assert job.code == 0, job.text()
    told = r"batch 3 of epoch 1 has other rows where rank (\d) reads it again: its loader keeps rows"
    assert sorted(job.found(told)) == ["0", "1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("version=2.5.6",),
            r"needs Lightning 2\.6 or newer, this is 2\.5\.6: pip install 'lightning>=2\.6'",
        ),
        (("backend=gloo",), r"needs Trainer\(strategy=DDPStrategy\(process_group_backend=\"muster\"\)\)"),
    ],
    ids=["old", "gloo"],
)
def test_what_cannot_recover_is_refused(tmp_path, options, message):
    job = LightningJob(tmp_path, 2, f"folder={tmp_path}", *options)
    try:
        job.read(message)
    finally:
        job.stop()
