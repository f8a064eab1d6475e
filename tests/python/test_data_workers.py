"""Worker processes (python_multiprocessing): the rows of one process, and gone with the pass."""

import os
import pathlib
import random
import re
import select
import signal
import subprocess
import sys
import traceback

import job
import numpy
import pytest
from muster.dataset import GeneratorDataset, config, vision
from places import BUILD, SEARCH_PATH

import muster


class Rows:
    """Row i: twelve values that begin with i, and i itself."""

    def __init__(self, count=60, before=lambda i: None):
        self.count = count
        self.before = before

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        self.before(i)
        return numpy.arange(i, i + 12, dtype=numpy.float32).reshape(2, 2, 3), numpy.int32(i)


def run_alone(script, *arguments):
    """The script in a process of its own, once it has ended."""
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=job.clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )


def rows(processes=0, source=None, **settings):
    return GeneratorDataset(
        source or Rows(),
        ["values", "number"],
        num_parallel_workers=max(processes, 1),
        python_multiprocessing=processes > 0,
        **settings,
    )


def bits(dataset):
    return [[column.asnumpy().tobytes() for column in item] for item in dataset]


def pids_of(dataset):
    """The processes that a map runs in."""
    mapped = dataset.map(
        lambda values: os.getpid(), "values", num_parallel_workers=2, python_multiprocessing=True
    )
    return mapped, {item[0].item() for item in mapped}


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture(autouse=True)
def _settings():
    muster.set_seed(4)
    warning, deadline = config.get_multiprocessing_timeout_interval(), config.get_multiprocessing_deadline()
    yield
    config.set_multiprocessing_timeout_interval(warning)
    config.set_multiprocessing_deadline(deadline)


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_rows_come_with_the_bits_and_in_the_order_of_one_process(processes):
    offset = 3

    def scaled(values):  # a closure, as functions of scripts are
        return values * offset

    def made(processes):
        mapped = rows(processes).map(
            [scaled, lambda values: values - 1],
            "values",
            num_parallel_workers=max(processes, 1),
            python_multiprocessing=processes > 0,
        )
        return mapped.batch(7).repeat(2)

    assert bits(made(processes)) == bits(made(0))


def test_transforms_of_the_library_draw_in_a_worker_what_they_draw_elsewhere():
    def made(processes):
        operations = [lambda values: values.astype(numpy.uint8), vision.RandomHorizontalFlip(0.5)]
        return rows(shuffle=False).map(
            operations, "values", num_parallel_workers=max(processes, 1), python_multiprocessing=processes > 0
        )

    assert bits(made(3)) == bits(made(0))


def test_functions_run_in_processes_of_their_own_which_end_with_the_pass():
    _, pids = pids_of(rows())
    assert len(pids) == 2 and os.getpid() not in pids
    assert all(is_gone(pid) for pid in pids)


def test_a_pass_that_is_dropped_leaves_no_process():
    mapped, _ = pids_of(rows())
    for item in mapped:
        pid = item[0].item()
        break
    del item
    for passed in [iter(mapped)]:
        pid = next(passed)[0].item()
        assert not is_gone(pid)
        passed.close()
    assert is_gone(pid)


def draws(values):
    return numpy.array([random.random(), numpy.random.random()])


@pytest.mark.parametrize("of", ["map", "source"])
def test_random_numbers_depend_on_the_row_alone(of):
    class Drawing(Rows):
        def __getitem__(self, i):
            return draws(i), numpy.int32(i)

    def made(processes):
        if of == "source":
            return rows(processes, Drawing(), shuffle=False)
        return rows(shuffle=False).map(
            draws, "values", num_parallel_workers=processes, python_multiprocessing=True
        )

    two, again, three = made(2), made(2), made(3)
    first = bits(two)
    assert first == bits(again) == bits(three)
    assert len({value for value, _ in first}) == 60
    assert bits(two) != first  # the next pass
    muster.set_seed(5)
    assert bits(made(2)) != first


