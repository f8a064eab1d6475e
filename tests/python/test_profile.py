"""Profiles (docs/guide/profiling.md): what tables and traces say of where the time is known to go."""

import json
import re
import subprocess
import threading
import time

import numpy
import pytest
from digits import write_digits
from job import clean_environment
from places import BUILD, SEARCH_PATH

import muster
from muster import _profile, nn, ops, train
from muster import dataset as ds

ROWS = numpy.arange(48, dtype=numpy.float32).reshape(24, 2) / 48


def data(slow=None):
    made = ds.NumpySlicesDataset((ROWS, ROWS[:, :1]), ["x", "y"], shuffle=False)
    return (made.map(slow, "x") if slow else made).batch(4)


def made_model():
    net = nn.Dense(2, 1)
    return train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))


def shares_of(folder, rank=0):
    found = _profile._load(folder)[rank]
    return {name: time / found.wall for name, time in found.shares().items()}, found


def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_the_profiled_steps_are_those_that_were_asked_for(tmp_path, capfd):
    made_model().train(2, data(), train.Profiler(start=3, stop=7, folder=tmp_path / "p"))
    printed = capfd.readouterr().out
    assert re.search(r"^rank +time +computing +dispatch +communication +waiting", printed, re.MULTILINE)
    _, rank = shares_of(tmp_path / "p")
    products = [op for op in rank.data["ops"] if op[1] in ("dense", "matmul", "linear")]
    assert products, [op[:2] for op in rank.data["ops"]]
    assert {op[3] for op in rank.data["ops"]} == {5}  # each op of the step, in five steps
    trace = json.loads((tmp_path / "p/trace.json").read_text())
    named = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == "phase"]
    assert len([event for event in named if event["name"] == "computing"]) == 5


def test_the_table_has_the_rate_of_a_product_and_its_share_of_the_peak(tmp_path, capfd):
    side = 512
    square = muster.Tensor(numpy.ones((side, side), numpy.float32))
    product = muster.jit(lambda x: ops.matmul(x, x))
    product(square)
    with train.profile(tmp_path):
        for _ in range(20):
            product(square)
    (op,) = [op for op in _profile._load(tmp_path)[0].data["ops"] if op[1] == "matmul"]
    assert op[3] == 20
    assert op[5:8] == [20 * 2 * side**3, 20 * 3 * 4 * side**2, 4 * side**2]
    row = re.search(r"^matmul \[.*", capfd.readouterr().out, re.MULTILINE).group()
    rate, share = map(float, re.search(r"% +(\S+) +\S+ +(\d+) %$", row).groups())
    assert rate == pytest.approx(op[5] / op[4], rel=0.01)
    assert 1 <= share <= 1000  # the peak is measured afterwards, beside other tests


def test_it_is_told_what_lies_between_ops_where_most_does(tmp_path, capfd):
    """x (64, 256) to (64, 4096), which its relu still needs, to one number for each row."""
    x = muster.Tensor(numpy.ones((64, 256), numpy.float32))
    w = muster.Parameter(numpy.full((256, 4096), 0.01, numpy.float32), name="w")
    step = muster.value_and_grad(lambda x: ops.reduce_sum(ops.tanh(ops.matmul(x, w))), None, [w])
    step(x)
    with train.profile(tmp_path):
        step(x)
    (rank,) = _profile._load(tmp_path)
    what, held, parameters, largest = rank.data["peak"]
    assert parameters == 256 * 4096 * 4
    assert ["tanh_grad float32 (64, 4096)", 64 * 4096 * 4] in largest
    assert ["matmul float32 (256, 4096)", 256 * 4096 * 4] in largest  # the gradient
    assert held == max(op[7] for op in rank.data["ops"])
    assert "matmul" in what
    printed = capfd.readouterr().out
    assert re.search(
        r"^memory of rank 0: \S+ MiB between ops at the peak, beside 4 MiB", printed, re.MULTILINE
    )
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    curve = [event["args"]["MiB"] for event in trace if event["ph"] == "C"]
    assert max(curve) == held / (1 << 20)
    assert curve[0] < max(curve)


