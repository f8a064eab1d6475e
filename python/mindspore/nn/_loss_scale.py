"""Training steps whose gradients are computed of a scaled loss, and what scales it."""

import muster
from mindspore import _optimizers, _tensors
from mindspore._gradient import GradOperation, Reducer, shares_one_batch
from mindspore.ops.composite import HyperMap
from muster import ops


def all_finite(inputs):
    """Whether no element of a tensor, or of a tuple or list of them, is infinite or NaN: a bool tensor ()."""
    finite = None
    for tensor in [inputs] if isinstance(inputs, muster.Tensor) else inputs:
        here = ops.reduce_all(ops.isfinite(tensor))
        finite = here if finite is None else ops.logical_and(finite, here)
    return muster.Tensor(True) if finite is None else finite


def _scalar(value, dtype, name: str) -> muster.Parameter:
    return muster.Parameter(muster.Tensor(value, dtype), name=name, requires_grad=False)


class FixedLossScaleUpdateCell(muster.Cell):
    """Leaves the loss scale as it is, and gives `overflow` back."""

    def __init__(self, loss_scale_value):
        super().__init__()
        self.loss_scale_value = loss_scale_value

    def get_loss_scale(self):
        """The loss scale."""
        return self.loss_scale_value

    def construct(self, loss_scale, overflow):
        """`overflow`."""
        return overflow


class DynamicLossScaleUpdateCell(muster.Cell):
    """Divides the loss scale by `scale_factor` in a step that overflows, but not below 1.

    After `scale_window` steps without one it is multiplied by it.
    """

    def __init__(self, loss_scale_value, scale_factor, scale_window):
        super().__init__()
        self.loss_scale_value = loss_scale_value
        self.scale_factor, self.scale_window = scale_factor, scale_window
        self.cur_iter = _scalar(1, muster.int32, "current_iterator_step")
        self.last_overflow_iter = _scalar(0, muster.int32, "last_overflow_iterator_step")

    def get_loss_scale(self):
        """The loss scale that the first step has."""
        return self.loss_scale_value

    def construct(self, loss_scale, overflow):
        """Writes the parameter `loss_scale`; gives `overflow` back."""
        step, last = ops.add(self.cur_iter, 0), ops.add(self.last_overflow_iter, 0)
        grows = ops.greater_equal(ops.sub(step, last), self.scale_window)
        smaller = ops.maximum(ops.div(loss_scale, self.scale_factor), 1.0)
        kept = ops.select(overflow, smaller, ops.mul(loss_scale, 1.0))
        grows_now = ops.logical_and(grows, ops.logical_not(overflow))
        ops.assign(loss_scale, ops.select(grows_now, ops.mul(kept, self.scale_factor), kept))
        ops.assign(self.last_overflow_iter, ops.select(ops.logical_or(overflow, grows), step, last))
        ops.assign(self.cur_iter, ops.add(step, 1))
        return overflow


def _unscaled(scale, gradient):
    return ops.cast(ops.mul(gradient, ops.cast(ops.reciprocal(scale), gradient.dtype)), gradient.dtype)


def update_where(optimizer, gradients, updates) -> None:
    """An update by `gradients`, or where `updates`, a bool tensor (), is false none."""
    if any(map(_tensors.is_served, optimizer.parameters)):
        if updates:  # what servers have made of a step could not be taken back
            optimizer(gradients)
        return
    written = list(optimizer.get_parameters())
    before = [ops.mul(parameter, 1) for parameter in written]
    optimizer(gradients)
    for parameter, value in zip(written, before, strict=True):
        ops.assign(parameter, ops.select(updates, parameter, value))


