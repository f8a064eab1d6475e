"""Other paths to the names of a module: MindSpore's files, from which scripts import, and older versions'."""

from muster import _core


def _below(module: str, parts: str, holder: str = "") -> dict[str, str]:
    """Paths under a module, each to the module that has its names."""
    return {f"{module}.{part}": holder or module for part in parts.split()}


# Other paths to the names of a module, many of older versions: the modules that hold them.
OLDER_PATHS = {
    **_below("mindspore.common", "_stub_tensor api"),
    "mindspore._c_expression.amp": "mindspore._amp_strategy",
    "mindspore._c_expression.typing": "mindspore.common.dtype",
    "mindspore.communication._comm_helper": "mindspore.communication",
    "mindspore.common.seed": "mindspore.common",
    "mindspore.common.tensor": "mindspore.common",
    "mindspore.common.jit_config": "mindspore.common",
    "mindspore.communication.management": "mindspore.communication",
    **_below("mindspore.profiler", "envprofiler experimental_config profiler"),
    "mindspore.nn.cell": "mindspore.nn",
    "mindspore.nn.dynamic_lr": "mindspore.nn",
    "mindspore.nn.layer": "mindspore.nn",
    **{
        f"mindspore.nn.layer.{part}": "mindspore.nn"
        for part in (
            *("activation", "basic", "combined", "container", "conv", "embedding", "image", "math"),
            *("normalization", "padding", "pooling", "rnn_cells", "rnns", "transformer"),
            *("channel_shuffle", "timedistributed"),
        )
    },
    "mindspore.nn.learning_rate_schedule": "mindspore.nn",
    "mindspore.nn.loss": "mindspore.nn",
    "mindspore.nn.loss.loss": "mindspore.nn",
    "mindspore.nn.metrics": "mindspore.train.metrics",
    "mindspore.nn.optim": "mindspore.nn",
    "mindspore.nn.optim.optimizer": "mindspore.nn",
    "mindspore.nn.wrap": "mindspore.nn",
    "mindspore.nn.wrap.cell_wrapper": "mindspore.nn",
    "mindspore.nn.wrap.grad_reducer": "mindspore.nn",
    "mindspore.nn.wrap.loss_scale": "mindspore.nn",
    **dict.fromkeys(
        (
            "mindspore.ops.auto_generate",
            "mindspore.ops.auto_generate.gen_ops_def",
            "mindspore.ops.auto_generate.gen_ops_prim",
            "mindspore.ops.composite.base",
            "mindspore.ops.composite.multitype_ops",
            "mindspore.ops.composite.multitype_ops.zeros_like_impl",
            "mindspore.ops.function",
            "mindspore.ops.operations._map_tensor_ops",
            "mindspore.ops.operations._quant_ops",
            "mindspore.ops.operations._rl_inner_ops",
            *(
                f"mindspore.ops.function.{part}_func"
                for part in (
                    *("array", "clip", "debug", "fft", "image", "linalg", "math", "nn", "other"),
                    *("parameter", "random", "sparse", "sparse_unary", "spectral", "vmap"),
                )
            ),
            "mindspore.ops.function.grad",
            "mindspore.ops.function.grad.grad_func",
            *(
                f"mindspore.ops.operations.{part}_ops"
                for part in (
                    *("array", "comm", "control", "custom", "debug", "image", "inner", "linalg"),
                    *("math", "nn", "other", "random", "rl", "sparse", "spectral"),
                )
            ),
            "mindspore.ops.operations.manually_defined",
            "mindspore.ops.operations.manually_defined.ops_def",
        ),
        "mindspore.ops",
    ),
    "mindspore.ops.operations._embedding_cache_ops": "mindspore.ops._embedding_caches",
    "mindspore.ops.operations._inner_ops": "mindspore.ops._inner_primitives",
    "mindspore.ops.operations._grad_ops": "mindspore.ops._gradient_primitives",
    "mindspore.ops.operations._scalar_ops": "mindspore.ops._sequence_primitives",
    "mindspore.ops.operations._sequence_ops": "mindspore.ops._sequence_primitives",
    "mindspore.train.amp": "mindspore.amp",
    "mindspore.dataset.callback": "mindspore.dataset._callbacks",
    "mindspore.dataset.core": "mindspore.dataset",
    "mindspore.dataset.core.config": "mindspore.dataset.config",
    "mindspore.dataset.engine": "mindspore.dataset",
    "mindspore.dataset.engine.datasets": "mindspore.dataset",
    "mindspore.dataset.engine.datasets_standard_format": "mindspore.dataset",
    "mindspore.dataset.engine.datasets_text": "mindspore.dataset",
    "mindspore.dataset.engine.datasets_user_defined": "mindspore.dataset",
    "mindspore.dataset.engine.datasets_vision": "mindspore.dataset",
    "mindspore.dataset.engine.iterators": "mindspore.dataset._iterators",
    "mindspore.dataset.engine.samplers": "mindspore.dataset",
    "mindspore.dataset.audio.transforms": "mindspore.dataset.audio",
    "mindspore.dataset.audio.utils": "mindspore.dataset.audio",
    "mindspore.dataset.text.transforms": "mindspore.dataset.text",
    "mindspore.dataset.text.utils": "mindspore.dataset.text",
    "mindspore.train.callback._callback": "mindspore.train.callback",
    "mindspore.train.callback._loss_monitor": "mindspore.train.callback",
    "mindspore.train.callback._time_monitor": "mindspore.train.callback",
    **{
        f"mindspore.train.callback.{part}": "mindspore.train.callback"
        for part in (
            *("_backup_and_restore", "_checkpoint", "_early_stop", "_history", "_lambda_callback"),
            *("_lr_scheduler_callback", "_reduce_lr_on_plateau"),
        )
    },
    **{
        f"mindspore.train.metrics.{part}": "mindspore.train.metrics"
        for part in (
            *("accuracy", "bleu_score", "confusion_matrix", "cosine_similarity", "dice", "error", "fbeta"),
            *("hausdorff_distance", "loss", "mean_surface_distance", "metric", "occlusion_sensitivity"),
            *("perplexity", "precision", "recall", "roc", "root_mean_square_surface_distance", "topk"),
        )
    },
    "mindspore.mindrecord.filereader": "mindspore.mindrecord",
    "mindspore.mindrecord.filewriter": "mindspore.mindrecord",
    "mindspore.train.loss_scale_manager": "mindspore.amp",
    "mindspore.train.summary": "mindspore.train",
    "mindspore.train.summary.summary_record": "mindspore.train",
    **{f"mindspore.nn.optim.{name.lower()}": "mindspore.nn" for name in _core._optimizers},
    **_below("mindspore.boost", "adasum base boost boost_cell_wrapper dim_reduce grad_freeze"),
    **_below("mindspore.boost", "group_loss_scale_manager less_batch_normalization"),
    **_below(
        "mindspore.common", "dump dynamic_shape file_system generator hook_handle mindir_util", "mindspore"
    ),
    **_below("mindspore.common.dynamic_shape", "enable_dynamic auto_dynamic_shape", "mindspore"),
    "mindspore.common.sparse_tensor": "mindspore.common._sparse",
    "mindspore.common.symbol": "mindspore",
    "mindspore.dataset.callback.ds_callback": "mindspore.dataset._callbacks",
    **_below("mindspore.dataset.debug", "debug_hook pre_defined_hook"),
    **_below("mindspore.dataset.engine", "cache_client datasets_audio obs", "mindspore.dataset"),
    "mindspore.dataset.engine.obs.obs_mindrecord_dataset": "mindspore.dataset",
    "mindspore.dataset.engine.serializer_deserializer": "mindspore.dataset",
    **_below("mindspore.dataset.utils", "browse_dataset line_reader"),
    "mindspore.dataset.transforms.py_transforms_util": "mindspore.dataset.transforms",
    "mindspore.device_manager": "mindspore",
    "mindspore.experimental.map_parameter": "mindspore.experimental",
    **_below(
        "mindspore.experimental.optim",
        "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd",
    ),
    **_below("mindspore.hal", "device event memory stream"),
    **_below("mindspore.mindrecord", "common common.enums common.exceptions", "mindspore.mindrecord"),
    **_below("mindspore.mindrecord", "config mindpage shardheader shardreader shardwriter tools"),
    **_below(
        "mindspore.mindrecord.tools",
        "cifar10_to_mr cifar100_to_mr csv_to_mr imagenet_to_mr mnist_to_mr tfrecord_to_mr",
        "mindspore.mindrecord",
    ),
    "mindspore.mint.distributed.distributed": "mindspore.mint.distributed",
    "mindspore.mint.nn.layer": "mindspore.mint.nn",
    **_below(
        "mindspore.mint.nn.layer",
        "activation basic conv normalization padding pooling",
        "mindspore.mint.nn",
    ),
    **_below("mindspore.mint.optim", "adam adamw sgd"),
    "mindspore.nn.grad": "mindspore.nn",
    "mindspore.nn.grad.cell_grad": "mindspore.nn",
    **_below("mindspore.nn.layer", "dense thor_layer", "mindspore.nn"),
    **_below(
        "mindspore.nn.optim",
        "ada_grad adadelta adafactor adamax adasum asgd lars lazyadam proximal_ada_grad rprop tft_wrapper",
        "mindspore.nn",
    ),
    **_below(
        "mindspore.nn.probability.bijector",
        "bijector exp gumbel_cdf invert power_transform scalar_affine softplus",
    ),
    **_below(
        "mindspore.nn.probability.bnn_layers",
        "bnn_cell_wrapper conv_variational dense_variational layer_distribution",
    ),
    **_below(
        "mindspore.nn.probability.distribution",
        "bernoulli beta categorical cauchy distribution exponential gamma geometric gumbel half_normal"
        " laplace log_normal logistic normal poisson student_t transformed_distribution uniform",
    ),
    **_below("mindspore.nn", "reinforcement sparse", "mindspore.nn"),
    "mindspore.nn.reinforcement.tensor_array": "mindspore.nn",
    "mindspore.nn.sparse.sparse": "mindspore.nn",
    "mindspore.nn.utils.init": "mindspore.nn.utils",
    **_below("mindspore.ops.composite", "env_ops math_ops"),
    "mindspore.ops_generate.gen_utils": "mindspore.ops_generate.common.gen_utils",
    "mindspore.ops.op_info_register": "mindspore.ops",
    **_below(
        "mindspore.parallel",
        "algo_parameter_config checkpoint_convert checkpoint_transform transform_safetensors",
    ),
    **_below("mindspore.parallel.nn", "parallel_cell_wrapper parallel_grad_reducer"),
    **_below("mindspore.rewrite", "api node"),
    **_below("mindspore.rewrite.api", "node node_type scoped_value symbol_tree", "mindspore.rewrite"),
    **_below("mindspore.runtime", "event executor memory stream"),
    "mindspore.safeguard.rewrite_obfuscation": "mindspore.safeguard",
    **_below(
        "mindspore.train.callback",
        "_flops_collector _landscape _on_request_exit _summary_collector _train_fault_tolerance",
        "mindspore.train",
    ),
    **_below("mindspore.train", "_utils train_thor"),
    **_below("mindspore.train.train_thor", "convert_utils dataset_helper model_thor", "mindspore.train"),
}

