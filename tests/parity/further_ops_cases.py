"""What further_ops.py calls: (an expression of x, y, z, w; those inputs)."""

import numpy

RANDOM = numpy.random.RandomState(7)


def real(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


def waves(*shape):
    """Without a draw, so that the numbers of others stay."""
    return numpy.sin(numpy.arange(numpy.prod(shape), dtype=numpy.float32) + 1).reshape(shape)


def unit(*shape):
    """Between 0 and 1."""
    return RANDOM.random_sample(shape).astype(numpy.float32) * 0.9 + numpy.float32(0.05)


def whole(*values):
    return numpy.array(values, numpy.int32)


X, Y, Z, UNIT, ROW = real(3, 4), real(3, 4), real(3, 4), unit(3, 4), real(4)
A, B, C = real(2, 3, 4), real(2, 4, 5), real(4, 3)
SQUARE = (numpy.eye(3) * 3 + real(3, 3)).astype(numpy.float32)
DEFINITE = (SQUARE @ SQUARE.T + numpy.eye(3)).astype(numpy.float32)
IMAGE, SMALL, VOLUME, LINE = real(2, 3, 6, 8), real(1, 2, 4, 5), real(1, 2, 4, 4, 6), real(2, 3, 10)
WIDE = (numpy.arange(4800) % 2).astype(numpy.float32).reshape(1, 1, 2, 2400)
INDEX = whole([0, 2, 1, 1], [1, 0, 2, 0])
PAIRS = whole([0, 1], [2, 3], [0, 1])
BOXES = numpy.array([[1, 1, 5, 6], [0, 2, 3, 7], [4, 0, 9, 3]], numpy.float32)
OTHERS = numpy.array([[0, 0, 4, 5], [2, 2, 8, 8], [3, 1, 9, 4]], numpy.float32)
ROIS = numpy.array([[0, 1, 1, 5, 4], [1, 0, 0, 6, 5]], numpy.float32)
GRID = (unit(2, 4, 5, 2) * 2.4 - 1.2).astype(numpy.float32)
SIGNS = numpy.array([1, -1, 1], numpy.float32)
TIED = numpy.array([[1, 2, 2, 0], [3, 3, -1, 3], [0, 1, 2, 2]], numpy.float32)
COUNTS = whole([3, 7, -4, 8], [1, 0, 12, -9])
HOLES = numpy.array([[1, numpy.nan, 3], [numpy.inf, -numpy.inf, 0]], numpy.float32)

_OF_UNIT = (
    "asin acos atan asinh atanh sinh cosh erfc erfinv lgamma digamma bessel_i0 bessel_i0e bessel_i1 "
    "bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 logit "
    "exp2 frac hardshrink softshrink tanhshrink softmin inv arcsin arctan"
)
_TWO = "atan2 hypot xlogy xdivy logaddexp logaddexp2 fmax fmin"

SMOOTH = [
    ("ops.conv1d(x, y)", [waves(2, 4, 8), waves(4, 4, 3)]),
    ("ops.conv1d(x, y, z, 2, 'pad', 1)", [waves(2, 4, 8), waves(4, 4, 3), waves(4)]),
    ("ops.conv1d(x, y, pad_mode='same', groups=2)", [waves(2, 4, 8), waves(4, 2, 3)]),
    ("ops.conv1d(x, y, stride=(2,), dilation=2)", [waves(2, 4, 9), waves(4, 4, 3)]),
    ("ms.nn.MaxUnpool1d(2)(x, Tensor([[[0, 3, 5]]]))", [waves(1, 1, 3)]),
    ("ms.nn.MaxUnpool2d(2, 2)(x, Tensor([[[[0, 3], [9, 12]]]]))", [waves(1, 1, 2, 2)]),
    ("ms.nn.MaxUnpool2d(2, 2)(x, Tensor([[[[0, 3], [9, 12]]]]), (1, 1, 5, 5))", [waves(1, 1, 2, 2)]),
    ("ms.nn.MaxUnpool3d(2)(x, Tensor([[[[[7]]]]]))", [waves(1, 1, 1, 1, 1)]),
    *((f"ops.{name}(x)", [UNIT]) for name in _OF_UNIT.split()),
    *((f"ops.{name}(x, y)", [X, UNIT]) for name in _TWO.split()),
    ("ops.acosh(x)", [UNIT + 1]),
    ("ops.lerp(x, y, z)", [X, Y, Z]),
    ("ops.addcmul(x, y, z, 2.0)", [X, Y, Z]),
    ("ops.addcdiv(x, y, z, 2.0)", [X, Y, UNIT]),
    ("ops.glu(x)", [X]),
    ("ops.std_mean(x, 1)", [X]),
    ("ops.var_mean(x, 0)", [X]),
    ("ops.norm(x)", [X]),
    ("ops.norm(x, ord=1.0, dim=1)", [X]),
    ("ops.norm(x, dim=(0, 1), keepdim=True)", [X]),
    ("ops.norm(x, ord=float('inf'), dim=0)", [X]),
    ("ops.cdist(x, y)", [X, Y[:2]]),
    ("ops.cosine_similarity(x, y, 1)", [X, Y]),
    ("ops.renorm(x, 2, 0, 1.5)", [X]),
    ("ops.cov(x)", [X]),
    ("ops.trapz(x)", [X]),
    ("ops.diff(x, 1, 1)", [X]),
    ("P.L2Normalize(axis=1)(x)", [X]),
    ("P.LpNorm(1, 2)(x)", [X]),
    # Places
    ("ops.gather_nd(x, y)", [X, PAIRS]),
    ("ops.gather_d(x, 0, y)", [X, INDEX]),
    ("ops.scatter_nd(y, x, (3, 4))", [real(3), PAIRS]),
    ("ops.tensor_scatter_update(x, Tensor([[0, 1], [2, 3]], ms.int32), y)", [X, real(2)]),
    ("ops.tensor_scatter_add(x, y, z)", [X, PAIRS, real(3)]),
    ("ops.tensor_scatter_sub(x, y, z)", [X, PAIRS, real(3)]),
    ("ops.tensor_scatter_elements(x, y, z, axis=0)", [X, whole([0, 2], [1, 0]), real(2, 2)]),
    ("ops.tensor_scatter_elements(x, y, z, axis=1, reduction='add')", [X, INDEX, real(2, 4)]),
    ("ops.index_select(x, 1, y)", [X, whole(2, 0, 2)]),
    ("ops.unsorted_segment_sum(x, y, 2)", [X, whole(0, 1, 0)]),
    ("ops.sort(x, 0)[0]", [X]),
    ("ops.sort(x, descending=True)[0]", [X]),
    ("ops.topk(x, 2)[0]", [X]),
    ("ops.topk(x, 2, dim=0)[0]", [X]),
    ("ops.cummax(x, 1)[0]", [X]),
    ("ops.cummin(x, 0)[0]", [X]),
    ("ops.logcumsumexp(x, 1)", [X]),
    ("ops.median(x, 1)[0]", [X]),
    ("ops.repeat_interleave(x, 2, 0)", [X]),
    ("ops.repeat_elements(x, 2, 1)", [X]),
    ("ops.meshgrid(x, y)[0]", [ROW, real(3)]),
    ("ops.rot90(x, 1, (0, 1))", [X]),
    ("ops.moveaxis(x, 0, 2)", [A]),
    ("ops.hstack((x, y))", [X, Y]),
    ("ops.tensor_split(x, 3, 1)[0]", [X]),
    ("ops.block_diag(x, y)", [X, Y]),
    ("ops.pixel_shuffle(x, 2)", [real(1, 8, 2, 3)]),
    ("ops.pixel_unshuffle(x, 2)", [real(1, 2, 4, 6)]),
    ("P.DepthToSpace(2)(x)", [real(1, 8, 2, 3)]),
    ("P.SpaceToDepth(2)(x)", [real(1, 2, 4, 6)]),
    ("P.ReverseSequence(1, 0)(x, y)", [X, numpy.array([1, 3, 4], numpy.int64)]),
    # Products and matrices
    ("ops.addmm(x, y, z, beta=0.5, alpha=2)", [real(3, 3), X, C]),
    ("ops.baddbmm(x, y, z)", [real(2, 3, 5), A, B]),
    ("ops.outer(x, y)", [ROW, real(3)]),
    ("ops.kron(x, y)", [X, real(2, 2)]),
    ("ops.cross(x, y)", [real(3, 3), real(3, 3)]),
    ("ops.tensor_dot(x, y, 1)", [A, C]),
    ("ops.batch_dot(x, y)", [A, B]),
    ("ops.dot(x, y)", [A, C]),
    ("ops.einsum('ij,jk->ik', x, y)", [X, C]),
    ("ops.einsum('bij,bjk->bik', x, y)", [A, B]),
    ("ops.einsum('ii->i', x)", [SQUARE]),
    ("ops.diag(x)", [ROW]),
    ("ops.diagonal(x)", [X]),
    ("ops.diag_embed(x)", [X]),
    ("ops.trace(x)", [SQUARE]),
    ("ops.matrix_band_part(x, 1, 0)", [X]),
    ("ops.matrix_set_diag(x, y)", [X, real(3)]),
    ("ops.inverse(x)", [SQUARE]),
    ("ops.det(x)", [SQUARE]),
    ("ops.cholesky(x)", [DEFINITE]),
    # Images
    ("ops.interpolate(x, size=(9, 5), mode='nearest')", [IMAGE]),
    ("ops.interpolate(x, size=(9, 5), mode='bilinear')", [IMAGE]),
    ("ops.interpolate(x, size=(9, 5), mode='bilinear', align_corners=True)", [IMAGE]),
    ("ops.interpolate(x, size=(9, 5), mode='bicubic')", [IMAGE]),
    ("ops.conv3d(x, y, z, 2, 'pad', (1, 0, 1))", [VOLUME, waves(3, 2, 2, 1, 2), waves(3)]),
    (
        "P.Conv3D(4, (2, 1, 3), pad_mode='same', stride=(1, 2, 2), group=2)(x, y)",
        [VOLUME, waves(4, 1, 2, 1, 3)],
    ),
    ("P.Conv3D(2, 2, dilation=(2, 1, 2))(x, y)", [VOLUME, waves(2, 2, 2, 2, 2)]),
    (
        "P.Conv3DTranspose(2, 3, (2, 1, 2), 1, 'pad', (0, 1, 0, 0, 1, 0), 2, 1, 1, 1)(x, y)",
        [VOLUME, waves(2, 3, 2, 1, 2)],
    ),
    ("P.Conv3DTranspose(2, 4, 2, stride=(2, 1, 3), group=2)(x, y)", [VOLUME, waves(2, 2, 2, 2, 2)]),
    ("P.Conv3DTranspose(2, 3, 3, stride=2, pad_mode='same')(x, y)", [VOLUME, waves(2, 3, 3, 3, 3)]),
    ("ops.interpolate(x, size=(3, 4), mode='area')", [IMAGE]),
    ("ops.interpolate(x, size=7, mode='linear')", [LINE]),
    ("P.ResizeNearestNeighbor((4, 11))(x)", [IMAGE]),
    ("P.ResizeNearestNeighbor((4, 11), True)(x)", [IMAGE]),
    ("P.ResizeBilinearV2()(x, (4, 11))", [IMAGE]),
    ("P.ResizeBilinearV2(half_pixel_centers=True)(x, (4, 11))", [IMAGE]),
    ("ops.grid_sample(x, y)", [IMAGE, GRID]),
    ("ops.grid_sample(x, y, align_corners=True, padding_mode='border')", [IMAGE, GRID]),
    ("ops.grid_sample(x, y, padding_mode='reflection')", [IMAGE, GRID]),
    ("ops.affine_grid(x, (2, 3, 4, 5))", [real(2, 2, 3)]),
    ("ops.unfold(x, 2)", [SMALL]),
    ("ops.unfold(x, (2, 3), padding=1, stride=2)", [SMALL]),
    ("ops.max_pool3d(x, 2)", [VOLUME]),
    ("ops.avg_pool3d(x, 2, 2)", [VOLUME]),
    ("ops.avg_pool1d(x, 3, 2)", [LINE]),
    ("ops.lp_pool2d(x, 2.0, 2)", [numpy.abs(SMALL) + 1]),
    ("ops.adaptive_avg_pool1d(x, 4)", [LINE[:, :, :8]]),
    ("ops.adaptive_max_pool2d(x, (2, 3))", [IMAGE]),
    ("P.MaxPool3D(2, 2)(x)", [VOLUME]),
    ("P.MaxPool3D(2, 2, 'same')(x)", [VOLUME]),
    ("P.AvgPool3D(2, 2)(x)", [VOLUME]),
    ("P.MaxPoolWithArgmaxV2(2, 2)(x)[0]", [IMAGE]),
    ("P.LRN(2, 1.0, 0.5, 0.75)(x)", [SMALL]),
    ("P.ROIAlign(2, 3, 0.5, 2)(x, Tensor([[0, 1, 1, 5, 4], [1, 0, 0, 6, 5]], ms.float32))", [IMAGE]),
    # Boxes and losses
    ("ops.bounding_box_encode(x, y)", [BOXES, OTHERS]),
    ("ops.huber_loss(x, y, 'mean', 0.7)", [X, Y]),
    ("ops.margin_ranking_loss(x, y, Tensor([1, -1, 1], ms.float32))", [real(3), real(3)]),
    ("ops.hinge_embedding_loss(x, Tensor([1, -1, 1], ms.float32))", [real(3)]),
    ("ops.cosine_embedding_loss(x, y, Tensor([1, -1, 1], ms.int32), 0.1)", [X, Y]),
    ("ops.triplet_margin_loss(x, y, z)", [X, Y, Z]),
    ("ops.gaussian_nll_loss(x, y, z)", [X, Y, UNIT]),
    ("ops.multi_margin_loss(x, Tensor([0, 3, 1], ms.int64))", [X]),
    ("ops.multilabel_soft_margin_loss(x, Tensor([[0, 1, 1, 0]] * 3, ms.float32))", [X]),
    (
        "ops.ctc_loss(ops.log_softmax(x, 2), Tensor([[1, 2], [2, 2]], ms.int32), Tensor([5, 5], ms.int32), "
        "Tensor([2, 1], ms.int32))[0]",
        [real(5, 2, 4)],
    ),
]

VALUES = [
    # Far from the first pixel float32 rounds the places between pixels.
    ("ops.interpolate(x, (2, 2239), None, 'bilinear', True)[..., 2220:]", [WIDE]),
    ("ops.interpolate(x, (2, 3007), None, 'bilinear', False)[..., 2990:]", [WIDE]),
    ("ops.sort(x)", [TIED]),
    ("ops.sort(x, axis=0, descending=True)", [TIED]),
    ("ops.argsort(x)", [TIED]),
    ("ops.cummax(x, 1)", [TIED]),
    ("ops.cummin(x, 1)", [TIED]),
    ("ops.searchsorted(x, y)", [numpy.sort(ROW), X]),
    ("ops.bucketize(x, [3, 6, 9])", [numpy.array([[3, 6, 9], [2, 7, 12]], numpy.float32)]),
    ("ops.median(x, 0, True)", [X]),
    ("ops.intopk(x, y, 2)", [X, whole(1, 3, 0)]),
    ("ops.index_fill(x, 1, y, 9.0)", [X, whole(0, 2)]),
    ("ops.tensor_scatter_max(x, y, z)", [X, PAIRS, real(3)]),
    ("ops.tensor_scatter_min(x, y, z)", [X, PAIRS, real(3)]),
    ("ops.tensor_scatter_mul(x, y, z)", [X, PAIRS, real(3)]),
    ("ops.tensor_scatter_div(x, y, z)", [X, PAIRS, unit(3)]),
    ("ops.unsorted_segment_max(x, y, 2)", [X, whole(0, 1, 0)]),
    ("ops.unsorted_segment_min(x, y, 2)", [X, whole(0, 1, 0)]),
    ("ops.unsorted_segment_prod(x, y, 2)", [X, whole(0, 1, 0)]),
    ("ops.nan_to_num(x)", [HOLES]),
    ("ops.isneginf(x)", [HOLES]),
    ("ops.isposinf(x)", [HOLES]),
    ("ops.isclose(x, y)", [X, X + numpy.float32(1e-9)]),
    ("ops.heaviside(x, y)", [TIED, numpy.full((3, 4), 0.5, numpy.float32)]),
    ("ops.signbit(x)", [X]),
    ("ops.copysign(x, y)", [X, Y]),
    ("ops.gcd(x, y)", [COUNTS, COUNTS + 2]),
    ("ops.lcm(x, y)", [COUNTS, COUNTS + 2]),
    ("ops.truncate_div(x, y)", [COUNTS, whole(2, 3, 5, 7)]),
    ("ops.truncate_mod(x, y)", [COUNTS, whole(2, 3, 5, 7)]),
    ("ops.bitwise_left_shift(x, y)", [COUNTS, whole(1, 2, 3, 0)]),
    ("ops.bitwise_right_shift(x, y)", [COUNTS, whole(1, 2, 3, 0)]),
    ("ops.polygamma(Tensor(1, ms.int64), x)", [UNIT]),
    ("ops.zeta(x, y)", [UNIT + 1.5, UNIT]),
    ("ops.igamma(x, y)", [UNIT, UNIT * 3]),
    ("ops.igammac(x, y)", [UNIT, UNIT * 3]),
    ("ops.mvlgamma(x, 2)", [UNIT + 2]),
    ("ops.count_nonzero(x)", [TIED]),
    ("ops.nansum(x, 1)", [HOLES[:1]]),
    ("ops.nanmean(x, 1)", [HOLES[:1]]),
    ("ops.ldexp(x, y)", [X, whole(1, 2, 0, -1)]),
    ("ops.float_power(x, 2)", [X]),
    ("ops.aminmax(x)", [ROW]),
    ("ops.tril_indices(3, 4)", []),
    ("ops.triu_indices(3, 4, 1)", []),
    ("ops.vander(x)", [ROW]),
    ("ops.combinations(x)", [ROW]),
    ("ops.cartesian_prod(x, y)", [whole(1, 2), whole(3, 4, 5)]),
    ("ops.dstack((x, y))", [X, Y]),
    ("ops.column_stack((x, y))", [X, Y]),
    ("ops.atleast_3d(x)", [X]),
    ("ops.sequence_mask(x, 5)", [whole(1, 3, 5)]),
    ("ops.logspace(x, y, 4, base=2)", [numpy.float32(0), numpy.float32(3)]),
    ("ops.population_count(x)", [numpy.array([0, 3, 255], numpy.uint8)]),
    ("ops.matrix_diag(x)", [X]),
    ("ops.matrix_diag_part(x, Tensor(0, ms.int32), Tensor(0, ms.float32))", [X]),
    ("ops.matrix_power(x, 3)", [SQUARE]),
    ("ops.slogdet(x)", [SQUARE]),
    ("ops.logdet(x)", [DEFINITE]),
    ("ops.pinv(x)", [X]),
    ("ops.cholesky_inverse(x)", [DEFINITE]),
    ("ops.matrix_norm(x, 'nuc')", [X]),
    ("ops.svd(x, compute_uv=False)", [X]),
    ("ops.iou(x, y)", [BOXES, OTHERS]),
    ("ops.iou(x, y, 'iof')", [BOXES, OTHERS]),
    ("ops.check_valid(x, y)", [BOXES, numpy.array([6, 8, 1], numpy.float32)]),
    ("ops.bounding_box_decode(x, y, (7, 9))", [BOXES, real(3, 4)]),
    ("P.NMSWithMask(0.3)(x)", [numpy.concatenate([BOXES * 3, unit(3, 1)], 1)]),
    ("P.MaxPoolWithArgmaxV2(2, 2)(x)", [IMAGE]),
    ("ops.max_pool3d(x, 2, return_indices=True)", [VOLUME]),
    ("ops.adaptive_max_pool2d(x, 2, True)", [IMAGE]),
    ("ops.hann_window(5)", []),
    ("ops.hamming_window(5, False)", []),
    ("ops.kaiser_window(5)", []),
    ("ops.crop_and_resize(x, y, z, (3, 2))", [real(2, 5, 6, 2), unit(2, 4), whole(1, 0)]),
    ("ops.tuple_to_array((1, 2, 3))", []),
    ("ops.DType()(x) == ms.float32", [X]),
    ("ops.make_range(1, 5)", []),
]

# Of shapes that the elements say.
EAGER = [
    ("ops.fold(x, Tensor([4, 5], ms.int32), 2)", [real(1, 8, 12)]),
    ("ops.nonzero(x)", [TIED]),
    ("ops.argwhere(x)", [TIED]),
    ("ops.masked_select(x, x > 1)", [TIED]),
    ("ops.unique(x)", [whole(3, 1, 3, 2)]),
    ("ops.unique_consecutive(x, True, True)", [whole(1, 1, 2, 2, 3, 1)]),
    ("ops.bincount(x)", [whole(0, 1, 1, 3)]),
    ("ops.histc(x, 4, 0.0, 3.0)", [TIED]),
    ("P.SegmentSum()(x, y)", [X, whole(0, 0, 1)]),
    ("ops.unique_with_pad(x, 9)", [whole(3, 1, 3, 2)]),
    ("ops.scatter_update(Parameter(x), y, z)", [X, whole(0, 2), real(2, 4)]),
    ("ops.scatter_add(Parameter(x), y, z)", [X, whole(0, 0), real(2, 4)]),
    ("ops.scatter_nd_add(Parameter(x), y, z)", [X, PAIRS, real(3)]),
    *[
        (f"after(lambda p, m, v, g: P.{step}, x, y, z, w)", [X[0], UNIT[0], UNIT[1], Y[0]])
        for step in (
            "ApplyMomentum()(p, m, 0.1, g, 0.9)",
            "SGD()(p, g, Tensor(0.1), m, Tensor(0.9), v)",
            "SGD(0.2, 0.1)(p, g, Tensor(0.1), m, Tensor(0.9), v)",
            "SGD(nesterov=True)(p, g, Tensor(0.1), m, Tensor(0.9), v)",
            "Adam()(p, m, v, 0.9, 0.999, 0.01, 0.9, 0.999, 1e-3, g)",
            "Adam(use_nesterov=True)(p, m, v, 0.9, 0.999, 0.01, 0.9, 0.999, 1e-3, g)",
            "AdamWeightDecay()(p, m, v, 0.01, 0.9, 0.999, 1e-3, 0.1, g)",
            "ApplyAdaMax()(p, m, v, 0.9, 0.01, 0.9, 0.999, 1e-3, g)",
            "ApplyAdagrad()(p, m, 0.1, g)",
            "ApplyAdagradV2(1e-2)(p, m, 0.1, g)",
            "ApplyAdagradV2(1e-2, False)(p, m, 0.1, g)",
            "ApplyAdadelta()(p, m, v, 0.1, 0.9, 1e-3, g)",
            "ApplyRMSProp()(p, m, v, 0.1, g, 0.9, 0.5, 1e-3)",
            "ApplyCenteredRMSProp()(p, m, v + 1, v, g, 0.1, 0.9, 0.5, 1e-3)",
            "ApplyGradientDescent()(p, 0.1, g)",
            "ApplyProximalGradientDescent()(p, 0.1, 0.2, 0.3, g)",
            "ApplyProximalAdagrad()(p, m, 0.1, 0.2, 0.3, g)",
            "ApplyAddSign()(p, m, 0.1, 1.0, 0.9, 0.8, g)",
            "ApplyPowerSign()(p, m, 0.1, math.e, 0.9, 0.8, g)",
            "ApplyFtrl()(p, m, v, g, 0.1, 0.0, 0.1, -0.5)",
        )
    ],
]
