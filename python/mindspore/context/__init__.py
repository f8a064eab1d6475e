"""set_context and its kin, by MindSpore's names."""

import os

import muster
from mindspore import _device, _names
from muster import _core

GRAPH_MODE = 0
PYNATIVE_MODE = 1
STRICT, COMPATIBLE, LAX = 0, 1, 2  # of jit_syntax_level: what the compiler of graphs would take


class ParallelMode:
    """How workers share the training."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]  # noqa: RUF012


# Settings that cannot change a result here, and why.
_HARMLESS = {
    "device_id": "there is one CPU device",
    "max_call_depth": "code is traced, not parsed",
    "max_device_memory": "memory is planned from the graph",
    "mempool_block_size": "memory is planned from the graph",
    "memory_optimize_level": "memory is planned from the graph",
    "inter_op_parallel_num": "threads follow OMP_NUM_THREADS",
    "runtime_num_threads": "threads follow OMP_NUM_THREADS",
    "reserve_class_name_in_scope": "it is about dumps of graphs",
}
# Further ones that say how MindSpore's compiler and runtime work, or what an accelerator does.
_HARMLESS.update(
    dict.fromkeys(
        [
            "jit_config",
            "jit_level",
            "exec_order",
            "print_file_path",
            "env_config_path",
            "save_graphs_path",
            "save_dump_path",
            "ascend_config",
            "gpu_config",
            "aoe_tune_mode",
            "aoe_config",
            "auto_tune_mode",
            "variable_memory_max_size",
            "enable_profiling",
            "profiling_options",
            "graph_kernel_flags",
            "op_timeout",
            "op_tuning_conf",
            "check_bprop",
            "enable_sparse",
            "grad_for_scalar",
            "enable_compile_cache",
            "compile_cache_path",
            "precompile_only",
            "pynative_synchronize",
            "deterministic",
            "disable_format_transform",
            "support_binary",
            "mempool_block_size",
            "enable_mem_offload",
            "memory_offload",
            "hccl_buffer",
            "device_context",
            "jit_syntax_level",
            "debug_level",
            "dump_config",
            "topo_order",
            "ms_dump_path",
            "enable_auto_mixed_precision",
            "backend_policy",
            "debug_level",
        ],
        "it is about MindSpore's own compiler or about accelerators",
    )
)
# What the settings above may be: whole numbers from a least one, one of some values, or a string.
_LEAST = {
    "device_id": 0,
    "inter_op_parallel_num": 0,
    "max_call_depth": 1,
    "op_timeout": 0,
    "runtime_num_threads": 0,
}
_CHOICES = {
    "debug_level": (0, 1),
    "deterministic": ("ON", "OFF"),
    "enable_compile_cache": (True, False),
    "jit_syntax_level": (0, 1, 2),
    "memory_optimize_level": ("O0", "O1"),
    "precompile_only": (True, False),
    "pynative_synchronize": (True, False),
}
_TEXTS = ("max_device_memory", "mempool_block_size", "print_file_path", "save_graphs_path")


def _check(name, value) -> None:
    """Raises TypeError for a value of another kind, ValueError for one that there is not."""
    choices, least = _CHOICES.get(name, ()), _LEAST.get(name)
    kind = int if least is not None else str if name in _TEXTS else type(choices[0]) if choices else object
    # MindSpore takes 0 and 1 for False and True here, too.
    is_of_kind = isinstance(value, kind) or (kind is bool and value in (0, 1))
    if not is_of_kind or (kind is int and isinstance(value, bool)):
        wanted = {int: "a whole number", str: "a string", bool: "True or False"}[kind]
        raise TypeError(f"set_context: {name} is {wanted}, not {value!r}")
    if least is not None and value < least:
        raise ValueError(f"set_context: {name} is at least {least}, not {value!r}")
    if choices and value not in choices:
        raise ValueError(f"set_context: {name} is one of {', '.join(map(str, choices))}, not {value!r}")


# Settings that change no result, and are worth a word at other values than these.
_OFF = {
    "save_graphs": ((False, 0), "`muster explain SCRIPT` shows the plan of a step, --svg draws it"),
    "enable_graph_kernel": ((False,), "the planner joins ops by itself"),
    "enable_reduce_precision": ((True, False), "ops compute in the dtype of their inputs"),
}


_COMM_FUSION = '{"allreduce": {"mode": "size", "config": 32}}'


def set_context(**settings) -> None:
    """mode and device_target; settings without a meaning here are noted, all others are errors."""
    for name, value in settings.items():
        if name == "mode":
            _set_mode(value)
        elif name == "device_target":
            _device.run_on(value, "set_context(device_target)")
        elif name in _HARMLESS:
            _check(name, value)
            _device.note_once(f"note: set_context({name}=...) has no effect: {_HARMLESS[name]}")
            _given[name] = value
        elif name in _OFF:
            _note_off(name, value)
        else:
            raise NotImplementedError(_names.sentence(f"mindspore.set_context({name}={value!r})"))


def _note_off(name, value) -> None:
    """Keeps a setting that changes no result."""
    allowed = (True, False, 0, 1, 2, 3) if name == "save_graphs" else (True, False)
    if not isinstance(value, int):
        raise TypeError(f"set_context: {name} is one of {', '.join(map(str, allowed))}, not {value!r}")
    if value not in allowed:
        raise ValueError(f"set_context: {name} is one of {', '.join(map(str, allowed))}, not {value!r}")
    silent, why = _OFF[name]
    if value not in silent:
        _device.note_once(f"note: set_context({name}={value!r}) has no effect: {why}")
    _given[name] = value


_OFFLOAD_DEFAULTS = {
    "offload_param": "",
    "offload_path": "./offload/",
    "offload_cpu_size": 0,
    "offload_disk_size": 0,
    "enable_aio": True,
    "aio_block_size": 1 << 20,
    "aio_queue_depth": 1024,
    "enable_pinned_mem": True,
    "auto_offload": False,
    "host_mem_block_size": 1 << 30,
    "cpu_ratio": 1.0,
    "hbm_ratio": 1.0,
    "offload_checkpoint": "",
}


def set_offload_context(offload_config) -> None:
    """Keeps what an accelerator would move to the memory of its host, where everything is here.

    Raises:
        TypeError: `offload_config` is no dict.
        ValueError: It has a key that there is not.
    """
    if not isinstance(offload_config, dict):
        raise TypeError(f"set_offload_context: offload_config is a dict, not {offload_config!r}")
    for key in offload_config:
        if key not in _OFFLOAD_DEFAULTS:
            raise ValueError(f"set_offload_context: the keys are {', '.join(_OFFLOAD_DEFAULTS)}, not {key!r}")
    _device.note_once("note: set_offload_context() has no effect: all values lie in the memory of the host")
    _given["offload_config"] = {**get_offload_context(), **offload_config}


def get_offload_context() -> dict:
    """What set_offload_context was given, over the defaults."""
    return {**_OFFLOAD_DEFAULTS, **_given.get("offload_config", {})}


# What scripts ask for, where they have not said it.
_DEFAULTS = {
    "device_id": 0,
    "save_graphs": 0,
    "save_graphs_path": ".",
    "max_call_depth": 1000,
    "max_device_memory": 1024.0,
    "enable_graph_kernel": False,
    "enable_reduce_precision": True,
    "pynative_synchronize": False,
    "deterministic": "OFF",
    "jit_config": {},
    "jit_level": "",
    "runtime_num_threads": 30,
    "enable_sparse": False,
    "grad_for_scalar": False,
    "precompile_only": False,
    "check_bprop": False,
    "enable_ge": False,
    "enable_profiling": False,
    "enable_compile_cache": None,
    "disable_format_transform": False,
    "support_binary": False,
    "reserve_class_name_in_scope": True,
    "graph_kernel_flags": "",
    "print_file_path": "",
    "env_config_path": "",
    "aoe_tune_mode": "",
    "variable_memory_max_size": "0",
    "mempool_block_size": 1.0,
    "memory_optimize_level": 0,
    "debug_level": 0,
    "op_timeout": 900,
    "inter_op_parallel_num": 0,
    "ascend_config": {},
    "gpu_config": {},
}
_given: dict = {}  # settings that change nothing


def get_context(attr_key):
    """The mode, the device_target, or what was set."""
    if attr_key == "mode":
        return PYNATIVE_MODE if muster._core._is_in_eager_mode() else GRAPH_MODE
    if attr_key == "device_target":
        return "CPU"
    if attr_key in _given or attr_key in _DEFAULTS:
        return _given.get(attr_key, _DEFAULTS.get(attr_key))
    raise NotImplementedError(_names.sentence(f"mindspore.get_context({attr_key!r})"))


_PARALLEL_DEFAULTS = {
    "auto_parallel_search_mode": "recursive_programming",
    "auto_pipeline": False,
    "comm_fusion": {},
    "dataset_strategy": "data_parallel",
    "enable_alltoall": False,
    "enable_parallel_optimizer": False,
    "force_fp32_communication": False,
    "full_batch": False,
    "grad_accumulation_step": 1,
    "gradient_fp32_sync": True,
    "group_ckpt_save_file": "",
    "loss_repeated_mean": True,
    "optimizer_weight_shard_size": -1,
    "parallel_optimizer_config": {},
    "parameter_broadcast": False,
    "pipeline_config": {"pipeline_interleave": False, "pipeline_scheduler": "1f1b"},
    "pipeline_result_broadcast": False,
    "pipeline_stages": 1,
    "search_mode": "recursive_programming",
    "strategy_ckpt_config": {"load_file": "", "save_file": "", "only_trainable_params": True},
    "strategy_ckpt_load_file": "",
    "strategy_ckpt_save_file": "",
}
_parallel: dict = {}  # of these, what scripts have set


def get_auto_parallel_context(attr_key):
    """What set_auto_parallel_context was given, or the default."""
    from mindspore.parallel import _utils

    if attr_key == "parallel_mode":
        return _utils._get_parallel_mode()
    if attr_key == "gradients_mean":
        return muster._core._context()[attr_key]
    if attr_key in ("device_num", "global_rank"):
        return muster._core._context()["world_size" if attr_key == "device_num" else "rank"]
    if attr_key in _PARALLEL_DEFAULTS:
        return _parallel.get(attr_key, _PARALLEL_DEFAULTS[attr_key])
    raise NotImplementedError(_names.sentence(f"mindspore.get_auto_parallel_context({attr_key!r})"))


def _set_mode(mode) -> None:
    if mode not in (GRAPH_MODE, PYNATIVE_MODE):
        raise ValueError(f"set_context(mode): {mode!r} is neither GRAPH_MODE nor PYNATIVE_MODE")
    muster.set_context(mode="eager" if mode == PYNATIVE_MODE else "graph")


def _buckets(comm_fusion, all_reduce_fusion_config) -> dict:
    """What both settings ask for, by Muster's names; nothing for what is not given."""
    if comm_fusion is not None and all_reduce_fusion_config is not None:
        raise ValueError("give comm_fusion or all_reduce_fusion_config, not both")
    if all_reduce_fusion_config is not None:
        return {"bucket_splits": list(all_reduce_fusion_config)}
    if comm_fusion is None:
        return {}
    if not isinstance(comm_fusion, dict):
        raise TypeError(f"comm_fusion is a dict such as {_COMM_FUSION}, not {comm_fusion!r}")
    for name in {"allgather", "reducescatter"} & set(comm_fusion):
        _device.note_once(f"note: comm_fusion's '{name}' has no effect: such calls are made one by one")
    others = sorted(set(comm_fusion) - {"openstate", "allreduce", "allgather", "reducescatter"})
    if others:
        raise NotImplementedError(_names.sentence(f"comm_fusion of {', '.join(map(repr, others))}"))
    if not comm_fusion.get("openstate", True):
        return {"bucket_bytes": 1}  # each gradient alone
    chosen = comm_fusion.get("allreduce", {})
    if not isinstance(chosen, dict):
        raise TypeError(f"comm_fusion is a dict such as {_COMM_FUSION}, not {comm_fusion!r}")
    return _buckets_of_mode(**{"mode": "auto", "config": None, **chosen})


