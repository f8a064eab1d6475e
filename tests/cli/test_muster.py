"""The program `muster` as people use it: real processes, no training."""

import contextlib
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/apps/muster/muster"
TELLS = """
import os, sys
names = ["MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM", "MS_SCHED_PORT"]
print(*[os.environ[name] for name in names], *sys.argv[1:])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name in [name for name in os.environ if name.startswith("MS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def muster(*arguments: str, program: Path = PROGRAM, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def write_script(folder: Path, text: str) -> str:
    (folder / "script.py").write_text(text)
    return "script.py"


def test_run_starts_a_scheduler_and_workers_with_their_roles_and_the_scripts_own_arguments(folder):
    done = muster("run", "-n", "2", "--port", "23456", write_script(folder, TELLS), "-n", "7", "--epochs")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "[scheduler] MS_SCHED scheduler 2 23456 -n 7 --epochs",
        "[worker 0] MS_WORKER 0 2 23456 -n 7 --epochs",
        "[worker 1] MS_WORKER 1 2 23456 -n 7 --epochs",
    ]


DIES_ONCE = """
import os, pathlib, signal
print(os.environ["MS_ENABLE_RECOVERY"], os.environ["MUSTER_MAX_RESTARTS"], os.environ["MS_RECOVERY_PATH"])
died = pathlib.Path("died")
if os.environ["MS_ROLE"] == "MS_WORKER" and not died.exists():
    died.touch()
    os.kill(os.getpid(), signal.SIGKILL)
print("came back as", os.environ["MS_NODE_ID"])
"""


def test_run_takes_a_separator_before_the_script_and_leaves_its_own_alone(folder):
    script = write_script(folder, TELLS)
    done = muster("run", "-n", "1", "--", script, "--x", "--", "y")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\[worker 0\] .* --x -- y$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("stream", [1, 2])
def test_run_goes_on_where_a_standard_stream_is_closed(folder, stream):
    (folder / "train.py").write_text("open(f'ran-{__import__(\"os\").environ[\"MS_NODE_ID\"]}', 'w')")
    done = subprocess.run(
        ["bash", "-c", f"exec '{PROGRAM}' run -n 1 train.py {stream}>&-"],
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert (folder / "ran-0").exists()


def test_run_starts_dead_processes_again_and_turns_recovery_on(folder):
    script = write_script(folder, DIES_ONCE)
    done = muster("run", "-n", "1", "--max-restarts", "2", "--log-dir", "logs", script)
    assert done.returncode == 0, done.stderr
    assert f"[worker 0] 1 2 {folder}/logs/recovery\n" in done.stdout
    assert "[worker 0] came back as 0\n" in done.stdout
    assert re.search(
        r"worker 0 \(pid \d+\) was killed by signal 9 \(Killed\): starting it again \(1 of 2\)", done.stderr
    )
    assert "came back" in (folder / "logs/worker_0.log").read_text()


def test_run_keeps_a_log_of_each_process(folder):
    done = muster("run", "-n", "1", "--log-dir", "logs/first", write_script(folder, TELLS))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (folder / "logs/first").iterdir()) == [
        "history.jsonl",
        "job.toml",
        "repository.json",
        "run.json",
        "scheduler.log",
        "worker_0.log",
    ]
    assert (folder / "logs/first/worker_0.log").read_text().startswith("MS_WORKER 0 1")


@pytest.mark.parametrize("flags", [(), ("--log-dir", "muster-logs/first")], ids=["ours", "named"])
def test_run_tells_why_there_can_be_no_folder_for_the_logs(folder, flags):
    (folder / "muster-logs").touch()
    done = muster("run", "-n", "1", *flags, write_script(folder, TELLS))
    assert done.returncode == 2
    assert "Not a directory" in done.stderr
    assert "--log-dir" in done.stderr


def test_run_tells_that_no_worker_has_recorded_a_profile(folder):
    job = muster("run", "-n", "2", "--profile", "traces", write_script(folder, "print('no Muster here')"))
    assert job.returncode == 0
    assert "--profile traces: no worker of this host has recorded anything" in job.stderr


def test_run_repeats_the_message_of_the_script_that_failed_last_and_exits_with_its_code(folder):
    script = write_script(
        folder, "import os, sys\nif os.environ['MS_NODE_ID'] == '1': sys.exit('no such column')"
    )
    done = muster("run", "-n", "2", script)
    assert done.returncode == 1
    assert done.stderr.endswith(
        "muster: the job failed: worker 1 exited with code 1; its last lines:\n[worker 1] no such column\n"
    )


def test_run_shows_what_all_processes_warn_of_and_fail_with_once(folder):
    script = write_script(folder, "import warnings\nwarnings.warn('be careful')\nint('x y')\n")
    done = muster("run", "-n", "3", "--log-dir", "logs", script)
    assert done.returncode == 1
    assert done.stderr.count("UserWarning: be careful") == 1
    assert done.stderr.count("ValueError: invalid literal") == 1
    assert done.stderr.count("failed the same way") == 1
    assert done.stderr.rstrip().endswith("'x y'")
    assert all("ValueError" in log.read_text() for log in (folder / "logs").glob("*.log"))


def test_run_finds_a_free_port_for_each_of_two_jobs_at_once(folder):
    # Each job waits for a line of the other, so both run at the same time.
    os.mkfifo(folder / "to_first")
    os.mkfifo(folder / "to_second")
    script = write_script(
        folder,
        """
