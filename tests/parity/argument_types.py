"""Which kinds of arguments constructors of MindSpore 2.7.0 refuse by a TypeError: mindspore._kinds.

Written by `python tests/parity/argument_types.py KINDS RANGES` where `mindspore` is that of its wheel. Each
argument of each class is given values of each kind, the others what makes an object; a kind of which no value
passes is refused. RANGES are arguments whose whole numbers have a least value, and those that take some
strings alone.
"""

import inspect
import signal
import sys
from collections import defaultdict

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

VALUES = {
    "b": (True,),
    "i": (1, 0, -1),
    "f": (1.0,),
    "s": ("a",),
    "n": (None,),
    "d": ({},),
    "t": ((1,), (1, 1), (1.0, 1.0), ("a",), ((1, 1), (1, 1)), (True,)),
    "l": ([1, 1], [1.0, 1.0], ["a"], [[1, 1], [1, 1]], [True]),
    "T": (Tensor(1.0), Tensor(1), Tensor([1.0, 1.0])),
}
SECONDS_MAX = 20  # for one class
LEFT_OUT = {"Transformer", "TransformerEncoder", "TransformerDecoder", "Custom", "PyFunc", "Print"}


def parameters():
    return [
        Parameter(Tensor(np.ones(shape, np.float32)), name=name) for name, shape in (("w", (2, 2)), ("b", 2))
    ]


def dense():
    return nn.Dense(2, 2)


def _for(names, value):
    return dict.fromkeys(names.split(), value)


NEEDED = {  # arguments without a default
    **_for(
        "in_channels out_channels kernel_size num_features embedding_size input_size hidden_size "
        "num_channels depth output_size embed_dim d_model block_size upscale_factor in1_channels "
        "in2_channels out_channel num "
        "warmup_steps pooled_height pooled_width block_shape channel num_classes in_features out_features "
        "downscale_factor norm_type beta size hidden_channels",
        2,
    ),
    **_for(
        "num_groups num_heads nhead axis begin dim num_layers group patience k padding groups num_sampled "
        "num_true split_dim",
        1,
    ),
    **_for("learning_rate min_lr base_lr lr scale end_learning_rate decay_rate", 0.1),
    **_for("keep_prob max_lr threshold lambd clip_norm max_val max_norm spatial_scale", 0.5),
    **_for("ksizes strides rates", (1, 2, 2, 1)),
    **_for("normalized_shape shape element_shape", (2,)),
    **_for("paddings crops", ((1, 1), (1, 1))),
    **_for("params parameters", parameters),
    **_for("network backbone layer net", dense),
    "vocab_size": 4,
    "num_embeddings": 4,
    "embedding_dim": 2,
    "decay_steps": 4,
    "power": 1.0,
    "min_val": 0.0,
    "range_max": 4,
    "unique": True,
    "ksize": [1, 2, 2, 1],
    "row": 2,
    "l1": 0.1,
    "rho": 0.9,
    "epsilon": 1e-6,
    "stride": 2,
    "size_splits": (1, 1),
    "shifts": 1,
    "numsamples": 2,
    "nbins": 4,
    "maxnorm": 1.0,
    "out_channel": 2,
    "in_channel": 2,
    "pooling_ratio": (1.0, 1.4, 1.4, 1.0),
    "optimizer": lambda: nn.SGD(parameters(), 0.1),
    "loss_fn": lambda: nn.MSELoss(),
    "dtype": ms.float32,
    "perm": (1, 0),
    "out_shape": (2, 2),
    "mode": "SYMMETRIC",
    "seq_dim": 1,
    "central_fraction": 0.5,
    "value": 1.0,
    "micro_size": 2,
    "start": 1,
    "time_axis": 1,
    "loss_scale_value": 8.0,
    "scale_factor": 2,
    "scale_window": 2,
    "scale_sense": lambda: nn.FixedLossScaleUpdateCell(8.0),
}


def classes():
    """("nn.Conv2d", class), ..."""
    for name in sorted(set(nn.__all__) - LEFT_OUT):
        if inspect.isclass(getattr(nn, name, None)):
            yield f"nn.{name}", getattr(nn, name)
    for name in sorted(set(ops.__all__) - LEFT_OUT):
        made = getattr(ops, name, None)
        if name == "GradOperation" or (inspect.isclass(made) and issubclass(made, ops.Primitive)):
            yield f"ops.{name}", made


