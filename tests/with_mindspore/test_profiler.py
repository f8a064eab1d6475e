"""mindspore.profiler: which steps are recorded, and where the profiles are."""

import json
import subprocess
import sys

import mindspore
import numpy
import pytest
from job import clean_environment
from mindspore import nn
from mindspore.profiler import (
    DynamicProfilerMonitor,
    Profiler,
    profile,
    schedule,
    tensorboard_trace_handler,
)

from muster import _profile

ROWS = numpy.arange(48, dtype=numpy.float32).reshape(24, 2) / 48


def profiles(folder):
    """Folders below it that have one."""
    return sorted(str(path.parent.relative_to(folder)) for path in folder.rglob("rank0.json"))


def run_steps(profiler, steps):
    net = nn.Dense(2, 1)
    for _ in range(steps):
        net(mindspore.Tensor(ROWS[:4]))
        profiler.step()


def test_profilers_write_what_their_schedule_says(tmp_path, capfd):
    net = nn.Dense(2, 1)
    wanted = schedule(wait=1, active=2, repeat=2)
    with Profiler(output_path=str(tmp_path / "p"), schedule=wanted) as profiler:
        for _ in range(9):
            net(mindspore.Tensor(ROWS[:4]))
            profiler.step()
    assert sorted(path.parent.name for path in tmp_path.rglob("rank0.json")) == ["2", "p"]
    profiler = Profiler(output_path=str(tmp_path / "q"))
    net(mindspore.Tensor(ROWS[:4]))
    profiler.analyse()
    assert (tmp_path / "q/trace.json").exists()
    with pytest.raises(ValueError, match="active is a number of steps from 1"):
        schedule(wait=0, active=0)


def test_a_profiler_with_a_schedule_may_start_later(tmp_path, capfd):
    from mindspore.profiler import HostSystem, mstx

    net, wanted = nn.Dense(2, 1), schedule(wait=0, active=2, repeat=1)
    profiler = Profiler(start_profile=False, schedule=wanted, on_trace_ready=str(tmp_path / "later"))
    other = Profiler(output_path=str(tmp_path / "other"), host_sys=[HostSystem.CPU])  # it can
    net(mindspore.Tensor(ROWS[:4]))
    other.stop()
    profiler.start()
    for _ in range(2):
        number = mstx.range_start("step")
        net(mindspore.Tensor(ROWS[:4]))
        mstx.mark("behind")
        mstx.range_end(number)
        profiler.step()
    profiler.stop()
    assert [path.parent.name for path in sorted(tmp_path.rglob("rank0.json"))] == ["later", "other"]


def test_turns_that_follow_each_other_are_profiles_of_their_own(tmp_path, capfd):
    handler = tensorboard_trace_handler(tmp_path)
    with profile(schedule=schedule(wait=0, active=2, repeat=2), on_trace_ready=handler) as profiler:
        run_steps(profiler, 8)
    assert profiles(tmp_path) == [".", "2"]
    calls = [{op[3] for op in _profile._load(folder)[0].data["ops"]} for folder in (tmp_path, tmp_path / "2")]
    assert calls == [{2}, {2}]


def test_a_function_is_called_when_a_profile_is_written(tmp_path, capfd):
    seen = []

    def ready(profiler):
        seen.append((profiler, profiles(tmp_path)))

    wanted = schedule(wait=1, active=1, repeat=2)
    with Profiler(output_path=tmp_path, schedule=wanted, on_trace_ready=ready) as profiler:
        run_steps(profiler, 8)
    assert seen == [(profiler, ["."]), (profiler, [".", "2"])]


