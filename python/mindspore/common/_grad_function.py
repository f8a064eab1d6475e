"""mindspore.common._grad_function: a function with a gradient of its own, without a cell."""

import muster
from mindspore import _names
from muster import Cell, ops


class _Applied(Cell):
    """One call of a function: its backward() is the cell's bprop."""

    def __init__(self, kind, settings):
        super().__init__(auto_prefix=False)
        self._kind, self._settings = kind, settings
        self._ctx = kind()

    def construct(self, *inputs):
        return self._kind.forward(self._ctx, *inputs, **self._settings)

    def bprop(self, *given):
        *inputs, _, gradient = given
        arriving = gradient if isinstance(gradient, tuple) else (gradient,)
        leaving = self._kind.backward(self._ctx, *arriving)
        leaving = leaving if isinstance(leaving, tuple) else (leaving,)
        if len(leaving) != len(inputs):
            raise ValueError(
                f"{self._kind.__name__}.backward: {len(leaving)} gradients of {len(inputs)} inputs"
            )
        return tuple(map(_given, inputs, leaving))


def _given(value, gradient):
    """None stands for no gradient."""
    return ops.zeros_like(value) if gradient is None and isinstance(value, muster.Tensor) else gradient


class _Function:
    """Base of classes with static forward(ctx, ...) and backward(ctx, ...), of which apply(...) is called.

    What forward() notes in ctx, as by save_for_backward(), backward() finds there.
    """

    saved_tensors = ()

    @staticmethod
    def forward(ctx, *args, **kwargs):
        """What apply() gives: a tensor or a tuple of them."""
        raise NotImplementedError("forward function should be customized.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """A gradient, or None, for each argument of forward(), from those of what it gave."""
        raise NotImplementedError("backward function should be customized.")

    @classmethod
    def apply(cls, *args, **kwargs):
        """What forward() gives for these arguments."""
        return _Applied(cls, kwargs)(*args)

    def save_for_backward(self, *tensors):
        """Keeps tensors for backward(), which finds them in ctx.saved_tensors."""
        self.saved_tensors = tensors

    def mark_dirty(self, *args):
        """Nothing: a tensor that is changed in place is another value."""

    def mark_non_differentiable(self, *args):
        """Nothing: backward() says what has no gradient."""

    def set_materialize_grads(self, value):
        """Nothing: gradients of what nobody used are zeros."""


__all__ = ["_Function"]
__getattr__ = _names.missing(__name__)
