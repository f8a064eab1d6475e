"""Members of Tensor by MindSpore's names: each is put in place when it is first asked for."""

import importlib

import muster

# Functions of mindspore.ops that take the tensor first, with the arguments of the method.
_OF_OPS = """
    absolute acos acosh addbmm addcdiv addcmul addmm addmv addr adjoint amax amin aminmax approximate_equal
    arccos arccosh arcsin arcsinh arctan arctan2 arctanh argwhere asin asinh atan atan2 atanh baddbmm
    bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm ceil
    cholesky cholesky_inverse cholesky_solve clamp conj copysign cos cosh cov cross cummax cummin cumprod
    deg2rad
    det diagflat diagonal_scatter diff digamma div divide dot dsplit eq equal erf erfc erfinv expm1 fills
    fliplr flipud float_power floor floor_divide fmax fmin fmod frac gather_nd gcd ge geqrf ger greater
    greater_equal gt hardshrink heaviside histc hsplit hypot i0 igamma igammac index_fill inner inv inverse
    isclose isfinite isinf isnan isneginf isposinf isreal lcm ldexp le lerp less less_equal lgamma log10
    log1p log2 log_matrix_determinant logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not
    logical_or logical_xor logit logsumexp lstsq lt lu_solve masked_fill masked_scatter masked_select matmul
    matrix_power maximum minimum mm moveaxis movedim msort mul multiply mvlgamma nan_to_num nanmean
    nanmedian nanquantile nansum narrow ne neg negative nextafter not_equal orgqr ormqr outer positive qr
    quantile rad2deg real reciprocal renorm reverse reverse_sequence roll rot90
    rsqrt select_scatter sgn sign signbit sin sinc sinh slice_scatter slogdet soft_shrink
    squeeze svd swapdims
    t tan tensor_split top_k tril triu true_divide trunc type_as unique_consecutive unique_with_pad
    unsorted_segment_max unsorted_segment_min unsorted_segment_prod view_as vsplit xdivy xlogy
"""
# Functions and properties of the modules below.
_OWN = {
    "_sums": """
        all any argmax argmax_with_value argmin argmin_with_value count_nonzero cumsum max mean min norm prod
        ptp std sum sum_to_size var
    """,
    "_numbers": """
        __round__ add allclose argsort clip invert kthvalue median remainder round searchsorted softmax
        sort sub subtract trace unique
    """,
    "_facts": """
        H bfloat16 bool byte const_arg data_ptr data_sync device dim double float flush_from_cache half
        has_init hooks init init_data init_finished init_flag int is_complex is_contiguous
        is_floating_point is_init is_persistent_data is_signed long mH mT move_to nelement set_const_arg
        set_dtype short storage_offset stride strides type virtual_flag wait_pipeline
    """,
    "_shapes": """
        chunk clone col2im contiguous diag diagonal expand expand_as fill fill_diagonal flatten
        fold new_empty new_full new_ones new_zeros repeat repeat_interleave resize split to_coo to_csr
        transpose unfold value
    """,
    "_places": """
        choose gather index_add index_put inplace_update itemset nonzero scatter scatter_add
        scatter_div scatter_max scatter_min scatter_mul scatter_sub select take triangular_solve where
    """,
    "_in_place": """
        add_ addmm_ assign_value bernoulli_ cauchy clamp_ copy_ div_ erfinv_ exp_ exponential_ fill_
        fill_diagonal_ floor_ floor_divide_ index_add_ index_put_ log_ log_normal masked_fill_ mul_
        multinomial normal_ put_ random_ random_categorical remainder_ scatter_ scatter_add_ sub_ tanh_
        uniform uniform_ zero_
    """,
}
# Those that replace a method of the library itself, whose arguments MindSpore has more of.
_REPLACED = """
    all any argmax argmin clip cumprod cumsum expand_as flatten gather max mean min prod
    remainder split squeeze sum transpose
"""
# Other names of arguments, those of MindSpore's further overloads, and the places that they stand at.
_ALSO_CALLED = {
    "float_power": {"other": 0},
    "index_select": {"dim": 0},
    "isclose": {"x2": 0},
    "logical_and": {"y": 0},
    "logical_or": {"y": 0},
    "masked_scatter": {"mask": 0, "source": 1},
    "matmul": {"tensor2": 0},
    "mm": {"mat2": 0},
    "multiply": {"value": 0},
    "nansum": {"dim": 0, "keepdim": 1},
    "narrow": {"dim": 0},
    "reshape": {"shape": 0},
    "tile": {"reps": 0, "dims": 0},
    "true_divide": {"other": 0},
    "unsqueeze": {"axis": 0},
}
# The library's own ones, which some of the others end in.
LIBRARY = {name: getattr(muster.Tensor, name) for name in ("flatten", "transpose")}


def _method_of(function, name):
    def method(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    _tell_as(method, function)
    return method


def _tell_as(method, function) -> None:
    """Documents the method as the function that it calls."""
    words = function.__doc__ or ""
    if (
        type(function).__module__ == "nanobind"
    ):  # words follow a signature; inspect.signature does not take it
        method.__doc__ = words.rpartition("\n\n")[2]
    else:
        method.__doc__ = words
        method.__wrapped__ = getattr(function, "__wrapped__", function)


def _called_by(names, method):
    """The method, which takes arguments by these names too."""

    def call(self, *args, **kwargs):
        for name in names if kwargs else ():
            if name in kwargs and len(args) == names[name]:
                args += (kwargs.pop(name),)
        return method(self, *args, **kwargs)

    call.__name__ = call.__qualname__ = method.__name__
    _tell_as(call, method)
    return call


class _Later:
    """A member that becomes what it is at its first use."""

    def __init__(self, name, module):
        self._name = name
        self._module = module

    def __get__(self, tensor, owner):
        member = self._member()
        setattr(muster.Tensor, self._name, member)
        return member.__get__(tensor, owner)

    def _member(self):
        if self._module != "ops":
            return vars(importlib.import_module(f"mindspore._members.{self._module}"))[self._name]
        ops = importlib.import_module("mindspore.ops")
        try:
            method = _method_of(getattr(ops, self._name), self._name)
        except AttributeError:
            from mindspore import _names

            raise AttributeError(_names.sentence(f"mindspore.Tensor.{self._name}")) from None
        names = _ALSO_CALLED.get(self._name)
        return _called_by(names, method) if names else method


def attach() -> None:
    """Gives Tensor its further members."""
    replaced = _REPLACED.split()
    for module, names in (("ops", _OF_OPS), *_OWN.items()):
        for name in names.split():
            if name in replaced or not hasattr(muster.Tensor, name):
                setattr(muster.Tensor, name, _Later(name, module))
    for name, others in _ALSO_CALLED.items():
        if not isinstance(vars(muster.Tensor)[name], _Later):  # the library's own
            setattr(muster.Tensor, name, _called_by(others, getattr(muster.Tensor, name)))
