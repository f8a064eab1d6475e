"""Names that MindSpore gives the inputs of its primitives, for calls that give them by name."""

_PRIMITIVES = {
    "a b x": "Betainc",
    "abs angle": "Polar",
    "cond_func loop_func init_val": "WhileLoop",
    "condition input other": "Select",
    "data pred": "GeSwitch",
    "dtype dims x": "Fill",
    "file input_x": "TensorDump",
    "image size": "ResizeBicubic ResizeBilinearV2 ResizeNearestNeighborV2",
    "indices depth on_value off_value": "OneHot",
    "indices updates shape": "ScatterNd",
    "input": """
        ACos Abs Acosh AdaptiveMaxPool2D Angle ArgMaxWithValue ArgMinWithValue Asin Asinh Atan Atanh
        BroadcastTo Ceil Conj Cos Cosh Cummax Cummin Diag Erf Erfc Erfinv Exp Expm1 Floor GeLU Geqrf
        HShrink HSigmoid HSwish IsFinite IsInf Log Log1p LogMatrixDeterminant LogicalNot Logit
        MatrixDeterminant MatrixExp NanToNum Neg NonZero ReLU Real Reciprocal ReverseV2 Roll Rsqrt
        Sigmoid Sign Sin Sinc Sinh SoftShrink Softmax Square Squeeze Svd Tanh Trace Triu Trunc
        UniqueConsecutive
    """,
    "input axis": "CumSum ReduceAll",
    "input begin size": "Slice",
    "input decimals": "Round",
    "input dim dtype": "LogSoftmaxExt",
    "input dim0 dim1": "TransposeExtView",
    "input dims": "Tile",
    "input end weight": "Lerp LerpScalar",
    "input exponent": "Pow",
    "input input_perm": "Transpose TransposeView",
    "input mask": "MaskedSelect",
    "input mask source": "MaskedScatter",
    "input mat2": "MatMul",
    "input other": """
        Add Atan2 Cross Div Equal FloorDiv Gcd Greater GreaterEqual IsClose Less LessEqual
        LogicalXor Maximum Minimum Mul NextAfter NotEqual Xlogy
    """,
    "input shape": "Reshape",
    "input target": "SoftMarginLoss",
    "input target weight": "BinaryCrossEntropy",
    "input target weight posWeight": "BCEWithLogitsLoss",
    "input tensor1 tensor2 value": "Addcdiv Addcmul",
    "input weight": "PReLU",
    "input weight bias": "Dense",
    "input_params input_indices axis": "Gather",
    "input_x": """
        Argmax Cholesky CholeskyInverse Elu ExtractImagePatches Flatten Identity
        ResizeNearestNeighbor Split TensorShape
    """,
    "input_x axis": "ExpandDims",
    "input_x begin end strides": "StridedSlice",
    "input_x bias": "BiasAdd",
    "input_x dtype": "Cast",
    "input_x gamma beta": "LayerNorm",
    "input_x grid": "GridSampler2D GridSampler3D",
    "input_x indices": "GatherNd",
    "input_x input_y": "RightShift ScalarCast",
    "input_x mask value": "MaskedFill",
    "input_x segment_ids num_segments": "UnsortedSegmentSum",
    "inputs": "Meshgrid",
    "key value key_cache value_cache slot_mapping": "ReshapeAndCache",
    "logits": "LogSoftmax",
    "logits labels weight": "NLLLoss",
    "loop_func init xs length unroll": "Scan",
    "lower upper loop_func init_val unroll": "ForiLoop",
    "n": "RandpermV2",
    "n m dtype": "Eye",
    "op_name arg_name dtype": "DtypeToEnum",
    "path x input_output": "DumpGradient",
    "prediction target": "SmoothL1Loss",
    "query key cos sin position_ids": "ApplyRotaryPosEmb",
    "query key_cache value_cache block_tables context_lens antiquant_scale antiquant_offset alibi_mask": """
        PagedAttentionMask
    """,
    "query key_cache value_cache block_tables context_lens "
    "antiquant_scale antiquant_offset attn_mask q_seq_lens alibi_mask": """
        PagedAttention
    """,
    "real imag": "Complex",
    "size type": "Ones Zeros",
    "sorted_sequence values sorter": "SearchSorted",
    "start end step": "Range",
    "start stop num": "LinSpace",
    "tensor": "NeighborExchange NeighborExchangeV2 Reshard",
    "tensors": "Concat",
    "token idx_arr group_num k k_inner": "GroupTopk",
    "value expr": "Depend",
    "var m v lr beta1 beta2 epsilon decay gradient": "AdamWeightDecay",
    "variable value": "Assign AssignAdd AssignSub",
    "x": """
        Argmin AvgPool CeLU DType Dropout Eig FFTWithSize FastGeLU GLU OnesLike Qr Rank ReLU6
        ReduceStd Reusing Shape Sqrt TensorToTuple ZerosLike
    """,
    "x axis": "CumProd ReduceAny ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum",
    "x dim index": "GatherD",
    "x dtype": "ScalarToTensor",
    "x gamma": "RmsNorm",
    "x indices v": "InplaceUpdateV2",
    "x output_size scales": "UpsampleNearest3D UpsampleTrilinear3D",
    "x size": "ResizeLinear1D",
    "x target weight": "MultiMarginLoss",
    "x y": "BatchMatMul FloorMod LogicalAnd LogicalOr RealDiv",
    "x1 x2": "Cdist",
}
_NAMES = {name: names.split() for names, group in _PRIMITIVES.items() for name in group.split()}


def inputs_of(primitive, inputs, named):
    """All inputs by their places.

    Raises:
        TypeError: The primitive has no such input, has it twice, or one before it is not given.
    """
    kind = type(primitive).__name__
    names = _NAMES.get(kind)
    if names is None:
        raise TypeError(f"{kind}: its inputs are given by their places, not by name ({next(iter(named))!r})")
    for name in named:
        if name not in names:
            raise TypeError(f"{kind} has no input {name!r}; it has {', '.join(names)}")
        if names.index(name) < len(inputs):
            raise TypeError(f"{kind}: {name!r} is given twice, by its place and by name")
    wanted = names[len(inputs) : max(map(names.index, named)) + 1]
    for name in wanted:
        if name not in named:
            raise TypeError(f"{kind}: {name!r} is missing, and inputs behind it are given")
    return [*inputs, *(named[name] for name in wanted)]
