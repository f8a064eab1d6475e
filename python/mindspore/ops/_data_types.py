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


class CustomRegOp:
    """Notes what a script says of a custom op; get_op_info() gives it as a dict. Nothing here asks for it."""

    def __init__(self, op_name="Custom"):
        self._info = {
            "op_name": op_name,
            "inputs": [],
            "outputs": [],
            "attr": [],
            "fusion_type": "",
            "dtype_format": [],
            "target": "UnKnown",
        }

    def _noted(self, kind, **entry):
        self._info[kind].append({name: value for name, value in entry.items() if value is not None})
        return self

    def input(self, index=None, name=None, param_type="required", **kwargs):
        """Another input."""
        return self._noted("inputs", index=index, name=name, paramType=param_type, **kwargs)

    def output(self, index=None, name=None, param_type="required", **kwargs):
        """Another output."""
        return self._noted("outputs", index=index, name=name, paramType=param_type, **kwargs)

    def attr(self, name=None, param_type=None, value_type=None, default_value=None, **kwargs):
        """Another attribute."""
        described = {"paramType": param_type, "type": value_type, "defaultValue": default_value}
        return self._noted("attr", name=name, **described, **kwargs)

    def dtype_format(self, *args):
        """A (dtype, format) for each input and output."""
        self._info["dtype_format"].append(args)
        return self

    def target(self, target=None):
        """The device that it is for."""
        self._info["target"] = target
        return self

    def get_op_info(self):
        """All that was said."""
        return dict(self._info)


__all__ = ["CustomRegOp", "DataType"]