class TrainOneStepWithLossScaleCell(muster.nn.TrainOneStepCell):
    """A training step of `network`, which gives a loss; gives (loss, overflow, loss scale).

    Gradients are of loss times scale, and divided by the scale. When one of them is infinite or NaN, nothing
    is updated. `scale_sense` is a cell that changes the scale (DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell), or a tensor of one number.
    """

    def __init__(self, network, optimizer, scale_sense):
        optimizer = _optimizers.of_steps(optimizer)
        super().__init__(network, optimizer)
        _optimizers.refuse_tables(
            "TrainOneStepWithLossScaleCell (of a loss scale manager that is dynamic, or drops updates)",
            optimizer,
            "take TrainOneStepCell(network, optimizer, sens), or FixedLossScaleManager(sens, False), and an "
            "optimizer with loss_scale=sens",
        )
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.hyper_map = HyperMap()
        self.loss_scaling_manager = None
        self.reducer_flag = muster._core._context()["world_size"] > 1
        self.grad_reducer = Reducer(self.weights)  # behind self.grad, which reduces where AutoParallel does
        self._own_reducer = Reducer(self.weights, is_of_script=False)
        if isinstance(scale_sense, muster.Cell):
            self.loss_scaling_manager = scale_sense
            self.scale_sense = _scalar(scale_sense.get_loss_scale(), muster.float32, "scale_sense")
        else:
            self.scale_sense = self._given_scale(scale_sense)

    @staticmethod
    def _given_scale(scale) -> muster.Parameter:
        if not isinstance(scale, muster.Tensor | int | float) or isinstance(scale, bool):
            raise TypeError(
                "TrainOneStepWithLossScaleCell: scale_sense is a cell that updates the scale, or a tensor of "
                f"one number, not {type(scale).__name__}"
            )
        if isinstance(scale, muster.Tensor) and scale.shape not in ((), (1,)):
            raise ValueError(
                f"TrainOneStepWithLossScaleCell: scale_sense has shape {scale.shape}; () or (1,) is needed"
            )
        return _scalar(scale, muster.float32, "scale_sense")

    def construct(self, *inputs):
        """(loss, whether the gradients overflowed, the scale that they had)."""
        scale = ops.mul(self.scale_sense, 1.0)
        loss, gradients = self._loss_and_gradients(inputs, scale)
        gradients = self.grad_reducer(gradients)
        overflow = self.process_loss_scale(self.get_overflow_status(None, gradients))
        self._update_unless(overflow, gradients)
        return loss, overflow, scale

    def _loss_and_gradients(self, inputs, scale):
        network = self.network

        def scaled(*arguments):
            loss = network(*arguments)
            return ops.reduce_sum(ops.mul(loss, ops.cast(scale, loss.dtype))), loss

        (_, loss), gradients = muster.value_and_grad(scaled, None, self.weights, has_aux=True)(*inputs)
        gradients = self._own_reducer(gradients)
        return loss, tuple(_unscaled(scale, gradient) for gradient in gradients)

    def _update_unless(self, overflow, gradients) -> None:
        update_where(self.optimizer, gradients, ops.logical_not(overflow))

    def set_sense_scale(self, sens):
        """Sets the loss scale; a tensor."""
        self.scale_sense.set_data(sens)

    def start_overflow_check(self, pre_cond, compute_input):
        """(False, `compute_input`): what overflows is seen in the gradients."""
        return muster.Tensor(False), compute_input

    def get_overflow_status(self, status, compute_output):
        """Whether an element of `compute_output`, gradients of all workers together, is infinite or NaN."""
        finite = all_finite(compute_output)
        # The gradients of every worker are the same sums, and so is what is found in them. Over a mesh they
        # are whole, and where there are stages not every worker asks.
        if self.reducer_flag and not shares_one_batch():
            finite = ops.equal(ops.all_reduce(ops.cast(finite, muster.int32), "min"), 1)
        return ops.logical_not(finite)

    def process_loss_scale(self, overflow):
        """Updates the loss scale, where a cell does; gives `overflow` back."""
        if self.loss_scaling_manager is not None:
            return self.loss_scaling_manager(self.scale_sense, overflow)
        return overflow


class LossScaleManager:
    """What a loss is scaled by, step by step."""

    def get_loss_scale(self):
        """The loss scale."""

    def update_loss_scale(self, overflow):
        """The next loss scale, after a step that overflowed or not."""

    def get_update_cell(self):
        """The cell that updates the scale in a training step."""


