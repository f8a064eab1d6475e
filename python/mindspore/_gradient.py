"""Functions of gradients with MindSpore's signatures."""

import functools
import math
import sys

import muster
from mindspore import _compiled, _tensor_weights, _tensors
from muster import _core, ops


def _refuse_without_gradients():
    if _core._is_without_gradient():
        raise RuntimeError("In no_grad context, you can not calculate gradient")


def value_and_grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False):
    """muster.value_and_grad; with `return_ids` each gradient comes as (its position or name, gradient)."""
    grad_position = _checked_positions(grad_position, weights)
    both = _over_workers(_of_tensors(fn, grad_position, weights, has_aux), grad_position, weights)
    return _named(both, grad_position, weights) if return_ids else both


def _checked_positions(positions, weights):
    """As muster.value_and_grad takes them; a tuple of one position is that position, as in MindSpore."""
    if positions is None:
        if weights is None:
            raise ValueError("grad_position and weights are both None: name what gradients are wanted of")
        return None
    places = tuple(positions) if isinstance(positions, (tuple, list)) else (positions,)
    for place in places:
        if not isinstance(place, int):
            raise TypeError(f"grad_position is a whole number or a tuple of them, not {positions!r}")
        if place < 0:
            raise ValueError(f"grad_position counts from 0, and {positions!r} has {place}")
    if len(set(places)) != len(places):
        raise ValueError(f"grad_position has a position twice: {positions!r}")
    return int(places[0]) if len(places) == 1 else tuple(map(int, places))


def _places(positions):
    return () if positions is None else (positions,) if isinstance(positions, int) else tuple(positions)


def _has_tensor(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return any(map(_has_tensor, value))
    return not isinstance(value, (int, float, str, type(None)))


def _with_tensors(positions, args):
    """The positions, without those of numbers, texts and None."""
    if positions is None:
        return None
    places = _places(positions)
    kept = tuple(at for at in places if at >= len(args) or _has_tensor(args[at]))
    return positions if kept == places else kept


def _of_tensors(fn, positions, weights=None, has_aux=False, is_whole=False):
    """muster.value_and_grad; what holds no tensor at one of the positions has no gradient and is left out.

    One that remains is a gradient alone (with `is_whole` a tuple), none is ().
    """
    _refuse_without_gradients()
    takes = _tensor_weights if _tensor_weights.is_own(weights) else muster
    if positions is None:
        return _of_weights(takes.value_and_grad(fn, None, weights, has_aux), has_aux)
    functions = {}

    def function_for(places, named):
        if (places, named) not in functions:
            called = _called_by(fn, named)
            functions[places, named] = takes.value_and_grad(called, places, weights, has_aux)
        return functions[places, named]

    def both(*args, **kwargs):
        _refuse_without_gradients()
        args, kwargs, named = _reached_by(positions, args, kwargs)
        kept = _with_tensors(positions, args)
        if kept is positions:
            return _through_hooks(function_for(positions, named), positions, weights, args, kwargs)
        if not kept and weights is None:
            return _called_by(fn, named)(*args, **kwargs), ()
        places = kept[0] if len(kept) == 1 and not is_whole else kept if kept else None
        results, found = _through_hooks(function_for(places, named), places, weights, args, kwargs)
        return results, found if kept else ((), found)

    return _with_others(both) if has_aux else both


def _of_weights(function, has_aux):
    """The function, which gives gradients of weights alone. Loops by hand call it at each step, so that it
    calls as little as it can."""

    def both(*args, **kwargs):
        if _core._is_without_gradient():
            _refuse_without_gradients()
        with _compiled.marked_in_graph_mode():
            found = function(*args, **kwargs)
        if has_aux and (type(found[0]) is not tuple or len(found[0]) < 2):
            require_more(found[0])
        return found

    return both


def _reached_by(positions, args, kwargs):
    """The arguments, with those that are given by name behind the others where a position counts so far, and
    the names of these: positions count arguments in the order of the call, as in MindSpore."""
    if not kwargs or all(at < len(args) for at in _places(positions)):
        return args, kwargs, ()
    return (*args, *kwargs.values()), {}, tuple(kwargs)


def _with_others(both):
    def checked(*args, **kwargs):
        results, found = both(*args, **kwargs)
        require_more(results)
        return results, found

    return checked


def _through_hooks(function, positions, weights, args, kwargs):
    """What the function gives, with the gradients of arguments as the functions of register_hook() leave them
    that the arguments have before the call."""
    hooks = [_tensors.gradient_hooks(args[at]) for at in _places(positions) if at < len(args)]
    with _compiled.marked_in_graph_mode():
        results, found = function(*args, **kwargs)
    if not any(hooks):
        return results, found
    of_arguments = found if weights is None else found[0]
    if isinstance(positions, int):
        changed = hooks[0](of_arguments)
    else:
        changed = tuple(hook(each) for hook, each in zip(hooks, of_arguments, strict=True))
    return results, changed if weights is None else (changed, found[1])


def _over_workers(both, grad_position, weights):
    """`both`, whose gradients of parameters are those of the whole batch where AutoParallel or
    semi_auto_parallel has said so: each worker computes with its rows."""
    if weights is None:
        return both
    is_one = isinstance(weights, muster.Parameter)
    reducer = Reducer([weights] if is_one else list(weights), is_of_script=False)

    def reduced(*args, **kwargs):
        results_and_found = both(*args, **kwargs)
        if not reducer.is_due():
            return results_and_found
        results, found = results_and_found
        of_weights = found if grad_position is None else found[1]
        of_weights = reducer((of_weights,))[0] if is_one else reducer(of_weights)
        return results, of_weights if grad_position is None else (found[0], of_weights)

    return reduced


def shares_one_batch():
    """Whether the workers compute one batch together, over a mesh or by a plan: what each sees is of all."""
    parallel = sys.modules.get("muster.parallel")
    return parallel is not None and parallel._shares["batch"]


class Reducer:
    """Gradients reduced over the workers: in the place of a script's own reducer where gradients are not
    those of the whole batch by themselves, or, with `is_of_script` False, where they are to be; else they
    stay as they are. Asked at each call, since AutoParallel is often made behind the cells that it is for."""

    def __init__(self, parameters, is_of_script=True):
        self._parameters, self._is_of_script = parameters, is_of_script
        self._reducer = None

    def is_due(self):
        """Whether gradients change. Each step asks: first what is cheap and mostly decides."""
        utils = sys.modules.get("mindspore.parallel._utils")  # without it no AutoParallel was made
        if (utils is not None and utils._reduces_by_itself()) == self._is_of_script:
            return False
        return muster._core._context()["world_size"] > 1 and not shares_one_batch()

    def __call__(self, gradients):
        if not self.is_due():
            return gradients
        if self._reducer is None:
            self._reducer = muster.nn.DistributedGradReducer(self._parameters)
        return self._reducer(gradients)


def _named(both, grad_position, weights):
    def named(*args, **kwargs):
        results, found = both(*args, **kwargs)
        kept = _with_tensors(grad_position, _reached_by(grad_position, args, kwargs)[0])
        if kept is not grad_position and len(kept) == 1:
            kept = kept[0]
        return results, _with_ids(found, kept, weights)

    return named


def require_more(results) -> None:
    """With has_aux the loss comes with others: a tensor alone would be taken apart along its first axis."""
    if not isinstance(results, (tuple, list)) or len(results) < 2:
        raise ValueError(
            "with has_aux=True the function gives a tuple, the loss first, of at least two results; "
            f"this one gave {type(results).__name__}"
        )


def grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False):
    """The gradients of value_and_grad alone; with `has_aux`, (gradients, results behind the loss)."""
    grad_position = _checked_positions(grad_position, weights)
    both = _over_workers(_of_tensors(fn, grad_position, weights, has_aux), grad_position, weights)
    if return_ids:
        both = _named(both, grad_position, weights)

    def gradients(*args, **kwargs):
        results, found = both(*args, **kwargs)
        return (found, tuple(results[1:])) if has_aux else found

    return gradients