def test_a_function_may_call_a_handler_whose_folder_has_the_profiles(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    handler = tensorboard_trace_handler(tmp_path / "logs")
    with profile(
        schedule=schedule(wait=0, active=1, repeat=1), on_trace_ready=lambda p: handler(p)
    ) as profiler:
        run_steps(profiler, 3)
    assert profiles(tmp_path) == ["logs"]


def test_a_block_starts_a_profiler_with_a_schedule(tmp_path, capfd):
    wanted = schedule(wait=0, active=2, repeat=1)
    with Profiler(output_path=tmp_path, start_profile=False, schedule=wanted) as profiler:
        run_steps(profiler, 3)
    assert profiles(tmp_path) == ["."]


def test_profilers_of_one_folder_overwrite_none(tmp_path, capfd):
    for _ in range(3):
        profiler = Profiler(output_path=tmp_path)
        nn.Dense(2, 1)(mindspore.Tensor(ROWS[:4]))
        profiler.analyse()
    assert profiles(tmp_path) == [".", "2", "3"]


def test_a_profiler_that_is_dropped_ends(tmp_path, capfd):
    Profiler(output_path=tmp_path / "dropped")
    assert profiles(tmp_path) == ["dropped"]
    Profiler(output_path=tmp_path / "next").stop()


def test_profiles_are_analysed_later_with_those_below_them(tmp_path, capfd):
    from mindspore.profiler.profiler import analyse

    with Profiler(output_path=tmp_path, schedule=schedule(wait=0, active=1, repeat=2)) as profiler:
        run_steps(profiler, 3)
    printed = capfd.readouterr().out
    analyse(str(tmp_path), pretty=True)
    assert capfd.readouterr().out == printed
    Profiler.offline_analyse(tmp_path)
    assert capfd.readouterr().out == printed
    with pytest.raises(FileNotFoundError, match="there is no profile in"):
        analyse(tmp_path / "other")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"schedule": lambda step: 1}, r"is what mindspore.profiler.schedule\(wait=..., active=...\)"),
        ({"on_trace_ready": 5}, "on_trace_ready is a function, not int"),
    ],
)
def test_mistakes_of_profilers_are_named(settings, told):
    with pytest.raises(TypeError, match=told):
        Profiler(**settings)


def test_examples_of_mindspores_run(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    profile([mindspore.profiler.ProfilerActivity.CPU], True, False).stop()
    wanted = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=2)
    with Profiler(schedule=wanted, on_trace_ready=tensorboard_trace_handler) as profiler:
        run_steps(profiler, 15)
    assert profiles(tmp_path) == ["data", "data/2"]


def write_steps(folder, start, stop, **others):
    (folder / "profiler_config.json").write_text(
        json.dumps({"start_step": start, "stop_step": stop, "profiler_level": 1, **others})
    )


def recorded_steps(folder):
    """How often an op ran that each step runs once."""
    (rank,) = _profile._load(folder)
    return {op[3] for op in rank.data["ops"]}


def test_a_file_says_while_a_loop_runs_which_steps_are_recorded(tmp_path, capfd):
    monitor = DynamicProfilerMonitor(tmp_path / "asked", tmp_path / "out")
    assert json.loads((tmp_path / "asked/profiler_config.json").read_text())["start_step"] == -1
    run_steps(monitor, 3)
    assert profiles(tmp_path) == []
    write_steps(tmp_path / "asked", 6, 8)
    run_steps(monitor, 7)  # the fourth to the tenth
    assert profiles(tmp_path / "out") == ["."]
    assert recorded_steps(tmp_path / "out") == {3}
    write_steps(tmp_path / "asked", 13, 13)
    run_steps(monitor, 4)
    assert recorded_steps(tmp_path / "out/2") == {1}
    write_steps(tmp_path / "asked", 3, 5)
    capfd.readouterr()
    run_steps(monitor, 2)
    assert "start_step is 3 in" in capfd.readouterr().out
    assert profiles(tmp_path / "out") == [".", "2"]


def test_a_file_says_which_steps_of_a_model_are_recorded(tmp_path, capfd):
    write_steps(tmp_path, 2, 4)
    monitor = DynamicProfilerMonitor(
        cfg_path=str(tmp_path), output_path=str(tmp_path / "out"), poll_interval=1
    )
    net = nn.Dense(2, 1)
    data = mindspore.dataset.NumpySlicesDataset((ROWS, ROWS[:, :1]), ["x", "y"]).batch(4)
    model = mindspore.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    model.train(1, data, callbacks=[monitor])
    (rank,) = _profile._load(tmp_path / "out")
    assert {op[3] for op in rank.data["ops"]} == {3}


