"""Gradients of weights that are no Parameters: tensors on which a library has set a `param_info`."""

import muster
from muster import _core


def is_own(weights) -> bool:
    """Whether there are such among the weights."""
    return isinstance(weights, (tuple, list)) and any(map(_is_tensor_of_library, weights))


def _is_tensor_of_library(each) -> bool:
    if isinstance(each, muster.Parameter) or not isinstance(each, muster.Tensor):
        return False
    return each.param_info is not None


def value_and_grad(fn, positions, weights, has_aux=False):
    """muster.value_and_grad: the tensors go in as arguments before those of the function, and each is, while
    it runs, what came in."""
    tensors = [each for each in weights if not isinstance(each, muster.Parameter)]
    parameters = tuple(each for each in weights if isinstance(each, muster.Parameter))
    count = len(tensors)
    asked = () if positions is None else (positions,) if isinstance(positions, int) else tuple(positions)
    places = (*range(count), *(count + at for at in asked))

    def both(*args, **kwargs):
        held = [muster.ops.stop_gradient(each) for each in tensors]

        def with_weights(*given):
            _put(tensors, given[:count])
            try:
                return fn(*given[count:], **kwargs)
            finally:
                _put(tensors, held)

        both_of = muster.value_and_grad(with_weights, places, parameters or None, has_aux)
        results, found = both_of(*held, *args)
        of_places, of_parameters = found if parameters else (found, ())
        of_weights = _in_order(weights, iter(of_places[:count]), iter(of_parameters))
        if positions is None:
            return results, of_weights
        of_args = of_places[count] if isinstance(positions, int) else tuple(of_places[count:])
        return results, (of_args, of_weights)

    return both


def _put(tensors, values) -> None:
    for tensor, value in zip(tensors, values, strict=True):
        _core._set_value(tensor, value)


def _in_order(weights, of_tensors, of_parameters) -> tuple:
    return tuple(
        next(of_parameters if isinstance(each, muster.Parameter) else of_tensors) for each in weights
    )
