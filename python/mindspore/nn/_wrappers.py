"""Containers and layers of layers, and cells around networks."""

import collections
import math

import muster
from mindspore import _gradient
from mindspore.common.parameter import ParameterTuple
from mindspore.nn._activations import activated
from mindspore.nn._members import in_dtype
from mindspore.nn._older import _VirtualDatasetCell
from muster import ops


class CellDict(muster.Cell):
    """Cells by name, which another cell calls one by one."""

    def __init__(self, *args, **kwargs):
        super().__init__()
        self._names_in_order = collections.OrderedDict()
        if args:
            self.update(args[0])
        if kwargs:
            self.update(kwargs)

    def __getitem__(self, key):
        return self._names_in_order[key]

    def __setitem__(self, key, cell):
        if not isinstance(key, str):
            raise TypeError(f"CellDict: {key!r} cannot name a cell: names are strings")
        if not key or "." in key or hasattr(type(self), key):
            raise KeyError(f"CellDict: {key!r} cannot name a cell")
        if not isinstance(cell, muster.Cell):
            raise TypeError(f"CellDict: '{key}' is {type(cell).__name__}, not a cell")
        setattr(self, key, cell)
        self._names_in_order[key] = cell

    def __delitem__(self, key):
        delattr(self, key)
        del self._names_in_order[key]

    def __len__(self):
        return len(self._names_in_order)

    def __bool__(self):
        return True

    def __iter__(self):
        return iter(self._names_in_order)

    def __contains__(self, key):
        return key in self._names_in_order

    def clear(self):
        """Removes all cells."""
        for key in list(self._names_in_order):
            del self[key]

    def pop(self, key):
        """The cell of that name, which is removed."""
        cell = self[key]
        del self[key]
        return cell

    def keys(self):
        """The names."""
        return self._names_in_order.keys()

    def values(self):
        """The cells."""
        return self._names_in_order.values()

    def items(self):
        """(name, cell) pairs."""
        return self._names_in_order.items()

    def update(self, cells):
        """Adds or replaces cells: a dict, a CellDict, or pairs of a name and a cell."""
        for key, cell in cells.items() if hasattr(cells, "items") else cells:
            self[key] = cell

    def construct(self, *inputs):
        """An error: the cells in it are called."""
        raise NotImplementedError("CellDict is not called; call the cells in it")


class Conv2dBnAct(muster.Cell):
    """Conv2d, with `has_bn` BatchNorm2d, and an activation."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        pad_mode="same",
        padding=0,
        dilation=1,
        group=1,
        has_bias=False,
        weight_init="normal",
        bias_init="zeros",
        has_bn=False,
        momentum=0.997,
        eps=1e-5,
        activation=None,
        alpha=0.2,
        after_fake=True,
    ):
        super().__init__()
        self.conv = muster.nn.Conv2d(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init,
        )  # fmt: skip
        self.has_bn, self.has_act = has_bn, activation is not None
        if has_bn:
            self.batchnorm = muster.nn.BatchNorm2d(out_channels, eps, momentum)
        if self.has_act:
            self.activation = _leaky_or(activation, alpha)

    def construct(self, x):
        """The activated normal convolution."""
        x = self.conv(x)
        x = self.batchnorm(x) if self.has_bn else x
        return self.activation(x) if self.has_act else x


def _leaky_or(activation, alpha):
    return muster.nn.LeakyReLU(alpha) if activation == "leakyrelu" else activated(activation)


class DenseBnAct(muster.Cell):
    """Dense, with `has_bn` BatchNorm1d, and an activation."""

    def __init__(
        self,
        in_channels,
        out_channels,
        weight_init="normal",
        bias_init="zeros",
        has_bias=True,
        has_bn=False,
        momentum=0.9,
        eps=1e-5,
        activation=None,
        alpha=0.2,
        after_fake=True,
    ):
        super().__init__()
        self.dense = muster.nn.Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self.has_bn, self.has_act = has_bn, activation is not None
        if has_bn:
            self.batchnorm = muster.nn.BatchNorm1d(out_channels, eps, momentum)
        if self.has_act:
            self.activation = _leaky_or(activation, alpha)

    def construct(self, x):
        """The activated normal product."""
        x = self.dense(x)
        x = self.batchnorm(x) if self.has_bn else x
        return self.activation(x) if self.has_act else x


class BiDense(muster.Cell):
    """y[n, o] = input1[n] weight[o] input2[n] + bias[o]."""

    def __init__(
        self,
        in1_channels,
        in2_channels,
        out_channels,
        weight_init=None,
        bias_init=None,
        has_bias=True,
        dtype=muster.float32,
    ):
        super().__init__()
        dtype = muster.dtype(dtype)
        self.in1_channels, self.in2_channels, self.out_channels = in1_channels, in2_channels, out_channels
        self.has_bias = has_bias
        bound = muster.initializers.uniform(1 / math.sqrt(in1_channels))
        shape = (out_channels, in1_channels, in2_channels)
        weight_init = bound if weight_init is None else weight_init
        self.weight = muster.Parameter(muster.nn.initializer(weight_init, shape, dtype), name="weight")
        if has_bias:
            bias_init = bound if bias_init is None else bias_init
            bias = muster.nn.initializer(bias_init, (out_channels,), dtype)
            self.bias = muster.Parameter(bias, name="bias")

    def construct(self, input1, input2):
        """The bilinear product over the last axes."""
        leading = input1.shape[:-1]
        x1, x2 = (ops.reshape(x, (-1, x.shape[-1])) for x in (input1, input2))
        rows = ops.reshape(
            ops.matmul(x1, ops.reshape(ops.transpose(self.weight, (1, 0, 2)), (self.in1_channels, -1))),
            (-1, self.out_channels, self.in2_channels),
        )
        y = ops.reduce_sum(ops.mul(rows, ops.expand_dims(x2, 1)), 2)
        y = ops.bias_add(y, self.bias) if self.has_bias else y
        return ops.reshape(y, (*leading, self.out_channels))


class Linear(muster.nn.Dense):
    """Dense with PyTorch's names of arguments."""

    def __init__(self, in_features, out_features, bias=True, weight_init=None, bias_init=None, dtype=None):
        super().__init__(in_features, out_features, weight_init, bias_init, bias)
        in_dtype(self, dtype)


