"""mindspore.common._grad_function: a function with a gradient of its own, without a cell."""

import muster
from mindspore import _errors, _hooks, _names
from muster import Cell, ops


class _Applied(Cell):
    """One call of a function: its backward() is the cell's bprop."""

    def __init__(self, kind, settings):
        super().__init__(auto_prefix=False)
        self._kind, self._settings = kind, settings
        self._ctx = kind()
        self._is_constant = ()
        self._reached = set()  # the outputs, by number, to which a gradient has flowed

    def construct(self, *inputs):
        self._ctx.needs_input_grad = tuple(map(_needs_gradient, inputs))
        given = self._kind.forward(self._ctx, *inputs, **self._settings)
        outputs = given if isinstance(given, tuple) else (given,)
        constants = self._ctx.non_differentiable
        self._is_constant = tuple(any(each is one for one in constants) for each in outputs)
        return given

    def bprop(self, *given):
        *inputs, _, gradient = given
        arriving = gradient if isinstance(gradient, tuple) else (gradient,)
        arriving = tuple(map(self._arriving, range(len(arriving)), arriving))
        self._reached.clear()  # another gradient may be taken
        leaving = self._kind.backward(self._ctx, *arriving)
        leaving = leaving if isinstance(leaving, tuple) else (leaving,)
        if len(leaving) != len(inputs):
            raise _errors.ArgumentError(
                f"{self._kind.__name__}: Function backward return a wrong number of gradients: "
                f"{len(leaving)} of {len(inputs)} inputs"
            )
        return tuple(_fitted(self._kind, *each) for each in zip(inputs, leaving, strict=True))

    def _arriving(self, at, gradient):
        """What backward() gets for an output: bprop has zeros where no gradient flows."""
        return gradient if self._ctx.materialize_grads or at in self._reached else None

    def outputs_of(self, given):
        """The outputs, of which none flows to constants, and others tell that one does."""
        if isinstance(given, tuple):
            return tuple(map(self._output, range(len(given)), given))
        return self._output(0, given)

    def _output(self, at, given):
        if not isinstance(given, muster.Tensor):
            return given
        if self._is_constant[at]:
            return ops.stop_gradient(given)
        if self._ctx.materialize_grads:
            return given
        return _hooks.with_gradient(given, lambda _: self._reached.add(at))


def _needs_gradient(value) -> bool:
    return isinstance(value, muster.Tensor) and getattr(value, "requires_grad", True)


def _fitted(kind, value, gradient):
    """The gradient with the shape and the dtype of its input; None stands for no gradient."""
    is_tensor = isinstance(value, muster.Tensor)
    if gradient is None:
        return ops.zeros_like(value) if is_tensor else None
    where = f"{kind.__name__}.backward"
    if not is_tensor:
        raise _errors.ArgumentError(
            f"{where}: Input is not tensor, but gradient is not none: give None for "
            f"{type(value).__name__} {value!r}"
        )
    if not isinstance(gradient, muster.Tensor):
        raise _errors.ArgumentError(
            f"{where}: Gradient should be none or tensor, not {type(gradient).__name__} {gradient!r}"
        )
    return _reduced(where, gradient, tuple(value.shape)).astype(value.dtype)


def _reduced(where: str, gradient, shape: tuple[int, ...]):
    """Summed over the axes along which an input of this shape was broadcast."""
    given = tuple(gradient.shape)
    if given == shape:
        return gradient
    more = len(given) - len(shape)
    broadcast = [axis for axis in range(len(given)) if axis < more or shape[axis - more] == 1 != given[axis]]
    summed = ops.reduce_sum(gradient, tuple(broadcast), True) if broadcast else gradient
    if more < 0 or tuple(summed.shape)[more:] != shape:
        raise _errors.ArgumentError(
            f"{where}: a gradient of shape {given} is not that of an input of shape {shape}, "
            "nor what the input can be broadcast to"
        )
    return ops.reshape(summed, shape)


class _Function:
    """Base of classes with static forward(ctx, ...) and backward(ctx, ...), of which apply(...) is called.

    What forward() notes in ctx, as by save_for_backward(), backward() finds there.
    """

    saved_tensors = ()
    needs_input_grad = ()  # for each argument whether it is a tensor that may have a gradient
    non_differentiable = ()
    materialize_grads = True  # whether backward() gets zeros for outputs that nobody used, or None

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
        applied = _Applied(cls, kwargs)
        return applied.outputs_of(applied(*args))

    def save_for_backward(self, *tensors):
        """Keeps tensors for backward(), which finds them in ctx.saved_tensors."""
        self.saved_tensors = tensors

    def mark_dirty(self, *args):
        """Nothing: a tensor that is changed in place is another value."""

    def mark_non_differentiable(self, *args):
        """No gradient flows back through these outputs of forward()."""
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        """False: backward() gets None for outputs to which no gradient flows, not zeros."""
        self.materialize_grads = value


__all__ = ["_Function"]
__getattr__ = _names.missing(__name__)
