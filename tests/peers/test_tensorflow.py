"""Real TensorFlow under `--preset tensorflow`: parameter servers of both its generations."""

import re

from peers import free_port, needs, run, run_hosts

pytestmark = needs("TENSORFLOW")


def fitted(text: str) -> None:
    weight, bias = (float(re.search(rf"{name} (\S+)", text)[1]) for name in ("weight", "bias"))
    assert abs(weight - 3) < 0.1 and abs(bias - 1) < 0.1, text


def test_one_host_alone_runs_one_process(tmp_path):
    done = run("TENSORFLOW", "tensorflow_alone.py", "--log-dir", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "preset tensorflow, guessed: tensorflow_alone.py imports tensorflow" in done.stderr
    assert "[worker 0] sum 45" in done.stdout


def test_workers_train_through_a_parameter_server_that_ends_after_them(tmp_path):
    done = run("TENSORFLOW", "tensorflow_parameter_server.py", "-n", "2", "--log-dir", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    for worker in range(2):
        (line,) = re.findall(rf"\[worker {worker}\] worker {worker}: (weight .*)", done.stdout)
        fitted(line)


def test_hosts_that_run_the_same_line_train_together(tmp_path):
    flags = ("--scheduler", f"127.0.0.1:{free_port()}", "--log-dir", str(tmp_path))
    done = run_hosts("TENSORFLOW", "tensorflow_parameter_server.py", *flags)
    assert [host.returncode for host in done] == [0, 0], done
    for index, host in enumerate(done):
        (line,) = re.findall(rf"\[worker {index}\] worker {index}: (weight .*)", host.stdout)
        fitted(line)


def test_a_chief_on_one_of_two_hosts_releases_the_other(tmp_path):
    flags = ("--style", "chief", "--scheduler", f"127.0.0.1:{free_port()}", "--log-dir", str(tmp_path))
    done = run_hosts("TENSORFLOW", "tensorflow_chief.py", *flags)
    assert [host.returncode for host in done] == [0, 0], done
    (line,) = re.findall(r"\[chief\] 2 workers: (weight .*)", done[0].stdout)
    fitted(line)


def test_a_chief_hands_out_steps_to_workers_and_servers(tmp_path):
    flags = ("--style", "chief", "-n", "2", "--servers", "1", "--log-dir", str(tmp_path))
    done = run("TENSORFLOW", "tensorflow_chief.py", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = re.findall(r"\[chief\] 2 workers: (weight .*)", done.stdout)
    fitted(line)
