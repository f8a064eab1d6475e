"""mindspore.export with file_format="MINDIR"."""

import inspect

import muster
from mindspore import _device, _names
from mindspore.train._mindir import _writer

_CALL = "mindspore.export"
_END = ".mindir"
_NUMBERS = (bool, int, float, str, type(None))


def export(net, inputs, path: str, **settings) -> None:
    """Writes the file of `net`; mindspore.train.serialization.export says what it takes."""
    custom = settings.pop("custom_func", None)
    if custom is not None and not callable(custom):
        raise TypeError(f"{_CALL}: custom_func is a function of the file as a message, not {custom!r}")
    _names.refuse(_CALL, **{name: (value, None, False) for name, value in settings.items()})
    if not callable(net):
        raise TypeError(f"{_CALL}: net is a Cell or a function, not {type(net).__name__}")
    for at, each in enumerate(inputs):
        if not isinstance(each, (muster.Tensor, *_NUMBERS)):
            raise TypeError(f"{_CALL}: input {at} is a Tensor or a number, not {type(each).__name__}")
    model, foreign = _writer.model_of(net, inputs, _input_names(net, inputs))
    if custom is not None:
        custom(model)
    path = path if path.endswith(_END) else path + _END
    _writer.write_file(model, path)
    if foreign:
        _device.note_once(
            f"note: {path} has ops that only Muster reads, not MindSpore: {', '.join(sorted(foreign))}"
        )


def _input_names(net, inputs) -> list:
    """The names that construct has for its tensors; None where it takes any number of them."""
    function = net.construct if isinstance(net, muster.Cell) else net
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [each.name for each in parameters if each.kind == each.POSITIONAL_OR_KEYWORD]
    names += [None] * len(inputs)
    return [name for name, each in zip(names, inputs, strict=False) if isinstance(each, muster.Tensor)]
