"""`muster run` and workers that end with status 0 before they have joined the job."""

import os
import subprocess
import sys
import time

from job import free_port
from places import BUILD, COMPAT_PACKAGES, PACKAGES, SEARCH_PATH


def run(tmp_path, script, *command, workers=2, **variables):
    (tmp_path / "train.py").write_text(script)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
    environment |= {"PYTHONPATH": str(PACKAGES), "PATH": SEARCH_PATH, **variables}
    begin = time.monotonic()
    done = subprocess.run(
        [BUILD / "apps/muster/muster", "run", "-n", str(workers), *(command or ["train.py"])],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    print(done.stdout, done.stderr)  # shown when the test fails
    return done.returncode, done.stderr, time.monotonic() - begin


LEAVES = """
import os, sys
if os.environ.get("MS_NODE_ID") == "1":
    sys.exit(0)
import muster
muster.init()
"""


def test_a_worker_that_ends_before_init_is_named_with_the_line_to_add(tmp_path):
    code, text, seconds = run(tmp_path, LEAVES, workers=3)
    assert code != 0
    assert "worker 1 ended with status 0 before it had called init()" in text
    assert seconds < 60


def test_a_worker_of_a_mindspore_script_that_ends_before_init_is_named(tmp_path):
    script = LEAVES.replace("import muster", "from mindspore.communication import init").replace(
        "muster.", ""
    )
    packages = os.pathsep.join(map(str, (COMPAT_PACKAGES, PACKAGES)))
    code, text, seconds = run(tmp_path, script, PYTHONPATH=packages)
    assert "preset mindspore" in text
    assert code != 0
    assert "worker 1 ended with status 0 before it had called init()" in text
    assert seconds < 60


def test_a_job_whose_workers_end_at_different_times_is_not_disturbed(tmp_path):
    script = """
import select
import muster
muster.init()
if muster.get_rank() == 1:
    select.select([], [], [], 2.5)  # longer than the launcher waits until it tells of the other one
"""
    code, text, _ = run(tmp_path, script)
    assert code == 0
    assert "init()" not in text


def test_programs_that_do_not_use_muster_may_end_when_they_like(tmp_path):
    script = "import os, select\nif os.environ.get('MS_NODE_ID') != '1': select.select([], [], [], 2.5)\n"
    code, text, _ = run(tmp_path, script, sys.executable, "train.py")
    assert code == 0
    assert "init()" not in text


ALONE = "import muster\nprint(muster.__version__)\n"


def test_a_script_that_never_joins_its_job_is_told_once_and_ends_as_it_says(tmp_path):
    code, text, _ = run(tmp_path, ALONE)
    assert code == 0
    assert text.count("never called muster.init()") == 1
    code, text, _ = run(tmp_path, ALONE + "raise SystemExit(3)\n")
    assert code == 3


def test_a_script_that_never_joins_its_job_is_an_error_when_strict(tmp_path):
    code, text, _ = run(tmp_path, ALONE, MUSTER_STRICT="1")
    assert code != 0
    assert "never called muster.init()" in text


def test_nothing_is_told_of_scripts_that_join_fail_or_are_in_no_job(tmp_path):
    assert "never called" not in run(tmp_path, "import muster\nmuster.init()\n")[1]
    assert "never called" not in run(tmp_path, "import muster\n1 / 0\n")[1]
    assert "never called" not in run(tmp_path, "print()\n")[1]


def test_a_script_that_trains_without_init_is_stopped_in_every_process(tmp_path):
    script = """
import numpy as np
import muster
from muster import dataset, nn
net = nn.Dense(2, 1)
rows = dataset.NumpySlicesDataset((np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)), ["x", "y"])
muster.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(1, rows.batch(2))
"""
    code, text, _ = run(tmp_path, script)
    assert code != 0
    assert "muster.init()" in text


def test_the_other_hosts_hear_of_it_where_each_host_has_a_launcher(tmp_path):
    (tmp_path / "train.py").write_text(LEAVES)
    (tmp_path / "token").write_text("0123456789abcdef0123456789abcdef0123456789\n")
    (tmp_path / "token").chmod(0o600)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
    environment |= {"PYTHONPATH": str(PACKAGES), "PATH": SEARCH_PATH}
    command = [BUILD / "apps/muster/muster", "run", "-n", "1", "--nnodes", "2", "--token-file", "token"]
    command += ["--scheduler", f"127.0.0.1:{free_port()}"]
    launchers = [
        subprocess.Popen(
            [*command, "--node-rank", str(host), "train.py"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for host in range(2)
    ]
    try:
        text, _ = launchers[0].communicate(timeout=60)
        assert launchers[0].returncode != 0
        assert "worker 1 ended with status 0 before it had called init()" in text
    finally:
        for launcher in launchers:
            launcher.kill()
            launcher.wait()


SPAWNS = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
import muster

muster.init()

def double(number):
    return 2 * number

if __name__ == "__main__":
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        print(list(pool.map(double, range(3))))
"""


def test_a_process_that_imports_the_script_anew_is_told_where_init_belongs(tmp_path):
    code, text, _ = run(tmp_path, SPAWNS)
    assert code != 0
    assert "Put muster.init() and all that is the worker's own behind `if __name__ == '__main__':`" in text
    assert "duplicate id" not in text
    guarded = SPAWNS.replace("muster.init()\n", "").replace("    with", "    muster.init()\n    with")
    assert run(tmp_path, guarded)[0] == 0