class TimeDistributed(muster.Cell):
    """`layer` of each step along `time_axis`, stacked along it."""

    def __init__(self, layer, time_axis, reshape_with_axis=None):
        super().__init__()
        if not callable(layer):
            raise TypeError(f"TimeDistributed: layer is a cell or a function, not {type(layer).__name__}")
        self.layer, self.time_axis = layer, time_axis
        self.reshape_with_axis = reshape_with_axis

    def construct(self, inputs):
        """All steps."""
        return ops.stack(
            [self.layer(step) for step in ops.unstack(inputs, self.time_axis)],
            self.time_axis % inputs.ndim,
        )


class VirtualDatasetCellTriple(_VirtualDatasetCell):
    """The same for a network with three inputs."""

    def construct(self, a, b, c):
        """What the network gives."""
        return self._backbone(a, b, c)


class WithGradCell(muster.Cell):
    """(data, label) to the gradients of the loss for the trained parameters."""

    def __init__(self, network, loss_fn=None, sens=None):
        super().__init__()
        self.network = network
        self.weights = ParameterTuple(network.trainable_params())
        self._sens = sens
        self._has_loss = loss_fn is not None
        if loss_fn is not None:
            self.loss_fn = loss_fn
            self.network_with_loss = muster.nn.WithLossCell(network, loss_fn)
        else:
            self.network_with_loss = network
        self.network_with_loss.set_train()

    def construct(self, *inputs):
        """The gradients."""

        def scaled(*arguments):
            loss = self.network_with_loss(*arguments)
            return loss if self._sens is None else ops.mul(loss, self._sens)

        return muster.value_and_grad(scaled, None, list(self.weights))(*inputs)[1]


class ForwardValueAndGrad(muster.Cell):
    """What the network gives, and gradients: of its first input, all inputs, the weights, or both."""

    def __init__(self, network, weights=None, get_all=False, get_by_list=False, sens_param=False):
        super().__init__()
        self.network = network
        self.weights = tuple(weights) if weights is not None else ()
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def construct(self, *inputs):
        """(outputs, gradients)."""
        *arguments, sens = inputs if self.sens_param else (*inputs, None)
        if self.sens_param:
            sens = _gradient._apart(sens, arguments)
        positions = tuple(range(len(arguments))) if self.get_all else (None if self.get_by_list else 0)

        def weighed(*given):
            outputs = self.network(*given)
            if not self.sens_param:
                return outputs
            return ops.reduce_sum(ops.mul(outputs, sens)), outputs

        weights = list(self.weights) if self.get_by_list else None
        outputs, gradients = muster.value_and_grad(weighed, positions, weights, self.sens_param)(*arguments)
        return (outputs[1] if self.sens_param else outputs), gradients


class Jvp(muster.Cell):
    """What a network gives, and its Jacobian times the last argument: Jvp(net)(x, y, (v, w))."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def construct(self, *args):
        """(outputs, products); the last argument is a tuple where there are several inputs."""
        import mindspore

        *inputs, v = args
        one = len(inputs) == 1
        return mindspore.jvp(self.fn, inputs[0] if one else tuple(inputs), v)


class Vjp(muster.Cell):
    """What a network gives, and the product of the last argument with its Jacobian: Vjp(net)(x, y, v)."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def construct(self, *args):
        """(outputs, products for each input); the last argument is a tuple for several outputs."""
        import mindspore

        *inputs, v = args
        outputs, product = mindspore.vjp(self.fn, *inputs)
        made = product(*v) if isinstance(v, tuple) else product(v)
        return outputs, made[0] if isinstance(made, tuple) and len(made) == 1 else made


class ParameterUpdate(muster.Cell):
    """Sets a parameter to what it is called with."""

    def __init__(self, param):
        super().__init__()
        if not isinstance(param, muster.Parameter):
            raise TypeError(f"ParameterUpdate: param is a Parameter, not {type(param).__name__}")
        self._param = param

    def construct(self, x):
        """`x`."""
        ops.assign(self._param, x)
        return x


__all__ = [
    "BiDense",
    "CellDict",
    "Conv2dBnAct",
    "DenseBnAct",
    "ForwardValueAndGrad",
    "Jvp",
    "Linear",
    "ParameterUpdate",
    "TimeDistributed",
    "VirtualDatasetCellTriple",
    "Vjp",
    "WithGradCell",
]
