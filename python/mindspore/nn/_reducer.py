"""Gradients over the workers of a job, or of a group of them."""

import muster
from mindspore import _names
from mindspore._gradient import shares_one_batch
from mindspore.communication import GlobalComm, known_as
from muster import ops

_over_all = muster.nn.DistributedGradReducer.__call__


class DistributedGradReducer(muster.nn.DistributedGradReducer):
    """muster.nn.DistributedGradReducer, also over a group of workers and with a divisor of the script's own.

    Args:
        parameters: Those whose gradients come, in their order.
        mean: Whether sums are divided by `degree`; None: as gradients_mean says.
        degree: The divisor; None: the number of all workers, whatever the group.
        fusion_type: Not used: buckets decide what travels together.
        group: The name of a group that create_group has made.
    """

    def __init__(self, parameters, mean=None, degree=None, fusion_type=1, group=GlobalComm.WORLD_COMM_GROUP):
        context = muster._core._context()
        workers = context["world_size"]
        self._parameters, self._group = list(parameters), known_as(group)
        self._is_own = bool(self._group) or degree not in (None, workers)
        divides = context["gradients_mean"] if mean is None else mean
        self._factor = 1 / (degree or workers) if divides else 1
        if self._is_own and any(parameter.is_param_ps for parameter in self._parameters):
            settings = dict(group=(group, "") if self._group else ("", ""), degree=(degree, None, workers))
            _names.refuse("mindspore.nn.DistributedGradReducer with parameters on servers", **settings)
        super().__init__(self._parameters, False if self._is_own else mean)

    def __call__(self, gradients):
        """The reduced gradients, in a tuple; of one tensor the tensor."""
        if not self._is_own and type(gradients) is tuple:  # as each step of a loop by hand calls it
            return _over_all(self, gradients)
        if isinstance(gradients, muster.Tensor):
            return self((gradients,))[0]
        if not self._is_own or shares_one_batch():
            return _over_all(self, gradients)
        if not self._group:
            return tuple(each * self._factor for each in _over_all(self, gradients))
        if muster._core._context()["zero_level"]:
            raise NotImplementedError(
                f"DistributedGradReducer(group={self._group!r}): Zero divides an optimizer over all workers, "
                "and takes pieces of gradients that are of all of them: train without Zero "
                "(enable_parallel_optimizer=False), or reduce over all workers"
            )
        pairs = zip(self._parameters, gradients, strict=True)
        return tuple(self._over_group(*pair) for pair in pairs)

    def _over_group(self, parameter, gradient):
        if parameter.layerwise_parallel:
            return gradient
        total = ops.all_reduce(gradient.astype(muster.float32), "sum", self._group)
        return (total * self._factor).astype(gradient.dtype)
