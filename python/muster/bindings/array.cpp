// Functions that make, move, join and pick elements.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "python/muster/bindings/array_arguments.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/tensor_methods.h"

namespace muster::python {
namespace {

using graph::Value;
namespace ops = nn::ops;

Shape shape_from(nb::handle object) { return Shape(sizes_from(object)); }

// The dtype that a Python number has by itself: bool, int64 or float32.
DType dtype_of_number(nb::handle number) {
  if (PyBool_Check(number.ptr())) return DType::bool_;
  return PyLong_Check(number.ptr()) ? DType::int64 : DType::float32;
}

// `value` is a number, or a scalar tensor of any dtype.
Value filled(const Shape& shape, nb::handle value, std::optional<DType> dtype) {
  if (!is_value(value))
    return ops::full(shape, nb::cast<double>(value), dtype.value_or(dtype_of_number(value)));
  const Value& given = nb::cast<const Value&>(value);
  return ops::broadcast_to(dtype ? ops::cast(given, *dtype) : given, shape);
}

void bind_making(nb::module_& core) {
  core.def(
      "zeros",
      [](nb::handle size, nb::handle dtype) {
        return tensor_result(ops::zeros(shape_from(size), dtype_or_none(dtype).value_or(DType::float32)));
      },
      nb::arg("size"), nb::arg("dtype") = nb::none(),
      nb::sig(
          "def zeros(size: int | collections.abc.Sequence[int], dtype: DType | str | None = None) -> Tensor"),
      "A tensor of shape `size` full of 0, float32 unless `dtype` says otherwise.");
  core.def(
      "ones",
      [](nb::handle shape, nb::handle dtype) {
        return tensor_result(ops::ones(shape_from(shape), dtype_or_none(dtype).value_or(DType::float32)));
      },
      nb::arg("shape"), nb::arg("dtype") = nb::none(),
      nb::sig(
          "def ones(shape: int | collections.abc.Sequence[int], dtype: DType | str | None = None) -> Tensor"),
      "A tensor of `shape` full of 1, float32 unless `dtype` says otherwise.");
  core.def(
      "full",
      [](nb::handle size, nb::handle fill_value, nb::handle dtype) {
        return tensor_result(filled(shape_from(size), fill_value, dtype_or_none(dtype)));
      },
      nb::arg("size"), nb::arg("fill_value"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::sig(
          "def full(size: int | collections.abc.Sequence[int], fill_value: bool | int | float | Tensor, *, "
          "dtype: DType | str | None = None) -> Tensor"),
      "A tensor of shape `size` full of `fill_value`. Without `dtype` that of the value: bool_, int64 or "
      "float32.");
  core.def(
      "zeros_like",
      [](nb::handle input, nb::handle dtype) {
        return tensor_result(ops::zeros_like(value_from(input), dtype_or_none(dtype)));
      },
      nb::arg("input"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::sig("def zeros_like(input: Tensor, *, dtype: DType | str | None = None) -> Tensor"),
      "Zeros in the shape of `input`, and in its dtype unless `dtype` says otherwise.");
  core.def(
      "ones_like",
      [](nb::handle input, nb::handle dtype) {
        return tensor_result(ops::ones_like(value_from(input), dtype_or_none(dtype)));
      },
      nb::arg("input"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::sig("def ones_like(input: Tensor, *, dtype: DType | str | None = None) -> Tensor"),
      "Ones in the shape of `input`, and in its dtype unless `dtype` says otherwise.");
  core.def(
      "full_like",
      [](nb::handle input, nb::handle fill_value, nb::handle dtype) {
        const Value like = value_from(input);
        return tensor_result(filled(like.shape(), fill_value, dtype_or_none(dtype).value_or(like.dtype())));
      },
      nb::arg("input"), nb::arg("fill_value"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::sig("def full_like(input: Tensor, fill_value: bool | int | float | Tensor, *, dtype: DType | str | "
              "None = None) -> Tensor"),
      "A tensor in the shape of `input` full of `fill_value`, in its dtype unless `dtype` says otherwise.");
  core.def(
      "arange",
      [](nb::handle start, nb::handle end, nb::handle step, nb::handle dtype) {
        const bool one = end.is_none();
        const bool any_float =
            PyFloat_Check(start.ptr()) || PyFloat_Check(end.ptr()) || PyFloat_Check(step.ptr());
        return tensor_result(
            ops::arange({one ? 0.0 : nb::cast<double>(start), nb::cast<double>(one ? start : end),
                         nb::cast<double>(step)},
                        dtype_or_none(dtype).value_or(any_float ? DType::float32 : DType::int64)));
      },
      nb::arg("start") = 0, nb::arg("end") = nb::none(), nb::arg("step") = 1, nb::kw_only(),
      nb::arg("dtype") = nb::none(),
      nb::sig("def arange(start: int | float = 0, end: int | float | None = None, step: int | float = 1, *, "
              "dtype: DType | str | None = None) -> Tensor"),
      "start, start + step, ... before `end`; arange(n) begins at 0. Shape (ceil((end - start) / step),); "
      "int64, or float32 when a number is a float, unless `dtype` says otherwise. ValueError when the step "
      "is 0.");
}

void bind_shapes(nb::module_& core) {
  core.def(
      "reshape",
      [](nb::handle input, nb::handle shape) {
        return tensor_result(ops::reshape(value_from(input), shape_from(shape)));
      },
      nb::arg("input"), nb::arg("shape"),
      nb::sig("def reshape(input: Tensor, shape: int | collections.abc.Sequence[int]) -> Tensor"),
      "The same elements under another shape; one size may be -1: what the others leave. ValueError when the "
      "number of elements differs. Nothing is copied.");
  core.def(
      "shape", [](const Value& input_x) -> nb::object { return nb::cast(input_x).attr("shape"); },
      nb::arg("input_x"), nb::sig("def shape(input_x: Tensor) -> tuple[int, ...]"),
      "The sizes of a tensor, outermost first.");
  core.def(
      "squeeze",
      [](nb::handle input, nb::handle axis) {
        std::optional<Sizes> axes = sizes_or_none(axis);
        if (axes && axes->empty()) axes.reset();
        return tensor_result(ops::squeeze(value_from(input), std::move(axes)));
      },
      nb::arg("input"), nb::arg("axis") = nb::none(),
      nb::sig(
          "def squeeze(input: Tensor, axis: int | collections.abc.Sequence[int] | None = None) -> Tensor"),
      "The tensor without its axes of size 1: all of them, or `axis`. ValueError when a named axis has "
      "another size.");
  core.def(
      "expand_dims",
      [](nb::handle input_x, std::int64_t axis) {
        return tensor_result(ops::expand_dims(value_from(input_x), axis));
      },
      nb::arg("input_x"), nb::arg("axis"), nb::sig("def expand_dims(input_x: Tensor, axis: int) -> Tensor"),
      "The tensor with a new axis of size 1 at `axis`, in [-rank - 1, rank].");
  core.def(
      "flatten",
      [](nb::handle input, std::int64_t start_dim, std::int64_t end_dim) {
        return tensor_result(ops::flatten(value_from(input), start_dim, end_dim));
      },
      nb::arg("input"), nb::kw_only(), nb::arg("start_dim") = 1, nb::arg("end_dim") = -1,
      nb::sig("def flatten(input: Tensor, *, start_dim: int = 1, end_dim: int = -1) -> Tensor"),
      "Axes `start_dim` to `end_dim` (included) as one: (N, ...) as (N, all the rest).");
  core.def(
      "broadcast_to",
      [](nb::handle input, nb::handle shape) {
        return tensor_result(ops::broadcast_to(value_from(input), shape_from(shape)));
      },
      nb::arg("input"), nb::arg("shape"),
      nb::sig("def broadcast_to(input: Tensor, shape: collections.abc.Sequence[int]) -> Tensor"),
      "The tensor repeated along axes of size 1, and along new leading axes, to `shape`; a size of -1 keeps "
      "the tensor's. Rules: numpy's broadcasting.");
}

void bind_moving(nb::module_& core) {
  core.def(
      "transpose",
      [](nb::handle input, nb::handle input_perm) {
        return tensor_result(ops::transpose(value_from(input), sizes_from(input_perm)));
      },
      nb::arg("input"), nb::arg("input_perm"),
      nb::sig("def transpose(input: Tensor, input_perm: collections.abc.Sequence[int]) -> Tensor"),
      "The axes in another order: axis i of the result is axis input_perm[i]. ValueError unless each is "
      "named once.");
  core.def(
      "swapaxes",
      [](nb::handle input, std::int64_t axis0, std::int64_t axis1) {
        return tensor_result(ops::swapaxes(value_from(input), axis0, axis1));
      },
      nb::arg("input"), nb::arg("axis0"), nb::arg("axis1"),
      nb::sig("def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor"), "The two axes exchanged.");
  core.def(
      "flip",
      [](nb::handle input, nb::handle dims) {
        return tensor_result(ops::flip(value_from(input), sizes_from(dims)));
      },
      nb::arg("input"), nb::arg("dims"),
      nb::sig("def flip(input: Tensor, dims: int | collections.abc.Sequence[int]) -> Tensor"),
      "The elements along the axes `dims` in reverse.");
  core.def(
      "tile",
      [](nb::handle input, nb::handle dims) {
        return tensor_result(ops::tile(value_from(input), sizes_from(dims)));
      },
      nb::arg("input"), nb::arg("dims"),
      nb::sig("def tile(input: Tensor, dims: int | collections.abc.Sequence[int]) -> Tensor"),
      "The tensor repeated dims[i] times along axis i; both are aligned at the last axis, as numpy.tile "
      "does.");
  core.def(
      "slice",
      [](nb::handle input_x, nb::handle begin, nb::handle size) {
        return tensor_result(ops::slice(value_from(input_x), sizes_from(begin), sizes_from(size)));
      },
      nb::arg("input_x"), nb::arg("begin"), nb::arg("size"),
      nb::sig("def slice(input_x: Tensor, begin: collections.abc.Sequence[int], size: "
              "collections.abc.Sequence[int]) -> Tensor"),
      "size[i] elements of axis i from begin[i] on; a size of -1 takes all that follow. ValueError when they "
      "do not lie in the axis.");
}

std::optional<ops::PadMode> pad_mode(const std::string& name) {
  if (name == "constant") return ops::PadMode::constant;
  if (name == "reflect") return ops::PadMode::reflect;
  if (name == "symmetric") return ops::PadMode::symmetric;
  if (name == "replicate") return ops::PadMode::replicate;
  if (name == "circular") return ops::PadMode::circular;
  return std::nullopt;
}

// (left, right) of the last axis, then of the one before, ...
ops::Paddings paddings_from(const Value& x, const Sizes& pairs) {
  ops::Paddings paddings(x.shape().rank());
  if (pairs.size() % 2 != 0 || pairs.size() / 2 > paddings.size())
    throw nb::value_error(("pad: padding holds a pair for each of the last axes of a tensor of shape " +
                           to_string(x.shape()) + ", not " + std::to_string(pairs.size()) + " numbers")
                              .c_str());
  for (std::size_t i = 0; i < pairs.size() / 2; ++i)
    paddings[paddings.size() - 1 - i] = {pairs[2 * i], pairs[2 * i + 1]};
  return paddings;
}

TensorObject pad(nb::handle input, nb::handle padding, const std::string& mode, nb::handle value) {
  const Value x = value_from(input);
  const auto known = pad_mode(mode);
  if (!known)
    throw nb::value_error(
        ("pad: mode must be 'constant', 'reflect', 'symmetric', 'replicate' or 'circular', not '" + mode +
         "'")
            .c_str());
  if (*known != ops::PadMode::constant && !value.is_none())
    throw nb::value_error("pad: a value belongs to mode 'constant' alone");
  const double filler = value.is_none() ? 0.0 : nb::cast<double>(value);
  return tensor_result(ops::pad(x, paddings_from(x, sizes_from(padding)), *known, filler));
}

void bind_padding(nb::module_& core) {
  core.def(
      "pad", &pad, nb::arg("input_x"), nb::arg("padding"), nb::arg("mode") = "constant",
      nb::arg("value") = nb::none(),
      nb::sig("def pad(input_x: Tensor, padding: collections.abc.Sequence[int], mode: str = 'constant', "
              "value: int | float | None = None) -> Tensor"),
      "The tensor with more elements around it. `padding` is (before, behind) of the last axis, then of the "
      "one before it, and so on; negative numbers take elements away ('constant' alone). `mode` is "
      "'constant' (`value`, 0), 'reflect' (3 2 | 1 2 3), 'symmetric' (2 1 | 1 2 3), 'replicate' (1 1 | 1 2 "
      "3) or 'circular' (2 3 | 1 2 3). ValueError when an axis has too few elements for that.");
}

void bind_joining(nb::module_& core) {
  core.def(
      "concat",
      [](nb::handle tensors, std::int64_t axis) {
        return tensor_result(ops::concat(values_from(tensors), axis));
      },
      nb::arg("tensors"), nb::arg("axis") = 0,
      nb::sig("def concat(tensors: collections.abc.Sequence[Tensor], axis: int = 0) -> Tensor"),
      "The tensors one behind the other along `axis`. ValueError when they differ in dtype or in another "
      "axis.");
  core.def(
      "stack",
      [](nb::handle tensors, std::int64_t axis) {
        return tensor_result(ops::stack(values_from(tensors), axis));
      },
      nb::arg("tensors"), nb::arg("axis") = 0,
      nb::sig("def stack(tensors: collections.abc.Sequence[Tensor], axis: int = 0) -> Tensor"),
      "Tensors of one shape and dtype along a new axis.");
  core.def(
      "split",
      [](nb::handle tensor, nb::handle split_size_or_sections, std::int64_t axis) {
        const Value x = value_from(tensor);
        const Sizes sizes = sizes_from(split_size_or_sections);
        return tensor_tuple(PyLong_Check(split_size_or_sections.ptr()) ? ops::split_by(x, sizes[0], axis)
                                                                       : ops::split(x, sizes, axis));
      },
      nb::arg("tensor"), nb::arg("split_size_or_sections"), nb::arg("axis") = 0,
      nb::sig(
          "def split(tensor: Tensor, split_size_or_sections: int | collections.abc.Sequence[int], axis: int "
          "= 0) -> tuple[Tensor, ...]"),
      "Parts along `axis`: of the sizes listed, which must add up, or of one size, the last one smaller if "
      "need be.");
  core.def(
      "unstack",
      [](nb::handle input_x, std::int64_t axis) {
        return tensor_tuple(ops::unstack(value_from(input_x), axis));
      },
      nb::arg("input_x"), nb::arg("axis") = 0,
      nb::sig("def unstack(input_x: Tensor, axis: int = 0) -> tuple[Tensor, ...]"),
      "One tensor for each element of `axis`, without that axis.");
}

// Numbers beside each other agree in dtype; a tensor decides for a number.
std::pair<Value, Value> on_and_off(nb::handle on, nb::handle off) {
  if (is_value(on)) {
    const Value& value = nb::cast<const Value&>(on);
    return {value, value_from(off, &value)};
  }
  if (is_value(off)) {
    const Value& value = nb::cast<const Value&>(off);
    return {value_from(on, &value), value};
  }
  const bool any_float = PyFloat_Check(on.ptr()) || PyFloat_Check(off.ptr());
  const DType dtype = any_float ? DType::float32 : DType::int64;
  return {ops::full({}, nb::cast<double>(on), dtype), ops::full({}, nb::cast<double>(off), dtype)};
}

void bind_picking(nb::module_& core) {
  core.def(
      "embedding",
      [](nb::handle input, nb::handle weight) {
        return tensor_result(ops::embedding(value_from(input), value_from(weight)));
      },
      nb::arg("input"), nb::arg("weight"), nb::sig("def embedding(input: Tensor, weight: Tensor) -> Tensor"),
      "The rows of `weight` (V, D) for the numbers `input` (...), int32 or int64: (..., D).");
  core.def(
      "one_hot",
      [](nb::handle indices, std::int64_t depth, nb::handle on_value, nb::handle off_value,
         std::int64_t axis) {
        auto [on, off] = on_and_off(on_value, off_value);
        return tensor_result(ops::one_hot(value_from(indices), depth,
                                          {.on = std::move(on), .off = std::move(off), .axis = axis}));
      },
      nb::arg("indices"), nb::arg("depth"), nb::arg("on_value") = 1, nb::arg("off_value") = 0,
      nb::arg("axis") = -1,
      nb::sig("def one_hot(indices: Tensor, depth: int, on_value: int | float | Tensor = 1, off_value: int | "
              "float | Tensor = 0, axis: int = -1) -> Tensor"),
      "A new axis of `depth` at `axis`, `on_value` at the index and `off_value` elsewhere; an index outside "
      "of [0, depth) gives off values alone. The dtype is that of the values: int64 for whole numbers, "
      "float32 for others, or a scalar tensor's.");
  core.def(
      "topk",
      [](nb::handle input, std::int64_t k, nb::handle dim, bool largest, bool sorted) {
        return topk(value_from(input), k, dim, largest, sorted);
      },
      nb::arg("input"), nb::arg("k"), nb::arg("dim") = nb::none(), nb::arg("largest") = true,
      nb::arg("sorted") = true,
      nb::sig("def topk(input: Tensor, k: int, dim: int | None = None, largest: bool = True, sorted: bool = "
              "True) -> tuple[Tensor, Tensor]"),
      "The `k` greatest (or smallest) elements along `dim` (the last axis) and their places (int32), in "
      "order, but for all of them with sorted=False, which stay as they are; of equal ones that with the "
      "smaller index comes first, NaN counts as greatest.");
}

}  // namespace

void bind_array(nb::module_& core) {
  bind_making(core);
  bind_shapes(core);
  bind_moving(core);
  bind_padding(core);
  bind_joining(core);
  bind_picking(core);
}

}  // namespace muster::python