def test_random_numbers_of_a_numpy_that_rows_import_themselves_depend_on_the_row_too():
    script = """
import sys
import muster
from muster.dataset import GeneratorDataset
class Rows:
    def __len__(self): return 8
    def __getitem__(self, i): return [float(i)]
def draw(x):
    import numpy
    return float(numpy.random.random())
muster.set_seed(1)
data = GeneratorDataset(Rows(), ["x"], num_parallel_workers=2, shuffle=False)
data = data.map(draw, "x", num_parallel_workers=int(sys.argv[1]), python_multiprocessing=True)
print([x.item() for x, in data], "numpy" in sys.modules)
"""
    two, three = (run_alone(script, workers) for workers in ("2", "3"))
    assert two.stdout.endswith("False\n"), two.stderr
    assert two.stdout == three.stdout


def test_other_generators_of_a_process_are_let_be():
    random.seed(1)
    numpy.random.seed(1)
    expected = random.Random(1).random(), numpy.random.RandomState(1).random()
    bits(rows(2))
    assert (random.random(), numpy.random.random()) == expected


class BrokenError(ValueError):
    pass


def break_at_nine(i):
    if i == 9:
        raise BrokenError("this row is damaged")


def test_an_exception_comes_with_the_workers_traceback_and_the_row():
    with pytest.raises(BrokenError, match="this row is damaged") as raised:
        bits(rows(2, Rows(before=break_at_nine), shuffle=False))
    text = "".join(traceback.format_exception(raised.value))
    for part in ["in break_at_nine", "data worker 1", "row 9 of the source", "process"]:
        assert part in text


class UnpicklableError(Exception):
    def __init__(self, one, two):
        super().__init__(one)


def raise_unpicklable(values):
    raise UnpicklableError("odd", "one")


def test_an_exception_that_cannot_travel_is_told():
    mapped = rows().map(raise_unpicklable, "values", python_multiprocessing=True)
    with pytest.raises(RuntimeError, match="UnpicklableError: odd") as raised:
        bits(mapped)
    text = "".join(traceback.format_exception(raised.value))
    assert "in raise_unpicklable" in text and "map 'raise_unpicklable'" in text


def test_a_function_that_exits_ends_no_training():
    with pytest.raises(RuntimeError, match="SystemExit: 0"):
        bits(rows(2, Rows(before=lambda i: sys.exit(0))))


def test_a_worker_that_is_killed_is_named():
    def die(i):
        if i == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RuntimeError, match=r"data worker 1 .*killed by signal 9.*row 3 of the source"):
        bits(rows(2, Rows(before=die), shuffle=False))


def wait_for_ever(i):
    while i == 5:
        signal.pause()


def test_a_worker_that_hangs_is_named_with_its_row_and_its_stack(capfd):
    config.set_multiprocessing_timeout_interval(0.1)
    config.set_multiprocessing_deadline(0.5)
    with pytest.raises(TimeoutError, match=r"data worker 1 .*row 5 of the source"):
        bits(rows(2, Rows(before=wait_for_ever), shuffle=False))
    told = capfd.readouterr().err
    assert "warning: data worker 1" in told and "row 5 of the source" in told
    assert "in wait_for_ever" in told


def test_a_worker_that_is_stopped_is_named_and_ends_with_the_pass(capfd):
    config.set_multiprocessing_timeout_interval(0.1)
    config.set_multiprocessing_deadline(0.5)

    def stop_at_five(i):
        if i == 5:
            os.kill(os.getpid(), signal.SIGSTOP)

    with pytest.raises(TimeoutError, match=r"data worker 1 .*row 5 of the source") as raised:
        bits(rows(2, Rows(before=stop_at_five), shuffle=False))
    pid = int(re.search(r"\(process (\d+)\)", str(raised.value)).group(1))
    assert not is_gone(pid)
    del raised  # which holds the pass
    assert is_gone(pid)


