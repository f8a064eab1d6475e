"""Names that can be imported and say at their use why Muster has not what they do, and the way out.

An import that fails stops a whole script, also where what it names is used in one branch of it alone. Names
that are not in this table are still an error where they are imported. `hasattr` says True of these, as it
does of MindSpore's.
"""

import functools

_COMPLEX = ("Muster has no complex numbers", "keep real and imaginary part in two tensors, or use numpy")
_DEVICES = "it is made for Ascend or GPU, not for a CPU"
_MINDIR = (
    "MindIR files are not divided over devices, and printed tensors are not read back",
    "export one file with file_format='MINDIR'",
)
_SECOND_ORDER = ("MindSpore has it for Ascend and GPU alone", "use nn.Momentum or nn.Lamb")
_REWRITE = ("Muster does not rewrite the text of networks", "change the cell itself: replace its attributes")
_BOOST = (
    "Muster changes no training by itself",
    "leave it out; frozen layers have requires_grad=False, large batches are boost.GradientAccumulation's",
)
_BAYES = (
    "layers with distributions as weights are to come",
    "draw weights with nn.probability.distribution.Normal",
)
_DATASET = (
    "this source is to come",
    "read its files with a GeneratorDataset, or an ImageFolderDataset where folders are classes",
)
_PIPELINE = (
    "pipelines are not written to files or compared",
    "make the pipeline by a function, called where it is needed",
)
_MINDRECORD = (
    "this conversion is to come",
    "read the files in Python and write them with mindrecord.FileWriter",
)
_SECRET = ("MindRecord files are not encrypted", "encrypt the file system or the folder instead")
_PAGES = ("MindRecord files are read in their order", "use mindrecord.FileReader or dataset.MindDataset")
_OBFUSCATE = ("networks are not obfuscated", "protect the file of weights by rights or encryption")
_STRATEGY = (
    "there are no strategy files",
    "use mindspore.load_distributed_checkpoint or transform_checkpoints, or one whole checkpoint",
)
_SPARSE = ("sparse tensors have no arithmetic", "use their to_dense(), or gather and scatter")
_REPLAY = (
    "it is of MindSpore's library for reinforcement",
    "keep transitions in arrays, or in ops.BufferAppend",
)
_EXECUTOR = ("it is of MindSpore's own executor", "leave it out: nothing here depends on it")
_QUANT = ("Muster does not quantize networks", "round weights with functions of mindspore.ops")
_NO_KERNEL = ("MindSpore has no kernel of it for a CPU either", "write it with functions of mindspore.ops")
_OF_GRAPHS = ("MindSpore's compiler puts it into graphs", "write what it stands for in Python")
_SECOND = ("it is the gradient of a gradient", "take the gradient of mindspore.grad(...) once more")
_LATER_GRADIENT = ("this op is to come", "take the gradient of the op itself with mindspore.grad")
_PREFETCH = ("it belongs to a device that computes in queues of its own", "leave it out on a CPU")

