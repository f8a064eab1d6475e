"""Optimizer with groups of parameters, and SGD."""

import functools

import muster
from mindspore._optimizers import refuse_served
from mindspore.common.parameter import ParameterTuple
from mindspore.nn import Cell
from muster import ops


def rate_of(value) -> float:
    """A learning rate as a number of Python."""
    return float(value.item() if isinstance(value, muster.Tensor) else value)


def _told(value):
    return value.value() if isinstance(value, muster.Parameter) else value


class Optimizer(Cell):
    """What optimizers with groups of parameters share; `optimizer(gradients)` is a step.

    `param_groups` is a list of dicts with "params", "lr" (a Parameter) and the other settings of a group. A
    subclass defines `update(group, parameter, gradient, states, step)`, and the names of its states.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        defaults: The settings of groups that have none of their own.
    """

    states: tuple = ()

    def __init__(self, params, defaults):
        super().__init__()
        given = list(params)
        if not given:
            raise ValueError(f"{type(self).__name__}: there are no parameters")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        self.__dict__["defaults"] = dict(defaults)
        self.__dict__["param_groups"] = []
        self.__dict__["state"] = {}
        self.__dict__["schedules"] = []
        self.__dict__["group_start_id"] = [0]
        self.step = muster.Parameter(muster.Tensor(0, muster.int32), name="state_step", requires_grad=False)
        for group in groups:
            self.add_param_group(group)

    def __repr__(self) -> str:
        texts = [
            "".join(
                [f"\nParameter Group {number}\n"]
                + [f"    {key}: {_told(group[key])}\n" for key in sorted(group) if key != "params"]
            )
            for number, group in enumerate(self.param_groups)
        ]
        return f"{type(self).__name__} ({''.join(texts)})"

    __str__ = __repr__

    def add_param_group(self, param_group) -> None:
        """Another group: a dict with "params" and settings."""
        group = {**self.defaults, **param_group}
        members = group["params"]
        group["params"] = [members] if isinstance(members, muster.Parameter) else list(members)
        everything = [id(each) for other in (*self.param_groups, group) for each in other["params"]]
        if len(set(everything)) < len(everything):
            raise ValueError(f"{type(self).__name__}: a parameter is in two groups, or twice in one")
        number = len(self.param_groups)
        rate = rate_of(group["lr"])
        if rate < 0:
            raise ValueError(f"{type(self).__name__}: lr is a number from 0, not {rate}")
        group["lr"] = muster.Parameter(
            muster.Tensor(rate, muster.float32), name=f"learning_rate_group_{number}", requires_grad=False
        )
        self.param_groups.append(group)
        self.group_start_id.append(self.group_start_id[-1] + len(group["params"]))
        for each in group["params"]:
            self.state[id(each)] = {
                name: muster.Parameter(
                    self.first(name, group, each), name=f"{name}.{each.name}", requires_grad=False
                )
                for name in self.states_of(group)
            }
        self._keep_states()
        self.__dict__.pop("_in_steps", None)

    def _keep_states(self) -> None:
        """Makes the states parameters of this cell, for checkpoints, where each has a name of its own."""
        states = [each for states in self.state.values() for each in states.values()]
        if len({each.name for each in states}) == len(states):
            self._states = ParameterTuple(states)

    def states_of(self, group):
        """The names of the states of a group's parameters."""
        return self.states

    def first(self, name, group, parameter):
        """What a state begins with."""
        return ops.zeros(parameter.shape, parameter.dtype)

    @property
    def lrs(self):
        """The learning rates of the groups, as Parameters."""
        return [group["lr"] for group in self.param_groups]

    @property
    def parameters(self):
        """All parameters, in order."""
        return [each for group in self.param_groups for each in group["params"]]

    def state_dict(self) -> dict:
        """The states by name, and the step."""
        found = {each.name: each for states in self.state.values() for each in states.values()}
        return {**found, "state_step": self.step}

    def kept_parameters(self) -> list:
        """All that a step changes or reads beside the weights."""
        return [*self._own_state(), self._as_optimizer().global_step]

    def _own_state(self) -> list:
        return [*(each for states in self.state.values() for each in states.values()), *self.lrs, self.step]

    def _as_optimizer(self):
        """What training steps take, and what tells those who watch the updates of a job of each step."""
        if "_in_steps" not in self.__dict__:
            self.__dict__["_in_steps"] = _class_of_steps(type(self))(self)
        return self.__dict__["_in_steps"]

    def construct(self, gradients):
        refuse_served(self)
        gradients = list(gradients)
        parameters = self.parameters
        if len(gradients) != len(parameters):
            raise ValueError(
                f"{type(self).__name__}: {len(gradients)} gradients for {len(parameters)} parameters"
            )
        step = ops.assign_add(self.step, muster.Tensor(1, muster.int32))
        self._as_optimizer().note_step(step)
        step = ops.cast(step, muster.float64)  # whose powers are near 1
        place = 0
        for group in self.param_groups:
            for parameter in group["params"]:
                gradient = gradients[place]
                place += 1
                if group.get("maximize"):
                    gradient = ops.neg(gradient)
                self.update(group, parameter, gradient, self.state[id(parameter)], step)
        return True

    def update(self, group, parameter, gradient, states, step) -> None:
        """A step of one parameter."""
        raise NotImplementedError(f"{type(self).__name__} defines no update()")


