"""mindspore.parallel._transformer: settings and checks of MindSpore's older transformer layers.

Libraries build layers of their own with them. The layers themselves are refused at their use.
"""

import functools
import inspect

import muster
from mindspore import _checkparam, _names, nn
from mindspore import ops as _ops


class _Config:
    """Numbers above 0, given by name."""

    _defaults: tuple = ()

    def __init__(self, *given, **named):
        if len(given) > len(self._defaults) or set(named) - set(dict(self._defaults)):
            raise TypeError(f"{type(self).__name__} takes {', '.join(dict(self._defaults))}")
        values = dict(self._defaults) | dict(zip(dict(self._defaults), given, strict=False)) | named
        for name, value in values.items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        if isinstance(dict(self._defaults).get(name), int) and not isinstance(value, bool):
            _checkparam.check_positive_int(value, name, type(self).__name__)
        super().__setattr__(name, value)

    def __str__(self):
        return "[ParallelConfig]\n" + "".join(f"{name}:{value}\n" for name, value in vars(self).items())


class OpParallelConfig(_Config):
    """How many workers share the batch, and how many an op."""

    _defaults = (("data_parallel", 1), ("model_parallel", 1))


class MoEParallelConfig(_Config):
    """The same, and how many share the experts."""

    _defaults = (*OpParallelConfig._defaults, ("expert_parallel", 1))

    @property
    def dpmp(self):
        """Without the experts."""
        return OpParallelConfig(self.data_parallel, self.model_parallel)


class TransformerOpParallelConfig(_Config):
    """How a whole network is shared."""

    _defaults = (
        *MoEParallelConfig._defaults,
        *(("pipeline_stage", 1), ("pipeline_segment", 1), ("micro_batch_num", 1), ("recompute", None)),
        *(("use_seq_parallel", None), ("optimizer_shard", None), ("gradient_aggregation_group", 4)),
        ("vocab_emb_dp", True),
    )

    @property
    def dp_mp_config(self):
        """The part that an op is given."""
        return OpParallelConfig(self.data_parallel, self.model_parallel)

    @property
    def moe_parallel_config(self):
        """The part that experts are given."""
        return MoEParallelConfig(self.data_parallel, self.model_parallel, self.expert_parallel)


class MoEConfig:
    """A mixture of experts; one of them: none."""

    def __init__(
        self,
        expert_num=1,
        capacity_factor=1.1,
        aux_loss_factor=0.05,
        num_experts_chosen=1,
        expert_group_size=None,
        **kwargs,
    ):
        self.expert_num = _checkparam.check_positive_int(expert_num, "expert_num", "MoEConfig")
        self.capacity_factor, self.aux_loss_factor = capacity_factor, aux_loss_factor
        self.num_experts_chosen, self.expert_group_size = num_experts_chosen, expert_group_size
        vars(self).update(kwargs)


class _LayerInputCheck:
    """Checks of shapes."""

    @staticmethod
    def check_shape_length(input_shape, param_name, func_name, target_len):
        """As many axes as one of the numbers says."""
        wanted = target_len if isinstance(target_len, list) else [target_len]
        if len(input_shape) not in wanted:
            raise ValueError(
                f"{func_name}: {param_name} has one of {wanted} axes, not the shape {input_shape}"
            )
        return True

    @staticmethod
    def check_shape_equal(input_shape, param_name, func_name, target_shape):
        """One of the shapes."""
        wanted = target_shape if isinstance(target_shape[0], list) else [target_shape]
        if list(input_shape) not in [list(each) for each in wanted]:
            raise ValueError(f"{func_name}: the shape of {param_name} is one of {wanted}, not {input_shape}")
        return True

    @staticmethod
    def check_shape_value_on_axis(input_shape, dim, param_name, cls_name, target_value):
        """So many elements along an axis."""
        if input_shape[dim] != target_value:
            raise ValueError(
                f"{cls_name}: {param_name} has {target_value} elements along axis {dim}, "
                f"not {input_shape[dim]}"
            )
        return True


class _LayerNorm(nn.Cell):
    """Normalizes the last axis; `gamma` and `beta` belong to it."""

    def __init__(self, normalized_shape, eps=1e-5, param_init_type="float32"):
        super().__init__()
        self.gamma = muster.Parameter(_ops.ones(tuple(normalized_shape)), name="gamma")
        self.beta = muster.Parameter(_ops.zeros(tuple(normalized_shape)), name="beta")
        self._eps = eps

    def construct(self, x):
        made = _ops.layer_norm(x, self.gamma.shape, self.gamma, self.beta, self._eps)
        return made.astype(x.dtype)

    def shard(self, strategy):
        """Itself: the batch is what workers share."""
        return self


def _args_type_validator_check(*checks, **named):
    """A decorator: each argument goes through the function that is given for it, as check(value, name)."""

    def decorate(function):
        signature = inspect.signature(function)
        by_name = signature.bind_partial(*checks, **named).arguments
        by_name = by_name.get("kwargs", by_name)

        @functools.wraps(function)
        def checked(*args, **kwargs):
            values = signature.bind(*args, **kwargs).arguments
            for name, value in values.get("kwargs", values).items():
                if name in by_name:
                    by_name[name](value, name)
            return function(*args, **kwargs)

        return checked

    return decorate


def _valid_type_checks(types, class_name):
    """A check that a value is of one of the types, for _args_type_validator_check."""
    return lambda value, name: _checkparam.check_type_name(name, type(value), types, class_name)


def _valid_value_checks(types, class_name):
    """A check that a value is one of these."""
    return lambda value, name: _checkparam.check_type_name(name, value, types, class_name)


def _check_input_dtype(input_dtype, param_name, allow_dtypes, cls_name) -> None:
    _checkparam.check_type_name(param_name, input_dtype, allow_dtypes, cls_name)


def _check_past_none_input_none(use_past, param_name, func_name, default_value, is_tensor, is_default):
    """With use_past the input is a tensor, without it the default."""
    if use_past and not is_tensor:
        raise TypeError(f"{func_name}: {param_name} is a tensor where use_past is True")
    if not use_past and (is_tensor or not is_default):
        raise TypeError(f"{func_name}: {param_name} is {default_value} where use_past is False")
    return True


def _check_moe_config(moe_config=None, parallel_config=None) -> None:
    if not isinstance(moe_config, MoEConfig):
        raise TypeError(f"moe_config is a MoEConfig, not {type(moe_config).__name__}")
    if moe_config.expert_num % getattr(parallel_config, "expert_parallel", 1):
        raise ValueError("expert_num is a multiple of expert_parallel")


def _check_config(config) -> None:
    """Nothing: workers share the batch as the job says."""


def _get_lambda_func(total_layer=None):
    """A function that puts a layer into its stage."""

    def place(network, layer_id, offset, parallel_config, layers):
        share = max(((total_layer or layers) + offset) // parallel_config.pipeline_stage, 1)
        network.pipeline_stage = (layer_id + offset) // share

    return place


default_dpmp_config, default_moeparallel_config = OpParallelConfig(), MoEParallelConfig()
default_transformer_config, default_moe_config = TransformerOpParallelConfig(), MoEConfig()

__all__ = ["MoEConfig", "MoEParallelConfig", "OpParallelConfig", "TransformerOpParallelConfig"]
__getattr__ = _names.missing(__name__)
