"""Functions of the package `mindspore` itself: seeds, devices, a check of the installation."""

import muster
from mindspore import _device
from muster import _core, _random_seeds

_state = {"seed": None}


def set_seed(seed) -> None:
    """The seed of parameters, shuffles and dropout, of numpy.random and of random. Parameters that are made
    after it begin as those that were made after the same seed before."""
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"set_seed(): seed is a whole number, not {type(seed).__name__}")
    if seed < 0:
        raise ValueError(f"set_seed(): seed is not negative, as {seed} is")
    _random_seeds.seed("numpy.random", seed % 2**32)
    _random_seeds.seed("random", seed)
    muster.set_seed(seed)
    _core._forget_namesakes()
    _state["seed"] = seed


def get_seed():
    """The last seed of set_seed(); None before."""
    return _state["seed"]


def set_device(device_target, device_id=None) -> None:
    """The device: 'CPU'; 'GPU' and 'Ascend' as set_context(device_target=...) takes them."""
    _device.run_on(device_target, "set_device")


def set_deterministic(deterministic) -> None:
    """Changes nothing: results are always the same."""


def run_check() -> None:
    """Multiplies two numbers and says so."""
    made = muster.Tensor([1.0, 2.0]) * muster.Tensor([3.0, 4.0])
    if made.tolist() != [3.0, 8.0]:
        raise RuntimeError(f"muster {muster.__version__} multiplies wrongly: {made}")
    print(
        f"MindSpore version:  {_version()}\nThe result of multiplication calculation is correct, "
        f"MindSpore has been installed on platform [CPU] successfully! (Muster {muster.__version__} answers "
        "by its names)"
    )


class _Executor:
    """MindSpore's executor of eager code, of which scripts ask little: ops here run where they are called."""

    def sync(self) -> None:
        """There is nothing to wait for."""

    def enable_grad(self) -> bool:
        """Whether gradients may be asked for: outside of no_grad()."""
        return not _core._is_without_gradient()

    def set_enable_grad(self, flag: bool) -> None:
        """Whether what is computed from now on has gradients, as no_grad() sets it for its lines."""
        if not isinstance(flag, bool):
            raise TypeError(f"set_enable_grad() takes True or False, not {flag!r}")
        _core._set_without_gradient(not flag)

    def requires_grad(self) -> bool:
        """Whether what is computed now is part of a gradient that is being taken."""
        return self.enable_grad() and _core._notes_gradients()

    grad_flag = requires_grad

    def set_grad_flag(self, flag: bool) -> None:
        """Nothing: a function whose gradient is asked for is known by it."""


_pynative_executor = _Executor()


def _version() -> str:
    import mindspore

    return mindspore.__version__


class _NoGrad:
    """`with _no_grad():` what is computed counts as constant; as a decorator, what the function computes."""

    def __enter__(self):
        self._outer = _core._set_without_gradient(True)
        return self

    def __exit__(self, *error):
        _core._set_without_gradient(self._outer)

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def constant(*args, **kwargs):
            with _NoGrad():
                return function(*args, **kwargs)

        return constant


_no_grad = _NoGrad


def is_tensor(obj) -> bool:
    """Whether it is a Tensor."""
    return isinstance(obj, muster.Tensor)


def from_numpy(array):
    """A tensor over the memory of a numpy array."""
    return muster.Tensor.from_numpy(array)


def tensor(input_data=None, dtype=None, shape=None, init=None, const_arg=False):
    """A Tensor."""
    return muster.Tensor(input_data, dtype, shape, init, const_arg)


def get_grad(gradients, identifier):
    """Of what grad(..., return_ids=True) gives, that of a position or of a Parameter."""
    wanted = identifier.name if isinstance(identifier, muster.Parameter) else identifier
    for key, gradient in _pairs(gradients):
        if key == wanted and type(key) is type(wanted):
            return gradient
    raise ValueError(f"get_grad(): there is no gradient of {wanted!r}")


def _pairs(gradients):
    """(id, gradient) of nested tuples of them."""
    is_pair = len(gradients) == 2 and isinstance(gradients[0], (int, str))
    if is_pair:
        yield gradients
    else:
        for part in gradients:
            yield from _pairs(part)


def get_current_device() -> tuple[str, int]:
    """What MindSpore calls the processor, and its number."""
    return _DeviceInfo("CPU", 0)


class _DeviceInfo(tuple):
    """A device by `device_target` and `device_id`."""

    def __new__(cls, device_target: str, device_id: int):
        return super().__new__(cls, (device_target, device_id))

    @property
    def device_target(self) -> str:
        return self[0]

    @property
    def device_id(self) -> int:
        return self[1]


def no_inline(fn=None):
    """The function itself: how a graph is compiled from it is not the script's to say."""
    return (lambda function: function) if fn is None else fn


def set_recursion_limit(recursion_limit=1000) -> None:
    """Changes nothing: graphs are not prepared by recursion. Raises for what is no positive whole number."""
    if isinstance(recursion_limit, bool) or not isinstance(recursion_limit, int):
        raise TypeError(f"set_recursion_limit takes a whole number, not {recursion_limit!r}")
    if recursion_limit <= 0:
        raise ValueError(f"set_recursion_limit takes a number above 0, not {recursion_limit}")


def ms_memory_recycle() -> None:
    """Frees nothing: memory goes back with the tensors that hold it."""
