"""Cells that MindSpore and Muster must agree on, in one file of figures: more_cells.json.

Recorded by the Python of a venv with mindspore==2.7.0 and numpy==1.26.4:
    venv/bin/python tests/parity/more_cells.py [part of a name]
A case that MindSpore cannot run on a CPU is listed by that and not recorded.
"""

import json
import sys
from pathlib import Path

import numpy as np
from cases import CellCase, Given, classes, fixed, numbers, real

FILE = Path(__file__).with_suffix(".json")

line, image, volume = (real("x", shape, -2, 2) for shape in ((2, 4, 9), (2, 4, 6, 7), (2, 4, 5, 4, 6)))
rows = real("x", (3, 5), -2, 2)
sequence = real("x", (6, 3, 4), -1, 1)
likely = real("p", (3, 5), 0.05, 0.95)
signs = fixed(np.where(numbers("sign", (3, 5)) > 0, 1, -1).astype(np.float32))
row_signs = fixed(np.array([1, -1, 1], np.int32))
hidden = real("h", (3, 5))
more_rows = [fixed(numbers(name, (3, 5), -2, 2)) for name in ("a", "b")]


class Called(CellCase):
    """A cell, called with None or keywords between its tensors: `call(cell, tensors)` gives one tensor."""

    def __init__(self, make, call, *given, **settings):
        super().__init__(lambda ms: _caller(ms, make(ms), call), *given, **settings)


