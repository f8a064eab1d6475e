"""Sources of well-known data sets name the files that they cannot read; a DatasetCache is taken."""

import textwrap

import pytest

BEGIN = """
import pathlib, wave
import mindspore.dataset as ds

folder = pathlib.Path({folder!r})

def refused(make, word):
    try:
        list(make().create_tuple_iterator(num_epochs=1))
    except RuntimeError as error:
        assert word in str(error), error
        return
    raise AssertionError("it was read")
"""
BROKEN = {
    "a table with a cell less": """
        (folder / "train.csv").write_text('"1","a","b"\\n"2","c"\\n')
        refused(lambda: ds.AGNewsDataset(str(folder), "train"), "train.csv")
    """,
    "a MAT file of another level": """
        (folder / "test_32x32.mat").write_bytes(b"MATLAB" + bytes(200))
        refused(lambda: ds.SVHNDataset(str(folder), "test"), "test_32x32.mat")
    """,
    "a MAT file that ends early": """
        head = b"MATLAB 5.0".ljust(124) + b"\\0\\1IM"
        (folder / "test_32x32.mat").write_bytes(head + b"\\x0e\\0\\0\\0\\xff\\0\\0\\0" + bytes(16))
        refused(lambda: ds.SVHNDataset(str(folder), "test"), "test_32x32.mat")
    """,
    "a sound of two channels": """
        with wave.open(str(folder / "0_1.wav"), "wb") as file:
            file.setnchannels(2)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(bytes(16))
        refused(lambda: ds.YesNoDataset(str(folder)), "0_1.wav")
    """,
    "no sound": """
        (folder / "0_1.wav").write_text("words")
        refused(lambda: ds.YesNoDataset(str(folder)), "0_1.wav")
    """,
    "answers without a text": """
        (folder / "dev-v1.1.json").write_text('{"data": [{"paragraphs": [{"context": "c"}]}]}')
        refused(lambda: ds.SQuADDataset(str(folder), "dev"), "dev-v1.1.json")
    """,
    "a folder without pictures": """
        (folder / "a").mkdir()
        refused(lambda: ds.Caltech256Dataset(str(folder)), "Caltech256Dataset")
    """,
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_cannot_be_read_is_named(what, run_with_mindspore, tmp_path):
    run_with_mindspore(BEGIN.format(folder=str(tmp_path)) + textwrap.dedent(BROKEN[what]))


def test_a_dataset_cache_is_taken_and_said_once(run_with_mindspore):
    told = run_with_mindspore("""
        import mindspore.dataset as ds
        cache = ds.DatasetCache(session_id=1, size=0, spilling=False)
        ds.DatasetCache(2)
        data = ds.NumpySlicesDataset([1, 2, 3], shuffle=False).map(lambda x: x + 1, cache=cache)
        assert [int(x) for (x,) in data.create_tuple_iterator(num_epochs=1)] == [2, 3, 4]
        for wrong in (0, -1):
            try:
                ds.DatasetCache(wrong)
            except ValueError:
                continue
            raise AssertionError(wrong)
    """)
    assert told.count("DatasetCache keeps nothing") == 1