def test_arguments_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="num_parallel_workers is 0"):
        GeneratorDataset(Rows(), ["a", "b"], num_parallel_workers=0)
    with pytest.raises(ValueError, match="300"):
        rows(300)
    with pytest.raises(ValueError, match="max_rowsize is 0"):
        rows(2, max_rowsize=0)
    with pytest.raises(ValueError, match="__getitem__"):
        GeneratorDataset(lambda: iter([]), ["a"], num_parallel_workers=2)
    with pytest.raises(ValueError, match="from 0"):
        config.set_multiprocessing_deadline(-1)


def test_rows_larger_than_max_rowsize_are_named():
    large = rows().map(
        lambda values: numpy.zeros(1 << 21, numpy.uint8), "values", python_multiprocessing=True, max_rowsize=1
    )
    with pytest.raises(ValueError, match=r"row 0 of the pass, in map '<lambda>'.*max_rowsize allows 1 MB"):
        bits(large)


def test_what_a_function_keeps_stays_as_it_was():
    kept = []

    def keep(values):
        kept.append(values)
        return numpy.array([array[0, 0, 0] for array in kept])

    mapped = rows(shuffle=False).map(keep, "values", num_parallel_workers=1, python_multiprocessing=True)
    *_, (last, _) = mapped
    assert last.asnumpy().tolist() == list(range(60))


def test_prints_of_a_worker_come_once():
    script = """
import sys
from muster.dataset import GeneratorDataset
class Rows:
    def __len__(self): return 2
    def __getitem__(self, i):
        print("row", i)
        return (i,)
print("begin")
for _ in GeneratorDataset(Rows(), ["i"], num_parallel_workers=2, shuffle=False): pass
"""
    done = run_alone(script)
    assert sorted(done.stdout.splitlines()) == ["begin", "row 0", "row 1"], done.stderr


TRAINS = """
import os, signal, sys
import numpy
from muster.dataset import GeneratorDataset
class Rows:
    def __len__(self): return 100000
    def __getitem__(self, i):
        if i in (0, 1):
            print(os.getpid(), flush=True)
        while i == 2:
            signal.pause()
        return (numpy.zeros(100_000, numpy.uint8),)
data = GeneratorDataset(Rows(), ["x"], num_parallel_workers=2, shuffle=False).batch(4)
for batch in data:
    pass
"""


@pytest.mark.parametrize(
    "numbers",
    [[signal.SIGKILL], [signal.SIGINT], [signal.SIGTERM], [signal.SIGSTOP, signal.SIGKILL]],
    ids=lambda numbers: "-".join(number.name for number in numbers),
)
def test_nothing_is_left_of_a_process_that_trains(numbers):
    before = set(pathlib.Path("/dev/shm").iterdir())
    with subprocess.Popen(
        [sys.executable, "-c", TRAINS],
        env=job.clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as trains:
        handles = [os.pidfd_open(int(trains.stdout.readline())) for _ in range(2)]
        for number in numbers:
            trains.send_signal(number)
        assert trains.wait(timeout=30) == -numbers[-1]
        for handle in handles:
            assert select.select([handle], [], [], 20)[0], "a worker lives on"
            os.close(handle)
    assert set(pathlib.Path("/dev/shm").iterdir()) <= before


STOPPED = """
import sys
import numpy
from muster.dataset import GeneratorDataset, config
config.set_multiprocessing_deadline(3)
class Rows:
    def __len__(self): return 20
    def __getitem__(self, i):
        if i == 4:
            print("at row 4", flush=True)
            sys.stdin.readline()
        return (numpy.int32(i),)
print([x.item() for x, in GeneratorDataset(Rows(), ["x"], num_parallel_workers=2, shuffle=False)])
"""


@pytest.mark.parametrize("whom", ["all", "the process that trains"])
def test_a_stop_longer_than_the_deadline_of_a_row_changes_nothing(whom):
    """As by Ctrl-Z and fg, or by a batch system that takes the processor away."""
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED],
        env=job.clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as trains:
        assert trains.stdout.readline() == "at row 4\n"
        send = os.killpg if whom == "all" else os.kill
        send(trains.pid, signal.SIGSTOP)
        with pytest.raises(subprocess.TimeoutExpired):
            trains.wait(timeout=3.2)
        send(trains.pid, signal.SIGCONT)
        told, _ = trains.communicate("go on\n", timeout=30)
    assert trains.returncode == 0 and eval(told) == list(range(20))


