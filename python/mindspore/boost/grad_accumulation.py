"""mindspore.boost.grad_accumulation: gradients of several steps for one update."""

import muster
from mindspore import _names, _optimizers
from mindspore.nn._loss_scale import update_where
from mindspore.ops.composite import HyperMap, MultitypeFuncGraph
from muster import ops

gradient_accumulation_op = MultitypeFuncGraph("gradient_accumulation_op")
gradient_clear_op = MultitypeFuncGraph("gradient_clear_op")


@gradient_accumulation_op.register("Number", "Tensor", "Tensor")
def _accumulate(steps, total, gradient):
    """Adds gradient / steps to the parameter `total`."""
    return ops.assign_add(total, ops.div(gradient, steps))


@gradient_clear_op.register("Tensor")
def _clear(total):
    """Sets the parameter `total` to zeros."""
    return ops.assign(total, ops.zeros_like(total))


class GradientAccumulation(muster.Cell):
    """Keeps the mean of the gradients of `max_accumulation_step` steps, then updates with it."""

    def __init__(self, max_accumulation_step, optimizer):
        super().__init__(auto_prefix=False)
        if not isinstance(max_accumulation_step, int) or max_accumulation_step < 1:
            raise ValueError(
                "GradientAccumulation: max_accumulation_step is a whole number of at least 1, "
                f"not {max_accumulation_step!r}"
            )
        _optimizers.refuse_tables(
            "GradientAccumulation",
            optimizer,
            "add up gradients by hand, all of those that are computed, for an optimizer whose loss_scale is "
            "the number of steps",
        )
        self._max_accumulation_step = max_accumulation_step
        self.optimizer = optimizer
        self.hyper_map = HyperMap()
        self._grad_accumulation = []
        for parameter in optimizer.parameters:
            name = f"grad_accumulation.{parameter.name}"
            total = muster.Parameter(ops.zeros(parameter.shape), name=name, requires_grad=False)
            setattr(self, name.replace(".", "_"), total)
            self._grad_accumulation.append(total)
        self._grad_accumulation = tuple(self._grad_accumulation)
        self._accumulation_step = muster.Parameter(
            muster.Tensor(0, muster.int32), name="accumulation_step", requires_grad=False
        )

    def construct(self, loss, grads):
        """`loss`; the optimizer updates in every max_accumulation_step-th call."""
        for total, gradient in zip(self._grad_accumulation, grads, strict=True):
            _accumulate(self._max_accumulation_step, total, gradient)
        step = ops.add(self._accumulation_step, 1)
        updates = ops.greater_equal(step, self._max_accumulation_step)
        update_where(self.optimizer, tuple(ops.mul(total, 1) for total in self._grad_accumulation), updates)
        for total in self._grad_accumulation:
            ops.assign(total, ops.select(updates, ops.zeros_like(total), total))
        ops.assign(self._accumulation_step, ops.select(updates, ops.zeros_like(step), step))
        return loss


__all__ = ["GradientAccumulation", "gradient_accumulation_op", "gradient_clear_op"]
__getattr__ = _names.missing(__name__)