def refused(make, given, name, values):
    """Whether all values of a kind are refused by a TypeError, and whether one passes."""
    ends = set()
    for value in values:
        try:
            make(**{**given(), name: value})
        except Exception as error:
            ends.add(type(error) if isinstance(error, TypeError) else Exception)
        else:
            ends.add(None)
    return ends == {TypeError}, None in ends


def plain(init):
    """The __init__ that a decorator without functools.wraps calls."""
    inside = [cell.cell_contents for cell in getattr(init, "__closure__", None) or ()]
    return next((each for each in inside if inspect.isfunction(each)), getattr(init, "__wrapped__", init))


def kinds_of(made):
    """By argument: (kinds that pass, kinds that are refused), both as letters; and what range_of says."""
    of = inspect.signature(plain(made.__init__)).parameters
    named = [
        each for each in list(of.values())[1:] if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    needed = [each.name for each in named if each.default is each.empty]

    def given():
        found = {name: NEEDED[name] for name in needed}
        return {name: value() if inspect.isfunction(value) else value for name, value in found.items()}

    made(**given())
    kinds, ranges = {}, {}
    for each in named:
        ranges[each.name] = range_of(made, given, each)
        of_default = "s" if isinstance(each.default, str) else None
        found = {
            kind: refused(made, given, each.name, (*values, each.default) if kind == of_default else values)
            for kind, values in VALUES.items()
        }
        passing = "".join(kind for kind, (_, passes) in found.items() if passes)
        no = "".join(kind for kind, (is_refused, _) in found.items() if is_refused)
        if not set(passing) & set("bifs"):  # objects, or lists of them: nothing is known of those
            no = "".join(kind for kind in no if kind not in "tlT")
        kinds[each.name] = (passing, no)
    return kinds, ranges


def ends(make, given, name, value):
    """The kind of error that a value ends with; None where it passes."""
    try:
        make(**{**given(), name: value})
    except Exception as error:
        return type(error)
    return None


# Strings that arguments take.
STRINGS = """
all align_corners area asymmetric avg batchmean bicubic bidirectional bilinear bilinear_v2 border
circular constant CONSTANT crop edge erf half_pixel LEFT_LEFT LEFT_RIGHT linear lower max mean NCDHW
NCHW NDHWC nearest NHWC none pad PAD reflect REFLECT reflection replicate resize RIGHT_LEFT
RIGHT_RIGHT same SAME sum symmetric SYMMETRIC tanh trilinear unidirectional upper valid VALID zeros
"""


def range_of(made, given, each):
    """'positive' or 'natural' where numbers below are a ValueError, or the strings that pass, or None."""
    found = [ends(made, given, each.name, value) for value in (2, 1, 0, -1, -3)]
    if found[:2] == [None, None] and found[3:] == [ValueError] * 2 and found[2] in (None, ValueError):
        return "positive" if found[2] else "natural"
    if isinstance(each.default, str) and ends(made, given, each.name, "a") is ValueError:
        return "|".join(text for text in STRINGS.split() if ends(made, given, each.name, text) is None)
    return None


def late(*_):
    raise TimeoutError


if __name__ == "__main__":
    ms.set_context(mode=ms.PYNATIVE_MODE)
    signal.signal(signal.SIGALRM, late)
    table, allowed = defaultdict(list), defaultdict(list)
    for name, made in classes():
        signal.alarm(SECONDS_MAX)
        try:
            kinds, ranges = kinds_of(made)
            for argument, (passing, no) in kinds.items():
                if no and passing:
                    table[argument, passing, no].append(name)
                if ranges[argument]:
                    allowed[argument, ranges[argument]].append(name)
        except Exception as error:
            print(name, type(error).__name__, error, file=sys.stderr)
        finally:
            signal.alarm(0)
    for path, lines in zip(sys.argv[1:], (table, allowed), strict=True):
        with open(path, "w", encoding="utf-8") as file:
            for key, names in sorted(lines.items()):
                file.write(f"{' '.join(key)} {' '.join(names)}\n")