def _caller(ms, cell, call):
    class Caller(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = cell

        def construct(self, *inputs):
            return call(self.inner, inputs)

    return Caller()


def simple(name, *arguments, given=(image,), **settings):
    return CellCase(lambda ms: getattr(ms.nn, name)(*arguments, **settings), *given)


def convolutions():
    cases = {}
    for name, given in (("Conv1d", line), ("Conv3d", volume)):
        cases[f"{name} same"] = simple(name, 4, 6, 3, has_bias=True, given=(given,))
        cases[f"{name} same strided"] = simple(name, 4, 6, 3, 2, given=(given,))
        cases[f"{name} pad"] = simple(name, 4, 6, 3, 2, "pad", 2, given=(given,))
    cases["Conv1d valid dilated, groups"] = simple("Conv1d", 4, 6, 2, 1, "valid", 0, 2, 2, given=(line,))
    cases["Conv3d valid"] = simple("Conv3d", 4, 2, (2, 3, 1), (1, 2, 1), "valid", given=(volume,))
    for name, given in (("Conv1dTranspose", line), ("Conv2dTranspose", image), ("Conv3dTranspose", volume)):
        cases[f"{name} same"] = simple(name, 4, 6, 3, 2, has_bias=True, given=(given,))
        cases[f"{name} valid"] = simple(name, 4, 6, 3, 2, "valid", given=(given,))
        cases[f"{name} valid wide strides"] = simple(name, 4, 6, 2, 3, "valid", given=(given,))
        cases[f"{name} pad"] = simple(name, 4, 6, 3, 2, "pad", 1, given=(given,))
    cases["Conv1dTranspose pad dilated"] = simple("Conv1dTranspose", 4, 6, 3, 1, "pad", 1, 2, given=(line,))
    cases["Conv2dTranspose groups"] = simple("Conv2dTranspose", 4, 6, 3, 2, "pad", 1, group=2)
    cases["Conv2dTranspose output_padding"] = simple("Conv2dTranspose", 4, 6, 3, 2, "pad", 1, 1)
    cases["Conv2dTranspose sides"] = simple("Conv2dTranspose", 4, 6, (3, 4), (2, 1), "pad", (1, 0, 2, 1))
    cases["Conv2dTranspose same dilated"] = simple("Conv2dTranspose", 4, 6, 3, 2, "same", dilation=2)
    cases["Conv3dTranspose output_padding"] = simple(
        "Conv3dTranspose", 4, 2, 3, 2, "pad", 1, output_padding=1, given=(volume,)
    )
    return cases


def normalizations():
    return {
        "GroupNorm": simple("GroupNorm", 2, 4),
        "GroupNorm options": simple("GroupNorm", 4, 4, 0.01, False),
        "BatchNorm3d": simple("BatchNorm3d", 4, given=(volume,)),
        "BatchNorm3d training": CellCase(lambda ms: ms.nn.BatchNorm3d(4), volume, train=True),
        "SyncBatchNorm": simple("SyncBatchNorm", 4),
        "LRN": simple("LRN", 2, 1.5, 0.5, 0.75),
        "LRN defaults": simple("LRN"),
        "LayerNormExt": simple("LayerNormExt", (6, 7)),
    }


def pooling():
    return {
        "MaxPool1d": simple("MaxPool1d", 3, 2, given=(line,)),
        "MaxPool1d same": simple("MaxPool1d", 2, 2, "same", given=(line,)),
        "MaxPool1d pad": simple("MaxPool1d", 3, 2, "pad", 1, given=(line,)),
        "MaxPool3d": simple("MaxPool3d", 2, 2, given=(volume,)),
        "MaxPool3d same": simple("MaxPool3d", (2, 3, 2), 2, "same", given=(volume,)),
        "MaxPool3d pad": simple("MaxPool3d", 3, 2, "pad", 1, given=(volume,)),
        "AvgPool1d": simple("AvgPool1d", 3, 2, given=(line,)),
        "AvgPool1d same": simple("AvgPool1d", 2, 2, "same", given=(line,)),
        "AvgPool1d pad": simple("AvgPool1d", 3, 2, "pad", 1, given=(line,)),
        "AvgPool3d": simple("AvgPool3d", 2, 2, given=(volume,)),
        "AvgPool3d same": simple("AvgPool3d", 3, 2, "same", given=(volume,)),
        "AvgPool3d pad": simple("AvgPool3d", 3, 2, "pad", 1, count_include_pad=False, given=(volume,)),
        "AvgPool3d divisor": simple("AvgPool3d", 2, 2, divisor_override=3, given=(volume,)),
        "LPPool1d": simple("LPPool1d", 2, 3, given=(real("x", (2, 4, 9), 0.1, 2),)),
        "LPPool2d": simple("LPPool2d", 3, 2, 1, given=(real("x", (2, 4, 6, 7), 0.1, 2),)),
        "AdaptiveAvgPool1d": simple("AdaptiveAvgPool1d", 4, given=(line,)),
        "AdaptiveAvgPool3d": simple("AdaptiveAvgPool3d", (2, None, 5), given=(volume,)),
        "AdaptiveMaxPool1d": simple("AdaptiveMaxPool1d", 3, given=(line,)),
        "AdaptiveMaxPool2d": simple("AdaptiveMaxPool2d", (4, None)),
        "AdaptiveMaxPool3d": simple("AdaptiveMaxPool3d", (2, 3, 4), given=(volume,)),
    }


def padding():
    cases = {
        f"Pad {mode}": simple("Pad", ((0, 0), (1, 2), (2, 1), (0, 3)), mode)
        for mode in ("CONSTANT", "REFLECT", "SYMMETRIC")
    }
    for axes, given in ((1, line), (2, image), (3, volume)):
        sides = (1, 2, 0, 1, 2, 1)[: 2 * axes]
        cases[f"ConstantPad{axes}d"] = simple(f"ConstantPad{axes}d", sides, 1.5, given=(given,))
        cases[f"ReflectionPad{axes}d"] = simple(f"ReflectionPad{axes}d", sides, given=(given,))
        cases[f"ReplicationPad{axes}d"] = simple(f"ReplicationPad{axes}d", sides, given=(given,))
    cases["ConstantPad2d less"] = simple("ConstantPad2d", (-1, 2, 0, -2), 0.5)
    cases["ZeroPad2d"] = simple("ZeroPad2d", (1, 0, -1, 2))
    cases["Unfold"] = simple("Unfold", [1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 2, 1])
    cases["Unfold same"] = simple("Unfold", [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "same")
    return cases


def recurrent():
    cases, lengths = {}, fixed(np.array([6, 2, 4], np.int32))
    for kind in ("RNN", "LSTM", "GRU"):
        for options in (
            {},
            {"num_layers": 2, "bidirectional": True},
            {"has_bias": False, "batch_first": True},
        ):
            what = ", ".join(options)

            def make(ms, kind=kind, options=options):
                return getattr(ms.nn, kind)(4, 5, **options)

            cases[f"{kind} output {what}"] = Called(make, lambda cell, x: cell(x[0])[0], sequence)
            cases[f"{kind} lengths {what}"] = Called(
                make,
                lambda cell, x: cell(x[0], None, x[1])[0],
                *((real("x", (3, 6, 4)),) if options.get("batch_first") else (sequence,)),
                lengths,
            )

            def state(cell, x, kind=kind):
                last = cell(x[0])[1]
                return last[1] if kind == "LSTM" else last

            cases[f"{kind} state {what}"] = Called(make, state, sequence)
    step = real("x", (3, 4))
    cases["RNNCell"] = simple("RNNCell", 4, 5, given=(step, hidden))
    cases["RNNCell relu"] = simple("RNNCell", 4, 5, False, "relu", given=(step, hidden))
    cases["GRUCell"] = simple("GRUCell", 4, 5, given=(step, hidden))
    for index, part in enumerate("hc"):
        cases[f"LSTMCell {part}"] = Called(
            lambda ms: ms.nn.LSTMCell(4, 5),
            lambda cell, x, index=index: cell(x[0], (x[1], x[1]))[index],
            step,
            hidden,
        )
    return cases


def transformers():
    query, key = real("x", (5, 2, 8)), real("key", (6, 2, 8))
    seen = fixed(np.triu(np.ones((5, 5), bool), 1))
    missing = fixed(np.array([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]], bool))

    def layer(kind, **settings):
        return lambda ms: getattr(ms.nn, kind)(8, 2, 16, 0.0, **settings)

    def attention(**settings):
        return lambda ms: ms.nn.MultiheadAttention(8, 2, **settings)

    return {
        "MultiheadAttention": Called(attention(), lambda c, x: c(x[0], x[1], x[1])[0], query, key),
        "MultiheadAttention weights": Called(attention(), lambda c, x: c(x[0], x[1], x[1])[1], query, key),
        "MultiheadAttention masks": Called(
            attention(), lambda c, x: c(x[0], x[0], x[0], x[1], True, x[2])[0], query, missing, seen
        ),
        "MultiheadAttention batch first": Called(
            attention(batch_first=True, has_bias=False), lambda c, x: c(x[0], x[0], x[0])[0], query
        ),
        "MultiheadAttention added": Called(
            attention(add_bias_kv=True, add_zero_attn=True), lambda c, x: c(x[0], x[1], x[1])[0], query, key
        ),
        "TransformerEncoderLayer": CellCase(layer("TransformerEncoderLayer"), query),
        "TransformerEncoderLayer first": CellCase(
            layer("TransformerEncoderLayer", norm_first=True, activation="gelu"), query
        ),
        "TransformerDecoderLayer": CellCase(layer("TransformerDecoderLayer"), query, key),
        "TransformerEncoder": CellCase(
            lambda ms: ms.nn.TransformerEncoder(layer("TransformerEncoderLayer")(ms), 2), query
        ),
        "Transformer": CellCase(lambda ms: ms.nn.Transformer(8, 2, 1, 1, 16, 0.0), query, key),
    }


def losses():
    targets = fixed(classes("targets", (3,), 5).astype(np.int64))
    cases = {
        "CosineEmbeddingLoss": simple("CosineEmbeddingLoss", 0.2, given=(rows, hidden, row_signs)),
        "FocalLoss": simple("FocalLoss", given=(rows, fixed(classes("t", (3, 1), 5)))),
        "DiceLoss": simple("DiceLoss", given=(likely, fixed(numbers("q", (3, 5), 0, 1)))),
        "MultiClassDiceLoss": simple("MultiClassDiceLoss", given=(rows, fixed(numbers("q", (3, 5), 0, 1)))),
        "RMSELoss": simple("RMSELoss", given=(rows, hidden)),
        "KLDivLoss batchmean": simple("KLDivLoss", "batchmean", given=(rows, likely)),
        "MultilabelMarginLoss": simple(
            "MultilabelMarginLoss",
            given=(rows, fixed(np.array([[1, 2, -1, 0, 0], [4, -1, 0, 0, 0], [0, 1, 2, 3, 4]], np.int32))),
        ),
        "MultiMarginLoss p": simple("MultiMarginLoss", 2, 0.5, given=(rows, targets)),
        "TripletMarginLoss": simple("TripletMarginLoss", given=(rows, *more_rows)),
        "TripletMarginLoss swap": simple("TripletMarginLoss", 2, True, given=(rows, *more_rows)),
        "PoissonNLLLoss full": simple(
            "PoissonNLLLoss", False, True, given=(likely, Given(likely.values * 4, False))
        ),
        "GaussianNLLLoss": simple("GaussianNLLLoss", full=True, given=(rows, hidden, likely)),
        "HuberLoss delta": simple("HuberLoss", "sum", 0.5, given=(rows, hidden)),
    }
    for reduction in ("mean", "sum", "none"):
        for name, given in {
            "HuberLoss": (rows, hidden),
            "SoftMarginLoss": (rows, signs),
            "MAELoss": (rows, hidden),
            "KLDivLoss": (rows, likely),
            "MarginRankingLoss": (rows, hidden, signs),
            "HingeEmbeddingLoss": (rows, signs),
            "MultiLabelSoftMarginLoss": (rows, fixed((signs.values + 1) / 2)),
            "MultiMarginLoss": (rows, targets),
            "PoissonNLLLoss": (rows, likely),
            "GaussianNLLLoss": (rows, hidden, likely),
        }.items():
            cases[f"{name} {reduction}"] = simple(name, reduction=reduction, given=given)
    words = fixed(np.array([[1, 2, 2], [3, 1, 0], [4, 0, 0]], np.int32))
    times, lengths = (fixed(np.array(n, np.int32)) for n in ([6, 5, 6], [3, 2, 1]))
    for reduction in ("mean", "sum", "none"):
        cases[f"CTCLoss {reduction}"] = Called(
            lambda ms, reduction=reduction: _after_log_softmax(ms, ms.nn.CTCLoss(reduction=reduction)),
            lambda cell, x: cell(*x),
            real("x", (6, 3, 5)),
            words,
            times,
            lengths,
        )
    return cases


def _after_log_softmax(ms, loss):
    class Loss(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.loss = loss
            self.log_softmax = ms.nn.LogSoftmax(2)

        def construct(self, x, *others):
            return self.loss(self.log_softmax(x), *others)

    return Loss()


def others():
    one = fixed(np.float32(1.5))
    return {
        "SoftShrink": simple("SoftShrink", 0.3, given=(rows,)),
        "HShrink": simple("HShrink", 0.3, given=(rows,)),
        "Tanhshrink": simple("Tanhshrink", given=(rows,)),
        "Threshold": simple("Threshold", 0.2, 3.0, given=(rows,)),
        "Softmin": simple("Softmin", given=(rows,)),
        "Softmax2d": simple("Softmax2d"),
        "GLU": simple("GLU", 1),
        "FastGelu": simple("FastGelu", given=(rows,)),
        "LogSoftmaxExt": simple("LogSoftmaxExt", given=(rows,)),
        "PixelShuffle": simple("PixelShuffle", 2),
        "PixelUnshuffle": simple("PixelUnshuffle", 2, given=(real("x", (2, 3, 4, 6)),)),
        "ChannelShuffle": simple("ChannelShuffle", 2),
        "CentralCrop": simple("CentralCrop", 0.5),
        "PSNR": simple("PSNR", given=(image, real("y", (2, 4, 6, 7)))),
        "SSIM": simple(
            "SSIM", 1.0, 5, given=(real("x", (2, 3, 8, 9), 0, 1), fixed(numbers("y", (2, 3, 8, 9), 0, 1)))
        ),
        "Norm": simple("Norm", 1, True, given=(rows,)),
        "Norm all": simple("Norm", given=(rows,)),
        "ClipByNorm": simple("ClipByNorm", given=(rows, one)),
        "Moments mean": Called(lambda ms: ms.nn.Moments(1), lambda c, x: c(x[0])[0], rows),
        "Moments variance": Called(lambda ms: ms.nn.Moments(1, True), lambda c, x: c(x[0])[1], rows),
        "ReduceLogSumExp": simple("ReduceLogSumExp", 1, given=(rows,)),
        "MatMul": simple("MatMul", True, False, given=(rows, hidden)),
        "Roll": simple("Roll", (1, -2), (0, 1), given=(rows,)),
        "Tril": simple("Tril", given=(rows,)),
        "Triu": simple("Triu", given=(rows,)),
        "Unflatten": simple("Unflatten", 1, (2, 2)),
        "L1Regularizer": simple("L1Regularizer", 0.5, given=(rows,)),
        "MatrixDiag": simple("MatrixDiag", given=(rows,)),
        "MatrixDiagPart": simple("MatrixDiagPart", given=(rows,)),
        "BiDense": simple("BiDense", 5, 5, 3, given=(rows, hidden)),
        "Linear": simple("Linear", 5, 3, given=(rows,)),
        "Conv2dBnAct": simple("Conv2dBnAct", 4, 3, 3, has_bn=True, activation="relu"),
        "DenseBnAct": simple("DenseBnAct", 5, 3, has_bn=True, activation="tanh", given=(rows,)),
        "Dropout1d": simple("Dropout1d", given=(line,)),
        "Dropout2d": simple("Dropout2d"),
        "Dropout3d": simple("Dropout3d", given=(volume,)),
        "TimeDistributed": CellCase(
            lambda ms: ms.nn.TimeDistributed(ms.nn.Dense(4, 2), 0), real("x", (3, 2, 4))
        ),
    }


def all_cases():
    parts = (
        convolutions, normalizations, pooling, padding, recurrent, transformers, losses, others,
    )  # fmt: skip
    return {name: case for part in parts for name, case in part().items()}


def summary(values):
    """A tensor as few figures that no other tensor gives: three sums and its first and last elements."""
    flat = np.asarray(values, np.float64).reshape(-1)
    wave = np.cos(np.arange(flat.size) * 0.7)
    ends = [*flat[:6], *flat[-6:]]
    sums = [flat.sum(), (flat * wave).sum(), np.abs(flat).sum()]
    return np.asarray(values).shape, np.array([*sums, *ends])


def main(wanted):
    import mindspore as ms

    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    cases, failed = all_cases(), []
    recorded = json.loads(FILE.read_text()) if wanted else {}
    for name in [name for name in cases if wanted in name]:
        case = cases[name]
        try:
            figures = case.run(ms)
        except Exception as error:
            failed.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
            continue
        recorded[name] = {}
        for what, values in figures.items():
            shape, numbers_ = summary(values)
            recorded[name][what] = [list(shape), [float(f"{v:.8g}") for v in numbers_]]
    recorded = {name: recorded[name] for name in cases if name in recorded}
    lines = [f"{json.dumps(name)}: {json.dumps(figures)}" for name, figures in recorded.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print("\n".join(failed) or "all cases ran")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
