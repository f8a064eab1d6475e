"""Hooks of datasets, conditions, samplers that are indexed, columns of bytes."""

import io
import sys

import numpy as np
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore.dataset as ds
from mindspore.dataset import debug, vision
from mindspore.mindrecord import FileWriter

_IMAGES = [np.ones((32, 32, 3), np.uint8), np.ones((8, 9, 3), np.float32)]


@pytest.fixture
def debugging():
    yield
    ds.config.set_debug_mode(False)


def _source():
    return ds.GeneratorDataset(_IMAGES, ["image"], shuffle=False)


def test_debug_mode_prints_types_and_shapes(debugging, capsys):
    ds.config.set_debug_mode(True)
    assert ds.config.get_debug_mode()
    rows = _source().map([vision.Resize((4, 5)), vision.HWC2CHW()])
    for number, _ in enumerate(rows.create_tuple_iterator(num_epochs=1)):
        print("row", number)
    wanted = []
    for number, (dtype, shape) in enumerate([("uint8", (32, 32, 3)), ("float32", (8, 9, 3))]):
        seen = [("INPUT", "Resize", shape), ("OUTPUT", "Resize", (4, 5, 3)), ("OUTPUT", "HWC2CHW", (3, 4, 5))]
        for side, name, now in seen:
            wanted.append(f"[Dataset debugger] Print the [{side}] of the operation [{name}].")
            wanted.append(f"Column 0. The dtype is [{dtype}]. The shape is [{now}].")
        wanted.append(f"row {number}")
    assert capsys.readouterr().out.splitlines() == wanted


_SEEN = []  # hooks are copied


class _Notes(debug.DebugHook):
    def compute(self, *args):
        _SEEN.append((self.prev_op_name, args[0][0].shape))
        return "nothing"


def test_hooks_of_a_script_see_rows_and_change_none(debugging):
    _SEEN.clear()
    ds.config.set_debug_mode(True, debug_hook_list=[_Notes()])
    rows = _source().map([vision.Resize((4, 5)), _Notes(), vision.HWC2CHW()])
    assert [row[0].shape for row in rows.create_tuple_iterator(num_epochs=1)] == [(3, 4, 5)] * 2
    assert (None, (4, 5, 3)) in _SEEN
    assert ("HWC2CHW", (3, 4, 5)) in _SEEN


def test_hooks_need_debug_mode():
    with pytest.raises(ValueError, match="set_debug_mode"):
        _source().map([_Notes()])
    with pytest.raises(TypeError, match="hooks of dataset"):
        ds.config.set_debug_mode(True, [print])


def test_rows_behind_sync_wait_are_made_with_what_the_rows_before_left():
    state = {"add": 0}
    rows = ds.NumpySlicesDataset([1, 2, 3], shuffle=False)
    rows = rows.sync_wait("policy", callback=state.update).map(lambda x: x + state["add"])
    iterator = rows.create_tuple_iterator(num_epochs=3, output_numpy=True)
    seen, step = [], 0
    for _ in range(3):
        for row in iterator:
            seen.append(int(row[0]))
            step += 1
            rows.sync_update("policy", data={"add": step * 10})
    assert seen == [1, 12, 23, 31, 42, 53, 61, 72, 83]


def test_conditions_are_checked():
    rows = ds.NumpySlicesDataset([1, 2, 3], shuffle=False).sync_wait("policy")
    for wrong, kind, text in (
        (lambda: rows.map(lambda x: x).shuffle(4), RuntimeError, "No shuffle after sync operators"),
        (lambda: rows.sync_wait("policy"), RuntimeError, "already in use"),
        (lambda: rows.sync_wait("other", num_batch=-1), ValueError, "num_batch need to be greater than 0"),
        (lambda: rows.sync_update("policy", num_batch=-1), RuntimeError, "can only be positive"),
        (lambda: rows.sync_update("nowhere"), RuntimeError, "Condition name not found"),
    ):
        with pytest.raises(kind, match=text):
            wrong()
    assert rows.get_dataset_size() == 3


_NUMBERS = [3, 1, 1, 0, 2, 2, 3]  # more than there are rows


class _Indexed:
    def __getitem__(self, index):
        return _NUMBERS[index]

    def __len__(self):
        return len(_NUMBERS)


class _Iterated:
    def __iter__(self):
        return iter(_NUMBERS)


class _Sampler(ds.Sampler):
    def __iter__(self):
        yield from _NUMBERS


class _Source:
    def __getitem__(self, index):
        return np.array(10 + index)

    def __len__(self):
        return 4


@pytest.mark.parametrize("kind", [_Indexed, _Iterated, _Sampler])
def test_a_sampler_of_a_script_gives_as_many_rows_as_it_likes(kind):
    for source in (
        lambda sampler: ds.NumpySlicesDataset([10, 11, 12, 13], ["x"], sampler=sampler),
        lambda sampler: ds.GeneratorDataset(_Source(), ["x"], sampler=sampler),
    ):
        rows = source(kind())
        for _ in range(2):
            made = rows.create_tuple_iterator(num_epochs=1, output_numpy=True)
            assert [int(row[0]) for row in made] == [10 + number for number in _NUMBERS]
        assert rows.get_dataset_size() == len(_NUMBERS)
    limited = _Sampler(3)
    rows = ds.NumpySlicesDataset([10, 11, 12, 13], ["x"], sampler=limited)
    assert [int(row[0]) for row in rows.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [
        13,
        11,
        11,
    ]


def test_columns_of_bytes_are_decoded(tmp_path):
    pil = pytest.importorskip("PIL.Image")
    picture = io.BytesIO()
    pil.new("RGB", (6, 5), (9, 8, 7)).save(picture, "PNG")
    writer = FileWriter(str(tmp_path / "a.mindrecord"))
    writer.add_schema({"name": {"type": "string"}, "data": {"type": "bytes"}})
    writer.write_raw_data([{"name": "a", "data": picture.getvalue()}])
    writer.commit()
    rows = ds.MindDataset(str(tmp_path / "a.mindrecord"), shuffle=False)
    (row,) = rows.map(vision.Decode(), "data", num_parallel_workers=2).create_dict_iterator(output_numpy=True)
    assert row["data"].shape == (5, 6, 3)
    assert row["data"][0, 0].tolist() == [9, 8, 7]