import os, sys
if os.environ["MS_ROLE"] == "MS_SCHED":
    mine, other = sys.argv[1:]
    ends = [open(name, mode) for name, mode in sorted([(mine, "r"), (other, "w")])]
    reader, writer = sorted(ends, key=lambda end: end.mode)
    print(os.environ["MS_SCHED_PORT"], file=writer, flush=True)
    assert reader.readline() != os.environ["MS_SCHED_PORT"] + "\\n"
""",
    )
    jobs = [
        subprocess.Popen([str(PROGRAM), "run", "-n", "1", script, *names], stderr=subprocess.PIPE, text=True)
        for names in (["to_first", "to_second"], ["to_second", "to_first"])
    ]
    for job in jobs:
        _, errors = job.communicate(timeout=60)
        assert job.returncode == 0, errors


def test_run_ends_every_process_at_ctrl_c(folder):
    script = write_script(folder, "import os, signal\nprint('pid', os.getpid())\nsignal.pause()")
    job = subprocess.Popen(
        [str(PROGRAM), "run", "-n", "2", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    watched = [os.pidfd_open(int(job.stdout.readline().split()[-1])) for _ in range(3)]
    job.send_signal(signal.SIGINT)
    assert job.wait(timeout=60) == 128 + signal.SIGINT
    for pidfd in watched:
        with pytest.raises(ProcessLookupError):  # ended and reaped
            signal.pidfd_send_signal(pidfd, 0)
        os.close(pidfd)


def test_run_on_a_terminal_shows_an_unfinished_line_until_it_is_complete(folder):
    os.mkfifo(folder / "go_on")
    script = write_script(
        folder,
        """
import os
if os.environ["MS_ROLE"] == "MS_WORKER":
    print("half", end="", flush=True)
    open("go_on").read()
    os.write(1, b"\\rwhole\\n")
""",
    )
    ours, theirs = pty.openpty()
    job = subprocess.Popen(
        [str(PROGRAM), "run", "-n", "1", script], stdout=theirs, stderr=subprocess.DEVNULL, text=True
    )
    os.close(theirs)
    shown = b""
    while not shown.endswith(b"[worker 0] half"):
        shown += os.read(ours, 1000)
    (folder / "go_on").write_text("now")
    shown = b""
    with contextlib.suppress(OSError):  # a terminal that nobody has open any more
        while part := os.read(ours, 1000):
            shown += part
    assert job.wait(timeout=60) == 0
    os.close(ours)
    assert b"\r\x1b[K[worker 0] whole\r\n" in re.sub(rb"\x1b\[\d*m", b"", shown)
    assert b"half" not in shown


def test_run_on_a_terminal_shows_a_line_that_is_drawn_over_and_over_on_standard_error(folder):
    os.mkfifo(folder / "go_on")
    script = write_script(
        folder,
        """
import os
if os.environ["MS_ROLE"] == "MS_WORKER":
    for step in range(3):
        os.write(2, f"\\rstep {step}\\033[K".encode())
    open("go_on").read()
    os.write(2, b"\\n")
