"""mindspore.parallel.auto_parallel: networks that MindSpore divides over devices."""

import muster
from mindspore import _device, _names
from mindspore.parallel import _utils
from mindspore.parallel._layout import Layout

_NAME = "mindspore.parallel.auto_parallel.AutoParallel"
_MODES = ("semi_auto", "sharding_propagation", "recursive_programming")


def _noted(name, why):
    def method(self, *args, **kwargs):
        _device.note_once(f"note: AutoParallel.{name}() has no effect: {why}")

    method.__doc__ = f"Changes nothing: {why}."
    method.__name__ = name
    return method


def _refused(name):
    def method(self, *args, **kwargs):
        raise NotImplementedError(_names.sentence(f"{_NAME}.{name}"))

    method.__doc__ = "Not provided: raises NotImplementedError."
    method.__name__ = name
    return method


class AutoParallel(muster.Cell):
    """What `network` computes. Workers share the data: place() divides networks, nothing else does.

    Args:
        network: The cell.
        parallel_mode: 'semi_auto', 'sharding_propagation' or 'recursive_programming'. Several workers need
            set_auto_parallel_context(parallel_mode="data_parallel") before.
    """

    def __init__(self, network, parallel_mode="semi_auto"):
        super().__init__(auto_prefix=False)
        if parallel_mode not in _MODES:
            raise ValueError(
                f"AutoParallel: parallel_mode is one of {', '.join(_MODES)}, not {parallel_mode!r}"
            )
        if self._is_shared() and not _utils._is_in_data_parallel_mode():
            raise NotImplementedError(
                f"{_NAME}: networks are not divided by themselves; several workers share the data after "
                'set_auto_parallel_context(parallel_mode="data_parallel"), or the network by place()'
            )
        self.network = network

    @staticmethod
    def _is_shared() -> bool:
        return _utils._get_device_num() > 1

    def construct(self, *args, **kwargs):
        return self.network(*args, **kwargs)

    def dataset_strategy(self, config) -> None:
        """'data_parallel': each worker has its own rows. Others are for one worker only."""
        is_layout = isinstance(config, tuple) and all(isinstance(each, tuple | Layout) for each in config)
        if config not in ("full_batch", "data_parallel") and not is_layout:
            raise ValueError(f"AutoParallel: no dataset_strategy: {config!r}")
        if self._is_shared() and config != "data_parallel":
            raise NotImplementedError(
                _names.sentence(f"{_NAME}.dataset_strategy({config!r}) of several workers")
            )

    def pipeline(self, stages=1, output_broadcast=False, interleave=False, scheduler="1f1b") -> None:
        """One stage; place() makes several."""
        if not isinstance(stages, int) or stages < 1:
            raise ValueError(f"AutoParallel: stages is a whole number from 1, not {stages!r}")
        _names.refuse(f"{_NAME}.pipeline", stages=(stages, 1))

    def get_pipeline_stages(self) -> int:
        """1."""
        return 1

    def enable_gradients_mean(self) -> None:
        """Gradients are averaged over the workers, instead of added."""
        muster.set_auto_parallel_context(gradients_mean=True)

    hsdp = _noted("hsdp", "each worker keeps the whole state of optimizers")
    comm_fusion = _noted("comm_fusion", "set_auto_parallel_context(comm_fusion=...) decides")
    no_init_parameters_in_compile = _noted(
        "no_init_parameters_in_compile", "parameters begin when they are made"
    )
    save_param_strategy_file = _noted("save_param_strategy_file", "each worker has whole parameters")
    disable_strategy_file_only_for_trainable_params = _noted(
        "disable_strategy_file_only_for_trainable_params", "each worker has whole parameters"
    )
    save_operator_strategy_file = _noted("save_operator_strategy_file", "no op is divided")
    set_group_ckpt_save_file = _noted("set_group_ckpt_save_file", "each worker has whole parameters")
    enable_fp32_communication = _noted("enable_fp32_communication", "gradients travel in their own dtype")
    disable_gradient_fp32_sync = _noted("disable_gradient_fp32_sync", "gradients travel in their own dtype")
    disable_loss_repeated_mean = _noted("disable_loss_repeated_mean", "no loss is repeated")
    print_local_norm = _noted("print_local_norm", "norms are not written")
    dump_local_norm = _noted("dump_local_norm", "norms are not written")
    enable_device_local_norm = _noted("enable_device_local_norm", "norms are not written")
    transformer_opt = _noted("transformer_opt", "it is about accelerators")
    load_param_strategy_file = _refused("load_param_strategy_file")
    load_operator_strategy_file = _refused("load_operator_strategy_file")


__all__ = ["AutoParallel"]
__getattr__ = _names.missing(__name__)
