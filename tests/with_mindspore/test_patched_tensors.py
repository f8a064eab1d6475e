"""What libraries that put PyTorch's names on MindSpore set on its tensors, and on their class."""

import copy
import os
import pickle
import subprocess
import sys

import mindspore
import pytest
from mindspore import Tensor
from mindspore.common.initializer import initializer


def test_a_tensor_keeps_attributes_that_a_script_sets():
    x = Tensor([1.0])
    x.tag = "mine"
    kept = [x]
    assert kept[0].tag == "mine" and not hasattr(x + 1, "tag")


class Boxes(Tensor):
    """Made from other arguments than a tensor."""

    def __init__(self, *corners):
        super().__init__(list(corners))

    def width(self):
        return self[1] - self[0]


def _pickled(tensor):
    return pickle.loads(pickle.dumps(tensor))


@pytest.mark.parametrize("copied", [copy.copy, _pickled])
def test_copies_of_a_tensor_have_its_attributes_and_its_class(copied):
    x = Tensor([1.0, 2.0])
    x.scale = 3
    assert copied(x).scale == 3 and copied(x).asnumpy().tolist() == [1, 2]
    boxes = Boxes(1.0, 5.0)
    boxes.kind = "cat"
    made = copied(boxes)
    assert (type(made), made.kind, made.width().item()) == (Boxes, "cat", 4)
    made[0] = 2
    assert boxes.asnumpy().tolist() == [1, 5]


def test_a_deep_copy_of_a_tensor_is_its_elements_alone():
    x = Tensor([1.0])
    x.scale = 3
    assert not hasattr(copy.deepcopy(x), "scale") and not vars(copy.copy(Tensor([1.0])))


def test_a_tensor_that_is_not_filled_yet_is_copied_filled():
    unfilled = initializer("ones", [2], mindspore.float32)
    assert copy.copy(unfilled).asnumpy().tolist() == _pickled(unfilled).asnumpy().tolist() == [1, 1]


REPLACED = """
import mindspore
plain = mindspore.Tensor.__init__
def init(self, *args, where=None, **settings):
    plain(self, *args, **settings)
    self.where = where
mindspore.Tensor.__init__ = init
x = mindspore.Tensor([1.0, 2.0], where="here")
print(x.where, x.shape, mindspore.nn.Dense(2, 1)(x[None]).shape)
"""


def test_an_init_that_a_script_sets_on_tensor_is_called():
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", REPLACED], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout == "here (2,) (1, 1)\n", done.stderr


class _OfDtype(type(Tensor)):
    """isinstance() asks a dtype."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype == cls.element


def test_isinstance_asks_the_metaclass_also_when_the_class_has_objects():
    class Whole(Tensor, metaclass=_OfDtype):
        element = mindspore.int32

    made = Whole([1], mindspore.int32)
    assert isinstance(made, Whole) and isinstance(Tensor(1, mindspore.int32), Whole)
    assert not isinstance(Tensor(1.0), Whole) and isinstance(made, Tensor)
