"""mindspore.ops_generate: what MindSpore's tests ask of the program that makes its ops from tables."""

__all__: list = []