# Paths that end like a function of the module above them, which stays what that module shows.
BESIDE_FUNCTIONS = {
    **_below("mindspore.parallel._transformer", "layers moe op_parallel_config transformer"),
    "mindspore._extends.utils": "mindspore._extends",
    "mindspore.common.no_inline": "mindspore",
    "mindspore.common.recompute": "mindspore",
    "mindspore.nn.optim.thor": "mindspore.nn",
    "mindspore.profiler.schedule": "mindspore.profiler",
    "mindspore.parallel.parameter_broadcast": "mindspore.parallel",
    "mindspore.parallel.shard": "mindspore.parallel",
    "mindspore.run_check": "mindspore",
    "mindspore.run_check.run_check": "mindspore",
    "mindspore.train.data_sink": "mindspore.train",
    "mindspore.train.metrics.auc": "mindspore.train.metrics",
}

# Names that a module of MindSpore has, too: the module that has them here.
ALSO = {
    "mindspore.common": (
        "mindspore",
        """COOTensor CSRTensor QuantDtype RowTensor TensorType Type bfloat16 bool_ byte cdouble cfloat
        complex64 complex128 double float8_e4m3fn float8_e5m2 float16 float32 dtype_to_nptype
        dtype_to_pytype float64 float_ from_numpy get_py_obj_dtype half hifloat8 int16 int32 int64 int8 int_
        intc intp is_tensor list_ long ms_memory_recycle no_inline number pytype_to_dtype qint4x2
        set_recursion_limit short single string tensor_type tuple_ type_none ubyte uint uint16 uint32 uint64
        uint8 uintc uintp ushort Generator default_generator get_rng_state initial_seed manual_seed seed
        set_rng_state""",
    ),
    "mindspore.dataset.vision.utils": (
        "mindspore.dataset.vision",
        """encode_jpeg encode_png get_image_num_channels get_image_size read_file read_image write_file
        write_jpeg write_png""",
    ),
    "mindspore.numpy.array_creations": ("mindspore.numpy", "histogram_bin_edges"),
    "mindspore.numpy.logic_ops": ("mindspore.numpy", "setdiff1d signbit"),
    "mindspore.numpy.math_ops": ("mindspore.numpy", "promote_types ravel_multi_index result_type"),
    "mindspore.ops.composite": (
        "mindspore.ops",
        """add_flags batch_dot count_nonzero cummin dot env_get gamma hyper_add laplace matmul mm multinomial
        normal poisson repeat_elements repeat_interleave sequence_mask tail tensor_dot uniform
        vecdot zip_operation""",
    ),
    "mindspore.ops.functional": ("mindspore.ops", ""),
    "mindspore.ops.functional_overload": ("mindspore.ops", ""),
    "mindspore.ops.operations": ("mindspore.ops", ""),
    "mindspore.ops.primitive": ("mindspore.ops", "prim_arg_register"),
    "mindspore.train.serialization": (
        "mindspore.train",
        "async_ckpt_thread_status ckpt_to_safetensors load_checkpoint_async safetensors_to_ckpt",
    ),
}

# Modules that have names alone that are refused at their use (_refused.py).
REFUSED_MODULES = frozenset(
    (
        "mindspore.dataset.utils",
        "mindspore.nn.probability.bnn_layers",
        "mindspore.numpy.fft",
        "mindspore.ops.operations._tensor_array",
        "mindspore.rewrite",
        "mindspore.safeguard",
    )
)
