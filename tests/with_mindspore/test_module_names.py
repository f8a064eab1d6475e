"""A name that is there is there under each path that MindSpore has it at (tests/parity/module_names.py)."""

import sys
from pathlib import Path

import mindspore
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "parity"))

import module_names

# Files of MindSpore's own machinery that are not there as modules.
ABSENT = {
    "mindspore.dataset.core.datatypes",
    "mindspore.dataset.core.py_util_helpers",
    "mindspore.dataset.core.validator_helpers",
    "mindspore.dataset.engine.offload",
    "mindspore.dataset.engine.validators",
    "mindspore.ops.deprecated",
    "mindspore.ops.function.reshard_func",
    "mindspore.ops.operations.reshard_ops",
    "mindspore.ops.vm_impl_registry",
    "mindspore.parallel.function",
    "mindspore.parallel.function.reshard_func",
    "mindspore.utils",
    "mindspore.utils.runtime_execution_order_check",
    "mindspore.utils.sdc_detect",
    "mindspore.utils.utils",
}


def test_names_are_under_all_paths_that_mindspore_has_them_at():
    absent, lacking = set(), []
    for module, packages in module_names.recorded().items():
        for package, names in packages.items():
            try:
                lacking += [f"{module}.{name}" for name in module_names.missing(module, package, names)]
            except ImportError:
                absent.add(module)
    assert lacking == ["mindspore.common.sparse_tensor.SparseTensor"]
    assert absent == ABSENT


def test_what_is_refused_is_refused_under_the_paths_of_functions_and_primitives():
    from mindspore.ops import functional, operations

    for name in ("fft", "linearize", "stft"):
        with pytest.raises(NotImplementedError, match=rf"mindspore.ops.{name} is not provided"):
            getattr(functional, name)(mindspore.Tensor([1.0]))
    with pytest.raises(NotImplementedError, match="DynamicRNN is not provided"):
        operations.DynamicRNN()(1)


def test_functions_are_one_object_under_both_paths():
    from mindspore import ops
    from mindspore.ops import functional

    names = module_names.recorded()["mindspore.ops.functional"]["mindspore.ops"]
    shared = [name for name in names if hasattr(ops, name) and not hasattr(getattr(ops, name), "way")]
    assert len(shared) > 500
    assert [name for name in shared if getattr(ops, name) is not getattr(functional, name)] == []


def test_files_of_mindspore_have_what_they_import():
    from mindspore.nn.layer.conv import Parameter, initializer
    from mindspore.nn.optim.adam import Cell

    assert (Parameter, Cell) == (mindspore.Parameter, mindspore.nn.Cell)
    assert initializer is mindspore.common.initializer.initializer
    with pytest.raises(ImportError, match="nothing_like_it"):
        from mindspore.nn.layer.conv import nothing_like_it  # noqa: F401


def test_like_functions_of_composite_take_tuples():
    from mindspore.ops import composite

    one, (two,) = composite.ones_like((mindspore.Tensor([3.0]), (mindspore.Tensor([4]),)))
    assert (one.asnumpy().tolist(), two.asnumpy().tolist()) == ([1.0], [1])
    assert composite.zeros_like(mindspore.Tensor([3.0])).asnumpy().tolist() == [0.0]


def test_compose_gives_a_tuple_where_mindspore_runs_it_in_python():
    import numpy
    from mindspore.dataset import transforms, vision
    from mindspore.dataset.transforms import py_transforms

    image = numpy.zeros((2, 3, 3), numpy.uint8)
    parts = [vision.ToPIL(), vision.ToTensor()]
    for composed in (
        transforms.Compose(parts),
        transforms.Compose([transforms.Compose(parts), vision.ToTensor()]),
        transforms.Compose([vision.HorizontalFlip(), vision.ToPIL()]),
        py_transforms.Compose([vision.HorizontalFlip()]),
    ):
        made = composed(image)
        assert isinstance(made, tuple) and len(made) == 1
    for composed in (
        transforms.Compose([vision.ToTensor()]),
        transforms.Compose([lambda value: value + 1]),
    ):
        assert composed(image).ndim == 3
    assert len(transforms.Compose([lambda value: (value, value)])(image)) == 2
    rows = mindspore.dataset.NumpySlicesDataset([image], ["image"], shuffle=False)
    (row,) = rows.map(transforms.Compose(parts), "image").create_tuple_iterator(output_numpy=True)
    assert row[0].shape == (3, 2, 3)


def test_classes_that_scripts_look_for_by_isinstance():
    from mindspore import nn
    from mindspore.nn.layer.activation import _activation
    from mindspore.nn.layer.conv import _Conv
    from mindspore.nn.layer.normalization import _BatchNorm

    class Own(nn.BatchNorm2d):
        pass

    assert isinstance(Own(2), _BatchNorm) and issubclass(nn.BatchNorm1d, _BatchNorm)
    assert isinstance(nn.Conv1d(1, 1, 1), _Conv) and isinstance(nn.Conv2dTranspose(1, 1, 1), _Conv)
    assert not isinstance(nn.Dense(1, 1), (_Conv, _BatchNorm)) and not issubclass(nn.Dense, _Conv)
    assert _activation["relu"] is nn.ReLU and len(_activation) == 26
    with pytest.raises(TypeError, match="stands for Conv1d"):
        _Conv(1, 1, 1)


def test_functions_of_mint_are_under_the_names_that_its_files_have():
    from mindspore import mint, ops
    from mindspore.ops import auto_generate
    from mindspore.ops.auto_generate import gen_ops_def
    from mindspore.ops.function.array_func import sort_ext
    from mindspore.ops.function.math_func import add_ext, norm_ext, vector_norm_ext
    from mindspore.ops.function.nn_func import dropout_ext

    assert (add_ext, norm_ext, sort_ext) == (mint.add, mint.norm, mint.sort)
    assert (vector_norm_ext, dropout_ext) == (mint.linalg.vector_norm, mint.nn.functional.dropout)
    for module in (auto_generate, gen_ops_def):
        assert module.sum_ext is mint.sum and module.sub_ext is mint.sub
        assert module.relu is ops.relu
    x = mindspore.Tensor([[1.0, 2.0]])
    assert auto_generate.add_ext(x, x, alpha=3).asnumpy().tolist() == [[4, 8]]
    with pytest.raises(ImportError, match="nothing_ext"):
        from mindspore.ops.function.math_func import nothing_ext  # noqa: F401