""",
    )
    ours, theirs = pty.openpty()
    job = subprocess.Popen(
        [str(PROGRAM), "run", "-n", "1", script], stdout=theirs, stderr=subprocess.PIPE, text=True
    )
    os.close(theirs)
    shown = b""
    while not shown.endswith(b"[worker 0] step 2"):
        shown += os.read(ours, 1000)
    (folder / "go_on").write_text("now")
    _, errors = job.communicate(timeout=60)
    os.close(ours)
    assert job.returncode == 0
    assert "[worker 0] step 2" in errors
    assert "step 1" not in errors


def test_run_uses_the_python_of_the_environment_that_muster_belongs_to(folder):
    binaries = folder / "an environment/bin"
    binaries.mkdir(parents=True)
    (binaries.parent / "pyvenv.cfg").touch()
    (binaries / "muster").symlink_to(PROGRAM)
    python = binaries / "python3"
    python.write_text("#!/bin/sh\necho its own python runs $1\n")
    python.chmod(0o755)
    script = write_script(folder, "")
    done = muster("run", "-n", "1", script, program=binaries / "muster")
    assert "[worker 0] its own python runs script.py\n" in done.stdout

    path = f"{binaries}:{os.environ['PATH']}"
    done = muster("run", "-n", "1", script, program=Path("muster"), env={**os.environ, "PATH": path})
    assert "[worker 0] its own python runs script.py\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "./train"], "muster run: say how many workers to start on this host, for example: -n 4\n"),
        (["run", "./train", "-n", "4"], "for example: -n 4 before the script\n"),
        (
            ["run", "-n", "2"],
            "muster run: name what to run, for example: muster run -n 4 train.py --epochs 10\n",
        ),
        (["run", "-n", "2", "--prot", "1"], "there is no option '--prot': did you mean '--port'?"),
        (["run", "-n", "2", "--prot=1"], "there is no option '--prot': did you mean '--port'?"),
        (["run", "-n", "2", "--weather", "a"], "muster run: there is no option '--weather'\n"),
        (["run", "--worker_num=4", "a.py"], "there is no option '--worker_num': -n NUMBER is the number of"),
        (["run", "--nproc-per-node", "2", "a.py"], "there is no option '--nproc-per-node': -n NUMBER is the"),
        (["run", "-np", "2", "a.py"], "-np is -n here"),
        (["run", "-n", "auto", "a.py"], "-n auto: write how many workers to start on each host, as -n"),
        (["run", "-n", "2", "--nnodes", "1:2", "a.py"], "--nnodes 1:2: a job keeps its size, write one"),
        (["run", "-n", "2", "-r", "3", "a.py"], "there is no option '-r': all output is printed and logged"),
        (["run", "-n", "2", "-m", "jobs/a.py"], "a module is named without .py: -m jobs.a, or"),
        (["run", "-n", "2", "--", "no.py", "--x"], "muster run: there is no script 'no.py' in "),
        (["explain", "--trce", "a.py"], "did you mean '--trace'?"),
        (["k8s", "--imagee", "a"], "did you mean '--image'?"),
        (["status", "--jsn"], "did you mean '--json'?"),
        (["certs", "new", "--host", "a"], "did you mean '--hosts'?"),
        (["rnu", "-n", "2", "train.py"], "muster: there is no subcommand 'rnu': did you mean 'run'?\n"),
        (["version", "-x"], "there is no option '-x'\n"),
        (["weather"], "muster: there is no subcommand 'weather'\n"),
        (["certs", "nwe"], "muster certs: there is no subcommand 'nwe': did you mean 'new'?\n"),
        (["help", "rnu"], "muster help: there is no subcommand 'rnu': did you mean 'run'?\n"),
        (["--verison"], "muster: there is no option '--verison': did you mean '--version'?\n"),
        (["version", "1"], "muster version: '1' is one word too many\n"),
        (["run", "-n", "2", "no.py"], "muster run: there is no script 'no.py' in "),
        (["run", "-n", "two", "a"], "Try: muster run --help\n"),
        ([], "Usage: muster "),
        (["certs"], "Usage: muster certs "),
    ],
)
def test_a_command_line_that_cannot_be_used_says_what_to_do(folder, arguments, message):
    (folder / "train").write_text("#!/bin/sh")
    (folder / "train").chmod(0o755)
    done = muster(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_run_says_which_program_cannot_be_started(folder):
    (folder / "notes.txt").write_text("no program")
    (folder / "jobs").mkdir()
    (folder / "jobs/__main__.py").touch()
    for program, code, words in [
        ("jobs", 2, "'jobs' is a package of Python, and no program: -m jobs"),
        (".", 2, "there is no program '.' in PATH"),
        ("", 2, "the name of the script or program is empty"),
        ("./no-such-program", 2, "there is no program './no-such-program'"),
        ("./notes.txt", 2, "'./notes.txt' is not executable: make it so (chmod +x ./notes.txt)"),
        (".//", 2, "'.//' is a folder: name a script or a program"),
        ("no-such-program", 2, "there is no program 'no-such-program' in PATH"),
    ]:
        done = muster("run", "-n", "1", program)
        assert (done.returncode, words in done.stderr) == (code, True), done.stderr


def test_run_names_the_file_that_was_meant_before_it_starts_a_process(folder):
    (folder / "jobs").mkdir()
    for name in ["train.py", "jobs/train.py", "jobs/__init__.py", "start"]:
        (folder / name).touch()
    (folder / "start").chmod(0o755)
    for words, meant in [
        (["trian.py"], "train.py"),
        (["jobs/trian.py"], "jobs/train.py"),
        (["train"], "train.py"),
        (["start"], "./start"),
        (["satrt"], "./start"),
        (["./satrt"], "./start"),
        (["ehco", "a"], "echo"),
        (["python3", "-u", "trian.py"], "train.py"),
        (["-m", "jobs.trian"], "jobs/train.py"),
        (["-m", "trian"], "train.py"),
    ]:
        done = muster("run", "-n", "3", *words)
        assert f"did you mean '{meant}'?" in done.stderr, (words, done.stderr)
        assert (done.returncode, "starting" in done.stderr) == (2, False), done.stderr


def test_run_starts_a_module_with_its_own_arguments(folder):
    (folder / "jobs").mkdir()
    (folder / "jobs/train.py").write_text("import sys\nprint(__name__, __package__, *sys.argv[1:])\n")
    done = muster("run", "-n", "1", "-m", "jobs.train", "-n", "7", "-m")
    assert done.returncode == 0, done.stderr
    assert "[worker 0] __main__ jobs -n 7 -m\n" in done.stdout
    written = muster("run", "-n", "1", "--dry-run", "-m", "jobs.train", "a")
    assert 'module = "jobs.train"' in written.stdout
    (folder / "job.toml").write_text(written.stdout)
    assert "[worker 0] __main__ jobs a\n" in muster("run", "--job", "job.toml").stdout
    assert muster("run", "-n", "1", "-m", "platform").returncode == 0  # one of Python's own


@pytest.mark.parametrize(
    ("words", "message"),
    [(["-m"], "name a module"), (["-m", "train.py"], "without .py"), (["-m", "no_such"], "finds no module")],
)
def test_run_says_which_module_cannot_be_started(folder, words, message):
    (folder / "train.py").touch()
    done = muster("run", "-n", "1", *words)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_help_is_that_of_the_subcommand_that_is_named(folder):
    assert muster("help").stdout == muster("--help").stdout
    for words in (["run"], ["certs", "new"], ["help"]):
        shown = muster("help", *words)
        assert (shown.returncode, shown.stdout) == (0, muster(*words, "--help").stdout)
    assert "Usage: muster run [options] script.py [args]\n" in muster("help", "run").stdout


def test_env_shows_where_each_value_comes_from(folder, monkeypatch):
    monkeypatch.setenv("MS_NODE_TIMEOUT", "7")
    lines = muster("env").stdout.splitlines()
    assert any(re.match(r"MS_NODE_TIMEOUT +7 +environment +600 ", line) for line in lines)
    assert any(re.match(r"MS_TOPO_TIMEOUT +1800 +default +1800 ", line) for line in lines)


def test_doctor_names_a_variable_that_cannot_be_used(folder, monkeypatch):
    monkeypatch.setenv("MS_SCHED_PORT", "80")
    done = muster("doctor")
    assert done.returncode == 1
    assert re.search(r"PROBLEM +MS_SCHED_PORT +80\n +MS_SCHED_PORT='80' cannot be used", done.stdout)


def test_doctor_says_which_kernels_are_used(folder):
    assert re.search(r"^ok +kernels +.*reference", muster("doctor").stdout, re.MULTILINE)


@pytest.fixture
def group_of_one_core():
    """The folder of a control group, of either version, that gives its processes the time of one core."""
    groups = Path("/sys/fs/cgroup")
    for kind, limit in ("cpu", ("cpu.cfs_quota_us", "100000")), ("", ("cpu.max", "100000 100000")):
        group = groups / kind / f"muster-test-{os.getpid()}"
        with contextlib.suppress(OSError):
            group.mkdir()
            try:
                (group / limit[0]).write_text(limit[1])
                yield group
                return
            finally:
                group.rmdir()
    pytest.skip("this system's control groups cannot be changed")


def test_doctor_says_how_much_time_of_cores_a_container_gives(folder, group_of_one_core):
    line = f"echo $$ > {group_of_one_core}/cgroup.procs; exec {PROGRAM} doctor"
    told = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60).stdout
    assert re.search(
        r"^ok +system .* 1 cores allowed \(a control group gives the time of 1\)", told, re.MULTILINE
    )


def test_compat_path_is_the_folder_that_holds_mindspore(folder):
    done = muster("compat-path")
    assert done.returncode == 0, done.stderr
    assert (Path(done.stdout.strip()) / "mindspore/__init__.py").exists()


def test_cmake_path_of_a_build_says_how_to_install_the_library(folder):
    done = muster("cmake-path")
    assert done.returncode == 1
    assert "cmake --install build --prefix PREFIX --component development" in done.stderr


def test_version_is_that_of_the_project(folder):
    assert re.fullmatch(r"muster \d+\.\d+\.\d+\n", muster("version").stdout)
    assert muster("--version").stdout == muster("version").stdout


def test_data_writes_synthetic_pictures_and_never_replaces_others(folder):
    done = muster("data", "synthetic-cifar10", "made/here", "--records", "3")
    assert done.returncode == 0, done.stderr
    assert "synthetic" in done.stdout and "no photographs" in done.stdout
    assert (folder / "made/here/data_batch_5.bin").stat().st_size == 3 * 3073
    assert "synthetic" in (folder / "made/here/SYNTHETIC.txt").read_text()
    assert muster("data", "synthetic-cifar10", "made/here", "--records", "2").returncode == 0
    (folder / "made/here/test_batch.bin").write_bytes(b"real" * 3073)
    refused = muster("data", "synthetic-cifar10", "made/here")
    assert refused.returncode == 1 and "made/here/test_batch.bin" in refused.stderr
    assert (folder / "made/here/test_batch.bin").read_bytes() == b"real" * 3073
    assert muster("data", "synthetic-cifar10", "made/here", "--records", "0").returncode == 1


def test_data_writes_a_tiny_text_and_never_replaces_another_file(folder):
    done = muster("data", "tiny-text", "text.txt")
    assert done.returncode == 0, done.stderr
    text = (folder / "text.txt").read_text(encoding="utf-8")
    assert len(text.encode()) > 100_000 and done.stdout.startswith(
        f"Wrote {len(text.encode())} bytes of text from "
    )
    assert (
        text.count("GNU GENERAL PUBLIC LICENSE\n                       Version 3") == 1
    )  # linked as GPL, too
    (folder / "text.txt").write_text("mine")
    refused = muster("data", "tiny-text", "text.txt")
    assert refused.returncode == 1 and "'text.txt' is there" in refused.stderr
    assert (folder / "text.txt").read_text() == "mine"
    missing = muster("data", "tiny-text", "new.txt", "--from", "nowhere")
    assert missing.returncode == 1 and "nowhere" in missing.stderr and "--from" in missing.stderr


def test_the_page_on_job_files_lists_the_keys_that_there_are(folder):
    page = (ROOT / "docs/formats/job.md").read_text()
    keys = re.findall(r"^\| (\w+) \|", page, re.MULTILINE)[1:]
    assert len(keys) > 15
    for key in keys:  # a time is a value of no key's type, so the key itself is what is known or not
        (folder / "job.toml").write_text(f"{key} = 07:30:00")
        said = muster("run", "--job", "job.toml").stderr
        assert f"job.toml, line 1: {key} " in said
        assert "no setting" not in said
    (folder / "job.toml").write_text("weather = 07:30:00")
    assert "weather is no setting" in muster("run", "--job", "job.toml").stderr


def test_a_dry_run_prints_a_job_file_that_means_the_same_and_starts_nothing(folder):
    (folder / "train.py").write_text("import muster\nopen('started', 'w')\n")
    flags = ["-n", "2", "--max-restarts", "3", "--env", "A=b c", "--port", "9000"]
    first = muster("run", *flags, "--dry-run", "train.py", "--epochs", "10")
    assert first.returncode == 0, first.stderr
    (folder / "job.toml").write_text(first.stdout)
    second = muster("run", "--job", "job.toml", "--dry-run")
    assert second.stdout.replace(f"{folder}/train.py", "train.py") == first.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["job.toml", "train.py"]
    explained = muster("run", "--job", "job.toml", "-n", "1", "--explain").stdout
    assert re.search(r"^slots = 1 +# -n$", explained, re.MULTILINE)
    assert re.search(r"^restarts = 3 +# job.toml: restarts$", explained, re.MULTILINE)
