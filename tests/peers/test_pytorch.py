"""Real PyTorch (Gloo on the CPU) under `--preset pytorch`, in both styles."""

import re

from peers import free_port, needs, run, run_hosts

pytestmark = needs("TORCH")


def fitted(outputs: list[str], ranks: int) -> None:
    """All ranks are there, and have come to the same line, which is the right one."""
    lines = re.findall(r"rank (\d+) of (\d+): weight (\S+) bias (\S+)", "\n".join(outputs))
    assert sorted(int(rank) for rank, *_ in lines) == list(range(ranks)), outputs
    assert {int(size) for _, size, *_ in lines} == {ranks}
    ((weight, bias),) = {(weight, bias) for *_, weight, bias in lines}
    assert abs(float(weight) - 3) < 0.01 and abs(float(bias) - 1) < 0.01


def test_one_process_of_a_host_is_told_where_its_trainers_meet(tmp_path):
    done = run("TORCH", "torch_host.py", "--log-dir", str(tmp_path), arguments=("--cards", "2"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "preset pytorch, guessed: torch_host.py imports torch" in done.stderr
    fitted([done.stdout], ranks=2)


def test_one_process_on_each_of_two_hosts_is_told_its_rank(tmp_path):
    master = f"127.0.0.1:{free_port()}"
    done = run_hosts("TORCH", "torch_host.py", "--scheduler", master, "--log-dir", str(tmp_path))
    assert [host.returncode for host in done] == [0, 0], done
    fitted([host.stdout for host in done], ranks=2)


def test_one_process_on_each_slot_reads_variables(tmp_path):
    done = run("TORCH", "torch_slot.py", "-n", "3", "--log-dir", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    fitted([done.stdout], ranks=3)


def test_slots_of_two_hosts_read_variables(tmp_path):
    master = f"127.0.0.1:{free_port()}"
    done = run_hosts("TORCH", "torch_slot.py", "-n", "2", "--scheduler", master, "--log-dir", str(tmp_path))
    assert [host.returncode for host in done] == [0, 0], done
    fitted([host.stdout for host in done], ranks=4)