def _buckets_of_mode(mode, config, **others) -> dict:
    if others:
        raise ValueError(
            f"comm_fusion's 'allreduce' has 'mode' and 'config', not {', '.join(map(repr, others))}"
        )
    if mode == "auto":
        return {"bucket_bytes": _core._default_bucket_bytes}
    if mode == "size":
        if isinstance(config, bool) or not isinstance(config, int) or config < 1:
            raise ValueError(
                f"comm_fusion's 'config' of mode 'size' is a whole number of MiB from 1, not {config!r}"
            )
        return {"bucket_bytes": config << 20}
    if mode == "index":
        if not isinstance(config, (list, tuple)):
            raise ValueError(f"comm_fusion's 'config' of mode 'index' is a list of positions, not {config!r}")
        return {"bucket_splits": list(config)}
    raise ValueError(f"comm_fusion's mode is 'auto', 'size' or 'index', not {mode!r}")


def set_auto_parallel_context(
    *,
    parallel_mode=None,
    gradients_mean=None,
    device_num=None,
    comm_fusion=None,
    all_reduce_fusion_config=None,
    **settings,
) -> None:
    """How the workers share a training (docs/guide/parallel.md).

    Args:
        parallel_mode: 'stand_alone'; 'data_parallel', and 'hybrid_parallel', which is the same here; or
            'semi_auto_parallel' and 'auto_parallel': the workers share the batch with the numbers of one
            process, gradients are means over the workers.
        gradients_mean: Whether reduced gradients are divided by the number of workers.
        comm_fusion, all_reduce_fusion_config: How gradients travel together:
            {"allreduce": {"mode": "auto", "size" (in MiB) or "index", "config": ...}}. An index counts
            gradients in the order in which the backward pass makes them.
        settings: pipeline_stages and pipeline_config; enable_parallel_optimizer with
            parallel_optimizer_config {"optimizer_level", "parallel_optimizer_threshold" in KB}; full_batch
            and dataset_strategy; and what is about accelerators, noted once.

    Raises:
        TypeError, ValueError: A value is not of its kind.
        NotImplementedError: There is no such setting, or it would change results.
    """
    from mindspore.parallel import _settings, _utils

    buckets = _buckets(comm_fusion, all_reduce_fusion_config)
    if device_num is not None:
        _device.note_once("note: device_num has no effect: the world size is that of the cluster")
    chosen = _settings.checked(settings)
    if comm_fusion is not None:
        chosen["comm_fusion"] = comm_fusion
    if parallel_mode in ("semi_auto_parallel", "auto_parallel"):
        if gradients_mean is not None:
            _device.note_once(
                f"note: gradients_mean has no effect in {parallel_mode}: gradients are those of the batch"
            )
        muster.set_auto_parallel_context(**buckets)
        _utils._choose_divided(parallel_mode)
    else:
        own = "data_parallel" if parallel_mode == "hybrid_parallel" else parallel_mode
        muster.set_auto_parallel_context(parallel_mode=own, gradients_mean=gradients_mean, **buckets)
        if parallel_mode is not None:
            _utils._choose_divided(parallel_mode if parallel_mode == "hybrid_parallel" else "")
    _settings.apply({**_parallel, **chosen})
    _parallel.update(chosen)