class FixedLossScaleManager(LossScaleManager):
    """One loss scale; a step that overflows updates nothing, unless `drop_overflow_update` is False."""

    def __init__(self, loss_scale=128.0, drop_overflow_update=True):
        if loss_scale < 1:
            raise ValueError(f"FixedLossScaleManager: loss_scale is at least 1, not {loss_scale}")
        self._loss_scale = loss_scale
        self._drop_overflow_update = drop_overflow_update

    def get_loss_scale(self):
        """The loss scale."""
        return self._loss_scale

    def get_drop_overflow_update(self):
        """Whether a step that overflows updates nothing."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow):
        """Changes nothing."""

    def get_update_cell(self):
        """A FixedLossScaleUpdateCell, or None without `drop_overflow_update`."""
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A loss scale that shrinks when a step overflows, and grows after `scale_window` steps without one."""

    def __init__(self, init_loss_scale=2**24, scale_factor=2, scale_window=2000):
        if init_loss_scale < 1:
            raise ValueError(f"DynamicLossScaleManager: init_loss_scale is at least 1, not {init_loss_scale}")
        if scale_factor <= 0 or scale_window <= 0:
            raise ValueError("DynamicLossScaleManager: scale_factor and scale_window are greater than 0")
        self.loss_scale, self.scale_factor, self.scale_window = init_loss_scale, scale_factor, scale_window
        self.increase_ratio = scale_factor
        self.decrease_ratio = 1 / scale_factor
        self.cur_iter = 1
        self.last_overflow_iter = 0

    def get_loss_scale(self):
        """The loss scale."""
        return self.loss_scale

    def update_loss_scale(self, overflow):
        """Shrinks or grows it."""
        if overflow:
            self.loss_scale = max(self.loss_scale * self.decrease_ratio, 1)
            self.last_overflow_iter = self.cur_iter
        elif (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
            self.loss_scale *= self.increase_ratio
        self.cur_iter += 1

    def get_drop_overflow_update(self):
        """True: a step that overflows updates nothing."""
        return True

    def get_update_cell(self):
        """A DynamicLossScaleUpdateCell."""
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)


class LossScaler:
    """Scales a loss up and gradients down, for training steps written by hand."""

    def scale(self, inputs):
        """`inputs` times the loss scale."""
        raise NotImplementedError

    def unscale(self, inputs):
        """`inputs` divided by the loss scale."""
        raise NotImplementedError

    def adjust(self, grads_finite):
        """Changes the loss scale after a step, whose gradients were finite or not."""
        raise NotImplementedError


def _each(function, inputs):
    if isinstance(inputs, muster.Tensor):
        return function(inputs)
    return type(inputs)(_each(function, entry) for entry in inputs)


def _grad_scale_map(scale_value, inputs):
    """Each tensor times the loss scale."""
    return _each(lambda x: ops.mul(x, ops.cast(scale_value, x.dtype)), inputs)


def _grad_unscale_map(scale_value, inputs):
    """Each tensor divided by the loss scale."""
    return _each(lambda x: _unscaled(scale_value, x), inputs)


class StaticLossScaler(LossScaler):
    """One loss scale."""

    def __init__(self, scale_value):
        if scale_value < 1:
            raise ValueError(f"StaticLossScaler: scale_value is at least 1, not {scale_value}")
        self.scale_value = _scalar(float(scale_value), muster.float32, "scale_value")

    def scale(self, inputs):
        """`inputs` times the loss scale."""
        return _grad_scale_map(self.scale_value, inputs)

    def unscale(self, inputs):
        """`inputs` divided by the loss scale."""
        return _grad_unscale_map(self.scale_value, inputs)

    def adjust(self, grads_finite):
        """Changes nothing."""
        return False


class DynamicLossScaler(StaticLossScaler):
    """A loss scale that shrinks when gradients are not finite, and grows after `scale_window` that are."""

    def __init__(self, scale_value, scale_factor, scale_window):
        super().__init__(scale_value)
        if not isinstance(scale_window, int) or scale_window <= 0:
            raise ValueError(f"DynamicLossScaler: scale_window is a number above 0, not {scale_window!r}")
        if scale_factor <= 0:
            raise ValueError(f"DynamicLossScaler: scale_factor is above 0, not {scale_factor}")
        self.scale_window = scale_window
        self.scale_factor = _scalar(float(scale_factor), muster.float32, "scale_factor")
        self.counter = _scalar(0, muster.int32, "counter")

    def adjust(self, grads_finite):
        """Shrinks or grows it."""
        scale, count = ops.mul(self.scale_value, 1.0), ops.add(self.counter, 0)
        larger = ops.mul(scale, self.scale_factor)
        grows = ops.logical_and(ops.equal(count, self.scale_window - 1), ops.isfinite(larger))
        smaller = ops.maximum(ops.div(scale, self.scale_factor), 1.0)
        ops.assign(self.scale_value, ops.select(grads_finite, ops.select(grows, larger, scale), smaller))
        following = ops.mod(ops.add(count, 1), self.scale_window)
        ops.assign(self.counter, ops.mul(following, ops.cast(grads_finite, muster.int32)))
        return True


__all__ = [
    "DynamicLossScaleManager",
    "DynamicLossScaleUpdateCell",
    "DynamicLossScaler",
    "FixedLossScaleManager",
    "FixedLossScaleUpdateCell",
    "LossScaleManager",
    "LossScaler",
    "StaticLossScaler",
    "TrainOneStepWithLossScaleCell",
    "all_finite",
]