def _with_ids(found, grad_position, weights):
    def of(parts, keys, is_one):
        return (keys[0], parts) if is_one else tuple(zip(keys, parts, strict=True))

    def of_positions(parts):
        is_one = isinstance(grad_position, int)
        return of(parts, (grad_position,) if is_one else grad_position, is_one)

    def of_weights(parts):
        is_one = isinstance(weights, muster.Parameter)
        names = [parameter.name for parameter in ((weights,) if is_one else weights)]
        return of(parts, names, is_one)

    if weights is None:
        return of_positions(found)
    if grad_position is None:
        return of_weights(found)
    return of_positions(found[0]), of_weights(found[1])


def _apart(flows, inputs):
    """The gradients of results, none of which is an input: one that is would have a gradient itself."""
    if isinstance(flows, tuple):
        return tuple(_apart(flow, inputs) for flow in flows)
    return ops.mul(flows, 1) if any(flows is each for each in inputs) else flows


def others_of(results):
    """What stands behind the first result: one as it is, more as a tuple."""
    return results[1] if len(results) == 2 else tuple(results[1:])


def vjp(fn, *inputs, weights=None, has_aux=False):
    """The result of fn(*inputs), and a function that gives the gradients of the inputs for those of the
    result; with `weights` also of the parameters, with `has_aux` what stands behind the first result."""

    def pulled(*flows):
        flows = _apart(flows, inputs)

        def weighed(*args):
            results = fn(*args)
            return _sum_of_products(
                results[0] if has_aux else results, flows[0] if len(flows) == 1 else flows
            )

        positions = tuple(range(len(inputs)))
        return muster.value_and_grad(weighed, positions, weights)(*inputs)[1]

    results = fn(*inputs)
    if has_aux:
        require_more(results)
    return (results[0], pulled, others_of(results)) if has_aux else (results, pulled)