def reset_auto_parallel_context() -> None:
    """All settings of set_auto_parallel_context, back to the defaults."""
    from mindspore.parallel import _pipeline, _settings, _utils

    _parallel.clear()
    _pipeline.choose()
    _settings.forget()
    _utils._choose_divided("")
    muster.reset_auto_parallel_context()


_PS_SETTINGS = (
    "enable_ps",
    "staleness",
    "enable_ssl",
    "config_file_path",
    "client_password",
    "server_password",
)


# Older keys, which change nothing there either: what the job gets it from. (A script that says them runs.)
_PS_OF_ENVIRONMENT = {
    "ms_role": "MS_ROLE",
    "scheduler_ip": "MS_SCHED_HOST",
    "scheduler_manage_port": None,
    "scheduler_port": "MS_SCHED_PORT",
    "server_num": "MS_SERVER_NUM",
    "worker_num": "MS_WORKER_NUM",
}
_ps: dict = {}  # of these, what scripts have set


def _note_of_environment(key: str, value) -> None:
    variable = _PS_OF_ENVIRONMENT[key]
    if variable is None:
        text = "`muster status` asks the scheduler at its own port"
    elif os.environ.get(variable) == str(value):
        return
    else:
        text = f"the job has that from {variable}, which is {os.environ.get(variable, 'not set')}"
    _device.note_once(f"note: set_ps_context({key}={value!r}) has no effect: {text}")