# Reason and way out, and where the names stand.
_TABLE = (
    (
        _COMPLEX,
        {
            "mindspore.ops": """
                Angle Complex ComplexAbs Eig FFTWithSize Imag Polar STFT angle eig eigvals fft fft2 fftn
                hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn imag irfft irfft2 irfftn polar rfft
                rfft2 rfftn stft view_as_real
            """,
            "mindspore.numpy.fft": """
                fft fft2 fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2 irfftn
                rfft rfft2 rfftn
            """,
            "mindspore.mint": "polar",
        },
    ),
    (
        (_DEVICES, "use nn.LSTM"),
        {"mindspore.ops": "BasicLSTMCell DynamicRNN"},
    ),
    ((_DEVICES, "use nn.GRU"), {"mindspore.ops": "DynamicGRUV2"}),
    ((_DEVICES, "use ops.dropout or nn.Dropout"), {"mindspore.ops": "DropoutDoMask DropoutGenMask"}),
    (
        (_DEVICES, "use nn.MultiheadAttention, or softmax and matmul"),
        {
            "mindspore.ops": """
                ApplyRotaryPosEmb PagedAttention PagedAttentionMask ReshapeAndCache
                fused_infer_attention_score incre_flash_attention prompt_flash_attention
                ring_attention_update speed_fusion_attention
            """
        },
    ),
    (
        (_DEVICES, "write it with functions of mindspore.ops"),
        {
            "mindspore.ops": """
                AlltoAllV FusedCastAdamWeightDecay FusedWeightScaleApplyMomentum GroupTopk NeighborExchange
                NeighborExchangeV2 add_layer_norm all_gather_matmul
                matmul_reduce_scatter moe_distribute_combine moe_distribute_dispatch
                moe_init_routing_v2 moe_token_permute moe_token_unpermute
                multi_scale_deformable_attn_function rotated_iou tensor_muls
            """
        },
    ),
    (
        ("it makes kernels for Ascend or GPU", "use ops.Custom with a Python or C function"),
        {"mindspore.ops": "AiCPURegOp AkgAscendRegOp AkgGpuRegOp CpuRegOp CustomOpBuilder TBERegOp"},
    ),
    (
        ("its parameter server is MindSpore's own", "use set_auto_parallel_context or a plain optimizer"),
        {"mindspore.ops": "Pull Push"},
    ),
    (
        ("this op is to come", "write it with functions of mindspore.ops"),
        {
            "mindspore.ops": """
                ComputeAccidentalHits DepthwiseConv2dNative MatrixLogarithm RNNTLoss
                SampleDistortedBoundingBoxV2 conv3d_transpose conv_transpose2d linearize
            """,
            "mindspore.nn": "MSSSIM MatDet MatInverse",
            "mindspore.mint.nn": "SyncBatchNorm",
            "mindspore.mint.nn.functional": "upsample",
            "mindspore.mint.distributed": "TCPStore",
            "mindspore.dataset.audio": "Vad",
        },
    ),
    (
        ("this function is to come", "use nn.MultiheadAttention"),
        {"mindspore.ops.function.nn_func": "multi_head_attention_forward"},
    ),
    (
        _NO_KERNEL,
        {
            "mindspore.ops.operations._grad_ops": """
                AvgPoolGradGe AvgPoolGradV1 AvgPoolGradVm BNTrainingReduceGrad BNTrainingUpdateGrad
                BasicLSTMCellCStateGrad BasicLSTMCellInputGrad BasicLSTMCellWeightGrad
                DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput DynamicGRUV2Grad
                DynamicRNNGrad EmbeddingLookupCommGrad FlashAttentionScoreGrad GRUV2Grad GruGradData
                GruGradWeight InstanceNormGrad LSTMGradData LSTMGradWeight MapTensorGetGrad
                NeighborExchangeV2Grad ParallelResizeBilinearGrad RandomGammaGrad RefToEmbed RmsNormGrad
                SyncBatchNormGrad WKVGrad
            """,
            "mindspore.ops.operations._inner_ops": """
                AntiQuant ApplyCamePart1 ApplyCamePart2 ApplyCamePart3 ApplyCamePart4 Centralization
                ConfusionMulGrad DSDGrad DSDMatmul DecodeImage Dequant DynamicResizeNearestNeighbor
                ErrorOnDynamicShapeInput FFN FlattenConcat GpuConvertToDynamicShape KMeansCentroids MatmulDDS
                MatmulDDSGrad NonZeroWithValue NonZeroWithValueShape ParallelResizeBilinear Quant StackDestroy
                StackInit StackPop StackPush TileSize TopKRouter TopPRouter
            """,
        },
    ),
    (
        (_DEVICES, "use ops.MaxPoolWithArgmaxV2 or ops.max_pool2d"),
        {
            "mindspore.ops.auto_generate": """
                MaxPoolGradWithIndices MaxPoolGradWithMask MaxPoolWithIndices MaxPoolWithMask
            """
        },
    ),
    (
        _OF_GRAPHS,
        {
            "mindspore.ops": """
                CopyWithSlice GeSwitch GetNext MapCacheIdx Merge Morph PyExecute Reshard Reusing
                UpdateState
            """,
            "mindspore.ops.operations._inner_ops": """
                CellBackwardHook CheckBprop DynamicBroadcastGradientArgs Format GetGrad GetitemTensorIndexInfo
                IsConstant IsInstance IsParameter IsSubClass MatrixSetDiag MixedPrecisionCast PartitionedCall
                SetitemTensorIndexInfo TensorCopySlices TopTypeof
            """,
        },
    ),
    (
        ("this op is to come", "gather or scatter tensors of one size, or use mindspore.mint.distributed"),
        {"mindspore.ops": "AllGatherV BatchISendIRecv ReduceScatterV _AllSwap"},
    ),
    (
        ("this op is to come", "use what mindspore.nn or mindspore.ops has of that name"),
        {
            "mindspore.ops.operations._inner_ops": """
                ClipByNorm Lamb MatrixDiag MatrixDiagPart SyncBatchNorm
            """
        },
    ),
    (
        _SECOND,
        {"mindspore.ops.operations._grad_ops": "BatchNormGradGrad LayerNormGradGrad MaxPool3DGradGrad"},
    ),
    (
        _LATER_GRADIENT,
        {
            "mindspore.ops.operations._grad_ops": """
                Conv3DBackpropFilter IgammaGradA InstanceNormV2Grad LSTMGrad LuUnpackGrad
                MaxPoolGradWithArgmax PSROIPoolingGrad PsROIPoolingGrad ResizeV2Grad
            """,
            "mindspore.ops.operations._inner_ops": "PsROIPooling",
        },
    ),
    (
        _REPLAY,
        {
            "mindspore.ops.operations._rl_inner_ops": """
                CudnnGRU EnvCreate EnvReset EnvStep MuxReceive MuxSend PriorityReplayBufferCreate
                PriorityReplayBufferDestroy PriorityReplayBufferPush PriorityReplayBufferSample
                PriorityReplayBufferUpdate ReservoirReplayBufferCreate ReservoirReplayBufferDestroy
                ReservoirReplayBufferPush ReservoirReplayBufferSample TensorsQueueClear TensorsQueueClose
                TensorsQueueCreate TensorsQueueGet TensorsQueuePop TensorsQueuePut TensorsQueueSize
            """
        },
    ),
    (
        ("its names are those of a graph", "use nn.TensorArray"),
        {
            "mindspore.ops.operations._tensor_array": """
                TensorArray TensorArrayClear TensorArrayClose TensorArrayGather TensorArrayRead
                TensorArraySize TensorArrayStack TensorArrayWrite
            """
        },
    ),
    (
        (
            "MindSpore divides it over Ascend",
            "use nn.MultiheadAttention, nn.TransformerEncoderLayer or nn.Dense",
        ),
        {
            "mindspore.parallel._transformer": """
                FeedForward MoE MultiHeadAttention Transformer TransformerDecoder TransformerDecoderLayer
                TransformerEncoder TransformerEncoderLayer VocabEmbedding
            """
        },
    ),
    (
        _EXECUTOR,
        {
            "mindspore._c_expression": """
                Cell_ _framework_profiler_step_end _framework_profiler_step_start is_reboot_node
                jit_mode_pi_disable jit_mode_pi_enable swap_cache
            """,
            "mindspore.communication._comm_helper": "CollectiveManager",
            "mindspore.common.api": "_convert_python_data cells_compile_cache flops_collection",
            "mindspore.ops.operations.math_ops": "NPUClearFloatStatusV2 NPUGetFloatStatusV2",
        },
    ),
    (
        _QUANT,
        {
            "mindspore.ops.operations._quant_ops": """
                BatchNormFold BatchNormFold2 BatchNormFold2D FakeLearnedScaleQuantPerChannel
                FakeLearnedScaleQuantPerLayer FakeQuantParam FakeQuantPerChannel FakeQuantPerLayer
                MinMaxUpdatePerChannel MinMaxUpdatePerLayer
            """,
            "mindspore.ops.auto_generate": """
                DynamicQuantExt GroupedMatmul GroupedMatmulV4 QuantBatchMatmul QuantV2 WeightQuantBatchMatmul
            """,
        },
    ),
    (
        _SPARSE,
        {
            "mindspore.ops": """
                coalesce coo2csr csr2coo csr_div csr_gather csr_mul csr_mv csr_reduce_sum make_map_parameter
            """,
            "mindspore": "SparseTensor",
            "mindspore.experimental": "MapParameter",
        },
    ),
    (
        _SECOND_ORDER,
        {
            "mindspore.nn": "Conv2dThor DenseThor EmbeddingLookupThor EmbeddingThor thor",
            "mindspore": "ConvertModelUtils ConvertNetUtils",
            "mindspore.train": "ConvertModelUtils ConvertNetUtils ModelThor",
        },
    ),
    (
        ("MindSpore has it for Ascend and GPU alone", "use a plain optimizer"),
        {
            "mindspore.nn": "AdaSumByDeltaWeightWrapCell AdaSumByGradWrapCell OptTFTWrapper",
            "mindspore": "FlopsUtilizationCollector TrainFaultTolerance",
            "mindspore.train": "FlopsUtilizationCollector TrainFaultTolerance",
        },
    ),
    (
        _MINDIR,
        {
            "mindspore": "export_split_mindir parse_print",
            "mindspore.train": "export_split_mindir parse_print",
        },
    ),
    (
        (
            "checkpoints are written and read by their own code",
            "use mindspore.save_checkpoint, load_checkpoint",
        ),
        {"mindspore.train.serialization": "_exec_save _parse_ckpt_proto"},
    ),
    (
        _REWRITE,
        dict.fromkeys(("mindspore", "mindspore.rewrite"), "Node NodeType ScopedValue SymbolTree ValueType")
        | {"mindspore.rewrite": "Node NodeType PatternEngine PatternNode ScopedValue SymbolTree ValueType"},
    ),
    (
        _BOOST,
        {
            "mindspore.boost": """
                AdaSum AutoBoost BoostTrainOneStepCell BoostTrainOneStepWithLossScaleCell DimReduce FreezeOpt
                GradientFreeze GroupLossScaleManager LessBN OptimizerProcess ParameterProcess freeze_cell
            """
        },
    ),
    (
        _BAYES,
        {
            "mindspore.nn.probability.bnn_layers": """
                ConvReparam DenseLocalReparam DenseReparam NormalPosterior NormalPrior WithBNNLossCell
            """
        },
    ),
    (
        _DATASET,
        {
            "mindspore.dataset": """
                OBSMindDataset
            """
        },
    ),
    (
        _PIPELINE,
        {"mindspore.dataset": "sync_wait_for_dataset"},
    ),
    (
        ("pictures are not shown", "use matplotlib, or dataset.vision.utils to draw"),
        {"mindspore.dataset.utils": "imshow_det_bbox"},
    ),
    (
        ("it is to come", "give a GeneratorDataset the lines of the file, or use a TextFileDataset"),
        {"mindspore.dataset.utils": "LineReader"},
    ),
    (
        _MINDRECORD,
        {"mindspore.mindrecord": "Cifar100ToMR Cifar10ToMR CsvToMR ImageNetToMR MnistToMR TFRecordToMR"},
    ),
    (_PAGES, {"mindspore.mindrecord": "MindPage ShardHeader ShardReader ShardWriter"}),
    (_SECRET, {"mindspore.mindrecord": "set_dec_mode set_enc_key set_enc_mode"}),
    (
        _OBFUSCATE,
        dict.fromkeys(("mindspore", "mindspore.safeguard"), "load_obf_params_into_net obfuscate_ckpt"),
    ),
    (
        _STRATEGY,
        dict.fromkeys(
            ("mindspore", "mindspore.train", "mindspore.parallel"),
            "build_searched_strategy get_ckpt_path_with_strategy restore_group_info_list"
            " set_op_strategy_config",
        )
        | {
            "mindspore.parallel": """
            build_searched_strategy parameter_broadcast restore_group_info_list set_op_strategy_config
        """
        },
    ),
    (
        ("landscapes of losses are not drawn", "evaluate the network at weights that you move yourself"),
        dict.fromkeys(("mindspore", "mindspore.train"), "SummaryLandscape"),
    ),
    (
        _PREFETCH,
        dict.fromkeys(
            ("mindspore", "mindspore.hal", "mindspore.runtime"),
            "Event Stream StreamCtx communication_stream current_stream default_stream set_cur_stream",
        ),
    ),
)
_ROWS = {
    f"{owner}.{name}": row
    for row, owners in _TABLE
    for owner, names in owners.items()
    for name in names.split()
}


