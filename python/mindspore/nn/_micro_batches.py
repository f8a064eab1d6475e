"""Cells that take a batch in equal parts, one after the other."""

import contextlib

import muster
from mindspore.parallel import _pipeline
from muster import _core, ops


def _parts(name, value, count: int):
    if value.ndim == 0 or value.shape[0] % count:
        raise ValueError(
            f"{name}: {count} equal parts do not make up the first dimension of {tuple(value.shape)}: "
            "choose a batch that is a multiple of it, and drop_remainder"
        )
    return ops.split(value, value.shape[0] // count, 0)


class _InParts(muster.Cell):
    """The sum of what `network` gives for equal parts of the batch, which draw the random numbers of the
    whole."""

    def __init__(self, network, count, name):
        super().__init__(auto_prefix=False)
        if not isinstance(network, muster.Cell):
            raise TypeError(f"{type(self).__name__}: network is a cell, not {type(network).__name__}")
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"{type(self).__name__}: {name} is a whole number, not {count!r}")
        if count < 1:
            raise ValueError(f"{type(self).__name__}: {name} is at least 1, not {count}")
        self.network = network

    def _sum(self, inputs, count):
        parts = list(zip(*(_parts(type(self).__name__, x, count) for x in inputs), strict=True))
        total = None
        with _random_numbers_of_the_whole() as begin:
            for at, part in enumerate(parts):
                begin(at)
                here = self.network(*part)
                total = here if total is None else ops.add(total, here)
        return total


_in_parts = []  # whether some cell is at it already: parts of parts count as its parts


@contextlib.contextmanager
def _random_numbers_of_the_whole():
    if _in_parts:
        yield lambda part: None
        return
    scope = _core._MicroBatchScope()
    _in_parts.append(scope)
    try:
        yield scope.begin
    finally:
        _in_parts.pop()
        scope.end()


class MicroBatchInterleaved(_InParts):
    """The sum of what `network` gives for `interleave_num` equal parts of the batch, as MindSpore's: whoever
    wants their mean divides it."""

    def __init__(self, network, interleave_num=2):
        super().__init__(network, interleave_num, "interleave_num")
        self.interleave_num = interleave_num

    def construct(self, *inputs):
        """The sum over the parts."""
        return self._sum(inputs, self.interleave_num)


class GradAccumulationCell(_InParts):
    """The sum of what `network` gives for `micro_size` equal parts of the batch."""

    def __init__(self, network, micro_size):
        super().__init__(network, micro_size, "micro_size")
        self.micro_size = micro_size

    def construct(self, *inputs):
        """The sum over the parts."""
        return self._sum(inputs, self.micro_size)


class PipelineCell(GradAccumulationCell):
    """The sum of what `network` gives for `micro_size` equal parts of the batch, on which the stages of the
    network work at the same time, 1F1B.

    Args:
        network: A cell that gives a number for its samples: a loss.
        micro_size: How many parts; at least as many as there are stages.
        stage_config: The stage of each of these cells, by their paths in `network` ("block.fc1"): another way
            to set their `pipeline_stage`. None: nothing is set.
        segment_config: Not used: a worker has one segment of the network.

    Raises:
        TypeError: `network` is no cell, `micro_size` no whole number, `stage_config` no dict.
        ValueError: `micro_size` is below 1, or below the number of stages when it is called.
        KeyError: `stage_config` names a cell that is not there.
    """

    def __init__(self, network, micro_size, stage_config=None, segment_config=None):
        super().__init__(network, micro_size)
        if segment_config is not None:
            _pipeline.note_schedule("segment_config")
        if stage_config is not None:
            _pipeline.set_stages(network, stage_config)

    def construct(self, *inputs):
        """The sum over the parts."""
        _pipeline.check_micro_size(self.micro_size)
        return super().construct(*inputs)


__all__ = ["GradAccumulationCell", "MicroBatchInterleaved", "PipelineCell"]
