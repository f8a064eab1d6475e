"""set_context and its kin, by MindSpore's names."""

import muster
from mindspore import _device, _names
from muster import _core, get_ps_context, reset_auto_parallel_context, reset_ps_context

GRAPH_MODE = 0
PYNATIVE_MODE = 1
STRICT, COMPATIBLE, LAX = 0, 1, 2  # of jit_syntax_level: what the compiler of graphs would take


class ParallelMode:
    """How workers share the training; Muster has STAND_ALONE and DATA_PARALLEL."""

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
# Settings that are fine at the value that means "do nothing special".
_OFF = {"save_graphs": (False, 0), "enable_graph_kernel": (False,), "enable_reduce_precision": (True, False)}


_COMM_FUSION = '{"allreduce": {"mode": "size", "config": 32}}'


def set_context(**settings) -> None:
    """mode and device_target; settings without a meaning here are noted, all others are errors."""
    for name, value in settings.items():
        if name == "mode":
            _set_mode(value)
        elif name == "device_target":
            _device.run_on(value, "set_context(device_target)")
        elif name in _HARMLESS:
            _device.note_once(f"note: set_context({name}=...) has no effect: {_HARMLESS[name]}")
            _given[name] = value
        elif name not in _OFF or value not in _OFF[name]:
            raise NotImplementedError(_names.sentence(f"mindspore.set_context({name}={value!r})"))


# What scripts ask for, where they have not said it.
_DEFAULTS = {
    "device_id": 0,
    "save_graphs": 0,
    "save_graphs_path": ".",
    "max_call_depth": 1000,
    "max_device_memory": "1024GB",
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
}
_given: dict = {}  # settings that change nothing


def get_context(attr_key):
    """The mode, the device_target, or what was set."""
    if attr_key == "mode":
        return PYNATIVE_MODE if muster._core._context()["mode"] == "eager" else GRAPH_MODE
    if attr_key == "device_target":
        return "CPU"
    if attr_key in _given or attr_key in _DEFAULTS:
        return _given.get(attr_key, _DEFAULTS.get(attr_key))
    raise NotImplementedError(_names.sentence(f"mindspore.get_context({attr_key!r})"))


# What set_auto_parallel_context takes in one way only, or refuses.
_ONE_WAY = {
    "dataset_strategy": "data_parallel",
    "enable_alltoall": False,
    "enable_parallel_optimizer": False,
    "full_batch": False,
    "grad_accumulation_step": 1,
    "optimizer_weight_shard_size": -1,
    "parameter_broadcast": False,
    "pipeline_result_broadcast": False,
    "pipeline_stages": 1,
    "strategy_ckpt_load_file": "",
    "strategy_ckpt_save_file": "",
}


def get_auto_parallel_context(attr_key):
    """parallel_mode, gradients_mean, device_num or global_rank."""
    if attr_key in ("parallel_mode", "gradients_mean"):
        return muster._core._context()[attr_key]
    if attr_key in ("device_num", "global_rank"):
        return muster._core._context()["world_size" if attr_key == "device_num" else "rank"]
    if attr_key in _ONE_WAY:
        return _ONE_WAY[attr_key]
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
    others = sorted(set(comm_fusion) - {"openstate", "allreduce"})
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
    full_batch=None,
    **settings,
) -> None:
    """parallel_mode STAND_ALONE or DATA_PARALLEL, gradients_mean, and how gradients are reduced together:
    comm_fusion={"allreduce": {"mode": "auto", "size" (in MiB) or "index", "config": ...}}. An index counts
    gradients in the order in which the backward pass makes them. `full_batch` changes nothing: in these modes
    each worker computes on what its dataset gives."""
    buckets = _buckets(comm_fusion, all_reduce_fusion_config)
    if settings:
        named = ", ".join(sorted(settings))
        raise NotImplementedError(_names.sentence(f"mindspore.set_auto_parallel_context({named})"))
    if parallel_mode in ("hybrid_parallel", "semi_auto_parallel", "auto_parallel"):
        raise NotImplementedError(_names.sentence(f"parallel_mode '{parallel_mode}'"))
    if full_batch is not None and not isinstance(full_batch, bool):
        raise TypeError(f"full_batch is True or False, not {full_batch!r}")
    if device_num is not None:
        _device.note_once("note: device_num has no effect: the world size is that of the cluster")
    muster.set_auto_parallel_context(parallel_mode=parallel_mode, gradients_mean=gradients_mean, **buckets)


_PS_SETTINGS = (
    "enable_ps",
    "staleness",
    "enable_ssl",
    "config_file_path",
    "client_password",
    "server_password",
)


def set_ps_context(**settings) -> None:
    """Parameter servers (enable_ps, staleness) and encryption (enable_ssl, config_file_path, client_password,
    server_password), before init()."""
    others = ", ".join(sorted(set(settings) - set(_PS_SETTINGS)))
    if others:
        raise NotImplementedError(_names.sentence(f"mindspore.set_ps_context({others})"))
    muster.set_ps_context(**settings)


__all__ = [
    "COMPATIBLE",
    "GRAPH_MODE",
    "LAX",
    "PYNATIVE_MODE",
    "STRICT",
    "ParallelMode",
    "get_auto_parallel_context",
    "get_context",
    "get_ps_context",
    "reset_auto_parallel_context",
    "reset_ps_context",
    "set_auto_parallel_context",
    "set_context",
    "set_ps_context",
]
__getattr__ = _names.missing(__name__)
