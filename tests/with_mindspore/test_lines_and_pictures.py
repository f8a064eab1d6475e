"""Lines of text files, and pictures of PIL that are turned, as MindSpore gives them."""

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import vision


def test_a_line_of_blanks_is_a_line_and_keeps_its_return(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"  lead\ntrail  \n\t\n\na\r\n\r\nlast")
    lines = ds.TextFileDataset(str(path), shuffle=False)
    assert lines.get_dataset_size() == 6
    found = [str(row[0]) for row in lines.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert found == ["  lead", "trail  ", "\t", "a\r", "\r", "last"]


# MindSpore 2.7's answers for the picture below: rows 1 and 6 of the turned one.
ANSWERS = {
    "vision.RandomAffine((10, 10), scale=(1.1, 1.1))": [
        [60, 63, 66, 69, 42, 45, 45, 48, 51, 54],
        [213, 186, 189, 192, 192, 195, 198, 171, 174, 177],
    ],
    "vision.RandomAffine((0, 0), shear=(20, 20))": [
        [0, 30, 33, 36, 39, 42, 45, 48, 51, 54],
        [183, 186, 189, 192, 195, 198, 201, 204, 207, 0],
    ],
    "vision.RandomAffine((30, 30), resample=vision.Inter.LINEAR)": [
        [0, 102, 89, 77, 64, 52, 40, 27, 18, 0],
        [0, 0, 220, 214, 202, 189, 177, 165, 152, 138],
    ],
}


@pytest.mark.parametrize("call", ANSWERS)
def test_a_picture_is_turned_about_the_middle_that_mindspore_takes(call):
    images = pytest.importorskip("PIL.Image")
    picture = images.fromarray((np.arange(80).reshape(8, 10) * 3).astype(np.uint8))
    made = eval(call, {"vision": vision})(picture)
    assert np.asarray(made)[[1, 6]].tolist() == ANSWERS[call]