def test_ops_by_themselves_count_the_work_of_each_call(tmp_path, capfd):
    sides = (8, 32, 16)
    with train.profile(tmp_path):
        for side in sides:
            square = muster.Tensor(numpy.ones((side, side), numpy.float32))
            ops.matmul(square, square)
    (op,) = [op for op in _profile._load(tmp_path)[0].data["ops"] if op[1] == "matmul"]
    assert op[3] == 3
    assert op[5:7] == [sum(2 * side**3 for side in sides), sum(3 * 4 * side**2 for side in sides)]


def test_shares_add_up_to_the_whole(tmp_path, capfd):
    made_model().train(2, data(), train.Profiler(1, 12, tmp_path))
    shares, _ = shares_of(tmp_path)
    assert sum(shares.values()) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("where", ["reading data", "script", "saving"])
def test_the_time_is_found_where_it_goes(tmp_path, capfd, where):
    callbacks = [train.Profiler(2, 6, tmp_path / "p")]
    if where == "script":
        callbacks.insert(1, train.LambdaCallback(on_train_step_begin=lambda run: busy(0.05)))
    if where == "saving":
        big = nn.Dense(2000, 2000)
        save = train.LambdaCallback(
            on_train_step_begin=lambda run: muster.save_checkpoint(big, str(tmp_path / "c.ckpt"))
        )
        callbacks.append(save)

    def slow(x):
        busy(0.02)
        return x

    made_model().train(2, data(slow if where == "reading data" else None), callbacks)
    shares, _ = shares_of(tmp_path / "p")
    assert max(shares, key=shares.get) == where
    assert f", {where}: " in capfd.readouterr().out  # among what to try


def first_hint(printed):
    return re.search(r"^at most (\d+) % to gain on rank \d+, (.*)$", printed, re.MULTILINE)


def undisturbed(capfd, profiled, is_right):
    """What is printed of a moment in which other processes left it a processor: some of a hundred."""
    for _ in range(100):
        profiled()
        printed = capfd.readouterr().out
        if is_right(printed):
            break
    return printed


def test_ops_that_python_calls_one_by_one_lead_to_jit(tmp_path, capfd):
    x = muster.Tensor(ROWS)

    def profiled():
        with train.profile(tmp_path):
            for _ in range(200):
                ops.relu(x * 0.5 + 1)

    hint = ", script: Python between ops that run one by one: muster.jit"
    assert hint in undisturbed(capfd, profiled, lambda printed: hint in printed)


def test_steps_that_compute_little_lead_to_larger_batches(tmp_path, capfd):
    made_model().train(20, data(), train.Profiler(11, 120, tmp_path))
    shares, rank = shares_of(tmp_path)
    told = r"^at most (\d+) % .*dispatch and script: a step computes (\S+) us.* larger batches$"
    gain, computes = re.search(told, capfd.readouterr().out, re.MULTILINE).groups()
    assert float(computes) == pytest.approx(rank.shares()["computing"] / 110 / 1000, rel=0.01)
    assert int(gain) <= 100 * (shares["dispatch"] + shares["script"]) + 1


def test_steps_of_ever_new_shapes_lead_to_what_is_traced(tmp_path, capfd):
    product = muster.jit(lambda x: ops.relu(ops.matmul(x, ops.transpose(x, (1, 0)))))
    with train.profile(tmp_path):
        for rows in range(1, 24):
            product(muster.Tensor(ROWS[:rows]))
    printed = capfd.readouterr().out
    assert ", dispatch: most steps are traced and compiled anew" in printed
    assert "larger batches" not in printed


def test_evaluations_alone_are_not_to_be_made_less_often(tmp_path, capfd):
    net = nn.Dense(2, 1)
    model = train.Model(net, nn.MSELoss(), None, {"mae"})
    with train.profile(tmp_path):
        for _ in range(50):
            model.eval(data())
    printed = capfd.readouterr().out
    assert ", evaluating: what stands around the ops of evaluations" in printed
    assert "less often" not in printed


def test_where_only_ops_take_time_nothing_else_is_blamed(tmp_path, capfd):
    square = muster.Tensor(numpy.ones((768, 768), numpy.float32))
    product = muster.jit(lambda x: ops.matmul(x, x))
    product(square)

    def profiled():
        with train.profile(tmp_path):
            product(square)

    def is_right(printed):
        found = first_hint(printed)  # fewer threads than cores, where the environment says so
        if found:
            return found[2].startswith("computing: ")
        return "less than a tenth of the time to gain beside the ops" in printed

    printed = undisturbed(capfd, profiled, is_right)
    assert is_right(printed), printed


