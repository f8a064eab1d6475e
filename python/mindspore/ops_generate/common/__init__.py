"""mindspore.ops_generate.common: see gen_utils."""

__all__: list = []
