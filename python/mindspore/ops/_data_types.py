"""mindspore.ops.DataType: pairs of a dtype and a format, which registrations of ops for accelerators take."""

_DTYPES = {
    "None": "",
    "BOOL": "bool",
    **{
        f"{kind}{bits}": f"{name}{bits}"
        for kind, name in (("I", "int"), ("U", "uint"))
        for bits in (8, 16, 32, 64)
    },
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "BF16": "bfloat16",
    "C64": "complex64",
    "C128": "complex128",
}
_FORMATS = {
    "None": ("",),
    "Default": ("DefaultFormat",),
    "Default_Tuple": ("DefaultFormat", "tuple"),
    "Default_List": ("DefaultFormat", "list"),
    "5HD": ("NC1HWC0",),
    "FracZ": ("FRACTAL_Z",),
    "FracNZ": ("FRACTAL_NZ",),
    "FracZNLSTM": ("FRACTAL_ZN_LSTM",),
    "FracZNRNN": ("FRACTAL_ZN_RNN",),
    "ND_RNNBIAS": ("ND_RNN_BIAS",),
    **{
        name: (name,)
        for name in (
            *("C1HWNCoC0", "ChannelLast", "DHWCN", "FRACTAL_Z_3D", "HWCN", "NC1HWC0", "NCDHW", "NCHW"),
            *("NDC1HWC0", "NDHWC", "NHWC"),
        )
    },
}


class DataType:
    """DataType.F16_5HD is ("float16", "NC1HWC0"): a dtype and a format. Nothing here asks for them."""


for _kind, _dtype in _DTYPES.items():
    for _name, _format in _FORMATS.items():
        setattr(DataType, f"{_kind}_{_name}", (_dtype, *_format))

__all__ = ["DataType"]