class _OfSteps(muster.nn.Optimizer):
    """An optimizer with groups of parameters, as Model and training steps take one: with its states."""

    def __init__(self, optimizer):
        super().__init__(1.0, optimizer.parameters)
        self.__dict__["_with_groups"] = optimizer
        own = {id(each): each for each in (*optimizer._own_state(), *optimizer.get_parameters())}
        self.states = ParameterTuple(own.values())

    def construct(self, gradients):
        return self._with_groups(gradients)

    def note_step(self, step):
        """The workers of a job are compared after some steps; who comes back to one goes on with `step`."""
        self.count_step()
        ops.assign(self.global_step, ops.reshape(step, (1,)))


@functools.cache
def _class_of_steps(kind):
    """Under the name of the class that the script knows: messages name it."""
    return type(kind.__name__, (_OfSteps,), {"__module__": kind.__module__})


def decayed(group, parameter, gradient):
    """The gradient with that of the squared parameter."""
    decay = group["weight_decay"]
    return gradient if decay == 0 else ops.add(gradient, ops.mul(parameter, float(decay)))


class SGD(Optimizer):
    """Stochastic gradient descent.

    Args:
        params: Parameters, or dicts with "params" and settings of their own.
        lr: The learning rate.
        momentum: How much of the last step each step has.
        dampening: How much less of the gradient the momentum takes.
        weight_decay: How much of the parameter the gradient gets.
        nesterov: Whether the momentum is that of the next step.
        maximize: Whether steps go up.
    """

    states = ("momentum_buffer",)

    def __init__(
        self, params, lr, momentum=0, dampening=0, weight_decay=0.0, nesterov=False, *, maximize=False
    ):
        if momentum < 0 or weight_decay < 0:
            raise ValueError(f"SGD: momentum {momentum} and weight_decay {weight_decay} are numbers from 0")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("SGD: nesterov needs a momentum and no dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": float(momentum),
                "dampening": float(dampening),
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "grad_centralization": False,
            },
        )

    def update(self, group, parameter, gradient, states, step):
        gradient = decayed(group, parameter, gradient)
        momentum = group["momentum"]
        if momentum:
            buffer = states["momentum_buffer"]
            later = ops.add(ops.mul(buffer, float(momentum)), ops.mul(gradient, 1.0 - group["dampening"]))
            first = ops.broadcast_to(ops.equal(step, 1.0), gradient.shape)
            moved = ops.assign(buffer, ops.select(first, gradient, later))
            gradient = ops.add(gradient, ops.mul(moved, float(momentum))) if group["nesterov"] else moved
        ops.assign(parameter, ops.sub(parameter, ops.mul(gradient, group["lr"])))


__all__ = ["SGD", "Optimizer"]
