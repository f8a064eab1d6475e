"""Functions of gradients with MindSpore's signatures."""

import muster
from mindspore import _names
from muster import ops


def value_and_grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False):
    """muster.value_and_grad."""
    _names.refuse("mindspore.value_and_grad", return_ids=(return_ids, False))
    return muster.value_and_grad(fn, grad_position, weights, has_aux)


def grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False):
    """The gradients of value_and_grad alone; with `has_aux`, (gradients, results behind the loss)."""
    _names.refuse("mindspore.grad", return_ids=(return_ids, False))
    both = muster.value_and_grad(fn, grad_position, weights, has_aux)

    def gradients(*args, **kwargs):
        results, found = both(*args, **kwargs)
        return (found, tuple(results[1:])) if has_aux else found

    return gradients


class GradOperation:
    """Gradients of a function or cell by its first argument, or by what is asked for.

    With `get_all` by all arguments, as a tuple, with `get_by_list` by the weights, with both by both. With
    `sens_param` the last argument is the gradient of the result.
    """

    def __init__(self, get_all=False, get_by_list=False, sens_param=False):
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise TypeError(f"GradOperation: {name} is True or False, not {value!r}")
        self.get_all = get_all
        self.get_by_list = get_by_list
        self.sens_param = sens_param

    def __call__(self, fn, weights=None, grad_position=0):
        if self.get_by_list and weights is None:
            weights = _weights_of(fn)
        functions = {}  # by the number of arguments

        def gradients(*args, sens=None):
            if sens is not None:
                args = (*args, sens)
            inputs = len(args) - self.sens_param
            if inputs not in functions:
                functions[inputs] = self._function(fn, weights, grad_position, inputs)
            return functions[inputs](*args)[1]

        return gradients

    def _function(self, fn, weights, grad_position, inputs):
        positions = tuple(range(inputs)) if self.get_all else grad_position
        if self.get_by_list and not self.get_all:
            positions = None

        def weighed(*args):
            return _sum_of_products(fn(*args[:-1]), args[-1])

        return muster.value_and_grad(
            weighed if self.sens_param else fn, positions, weights if self.get_by_list else None
        )


def _weights_of(fn):
    cell = fn if isinstance(fn, muster.Cell) else getattr(fn, "__self__", None)
    if not isinstance(cell, muster.Cell):
        raise TypeError("GradOperation(get_by_list=True) needs weights for a function that is no cell")
    return cell.trainable_params()


def _sum_of_products(results, flows):
    if not isinstance(results, tuple):
        return ops.reduce_sum(ops.mul(results, flows))
    if not isinstance(flows, tuple) or len(flows) != len(results):
        raise ValueError(f"sens must be a tuple of {len(results)} tensors, one for each result")
    return tuple(ops.reduce_sum(ops.mul(result, flow)) for result, flow in zip(results, flows, strict=True))
