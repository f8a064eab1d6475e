"""The classes of ops that MindSpore makes from its tables: mindspore.ops.auto_generate.gen_ops_prim.

Many are of accelerators alone, or are what functions of mindspore.mint call there. Libraries make an object
of each when they are imported.
"""

_TABLE = """
    ACos ACosGrad AShardIdentity Abs AbsGrad AcosExt Acosh AcoshExt AcoshGrad AdamW AdamWeightDecay
    AdaptiveAvgPool1D AdaptiveAvgPool2DExt AdaptiveAvgPool2DGradExt AdaptiveAvgPool3DExt
    AdaptiveAvgPool3DGradExt AdaptiveMaxPool1D AdaptiveMaxPool2D Add AddExt AddLayerNormGrad AddLayerNormV2
    AddN AddRmsNorm AddScalar Addbmm Addcdiv AddcdivExt Addcmul AddcmulExt Addmm Addmv AllGatherMatmul Angle
    Any AnyExt ApplyAdamW ApplyCamePart1 ApplyCamePart2 ApplyCamePart3 ApplyCamePart4 ApplyRotaryPosEmb
    Arange ArgMaxExt ArgMaxWithValue ArgMinExt ArgMinWithValue ArgSort Argmax Argmin AsStrided Asin AsinExt
    AsinGrad Asinh AsinhExt AsinhGrad Assign AssignAdd AssignSub Atan Atan2 Atan2Ext AtanExt AtanGrad Atanh
    AvgPool AvgPool1D AvgPool2D AvgPool2DGrad AvgPool3DExt AvgPool3DGradExt AvgPoolGrad BCEWithLogitsLoss
    Baddbmm BatchMatMul BatchMatMulExt BatchNormElemt BatchNormElemtGrad BatchNormExt
    BatchNormGatherStatsWithCounts BatchNormGrad BatchNormGradExt BatchNormGradGrad BatchNormReduceGrad
    BatchNormStats BernoulliExt Betainc BiasAdd BiasAddGrad BinaryCrossEntropy BinaryCrossEntropyGrad
    BinaryCrossEntropyWithLogitsBackward BincountExt BitwiseAndScalar BitwiseAndTensor BitwiseNot
    BitwiseOrScalar BitwiseOrTensor BitwiseXorScalar BitwiseXorTensor BoolNot BroadcastTo BroadcastToView
    Cdist CdistGrad CeLU Ceil Cholesky CholeskyGrad CholeskyInverse Chunk ChunkView ClampScalar ClampTensor
    Clone Col2ImExt Col2ImGrad Complex Concat Conj ConstantPadND Contiguous Conv1DExt Conv1DPadding
    Conv2DExt Conv2DPadding Conv3DExt Conv3DPadding ConvTranspose2D Convolution ConvolutionGrad
    ConvolutionStr ConvolutionStrGrad Copy Correlate Cos Cosh CountNonZero Cross CrossEntropyLoss
    CrossEntropyLossGrad CumProd CumSum Cummax Cummin CumminExt CumsumExt DCT DCTN Dense Diag DiagExt
    Diagonal DiagonalView DistCommAllGather DistCommAllGatherIntoTensor DistCommAllGatherIntoTensorUneven
    DistCommAllReduce DistCommAllToAllV DistCommAllToAllVSingle DistCommBarrier DistCommBatchIsendIrecv
    DistCommBroadcast DistCommGather DistCommGatherIntoTensor DistCommIrecv DistCommIsend DistCommReduce
    DistCommReduceScatter DistCommReduceScatterTensor DistCommReduceScatterTensorUneven DistCommScatter
    DistCommScatterTensor Div DivMod DivMods Divs Dot Dropout DropoutDoMaskExt DropoutExt DropoutGenMaskExt
    DropoutGradExt DtypeToEnum DumpGradient DynamicNTK DynamicQuantExt Eig EinsumExt Elu EluExt EluGrad
    EluGradExt Embedding EmbeddingApplyAdaGrad EmbeddingApplyAdam EmbeddingApplyAdamW EmbeddingApplyFtrl
    EmbeddingApplyRmsprop EmbeddingApplySgd EmbeddingDenseBackward EmbeddingFeatureMappingExport
    EmbeddingFeatureMappingFileSize EmbeddingFeatureMappingFind EmbeddingFeatureMappingImport
    EmbeddingFeatureMappingInsert EmbeddingFeatureMappingTableSize EmbeddingFeatureMappingV2
    EmbeddingTableEvict Empty EmptyLike Equal EqualExt Erf Erfc Erfinv Exp Exp2 ExpandAs ExpandDims
    ExpandDimsView Expm1 ExtractImagePatches Eye FFNExt FFT FFT2 FFTFreq FFTN FFTOrtho FFTShapeCopy FFTShift
    FFTWithSize FastGeLU FastGeLUGrad FillScalar FillTensor FlashAttentionScore FlashAttentionScoreGrad
    Flatten FlattenExt Floor FloorDiv FloorDivScalar FloorMod FmodScalar FmodTensor Frac FullLike
    FuncDropoutExt FuncMaxPool2D FusedAddTopKDiv FusedInferAttentionScore GLU Gather GatherD GatherDGradV2
    GatherNd Gcd GeLU GeLUGrad GeluExt GeluGradExt GenerateEodMaskV2 Generator Geqrf GluGrad Gmm GmmBackward
    GmmBackwardFusion GmmV2 GmmV2Backward GmmV2BackwardFusion Greater GreaterEqual GreaterEqualScalar
    GridSampler2D GridSampler2DGrad GridSampler3D GridSampler3DGrad GroupNorm GroupNormGrad GroupTopk
    GroupedMatmul GroupedMatmulV2 GroupedMatmulV4 HFFT HFFT2 HFFTN HShrink HShrinkGrad HSigmoid HSigmoidGrad
    HSwish HSwishGrad Hardtanh HardtanhGrad HistcExt IDCT IDCTN IFFT IFFT2 IFFTN IFFTShift IHFFT IHFFT2
    IHFFTN IRFFT IRFFT2 IRFFTDouble IRFFTN Identity Im2ColExt IncreFlashAttention Index IndexAddExt
    IndexFillScalar IndexFillTensor IndexSelect InnerCommAllGather InnerCommAllReduce InnerCommAllToAllV
    InnerCommIrecv InnerCommIsend InnerCommReduceScatter InnerIndex InnerInplaceIndexPut
    InnerMoeTokenUnpermute InnerNonZero InplaceAddExt InplaceAddmm InplaceAddsExt InplaceBernoulliScalar
    InplaceBernoulliTensor InplaceClampScalar InplaceClampTensor InplaceCopy InplaceDiv InplaceDivMod
    InplaceDivMods InplaceDivs InplaceElu InplaceErfinv InplaceExp InplaceExponential InplaceFillDiagonal
    InplaceFillScalar InplaceFillTensor InplaceFloor InplaceFloorDivide InplaceFloorDivides
    InplaceGroupedMatmulAdd InplaceHardtanh InplaceIndexAddExt InplaceIndexPut InplaceLog
    InplaceMaskedFillScalar InplaceMaskedFillTensor InplaceMatmulAdd InplaceMul InplaceMuls InplaceNormal
    InplacePut InplaceRandom InplaceReLU InplaceRemainderTensorScalar InplaceRemainderTensorTensor
    InplaceScatterAdd InplaceScatterSrc InplaceScatterSrcReduce InplaceScatterValue
    InplaceScatterValueReduce InplaceSiLU InplaceStopGradient InplaceSubExt InplaceSubScalar InplaceTanh
    InplaceThreshold InplaceUniform InplaceZero InsertGemV2InBackward IsClose IsFinite IsInf IsNegInf KLDiv
    KLDivGrad KVCacheScatterUpdate Kthvalue KvScaleCache L1LossBackwardExt L1LossExt LayerNorm LayerNormExt
    LayerNormGrad LayerNormGradExt LayerNormGradGrad LayerNormGradV3 LayerNormV3 LeakyReLUExt
    LeakyReLUGradExt Lerp LerpScalar Less LessEqual LinSpace LinSpaceExt LinalgQr LinalgVectorNorm Log Log10
    Log1p Log2 LogAddExp LogAddExp2 LogMatrixDeterminant LogSigmoid LogSigmoidGrad LogSoftmax LogSoftmaxExt
    LogSoftmaxGrad LogSumExp LogicalAnd LogicalNot LogicalOr LogicalXor Logit LogitGrad LpNormV2 LstsqV2
    LstsqV2Grad MSELossExt MSELossGradExt MaskedFill MaskedScatter MaskedSelect MaskedSelectGrad MatMul
    MatMulExt MatmulAllReduceAddRmsNorm MatmulReduceScatter MatrixDeterminant MatrixExp MatrixInverseExt Max
    MaxDim MaxPoolGradWithIndices MaxPoolGradWithMask MaxPoolWithIndices MaxPoolWithMask MaxUnpool2DExt
    Maximum MaximumGrad MaximumGradGrad MeanExt MedianDim MedianExt Meshgrid Min MinDim Minimum MinimumGrad
    MishExt MishGradExt Mla MlaPreprocess Mm MoeComputeExpertTokens MoeDistributeCombine
    MoeDistributeDispatch MoeFinalizeRouting MoeGatingTopKSoftmax MoeInitRouting MoeInitRoutingV2
    MoeTokenPermute MoeTokenPermuteGrad MoeTokenUnpermute MoeTokenUnpermuteGrad Mul Muls
    MultiScaleDeformableAttn MultiScaleDeformableAttnGrad MultinomialExt Mv NLLLoss NLLLoss2d NLLLoss2dGrad
    NLLLossGrad NPUClearFloatStatusV2 NPUGetFloatStatusV2 NanToNum Nansum Narrow NarrowView Neg NewEmpty
    NewFull NewOnes NewZeros NextAfter NonZero NonZeroExt Norm NormalFloatFloat NormalFloatTensor
    NormalTensorFloat NormalTensorTensor NotEqual OneHot OneHotExt OnesLike OnesLikeExt Outer PReLU
    PReLUGrad PagedAttention PagedAttentionMask PixelShuffle Polar Pow PowScalarTensor PowTensorScalar
    Primitive ProdExt PromptFlashAttention Qr QuantBatchMatmul QuantLinearSparse QuantMatmul QuantV2 RFFT
    RFFT2 RFFTFreq RFFTN RandExt RandInt RandIntLike RandLikeExt Randn RandnLike RandpermExt RandpermV2
    Range ReLU ReLU6 ReLU6Grad Real RealDiv Reciprocal ReciprocalGrad ReduceAll ReduceAny ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceStd ReduceSum ReflectionPad1D ReflectionPad1DGrad ReflectionPad2D
    ReflectionPad2DGrad ReflectionPad3D ReflectionPad3DGrad ReluGrad RemainderScalarTensor
    RemainderTensorScalar RemainderTensorTensor Repeat RepeatInterleaveGrad RepeatInterleaveInt
    RepeatInterleaveTensor ReplicationPad1D ReplicationPad1DGrad ReplicationPad2D ReplicationPad2DGrad
    ReplicationPad3D ReplicationPad3DGrad Reshape ReshapeAndCache ResizeBicubic ResizeBicubicGrad
    ResizeBilinearGrad ResizeBilinearV2 ResizeLinear1D ResizeLinear1DGrad ResizeNearestNeighbor
    ResizeNearestNeighborGrad ResizeNearestNeighborV2 ResizeNearestNeighborV2Grad ReverseV2 RightShift
    RingAttentionUpdate RmsNorm RmsNormGrad Roll RotaryPositionEmbedding RotaryPositionEmbeddingGrad
    RotatedIou Round Rsqrt RsqrtGrad ScalarCast Scatter ScatterAddExt ScatterNd ScatterValue SeLUExt
    SearchSorted Select SelectExtView SelectV2 SeluGrad SequenceConcat SiLU SiLUGrad Sigmoid SigmoidGrad
    Sign SilentCheckV2 SilentCheckV3 Sin Sinc Sinh Slice SliceExt SliceExtView SmoothL1Loss SmoothL1LossGrad
    SoftMarginLoss SoftMarginLossGrad SoftShrink SoftShrinkGrad Softmax SoftmaxBackward SoftplusExt
    SoftplusGradExt SolveTriangular SortExt SpeedFusionAttention SpeedFusionAttentionGrad Split SplitTensor
    SplitTensorView SplitWithSize SplitWithSizeView Sqrt SqrtGrad Square Squeeze StackExt Std StdMean
    StridedSlice StringToEnum Sub SubExt SubScalar SumExt Svd Swiglu SwigluGrad TExt Take Tan Tanh TanhGrad
    TensorCopySlices TensorScatterElements TensorShape Threshold ThresholdGrad TopKRouter TopPRouter TopkExt
    Trace TraceExt TraceV2 TraceV2Grad Transpose TransposeBatchMatmulTranspose TransposeExtView
    TransposeView TriangularSolve TrilExt Triu Trunc TupleToTensor UniformExt Unique2 UniqueConsecutive
    UniqueDim UnsortedSegmentSum UnstackExtView UpsampleBicubic2D UpsampleBicubic2DGrad UpsampleBilinear2D
    UpsampleBilinear2DGrad UpsampleLinear1D UpsampleLinear1DGrad UpsampleNearest1D UpsampleNearest1DGrad
    UpsampleNearest2D UpsampleNearest2DGrad UpsampleNearest3D UpsampleNearest3DGrad UpsampleTrilinear3D
    UpsampleTrilinear3DGrad Var VarMean View ViewAs WeightQuantBatchMatmul XLogYScalarOther XLogYScalarSelf
    Xlogy ZerosLike ZerosLikeExt
"""
NAMES = frozenset(_TABLE.split())