def jvp(fn, inputs, v, has_aux=False):
    """The result of fn, and how it changes when the inputs change by `v`: the gradient of the gradient."""
    inputs, v = (each if isinstance(each, tuple) else (each,) for each in (inputs, v))

    def main(*args):
        results = fn(*args)
        return results[0] if has_aux else results

    results = fn(*inputs)
    if has_aux:
        require_more(results)
    first = results[0] if has_aux else results
    is_one = not isinstance(first, tuple)
    flows = tuple(ops.ones_like(each) for each in ((first,) if is_one else first))

    def inner(flow, at):
        def of_flow(*given):
            def weighed(*args):
                return _sum_of_products(main(*args), given[0] if is_one else given)

            gradients = muster.value_and_grad(weighed, tuple(range(len(at))))(*at)[1]
            products = (ops.reduce_sum(ops.mul(g, d)) for g, d in zip(gradients, v, strict=True))
            return functools.reduce(ops.add, products)

        return muster.value_and_grad(of_flow, tuple(range(len(flow))))(*flow)[1]

    moved = inner(flows, inputs)
    moved = moved[0] if is_one else moved
    return (first, moved, others_of(results)) if has_aux else (results, moved)


def jacrev(fn, grad_position=0, has_aux=False):
    """A function that gives the Jacobian of fn: of the shape of the result, then of the input.

    A row for each element of a result, one gradient after the other. With a tuple of positions it is a tuple
    with a Jacobian for each input, of several results a tuple of those. With `has_aux` it is
    (Jacobian, results behind the first).
    """
    positions = (grad_position,) if isinstance(grad_position, int) else tuple(grad_position)

    def of_result(at):
        def weighed(flow, *args):
            results = fn(*args)
            return ops.reduce_sum(ops.mul(results if at is None else results[at], flow))

        return muster.value_and_grad(weighed, tuple(1 + place for place in positions))

    def rows(args, result, at):
        gradients, size = of_result(at), math.prod(result.shape)
        import numpy  # costs more to load than the rest of mindspore's names together

        flows = numpy.eye(size, dtype=numpy.float32).reshape(size, *result.shape)
        found = [gradients(ops.cast(muster.Tensor(flow), result.dtype), *args)[1] for flow in flows]
        jacobians = tuple(
            ops.reshape(ops.stack(list(parts)), (*result.shape, *args[place].shape))
            for place, parts in zip(positions, zip(*found, strict=True), strict=True)
        )
        return jacobians[0] if isinstance(grad_position, int) else jacobians

    def jacobian(*args):
        results = fn(*args)
        if has_aux:
            require_more(results)
            return rows(args, results[0], 0), results[1] if len(results) == 2 else tuple(results[1:])
        if isinstance(results, tuple):
            return tuple(rows(args, result, at) for at, result in enumerate(results))
        return rows(args, results, None)

    return jacobian


def jacfwd(fn, grad_position=0, has_aux=False):
    """What jacrev() gives, made as it makes it: a column for each input would cost two gradients here."""
    return jacrev(fn, grad_position, has_aux)


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
        functions = {}  # by the number of arguments, and the names of those that have one

        def gradients(*args, sens=None, **named):
            if sens is not None:
                args = (*args, sens)
            count = len(args) - self.sens_param
            key = count, *named
            if key not in functions:
                called = _called_by(fn, tuple(named))
                functions[key] = self._function(called, weights, grad_position, count + len(named))
            if isinstance(fn, muster.Cell) and not named:
                _core._resume_call(fn, args[:count])
            return functions[key](*args[:count], *named.values(), *args[count:])[1]

        return gradients

    def _function(self, fn, weights, grad_position, inputs):
        positions = tuple(range(inputs)) if self.get_all else grad_position
        if self.get_by_list and not self.get_all:
            positions = None

        def weighed(*args):
            return _sum_of_products(fn(*args[:-1]), args[-1])

        weights = weights if self.get_by_list else None
        both = _of_tensors(weighed if self.sens_param else fn, positions, weights, is_whole=True)
        return _over_workers(both, positions, weights)


def _called_by(fn, names: tuple):
    """The function, whose last arguments reach it by these names."""
    if not names:
        return fn

    def call(*args):
        count = len(args) - len(names)
        return fn(*args[:count], **dict(zip(names, args[count:], strict=True)))

    return call


def _weights_of(fn):
    cell = fn if isinstance(fn, muster.Cell) else getattr(fn, "__self__", None)
    if not isinstance(cell, muster.Cell):
        raise TypeError("GradOperation(get_by_list=True) needs weights for a function that is no cell")
    return cell.trainable_params()


def _sum_of_products(results, flows):
    if isinstance(results, dict):
        if not isinstance(flows, dict) or len(flows) != len(results):
            raise ValueError(f"sens must be a dict of {len(results)} tensors, one for each result")
        return _sum_of_products(tuple(results.values()), tuple(flows.values()))
    if not isinstance(results, tuple):
        return ops.reduce_sum(ops.mul(results, flows))
    if not isinstance(flows, tuple) or len(flows) != len(results):
        raise ValueError(f"sens must be a tuple of {len(results)} tensors, one for each result")
    return tuple(ops.reduce_sum(ops.mul(result, flow)) for result, flow in zip(results, flows, strict=True))


_core._merge_calls(True)  # a step that calls a cell and then takes its gradient makes one forward pass