class Refused(type):
    """The type of names that are refused at their use: isinstance and annotations can name them."""

    def __call__(cls, *args, **kwargs):
        raise NotImplementedError(cls.text)

    def __getattr__(cls, name: str):
        if name.startswith("_"):
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")
        raise NotImplementedError(cls.text)

    def __repr__(cls) -> str:
        return f"<{cls.path}, which Muster has not>"


# Names of mindspore.ops with a capital that are no ops, but make kernels.
_MAKERS = frozenset(
    ["AiCPURegOp", "AkgAscendRegOp", "AkgGpuRegOp", "CpuRegOp", "CustomOpBuilder", "TBERegOp"]
)


def is_op(path: str) -> bool:
    """Whether the name is that of an op's class: modules make such objects when they are imported."""
    module, _, name = path.rpartition(".")
    return module.startswith("mindspore.ops") and name.lstrip("_")[0].isupper() and name not in _MAKERS


@functools.cache
def ops_below(module: str) -> tuple[str, ...]:
    """The names of the module's ops that are in the table."""
    return tuple(
        path.rpartition(".")[2] for path in _ROWS if path.rpartition(".")[0] == module and is_op(path)
    )


def _refused_op(name: str, members: dict) -> type:
    """The class of an op, of which there are objects with settings, as MindSpore has them where no kernel is:
    calling one is refused."""
    from mindspore.ops._primitive import Primitive

    def __init__(self, *args, **kwargs):  # noqa: N807 - it becomes the class's own
        Primitive.__init__(self, name)

    def __call__(self, *args, **kwargs):  # noqa: N807
        raise NotImplementedError(self.text)

    return type(name, (Primitive,), {**members, "__init__": __init__, "__call__": __call__})


def find(path: str) -> type | None:
    """What stands at a name of the table; None for other names."""
    row = _ROWS.get(path)
    if row is None:
        return None
    name = path.rpartition(".")[2]
    reason, way = row
    members = _members_of(path, reason, way)
    return _refused_op(name, members) if is_op(path) else Refused(name, (), members)


def op_of_accelerators(path: str) -> type:
    """The class of an op that MindSpore has in its tables, and no one calls by it on a CPU."""
    reason = "it is what functions call on accelerators"
    way = "call the function of mindspore.mint or mindspore.ops, or the method of Tensor"
    return _refused_op(path.rpartition(".")[2], _members_of(path, reason, way))


def _members_of(path: str, reason: str, way: str) -> dict:
    text = f"{path} is not provided by Muster: {reason}; {way} (docs/guide/mindspore.md)"
    return {"__module__": path.rpartition(".")[0], "__doc__": text, "path": path, "text": text, "way": way}


def way_out(value: object) -> str | None:
    """What to do instead of something that is refused; None for what is not."""
    is_op_of_it = isinstance(value, type) and {"path", "way"} <= vars(value).keys()
    return value.way if isinstance(value, Refused) or is_op_of_it else None
