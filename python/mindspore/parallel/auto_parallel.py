"""mindspore.parallel.auto_parallel: networks that MindSpore divides over devices."""

import muster
from mindspore import _device, _names, context
from mindspore.parallel import _mesh, _pipeline, _settings, _utils

_MODES = ("semi_auto", "sharding_propagation", "recursive_programming")


def _noted(name, why):
    def method(self, *args, **kwargs):
        _device.note_once(f"note: AutoParallel.{name}() has no effect: {why}")

    method.__doc__ = f"Changes nothing: {why}."
    method.__name__ = name
    return method


def _as_the_mode_is(cell):
    """The cell, whose training steps are made again: a nn.TrainOneStepCell reduces as the mode is when it is
    made, and AutoParallel and what is said of it change the mode."""
    if type(cell) is muster.nn.TrainOneStepCell:
        again = muster.nn.TrainOneStepCell(cell.network, cell.optimizer, cell.sens, cell.return_grad)
        return again.set_train(cell.training)
    for name, child in cell.name_cells().items() if isinstance(cell, muster.Cell) else ():
        again = _as_the_mode_is(child)
        if again is child:
            continue
        if name.isdigit():  # of a list of cells
            cell[int(name)] = again
        else:
            setattr(cell, name, again)
    return cell


class AutoParallel(muster.Cell):
    """What `network` computes, by all workers together: they share the batch with the numbers of one process,
    and more of the work and the memory as the methods say (docs/guide/parallel.md).

    Each worker computes the rows that its dataset gives, and gradients are means over the workers: right for
    a loss that is a mean over samples.

    Args:
        network: A cell, or a function that makes a training step.
        parallel_mode: 'semi_auto', 'sharding_propagation' or 'recursive_programming'. The last one looks for
            a plan at the first step (`muster.parallel.plan`) where every worker is given the whole batch
            (dataset_strategy('full_batch')) and no strategy cuts anything; else all three are the same.

    Raises:
        TypeError: `network` cannot be called.
        ValueError: There is no such mode.
    """

    def __init__(self, network, parallel_mode="semi_auto"):
        super().__init__(auto_prefix=False)
        if not callable(network):
            raise TypeError(f"AutoParallel: network is a cell or a function, not {type(network).__name__}")
        if parallel_mode not in _MODES:
            raise ValueError(
                f"AutoParallel: parallel_mode is one of {', '.join(_MODES)}, not {parallel_mode!r}"
            )
        if parallel_mode == "sharding_propagation":
            _device.note_once(
                "note: parallel_mode='sharding_propagation' is 'semi_auto' here: layouts go on from op to op"
            )
        _mesh.note_search(parallel_mode == "recursive_programming")
        _utils._choose_divided("semi_auto_parallel" if parallel_mode == "semi_auto" else "auto_parallel")
        self.network = network
        self._make_steps_again()

    def _make_steps_again(self) -> None:
        if _utils._get_device_num() > 1:
            self.network = _as_the_mode_is(self.network)

    def construct(self, *args, **kwargs):
        """What the network gives."""
        _pipeline.check_stages(self.network)
        return self.network(*args, **kwargs)

    def compile(self, *args, **kwargs) -> None:
        """Makes the plan of a cell. That of a function that makes a step is made by the first step: running
        it here would train."""
        if isinstance(self.network, muster.Cell):
            muster.Cell.compile(self, *args, **kwargs)

    def hsdp(self, shard_size=-1, threshold=64, optimizer_level="level1") -> None:
        """The workers that share the batch also share the state of the optimizer (muster.parallel.Zero).

        Args:
            shard_size: -1: over all of them. 1: not at all. Other numbers share over all, too.
            threshold: Parameters of fewer KB stay whole.
            optimizer_level: 'level1': the state. 'level2': that, and reduced gradients. 'level3': that, and
                the parameters, which are gathered for each use.

        Raises:
            ValueError: A value is none of these.
        """
        if (
            isinstance(shard_size, bool)
            or not isinstance(shard_size, int)
            or (shard_size < 1 and shard_size != -1)
        ):
            raise ValueError(f"hsdp: shard_size is -1 or a number of workers from 1, not {shard_size!r}")
        zero = _settings.zero_of(optimizer_level, threshold)
        if shard_size > 1 and shard_size != _utils._get_device_num():
            _device.note_once(
                f"note: hsdp(shard_size={shard_size}): all workers share the state, which saves more "
                "memory; results are the same"
            )
        _settings.share_state(muster.parallel.Zero(0) if shard_size == 1 else zero)

    def pipeline(self, stages=1, output_broadcast=False, interleave=False, scheduler="1f1b") -> None:
        """How many stages there are: the cells say which is theirs (`pipeline_stage`, PipelineCell's
        stage_config).

        Args:
            stages: Their number, which divides the workers.
            output_broadcast: Whether all workers get what networks return that are called from now on, not
                those of the last stage alone. In a Model they do.
            interleave, scheduler: Not used: stages run 1F1B, and no result depends on it.

        Raises:
            TypeError, ValueError: A value is not of its kind, or does not divide the workers.
        """
        if not isinstance(output_broadcast, bool):
            raise TypeError(f"pipeline: output_broadcast is True or False, not {output_broadcast!r}")
        _pipeline.choose(stages, interleave, scheduler)
        muster._core._replicate_outputs(output_broadcast)
        self._make_steps_again()

    def get_pipeline_stages(self) -> int:
        """How many stages there are."""
        return _pipeline.stages()

    def dataset_strategy(self, config) -> None:
        """'data_parallel': each worker has its own rows. 'full_batch': each has all rows, and computes all of
        them. A tuple of cuts, or of Layouts, one for each column: each worker has its own rows."""
        _settings.check_dataset_strategy(config)
        self._make_steps_again()

    def comm_fusion(self, config) -> None:
        """How gradients travel together: set_auto_parallel_context(comm_fusion=...)."""
        context.set_auto_parallel_context(comm_fusion=config)

    def load_param_strategy_file(self, file_path) -> None:
        """Notes the file: checkpoints hold whole parameters, which fit every layout."""
        self._note_file("load_param_strategy_file", file_path)

    def save_param_strategy_file(self, file_path) -> None:
        """Writes a file that says for how many workers checkpoints are, which transform_checkpoints reads."""
        from mindspore.parallel import _checkpoints

        _checkpoints.save_strategy(file_path)

    def load_operator_strategy_file(self, file_path) -> None:
        """Notes the file: no operator is divided."""
        self._note_file("load_operator_strategy_file", file_path)

    @staticmethod
    def _note_file(name, file_path) -> None:
        if not isinstance(file_path, str):
            raise TypeError(f"AutoParallel.{name}: file_path is a str, not {file_path!r}")
        _device.note_once(f"note: AutoParallel.{name}() has no effect: every worker has whole operators")

    enable_gradients_mean = _noted("enable_gradients_mean", "gradients are means over the workers")
    no_init_parameters_in_compile = _noted(
        "no_init_parameters_in_compile", "parameters begin when they are made"
    )
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


__all__ = ["AutoParallel"]
__getattr__ = _names.missing(__name__)