def test_ctrl_c_for_all_processes_of_a_terminal_is_one_traceback():
    with subprocess.Popen(
        [sys.executable, "-c", TRAINS],
        env=job.clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as trains:
        for _ in range(2):
            trains.stdout.readline()
        os.killpg(trains.pid, signal.SIGINT)
        _, said = trains.communicate(timeout=30)
    assert said.count("Traceback") == 1 and said.rstrip().endswith("KeyboardInterrupt")


def test_mindspore_spells_it_so():
    script = """
import os
import numpy
import mindspore.dataset as ds
class Rows:
    def __len__(self): return 6
    def __getitem__(self, i): return (numpy.array([i, os.getpid()]),)
data = ds.GeneratorDataset(Rows(), ["x"], num_parallel_workers=3, shuffle=False, max_rowsize=6)
two = {"num_parallel_workers": 2, "python_multiprocessing": True, "max_rowsize": [1, 1]}
data = data.map(lambda x: numpy.append(x, os.getpid()), "x", **two)
found = numpy.array([x.asnumpy() for x, in data])
print(found[:, 0].tolist(), len(set(found[:, 1])), len(set(found[:, 2])), os.getpid() in found)
"""
    done = run_alone(script)
    assert done.stdout == "[0, 1, 2, 3, 4, 5] 3 2 False\n", done.stderr


RECOVERS = """
import os, pathlib, random, signal
import numpy
import muster
from muster import nn, train
from muster.dataset import GeneratorDataset

muster.init()
muster.set_seed(1)

class Rows:
    def __len__(self): return 80
    def __getitem__(self, i):
        return numpy.random.default_rng(i).standard_normal(6).astype(numpy.float32), numpy.int32(i % 3)

def jitter(x):
    return (x + numpy.random.normal() + random.random()).astype(numpy.float32)

class Dies(train.Callback):
    def on_train_step_end(self, run_context):
        dies = os.environ.get("DIES") and not pathlib.Path("died").exists()
        if dies and run_context.original_args().cur_step_num == 37:
            while not list(pathlib.Path(os.environ["MS_RECOVERY_PATH"]).glob("*/*/call_0.step_35")):
                pass
            pathlib.Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)

data = GeneratorDataset(Rows(), ["x", "y"], num_parallel_workers=2)
data = data.map(jitter, "x", num_parallel_workers=2, python_multiprocessing=True).batch(4)
net = nn.Dense(6, 3)
model = train.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
saves = train.CheckpointConfig(save_checkpoint_steps=5, keep_checkpoint_max=1)
model.train(3, data, [Dies(), train.ModelCheckpoint(directory="saved", config=saves)])
print("weights", net.weight.asnumpy().tobytes().hex(), flush=True)
"""


def test_a_job_that_recovers_goes_on_at_the_row_with_the_same_random_numbers(tmp_path):
    def weights(name, **variables):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_text(RECOVERS)
        told = {"PATH": SEARCH_PATH, "MS_RECOVERY_PATH": str(folder / "points"), **variables}
        command = [BUILD / "apps/muster/muster", "run", "-n", "1", "--max-restarts", "1", "train.py"]
        environment = job.clean_environment() | told
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
        )
        print(done.stdout, done.stderr)
        assert done.returncode == 0 and ("DIES" in variables) == (folder / "died").exists()
        return [line for line in done.stdout.splitlines() if "weights" in line]

    unbroken = weights("unbroken")
    assert len(unbroken) == 1
    assert weights("broken", DIES="1") == unbroken
