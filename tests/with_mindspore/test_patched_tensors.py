"""What libraries that put PyTorch's names on MindSpore set on its tensors, and on their class."""

import os
import subprocess
import sys

import mindspore
from mindspore import Tensor


def test_a_tensor_keeps_attributes_that_a_script_sets():
    x = Tensor([1.0])
    x.tag = "mine"
    kept = [x]
    assert kept[0].tag == "mine" and not hasattr(x + 1, "tag")


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