def test_a_recording_ends_where_the_file_says_other_steps_and_where_the_loop_ends(tmp_path, capfd):
    write_steps(tmp_path, 1, 50)
    monitor = DynamicProfilerMonitor(tmp_path, tmp_path / "out")
    run_steps(monitor, 2)
    write_steps(tmp_path, 4, 50)
    run_steps(monitor, 3)  # the change is seen behind the third, and the fifth is recorded
    assert profiles(tmp_path / "out") == ["."]
    del monitor
    assert profiles(tmp_path / "out") == [".", "2"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"start_step": 2', "DynamicProfilerMonitor records nothing by"),
        (
            '{"start_step": "2", "stop_step": 3}',
            "start_step is '2' and stop_step 3: numbers of steps are needed",
        ),
        ('{"start_step": 5, "stop_step": 3}', "stop_step is not before start_step"),
        ("[]", "it is no object"),
    ],
)
def test_mistakes_in_the_file_are_told_and_the_loop_goes_on(tmp_path, capfd, text, told):
    (tmp_path / "profiler_config.json").write_text(text)
    run_steps(DynamicProfilerMonitor(tmp_path, tmp_path / "out"), 4)
    assert told in "".join(capfd.readouterr())
    assert profiles(tmp_path) == []


SCRIPT = """
import mindspore, numpy
from mindspore import nn
{profiler}
nn.Dense(2, 1)(mindspore.Tensor(numpy.ones((4, 2), numpy.float32)))
"""


def script(folder, profiler="", **variables):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(profiler=profiler)],
        cwd=folder,
        env={**clean_environment(), **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_profiler_that_nobody_stops_ends_with_the_script(tmp_path):
    done = script(tmp_path, "profiler = mindspore.profiler.profile()")
    assert profiles(tmp_path) == ["data"]
    assert "trace.json" in done.stdout


def test_a_script_is_recorded_by_the_variable(tmp_path):
    done = script(tmp_path, MS_PROFILER_OPTIONS='{"start": true, "output_path": "p"}')
    assert profiles(tmp_path) == ["p"] and "trace.json" in done.stdout
    assert script(tmp_path, MS_PROFILER_OPTIONS='{"start": false}').stderr == ""
    told = script(tmp_path, MS_PROFILER_OPTIONS="on").stderr
    assert "MS_PROFILER_OPTIONS is 'on', so nothing is recorded" in told


def test_a_setting_that_no_profiler_knows_is_told_with_the_one_that_was_meant(tmp_path, capfd):
    settings = {"profile_memory": True, "l2_cache": False, "timeline_limit": 500}
    Profiler(output_path=str(tmp_path), ouput_path="elsewhere", colour=3, start_profile=False, **settings)
    told = capfd.readouterr().err
    assert "Profiler knows no ouput_path, which counts for nothing; did you mean output_path?" in told
    assert "knows no colour, which counts for nothing: output_path, start_profile" in told
    assert not [name for name in settings if name in told]


def test_settings_of_profilers_are_found_by_name_and_by_value():
    from mindspore.profiler import AicoreMetrics, ExportType, ProfilerActivity, ProfilerLevel

    assert [each.value for each in ProfilerLevel] == ["LevelNone", "Level0", "Level1", "Level2"]
    assert ProfilerLevel["Level1"] is ProfilerLevel("Level1") is ProfilerLevel.Level1
    assert list(ProfilerActivity.__members__) == ["NPU", "GPU", "CPU"]
    assert (AicoreMetrics.AiCoreNone.value, ExportType.Db.value) == ("None", "db")
    with pytest.raises(AttributeError, match="Levl1"):
        _ = ProfilerLevel.Levl1
    config = mindspore.profiler._ExperimentalConfig(ProfilerLevel.Level2, mstx=True)
    assert (config.profiler_level, config.mstx, config.l2_cache) == (ProfilerLevel.Level2, True, False)


def test_a_schedule_tells_what_is_done_in_a_step():
    wanted = schedule(wait=1, active=2, warmup=1, repeat=2, skip_first=1)
    assert isinstance(wanted, schedule)
    assert [wanted(step).value for step in range(11)] == [0, 0, 1, 2, 3, 0, 1, 2, 3, 0, 0]
    assert wanted.to_dict() == {"wait": 1, "active": 2, "warmup": 1, "repeat": 2, "skip_first": 1}


def test_the_profiler_of_the_variable_is_ended_by_the_script(tmp_path):
    end = "mindspore.EnvProfiler().analyse(); print('behind')"
    done = script(tmp_path, end, MS_PROFILER_OPTIONS='{"start": true, "output_path": "p"}')
    assert profiles(tmp_path) == ["p"] and "behind" in done.stdout.partition("trace.json")[2]
    assert script(tmp_path, end).stdout == "behind\n"
