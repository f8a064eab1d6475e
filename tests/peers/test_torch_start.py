"""The hint of a job of PyTorch whose ranks each import it for themselves."""

import pytest
from peers import ROOT, needs, run

pytestmark = needs("TORCH")
SCRIPT = """
import muster.torch._start as start
start._LONG_S = {long}
import torch.distributed as dist
dist.init_process_group("muster")
dist.barrier()
dist.new_group()
dist.destroy_process_group()
"""


@pytest.mark.timeout(600)
def test_many_ranks_that_import_for_long_are_told_once_what_would_be_faster(tmp_path):
    script = tmp_path / "train.py"
    for ranks, long, told in ((4, 0.001, 1), (4, 1e6, 0), (2, 0.001, 0)):
        script.write_text(SCRIPT.format(long=long))
        flags = ("-n", str(ranks), "--preset", "pytorch", "--log-dir", str(tmp_path / "logs"))
        done = run("TORCH", str(script), *flags, PYTHONPATH=str(ROOT / "build/python"))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr.count("muster run --preload torch,torch._dynamo imports it once") == told
