"""Jobs of torchrun over Muster: a group that is started again, over the store of the one before."""

import os
import subprocess

from peers import ROOT, SECONDS_MAX, environment, free_port, needs

pytestmark = needs("TORCH")
SCRIPT = """
import os
import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("muster")
rank, restarts = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
begin = torch.load("snapshot.pt")["step"] if os.path.exists("snapshot.pt") else 0
some = dist.new_group([0, 1])
for step in range(begin, 6):
    total = torch.tensor([step])
    dist.all_reduce(total, group=some)
    dist.monitored_barrier()
    if rank == 0:
        torch.save({"step": step + 1}, "snapshot.pt")
    dist.barrier()
    if step % 2 and restarts < 2 and rank == restarts:
        os._exit(7)
print(f"rank {rank}, restart {restarts}, from step {begin}: {int(total)}", flush=True)
dist.destroy_process_group()
"""


def test_a_group_that_torchrun_starts_again_meets_over_the_store_of_the_one_before(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "2"]
    rendezvous = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{free_port()}"]
    done = subprocess.run(
        [os.environ["MUSTER_PEER_TORCH"], *torchrun, *rendezvous, "train.py"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT / "build/python"), OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))
    assert told == [f"rank {rank}, restart 2, from step 4: 10" for rank in range(2)]
