"""mindspore.ops.auto_generate.gen_ops_prim: names of mindspore.ops by another path."""

from mindspore.ops.auto_generate import named_like

__getattr__ = named_like(__name__, "_ext_op", "_op", "_ext_impl", "_impl", "Ext", "_ext")