def test_where_no_op_ran_that_is_said_and_nothing_is_blamed(tmp_path, capfd):
    with train.profile(tmp_path):
        busy(0.01)
    printed = capfd.readouterr().out
    assert "no op of Muster's ran: a profile does not see what other libraries compute" in printed
    assert "to gain" not in printed


def test_a_loop_by_hand_is_recorded_in_a_block(tmp_path, capfd):
    x = muster.Tensor(numpy.ones((64, 64), numpy.float32))
    with train.profile(tmp_path):
        for _ in range(7):
            ops.relu(ops.matmul(x, x))
    _, rank = shares_of(tmp_path)
    calls = {op[1]: op[3] for op in rank.data["ops"]}
    assert calls["matmul"] == calls["relu"] == 7
    assert "trace.json" in capfd.readouterr().out
    with pytest.raises(ValueError, match="no profile is recorded"):
        _profile.stop(tmp_path)


def test_ops_of_other_threads_are_no_time_of_the_main_thread(tmp_path, capfd):
    square = muster.Tensor(numpy.ones((256, 256), numpy.float32))

    def work():
        for _ in range(50):
            ops.matmul(square, square)

    with train.profile(tmp_path):
        other = threading.Thread(target=work)
        other.start()
        other.join()
        ops.relu(square)
    _, rank = shares_of(tmp_path)
    times = {op[1]: op[4] for op in rank.data["ops"]}
    assert rank.shares()["computing"] == times["relu"]
    assert rank.shares()["script"] >= times["matmul"]  # in which the main thread waits for the other
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    threads = {event["name"].split(" ")[0]: event["tid"] for event in trace if event.get("cat") == "op"}
    assert threads == {"matmul": 1, "relu": 0}


def test_ops_of_a_pipeline_are_not_the_computing_of_a_step(tmp_path, capfd):
    square = muster.Tensor(numpy.ones((384, 384), numpy.float32))

    def slow(x):
        for _ in range(10):
            ops.matmul(square, square)
        return x

    made_model().train(2, data(slow), train.Profiler(2, 11, tmp_path))
    shares, _ = shares_of(tmp_path)
    # The callback waits for the interpreter, which the function holds, so a part of it is the script's.
    assert shares["computing"] < 0.1 and shares["reading data"] + shares["script"] > 0.9


def test_a_script_that_sleeps_is_told_so(tmp_path, capfd):
    sleeps = train.LambdaCallback(on_train_step_begin=lambda run: time.sleep(0.02))
    made_model().train(2, data(), [train.Profiler(2, 11, tmp_path), sleeps])
    assert ", script: for most of that it ran on no processor" in capfd.readouterr().out


def test_two_profiles_at_once_are_refused(tmp_path):
    with train.profile(tmp_path), pytest.raises(ValueError, match="a profile is recorded already"):
        _profile.start()


def test_a_profiler_that_never_began_says_so(tmp_path, capfd):
    made_model().train(1, data(), train.Profiler(start=10, folder=tmp_path / "p"))
    told = capfd.readouterr().err
    assert "recorded nothing: the training did not come to step 10" in told
    made_model().train(2, data(), train.Profiler(start=10, folder=tmp_path / "p"))
    assert "recorded nothing" not in capfd.readouterr().err


def test_a_folder_keeps_no_ranks_of_a_greater_job(tmp_path, capfd):
    for name in ("rank1.json", "rank12.json", "rank_table.json", "ranks.txt"):
        (tmp_path / name).write_text("{}")
    with train.profile(tmp_path):
        ops.relu(muster.Tensor([1.0]))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("rank0.json", "rank_table.json", "ranks.txt", "trace.json"),
    ]
    assert len(_profile._load(tmp_path)) == 1