def set_ps_context(**settings) -> None:
    """Parameter servers (enable_ps, staleness) and encryption (enable_ssl, config_file_path, client_password,
    server_password), before init(). Older keys (worker_num, server_num, scheduler_ip, scheduler_port,
    scheduler_manage_port, ms_role) have no effect: the variables of the environment say it.

    Raises:
        ValueError: There is no such key, or this process has joined its job.
        TypeError: A value is not of its kind.
    """
    for key in settings:
        if key not in (*_PS_SETTINGS, *_PS_OF_ENVIRONMENT):
            raise ValueError(f"set_ps_context: the keys are {', '.join(_PS_SETTINGS)}, not {key!r}")
    older = {key: settings.pop(key) for key in _PS_OF_ENVIRONMENT if key in settings}
    muster.set_ps_context(**settings)
    for key, value in older.items():
        _note_of_environment(key, value)
    _ps.update(older)


def get_ps_context(attr_key):
    """What set_ps_context was given, or the default; of older keys what the environment says."""
    if attr_key not in _PS_OF_ENVIRONMENT:
        return muster.get_ps_context(attr_key)
    variable = _PS_OF_ENVIRONMENT[attr_key]
    if attr_key in _ps or variable is None:
        return _ps.get(attr_key, 11202)
    said = os.environ.get(variable, "")
    return int(said or 0) if attr_key.endswith(("_num", "_port")) else said


def reset_ps_context() -> None:
    """All settings of set_ps_context, back to the defaults."""
    muster.reset_ps_context()
    _ps.clear()


__all__ = [
    "COMPATIBLE",
    "GRAPH_MODE",
    "LAX",
    "PYNATIVE_MODE",
    "STRICT",
    "ParallelMode",
    "get_auto_parallel_context",
    "get_context",
    "get_offload_context",
    "get_ps_context",
    "reset_auto_parallel_context",
    "reset_ps_context",
    "set_auto_parallel_context",
    "set_context",
    "set_offload_context",
    "set_ps_context",
]
__getattr__ = _names.missing(__name__)