@pytest.mark.parametrize("content", ["", '{"rank": 0', "[]", '{"rank": 0}', "\0"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "rank3.json").write_text(content)
    with pytest.raises(ValueError, match=r"rank3\.json' is no whole profile .*: record it again"):
        _profile.report(tmp_path)


def test_tables_are_shown_where_no_trace_can_be_written(tmp_path, capfd):
    (tmp_path / "trace.json").mkdir()
    with train.profile(tmp_path):
        ops.relu(muster.Tensor([1.0]))
    printed = capfd.readouterr().out
    assert "relu" in printed and "no trace is written: " in printed and "trace.json" in printed


def test_a_profile_changes_no_result(tmp_path, capfd):
    def trained(callbacks):
        muster.set_seed(3)
        net = nn.Dense(2, 1)
        train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(2, data(), callbacks)
        return net.weight.asnumpy()

    assert (trained([]) == trained([train.Profiler(1, 12, tmp_path)])).all()


# ---- The program -------------------------------------------------------------------------------------------

SCRIPT = """
import time
import numpy
import muster
from muster import dataset as ds, nn, train

muster.init()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
rows = numpy.arange(96, dtype=numpy.float32).reshape(48, 2) / 96
data = ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"], num_shards=muster.get_group_size(),
                             shard_id=muster.get_rank()).batch(2)
net = nn.Dense(2, 1)
model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
slow = train.LambdaCallback(on_train_step_begin=lambda run: time.sleep(0.05 * (muster.get_rank() == 1)))
model.train(1, data, slow)
"""


def muster_program(folder, *words):
    environment = {**clean_environment(), "PATH": SEARCH_PATH}
    command = [BUILD / "apps/muster/muster", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    print(done.stdout, done.stderr)  # shown when the test fails
    return done


def test_the_program_profiles_a_script_and_shows_it_again(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = muster_program(tmp_path, "profile", "--out", "p", "train.py")
    assert done.returncode == 0
    assert re.search(r"^0 +\d", done.stdout, re.MULTILINE)
    again = muster_program(tmp_path, "profile", "p")
    assert again.stdout.splitlines()[:3] == done.stdout.splitlines()[:3]


def test_a_script_that_leaves_no_profile_is_told_so(tmp_path):
    (tmp_path / "train.py").write_text(BEGINS.format(end="import os; os._exit(4)"))
    done = muster_program(tmp_path, "profile", "train.py")
    assert done.returncode == 4
    assert f"the script has left no profile in '{tmp_path / 'muster-profile'}': os._exit()" in done.stderr
    (tmp_path / "train.py").write_text(BEGINS.format(end=""))
    assert "has left no profile" not in muster_program(tmp_path, "profile", "train.py").stderr


BY_HAND = """
import time, muster
from muster import ops, train
muster.init()
ones = muster.Tensor([1.0])
ops.all_reduce(ones)
with train.profile("p"):
    for _ in range(10):
        time.sleep(0.05 * muster.get_rank())
        ops.all_reduce(ones)
"""


def test_calls_by_themselves_are_waiting_where_another_rank_is_late(tmp_path):
    (tmp_path / "train.py").write_text(BY_HAND)
    assert muster_program(tmp_path, "run", "-n", "2", "train.py").returncode == 0
    waits, slow = (rank.shares() for rank in _profile._load(tmp_path / "p"))
    assert waits["waiting"] > 0.25e9 > slow["waiting"]
    assert waits["computing"] == slow["computing"] == 0


UNEQUAL = """
import numpy, muster
from muster import dataset as ds, nn, train
muster.init()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
rows = numpy.ones((96, 2), numpy.float32)
net = nn.Dense(2, 1)
model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
data = ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"]).batch(4)
model.train(1, data, train.Profiler(1 + 5 * muster.get_rank(), 24, "p"))
"""


def test_ranks_that_recorded_different_calls_are_said_to_know_no_waiting(tmp_path):
    (tmp_path / "train.py").write_text(UNEQUAL)
    assert muster_program(tmp_path, "run", "-n", "2", "train.py").returncode == 0
    shown = muster_program(tmp_path, "profile", "p")
    assert ", communication: ranks made different calls, so waiting is among it" in shown.stdout


BEGINS = """
import time, numpy, muster
from muster import dataset as ds, nn, train
time.sleep(0.5)
rows = numpy.ones((24, 2), numpy.float32)
net = nn.Dense(2, 1)
model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(2, ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"]).batch(4))
{end}
"""


def test_what_a_script_prepares_is_told_apart_from_its_steps(tmp_path):
    (tmp_path / "train.py").write_text(BEGINS.format(end=""))
    done = muster_program(tmp_path, "profile", "train.py")
    assert first_hint(done.stdout)[2].startswith("begin and end: imports and what the script prepares: once")


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", 143),
        ("os.fork() or sys.exit(0); os.wait()", 0),
    ],
    ids=["SIGTERM", "a forked child"],
)
def test_a_script_is_profiled_once_however_it_ends(tmp_path, end, code):
    (tmp_path / "train.py").write_text(BEGINS.format(end="import os, signal, sys\n" + end))
    done = muster_program(tmp_path, "profile", "train.py")
    assert done.returncode == code
    assert done.stdout.count("trace for ui.perfetto.dev") == 1, done.stderr
    _, rank = shares_of(tmp_path / "muster-profile")
    assert 12 in {op[3] for op in rank.data["ops"]}


OWN_PROFILES = """
import numpy, muster
from muster import dataset as ds, nn, train
rows = numpy.ones((24, 2), numpy.float32)
net = nn.Dense(2, 1)
model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
with train.profile("block"):
    model.train(1, ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"]).batch(4))
model.train(1, ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"]).batch(4), train.Profiler(2, 4, "steps"))
"""


def test_a_script_with_profiles_of_its_own_is_profiled_as_a_whole(tmp_path):
    (tmp_path / "train.py").write_text(OWN_PROFILES)
    done = muster_program(tmp_path, "profile", "--out", "p", "train.py")
    assert done.returncode == 0
    for what in ("train.profile", "train.Profiler"):
        assert f"{what} writes no profile of its own: this run is recorded from begin to end" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["p"]
    _, rank = shares_of(tmp_path / "p")
    assert 12 in {op[3] for op in rank.data["ops"]}


def test_a_damaged_profile_is_named_by_the_program(tmp_path):
    (tmp_path / "rank0.json").write_text("{")
    done = muster_program(tmp_path, "profile", ".")
    assert done.returncode == 1
    assert "muster profile: './rank0.json' is no whole profile" in done.stderr
    assert "Traceback" not in done.stderr


def test_who_waits_for_whom_is_seen_in_the_profile_of_a_job(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    recorded = muster_program(tmp_path, "run", "-n", "2", "--profile", "p", "train.py")
    assert recorded.returncode == 0 and "has recorded anything" not in recorded.stderr
    shown = muster_program(tmp_path, "profile", "p")
    assert shown.returncode == 0
    told = r"to gain on rank 0, waiting: for slower ranks: rank 1, .* \(script, \d+ % of its time\)"
    assert re.search(told, shown.stdout)
    waits, slow = (_profile._load(tmp_path / "p")[rank].shares() for rank in (0, 1))
    assert waits["waiting"] > 10 * slow["waiting"]
    assert waits["waiting"] > 10 * 0.05e9  # of 12 steps
    trace = json.loads((tmp_path / "p/trace.json").read_text())["traceEvents"]
    begins = {event["id"]: event for event in trace if event["ph"] == "s"}
    ends = {event["id"]: event for event in trace if event["ph"] == "f"}
    assert begins.keys() == ends.keys()
    assert all(begins[each]["ts"] <= ends[each]["ts"] for each in begins)
    lets_go = [event["pid"] for event in begins.values()]
    assert lets_go.count(1) > 0.9 * len(lets_go)


def test_what_cannot_be_profiled_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    done = muster_program(tmp_path, "profile", "empty")
    assert done.returncode == 1
    assert "there is no profile in 'empty'" in done.stderr
    done = muster_program(tmp_path, "profile", "lost.py")
    assert done.returncode == 2
    assert "lost.py" in done.stderr


@pytest.mark.skipif(not (BUILD / "examples/mnist").exists(), reason="built without the examples")
def test_a_program_in_cpp_is_recorded(tmp_path):
    write_digits(tmp_path / "MNIST_Data/train", rows=64)
    environment = {**clean_environment(), "DATA_PATH": "MNIST_Data/train"}
    muster_command = BUILD / "apps/muster/muster"
    for command in (
        ["profile", "--out", "alone", BUILD / "examples/mnist"],
        ["run", "-n", "2", "--profile", "both", BUILD / "examples/mnist"],
    ):
        words = [muster_command, *command]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "the tables: muster profile" in done.stdout
    shares, _ = shares_of(tmp_path / "alone")
    assert shares["computing"] > 0 and shares["dispatch"] > 0 and shares["reading data"] > 0
    ranks = _profile._load(tmp_path / "both")
    assert [len(rank.calls) > 0 for rank in ranks] == [True, True]
    assert re.search(r"^matmul.* \d", _profile.report(tmp_path / "both"), re.MULTILINE)
